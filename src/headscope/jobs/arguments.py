"""The arguments of a job, checked before anything is imported that takes seconds. No torch here.

A command calls these before it imports its job. The jobs call them first of all too, so that a script gets the same
sentences before anything is read or loaded.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from headscope.capture import names as model_names
from headscope.corpora import read
from headscope.errors import HeadscopeError
from headscope.learn import tasks
from headscope.reducers import names as reducer_names
from headscope.studies import names as study_names

FIGURES = ("reported", "all", "none")
"""Of which rows an atlas has heatmaps."""


def check_model(model: object) -> None:
    """Refuse a path at which there is no folder, as `headscope.load` would.

    Args:
        model: a name or path; a loaded model is not looked at.

    Raises:
        ModelError: it begins as no hub id does, and there is no such folder.
    """
    if isinstance(model, str | Path):
        model_names.check_name(str(model))


def check_reducers(reducers: object) -> None:
    """Refuse the name of a reducer that there is not.

    Args:
        reducers: a name, or several names and reducers; what is no name is not looked at.

    Raises:
        HeadscopeError: a name is neither one of a built-in reducer nor of the form ``module:Reducer``.
    """
    named = [reducers] if isinstance(reducers, str) or not isinstance(reducers, Iterable) else reducers
    for reducer in named:
        if isinstance(reducer, str):
            reducer_names.check_name(reducer)


def check_corpora(*corpora: str | Path | None, **settings: Any) -> None:
    """Refuse a corpus that `headscope.read` would refuse; None is none.

    Args:
        corpora: files or folders, or the name of the generated one.
        settings: what `headscope.read` takes beside them. Patterns are looked at by the job, since spaCy takes seconds.

    Raises:
        CorpusError: there is no such file, folder or format, or no such part of a corpus can be taken.
    """
    for corpus in corpora:
        if corpus is not None:
            read(corpus, **settings)


def check_study(name: str) -> None:
    """Refuse a study that there is not.

    Raises:
        HeadscopeError: it is none of `headscope.studies.STUDIES`.
    """
    study_names.check_name(name)


def check_task(name: str) -> None:
    """Refuse a task that there is not; its corpus is looked at by the job.

    Raises:
        HeadscopeError: it is the name of no task, no set of the library `datasets`, and no file or folder.
    """
    tasks.check_name(name)


def check_figures(figures: str) -> None:
    """Refuse a choice of figures that there is not.

    Raises:
        HeadscopeError: it is none of `FIGURES`.
    """
    if figures not in FIGURES:
        raise HeadscopeError(f"there is no choice of figures {figures!r}; name one of {', '.join(FIGURES)}.")
