"""The names of reducers, corpora, studies and tasks, with their descriptions. This module does not load torch."""

from collections.abc import Mapping

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from headscope.commands.list.request import KINDS, List
from headscope.commands.progress import Progress


def run(request: List, progress: Progress) -> Mapping[str, str]:
    """Return the names of one kind with their descriptions; without a kind, return each kind with its names."""
    if request.kind is None:
        return {kind: ", ".join(_describe(kind)) for kind in KINDS}
    return _describe(request.kind)


def _describe(kind: str) -> Mapping[str, str]:
    # Each list is imported only when it is needed.
    match kind:
        case "reducers":
            from headscope.reducers import reducer_names as reducers

            return reducers.NAMES
        case "corpora":
            from headscope.corpora import FORMATS
            from headscope.corpora.treebanks import RELEASE

            grammar = "generated English with exact dependencies, coreference and negation (grammar:COUNT:SEED)"
            repeats = "random tokens that are repeated, for induction heads (repeats:COUNT:SEED)"
            needles = "facts in long texts and questions about them, for retrieval heads (needles:COUNT:SEED)"
            treebanks = (
                f"each treebank of Universal Dependencies {RELEASE} by its code, such as ud:en_ewt; downloaded once "
                "(ud:CODE:SPLIT)"
            )
            hub = "a dataset of the Hugging Face hub by its name; extra `datasets` (hf:DATASET:CONFIG:SPLIT)"
            return {"grammar": grammar, "repeats": repeats, "needles": needles, "ud": treebanks, "hf": hub} | {
                name: format.description for name, format in FORMATS.items()
            }
        case "studies":
            from headscope.studies import study_names as studies

            return studies.NAMES
        case _:
            from headscope.learn.tasks import TASKS

            return {name: task.description for name, task in TASKS.items()}


def show(request: List, names: Mapping[str, str], console: Console) -> None:
    """Print a table of names and descriptions."""
    table = Table(box=None, show_header=False)
    for name, description in names.items():
        table.add_row(f"[bold]{escape(name)}[/]", escape(description))
    console.print(table)
    if request.kind is None:
        console.print("\n[bold]headscope list corpora[/] says what each corpus is, and so for the others.")
