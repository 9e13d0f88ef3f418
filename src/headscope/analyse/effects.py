"""Effects of disabling units of a model: paired differences on the same examples, clustered by text, and placebos.

A metric may be any function of sums over examples, so its uncertainty is computed by leaving out one text at a time
(the jackknife; Efron and Stein 1981). Both the whole and the disabled model then lack this text, so the difficulty of a
text for both cancels out.
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
"""The quantities of examples, by name."""

FLIPS = 9999
"""The number of draws of random signs for the texts, with which an effect is compared."""

NEGLIGIBLE = 0.0005
"""Smaller effects are not judged: three decimals do not show them, and with enough texts any effect is significant."""

LEAST = 1e-12
"""Smaller divergences come from rounding."""


@dataclass(frozen=True, eq=False)
class Effects:
    """The change of a metric with each unit disabled.

    Attributes:
        whole: The metric of the whole model.
        values: The metric with a unit disabled, less the metric of the whole model.
        parts: The jackknife's pseudo-values, one for each text; their mean is the effect, apart from the metric's
            curvature.
        changes: For each text, the part of the effect that is lost if this text keeps its quantities from the whole
            model.
        freedom: The degrees of freedom of an interval: 1 less than the number of texts with equally many examples that
            would carry the same information as these texts.
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
        """Return a confidence interval for each effect, by Student's t."""
        return t_interval(self.values, self.error, self.freedom, level)

    def log(self) -> "Effects":
        """Return the logarithms of effects that are never below 0, such as divergences, by the delta method."""
        values = np.maximum(self.values, LEAST)
        parts = np.log(values)[:, None] + (self.parts - self.values[:, None]) / values[:, None]
        return Effects(self.whole, np.log(values), parts, self.changes / values[:, None], self.freedom)

    def less(self, other: "Effects") -> "Effects":
        """Return these effects minus the effects in `other`, which are on the same texts, paired by text."""
        return self._map(other, lambda mine, theirs: mine - theirs)

    def select(self, units: Int[np.ndarray, " chosen"]) -> "Effects":
        """Return the effects of the selected units."""
        return self._map(self, lambda mine, _: mine[units])

    def average(self, groups: Sequence[Int[np.ndarray, " member"]]) -> "Effects":
        """Return the mean effect of each group of units."""
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
    """Compute the change of a metric with each unit disabled, on a subset of the examples.

    Args:
        metric: A function of sums of quantities.
        whole: The quantities of each example with the whole model.
        disabled: The quantities of each example with each unit disabled.
        clusters: The text of each example.
        subset: The examples that count.
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
    """Return the metric without each text in turn, followed by the metric with all texts."""
    total = {name: values.sum(-1, keepdims=True) for name, values in sums.items()}
    return metric.compute(
        {name: np.concatenate([total[name] - values, total[name]], axis=-1) for name, values in sums.items()}
    )


def _put_back(
    metric: Metric, whole: Mapping[str, Float[np.ndarray, " text"]], sums: Mapping[str, Float[np.ndarray, "unit text"]]
) -> Float[np.ndarray, "unit text"]:
    """Return the metric with each unit disabled, if each text in turn keeps its quantities from the whole model."""
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
    """Test each effect against 0; return the p-values, corrected for all units (the family-wise error).

    If a unit does nothing, each text could equally well have changed in the opposite direction (`flip_signs`). This
    holds for texts of any length. The p-values are NaN if there is a single text.
    """
    if effects.changes.shape[1] < 2:
        return np.full(len(effects.changes), np.nan)
    return flip_signs(effects.changes, flips=flips, seed=seed)[1]


@dataclass(frozen=True, eq=False)
class PlaceboComparison:
    """The effects of units compared with the effects of their placebos.

    Attributes:
        mean: The mean effect of the placebos of each unit.
        lower: The lower end of the 95 % interval for the effect of one more placebo.
        upper: The upper end of this interval.
        excess: The effect of each unit less the mean of its placebos.
        p: The p-value of the excess, corrected for all units (Holm 1979).
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
    """Compare the effects of units with the effects of placebos of the same norm in the same layer.

    The variance between placebos, divided by the squared norm of the unit's change, is pooled over the units of a
    layer: the few placebos of a single unit would say little about the variance. The excess of a unit has this
    variance, plus the uncertainty of the examples, which unit and placebos share.

    A divergence grows with the square of the norm, and its spread grows with its size. So divergences are compared on a
    `log` scale, on which the spread of placebos is the same for each norm. The mean of the placebos is then geometric.

    Args:
        effects: The effects of the units.
        placebos: The effects of all placebos.
        groups: The indices of the placebos of each unit, two or more.
        layers: A label for the layer of each unit, such as the attention type and the number; units with equal labels
            are pooled.
        norms: The norm of what disabling each unit changes.
        log: Compare the logarithms of the effects.
        level: The level of the interval.
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
        # A unit that changes nothing, such as a head without output, tells nothing about the spread of placebos.
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
        # The larger variance dominates the degrees of freedom of the sum of both (Welch 1947, Satterthwaite 1946).
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
    """Return the verdict on each unit, such as ``needed``, ``worse without`` or ``better without``.

    A unit is ``needed`` if the metric is surely worse without it, and surely worse than with its placebos; if there are
    no placebos, the verdict is only ``worse without``. ``better without`` is the opposite of both. If neither direction
    of a metric is better, as for the divergence, the verdict is ``matters`` instead; it compares the unit with its
    placebos alone. A sure effect that is not surely larger than the effect of the placebos is ``no more than its
    placebos``. All other effects, and effects below `NEGLIGIBLE`, get ``no effect seen``. A unit without a test is
    ``not tested``.

    Args:
        better: The direction in which the metric is better, as in `Metric`.
        values: The effects.
        p: The corrected p-value of each effect against no effect; NaN if it was not tested.
        placebos: The mean effect of each unit's placebos; NaN without placebos.
        placebo_p: The corrected p-value of each effect against the unit's placebos; NaN without placebos.
    """
    verdicts = []
    for value, against_none, placebo, against_placebos in zip(values, p, placebos, placebo_p, strict=True):
        # A divergence is never tested against no effect.
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
    """Return Spearman's correlation of the units' effects between each two ways of disabling them.

    The correlation is NaN if all units have the same effect by one of the two ways.
    """
    agreement = np.eye(len(values))
    for first in range(len(values)):
        for second in range(first):
            varies = min(np.ptp(values[first]), np.ptp(values[second])) > 0
            correlation = scipy.stats.spearmanr(values[first], values[second]).statistic if varies else np.nan
            agreement[first, second] = agreement[second, first] = correlation
    return agreement
