"""Consistency: do the same heads score well on two corpora?"""

import math
from dataclasses import dataclass

import numpy as np
import scipy
import xarray as xr
from jaxtyping import Float

from headscope.analyse.comparable import check_read_alike, describe_shape, name_table, runs_of, split_runs
from headscope.analyse.rank import values_of_heads
from headscope.analyse.student import LEVEL
from headscope.analyse.uncertainty import ALPHA, sums_of_heads
from headscope.errors import TableError
from headscope.results import Facts, Result
from headscope.score import main_score

RESAMPLED = 1000
"""The number of bootstrap samples of the folds of each corpus."""


@dataclass(frozen=True, repr=False)
class Consistency(Result):
    """The agreement of the scores of a model's heads on two corpora.

    Attributes:
        variable: The score.
        heads: The number of heads that were compared.
        tau: Kendall's tau-b; NaN if all heads have the same score on one corpus.
        p: The p-value of no association if heads were independent. They are not (heads of one layer, heads with the
            same function), so it is too small.
        lower: The lower end of the 95 % interval of tau, for these heads and unlimited texts like the texts of the two
            corpora; NaN if the score is not a ratio of sums by fold that both tables have.
        upper: The upper end of this interval.
    """

    variable: str
    heads: int
    tau: float
    p: float
    lower: float
    upper: float

    @property
    def facts(self) -> Facts:
        """The fields by name."""
        return vars(self)

    def __str__(self) -> str:
        """Return one line with tau, its interval, the p-value and the assumption of the p-value."""
        interval = f"[{self.lower:.3f}, {self.upper:.3f}]"
        return f"{self.variable}: tau {self.tau:.3f} {interval} over {self.heads} heads, {_describe_p(self.p)}"


def consistency(first: xr.Dataset, second: xr.Dataset, variable: str = "") -> Consistency:
    """Measure Kendall's rank correlation between the scores of a model's heads on two corpora.

    A head that marks a relation should mark it in other kinds of text too (Zhao and Bethard 2020, section 4.2; their
    formula leaves out ties, but their figures are tau-b).

    For the interval, the folds of each corpus are resampled with replacement, 1,000 times. Noise in the scores pulls
    tau towards 0, and the bootstrap samples have this noise twice, so their quantiles would be too low. The interval is
    tau less the bootstrap's bias, plus and minus 1.96 times the bootstrap's root mean square error. In simulations with
    little to much noise in the scores, it covers the tau of unlimited texts in 87 to 99 % of the cases (the quantiles:
    in 0 to 88 %).

    Args:
        first: A head table of a model on one corpus.
        second: A head table of the same model on another corpus.
        variable: The name of a variable with one value for each head. If a score has rows or directions, select one in
            both tables first. Default: the score of the tables, if they have only one.

    Raises:
        TableError: The tables have different shapes or weights, or the same corpus; or a table lacks the variable, or
            has more than one value for each head.

    >>> import headscope
    >>> first, second = (headscope.read_table(path) for path in ("stories.nc", "reviews.nc"))  # doctest: +SKIP
    >>> print(headscope.analyse.consistency(first, second))  # doctest: +SKIP
    """
    _check_comparable(first, second)
    variable = variable or main_score(first).variable
    scores = [values_of_heads(table, variable).values.ravel() for table in (first, second)]
    known = np.isfinite(scores).all(0)
    tau, p = _correlate(*(values[known] for values in scores))
    lower, upper, random = math.nan, math.nan, np.random.default_rng(0)
    sums = [part[:, known] for table in (first, second) if (part := sums_of_heads(table, variable)) is not None]
    if len(sums) == 2 and math.isfinite(tau):
        lower, upper = _interval(tau, *(_resample(part, random) for part in sums))
    return Consistency(variable, int(known.sum()), float(tau), float(p), lower, upper)


@dataclass(frozen=True, repr=False)
class Consistencies(Result):
    """The agreement of the scores of the heads on two corpora, in each of several runs.

    Attributes:
        variable: The score.
        heads: The number of heads that were compared.
        runs: The names of the runs; a single empty name if the tables are of a single model.
        taus: Kendall's tau-b of each run.
        ps: The p-value of no association in each run, if heads were independent, which they are not.
    """

    variable: str
    heads: int
    runs: tuple[str, ...]
    taus: tuple[float, ...]
    ps: tuple[float, ...]

    @property
    def facts(self) -> Facts:
        """The mean and the standard deviation of tau, and the figures of each run, by name."""
        figures = {"variable": self.variable, "heads": self.heads, "mean": self.mean, "sd": self.sd}
        return figures | {"runs": self.runs, "taus": self.taus, "ps": self.ps}

    @property
    def mean(self) -> float:
        """The mean of the taus."""
        return float(np.mean(self.taus))

    @property
    def sd(self) -> float:
        """The standard deviation of the taus over these runs (ddof 0), as in table A5 of Zhao and Bethard 2020."""
        return float(np.std(self.taus))

    @property
    def significant(self) -> int:
        """The number of runs with p < 0.05."""
        return sum(p < ALPHA for p in self.ps)

    def __str__(self) -> str:
        """Return one line with the mean tau, its deviation over runs and the number of significant runs."""
        if len(self.taus) == 1:
            return f"{self.variable}: tau {self.mean:.3f} over {self.heads} heads, {_describe_p(self.ps[0])}"
        return (
            f"{self.variable}: tau {self.mean:.3f} ± {self.sd:.3f} over {self.heads} heads, mean and deviation of "
            f"{len(self.taus)} runs, {self.significant} with p < {ALPHA}"
        )


def consistencies(first: xr.Dataset, second: xr.Dataset, variable: str = "") -> Consistencies:
    """Measure Kendall's rank correlation between the scores of the heads on two corpora, in each run.

    This follows Zhao and Bethard 2020, section 6 and tables 4 and A5. To test whether two groups of runs differ, give
    their ``taus`` to `headscope.analyse.rank_sum`.

    Args:
        first: The head table of runs on one corpus, with the dimension ``run``; or the table of a single model.
        second: The head table of the same runs on another corpus.
        variable: The name of a variable with one value for each head. A head without a value on either corpus or in any
            run is left out. Default: the score of the tables, if they have only one.

    Raises:
        TableError: The tables have different shapes, weights or runs, or the same corpus; or a table lacks the
            variable, or has more than one value for each head.
    """
    _check_comparable(first, second)
    _check_same_runs(first, second)
    variable = variable or main_score(first).variable
    pairs = zip(split_runs(first), split_runs(second), strict=True)
    rows = [[values_of_heads(table, variable).values.ravel() for table in pair] for pair in pairs]
    known = np.isfinite(rows).all((0, 1))
    results = [_correlate(*(values[known] for values in row)) for row in rows]
    names = tuple(map(str, first["run"].values)) if "run" in first.dims else ("",)
    taus, ps = ([float(part) for part in parts] for parts in zip(*results, strict=True))
    return Consistencies(variable, int(known.sum()), names, tuple(taus), tuple(ps))


def _correlate(first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    """Return Kendall's tau-b and its p-value; NaN for fewer than two heads."""
    return tuple(scipy.stats.kendalltau(first, second)) if len(first) > 1 else (math.nan, math.nan)


def _describe_p(p: float) -> str:
    return f"p = {p:.3g} if heads were independent, which they are not"


def _check_same_runs(first: xr.Dataset, second: xr.Dataset) -> None:
    """Raise an error if the tables have different runs, or runs with different weights."""
    names = name_table(first, "the first table"), name_table(second, "the second table")
    runs = [list(map(str, table["run"].values)) if "run" in table.dims else [] for table in (first, second)]
    if runs[0] != runs[1]:
        raise TableError(
            f"{names[0]} is of {', '.join(runs[0]) or 'a single model'} and {names[1]} of "
            f"{', '.join(runs[1]) or 'a single model'}; measure the same runs, in the same order, on both corpora."
        )
    weights = [[run.get("weights_sha256") for run in runs_of(table)] for table in (first, second)]
    for name, *pair in zip(runs[0], *weights, strict=False):
        if pair[0] != pair[1]:
            raise TableError(
                f"the weights of the run {name} in {names[0]} are not those in {names[1]}; measure the same runs on "
                "both corpora."
            )


def _interval(
    tau: float, first: Float[np.ndarray, "sample head"], second: Float[np.ndarray, "sample head"]
) -> tuple[float, float]:
    taus = np.array([scipy.stats.kendalltau(*scores).statistic for scores in zip(first, second, strict=True)])
    middle, half = 2 * tau - taus.mean(), scipy.stats.norm.ppf((1 + LEVEL) / 2) * np.sqrt(((taus - tau) ** 2).mean())
    return max(float(middle - half), -1.0), min(float(middle + half), 1.0)


def _resample(sums: Float[np.ndarray, "2 head fold"], random: np.random.Generator) -> Float[np.ndarray, "sample head"]:
    """Return the scores of heads on `RESAMPLED` bootstrap samples of the folds; 0 if the denominator is 0.

    Folds without items are left out first.
    """
    sums = sums[..., sums[1].any(0)]
    folds = sums.shape[-1]
    times = random.multinomial(folds, np.full(folds, 1 / folds), RESAMPLED)
    above, below = sums @ times.T
    return np.asarray((above / np.maximum(below, 1)).T)


def _check_comparable(first: xr.Dataset, second: xr.Dataset) -> None:
    """Raise an error if the tables differ in shapes, weights or the form of their texts, or have the same corpus."""
    shapes = [describe_shape(table) for table in (first, second)]
    if shapes[0] != shapes[1]:
        raise TableError(f"one table has {shapes[0]} and the other {shapes[1]}; measure one model on two corpora.")
    models, weights, corpora, texts = (
        [table.attrs.get(key) for table in (first, second)]
        for key in ("model", "weights_sha256", "corpus", "corpus_sha256")
    )
    if weights[0] != weights[1]:
        raise TableError(
            f"the weights of the tables differ: those of {models[0]!r} are {str(weights[0])[:12]}..., and those of "
            f"{models[1]!r} {str(weights[1])[:12]}...; measure one model on two corpora."
        )
    check_read_alike(first, "the first table", second, "the second")
    if texts[0] == texts[1]:
        raise TableError(f"both tables are of the corpus {corpora[0]!r}; measure one model on two corpora.")
