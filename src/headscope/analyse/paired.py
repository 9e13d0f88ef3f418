"""The difference of a score between two tables of the same texts: paired by fold, with intervals and verdicts."""

import numpy as np
import xarray as xr

from headscope.analyse import student
from headscope.analyse.report import CLUSTERS, UNDECIDED, has_few_texts
from headscope.analyse.significance import FLIPS, flip_signs
from headscope.analyse.uncertainty import ALPHA, Lift, Ratio
from headscope.score import Score

HIGHER, LOWER, NOT_SHOWN, NOT_TESTED = "higher", "lower", "not shown to differ", "not tested"
"""The verdicts on a head's score in a second table, compared with the first table; another verdict is `UNDECIDED`."""

ROUNDING = 1e-6
"""Two sums that differ by at most this share differ only by rounding, for example on two devices."""

METHOD = (
    "The difference is that of the score in the second table less that in the first, on the same texts. Its 95 % "
    "interval is paired and clustered by fold; of counts half of it is at least t^2 / (n + t^2) for n items (t: "
    f"Student's quantile), unless the tables are the same. p: {FLIPS} draws of signs for the folds. p_corrected: the "
    "same for the largest of all heads, directions and rows of a score (Westfall and Young 1993). Higher, lower: "
    f"p_corrected is below {ALPHA:g}, and the interval does not contain 0. On fewer than {CLUSTERS} folds with texts: "
    "cannot decide. What has no sums by fold has no interval: not tested."
)
"""A description of how the numbers and verdicts are computed; stored with them."""


def measure_change(before: Ratio, after: Ratio, *, same: bool) -> xr.Dataset:
    """Return the change of a ratio between two models on the same items, with a paired 95 % interval.

    The interval comes from `headscope.analyse.uncertainty.Lift`, but for counts it has a minimum width: even if none
    of the n items changes, up to t^2 / (n + t^2) of all items may still change (the end of Wilson's interval for a
    share of 0; t is Student's quantile). With the same weights nothing can have changed, so the interval has no minimum
    width.

    Args:
        before: The ratio in the first model.
        after: The ratio in the second model.
        same: Whether the two models have the same weights.

    Returns:
        The variables ``before``, ``after``, ``change``, ``change_lower``, ``change_upper``, ``half`` (half the width of
        the interval), ``freedom`` (of Student's t), ``count`` (items) and ``clusters`` (folds with items).
    """
    lift = Lift(after, before)
    change = lift.value
    counts = [ratio.denominator.sum("fold") for ratio in (before, after)]
    count = counts[0].clip(max=counts[1]).broadcast_like(change)
    quantile = student.half_width(1, lift.freedom)
    half = quantile * lift.error
    if not same and all(_is_whole(ratio.numerator) for ratio in (before, after)):
        half = np.maximum(half, quantile**2 / (count + quantile**2))
    values = {
        "before": before.value, "after": after.value, "change": change,
        "change_lower": (change - half).clip(min=-1), "change_upper": (change + half).clip(max=1),
        "half": half, "freedom": lift.freedom, "count": count, "clusters": lift.clusters.broadcast_like(change),
    }  # fmt: skip
    # Drop coordinates that do not label an axis, such as verdicts: they differ between the two tables.
    return xr.Dataset({name: each.reset_coords(drop=True) for name, each in values.items()})


def compare_score(first: xr.Dataset, second: xr.Dataset, score: Score, *, same: bool = False) -> xr.Dataset:
    """Return the difference of a score in two tables of the same texts, for each head, direction and row.

    The interval comes from `measure_change`. The p-values come from `headscope.analyse.significance.flip_signs`,
    corrected for all values of the score that have enough texts.

    Args:
        first: A head table with the sums by fold of the score.
        second: The same for another model, or for the same model after an edit.
        score: A ratio of sums.
        same: Whether the two models have the same weights.

    Returns:
        The variables ``a``, ``b``, ``difference``, ``difference_lower``, ``difference_upper``, ``count`` (items),
        ``clusters`` (folds with items), ``p``, ``p_corrected`` and ``verdict``, with the dimensions of the score.
    """
    before, after = (Ratio.of_heads(table.reset_coords(drop=True), score) for table in (first, second))
    compared = measure_change(before, after, same=same)[[*_NAMES]].rename(_NAMES)
    compared = compared.broadcast_like(compared["difference"]).transpose(*first[score.variable].dims).drop_attrs()
    parts = _split_by_fold(before, after).transpose(*compared["difference"].dims, "fold")
    few = has_few_texts(first, score) or has_few_texts(second, score)
    decided = (compared["clusters"] >= CLUSTERS) & parts.notnull().all("fold") & (not few)
    p, corrected = (
        decided.copy(data=values.reshape(decided.shape)).where(compared["difference"].notnull())
        for values in flip_signs(np.nan_to_num(parts.values.reshape(-1, parts.sizes["fold"])), decided.values.ravel())
    )
    compared = compared.assign(p=p, p_corrected=corrected)
    return compared.assign(verdict=_judge(compared))


_NAMES = {
    "before": "a", "after": "b", "change": "difference", "change_lower": "difference_lower",
    "change_upper": "difference_upper", "count": "count", "clusters": "clusters",
}  # fmt: skip
"""The variables of `measure_change`, and their names in `compare_score`."""


def _split_by_fold(before: Ratio, after: Ratio) -> xr.DataArray:
    """Split the difference of two ratios into one term for each fold; the sum of the terms is the difference.

    The folds may have other shares of the items in the second table, as in an F1, where each head has its own items. So
    each term subtracts the change of its fold's share, times the mean of the two ratios; these corrections sum to 0.
    """
    shares, parts = [], []
    for ratio in (before, after):
        total = ratio.denominator.sum("fold")
        total = total.where(total > 0)
        shares.append(ratio.denominator / total)
        parts.append(ratio.numerator / total)
    part = parts[1] - parts[0]
    rounded = abs(part) <= ROUNDING * np.maximum(abs(parts[0]), abs(parts[1]))
    split: xr.DataArray = part.where(~rounded, part * 0) - (before.value + after.value) / 2 * (shares[1] - shares[0])
    return split


def _is_whole(sums: xr.DataArray) -> bool:
    """Return True for counts, and False for sums of shares of attention."""
    values = sums.values[np.isfinite(sums.values)]
    return bool((values == np.round(values)).all())


def _judge(compared: xr.Dataset) -> xr.DataArray:
    """Return the verdict on each difference."""
    small = compared["p_corrected"] < ALPHA
    conditions = {
        NOT_TESTED: compared["p"].isnull(),
        UNDECIDED: compared["p_corrected"].isnull(),
        HIGHER: small & (compared["difference_lower"] > 0),
        LOWER: small & (compared["difference_upper"] < 0),
    }
    return compared["p"].copy(data=np.select([*conditions.values()], [*conditions], NOT_SHOWN))
