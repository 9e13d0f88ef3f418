"""The tasks that headscope knows, by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from headscope.errors import HeadscopeError, suggest
from headscope.learn.aspect_sentiment import read_aspects
from headscope.learn.glue import GLUE, read_glue
from headscope.learn.hub import PREFIX, read_hub
from headscope.learn.negation import read_negation
from headscope.learn.table_task import read_table
from headscope.learn.task import Task


@dataclass(frozen=True)
class TaskReader:
    """The description of a task, and the function that reads it.

    Attributes:
        description: A description of the labels and the texts, in one line.
        read: A function that reads the task from a file or folder.
    """

    description: str
    read: Callable[[str | Path], Task]


TASKS: Mapping[str, TaskReader] = {
    "negation": TaskReader(
        "word tagging: the words in the scope of a negation whose cue is in braces (Zhao and Bethard 2020; any corpus "
        "with cues and scopes)",
        read_negation,
    ),
    "aspects": TaskReader(
        "sentence pairs: the sentiment of a review about the aspect that a question names (SemEval-2014 restaurants)",
        read_aspects,
    ),
    **{
        name: TaskReader(f"GLUE's {glue_set.folder}: {glue_set.about}", partial(read_glue, name=name))
        for name, glue_set in GLUE.items()
    },
    "table": TaskReader(
        "your own task, in TSV files: columns text, perhaps text2, and label (or score); or one word and tag a line",
        read_table,
    ),
}


def read_task(name: str, data: str | Path = "") -> Task:
    """Read the task with the given name.

    Args:
        name: One of `TASKS`; ``datasets:NAME`` for a set that the library `datasets` loads (`headscope.learn.hub`); or
            a folder or file that `headscope.learn.table_task` reads.
        data: The file or folder of the task's corpus. For the name ``table`` it is the task itself.

    Raises:
        HeadscopeError: The task is unknown, or its corpus cannot be read.
    """
    if name.startswith(PREFIX):
        return read_hub(name)
    if name in TASKS:
        if not str(data):
            raise HeadscopeError(f"the task {name} needs its corpus; name the file or folder that holds it.")
        return TASKS[name].read(data)
    check_name(name)
    return read_table(name, name=Path(name).expanduser().resolve().name)


def check_name(name: str) -> None:
    """Raise an error for a name that is not one of `TASKS`, a data set of `datasets`, or an existing file or folder."""
    if not name.startswith(PREFIX) and name not in TASKS and not Path(name).expanduser().exists():
        raise HeadscopeError(
            f"there is no task {name!r}{suggest(name, TASKS)}; there are {', '.join(TASKS)}, {PREFIX}NAME for a set "
            "that the library `datasets` loads, and any folder with a train.tsv and a test.tsv."
        )
