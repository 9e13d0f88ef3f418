"""Options that several commands have. Each help text is a phrase with its default."""

from pathlib import Path
from typing import Annotated, Any

import typer


def argument(help: str) -> Any:
    """A typer argument without its default."""
    return typer.Argument(help=help, show_default=False)


def option(help: str, *names: str, **settings: Any) -> Any:
    """A typer option whose help states the default itself."""
    return typer.Option(*names, help=help, show_default=False, **settings)


Model = Annotated[str, argument("Model: a hub id, a folder, or minilm (all-MiniLM-L6-v2, from the extra `demo`).")]
Corpus = Annotated[
    str,
    argument("Corpus: a file or folder (see `headscope list corpora`), or grammar[:COUNT[:SEED]] for generated "
             "sentences."),
]  # fmt: skip
Replicate = Annotated[
    str | None,
    option("Another corpus, on which the heads that are chosen on CORPUS are scored again; --format, --patterns, "
           "--limit and --sample hold for both. Default: none."),
]  # fmt: skip
Format = Annotated[str | None, option("Format of the corpus. Detected automatically if omitted.")]
PatternFile = Annotated[
    Path | None, option("JSON file of spaCy patterns; their matches are added to the corpus as links (extra `spacy`).")
]
Limit = Annotated[int | None, option("Take the first so many documents of the corpus. Default: all.")]
Sample = Annotated[int | None, option("Take so many documents at random, in their order. Default: all.")]
Device = Annotated[str, option("Where to run the model: cpu, cuda or cuda:1. Default: cpu.")]
Resume = Annotated[bool, option("Continue a killed run with the same arguments. Default: start again.", "--resume")]
MaxTokens = Annotated[int | None, option("Longest text in tokens. Default: the limit of the model.", min=3)]
Cut = Annotated[
    bool | None,
    option("Cut longer texts, or skip them. Default: cut if the corpus has coreference, else skip.", "--cut/--skip"),
]
PairTokens = Annotated[int | None, option("Cut pairs of paragraphs to this many tokens. Default: 128.", min=5)]
BatchTokens = Annotated[
    int | None, option("Tokens in a batch, padding included; fewer need less memory. Default: 2048.", min=1)
]
Trust = Annotated[bool, option("Run the Python code of the model's repository. Default: never.", "--trust-remote-code")]
Select = Annotated[
    str,
    option("Split on which the best epoch is chosen: validation, or test, which also trains on validation. "
           "Default: validation."),
]  # fmt: skip
MaxExamples = Annotated[
    int | None, option("Train on a random sample of at most this many examples. Default: all.", min=1)
]
