"""`headscope study`: a paper's results beside one's own."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

from headscope.cli.options import (
    CORPUS,
    MEASURED,
    MODEL,
    OUTPUT,
    TRAINING,
    BatchTokens,
    Device,
    MaxExamples,
    Resume,
    Select,
    Start,
    Trust,
    argument,
    option,
)
from headscope.cli.terminal import LOADING, console, print_written, show_progress
from headscope.errors import HeadscopeError


def study(
    name: Annotated[str, argument("STUDY", "Name of the study, such as clark2019 (`headscope list studies`).")],
    model: Annotated[
        str,
        option(MODEL, "Hub id such as google-bert/bert-base-cased, folder, .gguf file, minilm or smollm2. Default: "
               "minilm.",
               metavar="MODEL"),
    ] = "minilm",
    trust_remote_code: Trust = False,
    recorded: Annotated[
        Path | None,
        option(MODEL, "Folder of recorded scores (.npz), such as scores, to use instead of a model; no weights are "
               "needed. Default: none.", metavar="FOLDER"),
    ] = None,
    data: Annotated[
        Path,
        option(CORPUS, "Folder that holds the corpora, such as corpora. Default: $HEADSCOPE_DATA, else the current "
               "folder.", metavar="FOLDER", envvar="HEADSCOPE_DATA", show_envvar=False),
    ] = Path(),
    corpora: Annotated[
        list[str] | None,
        option(CORPUS, "Another corpus for one of the tables, as TABLE=PATH such as treebank=wsj.conllu; may be "
               "repeated, for other tables. Default: none.", "--corpus", metavar="TABLE=PATH"),
    ] = None,
    seed: Annotated[
        int, option(CORPUS, "Random seed for sampling documents, such as 7. Default: 0.", metavar="N")
    ] = 0,
    seeds: Annotated[
        int | None,
        option(TRAINING, "Number of fine-tuning runs on the study's task, and on its control, such as 10. "
               "Default: none.", metavar="N"),
    ] = None,
    task: Annotated[
        str, option(TRAINING, "Task to fine-tune on, such as rte. Default: the first of the study.", metavar="NAME")
    ] = "",
    epochs: Annotated[
        int | None,
        option(TRAINING, "Passes over the training examples, such as 8. Default: those of the paper.", metavar="N",
               min=1),
    ] = None,
    learning_rate: Annotated[
        float | None,
        option(TRAINING, "Learning rate at the first step; a small model may need a larger one, such as 3e-4. "
               "Default: that of the paper.", metavar="RATE"),
    ] = None,
    max_examples: MaxExamples = None,
    select: Select = "validation",
    runs: Annotated[
        Path | None,
        option(TRAINING, "Folder of runs that `headscope tune --control` wrote, such as headscope-runs, to measure in "
               "place of new ones. Default: none.", metavar="FOLDER"),
    ] = None,
    probe: Annotated[
        Path | None,
        option(MEASURED, "Folder that `headscope probe` wrote of MODEL, such as headscope-probe, for claims about "
               "probes. Default: none.", metavar="FOLDER"),
    ] = None,
    limits: Annotated[
        list[str] | None,
        option(CORPUS, "Number of examples on which sets of heads are disabled, as TABLE=N such as blimp=20 (pairs of "
               "each paradigm) or last_words=300 (texts, at random); may be repeated, for other tables. Default: all.",
               "--limit", metavar="TABLE=N"),
    ] = None,
    start: Start = None,
    out: Annotated[
        Path, option(OUTPUT, "Folder to write, such as clark. Default: headscope-study.", "--out", "-o",
                     metavar="FOLDER")
    ] = Path("headscope-study"),
    resume: Resume = False,
    device: Device = "cpu",
    batch_tokens: BatchTokens = None,
) -> None:  # fmt: skip
    """Measure what a paper measured, and write its results and one's own side by side.

    The folder holds STUDY.md (read this), STUDY.csv, a head table for each corpus (netCDF), figures/ and STUDY.json;
    with --seeds also the tuned models, in runs/.
    """
    from headscope.jobs.arguments import check_model, check_output_folder, open_probes
    from headscope.jobs.study_arguments import (
        check_lesions_of_study,
        check_probes_of_study,
        check_study,
        check_study_inputs,
    )

    check_study(name)
    check_model(model)
    if recorded is not None:
        if seeds is not None or runs is not None:
            other = "--runs" if seeds is None else "--seeds"
            raise HeadscopeError(f"recorded scores need no fine-tuning; give --recorded or {other}, not both.")
        _study_recorded(name, recorded, out)
        return
    paths = _split_by_table("--corpus", corpora or (), "names no file", "TABLE=PATH", "treebank=wsj.conllu")
    limited = _split_by_table("--limit", limits or (), "gives no number", "TABLE=N", "blimp=20")
    if wrong := [table for table, limit in limited.items() if not limit.isdecimal()]:
        raise HeadscopeError(
            f"--limit {wrong[0]}={limited[wrong[0]]} gives no number; write TABLE=N, such as blimp=20."
        )
    numbers = {table: int(limit) for table, limit in limited.items()}
    tuning: dict[str, Any] = {
        "seeds": seeds, "epochs": epochs, "learning_rate": learning_rate, "task": task, "max_examples": max_examples,
        "select": select, "runs": runs,
    }  # fmt: skip
    with show_progress() as progress:
        progress(LOADING, 0, 0)
        check_output_folder(out, "the study", f"{name}.json")
        check_study_inputs(name, data, paths, tuning)
        check_probes_of_study(probe, name)
        check_lesions_of_study(name, paths, numbers, start)
        probes = open_probes(probe)
        from headscope.jobs.study import study as run
        from headscope.studies.sheet import show

        result = run(
            name, model, data, out, corpora=paths, device=device, seed=seed, batch_tokens=batch_tokens,
            probe=probes, limits=numbers, start=start, trust_remote_code=trust_remote_code, resume=resume,
            progress=progress, **tuning,
        )  # fmt: skip
    show(result.study, result.findings, result.tables, console)
    print_written("Read", result.folder / f"{name}.md", len(result.files))


def _split_by_table(name: str, texts: Iterable[str], lacks: str, form: str, example: str) -> dict[str, str]:
    """What an option gives for each table: its values by the tables."""
    given: dict[str, str] = {}
    for text in texts:
        table, _, value = text.partition("=")
        if not (table and value):
            raise HeadscopeError(f"{name} {text} {lacks}; write {form}, such as {example}.")
        if table in given:
            raise HeadscopeError(f"{name} {table} is given twice, as {given[table]} and as {value}; give it once.")
        given[table] = value
    return given


def _study_recorded(name: str, recorded: Path, out: Path) -> None:
    with show_progress(resumable=False) as progress:
        progress("loading matplotlib", 0, 0)
        from headscope.jobs.study_recorded import study_recorded
        from headscope.studies.recorded import show

        result = study_recorded(name, recorded, out, progress=progress)
    show(result.study, result.models, console)
    print_written("Read", result.folder / f"{name}.md", len(result.files))
