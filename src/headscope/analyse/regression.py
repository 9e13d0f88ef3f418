"""Regressions of a head's attention on the gold (the scope of a negation) and on a word's distance (to its cue)."""

from collections.abc import Sequence

import numpy as np
import scipy
import xarray as xr
from jaxtyping import Float

from headscope import heads
from headscope.analyse.significance import BENJAMINI, false_discoveries
from headscope.analyse.student import two_sided_p
from headscope.errors import TableError
from headscope.score import Score, read_scores

SOURCE = "Zhao and Bethard 2020, section 4.2"
_SUMS = ("regressors", "products", "squares")


def add_regression(table: xr.Dataset) -> xr.Dataset:
    """Add regressions of a word's attention on the gold and on distance, for each score that defines a regression.

    For negation scope, whose variables begin with ``scope_``, this is ordinary least squares over the words of all
    negations (`headscope.reducers.support.negation_cue.Cues` selects them): attention = intercept + label * (1 in the
    scope, 0 outside) + distance * (words to the nearest word of the cue). According to the paper, a head knows about
    negation if the label matters, and more than the distance.

    This favours heads that attend to a neighbour, since the word after a cue is mostly in its scope, and a straight
    line cannot express "next to it": head 1-3 of minilm, which gives 0.98 of its attention to the previous token, has
    the largest label coefficient of all. So compare the score with the fixed offsets too.

    The paper's p-values assume independent words, but the words of one text are not independent. So there are two
    kinds: ``p`` is the paper's, and ``p_clustered`` comes from errors clustered by fold (the sandwich estimator, with
    the factor m/(m-1) (n-1)/(n-3) for n words in m folds, and Student's t with m-1 degrees of freedom). ``q`` is
    ``p_clustered`` corrected for the number of heads (Benjamini and Hochberg 1995).

    Args:
        table: A head table with the sums of squares and products of a score with a regression. A table without such a
            score is returned unchanged.

    Returns:
        The table with ``scope_words`` (the number of words in the fit), ``scope_intercept``, ``scope_r_squared`` and,
        with the prefixes ``scope_label_`` and ``scope_distance_``: ``coefficient``, ``error``, ``p``,
        ``error_clustered``, ``p_clustered``, ``q``; and from the ANOVA that compares the fit with a fit without the
        term, ``f`` and ``squares``, the sum of squares that the term alone explains (its p-value is ``p``). NaN if the
        words do not determine them.

    Raises:
        TableError: The table lacks the sums of such a score.
    """
    for score in read_scores(table):
        if score.regression:
            table = table.assign(_regression(table, score))
    return table


def _regression(table: xr.Dataset, score: Score) -> dict[str, xr.Variable]:
    names = [f"fold_{score.stem}_{name}" for name in _SUMS]
    if missing := [name for name in names if name not in table]:
        raise TableError(f"the head table has no {missing[0]}, from which the regression follows; measure again.")
    regressors, products, squares = (table[name] for name in names)
    by_head = [str(dim) for dim in squares.dims if dim != "fold"]
    fit = _fit(
        regressors.values.astype(float),
        products.transpose(*by_head, "fold", "regressor").values,
        squares.transpose(*by_head, "fold").values,
    )
    attention, share = score.regression[0], heads.get_share(table)
    base = f"{attention} if not {score.regression[1]}, at distance 0"
    explained = f"variance of the {attention} explained"
    new = {
        "words": _described(fit["words"], (), "words to which the regressions are fitted", "words"),
        "intercept": _described(fit["intercept"], by_head, base, share),
        "r_squared": _described(fit["r_squared"], by_head, explained, "share of variance"),
    }
    slopes = {
        "label": (score.regression[1], share),
        "distance": ("for each word of distance", f"{share} by word"),
    }
    for place, (term, (what, units)) in enumerate(slopes.items()):
        columns = {
            "coefficient": (attention, units),
            "error": ("standard error, were words independent", units),
            "p": ("p-value, were words independent", "probability"),
            "error_clustered": ("standard error, clustered by fold", units),
            "p_clustered": ("p-value, clustered by fold", "probability"),
            "f": ("F of the comparison with the fit without it", "ratio of variances"),
            "squares": ("sum of squares that it alone explains", "attention squared"),
        }
        for key, (name, unit) in columns.items():
            new[f"{term}_{key}"] = _described(fit[key][..., place], by_head, f"{term} ({what}): {name}", unit)
        q, name = false_discoveries(fit["p_clustered"][..., place]), "false discovery rate at the clustered p-value"
        new[f"{term}_q"] = _described(q, by_head, f"{term} ({what}): {name}", "probability", BENJAMINI)
    return {f"{score.stem}_{name}": values for name, values in new.items()}


def _fit(
    xx: Float[np.ndarray, "fold regressor regressor"],
    xy: Float[np.ndarray, "*head fold regressor"],
    yy: Float[np.ndarray, "*head fold"],
) -> dict[str, np.ndarray]:
    """Fit least squares for each head from sums of products in each fold, with the constant as the first regressor.

    Returns:
        ``words``, ``intercept`` and ``r_squared`` with the shape ``*head``; all others with the shape ``*head slope``:
        label and distance.
    """
    n, folds = xx[:, 0, 0].sum(), (xx[:, 0, 0] > 0).sum()
    with np.errstate(invalid="ignore", divide="ignore"):
        # With centred values the constant drops out, and the inverse stays exact for distant cues.
        x_mean, y_mean = xx.sum(0)[0, 1:] / n, xy.sum(-2)[..., 0] / n
        inverse = _inverse(xx.sum(0)[1:, 1:] - n * np.outer(x_mean, x_mean))
        covaried = xy.sum(-2)[..., 1:] - n * y_mean[..., None] * x_mean
        total = yy.sum(-1) - n * y_mean**2
        slopes = covaried @ inverse
        intercept = y_mean - slopes @ x_mean
        residual = np.maximum(total - (slopes * covaried).sum(-1), 0)
        degrees = np.where(n > 3, n - 3, np.nan)
        variance = (residual / degrees)[..., None]
        squares = slopes**2 / inverse.diagonal()
        f = squares / variance
        # X'e of each fold, with centred values; its sum over folds is 0.
        coefficients = np.concatenate([intercept[..., None], slopes], -1)
        scores = xy - np.einsum("...r,frs->...fs", coefficients, xx)
        pulls = (scores[..., 1:] - scores[..., :1] * x_mean) @ inverse
        factor = folds / (folds - 1) * (n - 1) / degrees if folds > 1 else np.nan
        clustered = np.sqrt(factor * (pulls**2).sum(-2))
        return {
            "words": np.asarray(int(n)),
            "intercept": intercept,
            "r_squared": 1 - residual / np.where(total > 0, total, np.nan),
            "coefficient": slopes,
            "error": np.sqrt(variance * inverse.diagonal()),
            "p": scipy.stats.f.sf(f, 1, degrees),
            "error_clustered": clustered,
            "p_clustered": two_sided_p(slopes / clustered, folds - 1),
            "f": f,
            "squares": squares,
        }


def _inverse(matrix: Float[np.ndarray, "slope slope"]) -> Float[np.ndarray, "slope slope"]:
    """Invert the matrix of label and distance; NaN if one of the two does not vary, or if it determines the other."""
    spread = np.sqrt(matrix.diagonal())
    correlation = matrix / np.outer(spread, spread)
    if not np.abs(np.linalg.det(correlation)) > 1e-12:
        return np.full_like(matrix, np.nan)
    return np.linalg.inv(matrix)


def _described(values: np.ndarray, dims: Sequence[str], name: str, units: str, source: str = SOURCE) -> xr.Variable:
    return heads.variable(values, dims, name=name, units=units, source=source)
