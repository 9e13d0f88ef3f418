"""What there is, by name: reducers, corpora, studies and tasks."""

from collections.abc import Callable, Mapping

from headscope.errors import HeadscopeError


def list_names(kind: str) -> Mapping[str, str]:
    """The names of one kind (``reducers``, ``corpora``, ``studies`` or ``tasks``) with their descriptions.

    Raises:
        HeadscopeError: there is no such kind.
    """
    lists: Mapping[str, Callable[[], Mapping[str, str]]] = {
        "reducers": _list_reducers, "corpora": _list_corpora, "studies": _list_studies, "tasks": _list_tasks,
    }  # fmt: skip
    if kind not in lists:
        *others, last = lists
        raise HeadscopeError(f"there is no list of {kind!r}; there are {', '.join(others)} and {last}.")
    return lists[kind]()


# Each loads what it lists only when it is asked for, since some of that takes seconds.
def _list_reducers() -> dict[str, str]:
    from headscope.reducers import REDUCERS

    return {name: (reducer.__doc__ or "").strip().splitlines()[0] for name, reducer in REDUCERS.items()}


def _list_corpora() -> dict[str, str]:
    from headscope.corpora import FORMATS

    grammar = "generated English with exact dependencies, coreference and negation (grammar:COUNT:SEED)"
    return {"grammar": grammar} | {name: format.description for name, format in FORMATS.items()}


def _list_studies() -> dict[str, str]:
    from headscope.studies import STUDIES

    return {name: study.title for name, study in STUDIES.items()}


def _list_tasks() -> dict[str, str]:
    from headscope.learn.tasks import TASKS

    return {name: task.description for name, task in TASKS.items()}
