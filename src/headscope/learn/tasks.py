"""The tasks that headscope knows, by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from headscope.errors import HeadscopeError
from headscope.learn.negation import read_negation
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
}


def read_task(name: str, data: str | Path = "") -> Task:
    """A task by its name.

    Args:
        name: one of `TASKS`.
        data: the file or folder where its corpus is.

    Raises:
        HeadscopeError: there is no such task, or its corpus cannot be read.
    """
    if name not in TASKS:
        raise HeadscopeError(f"there is no task {name!r}; there are {', '.join(TASKS)}.")
    return TASKS[name].read(data)
