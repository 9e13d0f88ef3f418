"""Effects of disabling units of a model: paired differences on the same examples, clustered by text, beside placebos.

A metric may be any function of sums over examples, so its uncertainty is found by leaving out one text at a time
(the jackknife; Efron and Stein 1981). Both the whole and the disabled model are then without that text, so what makes
a text hard for both cancels.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from jaxtyping import Bool, Float, Int

from headscope.analyse.metrics import Metric
from headscope.analyse.significance import flip_signs, holm
from headscope.analyse.student import LEVEL, standard_error, t_interval, two_sided_p
from headscope.analyse.uncertainty import ALPHA

Quantities = Mapping[str, Float[np.ndarray, "... example"]]
"""Quantities of examples, by name."""

FLIPS = 9999
"""Random signs of the texts, with which an effect is compared."""

NEGLIGIBLE = 0.0005
"""An effect that three decimals do not show is not judged: with enough texts, the least of them is sure."""

LEAST = 1e-12
"""A divergence that is as small is one of rounding."""


@dataclass(frozen=True, eq=False)
class Effects:
    """The change of a metric with each unit disabled.

    Attributes:
        whole: the metric of the whole model.
        values: the metric with a unit disabled, less that of the whole model.
        parts: the jackknife's pseudo-values, a text each; their mean is the effect, but for the metric's curvature.
        changes: how much of an effect goes away if a text is as by the whole model.
        freedom: degrees of freedom of an interval: one less than the number of texts of equal length that would say as
            much as those that there are.
    """

    whole: float
    values: Float[np.ndarray, " unit"]
    parts: Float[np.ndarray, "unit text"]
    changes: Float[np.ndarray, "unit text"]
    freedom: float

    @property
    def error(self) -> Float[np.ndarray, " unit"]:
        """The standard error of each effect; NaN with a single text."""
        return standard_error(self.parts, axis=1)

    def interval(self, level: float = LEVEL) -> tuple[Float[np.ndarray, " unit"], Float[np.ndarray, " unit"]]:
        """A confidence interval for each effect, by Student's t."""
        return t_interval(self.values, self.error, self.freedom, level)

    def log(self) -> "Effects":
        """The logarithms of effects that are never below 0, such as divergences, by the delta method."""
        values = np.maximum(self.values, LEAST)
        parts = np.log(values)[:, None] + (self.parts - self.values[:, None]) / values[:, None]
        return Effects(self.whole, np.log(values), parts, self.changes / values[:, None], self.freedom)

    def less(self, other: "Effects") -> "Effects":
        """The effects less others on the same texts, which are paired again."""
        return self._map(other, lambda mine, theirs: mine - theirs)

    def select(self, units: Int[np.ndarray, " chosen"]) -> "Effects":
        """Those of some units."""
        return self._map(self, lambda mine, _: mine[units])

    def average(self, groups: Sequence[Int[np.ndarray, " member"]]) -> "Effects":
        """The mean effect of each of some groups of units."""
        return self._map(self, lambda mine, _: np.array([mine[group].mean(0) for group in groups]))

    def _map(self, other: "Effects", change: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> "Effects":
        return Effects(
            self.whole,
            change(self.values, other.values),
            change(self.parts, other.parts),
            change(self.changes, other.changes),
            self.freedom,
        )


def compute_effects(
    metric: Metric,
    whole: Quantities,
    disabled: Quantities,
    clusters: Sequence[str],
    subset: Bool[np.ndarray, " example"],
) -> Effects:
    """The change of a metric on some examples.

    Args:
        metric: a function of sums of quantities.
        whole: the quantities of each example by the whole model.
        disabled: the same, with each unit disabled.
        clusters: the text of each example.
        subset: which examples are counted.
    """
    texts, number = np.unique(np.asarray(clusters)[subset], return_inverse=True)
    sums_whole = {name: _sum_by_text(values[subset], number, len(texts)) for name, values in whole.items()}
    sums = {name: _sum_by_text(values[..., subset], number, len(texts)) for name, values in disabled.items()}
    with np.errstate(divide="ignore", invalid="ignore"):
        base, without = _leave_out(metric, sums_whole), _leave_out(metric, sums)
    effects = without[..., -1] - base[-1]
    parts = len(texts) * effects[:, None] - (len(texts) - 1) * (without[..., :-1] - base[:-1])
    changes = without[..., -1:] - _put_back(metric, sums_whole, sums)
    sizes = np.bincount(number)
    return Effects(float(base[-1]), effects, parts, changes, float(sizes.sum() ** 2 / (sizes**2).sum() - 1))


def _leave_out(metric: Metric, sums: Mapping[str, Float[np.ndarray, "... text"]]) -> Float[np.ndarray, "... left_out"]:
    """The metric without each text in turn, and behind these with all texts."""
    total = {name: values.sum(-1, keepdims=True) for name, values in sums.items()}
    return metric.compute(
        {name: np.concatenate([total[name] - values, total[name]], axis=-1) for name, values in sums.items()}
    )


def _put_back(
    metric: Metric, whole: Mapping[str, Float[np.ndarray, " text"]], sums: Mapping[str, Float[np.ndarray, "unit text"]]
) -> Float[np.ndarray, "unit text"]:
    """The metric with each text in turn as it is by the whole model."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return metric.compute(
            {name: values.sum(-1, keepdims=True) - values + whole[name] for name, values in sums.items()}
        )


def _sum_by_text(
    values: Float[np.ndarray, "... example"], text: Int[np.ndarray, " example"], texts: int
) -> Float[np.ndarray, "... text"]:
    order = np.argsort(text, kind="stable")
    starts = np.searchsorted(text[order], np.arange(texts))
    return np.add.reduceat(values[..., order], starts, axis=-1)


def correct_by_sign_flips(effects: Effects, *, flips: int = FLIPS, seed: int = 0) -> Float[np.ndarray, " unit"]:
    """Return p-values of the effects against no effect, corrected for all units (the family-wise error).

    If a unit does nothing, a text may as well have changed by the opposite (`flip_signs`). That holds for texts of any
    length. NaN with a single text.
    """
    if effects.changes.shape[1] < 2:
        return np.full(len(effects.changes), np.nan)
    return flip_signs(effects.changes, flips=flips, seed=seed)[1]


@dataclass(frozen=True, eq=False)
class PlaceboComparison:
    """The effects of units beside those of their placebos.

    Attributes:
        mean: of the placebos of each unit.
        lower: the least effect that one more placebo would have, at a level of 95 %.
        upper: the largest.
        excess: the effect of each unit less the mean of its placebos.
        p: of the excess, corrected for all units (Holm 1979).
    """

    mean: Float[np.ndarray, " unit"]
    lower: Float[np.ndarray, " unit"]
    upper: Float[np.ndarray, " unit"]
    excess: Float[np.ndarray, " unit"]
    p: Float[np.ndarray, " unit"]


def compare_with_placebos(
    effects: Effects,
    placebos: Effects,
    groups: Sequence[Int[np.ndarray, " member"]],
    layers: Sequence[object],
    norms: Float[np.ndarray, " unit"],
    *,
    log: bool = False,
    level: float = LEVEL,
) -> PlaceboComparison:
    """Return the effects of units beside those of placebos of the same norm in the same layer.

    How much placebos differ from each other is pooled over the units of a layer, in proportion to the norm of what
    they change: a few placebos alone would say little of that. The excess of a unit has that spread, and beside it the
    uncertainty of the examples, which unit and placebos share.

    A divergence grows with the square of the norm, and spreads as much as it is large: it is compared on a `log` scale,
    on which the spread of placebos is the same whatever the norm. The mean of the placebos is then geometric.

    Args:
        effects: of the units.
        placebos: of all placebos.
        groups: the placebos of each unit, two or more.
        layers: the layer of each unit, with its kind: units of one layer and kind are pooled.
        norms: the norm of what disabling the unit changes.
        log: compare the logarithms.
        level: of the interval.
    """
    if log:
        beside = compare_with_placebos(effects.log(), placebos.log(), groups, layers, (norms > 0) * 1.0, level=level)
        mean, lower, upper = map(np.exp, (beside.mean, beside.lower, beside.upper))
        return PlaceboComparison(mean, lower, upper, effects.values - mean, beside.p)
    count = np.array([len(group) for group in groups])
    mean = np.array([placebos.values[group].mean() for group in groups])
    scale = np.where(norms > 0, norms, 1.0)
    spread = np.array([placebos.values[group].var(ddof=1) for group in groups]) / scale**2
    pooled, freedom = np.empty(len(groups)), np.empty(len(groups))
    for layer in set(layers):
        members = np.array([each == layer for each in layers])
        # What changes nothing, such as a head without any output, says nothing of how placebos spread.
        weights = (count - 1) * (norms > 0) * members
        pooled[members] = (spread * weights).sum() / max(1, weights.sum())
        freedom[members] = max(1, weights.sum())
    variance = pooled * scale**2 * (1 + 1 / count)
    lower, upper = t_interval(mean, np.sqrt(variance), freedom, level)
    excess = effects.less(placebos.average(groups))
    of_examples = np.nan_to_num(excess.error) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.sqrt(variance + of_examples)
        statistic = np.where(excess.values == 0, 0.0, excess.values / error)
        # Of the two parts the one that is larger says how sure the sum of them is (Welch 1947, Satterthwaite 1946).
        parts = variance**2 / freedom + of_examples**2 / max(1.0, effects.freedom)
        of_both = np.where(parts > 0, error**4 / parts, 1.0)
    p = holm(two_sided_p(statistic, of_both))
    return PlaceboComparison(mean, lower, upper, excess.values, p)


def judge(
    better: int,
    values: Float[np.ndarray, " unit"],
    p: Float[np.ndarray, " unit"],
    placebos: Float[np.ndarray, " unit"],
    placebo_p: Float[np.ndarray, " unit"],
) -> list[str]:
    """Return the verdict on each unit: ``needed``, ``worse without``, ``better without``, or that nothing was found.

    A unit is needed if the metric is worse without it, surely so, and surely worse than with its placebos; without
    placebos all that can be said is ``worse without``. Of a metric of which neither direction is better, such as the
    divergence, a unit ``matters`` in place of these; it is held against placebos alone. Effects below `NEGLIGIBLE` are
    not judged, and what was not tested is said to be so.

    Args:
        better: as of a `Metric`.
        values: the effects.
        p: corrected, of each effect against none; NaN where that was not tested.
        placebos: the mean effects of each unit's placebos; NaN where there are none.
        placebo_p: corrected, of each effect against those of the unit's placebos; NaN where there are none.
    """
    verdicts = []
    for value, against_none, placebo, against_placebos in zip(values, p, placebos, placebo_p, strict=True):
        # A divergence is never tested against none.
        decisive = against_none if better else against_placebos
        sure = not max(decisive, np.nan_to_num(against_placebos, nan=0.0)) > ALPHA and abs(value) >= NEGLIGIBLE
        # A unit may surely differ from its placebos because it changes less than they do.
        sure = sure and not (value - placebo) * np.sign(value) < 0
        if np.isnan(decisive) or np.isnan(value):
            verdicts.append("not tested")
        elif sure and not better:
            verdicts.append("matters")
        elif sure:
            worse = "worse without" if np.isnan(against_placebos) else "needed"
            verdicts.append(worse if value * better < 0 else "better without")
        elif better and against_none <= ALPHA and abs(value) >= NEGLIGIBLE:
            verdicts.append("no more than its placebos")
        else:
            verdicts.append("no effect seen")
    return verdicts


def rank_agreement(values: Float[np.ndarray, "way unit"]) -> Float[np.ndarray, "way way"]:
    """Spearman's correlation of the effects of the same units in two ways; NaN where a way changes nothing."""
    agreement = np.eye(len(values))
    for first in range(len(values)):
        for second in range(first):
            varies = min(np.ptp(values[first]), np.ptp(values[second])) > 0
            correlation = scipy.stats.spearmanr(values[first], values[second]).statistic if varies else np.nan
            agreement[first, second] = agreement[second, first] = correlation
    return agreement
