"""`headscope measure`: a head table of the reducers that are named."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
    Resume,
    Trust,
    option,
)
from headscope.cli.terminal import console, show_progress
from headscope.errors import HeadscopeError

if TYPE_CHECKING:
    from headscope.reducers.reducer import Reducer


def measure(
    model: Model,
    corpus: CorpusName,
    reducers: Annotated[
        list[str], option("What to measure (see `headscope list reducers`); may be repeated.", "--reducer", "-r")
    ],
    out: Annotated[Path, option("NetCDF file to write. Default: heads.nc.", "--out", "-o")] = Path("heads.nc"),
    format: Format = None,
    patterns: PatternFile = None,
    runs: Annotated[
        Path | None,
        option("Folder of runs that were tuned from MODEL: each run is measured instead of the model. Default: none."),
    ] = None,
    device: Device = "cpu",
    max_tokens: MaxTokens = None,
    cut: Cut = None,
    pair_tokens: PairTokens = None,
    batch_tokens: BatchTokens = None,
    permutations: Annotated[
        int | None,
        option("Number of permutations for the p-values; 0 skips them. Default: 999, and 0 with --runs.", min=0),
    ] = None,
    trust_remote_code: Trust = False,
    resume: Resume = False,
    offset: Annotated[
        list[int] | None,
        option("For the reducer surface: another distance to measure, in tokens; -2 is two tokens before."),
    ] = None,
    words: Annotated[
        list[str] | None,
        option("For the reducer surface: a class of words, as NAME=WORD,WORD such as no=not,n't,never.", "--class"),
    ] = None,
    explain: Annotated[
        bool, option("Print for each layer how its attention was computed, and why. Default: no.", "--explain")
    ] = False,
) -> None:
    """Measure every head of a model with one or more reducers, and write a head table."""
    from headscope.jobs.measure import measure as run
    from headscope.view.terminal import print_paths, print_table

    with show_progress() as progress:
        table = run(
            model, corpus, _add_to_surface(reducers, offset or [], words or []), out=out, format=format,
            patterns=patterns, runs=runs, device=device, max_tokens=max_tokens, cut=cut, pair_tokens=pair_tokens,
            batch_tokens=batch_tokens, permutations=permutations, trust_remote_code=trust_remote_code, resume=resume,
            progress=progress,
        )  # fmt: skip
    print_table(table, console)
    if explain:
        print_paths(table, console)
    console.print(f"\nWrote {escape(str(out))}.", soft_wrap=True)


def _add_to_surface(names: list[str], offsets: list[int], classes: list[str]) -> "list[str | Reducer]":
    """The reducers by name; `surface` as an object if offsets or classes are added to it."""
    if not offsets and not classes:
        return list(names)
    if "surface" not in names:
        raise HeadscopeError("--offset and --class ask more of the reducer `surface`; add -r surface.")
    from headscope.reducers import Surface, WordClass

    parsed = []
    for text in classes:
        name, _, listed = text.partition("=")
        words = tuple(word for word in listed.split(",") if word)
        if not name or not words:
            raise HeadscopeError(f"--class {text} names no words; write NAME=WORD,WORD, such as no=not,n't,never.")
        parsed.append(WordClass(name, words))
    surface = Surface(offsets=tuple(offsets), classes=tuple(parsed))
    return [surface if name == "surface" else name for name in names]
