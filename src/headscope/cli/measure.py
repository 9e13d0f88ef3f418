"""`headscope measure`: a head table of the reducers that are named."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from headscope.cli.options import (
    BatchTokens,
    CorpusName,
    Cut,
    Device,
    Format,
    MaxTokens,
    Model,
    PairTokens,
    PatternFile,
    Permutations,
    Resume,
    Trust,
    plan_of,
)
from headscope.cli.terminal import console, show_progress
from headscope.errors import HeadscopeError

if TYPE_CHECKING:
    from headscope.reducers.reducer import Reducer


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
    permutations: Permutations = None,
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
    from headscope.corpora import read, summarize
    from headscope.files import remove_unfinished, writable
    from headscope.reducers.support.permutations import PERMUTATIONS, with_permutations
    from headscope.runner.local import measure as run
    from headscope.runner.resolve import resolve_reducers
    from headscope.runner.runs import checkpoints, measure_runs
    from headscope.runs import read as read_runs
    from headscope.view.terminal import explain as explained
    from headscope.view.terminal import summarise

    writable(out)
    if runs is None and "similarity" in reducer:
        raise HeadscopeError("-r similarity compares runs with the model that they were tuned from; add --runs FOLDER.")
    family = None if runs is None else read_runs(runs)
    tuned_on = f"{'the control of ' if family and family.control else ''}{family.task if family else ''}"
    documents = read(corpus, format=format, patterns=patterns)
    checkpoint = out.with_name(f".{out.name}.partial.npz")
    plan = plan_of(max_tokens, cut, pair_tokens, batch_tokens)
    with show_progress() as progress:
        progress("reading the corpus", 0, 0)
        summary = summarize(documents)
        asked = resolve_reducers(_asked(reducer, offset or [], words or []), summary)
        # Chance is asked of all runs together, when they are compared.
        usual = PERMUTATIONS if family is None else 0
        reducers = [with_permutations(one, usual if permutations is None else permutations) for one in asked]
        progress("loading the model", 0, 0)
        subject = load(model, device=device, trust_remote_code=trust_remote_code)
        if family is None:
            table = run(
                subject, documents, reducers, plan=plan, summary=summary, checkpoint=checkpoint, resume=resume,
                progress=lambda done, total: progress(f"measuring {subject.name}", done, total),
            )  # fmt: skip
        else:
            table = measure_runs(
                subject, family, documents, reducers, plan=plan, summary=summary, checkpoint=checkpoint, resume=resume,
                progress=lambda done, total: progress(f"measuring {len(family.runs)} runs of {tuned_on}", done, total),
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


def _asked(names: list[str], offsets: list[int], classes: list[str]) -> "list[str | Reducer]":
    """The reducers by name, `surface` with what else is asked of it."""
    from headscope.reducers import Surface, WordClass

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
        parsed.append(WordClass(name, given))
    surface = Surface(offsets=tuple(offsets), classes=tuple(parsed))
    return [surface if name == "surface" else name for name in names]
