"""Reducers by name, with settings or without, by ``module:Reducer`` or as objects -> reducers for a corpus."""

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from headscope.capture.passes.stream import Plan
from headscope.capture.passes.views import NORM, VIEWS
from headscope.corpora.summary import CorpusSummary
from headscope.errors import HeadscopeError, first_line
from headscope.reducers import REDUCERS
from headscope.reducers.reducer import Reducer
from headscope.reducers.reducer_names import check_name, split_settings
from headscope.reducers.settings import parse_settings
from headscope.runner.row_sample import LEAST_ROWS

DECLARED = {name: get_args(hint)[0] for name, hint in get_type_hints(Reducer).items()}
CHOICES = {name: get_args(kind) for name, kind in DECLARED.items() if get_origin(kind) is Literal}
"""The allowed values of each class attribute of `Reducer` that has only a few possible values."""


def list_reducers(reducers: str | Reducer | Sequence[str | Reducer]) -> list[str | Reducer]:
    """Return the reducers as a list; a single reducer or a single name becomes a list of one."""
    if isinstance(reducers, str) or not isinstance(reducers, Sequence):
        return [reducers]
    return list(reducers)


def refuse_view(reducers: Sequence[Reducer], view: str | None) -> None:
    """Raise an error if a reducer cannot be measured through a view.

    Raises:
        HeadscopeError: A reducer reads gradients or values, or compares two models through a view of the loss, which
            two models do not share.
    """
    if view is None:
        return
    reading = next((reducer for reducer in reducers if reducer.scope == "gradient"), None)
    if reading is not None:
        raise HeadscopeError(
            f"the reducer `{reading.name}` reads gradients and not attention, so it has no view `{view}`; measure it "
            "apart, without --view."
        )
    averaging = next((reducer for reducer in reducers if reducer.reads_values), None)
    if averaging is not None:
        raise HeadscopeError(
            f"the reducer `{averaging.name}` reads the values that attention averages, so it has no view `{view}`; "
            "measure it apart, without --view."
        )
    comparing = next((reducer for reducer in reducers if reducer.models == 2), None)
    if comparing is not None and VIEWS[view].of_loss:
        raise HeadscopeError(
            f"the reducer `{comparing.name}` compares two models, which have no loss in common, so it has no view "
            f"`{view}`; measure it apart, without --view or with --view norm."
        )


def refuse_sample(reducers: Sequence[Reducer], plan: Plan) -> None:
    """Raise an error if a sample of query rows is too small, or if a reducer or a view needs all rows.

    Raises:
        HeadscopeError: The sample has fewer than `LEAST_ROWS` rows, or a reducer or the view needs all rows of a text.
    """
    if plan.sample_queries is None:
        return
    if plan.sample_queries < LEAST_ROWS:
        raise HeadscopeError(
            f"a sample of {plan.sample_queries} query rows does not show how far off it is; give {LEAST_ROWS} or more, "
            "such as 256."
        )
    if plan.view not in (None, NORM):
        raise HeadscopeError(
            f"the view `{plan.view}` needs all query rows of a text; leave out --sample-queries, or measure the "
            f"weights or --view {NORM}."
        )
    if whole := [reducer.name for reducer in reducers if reducer.scope != "rows" or not reducer.samples_queries]:
        able = ", ".join(name for name, reducer in REDUCERS.items() if reducer.samples_queries)
        raise HeadscopeError(
            f"the reducer `{whole[0]}` needs all query rows of a text; measure it apart, without --sample-queries (a "
            f"sample will do for {able})."
        )


def needs_head(reducers: Sequence[Reducer], view: str | None = None) -> bool:
    """Return True if a reducer or the view needs gradients, and so a model with a task head."""
    return any(reducer.scope == "gradient" for reducer in reducers) or (view is not None and VIEWS[view].of_loss)


def resolve_reducers(reducers: Sequence[object], summary: CorpusSummary) -> list[Reducer]:
    """Return reducers for a corpus, made from their names; reducers that are objects stay unchanged.

    Args:
        reducers: Names from `REDUCERS`, with or without settings, such as ``surface:offsets=-2|3``
            (`headscope.reducers.settings.parse_settings`); ``module:Reducer``, which is imported with the current
            folder on the path; or reducers.
        summary: The summary of the corpus, for which a class makes its reducer (`Reducer.for_corpus`).

    Raises:
        HeadscopeError: A name is unknown or does not refer to a reducer, or two reducers have the same name.
        CorpusError: The corpus lacks the annotation that a reducer needs.
    """
    resolved = [_resolve(reducer, summary) for reducer in reducers]
    names = [reducer.name for reducer in resolved]
    if len(set(names)) < len(names):
        raise HeadscopeError(f"of the reducers {', '.join(names)} one is named twice; name each once.")
    if not resolved:
        raise HeadscopeError(f"no reducer was named; name one or more of {', '.join(REDUCERS)}.")
    return resolved


def _resolve(reducer: object, summary: CorpusSummary) -> Reducer:
    if not isinstance(reducer, str):
        return _checked(reducer, repr(reducer))
    check_name(reducer)
    name, settings = split_settings(reducer)
    if name in REDUCERS:
        built_in = REDUCERS[name].for_corpus(summary)
        return built_in if settings is None else parse_settings(built_in, settings)
    own = _import(reducer)
    kind = _check_kind(own if isinstance(own, type) else type(own), repr(reducer))
    if isinstance(own, type):
        try:
            own = kind.for_corpus(summary)
        except TypeError as error:
            raise HeadscopeError(
                f"the reducer {reducer!r} cannot be made without arguments ({first_line(error)}); give its fields "
                "defaults, or name an object that is ready."
            ) from error
    return _checked(own, repr(reducer))


def _import(reference: str) -> Any:
    """Import a module, and return the object to which ``module:name`` refers."""
    module_name, _, name = reference.partition(":")
    folder = str(Path.cwd())
    sys.path.insert(0, folder)
    try:
        module = import_module(module_name)
    except Exception as error:  # a user's script may fail in any way
        if isinstance(error, ModuleNotFoundError) and f"{module_name}.".startswith(f"{error.name}."):
            raise HeadscopeError(
                f"the reducer {reference!r} needs a module {module_name!r}, and none was found in {folder} or among "
                "the installed packages; name it as in `import`, without .py."
            ) from error
        raise HeadscopeError(
            f"the module of the reducer {reference!r} cannot be imported ({type(error).__name__}: "
            f"{first_line(error)}); correct it, and try `python -c 'import {module_name}'`."
        ) from error
    finally:
        sys.path.remove(folder)
    if not hasattr(module, name):
        raise HeadscopeError(
            f"the module {module_name!r} ({module.__file__}) has no {name!r}; name a reducer that it defines."
        )
    return getattr(module, name)


def _check_kind(kind: type, shown: str) -> type[Reducer]:
    """Return the class if it is a complete reducer; else raise an error."""
    if not issubclass(kind, Reducer):
        raise HeadscopeError(
            f"{shown} is not a reducer: it does not inherit from `headscope.reducers.Reducer`; "
            "write it as in `class Mine(Reducer)`."
        )
    declared = [name for name in Reducer.__annotations__ if not hasattr(kind, name)]
    functions = [name for name in vars(Reducer) if name in kind.__abstractmethods__]
    if missing := [*declared, *functions]:
        raise HeadscopeError(
            f"{shown} is not a reducer: it has no {', '.join(missing)}; see `headscope.reducers.Reducer`."
        )
    return kind


def _checked(reducer: Any, shown: str) -> Reducer:
    """Return the object if it is a reducer with consistent declarations; else raise an error."""
    if isinstance(reducer, type):
        raise HeadscopeError(
            f"{shown} is not a reducer: it is a class and not an object; see `headscope.reducers.Reducer`."
        )
    _check_kind(type(reducer), shown)
    for what, allowed in CHOICES.items():
        if getattr(reducer, what) not in allowed:
            raise HeadscopeError(
                f"the reducer `{reducer.name}` declares {what} = {getattr(reducer, what)!r}; it can be one of "
                f"{', '.join(map(repr, allowed))}."
            )
    if reducer.scope == "gradient" and reducer.models == 2:
        raise HeadscopeError(
            f"the reducer `{reducer.name}` compares two models by gradients, which are found of one model; declare "
            "models = 1."
        )
    if reducer.scope == "pass" and reducer.max_tokens is None:
        raise HeadscopeError(
            f"the reducer `{reducer.name}` holds all layers of a text at once and sets no limit to its length; "
            "declare max_tokens, such as 512."
        )
    checked: Reducer = reducer
    return checked
