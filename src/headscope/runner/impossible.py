"""Checks for impossible sums in the file of a run; an error names the file and the sum.

The checks follow from declarations: sums that need no attention are counts; a score is a ratio of sums by fold, with no
more hits than items if its unit is a share; and the unit of a variable limits its values.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import xarray as xr

from headscope.capture.model.shape import Shape
from headscope.corpora.summary import CorpusSummary
from headscope.errors import HeadscopeError, first_line
from headscope.reducers import REDUCERS
from headscope.reducers.reducer import Reducer
from headscope.runner.checkpoint import ALL_LAYERS, COUNTED, Key, RunSums, describe_key
from headscope.runner.row_sample import DEVIATION
from headscope.score import Rival, Score, add_up

ROUNDING = 1e-4
"""The tolerance at a bound, since weights are in float32: an absolute number, and also a share of the bound."""

SHARE = "share of "
"""The beginning of a unit whose values lie from 0 to 1."""

BOUNDS: Mapping[str, tuple[float, float]] = {
    "probability": (0, 1), "cosine": (-1, 1), "nats": (0, np.inf), "tokens": (0, np.inf), "sum of weights": (0, np.inf),
    "multiple of the output's length": (0, np.inf),
}  # fmt: skip
"""The lowest and the highest value of the variables of built-in reducers, by units other than shares."""


def refuse_impossible_numbers(done: RunSums, name: str, advice: str) -> None:
    """Raise an error if a sum is not a number, is not finite, or is a count below 0; name the sum and its file.

    A reducer may have no value for a head: then all sums of the head are NaN. The whole numbers that a user's own
    reducer computes from attention may be below 0.
    """
    for key, values in done.values.items():
        if fault := _find_fault(key, values):
            raise HeadscopeError(f"{name} holds a sum that cannot be: {describe_key(key)} {fault}; {advice}.")


def _find_fault(key: Key, values: np.ndarray) -> str:
    """Return a phrase for the fault of a sum; empty if the sum is possible."""
    of_run, needs_no_attention = len(key) == 2, len(key) == 4 and key[2] == COUNTED
    if not of_run and len(key) != 4:
        return "belongs to no reducer"
    if values.dtype.kind not in ("i" if of_run else "if"):
        return f"is of type {values.dtype}, and {'a whole number was' if of_run else 'numbers were'} expected"
    if values.dtype.kind == "i":
        is_count = of_run or needs_no_attention or key[0] in REDUCERS
        return f"is {values.min()}, and a count is 0 or more" if is_count and (values < 0).any() else ""
    if np.isinf(values).any():
        return "is infinite"
    missing = np.isnan(values)
    if not missing.any():
        return ""
    if not needs_no_attention:
        heads = np.prod(values.shape[: 2 if key[2] == ALL_LAYERS else 1], dtype=int)
        by_head = missing.reshape(heads, -1)
        if by_head.shape[1] > 1 and np.array_equal(by_head.all(1), by_head.any(1)):
            return ""
    return "is NaN"


def refuse_impossible_values(
    done: RunSums, shape: Shape, reducers: Sequence[Reducer], summary: CorpusSummary, name: str, advice: str
) -> None:
    """Raise an error if sums count more items than their corpus has, or lead to a value outside of its unit's limits.

    Estimates from a sample of rows may miss a limit, so their values are not checked. The sums may be of a part of the
    corpus; the summary is of the whole. Sums from which a built-in reducer cannot make its result are refused too.
    """
    seen = done.select_run("seen")
    limits = {"portions": summary.documents, "documents": summary.documents}
    limits |= {"words": summary.words, "units": summary.words}
    limits |= {"unknown": seen.get("tokens", 0), "repeated": seen.get("documents", 0)}
    limits |= dict.fromkeys(("without_text", "given"), seen.get("documents", 0))
    for what, limit in limits.items():
        if seen.get(what, 0) > limit:
            raise HeadscopeError(
                f"{name} holds a sum that cannot be: seen {what} is {seen[what]:,}, and there are {limit:,}; {advice}."
            )
    if not seen.get("documents") or any(key[-1].endswith(DEVIATION) for key in done.values):
        return
    for reducer in reducers:
        for attention_type, layers in shape.attention_layers.items():
            try:
                sums = done.collect_layers(reducer.name, attention_type, layers)
                table = reducer.result(sums, done.select_counts(reducer.name, attention_type))
            except Exception as error:
                # A part of a corpus may be too small for a result, and a user's code may raise any error for that.
                if isinstance(error, HeadscopeError) or reducer.name not in REDUCERS:
                    continue
                raise HeadscopeError(
                    f"{name} does not hold what the reducer `{reducer.name}` adds up ({first_line(error)}); {advice}."
                ) from error
            for variable, fault in _find_impossible(table, reducer):
                raise HeadscopeError(f"{name} holds sums that cannot be: by them {variable} {fault}; {advice}.")


def _find_impossible(table: xr.Dataset, reducer: Reducer) -> Iterator[tuple[str, str]]:
    """Yield pairs of the name of an impossible variable or sum of a table, and the reason."""
    for score in reducer.scores:
        if score.is_ratio and score.variable in table and _get_unit(table[score.variable]).startswith(SHARE):
            ratios: list[Score | Rival] = [score, *(rival for rival in score.rivals if rival.applies(table))]
            for ratio in ratios:
                yield from _find_excess(table, ratio, score.items)
    if reducer.name not in REDUCERS:
        return
    for name, values in table.data_vars.items():
        unit = _get_unit(values)
        low, high = (0.0, 1.0) if unit.startswith(SHARE) else BOUNDS.get(unit, (-np.inf, np.inf))
        outside = ((values < low - ROUNDING) | (values > high + ROUNDING)).values
        if outside.any():
            yield str(name), f"is {values.values[outside][0]:.6g}, and it is a {unit}"


def _find_excess(table: xr.Dataset, ratio: Score | Rival, items: str) -> Iterator[tuple[str, str]]:
    """Yield the names of the sums of a share, and the reason, if a fold has more hits than items or hits below 0."""
    hits, total = xr.broadcast(add_up(table, ratio.numerator), add_up(table, ratio.denominator))
    outside = ((hits < -ROUNDING) | (hits > total * (1 + ROUNDING) + ROUNDING)).values
    if outside.any():
        numbers = [f"{values.values[outside][0]:.6g}" for values in (hits, total)]
        yield " + ".join(ratio.numerator), f"is {numbers[0]} in a fold with {numbers[1]} {items}"


def _get_unit(values: xr.DataArray) -> str:
    return str(values.attrs.get("units", ""))
