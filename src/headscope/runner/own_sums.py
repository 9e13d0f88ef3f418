"""Checks of the results of a user's own reducer, before they are added up.

An error names the reducer, its function, the wrong result and the expected result.
"""

import inspect
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from headscope.errors import HeadscopeError, first_line, list_some
from headscope.reducers import REDUCERS
from headscope.reducers.reducer import Reducer, Sums

COUNT, OBSERVE, RESULT = "count", "observe", "result"
LEADING = ("layer", "head")
"""The first dimensions of the values of heads."""


def is_own(reducer: Reducer) -> bool:
    """Return True if a reducer is not an object of a built-in class."""
    return type(reducer) is not REDUCERS.get(reducer.name)


def call_count(reducer: Reducer, facts: Any) -> Sums:
    """Call `count` of a reducer and return its sums; the sums of your own reducer are checked.

    Raises:
        HeadscopeError: The result is not a mapping of sums.
    """
    if not is_own(reducer):
        return reducer.count(facts)
    return _check_sums(reducer, COUNT, _call(reducer, COUNT, reducer.count, facts))


def call_observe(reducer: Reducer, facts: Any, *attentions: Any, layers: int, heads: int) -> Sums:
    """Call `observe` of a reducer and return its sums; the sums of your own reducer are checked.

    Args:
        reducer: The reducer.
        facts: The result of `prepare`.
        attentions: The attention of one or two models, or the gradient of a layer.
        layers: The number of layers of the model.
        heads: The number of heads of a layer.

    Raises:
        HeadscopeError: The result is not a mapping of sums, or a sum does not begin with the axes of these heads.
    """
    if not is_own(reducer):
        return reducer.observe(facts, *attentions)
    sums = _check_sums(reducer, OBSERVE, _call(reducer, OBSERVE, reducer.observe, facts, *attentions))
    sizes = {"layer": layers, "head": heads} if reducer.scope == "pass" else {"head": heads}
    wanted = " and ".join(f"{size} {name}s" for name, size in sizes.items())
    for name, value in sums.items():
        if tuple(value.shape[: len(sizes)]) != tuple(sizes.values()):
            axes = "axis must be" if len(sizes) == 1 else "axes must be"
            raise HeadscopeError(
                f"{_name(reducer, OBSERVE)} gives the sum {name!r} with the shape {tuple(value.shape)}, and the first "
                f"{axes} the {wanted} of the model; put {'that' if len(sizes) == 1 else 'these'} first."
            )
    return sums


def check_growth(reducers: Mapping[str, Reducer], sums: Mapping[Any, Tensor], batch: Mapping[Any, Tensor]) -> None:
    """Raise an error if a sum of your own reducer changes its shape between batches.

    Args:
        reducers: The reducers by name.
        sums: The sums of the earlier batches.
        batch: The sums of the next batch.

    Raises:
        HeadscopeError: A sum has another shape than in the earlier batches.
    """
    for key, value in batch.items():
        reducer = reducers.get(key[0])
        if reducer is None or not is_own(reducer) or key not in sums or sums[key].shape == value.shape:
            continue
        raise HeadscopeError(
            f"the reducer `{reducer.name}` gives the sum {key[-1]!r} with the shape {tuple(value.shape)}, and gave it "
            f"with {tuple(sums[key].shape)} for another batch; give one shape for every batch."
        )


def call_result(reducer: Reducer, sums: Mapping[str, np.ndarray], counts: Mapping[str, np.ndarray]) -> xr.Dataset:
    """Call `result` of a reducer and return its table; the table of your own reducer is checked.

    Raises:
        HeadscopeError: The function ends in an error, or its result is not a dataset with the scores and the dimensions
            of heads.
    """
    if not is_own(reducer):
        return reducer.result(sums, counts)
    try:
        table: object = reducer.result(sums, counts)
    except HeadscopeError:
        raise
    except Exception as error:  # the code of a user may say so in any way
        shapes = ", ".join(f"{name} {value.shape}" for name, value in {**sums, **counts}.items())
        reason = f"{type(error).__name__} ({first_line(error)}){_find_line(error, reducer)}"
        raise HeadscopeError(
            f"{_name(reducer, RESULT)} ended with {reason}; it was given the sums {shapes}, and layer and head are the "
            "first axes of those of `observe`."
        ) from None
    if not isinstance(table, xr.Dataset):
        raise HeadscopeError(
            f"{_name(reducer, RESULT)} gives a {_spell_kind(table)}; give an xarray.Dataset, as "
            "`headscope.reducers.score_table` does."
        )
    for score in (
        () if isinstance(reducer, (*REDUCERS.values(),)) else reducer.scores
    ):  # whose scores depend on settings
        if score.variable not in table:
            names = list_some([str(name) for name in table.data_vars]) or "nothing"
            raise HeadscopeError(
                f"{_name(reducer, RESULT)} gives {names}, and its scores name {score.variable}; give that too."
            )
    dims = {str(name): tuple(map(str, values.dims)) for name, values in table.data_vars.items()}
    scored = [score.variable for score in reducer.scores if score.variable in table]
    by_head = any({*LEADING} <= {*each} for each in dims.values())
    for name in scored or ([] if by_head else dims):
        if dims[name][:2] != LEADING:
            raise HeadscopeError(
                f"{_name(reducer, RESULT)} gives {name} with the dimensions {', '.join(dims[name]) or 'none'}; those "
                f"of a value of heads are {', '.join(LEADING)}, and others behind them."
            )
    return table


def _call(reducer: Reducer, function: str, method: Callable[..., object], *arguments: Any) -> object:
    """Call a function of a reducer and return its result; raise an error if it does not take these arguments."""
    try:
        inspect.signature(method).bind(*arguments)
    except TypeError:
        wanted = "facts, attention" if len(arguments) == 2 else "facts, *attentions"
        shown = "facts" if function == COUNT else wanted
        raise HeadscopeError(
            f"{_name(reducer, function)} takes {inspect.signature(method)}, and is called with {len(arguments)} "
            f"argument{'s' if len(arguments) > 1 else ''}; write `def {function}(self, {shown})`."
        ) from None
    return method(*arguments)


def _check_sums(reducer: Reducer, function: str, sums: object) -> Sums:
    """Return the sums if they are named tensors of whole numbers or float64, which are added without loss.

    Raises:
        HeadscopeError: The sums are anything else.
    """
    if not isinstance(sums, Mapping):
        raise HeadscopeError(
            f'{_name(reducer, function)} gives a {_spell_kind(sums)}; give tensors by name, such as {{"hits": tensor}}.'
        )
    for name, value in sums.items():
        if not isinstance(name, str):
            raise HeadscopeError(f"{_name(reducer, function)} names a sum {name!r}; give it a text as its name.")
        kind = _spell_kind(value)
        if isinstance(value, Tensor):
            is_whole = not (value.is_floating_point() or value.is_complex() or value.dtype == torch.bool)
            if is_whole or value.dtype == torch.float64:
                continue
            kind = f"tensor of {str(value.dtype).removeprefix('torch.')}"
        raise HeadscopeError(
            f"{_name(reducer, function)} gives the sum {name!r} as a {kind}; give a tensor of whole numbers or of "
            "float64, which add up without loss."
        )
    return dict(sums)


def _name(reducer: Reducer, function: str) -> str:
    return f"`{function}` of the reducer `{reducer.name}`"


def _spell_kind(value: object) -> str:
    """Return the name of the type of a value with its package, such as ``numpy.ndarray``."""
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__.partition('.')[0]}.{kind.__name__}"


def _find_line(error: Exception, reducer: Reducer) -> str:
    """Return the line of the reducer's file that raised an error, as part of a sentence; empty if none did."""
    file = type(reducer).result.__code__.co_filename
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return f", in line {lines[-1]} of {file}" if lines else ""
