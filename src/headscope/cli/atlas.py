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
    permutations: Permutations = None,
    trust_remote_code: Trust = False,
    resume: Resume = False,
) -> None:
    """Measure everything that the corpus's annotation allows, with controls: tables, figures and a page."""
    from headscope.jobs.atlas import atlas as make
    from headscope.reducers.support.permutations import PERMUTATIONS
    from headscope.view.terminal import summarise

    plan = plan_of(max_tokens, cut, pair_tokens, batch_tokens)
    with show_progress() as progress:
        made = make(
            model, corpus, out, format=format, patterns=patterns, plan=plan, device=device, seed=seed,
            permutations=PERMUTATIONS if permutations is None else permutations,
            trust_remote_code=trust_remote_code, resume=resume, progress=progress,
        )  # fmt: skip
    summarise(made.table, console)
    page, folder = escape(str(made.folder / "atlas.html")), escape(str(made.folder))
    console.print(f"\nOpen [bold]{page}[/]; {len(made.files)} files in {folder}.", soft_wrap=True)
