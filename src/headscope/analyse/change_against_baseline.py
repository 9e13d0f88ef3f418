"""Change against baseline: whether heads that are good before tuning improve more ("the rich get richer").

Zhao and Bethard 2020 (section 5, table A4) correlate the score of a head with its change. Noise in the score before
tuning is part of both, with opposite signs. So the correlation is too low, and more noise makes it lower.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import scipy
import xarray as xr
from jaxtyping import Bool, Float, Int

from headscope import heads
from headscope.analyse.comparable import split_runs
from headscope.analyse.ends import make_ends
from headscope.analyse.rank import values_of_heads
from headscope.analyse.student import t_interval
from headscope.analyse.uncertainty import sums_of_heads

Sums = Float[np.ndarray, "2 head fold"]
"""The numerator (right items) and the denominator (all items) of the score of each head in each fold."""

HALVES = 10
"""The number of random splits of the folds into halves; each split is used in both orders."""

LEFT_OUT = 16
"""The number of groups of folds that are left out in turn, to see how far the corrected tau depends on the texts."""

FEWER_HALVES = 2
"""The number of random splits for each corrected tau that is computed without a group of folds."""

BIAS = (
    "A head's change is its score after less its score before, so chance in the score before is in both with opposite "
    "signs and pulls tau down (to -0.50 for scores that are chance alone); the corrected tau takes the score before "
    "from one half of the texts and the change from the other. Chance that is left pulls it towards 0, so a relation "
    "that there is comes out too weak."
)

SOURCE = "Zhao and Bethard 2020, table A4 (Kendall's tau-b over heads)"
CORRECTED = f"Kendall's tau-b over heads; split halves of the texts, mean of {HALVES} random ones in both orders"
INTERVAL = "Student's t over runs; variance between runs, and over texts (jackknife: Efron and Stein 1981)"


def correlate_change(
    before: xr.Dataset, groups: Mapping[str, xr.Dataset], variable: str, known: xr.DataArray
) -> dict[str, xr.Variable]:
    """Correlate the value of each head before tuning with its change (Kendall's tau), in each run.

    ``baseline_tau`` and its p-value ``baseline_p`` are computed as in the paper. ``baseline_tau_corrected`` takes the
    value before tuning from one half of the folds of the corpus and the change from the other half, so that both do not
    share noise. It is the mean over random splits, each in both orders. The remaining noise pulls it towards 0. It is
    NaN if the variable is not a ratio of sums by fold that all tables have; then its attribute ``note`` says so. Only
    `known` heads count.

    ``baseline_tau_mean`` is the mean of the corrected tau over the runs of a group; ``_lower`` and ``_upper`` are the
    ends of its interval for unlimited runs and texts. All runs share the model before tuning and its texts, so an
    interval over runs alone would be too narrow.
    """
    most = max(table.sizes.get("run", 1) for table in groups.values())
    taus, means = np.full((3, len(groups), most), math.nan), np.full((3, len(groups)), math.nan)
    mask = known.values.ravel()
    start, sums_before, has_halves = _values(before, variable)[mask], sums_of_heads(before, variable), True
    for place, table in enumerate(groups.values()):
        pairs = []
        for run, run_table in enumerate(split_runs(table)):
            taus[:2, place, run] = scipy.stats.kendalltau(start, _values(run_table, variable)[mask] - start)
            sums = sums_of_heads(run_table, variable)
            if sums_before is None or sums is None or sums_before.shape != sums.shape:
                has_halves = False
            else:
                pairs.append((sums_before[:, mask], sums[:, mask]))
                taus[2, place, run] = _corrected(*pairs[-1])
        if len(pairs) > 1:
            means[:, place] = _average(taus[2, place, : len(pairs)], pairs)
    # The p-value treats heads as independent, which they are not.
    described = {
        "baseline_tau": ("Kendall's tau of the value before and its change, as published", "1", SOURCE),
        "baseline_p": ("p-value of that, were heads independent", "probability", SOURCE),
        "baseline_tau_corrected": ("Kendall's tau of the value before and its change on other texts", "1", CORRECTED),
    }
    new = {
        name: heads.variable(values, ("group", "run"), name=what, units=units, source=source)
        for values, (name, (what, units, source)) in zip(taus, described.items(), strict=True)
    }
    what = "mean over runs of Kendall's tau of the value before and its change on other texts"
    new |= make_ends("baseline_tau_mean", means, ("group",), what=what, units="1", source=INTERVAL)
    lacking = f"There is no corrected tau: {variable} is not a ratio of sums by fold that all tables have."
    new["baseline_tau_corrected"].attrs["note"] = BIAS if has_halves else f"{BIAS} {lacking}"
    return new


def _values(table: xr.Dataset, variable: str) -> Float[np.ndarray, " head"]:
    return np.asarray(values_of_heads(table, variable).values.ravel(), dtype=float)


def _average(taus: Float[np.ndarray, " run"], pairs: Sequence[tuple[Sums, Sums]]) -> tuple[float, float, float]:
    """Return the mean of the taus over runs, and the ends of its interval."""
    present = np.flatnonzero(np.any([sums[1].any(0) for pair in pairs for sums in pair], axis=0))
    parts = np.array_split(np.random.default_rng(0).permutation(present), min(LEFT_OUT, len(present)))
    without = [np.mean([_corrected(*pair, FEWER_HALVES, part) for pair in pairs]) for part in parts]
    of_texts = (len(parts) - 1) * np.var(without)
    error = math.sqrt(of_texts + np.var(taus, ddof=1) / len(taus))
    mean = float(taus.mean())
    lower, upper = t_interval(mean, error, len(taus) - 1)
    return mean, float(lower), float(upper)


def _corrected(
    before: Sums, after: Sums, halves: int | None = None, left_out: Int[np.ndarray, " fold"] | None = None
) -> float:
    """Return the mean of tau over random splits of the folds into halves, each in both orders; NaN for one fold.

    Args:
        before: The sums before tuning.
        after: The sums after tuning.
        halves: The number of splits; by default `HALVES`.
        left_out: Folds that are left out, as folds without items always are.
    """
    present = np.flatnonzero(before[1].any(0) | after[1].any(0))
    present = present if left_out is None else np.setdiff1d(present, left_out)
    if len(present) < 2:
        return math.nan
    random, pairs = np.random.default_rng(0), []
    for _ in range(halves or HALVES):
        half = np.zeros(before.shape[-1], dtype=bool)
        half[random.permutation(present)[: len(present) // 2]] = True
        (start, changed), (start_again, changed_again) = (
            (_scores(before, folds), _scores(after, folds)) for folds in (half, ~half)
        )
        pairs += [(start, changed_again - start_again), (start_again, changed - start)]
    starts, changes = np.stack(pairs, axis=1)
    return float(np.mean(scipy.stats.kendalltau(starts, changes, axis=1).statistic))


def _scores(sums: Float[np.ndarray, "2 head fold"], folds: Bool[np.ndarray, " fold"]) -> Float[np.ndarray, " head"]:
    """Return the score of each head on the selected folds, a ratio of two sums; 0 if the denominator is 0."""
    above, below = sums[..., folds].sum(-1)
    return np.asarray(np.divide(above, below, out=np.zeros_like(above), where=below > 0))
