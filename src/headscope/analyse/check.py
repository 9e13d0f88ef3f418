"""Check reported heads in another model: the change of each head's score, on the texts on which the head was scored."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from headscope import heads
from headscope.analyse import student
from headscope.analyse.comparable import check_items_alike, check_measured_alike, have_same_weights, name_table
from headscope.analyse.folding import find_folded
from headscope.analyse.paired import measure_change
from headscope.analyse.report import CLUSTERS, SCORED, STANDS_OUT, UNDECIDED, has_few_texts, locate_reported
from headscope.analyse.rivals import SOURCE
from headscope.analyse.significance import BENJAMINI, false_discoveries
from headscope.analyse.uncertainty import ALPHA, Ratio
from headscope.errors import TableError
from headscope.score import HEAD, Score, read_scores

KEPT, LOST = "kept", "lost"
"""Two of the verdicts on a head; the third is `UNDECIDED`."""

TOLERANCE = 0.05
"""The largest decrease of a score that does not count as a loss."""

ROW = "row"
"""The dimension of the checked rows: each is a reported head with the row of a score."""

METHOD = (
    "Each head was chosen on the even folds of the corpus, in the old model; here it is scored on the odd ones, in "
    "both models. The change is new less old, on the same items, with a paired 95 % interval clustered by fold, whose "
    "half is at least t^2 / (n + t^2) for n items (t: Student's quantile) unless the weights are the same. "
    "Kept: the interval lies above −{tolerance:g}. Lost: it lies below, and q, the false discovery rate of losses "
    "among {rows} heads (Benjamini and Hochberg 1995), is below {level:g}. Otherwise, and on fewer than {clusters} "
    "texts: cannot decide."
)
"""A description of how the verdicts are found; stored with them."""


def check_heads(old: xr.Dataset, new: xr.Dataset, *, tolerance: float = TOLERANCE, every: bool = False) -> xr.Dataset:
    """Judge for each reported head of a table whether another model keeps or loses it.

    A loss is a change below ``-tolerance``. *Lost* is claimed of one head among many. So its one-sided p-value (of a
    true change that is no loss) is corrected over all checked heads, by Benjamini and Hochberg's false discovery rate.
    The allowed rate is 0.025; for a single head, this is one end of the interval. *Kept* is claimed of all heads
    together, and each must show it: such an intersection-union test has its level without a correction (Berger 1982),
    so here the interval alone decides.

    Heads were chosen by the old model, on the even folds; both models are scored on the odd folds. The interval comes
    from `headscope.analyse.paired.measure_change`. Rows that repeat another row are not checked.

    Args:
        old: A head table with reported heads (`headscope.analyse.add_report`) and the sums by fold of their scores.
        new: The head table of another model of the same shape, on the same corpus, with the same sums. Its own reports
            are ignored.
        tolerance: The largest decrease that does not count as a loss, a share of at least 0.
        every: Check all reported heads, not only heads that stand out.

    Returns:
        A dataset over `ROW`, with the coordinates ``score`` (variable), ``label``, ``attention_type`` (if the table has
        several), ``layer``, ``head``, ``direction``, and the variables ``before``, ``after``, ``change``,
        ``change_lower``, ``change_upper``, ``p``, ``q``, ``count`` (items), ``clusters`` (texts) and ``verdict``:
        `KEPT`, `LOST` or `UNDECIDED` (always `UNDECIDED` on fewer than `CLUSTERS` texts). The attribute ``method`` says
        how the verdicts are found.

    Raises:
        TableError: The old table has no head to check; or the new table has other heads, texts or items, holds runs, or
            lacks a score.
    """
    first, second = name_table(old, "the old table"), name_table(new, "the new table")
    scores = list_checked_scores(old, every=every)
    for table, name in ((old, first), (new, second)):
        if "run" in table.dims:
            raise TableError(f"{name} holds {table.sizes['run']} runs; check the table of one model against another.")
    check_measured_alike(old, first, new, second)
    same = have_same_weights(old, new, scores)
    parts = [_compare(old, new, score, tolerance, every, same, (first, second)) for score in scores]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    columns["q"] = false_discoveries(columns["p"])
    columns["verdict"] = _judge(columns, tolerance)
    rows = len(columns["q"])
    variables = {
        name: heads.variable(columns[name], [ROW], name=what, units=units, source=source)
        for name, (what, units, source) in _VARIABLES.items()
    }
    coords = {name: (ROW, columns[name]) for name in _COORDINATES if name in columns}
    method = METHOD.format(tolerance=tolerance, rows=rows, level=ALPHA / 2, clusters=CLUSTERS)
    return xr.Dataset(variables, coords, {"method": method, "tolerance": tolerance})


_COORDINATES = ("score", "label", "attention_type", "layer", "head", "direction")
_SHARE = "share of items"
_VARIABLES = {
    "before": ("score of the head in the old model", _SHARE, SOURCE),
    "after": ("score of the same head in the new model", _SHARE, SOURCE),
    "change": ("score in the new model less that in the old one, on the same items", _SHARE, SOURCE),
    "change_lower": ("change: lower end of the 95 % interval", _SHARE, SOURCE),
    "change_upper": ("change: upper end of the 95 % interval", _SHARE, SOURCE),
    "p": ("one-sided p-value, that the true change is no loss", "probability", SOURCE),
    "q": ("false discovery rate at this p-value, over the heads that are checked", "probability", BENJAMINI),
    "count": ("items on which the head is scored", "items", SOURCE),
    "clusters": ("folds with whole texts (or documents) that these come from", "folds", SOURCE),
    "verdict": (f"{KEPT}, {LOST} or {UNDECIDED}", "label", SOURCE),
}


def list_checked_scores(old: xr.Dataset, *, every: bool = False) -> list[Score]:
    """List the scores of a table that have at least one reported head to check.

    Args:
        old: A head table with reported heads.
        every: Count all reported heads, not only heads that stand out.

    Raises:
        TableError: No score has such a head.
    """
    name = name_table(old, "the old table")
    reporting = [
        score for score in read_scores(old) if score.has_report and f"{score.report_prefix}reported_verdict" in old
    ]
    scores = [score for score in reporting if bool(_select(old, score, every).any())]
    if scores:
        return scores
    if reporting and not every and list_checked_scores(old, every=True):
        raise TableError(f"no reported head of {name} stands out, so none can be lost; add --all to check them all.")
    raise TableError(
        f"{name} has no reported heads, so there is nothing to check; measure a statistic by which heads are chosen "
        "(`headscope list reducers`), on more texts."
    )


def _select(old: xr.Dataset, score: Score, every: bool) -> xr.DataArray:
    """Return True for the rows whose reported head is checked; rows that repeat another row are not checked."""
    prefix, dim = score.report_prefix, score.row_dimension(old)
    reported: xr.DataArray = old[f"{prefix}reported_layer"] > 0
    if folded := find_folded(old, score):
        reported = reported & ~old[dim].isin([*folded])
    return reported if every else reported & (old[f"{prefix}reported_verdict"] == STANDS_OUT)


def _compare(
    old: xr.Dataset, new: xr.Dataset, score: Score, tolerance: float, every: bool, same: bool, names: tuple[str, str]
) -> dict[str, np.ndarray]:
    """Return the columns of the result for the checked rows of one score, without ``q`` and ``verdict``."""
    first, name = names
    if missing := [part for part in (*score.numerator, *score.denominator) if part not in new]:
        raise TableError(
            f"{name} lacks {missing[0]}, from which {score.variable} is computed; measure {score.variable} there too."
        )
    dim = score.row_dimension(old)
    aligned = new.reindex({dim: old[dim]}) if dim else new
    check_items_alike(old, first, aligned, name, score)
    place = locate_reported(old, score.report_prefix)
    before, after = (Ratio.of_heads(table, score).half(SCORED).at(**place) for table in (old, aligned))
    changes = measure_change(before, after, same=same)
    margin, half, freedom = changes["change"] + tolerance, changes["half"], changes["freedom"]
    with np.errstate(divide="ignore", invalid="ignore"):
        p = student.cdf(margin * student.half_width(1, freedom) / half, freedom)
    p = p.where(half > 0, (margin >= 0).astype(float)).where(half.notnull() & changes["change"].notnull())
    if has_few_texts(old, score) or has_few_texts(new, score):
        changes = changes.assign(clusters=xr.zeros_like(changes["clusters"]))
    values = changes.drop_vars(["half", "freedom"]).assign(p=p).data_vars
    chosen = np.atleast_1d(_select(old, score, every).values)
    columns = {str(key): np.atleast_1d(column.values)[chosen] for key, column in values.items()}
    labels = [score.label.format(*where.values() or [score.title]) for where in score.places(old)]
    return columns | {
        "score": np.full(int(chosen.sum()), score.variable),
        "label": np.array(labels)[chosen],
        **{dim: _list_places(place, dim, chosen) for dim in HEAD if dim in old.dims},
    }


def _list_places(place: Mapping[str, xr.DataArray], dim: str, chosen: np.ndarray) -> np.ndarray:
    """Return the labels of the reported heads along a dimension; empty texts if the score lacks the dimension."""
    if dim not in place:
        return np.full(int(chosen.sum()), "")
    labels: np.ndarray = np.atleast_1d(place[dim].values)[chosen]
    return labels


def _judge(columns: Mapping[str, Any], tolerance: float) -> np.ndarray:
    """Return KEPT, LOST or UNDECIDED for each head.

    A head is kept if its interval is above minus the tolerance, and lost if it is below and q is small.
    """
    lower, upper = columns["change_lower"], columns["change_upper"]
    enough = columns["clusters"] >= CLUSTERS
    kept = enough & (lower >= -tolerance)
    lost = enough & (upper < -tolerance) & (columns["q"] < ALPHA / 2)
    verdicts: np.ndarray = np.where(lost, LOST, np.where(kept, KEPT, UNDECIDED))
    return verdicts


def count_verdicts(checked: xr.Dataset) -> dict[str, int]:
    """Count the heads with each verdict; a verdict without a head counts 0."""
    verdicts: Sequence[str] = [str(verdict) for verdict in checked["verdict"].values]
    return {verdict: verdicts.count(verdict) for verdict in (KEPT, LOST, UNDECIDED)}
