"""The best heads of a relation, or of any variable with a value for each head, as a data frame.

heads --rank on one half of the texts--> order --score on the other--> held-out scores, lifts over rivals, verdicts
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from headscope.analyse.rank import PLACE
from headscope.analyse.report import DOES_NOT, NOT_YET, STANDS_OUT, UNDECIDED, add_report
from headscope.analyse.rivals import UNTRAINED
from headscope.analyse.significance import add_significance
from headscope.analyse.uncertainty import ALPHA
from headscope.errors import TableError, list_some, suggest
from headscope.first_guesses import explained
from headscope.heads import require_table
from headscope.score import HEAD, Score, read_scores, write_scores
from headscope.view.reports import Reported, read_report, row_key


class Row(NamedTuple):
    """A row of a score, or a score without rows, by which heads are ranked.

    Attributes:
        score: The score of the row.
        place: The label of the row by dimension; empty for a score without rows.
    """

    score: Score
    place: Mapping[str, str]


@explained
def top_heads(table: xr.Dataset, name: str, n: int = 5) -> pd.DataFrame:
    """Return the best heads of a relation, with their rivals and their scores on texts where they were not chosen.

    >>> table = headscope.measure("minilm", "grammar:211", "relations")
    >>> frame = headscope.top_heads(table, "obj", n=3)
    >>> frame[["layer", "head", "heldout_accuracy", "heldout_lower", "heldout_upper", "lift_rival", "verdict"]]

    The heads are ranked on one half of the texts and scored on the other half, so that the choice does not flatter the
    first heads. The first row has the reported head and its numbers. The verdicts follow the ranking: a head stands out
    only if all heads above it do, and its p-value is corrected for all rows of the score (Bonferroni; a fixed sequence
    of tests, Maurer et al. 1995). Of an untrained model, the table has only the best head. The heads after the first
    must beat it beyond both intervals.

    Args:
        table: A head table, as `headscope.measure` or `headscope.read_table` returns it.
        name: A relation, or another row of a score (``obj``, or ``relation:obj`` if several scores have a row of this
            name); a score without rows (``scope``); or a variable with a value for each head, such as ``mass_cls``.
        n: The number of heads.

    Returns:
        A row for each head, counted from 1: its place (``layer``, ``head``, ``direction``, ``attention_type``), its
        score on all texts, its score on the other half (``heldout_accuracy`` with ``heldout_lower``, ``heldout_upper``
        and ``heldout_count``), the lift over its strongest rival with its interval, that rival (``lift_rival``) and its
        score, the score of the untrained model if there is one, the p-value of the verdict, and the verdict. There is
        no row if the items are too few to report a head. A variable, or a score by which no head is chosen, has only
        its value, and its interval if there is one.

    Raises:
        TableError: the table has no such relation, score or variable, several have this name, or the table is a table
            of runs.
    """
    require_table(table)
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise TableError(f"{n!r} heads were asked for; ask for 1 or more.")
    if "run" in table.dims:
        raise TableError(
            f"the head table holds {table.sizes['run']} runs, which have no heads in common; choose one, as in "
            "table.isel(run=0)."
        )
    row = _find_row(table, name)
    if row is None:
        frame = _rank_values(table, name, {}, n)
    elif row.score.has_report:
        frame = pd.DataFrame(list(_list_held_out(table, row, n)), columns=_name_columns(table, row.score))
    else:
        frame = _rank_values(table, row.score.variable, row.place, n, ascending=row.score.ascending)
    return frame.set_axis(pd.RangeIndex(1, len(frame) + 1, name="rank"))


def _find_row(table: xr.Dataset, name: str) -> Row | None:
    """Return the row of a score that has this name, or None for a variable with a value for each head.

    Raises:
        TableError: nothing has this name, several rows have it, or it names a score whose rows have values of their
            own.
    """
    rows: dict[str, Row] = {}
    for score in read_scores(table):
        rows |= {row_key(score, place): Row(score, place) for place in score.places(table)}
    whole = {key for key, row in rows.items() if name in (key, row.score.variable) and not row.place}
    chosen = whole or {key for key, row in rows.items() if name == key or name in row.place.values()}
    if len(chosen) > 1:
        raise TableError(f"{name!r} is a row of several scores; name one of {', '.join(sorted(chosen))}.")
    if chosen:
        return rows[chosen.pop()]
    by_head = [str(each) for each, values in table.data_vars.items() if {*values.dims} - {PLACE[0]} == {*PLACE[1:]}]
    if name in by_head:
        return None
    labels = list(dict.fromkeys(label for row in rows.values() for label in row.place.values()))
    alone = [row.score.variable for row in rows.values() if not row.place]
    known = [*labels, *alone, *by_head]
    of_score = [label for row in rows.values() if name in (row.score.variable, row.score.stem, row.score.rows)
                for label in row.place.values()]  # fmt: skip
    if of_score:
        raise TableError(f"{name!r} has a value for each of its rows; name one of these: {list_some(of_score)}.")
    raise TableError(
        f"the head table has no relation, score or variable of heads {name!r}{suggest(str(name), known)}; it has "
        f"{list_some(known) or 'none'}."
    )


def _rank_values(
    table: xr.Dataset, variable: str, place: Mapping[str, str], n: int, *, ascending: bool = False
) -> pd.DataFrame:
    """Return the heads with the largest values of a variable (the lowest if `ascending`), in their better direction."""
    ends = [each for each in (f"{variable}_lower", f"{variable}_upper") if each in table]
    values = table[[variable, *ends]].sel(place).reset_coords(drop=True)
    dims = [dim for dim in HEAD if dim in values[variable].dims]
    frame = values.to_dataframe(dim_order=dims).reset_index().dropna(subset=variable)
    frame = frame.sort_values(variable, ascending=ascending, kind="stable")
    heads = [dim for dim in dims if dim in PLACE]
    return frame.drop_duplicates(heads)[[*dims, variable, *ends]].head(n)


def _name_columns(table: xr.Dataset, score: Score) -> list[str]:
    """Return the names of the columns for the best heads of a row of a score."""
    place = [dim for dim in HEAD if dim in table[score.variable].dims]
    held_out = [f"heldout_{score.measure}", "heldout_lower", "heldout_upper", "heldout_count"]
    lift = ["lift", "lift_lower", "lift_upper", "lift_rival", f"rival_{score.measure}"]
    untrained = f"{UNTRAINED}_{score.measure}"
    known = [untrained] if f"{score.report_prefix}{untrained}" in table else []
    return [*place, score.variable, *held_out, *lift, *known, "verdict_p", "verdict"]


def _list_held_out(table: xr.Dataset, row: Row, n: int) -> Iterator[dict[str, Any]]:
    """Yield the `n` best heads for a row of a score, ranked on one half of the texts and scored on the other half."""
    score, place = row
    if f"{score.report_prefix}reported_verdict" not in table:
        table = add_report(add_significance(table))
    first, count = _read_row(table, score, place)
    every = table[score.variable].sel(place)
    untrained = next((rival.score for rival in first.rivals if rival.name == UNTRAINED), None)
    rest = _select_row(table, row)
    heads = int(every.notnull().any([dim for dim in every.dims if dim not in PLACE]).sum())
    head, p, verdict = first, first.p, first.verdict
    for rank in range(min(n, heads) if first.layer else 0):
        if rank:
            rest = _leave_out(rest, score, head)
            head, _ = _read_row(add_report(rest), score, place)
            p = max(p, min(1.0, count * head.p))
            beats = head.verdict == STANDS_OUT and p < ALPHA and (not untrained or head.score.lower > untrained.upper)
            verdict = _judge(verdict, head.verdict, beats=beats)
        where = {dim: getattr(head, dim) for dim in HEAD if dim in every.dims}
        rival = head.strongest_rival
        yield where | {
            score.variable: float(every.sel(where)),
            f"heldout_{score.measure}": head.score.value,
            "heldout_lower": head.score.lower,
            "heldout_upper": head.score.upper,
            "heldout_count": head.scored,
            "lift": head.lift.value,
            "lift_lower": head.lift.lower,
            "lift_upper": head.lift.upper,
            "lift_rival": rival.label if rival else "",
            f"rival_{score.measure}": rival.score.value if rival else math.nan,
            f"{UNTRAINED}_{score.measure}": untrained.value if untrained else math.nan,
            "verdict_p": p,
            "verdict": verdict,
        }


def _judge(before: str, own: str, *, beats: bool) -> str:
    """Return the verdict on a head, which is never better than the verdict on the head before it in the ranking.

    Args:
        before: The verdict on the head before it.
        own: The verdict on the head alone.
        beats: True if the head surely beats its rivals and the untrained model.
    """
    if UNDECIDED in (before, own):
        return UNDECIDED
    return before if beats and before in (STANDS_OUT, NOT_YET) else DOES_NOT


def _read_row(table: xr.Dataset, score: Score, place: Mapping[str, str]) -> tuple[Reported, int]:
    """Return a row from the report of a score, and the number of rows that have a p-value."""
    report = read_report(table, score)
    assert report is not None
    key = row_key(score, place)
    return next(row for row in report.rows if row.key == key), sum(not math.isnan(row.p) for row in report.rows)


def _select_row(table: xr.Dataset, row: Row) -> xr.Dataset:
    """Return a table with only the sums and values of one row of a score, without the report of the score."""
    score, place = row
    names = {*score.numerator, *score.denominator, *(
        name for rival in score.rivals for name in (*rival.numerator, *rival.denominator)
    )}  # fmt: skip
    names |= {score.variable, *(f"{score.stem}_{end}" for end in ("count", "permuted", "p_corrected", "z_permuted"))}
    part = table[[str(name) for name in table.data_vars if name in names]]
    return part.sel({dim: [label] for dim, label in place.items()}).assign_attrs(scores=write_scores([score]))


def _leave_out(table: xr.Dataset, score: Score, head: Reported) -> xr.Dataset:
    """Return the table with NaN for the sums of a head in all directions, so that another head is chosen."""
    place = {dim: getattr(head, dim) for dim in PLACE if dim in table[score.numerator[0]].dims}
    others = xr.ones_like(table[score.numerator[0]].isel(fold=0, drop=True), dtype=bool)
    others.loc[place] = False
    return table.assign({name: table[name].where(others) for name in score.numerator})
