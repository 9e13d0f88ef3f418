"""The difference between two tables of the same texts, head by head: `difference`.

table, table --`compare_tables`, paired by fold--> difference, interval, p-values, verdict --> data frame, page
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
import xarray as xr

from headscope.analyse.comparable import check_items_alike, check_measured_alike, have_same_weights, name_table
from headscope.analyse.paired import METHOD, NOT_TESTED, compare_score
from headscope.analyse.rank import PLACE
from headscope.errors import TableError, list_some, suggest
from headscope.first_guesses import explained
from headscope.heads import EDITED, require_table
from headscope.identity import DIFFERS_IN, name_differences
from headscope.score import HEAD, Score, read_scores

_TEXTS = ("row", "attention_type", "direction")
"""The columns with labels, which are empty for a score without such a dimension."""

_NUMBERS = (
    "a", "b", "difference", "difference_lower", "difference_upper", "count", "clusters", "p", "p_corrected", "verdict",
)  # fmt: skip


@explained
def difference(a: xr.Dataset, b: xr.Dataset, scores: str | Iterable[str] | None = None) -> pd.DataFrame:
    """Return the difference of each head between two tables of the same texts, with intervals, p-values and verdicts.

    >>> model = headscope.load("minilm")
    >>> before = headscope.measure(model, "grammar:211", "relations")
    >>> with headscope.disable(model, "1-3"):
    ...     after = headscope.measure(model, "grammar:211", "relations")
    >>> frame = headscope.difference(before, after)

    The tables come from a model before and after an edit, or from two models of one shape, such as a model with and
    without an adapter. If a score has sums by fold, its difference is paired: variation that both tables share in a
    fold cancels. The p-value is corrected for all heads, directions and rows of the score: if nothing differs, at most
    one score in twenty has a head with the verdict higher or lower. Other variables, such as ``entropy`` and
    ``mass_cls``, have no sums by fold; the frame has only their difference.

    Args:
        a: A head table, as `headscope.measure` or `headscope.read_table` returns it.
        b: A table of the same texts, heads and options.
        scores: The scores or variables to compare, such as ``relation_accuracy`` or ``["entropy"]``. By default, all
            scores that both tables have, and all variables with a value for each head.

    Returns:
        A row for each score, label of its rows and head: ``score``, ``row``, the place of the head (``attention_type``,
        ``layer``, ``head``, ``direction``), ``a`` and ``b`` (the score in each table), ``difference`` (``b`` less
        ``a``) with the ends of its 95 % interval, ``count`` (items), ``clusters`` (folds with items), ``p``,
        ``p_corrected``, and ``verdict``: ``higher`` or ``lower`` in ``b``, ``not shown to differ``, ``cannot decide``
        (on too few texts), or ``not tested`` (without sums by fold). Its ``attrs`` say how the models differ
        (``differs_in``), within which edits each table was measured (``edited``), and how the verdicts are reached
        (``method``).

    Raises:
        TableError: an argument is not a head table, or is a table of runs; the tables have different texts, heads,
            items or views; or a table lacks a score that `scores` names.
    """
    return make_frame(compare_tables(a, b, scores), a, b)


def compare_tables(a: xr.Dataset, b: xr.Dataset, scores: str | Iterable[str] | None = None) -> dict[str, xr.Dataset]:
    """Return the difference of each variable between two tables (`headscope.analyse.paired.compare_score`).

    The dataset of a variable without sums by fold has NaN in place of intervals, counts and p-values.

    Args:
        a: As in `difference`.
        b: As in `difference`.
        scores: As in `difference`.

    Raises:
        TableError: as in `difference`.
    """
    for table in (a, b):
        require_table(table)
    names = name_table(a, "the first table"), name_table(b, "the second table")
    for table, name in zip((a, b), names, strict=True):
        _check_table(table, name)
    check_measured_alike(a, names[0], b, names[1])
    ratios = {score.variable: score for score in read_scores(a) if _is_paired(score, a, b)}
    same = have_same_weights(a, b, [*ratios.values()])
    compared = {}
    for variable in _choose_variables(a, b, scores, names):
        aligned = _align(a, b, variable, names)
        if variable in ratios:
            check_items_alike(a, names[0], aligned, names[1], ratios[variable])
            compared[variable] = compare_score(a, aligned, ratios[variable], same=same)
        else:
            compared[variable] = _compare_values(a[variable], aligned[variable])
    return compared


def make_frame(compared: Mapping[str, xr.Dataset], a: xr.Dataset, b: xr.Dataset) -> pd.DataFrame:
    """Convert the result of `compare_tables(a, b)` to the data frame of `difference`."""
    frames = [_list_heads(each, variable) for variable, each in compared.items()]
    texts = [each for each in _TEXTS if any(each in frame for frame in frames)]
    frame = pd.concat([frame.assign(**{each: _list_texts(frame, each) for each in texts}) for frame in frames])
    frame = frame[[each for each in ("score", "row", *HEAD, *_NUMBERS) if each in frame]].reset_index(drop=True)
    edits = {table: each.attrs[EDITED] for table, each in (("a", a), ("b", b)) if EDITED in each.attrs}
    frame.attrs = {DIFFERS_IN: name_differences(a.attrs, b.attrs), EDITED: edits, "method": METHOD}
    return frame


def _check_table(table: xr.Dataset, name: str) -> None:
    """Raise an error for a table of runs, or a table that does not identify its heads, texts and weights.

    Raises:
        TableError: the table lacks layers, heads or attributes, or has the dimension ``run``.
    """
    if missing := [dim for dim in ("layer", "head") if dim not in table.dims or dim not in table.coords]:
        raise TableError(f"{name} has no dimension {missing[0]!r} with labels; every head table has layers and heads.")
    if missing := [each for each in ("corpus_sha256", "documents", "weights_sha256") if each not in table.attrs]:
        raise TableError(
            f"{name} does not say of which texts and weights it is: it lacks {', '.join(missing)}; give the table that "
            "was measured, with its attributes."
        )
    if "run" in table.dims:
        raise TableError(
            f"{name} holds {table.sizes['run']} runs, which have no heads in common; choose one, as in "
            "table.isel(run=0)."
        )


def _choose_variables(
    a: xr.Dataset, b: xr.Dataset, scores: str | Iterable[str] | None, names: Sequence[str]
) -> list[str]:
    """Return the variables that `scores` names or, by default, all variables of heads that both tables have.

    Raises:
        TableError: `scores` is empty, a table lacks a variable that `scores` names, or the tables share no variable.
    """
    known = _list_variables(a)
    if scores is None:
        shared = [variable for variable in known if variable in b]
        if not shared:
            raise TableError(f"{names[0]} and {names[1]} have no score in common; measure the same in both.")
        return shared
    chosen = [scores] if isinstance(scores, str) or not isinstance(scores, Iterable) else [*scores]
    if not chosen:
        raise TableError("no score was named; name one or more, or leave `scores` out to compare all.")
    for variable in chosen:
        for table, name in zip((a, b), names, strict=True):
            if not isinstance(variable, str) or variable not in table or not _is_of_heads(table[variable]):
                raise TableError(
                    f"{name} has no score or variable of heads {variable!r}{suggest(str(variable), known)}; "
                    f"{names[0]} has {list_some(known) or 'none'}."
                )
    return list(dict.fromkeys(chosen))


def _list_variables(table: xr.Dataset) -> list[str]:
    """Return the scores of a table, and the variables with a value for each head that do not belong to a score."""
    scores = read_scores(table)
    variables = [score.variable for score in scores if _is_of_heads(table[score.variable])]
    stems = tuple(f"{score.stem}_" for score in scores if score.is_ratio)
    others = [str(name) for name, values in table.data_vars.items() if {*values.dims} - {PLACE[0]} == {*PLACE[1:]}]
    variables += [name for name in others if _is_of_heads(table[name]) and not name.startswith(stems)]
    return list(dict.fromkeys(variables))


def _is_of_heads(values: xr.DataArray) -> bool:
    """Return True if a variable has numbers of heads, and at most one dimension besides `HEAD`, with labels."""
    rows = {*values.dims} - {*HEAD}
    is_number = values.dtype.kind in "iufb" and "names" not in values.attrs  # numbers with names are labels
    return is_number and {"layer", "head"} <= {*values.dims} and len(rows) <= 1 and rows <= {*values.coords}


def can_pair(a: xr.Dataset, b: xr.Dataset, variable: str) -> bool:
    """Return True if a variable is a score and both tables have its sums by fold."""
    return any(score.variable == variable and _is_paired(score, a, b) for score in read_scores(a))


def _is_paired(score: Score, *tables: xr.Dataset) -> bool:
    """Return True if each table has the sums by fold of a score."""
    return score.is_ratio and all({*score.numerator, *score.denominator} <= {*table} for table in tables)


def _align(a: xr.Dataset, b: xr.Dataset, variable: str, names: Sequence[str]) -> xr.Dataset:
    """Return the second table with the rows of a variable in the order of the first table.

    Raises:
        TableError: the variable has other dimensions or labels in the second table.
    """
    here, there = a[variable], b[variable]
    if {*here.dims} != {*there.dims}:
        raise TableError(
            f"{variable!r} of {names[1]} has the dimensions {', '.join(map(str, there.dims))}, and that of {names[0]} "
            f"has {', '.join(map(str, here.dims))}; measure both with the same options."
        )
    for dim in here.dims:
        if {*here[dim].values.tolist()} != {*there[dim].values.tolist()}:
            raise TableError(
                f"{variable!r} of {names[1]} has other labels along {dim} than that of {names[0]}; measure both with "
                "the same options."
            )
    return b.sel({dim: a[dim].values for dim in here.dims})


def _compare_values(first: xr.DataArray, second: xr.DataArray) -> xr.Dataset:
    """Return the difference of a variable without sums by fold, which is not tested."""
    second = second.transpose(*first.dims)
    before, after = (values.reset_coords(drop=True).astype(float) for values in (first, second))
    unknown = xr.full_like(before, np.nan)
    untested = {name: unknown for name in _NUMBERS if name not in {"a", "b", "difference", "verdict"}}
    verdict = xr.full_like(before, NOT_TESTED, dtype=object)
    return xr.Dataset({"a": before, "b": after, "difference": after - before, **untested, "verdict": verdict})


def _list_heads(compared: xr.Dataset, variable: str) -> pd.DataFrame:
    """Return a data frame of each head, direction and row of a score that has a value in at least one of the tables."""
    rows = [dim for dim in compared.dims if dim not in HEAD]
    order = [*rows, *(dim for dim in HEAD if dim in compared.dims)]
    frame = compared.to_dataframe(dim_order=order).reset_index().dropna(how="all", subset=["a", "b"])
    return frame.rename(columns=dict.fromkeys(rows, "row")).assign(score=variable)


def _list_texts(frame: pd.DataFrame, column: str) -> list[str]:
    """Return the labels in a column of a frame, or empty labels if the frame lacks the column."""
    return [*map(str, frame[column])] if column in frame else [""] * len(frame)
