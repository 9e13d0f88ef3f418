"""How sure we are of a head's accuracy, and of having found the right head."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import and_

import numpy as np
import xarray as xr
from scipy.stats import t as student

from headscope import heads
from headscope.errors import TableError

LEVEL = 0.95
MINIMUM = 20
"""Links that each half of the corpus must hold before a head is reported for a relation."""

HALVES = 100
"""Random halves of the corpus that are asked for their best head."""

SOURCE = "headscope"
SPLIT = (
    "The documents are dealt to {folds} folds by a hash of {unit}. The head (and its direction), the offset and the "
    "twin's head are chosen on the even folds and scored on the odd ones. The folds are the clusters of the intervals: "
    "{clusters}"
)
"""How the reported numbers are made; stored in the table and shown beside them."""

_UNITS = {
    "text": (
        "the text that they come from",
        "what comes from one text lies in one fold, so the intervals allow for texts that differ.",
    ),
    "document": (
        "their names, since they come from few texts",
        "documents are taken as independent, and where those of one text resemble each other the intervals are too "
        "narrow.",
    ),
}
"""What is dealt, and what follows for the intervals."""

_CHOOSE, _SCORE = slice(0, None, 2), slice(1, None, 2)
_HEAD = ("layer", "head", "direction")


@dataclass(frozen=True)
class Counts:
    """Links got right and links that there are, in each fold of the corpus; or any two sums whose ratio is a score."""

    right: xr.DataArray
    links: xr.DataArray

    @classmethod
    def of(cls, table: xr.Dataset, right: str, links: str = "fold_link") -> "Counts":
        """The sums of these names."""
        return cls(*_sums(table, right, links))

    @classmethod
    def of_f1(cls, table: xr.Dataset, hits: str, said: str, gold: str) -> "Counts":
        """The sums of an F1: the ratio of twice the hits to what is said and what is so, together."""
        found, answers, so = _sums(table, hits, said, gold)
        return cls(2 * found, answers + so)

    def at(self, **place: xr.DataArray) -> "Counts":
        """The counts of one choice (of head or offset), for each relation if there are several."""
        return Counts(*(v.sel({d: i for d, i in place.items() if d in v.dims}) for v in vars(self).values()))

    def half(self, folds: slice) -> "Counts":
        """The counts of some folds."""
        return Counts(self.right.isel(fold=folds), self.links.isel(fold=folds))

    @property
    def accuracy(self) -> xr.DataArray:
        """The share of links got right; NaN where there are none."""
        links = self.links.sum("fold")
        # A head that a stack does not have is NaN, and stays so.
        return self.right.sum("fold", skipna=False) / links.where(links > 0)

    def interval(self, level: float = LEVEL) -> tuple[xr.DataArray, xr.DataArray]:
        """A confidence interval for the accuracy, clustered by fold.

        Links of one text are not independent, and folds hold whole texts (or, where there are few,
        whole documents). The variance of the ratio of two sums over folds is estimated by
        linearisation (Cochran 1977, section 6.3; the sandwich estimator of a regression on a
        constant, with the factor m/(m-1) for m folds that have links). Compared with the variance
        under independence it gives the number of independent links that would tell as much, never
        more than there are, and with that number comes Wilson's interval (1927), which stays between
        0 and 1 and is not empty where a head is always right. Its quantile is Student's with m-1
        degrees of freedom: the normal one is too narrow for few clusters.

        Simulated (correlation 0.3 within clusters), an interval of 95 % covers the truth in 93 to
        96 % for 5 to 151 clusters and accuracies of 0.1 to 0.9; near 0 or 1, with few clusters,
        in less (0.98 with 50 clusters: 88 %).
        """
        p, links = self.accuracy, self.links.sum("fold")
        n, m = links.where(links > 0), (self.links > 0).sum("fold")
        residuals = ((self.right - p * self.links) ** 2).sum("fold", skipna=False)
        clustered = residuals / n**2 * (m / (m - 1).where(m > 1))
        independent = p * (1 - p) / n
        effect = (clustered / independent.where(independent > 0)).clip(min=1).fillna(1)
        # One fold alone says nothing about the spread between folds.
        effective = (n / effect).where(m > 1)
        z2 = xr.apply_ufunc(student.ppf, (1 + level) / 2, (m - 1).where(m > 1)) ** 2
        centre = (p + z2 / (2 * effective)) / (1 + z2 / effective)
        half = np.sqrt(z2 * (p * (1 - p) + z2 / (4 * effective)) / effective) / (1 + z2 / effective)
        return (centre - half).clip(min=0), (centre + half).clip(max=1)


@dataclass(frozen=True)
class _Score:
    """A score that heads have, and how it is reported.

    Attributes:
        variable: its name in the table.
        prefix: what stands before the names of the variables that report it.
        name: what it is called in them.
        of: what is scored.
        count: the variable that says how many there are, and how the documents were dealt.
        heads, offsets: its sums in a table, for heads and for fixed offsets.
    """

    variable: str
    prefix: str
    name: str
    of: str
    count: str
    heads: Callable[[xr.Dataset], Counts]
    offsets: Callable[[xr.Dataset], Counts]


_SCORES = (
    _Score(
        "relation_accuracy", "", "accuracy", "links", "fold_link",
        lambda table: Counts.of(table, "fold_correct"),
        lambda table: Counts.of(table, "fold_offset"),
    ),
    _Score(
        "antecedent_accuracy", "antecedent_", "accuracy", "mentions", "fold_antecedent",
        lambda table: Counts.of(table, "fold_antecedent_correct", "fold_antecedent"),
        lambda table: Counts.of(table, "fold_antecedent_offset", "fold_antecedent"),
    ),
    _Score(
        "scope_f1", "scope_", "f1", "words", "fold_scope",
        lambda table: Counts.of_f1(table, "fold_scope_said_hits", "fold_scope_said", "fold_scope"),
        lambda table: Counts.of_f1(table, "fold_scope_near_hits", "fold_scope_near", "fold_scope"),
    ),
)  # fmt: skip

SCORES = tuple(score.variable for score in _SCORES)
"""The scores of a table for which there are intervals and reported heads."""


def with_intervals(table: xr.Dataset) -> xr.Dataset:
    """`table` with the interval of every ``relation_accuracy``, ``antecedent_accuracy`` and ``scope_f1``.

    Raises:
        TableError: it has none of them, or lacks their sums.
    """
    new = {}
    for score in _scored(table):
        dims = table[score.variable].dims
        for end, values in zip(("lower", "upper"), score.heads(table).interval(), strict=True):
            what = f"{end} end of the 95 % interval"
            new[f"{score.variable}_{end}"] = _described(values.transpose(*dims), what, f"share of {score.of}")
    return table.assign(new)


def with_report(table: xr.Dataset, twin: xr.Dataset | None = None, *, minimum: int = MINIMUM) -> xr.Dataset:
    """`table` with the head to report for each relation, class of mentions and negation scope, beside its baselines.

    The best of many heads looks better than it is on the very links on which it was chosen (the
    best of 288 chance predictors at 0.20 shows 0.32 on 100 links). So the head, its direction and
    the fixed offset are chosen on one half of the documents and scored on the other; the same is
    done with the heads of a random-weights twin.

    Args:
        table: with the sums that the reducers ``relations``, ``coreference`` and ``scope`` keep.
        twin: the same for a model of the same shape with random weights, on the same corpus.
        minimum: links that each half must hold; rarer relations get no head (layer and head 0).

    Returns:
        The table with, for each relation, ``reported_layer``, ``reported_head``, ``reported_direction``
        (and ``reported_stack``), ``reported_again`` (whether the other half would have chosen the same),
        ``reported_wins`` (the share of 100 random halves that would),
        ``heldout_accuracy|lower|upper|count``, ``heldout_offset``, ``heldout_offset_accuracy|lower|upper``, and
        ``twin_accuracy|lower|upper``; for each class of mentions the same with ``antecedent_`` before, and for
        negation scope with ``scope_`` before and F1 for accuracy.

    Raises:
        TableError: the table has none of these scores, or lacks their sums.
    """
    new: dict[str, xr.Variable] = {}
    if twin is not None and "relation" in table.dims:
        twin = twin.reindex(relation=table["relation"])
    found = _scored(table)
    for score in found:
        twins = None if twin is None else score.heads(twin)
        new |= _report(score, score.heads(table), score.offsets(table), twins, minimum)
    unit, clusters = _UNITS[table[found[0].count].attrs.get("dealt_by", "text")]
    split = SPLIT.format(folds=table.sizes["fold"], unit=unit, clusters=clusters)
    return table.assign(new).assign_attrs(split=split)


def _report(
    score: _Score, counts: Counts, offsets: Counts, twins: Counts | None, minimum: int
) -> dict[str, xr.Variable]:
    """The variables that report one score."""
    place = _best(counts.half(_CHOOSE))
    held = counts.half(_SCORE).at(**place)
    # The links of a relation are the same for all heads; what an F1 is of is not.
    there = [counts.half(half).at(**place).links.sum("fold") for half in (_CHOOSE, _SCORE)]
    enough = (there[0] >= minimum) & (there[1] >= minimum)
    again = _best(counts.half(_SCORE))
    same = _same(place, again)
    offset = _best(offsets.half(_CHOOSE), dims=("offset",))
    new = {
        f"reported_{dim}": _described(
            chosen.where(enough, "" if chosen.dtype.kind == "U" else 0), f"{dim} of the reported head", "label"
        )
        for dim, chosen in place.items()
    }
    new["reported_again"] = _described(
        (same & enough).astype(np.int8), "1 if the other half chooses the same head", "flag"
    )
    new["reported_wins"] = _described(
        _wins(counts, place).where(enough), "random halves that choose the same head", "share of halves"
    )
    new["heldout_count"] = _described(there[1].where(enough, 0), f"{score.of} on which the head is scored", score.of)
    new["heldout_offset"] = _described(offset["offset"].where(enough, 0), "best fixed offset", "words")
    scores = {
        "heldout": (held, f"{score.name} of the reported head on the half it was not chosen on"),
        "heldout_offset": (
            offsets.half(_SCORE).at(**offset),
            f"{score.name} of the best fixed offset, chosen and scored likewise",
        ),
    }
    if twins is not None:
        best = twins.half(_SCORE).at(**_best(twins.half(_CHOOSE)))
        scores["twin"] = (best, f"{score.name} of the best head of a random-weights twin, chosen and scored likewise")
    for name, (scored, what) in scores.items():
        lower, upper = scored.interval()
        ends = {
            score.name: (scored.accuracy, what),
            "lower": (lower, f"{what}: lower end of the 95 % interval"),
            "upper": (upper, f"{what}: upper end of the 95 % interval"),
        }
        new |= {
            f"{name}_{end}": _described(values.where(enough), text, f"share of {score.of}")
            for end, (values, text) in ends.items()
        }
    return {f"{score.prefix}{name}": values for name, values in new.items()}


def _wins(counts: Counts, place: Mapping[str, xr.DataArray]) -> xr.DataArray:
    """The share of random halves of the folds on which the head at `place` is the best."""
    draw, folds = np.random.default_rng(0), counts.links.sizes["fold"]
    halves = xr.DataArray([draw.permutation(folds) < folds // 2 for _ in range(HALVES)], dims=("half", "fold")).astype(
        float
    )
    right, links = xr.dot(counts.right, halves, dim="fold"), xr.dot(counts.links, halves, dim="fold")
    best = _best_of(right / links.where(links > 0))
    return _same(place, best).mean("half")


def _same(one: Mapping[str, xr.DataArray], other: Mapping[str, xr.DataArray]) -> xr.DataArray:
    """Whether two choices are of the same head."""
    return reduce(and_, (one[dim] == other[dim] for dim in one))


def _scored(table: xr.Dataset) -> list[_Score]:
    """The scores that heads have in a table."""
    found = [score for score in _SCORES if score.variable in table]
    if not found:
        raise TableError(
            f"the head table has none of {', '.join(SCORES)}; measure `relations`, `coreference` or `scope` first."
        )
    return found


def _sums(table: xr.Dataset, *names: str) -> list[xr.DataArray]:
    missing = [name for name in names if name not in table]
    if missing:
        raise TableError(f"the head table has no {missing[0]}, from which the uncertainty follows; measure again.")
    return [table[name] for name in names]


def _best(counts: Counts, dims: tuple[str, ...] | None = None) -> dict[str, xr.DataArray]:
    """The coordinates of the best score, for each relation if there are several; the first of equals."""
    return _best_of(counts.accuracy, dims)


def _best_of(scores: xr.DataArray, dims: tuple[str, ...] | None = None) -> dict[str, xr.DataArray]:
    dims = dims or tuple(dim for dim in ("stack", *_HEAD) if dim in scores.dims)
    flat = scores.fillna(-1).stack(place=dims)
    where = flat.argmax("place")
    return {dim: flat[dim].isel(place=where).drop_vars(["place", *dims], errors="ignore") for dim in dims}


def _described(values: xr.DataArray, name: str, units: str) -> xr.Variable:
    return heads.variable(values.values, [str(d) for d in values.dims], name=name, units=units, source=SOURCE)
