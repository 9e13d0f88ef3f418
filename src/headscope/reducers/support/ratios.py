"""Sums by fold -> the variables of a score: the ratio, its sums, its count, and the comparison with permutations."""

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

from headscope import heads
from headscope.reducers.support.permutations import Permuted
from headscope.score import Score, add_up


def mean(total: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Return the mean of `count` values with a sum of `total`; NaN if there are none."""
    with np.errstate(invalid="ignore"):
        return np.asarray(total / np.where(count > 0, count, np.nan))


def score_table(
    score: Score,
    sums: Mapping[str, np.ndarray],
    rows: Mapping[str, Sequence[str]] | None = None,
    *,
    source: str = "headscope",
    units: str = "",
    fold_unit: str = "text",
    pooled: Sequence[Sequence[int]] | None = None,
) -> xr.Dataset:
    """Return a table with the variables of a score, which is NaN where its denominator is 0.

    Args:
        score: The score, which names the sums.
        sums: The sums by the name of their variable. Sums of heads have the axes layer, head, rows and fold; sums of
            the corpus have rows and fold; sums of rivals have rows, fold and their options, after layer and head if
            they are sums of the same head. The sums of a rival may be missing. With permutations, ``STEM_permuted`` has
            the sums of the first numerator, with the axes layer, head, rows and permutation. If the scored items vary
            from permutation to permutation, ``STEM_permuted_count`` is their number, with the axes rows and
            permutation; shares are then compared.
        rows: The dimensions of the rows and their labels; ``direction`` first, if there is one.
        source: The paper and section that define the score.
        units: The unit of the score; by default a share of its items.
        fold_unit: The unit of the folds (`headscope.reducers.support.folds.FoldAssignment`).
        pooled: The rows of the permuted sums that add up to each row; by default the same rows. Not allowed if their
            count varies.
    """
    rows, units = dict(rows or {}), units or f"share of {score.items}"
    options = {
        name: rival.options
        for rival in score.rivals
        for name in (*rival.numerator, *rival.denominator)
        if name not in score.denominator
    }
    numerators = {*score.numerator, *(name for rival in score.rivals for name in rival.numerator)}
    new = {}
    for name in dict.fromkeys((*score.numerator, *score.denominator, *(name for name in options if name in sums))):
        inner = [*rows, "fold", *options.get(name, ())]
        # A rival may also be another sum of the same head.
        by_head = sums[name].ndim == len(rows) + 3 + len(options.get(name, ()))
        dims = ["layer", "head", *inner] if by_head else inner[-sums[name].ndim :]
        side = "numerator" if name in numerators - {*score.denominator} else "denominator"
        what = f"{score.items}: {side} of {score.variable}{' of a rival' if name in options else ''}, by fold"
        new[name] = heads.variable(sums[name], dims, name=what, units=score.items, source=source)
        if name in score.denominator and not by_head:
            new[name].attrs["fold_unit"] = fold_unit
            count = new[name].sum("fold").values
            new[f"{score.stem}_count"] = heads.variable(
                count, dims[:-1], name=f"{score.items} scored", units=score.items, source=source
            )
    table = xr.Dataset(new, coords={dim: list(labels) for dim, labels in rows.items()})
    # A head without a score is NaN, and stays so.
    right, total = (add_up(table, names).sum("fold", skipna=False) for names in (score.numerator, score.denominator))
    ratio = (right / total).transpose("layer", "head", *rows)
    dims = [str(dim) for dim in ratio.dims]
    table[score.variable] = heads.variable(ratio.values, dims, name=score.definition, units=units, source=source)
    permuted = sums.get(f"{score.stem}_permuted")
    if permuted is None or not permuted.shape[-1]:
        return table
    if not rows:
        dims, permuted = [*dims, "row"], permuted[..., None, :]
    shape = (*ratio.shape, *([] if rows else [1]))
    # In an F1 the hits count twice.
    items = (total / len(score.numerator)).broadcast_like(ratio).transpose(*ratio.dims).values.reshape(shape)
    hits = table[score.numerator[0]].sum("fold", skipna=False).transpose(*ratio.dims).values.reshape(shape)
    if (scored := sums.get(f"{score.stem}_permuted_count")) is not None:
        permuted = _rescale(permuted, scored, items[..., None], hits[..., None])
    compared = Permuted.compare(hits, permuted, pooled or [[row] for row in range(shape[-1])])
    variables = xr.Dataset(compared.variables(score.stem, dims, items, units))
    return table.assign((variables if rows else variables.isel(row=0)).data_vars)


def _rescale(permuted: np.ndarray, count: np.ndarray, items: np.ndarray, hits: np.ndarray) -> np.ndarray:
    """Return permuted hits, scaled to the number of items of the gold; for a permutation without items, `hits`.

    So a permutation without items counts as one that is as good as the gold.
    """
    return np.where(count > 0, permuted * items / np.maximum(count, 1), hits)
