"""`headscope study`: a paper's results beside one's own."""

from pathlib import Path
from typing import Annotated

from headscope.cli.options import BatchTokens, Device, MaxExamples, Resume, Select, Trust, argument, option
from headscope.cli.terminal import console, print_written, show_progress
from headscope.errors import HeadscopeError


def study(
    name: Annotated[str, argument("Name of the study (see `headscope list studies`).")],
    model: Annotated[str, option("Model: a hub id, a folder, or minilm. Default: minilm.")] = "minilm",
    data: Annotated[
        Path,
        option("Folder that holds the corpora. Default: $HEADSCOPE_DATA, else the current folder.",
               envvar="HEADSCOPE_DATA", show_envvar=False),
    ] = Path(),
    out: Annotated[Path, option("Folder to write. Default: headscope-study.", "--out", "-o")] = Path("headscope-study"),
    corpora: Annotated[
        list[str] | None,
        option("Another corpus for one of the tables, as TABLE=PATH such as treebank=wsj.conllu; may be repeated.",
               "--corpus"),
    ] = None,
    recorded: Annotated[
        Path | None,
        option("Folder of recorded scores (.npz) to use instead of a model; no weights are needed. Default: none."),
    ] = None,
    device: Device = "cpu",
    seed: Annotated[int, option("Random seed for sampling documents. Default: 0.")] = 0,
    seeds: Annotated[
        int | None, option("Number of fine-tuning runs on the study's task, and on its control. Default: none.")
    ] = None,
    epochs: Annotated[
        int | None, option("Passes over the training examples. Default: those of the paper.", min=1)
    ] = None,
    learning_rate: Annotated[
        float | None,
        option("Learning rate at the first step. Default: that of the paper; a small model may need a larger one."),
    ] = None,
    task: Annotated[str, option("Task to fine-tune on. Default: the first of the study.")] = "",
    max_examples: MaxExamples = None,
    select: Select = "validation",
    batch_tokens: BatchTokens = None,
    trust_remote_code: Trust = False,
    resume: Resume = False,
) -> None:  # fmt: skip
    """Measure what a paper measured, and write its results and one's own side by side."""
    from headscope.jobs.arguments import check_model, check_study

    check_study(name)
    check_model(model)
    if recorded is not None:
        if seeds is not None:
            raise HeadscopeError("recorded scores need no fine-tuning; give --recorded or --seeds, not both.")
        _study_recorded(name, recorded, out)
        return
    from headscope.jobs.study import study as run
    from headscope.studies.sheet import show

    paths: dict[str, str | Path] = {}
    for text in corpora or []:
        table, separator, path = text.partition("=")
        if not (table and separator and path):
            raise HeadscopeError(f"--corpus {text} names no file; write TABLE=PATH, such as treebank=wsj.conllu.")
        paths[table] = path
    with show_progress() as progress:
        result = run(
            name, model, data, out, corpora=paths, device=device, seed=seed, seeds=seeds, epochs=epochs,
            learning_rate=learning_rate, task=task, max_examples=max_examples, select=select,
            batch_tokens=batch_tokens, trust_remote_code=trust_remote_code, resume=resume, progress=progress,
        )  # fmt: skip
    show(result.study, result.findings, result.tables, console)
    print_written("Read", result.folder / f"{name}.md", len(result.files))


def _study_recorded(name: str, recorded: Path, out: Path) -> None:
    from headscope.jobs.study_recorded import study_recorded
    from headscope.studies.recorded import show

    with show_progress(resumable=False) as progress:
        result = study_recorded(name, recorded, out, progress=progress)
    show(result.study, result.models, console)
    print_written("Read", result.folder / f"{name}.md", len(result.files))
