"""Whether the same heads score well on two corpora."""

import math
from dataclasses import dataclass

import numpy as np
import xarray as xr
from jaxtyping import Float
from scipy.stats import kendalltau, norm

from headscope.analyse.rank import of_heads
from headscope.analyse.scores import counts_of
from headscope.analyse.uncertainty import LEVEL
from headscope.errors import TableError

DRAWS = 1000
"""Bootstrap samples of the folds of each corpus."""


@dataclass(frozen=True)
class Consistency:
    """How alike the scores of a model's heads are on two corpora.

    Attributes:
        variable: the score.
        heads: how many were compared.
        tau: Kendall's tau-b; NaN where all heads score the same on one corpus.
        p: of no association, were heads independent. They are not (heads of one layer, heads that do the same), so
            it is too small.
        lower: end of the 95 % interval of tau, for these heads and endless texts like those of the two corpora; NaN
            where the score is not a ratio of sums by fold that both tables have.
        upper: the other end.
    """

    variable: str
    heads: int
    tau: float
    p: float
    lower: float
    upper: float

    def __str__(self) -> str:
        """One line, with what the p-value takes for granted."""
        return (
            f"{self.variable}: tau {self.tau:.3f} [{self.lower:.3f}, {self.upper:.3f}] over {self.heads} heads, "
            f"p = {self.p:.3g} if heads were independent, which they are not"
        )


def consistency(one: xr.Dataset, other: xr.Dataset, variable: str = "scope_f1") -> Consistency:
    """Kendall's rank correlation between the scores of a model's heads on two corpora.

    A head that marks something should mark it in texts of another kind too (Zhao and Bethard 2020, section 4.2; their
    formula leaves out ties, their figures are tau-b).

    For the interval the folds of each corpus are drawn again, with replacement, 1,000 times. Chance in the scores
    pulls tau towards 0, and drawn samples have that chance twice, so quantiles of theirs would lie too low. The
    interval is tau less the bootstrap's bias, and 1.96 times the bootstrap's root mean square error to either side.
    Simulated, with little to much chance in the scores, it covers the tau of endless texts in 87 to 99 % (the
    quantiles: in 0 to 88 %).

    Args:
        one: a head table of a model on one corpus.
        other: of the same model on another corpus.
        variable: one value for each head; of ``relation_accuracy``, select a relation and a direction in both tables
            first.

    Raises:
        TableError: the tables are of different shapes, of different weights or of the same corpus; or a table lacks the
            variable, or has more than one value for each head.

    >>> import headscope
    >>> corpora = [headscope.read(f"grammar:{count}:{seed}") for count, seed in ((211, 1), (223, 2))]
    >>> one, other = (headscope.measure("minilm", corpus, ["scope"]) for corpus in corpora)  # doctest: +SKIP
    >>> print(headscope.consistency(one, other))  # doctest: +SKIP
    """
    _check_comparable(one, other)
    scores = [of_heads(table, variable).values.ravel() for table in (one, other)]
    known = np.isfinite(scores).all(0)
    tau, p = kendalltau(*(values[known] for values in scores))
    sums = [_sums_of_heads(table, variable) for table in (one, other)]
    lower, upper = math.nan, math.nan
    if sums[0] is not None and sums[1] is not None:
        draw = np.random.default_rng(0)
        lower, upper = _interval(tau, _drawn(sums[0][:, known], draw), _drawn(sums[1][:, known], draw))
    return Consistency(variable, int(known.sum()), float(tau), float(p), lower, upper)


def _interval(
    tau: float, one: Float[np.ndarray, "draw head"], other: Float[np.ndarray, "draw head"]
) -> tuple[float, float]:
    taus = np.array([kendalltau(*scores).statistic for scores in zip(one, other, strict=True)])
    middle, half = 2 * tau - taus.mean(), norm.ppf((1 + LEVEL) / 2) * np.sqrt(((taus - tau) ** 2).mean())
    return max(float(middle - half), -1.0), min(float(middle + half), 1.0)


def _sums_of_heads(table: xr.Dataset, variable: str) -> Float[np.ndarray, "2 head fold"] | None:
    """What the score is the ratio of, in each fold."""
    counts = counts_of(table, variable)
    if counts is None:
        return None
    parts = xr.broadcast(counts.right, counts.links)
    dims = (*of_heads(table, variable).dims, "fold")
    return np.stack([part.transpose(*dims).values.reshape(-1, part.sizes["fold"]) for part in parts]).astype(float)


def _drawn(sums: Float[np.ndarray, "2 head fold"], draw: np.random.Generator) -> Float[np.ndarray, "draw head"]:
    """Scores on folds drawn with replacement from those that have any; 0 where nothing is left to divide by."""
    sums = sums[..., sums[1].any(0)]
    folds = sums.shape[-1]
    times = draw.multinomial(folds, np.full(folds, 1 / folds), DRAWS)
    hits, of = sums @ times.T
    return np.asarray((hits / np.maximum(of, 1)).T)


def _check_comparable(one: xr.Dataset, other: xr.Dataset) -> None:
    """Refuse tables whose heads have nothing to do with each other, and those of one corpus."""
    shapes = [
        " and ".join(f"{table.sizes[dim]} {dim}s" for dim in ("stack", "layer", "head") if dim in table.sizes)
        for table in (one, other)
    ]
    if shapes[0] != shapes[1]:
        raise TableError(f"one table has {shapes[0]} and the other {shapes[1]}; measure one model on two corpora.")
    models, weights, corpora, texts = (
        [table.attrs.get(key) for table in (one, other)]
        for key in ("model", "weights_sha256", "corpus", "corpus_sha256")
    )
    if weights[0] != weights[1]:
        raise TableError(
            f"the weights of the tables differ: those of {models[0]!r} are {str(weights[0])[:12]}..., and those of "
            f"{models[1]!r} {str(weights[1])[:12]}...; measure one model on two corpora."
        )
    if texts[0] == texts[1]:
        raise TableError(f"both tables are of the corpus {corpora[0]!r}; measure one model on two corpora.")
