"""The command line: one short command for each public function."""

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from headscope.errors import HeadscopeError

if TYPE_CHECKING:
    import xarray as xr

    from headscope._atlas import Stage
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
SHOWN = 24
"""Relations on the terminal; all are in the table."""

console = Console()
errors = Console(stderr=True)

Model = Annotated[str, typer.Argument(help="A hub id, a folder, or minilm (all-MiniLM-L6-v2 from the extra `demo`).")]
CorpusName = Annotated[
    str,
    typer.Argument(help="A file or folder (`headscope list corpora`), or grammar[:COUNT[:SEED]], generated sentences."),
]
Format = Annotated[str | None, typer.Option(help="The format of the corpus, if it is not to be told from the content.")]
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
Trust = Annotated[bool, typer.Option("--trust-remote-code", help="Run the Python that the model's repository brings.")]


@app.command(epilog="Example: headscope atlas minilm en_ewt-ud-dev.conllu -o ewt")
def atlas(
    model: Model = "minilm",
    corpus: CorpusName = "grammar",
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder to write.")] = Path("headscope-atlas"),
    format: Format = None,
    device: Device = "cpu",
    seed: Annotated[int, typer.Option(help="Of the random weights of the control.")] = 0,
    max_tokens: MaxTokens = None,
    cut: Cut = None,
    pair_tokens: PairTokens = None,
    batch_tokens: BatchTokens = None,
    trust_remote_code: Trust = False,
    resume: Resume = False,
) -> None:
    """Measure everything that the corpus's annotation allows, with controls: tables, figures and a page."""
    from headscope._atlas import atlas as make

    plan = _plan(max_tokens, cut, pair_tokens, batch_tokens)
    with _progress() as report:
        made = make(
            model, corpus, out, format=format, plan=plan, device=device, seed=seed,
            trust_remote_code=trust_remote_code, resume=resume, report=report,
        )  # fmt: skip
    _summarise(made.table)
    page, folder = escape(str(made.folder / "atlas.html")), escape(str(made.folder))
    console.print(f"\nOpen [bold]{page}[/]; {len(made.files)} files in {folder}.", soft_wrap=True)


@app.command(epilog="Example: headscope measure minilm en_ewt-ud-dev.conllu -r relations -o heads.nc")
def measure(
    model: Model,
    corpus: CorpusName,
    reducer: Annotated[list[str], typer.Option("--reducer", "-r", help="What to measure (`headscope list reducers`).")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The netCDF file to write.")] = Path("heads.nc"),
    format: Format = None,
    device: Device = "cpu",
    max_tokens: MaxTokens = None,
    cut: Cut = None,
    pair_tokens: PairTokens = None,
    batch_tokens: BatchTokens = None,
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
) -> None:
    """Measure every head with the named reducers and write a head table."""
    from headscope import heads
    from headscope.analyse import SCORES, with_intervals, with_report
    from headscope.capture import load
    from headscope.corpora import read, survey
    from headscope.disk import writable
    from headscope.measure.run import measure as run
    from headscope.measure.run import resolve

    writable(out)
    documents = read(corpus, format=format)
    checkpoint = out.with_name(f".{out.name}.partial.npz")
    plan = _plan(max_tokens, cut, pair_tokens, batch_tokens)
    with _progress() as report:
        report("reading the corpus", 0, 0)
        found = survey(documents)
        reducers = resolve(_asked(reducer, offset or [], words or []), found)
        report("loading the model", 0, 0)
        subject = load(model, device=device, trust_remote_code=trust_remote_code)
        table = run(
            subject, documents, reducers, plan=plan, found=found, checkpoint=checkpoint, resume=resume,
            report=lambda done, total: report(f"measuring {subject.name}", done, total),
        )  # fmt: skip
    if any(score in table for score in SCORES):
        table = with_report(with_intervals(table))
    heads.write(table, out)
    checkpoint.unlink(missing_ok=True)
    _summarise(table)
    if explain:
        _explain(table)
    console.print(f"\nWrote {escape(str(out))}.", soft_wrap=True)


@app.command("list", epilog="Example: headscope list corpora")
def list_(what: Annotated[str, typer.Argument(help="reducers or corpora.")]) -> None:
    """List what there is: reducers or corpora."""
    from headscope.corpora import FORMATS

    rows: dict[str, str]
    if what == "corpora":
        rows = {"grammar": "generated English with exact dependencies, coreference and negation (grammar:COUNT:SEED)"}
        rows |= {name: format.description for name, format in FORMATS.items()}
    elif what == "reducers":
        from headscope.measure import REDUCERS

        rows = {name: (reducer.__doc__ or "").strip().splitlines()[0] for name, reducer in REDUCERS.items()}
    else:
        raise HeadscopeError(f"there is no list of {what!r}; there are reducers and corpora.")
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
    """A bar on a terminal; elsewhere a line for each stage."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:3.0f}% {task.fields[rate]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    stages: dict[str, TaskID] = {}
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as bars:

        def report(stage: str, done: int, total: int) -> None:
            if stage not in stages:
                for task in bars.tasks:
                    bars.update(task.id, total=1, completed=1, visible=False)
                stages[stage] = bars.add_task(escape(stage), total=total or None, rate="")
                if not errors.is_terminal:
                    errors.print(f"{escape(stage)} ...", soft_wrap=True)
            task = bars.tasks[bars.task_ids.index(stages[stage])]
            rate = f"{task.speed:,.0f} words/s" if task.speed and total else ""
            bars.update(stages[stage], total=total or None, completed=done, rate=rate)

        try:
            yield report
        except KeyboardInterrupt:
            errors.print("headscope: interrupted; add --resume to the same command to go on.", soft_wrap=True)
            raise typer.Exit(130) from None


def _summarise(table: "xr.Dataset") -> None:
    about = table.attrs
    model, corpus = escape(str(about["model"])), escape(str(about["corpus"]))
    console.print(f"\n[bold]{model}[/] on [bold]{corpus}[/]", soft_wrap=True, highlight=False)
    console.print(
        f"{table.sizes['layer']} layers of {table.sizes['head']} heads; {about['documents']:,} documents, "
        f"{about['words']:,} words, {about['tokens']:,} tokens"
    )
    skipped = json.loads(about["skipped"])
    reasons = "; ".join(f"{count:,} {reason}" for reason, count in skipped.items())
    if about["tokens_unknown"]:
        console.print(f"Unknown to the tokenizer: {about['tokens_unknown']:,} tokens", style="yellow")
    console.print(f"Skipped: {reasons or 'nothing'}", style="yellow" if skipped else "")
    _summarise_surface(table)
    _summarise_hypotheses(table)


def _summarise_surface(table: "xr.Dataset") -> None:
    from headscope.analyse import top_heads

    shown = {
        "the previous token": "mass_previous",
        "the next token": "mass_next",
        "[CLS]": "mass_cls",
        "[SEP]": "mass_sep",
        "the first token": "mass_first",
        ". and ,": "mass_punctuation",
    }
    if "mass_cls" in table and table["mass_cls"].notnull().any():
        del shown["the first token"]
    lines = Table(box=None, show_header=False, pad_edge=False)
    for what, variable in shown.items():
        if variable in table and (best := top_heads(table, variable)) and best[0][1] > 0:
            lines.add_row(what, "   ".join(f"[bold]{name}[/] {value:.2f}" for name, value in best))
    if lines.row_count:
        console.print("\nThe heads that look most at ... (mean share of attention)")
        console.print(lines)


def _summarise_hypotheses(table: "xr.Dataset") -> None:
    """The reported head of the most frequent relations, class of mentions and scope, beside its baselines."""
    from headscope.heads import head_name

    every = list(_reported(table))
    rows = [row for row in every if row["reported_layer"] > 0]
    if every and not rows:
        console.print(f"\nToo few links in a half of the corpus to report a head for any of {len(every)} relations.")
    if not rows:
        return
    twin = "twin_accuracy" in rows[0]
    grid = Table(box=None, pad_edge=False)
    for column in (
        "relation",
        "head",
        "points from",
        "score",
        "[95 %]",
        "count",
        "offset",
        *(["twin"] if twin else []),
    ):
        right = column in {"score", "count", "offset", "twin"}
        grid.add_column(column, no_wrap=True, justify="right" if right else "left")
    relations = [row for row in rows if row["is_relation"]]
    for row in [*relations[:SHOWN], *(row for row in rows if not row["is_relation"])]:
        stack = f"{row['reported_stack']} " if "reported_stack" in row else ""
        grid.add_row(
            escape(row["label"]),
            stack + head_name(row["reported_layer"], row["reported_head"]),
            row.get("reported_direction", row["from"]).partition("_to_")[0],
            f"{row['heldout_accuracy']:.3f}",
            f"{row['heldout_lower']:.2f}–{row['heldout_upper']:.2f}",
            f"{row['heldout_count']:,.0f}",
            f"{row['heldout_offset']:+d}: {row['heldout_offset_accuracy']:.3f}",
            *([f"{row['twin_accuracy']:.3f}"] if twin else []),
            # A head is worth a name only if it beats its controls beyond their intervals and its own.
            style="bold green" if row["heldout_lower"] > _control(row) else "",
        )
    console.print(
        "\nThe head for each relation: chosen on one half of the documents, scored on the\n"
        "other, like the best fixed offset (in words)" + (" and the best head of a random twin." if twin else ".")
    )
    console.print(grid)
    console.print("Green: its interval lies above those of the controls (not corrected for the number of relations).")
    if "antecedent_rules" in table:
        rules = ", ".join(f"{name.item()} {share.item():.3f}" for name, share in _by(table["antecedent_rules"]))
        console.print(f"Antecedents found by rules that know the mentions: {rules}.")
    more, rare = len(relations) - SHOWN, table.sizes.get("relation", 0) - len(relations)
    if more > 0 or rare:
        console.print(f"{max(more, 0)} more relations are in the table; {rare} have too few links in a half to report.")


def _reported(table: "xr.Dataset") -> Iterator[dict[str, Any]]:
    """A row for each thing that heads are reported for; a score is called accuracy in all of them."""
    for prefix, dim, what, source in (
        ("", "relation", "{}", ""),
        ("antecedent_", "mention", "coref: {}", "mention"),
        ("scope_", None, "scope, F1", "scope"),
    ):
        if f"{prefix}reported_layer" not in table:
            continue
        names = [name for name in map(str, table.data_vars) if name.startswith(prefix)]
        of = {name.removeprefix(prefix).replace("_f1", "_accuracy"): table[name] for name in names}
        for place in [{}] if dim is None else [{dim: value} for value in table[dim].values]:
            row = {name: values.sel(place) for name, values in of.items() if set(values.dims) == set(place)}
            label = what.format(*place.values())
            yield {name: value.item() for name, value in row.items()} | {
                "label": label, "from": source, "is_relation": dim == "relation",
            }  # fmt: skip


def _by(values: "xr.DataArray") -> Iterator[tuple["xr.DataArray", "xr.DataArray"]]:
    """Each place along the only axis, and its value, where there is one."""
    (dim,) = values.dims
    present = values.dropna(dim)
    return zip(present[dim], present, strict=True)


def _explain(table: "xr.Dataset") -> None:
    """How each layer was measured; neighbouring layers of one way together."""
    ways: dict[tuple[str, str, int], list[int]] = {}
    for path, texts in json.loads(table.attrs["paths"]).items():
        stack, layer, way = path.split(" ", 2)
        ways.setdefault((stack, way, texts), []).append(int(layer))
    grid = Table(box=None, pad_edge=False)
    for column in (*(["stack"] if "stack" in table.dims else []), "layers", "texts", "measured"):
        grid.add_column(column, justify="right" if column == "texts" else "left")
    for (stack, way, texts), layers in sorted(ways.items(), key=lambda item: (item[0][0], min(item[1]), item[0][1])):
        grid.add_row(*([stack] if "stack" in table.dims else []), _runs(sorted(layers)), f"{texts:,}", way)
    console.print("\nHow attention was measured:")
    console.print(grid)


def _runs(layers: list[int]) -> str:
    """Numbers as stretches: 1-3, 5."""
    starts = [layer for layer in layers if layer - 1 not in layers]
    ends = [layer for layer in layers if layer + 1 not in layers]
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True))


def _control(row: Mapping[str, Any]) -> float:
    """The upper end of the better control."""
    return float(max(row["heldout_offset_upper"], row.get("twin_upper", 0.0)))
