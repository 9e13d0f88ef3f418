"""The difference of a score between two tables of the same texts: paired by fold, with intervals and verdicts."""

import numpy as np
import xarray as xr

from headscope.analyse import student
from headscope.analyse.report import CLUSTERS, UNDECIDED, has_few_texts
from headscope.analyse.significance import FLIPS, flip_signs
from headscope.analyse.uncertainty import ALPHA, Lift, Ratio
from headscope.score import Score

HIGHER, LOWER, NOT_SHOWN, NOT_TESTED = "higher", "lower", "not shown to differ", "not tested"
"""The verdicts on a score of a head in the second of two tables; another one is `UNDECIDED`."""

ROUNDING = 1e-6
"""The share of a sum up to which two sums differ by rounding alone, as on another device."""

METHOD = (
    "The difference is that of the score in the second table less that in the first, on the same texts. Its 95 % "
    "interval is paired and clustered by fold; of counts half of it is at least t^2 / (n + t^2) for n items (t: "
    f"Student's quantile), unless the tables are the same. p: {FLIPS} draws of signs for the folds. p_corrected: the "
    "same for the largest of all heads, directions and rows of a score (Westfall and Young 1993). Higher, lower: "
    f"p_corrected is below {ALPHA:g}, and the interval does not contain 0. On fewer than {CLUSTERS} folds with texts: "
    "cannot decide. What has no sums by fold has no interval: not tested."
)
"""How the numbers and verdicts are found; stored with them."""


def measure_change(before: Ratio, after: Ratio, *, same: bool) -> xr.Dataset:
    """Return the change of a ratio between two models on the same items, with a paired 95 % interval.

    The interval is that of `headscope.analyse.uncertainty.Lift`, but of counts it is never narrower than n items can
    tell: where not a single one of them changes, up to t^2 / (n + t^2) of all still may (the end of Wilson's interval
    for a share of 0; t is Student's quantile). Of the same weights nothing can have changed, so there the interval is
    what it is.

    Args:
        before: in the one model.
        after: in the other one.
        same: the two have the same weights.

    Returns:
        The variables ``before``, ``after``, ``change``, ``change_lower``, ``change_upper``, ``half`` (of the interval),
        ``freedom`` (of Student's t), ``count`` (items) and ``clusters`` (folds with items).
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
    # Coordinates that are no labels of an axis, such as verdicts, differ between the two.
    return xr.Dataset({name: each.reset_coords(drop=True) for name, each in values.items()})


def compare_score(first: xr.Dataset, second: xr.Dataset, score: Score, *, same: bool = False) -> xr.Dataset:
    """Return the difference of a score in two tables of the same texts, for each head, direction and row.

    The interval is that of `measure_change`. The p-values are those of
    `headscope.analyse.significance.flip_signs`, corrected for all values of the score that are decided.

    Args:
        first: with the sums by fold of the score.
        second: the same of another model, or of the same one after an edit.
        score: a ratio of sums.
        same: the two have the same weights.

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
"""The numbers of `measure_change`, as `compare_score` calls them."""


def _split_by_fold(before: Ratio, after: Ratio) -> xr.DataArray:
    """Return what each fold adds to the difference of two ratios; their sum is the difference.

    Where the items of a head are its own, as in an F1, a fold may have more of them in one table than in the other;
    what these add at the mean of the two ratios is left out.
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
    """True of counts, and false of sums of shares of attention."""
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
