"""The command line: one short command for each public function."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from headscope.errors import HeadscopeError
from headscope.view.progress import stages

if TYPE_CHECKING:
    from headscope._job import Stage
    from headscope.measure.reducer import Reducer
    from headscope.measure.run import Plan

# Torch takes seconds to load, so what needs it is imported in the command that uses it: `--help`
# answers at once.

app = typer.Typer(
    help="What does each attention head look at, which relation does it mark, and how sure are we?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
console = Console()
errors = Console(stderr=True)

Model = Annotated[str, typer.Argument(help="A hub id, a folder, or minilm (all-MiniLM-L6-v2 from the extra `demo`).")]
CorpusName = Annotated[
    str,
    typer.Argument(help="A file or folder (`headscope list corpora`), or grammar[:COUNT[:SEED]], generated sentences."),
]
Format = Annotated[str | None, typer.Option(help="The format of the corpus, if it is not to be told from the content.")]
PatternFile = Annotated[
    Path | None,
    typer.Option("--patterns", help="Patterns of spaCy, in JSON; what they find becomes links (extra spacy)."),
]
Device = Annotated[str, typer.Option(help="Where to run the model: cpu, cuda, cuda:1.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on where a killed run with the same arguments stopped.")]
MaxTokens = Annotated[int | None, typer.Option(min=3, help="Tokens of a text. Default: what the model takes.")]
Cut = Annotated[
    bool | None,
    typer.Option("--cut/--skip", help="Cut or skip longer texts. Default: cut where the corpus has coreference."),
]
PairTokens = Annotated[int | None, typer.Option(min=5, help="Cut pairs of paragraphs to this. Default: 128.")]
BatchTokens = Annotated[
    int | None, typer.Option(min=1, help="Tokens of a batch, padding included. Less needs less memory.")
]
Draws = Annotated[
    int | None,
    typer.Option(min=0, help="Times that the gold is moved elsewhere, for p-values. Default: 999; 0 for none."),
]
Trust = Annotated[bool, typer.Option("--trust-remote-code", help="Run the Python that the model's repository brings.")]


@app.command(epilog="Example: headscope atlas minilm en_ewt-ud-dev.conllu -o ewt")
def atlas(
    model: Model = "minilm",
    corpus: CorpusName = "grammar",
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder to write.")] = Path("headscope-atlas"),
    format: Format = None,
    patterns: PatternFile = None,
    device: Device = "cpu",
    seed: Annotated[int, typer.Option(help="Of the random weights of the control.")] = 0,
    max_tokens: MaxTokens = None,
    cut: Cut = None,
    pair_tokens: PairTokens = None,
    batch_tokens: BatchTokens = None,
    draws: Draws = None,
    trust_remote_code: Trust = False,
    resume: Resume = False,
) -> None:
    """Measure everything that the corpus's annotation allows, with controls: tables, figures and a page."""
    from headscope._atlas import atlas as make
    from headscope.measure.shuffle import DRAWS
    from headscope.view.terminal import summarise

    plan = _plan(max_tokens, cut, pair_tokens, batch_tokens)
    with _progress() as report:
        made = make(
            model, corpus, out, format=format, patterns=patterns, plan=plan, device=device, seed=seed,
            draws=DRAWS if draws is None else draws, trust_remote_code=trust_remote_code, resume=resume, report=report,
        )  # fmt: skip
    summarise(made.table, console)
    page, folder = escape(str(made.folder / "atlas.html")), escape(str(made.folder))
    console.print(f"\nOpen [bold]{page}[/]; {len(made.files)} files in {folder}.", soft_wrap=True)


@app.command(epilog="Example: headscope measure minilm en_ewt-ud-dev.conllu -r relations -o heads.nc")
def measure(
    model: Model,
    corpus: CorpusName,
    reducer: Annotated[list[str], typer.Option("--reducer", "-r", help="What to measure (`headscope list reducers`).")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The netCDF file to write.")] = Path("heads.nc"),
    format: Format = None,
    patterns: PatternFile = None,
    device: Device = "cpu",
    max_tokens: MaxTokens = None,
    cut: Cut = None,
    pair_tokens: PairTokens = None,
    batch_tokens: BatchTokens = None,
    draws: Draws = None,
    trust_remote_code: Trust = False,
    resume: Resume = False,
    offset: Annotated[
        list[int] | None, typer.Option(help="For `surface`: also the token so far away; -2 is the one before the last.")
    ] = None,
    words: Annotated[
        list[str] | None,
        typer.Option("--class", help="For `surface`: also these words together, as NAME=WORD,WORD: no=not,n't,never."),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say of each layer whether its matrix was made, and why.")
    ] = False,
    runs: Annotated[
        Path | None, typer.Option(help="A folder of runs that were tuned from MODEL; each of them is measured instead.")
    ] = None,
) -> None:
    """Measure every head with the named reducers and write a head table."""
    from headscope import heads
    from headscope.analyse import analysed
    from headscope.capture import load
    from headscope.corpora import read, survey
    from headscope.disk import remove_unfinished, writable
    from headscope.measure.family import checkpoints, measure_runs
    from headscope.measure.run import measure as run
    from headscope.measure.run import resolve
    from headscope.measure.shuffle import DRAWS, with_draws
    from headscope.runs import read as read_runs
    from headscope.view.terminal import explain as explained
    from headscope.view.terminal import summarise

    writable(out)
    if runs is None and "similarity" in reducer:
        raise HeadscopeError("-r similarity compares runs with the model that they were tuned from; add --runs FOLDER.")
    family = None if runs is None else read_runs(runs)
    documents = read(corpus, format=format, patterns=patterns)
    checkpoint = out.with_name(f".{out.name}.partial.npz")
    plan = _plan(max_tokens, cut, pair_tokens, batch_tokens)
    with _progress() as report:
        report("reading the corpus", 0, 0)
        found = survey(documents)
        asked = resolve(_asked(reducer, offset or [], words or []), found)
        # Chance is asked of all runs together, when they are compared.
        usual = DRAWS if family is None else 0
        reducers = [with_draws(one, usual if draws is None else draws) for one in asked]
        report("loading the model", 0, 0)
        subject = load(model, device=device, trust_remote_code=trust_remote_code)
        if family is None:
            table = run(
                subject, documents, reducers, plan=plan, found=found, checkpoint=checkpoint, resume=resume,
                report=lambda done, total: report(f"measuring {subject.name}", done, total),
            )  # fmt: skip
        else:
            table = measure_runs(
                subject, family, documents, reducers, plan=plan, found=found, checkpoint=checkpoint, resume=resume,
                report=lambda done, total: report(f"measuring {len(family.runs)} runs of {family.task}", done, total),
                trust_remote_code=trust_remote_code,
            )  # fmt: skip
    table = analysed(table)
    heads.write(table, out)
    for kept in [checkpoint] if family is None else checkpoints(checkpoint, family):
        kept.unlink(missing_ok=True)
        remove_unfinished(kept)
    summarise(table, console)
    if explain:
        explained(table, console)
    console.print(f"\nWrote {escape(str(out))}.", soft_wrap=True)


@app.command(epilog="Example: headscope study clark2019 --data corpora -o clark2019")
def study(
    name: Annotated[str, typer.Argument(help="Of the study (`headscope list studies`).")],
    model: Annotated[str, typer.Option(help="A hub id, a folder, or minilm.")] = "minilm",
    data: Annotated[Path, typer.Option(envvar="HEADSCOPE_DATA", help="The folder that holds the corpora.")] = Path(),
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder to write.")] = Path("headscope-study"),
    corpus: Annotated[
        list[str] | None, typer.Option(help="Another corpus for one of the tables, as TABLE=PATH: treebank=wsj.conllu.")
    ] = None,
    recorded: Annotated[
        Path | None, typer.Option(help="A folder of recorded scores (.npz), in place of any model: no weights needed.")
    ] = None,
    device: Device = "cpu",
    seed: Annotated[int, typer.Option(help="Of a sample of documents.")] = 0,
    seeds: Annotated[
        int | None, typer.Option(help="Fine-tune on the study's task and its control, so many runs each.")
    ] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Of each run. Default: those of the paper.")] = None,
    task: Annotated[str, typer.Option(help="Which of the study's tasks to fine-tune on. Default: the first.")] = "",
    most: Annotated[int | None, typer.Option(min=1, help="Train on a random sample of so many examples.")] = None,
    select: Annotated[
        str, typer.Option(help="The split on which an epoch is chosen: validation or test.")
    ] = "validation",
    batch_tokens: BatchTokens = None,
    trust_remote_code: Trust = False,
    resume: Resume = False,
) -> None:
    """Measure what a paper measured, and write its figures and one's own side by side."""
    from headscope.studies import STUDIES

    if recorded is not None:
        if seeds is not None:
            raise HeadscopeError("recorded scores need no fine-tuning; give --recorded or --seeds, not both.")
        _recorded(name, recorded, out)
        return
    from headscope.studies.run import study as run
    from headscope.studies.sheet import show

    corpora = {}
    for one in corpus or []:
        table, parted, path = one.partition("=")
        if not (table and parted and path):
            raise HeadscopeError(f"--corpus {one} names no file; write TABLE=PATH, such as treebank=wsj.conllu.")
        corpora[table] = Path(path).expanduser()
    with _progress() as report:
        made = run(
            name, model, data, out, corpora=corpora, plan=_plan(None, None, None, batch_tokens), device=device,
            seed=seed, seeds=seeds, epochs=epochs, task=task, most=most, select=select,
            trust_remote_code=trust_remote_code, resume=resume, report=report,
        )  # fmt: skip
    show(STUDIES[name], made.findings, made.tables, console)
    sheet, folder = escape(str(made.folder / f"{name}.md")), escape(str(made.folder))
    console.print(f"\nRead [bold]{sheet}[/]; {len(made.files)} files in {folder}.", soft_wrap=True)


@app.command(epilog="Example: headscope compare before.nc after.nc --control control.nc -o changes")
def compare(
    before: Annotated[Path, typer.Argument(help="The head table of the model before it was tuned.")],
    after: Annotated[Path, typer.Argument(help="That of the runs that were tuned, on the same corpus.")],
    control: Annotated[Path | None, typer.Option(help="That of the runs of the task's control.")] = None,
    other_before: Annotated[Path | None, typer.Option(help="The same on another corpus: before.")] = None,
    other_after: Annotated[Path | None, typer.Option(help="The runs there.")] = None,
    other_control: Annotated[Path | None, typer.Option(help="The runs of the control there.")] = None,
    variable: Annotated[
        list[str] | None,
        typer.Option(help="What to compare: mass_sep, or token_class_mass:token_class=noun. Default: the scores."),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder to write.")] = Path("headscope-compare"),
) -> None:
    """Compare heads before and after tuning, task against control: tables, tests, figures and a page."""
    from headscope._comparison import write_comparison
    from headscope.view.comparison import summarise_comparison

    if (other_before is None) != (other_after is None) or (other_control is not None and other_before is None):
        raise HeadscopeError("--other-before and --other-after go together, and --other-control goes with both.")
    if other_control is not None and control is None:
        raise HeadscopeError("--other-control is the control on another corpus; give it on this one too, as --control.")
    others = None if other_before is None or other_after is None else (other_before, other_after, other_control)
    with _progress() as report:
        made = write_comparison(before, after, control, others=others, variables=variable or [], out=out, report=report)
    for comparison in made.comparisons:
        summarise_comparison(comparison, console)
    for name, found in made.agreements.items():
        for one in found:
            console.print(f"On the other corpus, {name}: {one}", soft_wrap=True, markup=False, highlight=False)
    for sentence in made.left_out:
        console.print(sentence, soft_wrap=True, markup=False, highlight=False, style="yellow")
    page, folder = escape(str(made.folder / "comparison.md")), escape(str(made.folder))
    console.print(f"\nRead [bold]{page}[/]; {len(made.files)} files in {folder}.", soft_wrap=True)


@app.command(epilog="Example: headscope tune negation minilm --data corpora/negation -o negation --seeds 5 --control")
def tune(
    task: Annotated[str, typer.Argument(help="A task (`headscope list tasks`), or a folder of TSV files.")],
    model: Model,
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder to write.")] = Path("headscope-runs"),
    seeds: Annotated[int, typer.Option(min=1, help="As many runs, of the seeds 1, 2, 3 and so on.")] = 3,
    seed: Annotated[list[int] | None, typer.Option(help="Runs of these seeds instead.")] = None,
    control: Annotated[
        bool, typer.Option("--control", help="Also tune as many runs on arbitrary labels, into OUT/control.")
    ] = False,
    data: Annotated[Path, typer.Option(envvar="HEADSCOPE_DATA", help="The corpus of the task.")] = Path(),
    epochs: Annotated[int, typer.Option(help="Times that all examples are seen.")] = 8,
    learning_rate: Annotated[float, typer.Option(help="At the first step; it falls to 0.")] = 4e-5,
    batch_size: Annotated[int, typer.Option(help="Examples of a step, on each device.")] = 16,
    select: Annotated[
        str, typer.Option(help="Choose the epoch on validation, or on test and train on validation too.")
    ] = "validation",
    most: Annotated[int | None, typer.Option(help="Train on a random sample of so many examples.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Cut examples to this. Default: what the model takes.")] = None,
    precision: Annotated[str, typer.Option(help="float32, or bfloat16 or float16, mixed.")] = "float32",
    device: Annotated[str, typer.Option(help="cpu, or cuda for all GPUs that are visible.")] = "cpu",
    trust_remote_code: Trust = False,
    resume: Resume = False,
) -> None:
    """Fine-tune a model on a task, and on its control, several seeds each: a folder of runs."""
    from headscope.learn.control import control_of
    from headscope.learn.tasks import read_task
    from headscope.learn.tune import at_most
    from headscope.learn.tune import tune as run
    from headscope.view.tuned import tuned

    with _progress() as report:
        report(f"reading {task}", 0, 0)
        learnt = read_task(task, data)
        if most is not None:
            learnt = at_most(learnt, most)
        made = run(
            learnt, model, out, seeds=seed or range(1, seeds + 1), control=control_of(learnt) if control else None,
            epochs=epochs, learning_rate=learning_rate, batch_size=batch_size, select=select, max_tokens=max_tokens,
            precision=precision, device=device, trust_remote_code=trust_remote_code, resume=resume, report=report,
        )  # fmt: skip
    tuned(made.task, made.control, console)
    console.print(f"\nThe runs are listed in {escape(str(out / 'runs.json'))}.", soft_wrap=True)


@app.command("list", epilog="Example: headscope list corpora")
def list_(what: Annotated[str, typer.Argument(help="reducers, corpora, studies or tasks.")]) -> None:
    """List what there is: reducers, corpora, studies or tasks."""
    from headscope.corpora import FORMATS

    rows: dict[str, str]
    if what == "corpora":
        rows = {"grammar": "generated English with exact dependencies, coreference and negation (grammar:COUNT:SEED)"}
        rows |= {name: format.description for name, format in FORMATS.items()}
    elif what == "reducers":
        from headscope.measure import REDUCERS

        rows = {name: (reducer.__doc__ or "").strip().splitlines()[0] for name, reducer in REDUCERS.items()}
    elif what == "studies":
        from headscope.studies import STUDIES

        rows = {name: study.title for name, study in STUDIES.items()}
    elif what == "tasks":
        from headscope.learn.tasks import TASKS

        rows = {name: task.description for name, task in TASKS.items()}
    else:
        raise HeadscopeError(f"there is no list of {what!r}; there are reducers, corpora, studies and tasks.")
    table = Table(box=None, show_header=False)
    for name, description in rows.items():
        table.add_row(f"[bold]{name}[/]", description)
    console.print(table)


def main() -> None:
    """Run a command; what headscope refuses is one sentence and exit code 2."""
    try:
        app()
    except HeadscopeError as error:
        errors.print(f"headscope: {error}", soft_wrap=True, markup=False, highlight=False)
        sys.exit(2)


def _recorded(name: str, folder: Path, out: Path) -> None:
    from headscope.studies import STUDIES
    from headscope.studies.recorded import recorded, show

    with _progress() as report:
        models, written = recorded(name, folder, out, report=report)
    show(STUDIES[name], models, console)
    console.print(f"\nRead [bold]{escape(str(out / f'{name}.md'))}[/]; {len(written)} files in {escape(str(out))}.",
                  soft_wrap=True)  # fmt: skip


def _plan(max_tokens: int | None, cut: bool | None, pair_tokens: int | None, batch_tokens: int | None) -> "Plan":
    from headscope.measure import Plan

    plan = Plan(max_tokens=max_tokens, cut=cut)
    if pair_tokens is not None:
        plan = replace(plan, pair_tokens=pair_tokens)
    if batch_tokens is not None:
        plan = replace(plan, batch_tokens=batch_tokens)
    return plan


def _asked(names: list[str], offsets: list[int], classes: list[str]) -> "list[str | Reducer]":
    """The reducers by name, `surface` with what else is asked of it."""
    from headscope.measure import KeyClass, Surface

    if not offsets and not classes:
        return list(names)
    if "surface" not in names:
        raise HeadscopeError("--offset and --class ask more of the reducer `surface`; add -r surface.")
    parsed = []
    for one in classes:
        name, _, words = one.partition("=")
        given = tuple(word for word in words.split(",") if word)
        if not name or not given:
            raise HeadscopeError(f"--class {one} names no words; write NAME=WORD,WORD, such as no=not,n't,never.")
        parsed.append(KeyClass(name, given))
    surface = Surface(offsets=tuple(offsets), classes=tuple(parsed))
    return [surface if name == "surface" else name for name in names]


@contextmanager
def _progress() -> Iterator["Stage"]:
    """Progress on the terminal; an interrupted job says how to go on."""
    try:
        with stages(errors) as report:
            yield report
    except KeyboardInterrupt:
        errors.print("headscope: interrupted; add --resume to the same command to go on.", soft_wrap=True)
        raise typer.Exit(130) from None
