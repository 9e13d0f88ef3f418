"""p-values: does a head, or the best of all heads, do better than chance?"""

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float

from headscope import heads
from headscope.analyse.uncertainty import ALPHA
from headscope.score import HEAD, Score, read_scores

WESTFALL = "Westfall and Young 1993 (maximum statistic)"
BENJAMINI = "Benjamini and Hochberg 1995"

FLIPS = 1999
"""The number of random draws; each draw has a sign for every fold."""

_BLOCK = 2**22
"""The number of sums under flipped signs that are computed together: 32 MB."""

_ROUNDED = 1e-9
"""The rounding error of a statistic: a statistic that is lower by at most this much counts as equal."""


def add_significance(table: xr.Dataset) -> xr.Dataset:
    """Add p-values of heads, corrected for the number of heads, for each score that has permutations.

    In a permutation the gold is moved to other words (`headscope.reducers.support.permutations`). For a score with the
    stem ``relation`` the new variables are

    * ``relation_p_corrected``: for each head, the share of the permutations in which *any* head scores as high: the
      p-value corrected for all heads and both directions (the family-wise error, by the maximum statistic);
    * ``relation_q``: Benjamini and Hochberg's false discovery rate over all heads, directions and rows. A row that
      pools other rows counts as one more row, and so does a rare one;
    * ``best_p`` (after the score's prefix): for each row, the p-value of the best of all heads, and ``best_q``, the
      same corrected for the number of rows (Benjamini and Hochberg).

    A row without items has no p-values, and does not count in the corrections.

    A table without permutations, or without scores, is returned unchanged.
    """
    new: dict[str, xr.Variable] = {}
    for score in read_scores(table):
        if score.has_report and f"{score.stem}_z" in table:
            new |= _significance(table, score)
    return table.assign(new)


def _significance(table: xr.Dataset, score: Score) -> dict[str, xr.Variable]:
    z, p, best = (table[f"{score.stem}_{end}"] for end in ("z", "p", "z_permuted"))
    if "attention_type" in best.dims:
        best = best.max("attention_type")
    # The sorted values end with NaN if a row is empty or a score has fewer permutations than another score.
    ranked = np.sort(best.transpose(..., "permutation").values, axis=-1)
    permutations = (~np.isnan(ranked)).sum(-1)
    by_head = z.transpose(..., *(dim for dim in best.dims if dim != "permutation"))
    corrected = np.empty(by_head.shape)
    for row in np.ndindex(ranked.shape[:-1]):
        at = (..., *row)
        known = ranked[row][: permutations[row]]
        above = len(known) - np.searchsorted(known, by_head.values[at], side="left")
        # The unpermuted score counts as one more permutation.
        corrected[at] = (1 + above) / (1 + len(known))
    corrected_p = by_head.copy(data=np.where(np.isnan(by_head), np.nan, corrected))
    best_p = corrected_p.min([dim for dim in HEAD if dim in by_head.dims])
    best_q = "false discovery rate at this p-value of the best of all heads"
    values = {
        f"{score.stem}_p_corrected": (corrected_p, "p-value corrected for all heads", WESTFALL),
        f"{score.stem}_q": (p.copy(data=false_discoveries(p.values)), "false discovery rate at this head", BENJAMINI),
        f"{score.report_prefix}best_p": (best_p, "p-value of the best of all heads", WESTFALL),
        f"{score.report_prefix}best_q": (best_p.copy(data=false_discoveries(best_p.values)), best_q, BENJAMINI),
    }
    return {
        name: heads.variable(data.values, list(map(str, data.dims)), name=what, units="probability", source=source)
        for name, (data, what, source) in values.items()
    }


def flip_signs(
    parts: Float[np.ndarray, "value fold"],
    decided: Bool[np.ndarray, " value"] | None = None,
    *,
    flips: int = FLIPS,
    seed: int = 0,
) -> tuple[Float[np.ndarray, " value"], Float[np.ndarray, " value"]]:
    """Test differences that are sums over folds; return two-sided p-values, and the same corrected for all differences.

    If two models are equally good on the texts of a fold, the term of this fold in a difference could equally well have
    the other sign. The signs of the folds are drawn at random, the same for all differences, so nothing is assumed
    about how the differences depend on each other. The statistic is the sum over folds divided by the root of the sum
    of squares, which a few folds cannot make large. It grows with the mean divided by its standard error, so both give
    the same p-value. The corrected p-value is the share of draws in which *any* of the decided differences has as large
    a statistic (Westfall and Young 1993; Winkler et al. 2014); NaN for differences that are not decided.

    Args:
        parts: The term of each fold in each difference.
        decided: The differences that are corrected for; by default all.
        flips: The number of random draws of signs.
        seed: The seed of the signs.
    """
    decided = np.ones(len(parts), dtype=bool) if decided is None else decided
    norms = np.sqrt((parts**2).sum(1))
    units = (parts / np.where(norms > 0, norms, 1)[:, None]).T
    signs = np.random.default_rng(seed).integers(0, 2, (flips, len(units)), dtype=np.int8)
    observed = np.abs(units.sum(0)) - _ROUNDED
    above, largest = np.zeros(len(parts)), np.zeros(flips)
    step = max(1, _BLOCK // max(1, *parts.shape))
    for start in range(0, flips, step):
        block = slice(start, start + step)
        flipped = np.abs((signs[block] * 2.0 - 1) @ units)
        above += (flipped >= observed).sum(0)
        largest[block] = flipped[:, decided].max(1, initial=0)
    corrected = flips - np.searchsorted(np.sort(largest), observed, side="left")
    # The real signs count as one more draw.
    return (1 + above) / (1 + flips), np.where(decided, (1 + corrected) / (1 + flips), np.nan)


def holm(p: np.ndarray) -> np.ndarray:
    """Return Holm's adjusted p-values (1979) over all entries that are not NaN.

    At a level of 0.05, the probability of rejecting any true null hypothesis is at most 0.05, however the tests depend
    on each other.
    """
    flat = p.ravel()
    order = np.argsort(flat)[: np.count_nonzero(~np.isnan(flat))]  # NaN comes last
    adjusted = np.full(flat.shape, np.nan)
    # An adjusted p-value is at least that of any smaller p-value.
    adjusted[order] = np.maximum.accumulate(flat[order] * np.arange(len(order), 0, -1)).clip(max=1)
    return adjusted.reshape(p.shape)


def correct_rows(p: xr.DataArray, few: xr.DataArray) -> xr.DataArray:
    """Correct the p-values of rows for the number of decided rows (`holm`); NaN for a row with `few` texts or items."""
    return p.copy(data=holm(p.where(~few).values))


def false_discoveries(p: np.ndarray) -> np.ndarray:
    """Return Benjamini and Hochberg's adjusted p-values over all entries that are not NaN.

    `scipy.stats.false_discovery_control` gives the same, and takes 0.6 s to load.
    """
    flat = p.ravel()
    order = np.argsort(flat)[: np.count_nonzero(~np.isnan(flat))]  # NaN comes last
    scaled = flat[order] * (len(order) / np.arange(1, len(order) + 1))
    adjusted = np.full(flat.shape, np.nan)
    # An adjusted p-value is at most that of any larger p-value.
    adjusted[order] = np.minimum.accumulate(scaled[::-1])[::-1].clip(max=1)
    return adjusted.reshape(p.shape)


def count_needed(p: np.ndarray, tests: int) -> np.ndarray:
    """Return the number of tests that must have the p-value `p` so that q is at most `ALPHA`.

    If k tests have this p-value and no test a smaller one, their q is ``p * tests / k`` (Benjamini and Hochberg). The
    number is NaN if even all tests are too few, or if there is no p-value.

    Args:
        p: The smallest p-value that a test can give, of any shape.
        tests: The number of tests that are corrected for.
    """
    counts = np.arange(1, tests + 1)
    enough = p[..., None] * (tests / counts) <= ALPHA
    return np.where(enough.any(-1), 1.0 + enough.argmax(-1), np.nan)
