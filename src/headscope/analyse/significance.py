"""Whether a head, or the best of all heads, does better than chance."""

import numpy as np
import xarray as xr
from scipy.stats import false_discovery_control

from headscope import heads
from headscope.analyse.scores import Score, scores_of

WESTFALL = "Westfall and Young 1993 (maximum statistic)"
BENJAMINI = "Benjamini and Hochberg 1995"


def with_significance(table: xr.Dataset) -> xr.Dataset:
    """`table` with p-values of heads, corrected for how many there are, for each score that has permutations.

    In a draw the gold stands where it does not belong (`headscope.reducers.support.permutations`). For
    ``relation_accuracy`` the new variables are

    * ``relation_p_corrected``: of each head, the share of the permutations in which *any* head stands out as much: the
      p-value corrected for all heads and both directions (the family-wise error, by the maximum statistic);
    * ``relation_q``: Benjamini and Hochberg's false discovery rate over all heads, directions and relations. A relation
      that others are pooled in counts as one more, and so does a rare one;
    * ``best_p``: for each relation, the p-value of the best of all heads, and ``best_q``, the same
      corrected for the number of relations (Benjamini and Hochberg).

    For ``antecedent_accuracy`` and ``scope_f1`` they are named accordingly (``antecedent_p_corrected``,
    ``antecedent_best_p``). A table without permutations, or without scores, is returned as it is.
    """
    new: dict[str, xr.Variable] = {}
    for score in scores_of(table):
        if f"{score.drawn}_z" in table:
            new |= _significance(table, score)
    return table.assign(new)


def _significance(table: xr.Dataset, score: Score) -> dict[str, xr.Variable]:
    z, p, best = (table[f"{score.drawn}_{end}"] for end in ("z", "p", "z_permuted"))
    if "attention_type" in best.dims:
        best = best.max("attention_type")
    # The score itself is one permutation more.
    ranked, permutations = np.sort(best.transpose(..., "permutation").values, axis=-1), best.sizes["permutation"]
    of_head = z.transpose(..., *(dim for dim in best.dims if dim != "permutation"))
    corrected = np.empty(of_head.shape)
    for row in np.ndindex(ranked.shape[:-1]):
        at = (..., *row)
        above = permutations - np.searchsorted(ranked[row], of_head.values[at], side="left")
        corrected[at] = (1 + above) / (1 + permutations)
    corrected_p = of_head.copy(data=np.where(np.isnan(of_head), np.nan, corrected))
    over = [dim for dim in ("attention_type", "layer", "head", "direction") if dim in of_head.dims]
    best_p = corrected_p.min(over)
    values = {
        f"{score.drawn}_p_corrected": (corrected_p, "p-value corrected for all heads", WESTFALL),
        f"{score.drawn}_q": (p.copy(data=false_discoveries(p.values)), "false discovery rate at this head", BENJAMINI),
        f"{score.prefix}best_p": (best_p, "p-value of the best of all heads", WESTFALL),
        f"{score.prefix}best_q": (
            best_p.copy(data=false_discoveries(best_p.values)),
            "false discovery rate at this p-value of the best of all heads",
            BENJAMINI,
        ),
    }
    return {
        name: heads.variable(
            data.values, [str(dim) for dim in data.dims], name=what, units="probability", source=source
        )
        for name, (data, what, source) in values.items()
    }


def false_discoveries(p: np.ndarray) -> np.ndarray:
    """Benjamini and Hochberg's adjusted p-values over all entries that there are."""
    there = ~np.isnan(p)
    adjusted = np.full(p.shape, np.nan)
    if there.any():
        adjusted[there] = false_discovery_control(p[there])
    return adjusted
