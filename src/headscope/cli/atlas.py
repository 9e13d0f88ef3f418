"""`headscope atlas`: everything that a corpus allows, into a folder."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from headscope.cli.options import (
    BatchTokens,
    CorpusName,
    Cut,
    Device,
    Draws,
    Format,
    MaxTokens,
    Model,
    PairTokens,
    PatternFile,
    Resume,
    Trust,
    plan_of,
)
from headscope.cli.terminal import console, progress


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

    plan = plan_of(max_tokens, cut, pair_tokens, batch_tokens)
    with progress() as report:
        made = make(
            model, corpus, out, format=format, patterns=patterns, plan=plan, device=device, seed=seed,
            draws=DRAWS if draws is None else draws, trust_remote_code=trust_remote_code, resume=resume, report=report,
        )  # fmt: skip
    summarise(made.table, console)
    page, folder = escape(str(made.folder / "atlas.html")), escape(str(made.folder))
    console.print(f"\nOpen [bold]{page}[/]; {len(made.files)} files in {folder}.", soft_wrap=True)
