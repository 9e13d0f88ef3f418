"""Options that several commands have, each said once."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from headscope.runner import Plan

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
Permutations = Annotated[
    int | None,
    typer.Option(min=0, help="Times that the gold is moved elsewhere, for p-values. Default: 999; 0 for none."),
]
Trust = Annotated[bool, typer.Option("--trust-remote-code", help="Run the Python that the model's repository brings.")]


def plan_of(max_tokens: int | None, cut: bool | None, pair_tokens: int | None, batch_tokens: int | None) -> "Plan":
    """How to batch, by the options that were given."""
    from headscope.runner import Plan

    plan = Plan(max_tokens=max_tokens, cut=cut)
    if pair_tokens is not None:
        plan = replace(plan, pair_tokens=pair_tokens)
    if batch_tokens is not None:
        plan = replace(plan, batch_tokens=batch_tokens)
    return plan
