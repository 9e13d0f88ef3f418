"""The tasks that headscope knows, by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from headscope.errors import HeadscopeError
from headscope.learn.aspects import read_aspects
from headscope.learn.glue import GLUE, read_glue
from headscope.learn.hub import PREFIX, read_hub
from headscope.learn.negation import read_negation
from headscope.learn.table import read_table
from headscope.learn.task import Task


@dataclass(frozen=True)
class TaskReader:
    """One task, of which the corpus is still to be named.

    Attributes:
        description: what is learned from what, in one line.
        read: turns a file or folder into the task.
    """

    description: str
    read: Callable[[str | Path], Task]


TASKS: Mapping[str, TaskReader] = {
    "negation": TaskReader(
        "word tagging: which words a negation is about, its cue in braces (Zhao and Bethard 2020; any corpus with cues "
        "and scopes)",
        read_negation,
    ),
    "aspects": TaskReader(
        "sentence pairs: what a review says of the aspect that a question names (SemEval-2014 restaurants)",
        read_aspects,
    ),
    **{
        name: TaskReader(f"GLUE's {one.folder}: {one.about}", partial(read_glue, name=name))
        for name, one in GLUE.items()
    },
    "table": TaskReader(
        "your own, in TSV: columns text, perhaps text2, and label (or score); or words and tags, a word a line",
        read_table,
    ),
}


def read_task(name: str, data: str | Path = "") -> Task:
    """A task by its name.

    Args:
        name: one of `TASKS`; ``datasets:NAME`` for what the library `datasets` loads (`headscope.learn.hub`); or a
            folder or file that `headscope.learn.table` reads.
        data: the file or folder where the corpus of the task is. Of the task ``table`` it is the task itself.

    Raises:
        HeadscopeError: there is no such task, or its corpus cannot be read.
    """
    if name.startswith(PREFIX):
        return read_hub(name)
    if name in TASKS:
        if not str(data):
            raise HeadscopeError(f"the task {name} needs its corpus; name the file or folder that holds it.")
        return TASKS[name].read(data)
    if Path(name).expanduser().exists():
        return read_table(name, name=Path(name).expanduser().resolve().name)
    raise HeadscopeError(
        f"there is no task {name!r}; there are {', '.join(TASKS)}, {PREFIX}NAME for what the library `datasets` loads, "
        "and any folder with a train.tsv and a test.tsv."
    )
