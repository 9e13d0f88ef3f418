"""Effects of disabling units as a head table: each effect with its interval, its p-value and its placebos.

Effects of heads are named ``effect_<metric>``, effects of layers ``layer_effect_<metric>``, of key/value heads
``group_effect_<metric>``, and of pairs of heads ``pair_effect_<metric>``. `STATISTICS` has the endings of these names.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float

from headscope.analyse.effects import (
    Effects,
    Quantities,
    compare_with_placebos,
    compute_effects,
    correct_by_sign_flips,
    rank_agreement,
)
from headscope.analyse.ends import BY_TEXT, ENDS, describe_ends, make_ends
from headscope.analyse.metrics import ATTRIBUTE, Metric, describe_metrics
from headscope.heads import Described, describe, variable

STATISTICS: Mapping[str, str] = {
    **describe_ends("change of the {title} with the {unit} disabled", BY_TEXT),
    "_p_corrected": "p-value of no change, by random signs of the texts, corrected for all of its kind",
    **describe_ends(
        "mean change with placebos of the {unit}: changes of the same norm in the same layer",
        "where 95 % of its placebos lie", "_placebo",
    ),
    "_placebo_p_corrected": "p-value of a change no other than with placebos, corrected for all of its kind",
}  # fmt: skip
"""The endings of the variables' names, and the description of each."""

PREFIXES = {"head": "", "layer": "layer_", "group": "group_", "pair": "pair_"}
"""The beginning of the variables' names, for each kind of unit."""

NOUNS = {"head": "head", "layer": "layer", "group": "key/value head", "pair": "pair of heads"}

SOURCE = "Kovaleva et al. 2019, section 4.6; intervals, p-values and placebos as docs/howto/disable-heads.md says"

FIRST_ORDER = "Molchanov et al. 2017, section 2.2; Syed et al. 2023 (attribution patching)"

TOTAL, DIRECT, DIRECT_LIVE = PATHS = ("total", "direct", "direct_live")
"""The paths of a change: through the whole model; or only through the final norm, with its old scale or a new one."""


@dataclass(frozen=True)
class Place:
    """The position of a unit in a table of effects.

    Attributes:
        kind: ``head``, ``layer``, ``group`` or ``pair``.
        name: The name of the unit as a user writes it.
        attention_type: The attention type; empty if the model has only one.
        layer: The layer, counted from 1; 0 for a pair.
        number: The number of the head or key/value head, counted from 1; 0 for a layer or a pair.
    """

    kind: str
    name: str
    attention_type: str = ""
    layer: int = 0
    number: int = 0


@dataclass(frozen=True)
class Ablated:
    """An ablation, described without the model.

    Attributes:
        place: The unit that was disabled.
        how: The kind of output that replaced the unit's own.
        placebo: The number of the placebo that ran instead; 0 if the unit itself was disabled.
        path: The path on which the change reached the output, one of `PATHS`.
    """

    place: Place
    how: str
    placebo: int = 0
    path: str = TOTAL


@dataclass(frozen=True, eq=False)
class Measured:
    """The result of an evaluation: the quantities of each example with the whole model and with each ablation.

    Attributes:
        metrics: The metrics, the most important first.
        whole: The quantities of each example with the whole model.
        disabled: The quantities of each example with each of `ablations`.
        ablations: The ablations that were run.
        norms: The norm of the change that each ablation makes.
        clusters: The text of each example.
        subsets: Masks of parts of the examples; the first part has all examples.
        sizes: The number of layers, of heads in a layer, and of key/value heads in a layer.
        attention_types: The attention types of the model.
        smooth: The name of the metric that has first-order estimates.
        estimated: The ablations that have first-order estimates.
        estimates: The quantities of each example with each of `estimated`, by first-order estimates.
        sample: The names of heads that were chosen at random, on which estimates are checked.
    """

    metrics: Sequence[Metric]
    whole: Quantities
    disabled: Quantities
    ablations: Sequence[Ablated]
    norms: Float[np.ndarray, " ablation"]
    clusters: Sequence[str]
    subsets: Mapping[str, Bool[np.ndarray, " example"]]
    sizes: Mapping[str, int]
    attention_types: Sequence[str]
    smooth: str
    estimated: Sequence[Ablated]
    estimates: Quantities
    sample: Sequence[str]

    def on_path(self, path: str) -> "Measured":
        """Return a copy with only the ablations on one path."""
        chosen = [number for number, ablation in enumerate(self.ablations) if ablation.path == path]
        return replace(
            self, ablations=[self.ablations[number] for number in chosen], norms=self.norms[chosen],
            disabled={name: quantities[chosen] for name, quantities in self.disabled.items()},
        )  # fmt: skip


def tabulate_effects(measured: Measured) -> xr.Dataset:
    """Tabulate the total effects of an evaluation as a head table, without attributes about its origin."""
    measured = measured.on_path(TOTAL)
    ways = list(dict.fromkeys(ablation.how for ablation in measured.ablations))
    kinds = list(dict.fromkeys(ablation.place.kind for ablation in measured.ablations))
    coords: dict[str, Any] = {
        "layer": np.arange(1, measured.sizes["layer"] + 1), "head": np.arange(1, measured.sizes["head"] + 1),
        "how": ways, "how_other": ways, "subset": [*measured.subsets],
    }  # fmt: skip
    table = xr.Dataset(coords=coords)
    for metric in measured.metrics:
        table = table.assign(_tabulate_whole(measured, metric))
        for kind in kinds:
            table = _assign(table, _tabulate_kind(measured, metric, kind, ways))
        if "head" in kinds and len(ways) > 1:
            table = table.assign(_tabulate_agreement(table, metric))
        if metric.name == measured.smooth:
            table = _assign(table, _tabulate_estimates(measured, metric, ways))
            table = table.assign(_check_estimates(table, measured, metric))
        if "pair" in kinds:
            table = table.assign(_tabulate_interactions(measured, metric, ways))
    return table.assign_attrs({ATTRIBUTE: describe_metrics(measured.metrics)})


def _assign(table: xr.Dataset, new: xr.Dataset) -> xr.Dataset:
    return table.assign_coords(new.coords).assign(new.data_vars)


def _tabulate_whole(measured: Measured, metric: Metric) -> dict[str, xr.Variable]:
    none = {name: values[None, :][:0] for name, values in measured.whole.items()}
    values, examples, texts = [], [], []
    for subset in measured.subsets.values():
        values.append(compute_effects(metric, measured.whole, none, measured.clusters, subset).whole)
        examples.append(int(subset.sum()))
        texts.append(len(set(np.asarray(measured.clusters)[subset])))
    described: dict[str, Described] = {
        f"whole_{metric.name}": (values, ["subset"], f"{metric.title} of the whole model", metric.units),
        "examples": (examples, ["subset"], "number of examples", "examples"),
        "texts": (texts, ["subset"], "number of texts that the examples are from", "texts"),
    }
    return describe(described, SOURCE)


def _tabulate_kind(measured: Measured, metric: Metric, kind: str, ways: Sequence[str]) -> xr.Dataset:
    """Return the effects of the units of one kind, by all ways of disabling them and on all subsets."""
    grid = Grid.for_kind(measured, kind)
    values = {end: np.full((len(ways), len(measured.subsets), *grid.shape), np.nan) for end in STATISTICS}
    norms = np.full((len(ways), *grid.shape), np.nan)
    for way, how in enumerate(ways):
        own = [n for n, each in enumerate(measured.ablations) if (each.place.kind, each.how) == (kind, how)]
        units = np.array([n for n in own if not measured.ablations[n].placebo], dtype=int)
        if not len(units):
            continue
        places = [measured.ablations[n].place for n in units]
        cells = tuple(np.array([grid.find(place) for place in places]).T)
        norms[(way, *cells)] = measured.norms[units]
        for number, subset in enumerate(measured.subsets.values()):
            chosen = {name: quantities[own] for name, quantities in measured.disabled.items()}
            effects = compute_effects(metric, measured.whole, chosen, measured.clusters, subset)
            for end, statistic in _compute_statistics(measured, metric, effects, own, units).items():
                values[end][(way, number, *cells)] = statistic
    noun, prefix, dims = NOUNS[kind], PREFIXES[kind], grid.dims
    new = {
        f"{prefix}effect_{metric.name}{end}": variable(
            values[end], ["how", "subset", *dims],
            name=text.format(title=metric.title, unit=noun), units="probability" if "_p_" in end else metric.units,
            source=SOURCE,
        )
        for end, text in STATISTICS.items()
        if not np.isnan(values[end]).all()
    }  # fmt: skip
    what = f"norm of what disabling the {noun} changes, root mean square over tokens"
    new[f"{prefix}removed_norm"] = variable(norms, ["how", *dims], name=what, units="norm of a vector", source=SOURCE)
    return xr.Dataset(new, coords=grid.coords)


def _compute_statistics(
    measured: Measured, metric: Metric, effects: Effects, own: Sequence[int], units: np.ndarray
) -> dict[str, np.ndarray]:
    """Compute the `STATISTICS` of units of one kind for one way of disabling them.

    Args:
        measured: The result of the evaluation.
        metric: The metric.
        effects: The effects of the units and of their placebos.
        own: The indices of these units and placebos in the ablations.
        units: The indices of the units in the ablations.

    Returns:
        The statistics by ending, without the endings of placebos if a unit has fewer than two placebos, and without the
        p-value of no change for a divergence.
    """
    place_of = {ablation: number for number, ablation in enumerate(own)}
    of_units = effects.select(np.array([place_of[n] for n in units]))
    lower, upper = of_units.interval()
    statistics = {"": of_units.values, "_lower": lower, "_upper": upper}
    if metric.better:  # a divergence is above 0 whatever is disabled
        statistics["_p_corrected"] = correct_by_sign_flips(of_units)
    groups = [
        np.array([place_of[n] for n in own if measured.ablations[n].placebo and measured.ablations[n].place == place])
        for place in (measured.ablations[unit].place for unit in units)
    ]
    if min(len(group) for group in groups) < 2:
        return statistics
    layers = [(measured.ablations[n].place.attention_type, measured.ablations[n].place.layer) for n in units]
    norms, log = measured.norms[units], not metric.better
    beside = compare_with_placebos(of_units, effects, groups, layers, norms, log=log)
    return statistics | {
        "_placebo": beside.mean, "_placebo_lower": beside.lower, "_placebo_upper": beside.upper,
        "_placebo_p_corrected": beside.p,
    }  # fmt: skip


def _tabulate_estimates(measured: Measured, metric: Metric, ways: Sequence[str]) -> xr.Dataset:
    """Return the first-order estimates of the effects of heads, as a table."""
    grid = Grid.for_kind(measured, "head")
    values = np.full((len(ways), len(measured.subsets), *grid.shape), np.nan)
    cells = tuple(np.array([(ways.index(each.how), *grid.find(each.place)) for each in measured.estimated]).T)
    for number, subset in enumerate(measured.subsets.values()):
        effects = compute_effects(metric, measured.whole, measured.estimates, measured.clusters, subset)
        values[(cells[0], number, *cells[1:])] = effects.values
    name, what = f"first_order_{metric.name}", f"first-order estimate of the change of the {metric.title}"
    described = variable(values, ["how", "subset", *grid.dims], name=what, units=metric.units, source=FIRST_ORDER)
    return xr.Dataset({name: described}, coords=grid.coords)


def _check_estimates(table: xr.Dataset, measured: Measured, metric: Metric) -> dict[str, xr.Variable]:
    """Measure how well estimates agree with real runs, on heads that were not chosen for their estimates.

    A head that was not run is like one more head of this sample. With n heads in the sample, the error of its estimate
    is at most the largest error in the sample with a probability of n / (n + 1).
    """
    exact = f"effect_{metric.name}"
    if exact not in table or not measured.sample:
        return {}
    grid = Grid.for_kind(measured, "head")
    places = dict.fromkeys(a.place for a in measured.ablations if a.place.name in measured.sample)
    cells = tuple(np.array([grid.find(place) for place in places], dtype=int).reshape(-1, len(grid.dims)).T)
    chosen: tuple[Any, ...] = (slice(None), slice(None), *cells)
    runs, estimates = (table[name].values[chosen] for name in (exact, f"first_order_{metric.name}"))
    agreement = np.full(runs.shape[:2], np.nan)
    for index in np.ndindex(agreement.shape):
        agreement[index] = rank_agreement(np.stack([runs[index], estimates[index]]))[0, 1]
    error = np.abs(runs - estimates).max(-1, initial=0.0)
    dims, sample = ["how", "subset"], "on heads that were chosen at random"
    described: dict[str, Described] = {
        f"first_order_agreement_{metric.name}": (
            agreement, dims, f"rank correlation (Spearman) of estimates and effects {sample}", "correlation",
        ),
        f"first_order_error_{metric.name}": (
            error, dims, f"largest difference of an estimate from the effect {sample}", metric.units,
        ),
    }  # fmt: skip
    return describe(described, FIRST_ORDER)


def _tabulate_interactions(measured: Measured, metric: Metric, ways: Sequence[str]) -> dict[str, xr.Variable]:
    """Return the effect of each pair of heads less the sum of the two single effects, with intervals."""
    grid = Grid.for_kind(measured, "pair")
    shape = (len(ways), len(measured.subsets), *grid.shape)
    values = np.full((len(ENDS), *shape), np.nan)
    number_of = {(a.how, a.place.name): n for n, a in enumerate(measured.ablations) if not a.placebo}
    for cell in np.ndindex(shape):
        how, subset, pair = ways[cell[0]], [*measured.subsets.values()][cell[1]], grid.coords["pair"][cell[2]]
        numbers = [number_of[how, name] for name in (pair, *pair.split("+"))]
        chosen = {name: quantities[numbers] for name, quantities in measured.disabled.items()}
        effects = compute_effects(metric, measured.whole, chosen, measured.clusters, subset)
        both, first, second = (effects.select(np.array([place])) for place in range(3))
        interaction = both.less(first).less(second)
        values[:, *cell] = np.concatenate([interaction.values, *interaction.interval()])
    what = f"change of the {metric.title} with both heads disabled, less the sum of the changes with one"
    name, dims = f"pair_interaction_{metric.name}", ["how", "subset", *grid.dims]
    return make_ends(name, values, dims, what=what, units=metric.units, source=SOURCE)


def _tabulate_agreement(table: xr.Dataset, metric: Metric) -> dict[str, xr.Variable]:
    """Return the rank correlation of the heads' effects between each two ways of disabling them, on all examples."""
    by_way = table[f"effect_{metric.name}"].isel(subset=0).values.reshape(table.sizes["how"], -1)
    known = ~np.isnan(by_way).any(0)
    name = f"rank_agreement_{metric.name}"
    what = "rank correlation (Spearman) of the effects of all heads in two ways"
    values = rank_agreement(by_way[:, known])
    return {name: variable(values, ["how", "how_other"], name=what, units="correlation", source=SOURCE)}


@dataclass(frozen=True)
class Grid:
    """The axes along which a table arranges the units of one kind.

    Attributes:
        dims: The names of the axes, in order.
        coords: The labels of each axis.
    """

    dims: tuple[str, ...]
    coords: Mapping[str, Sequence[Any]]

    @classmethod
    def for_kind(cls, measured: Measured, kind: str) -> "Grid":
        """Return the grid of all units of a kind in the model; for pairs, the grid of the measured pairs."""
        if kind == "pair":
            names = dict.fromkeys(a.place.name for a in measured.ablations if a.place.kind == kind)
            return cls(("pair",), {"pair": [*names]})
        types = {"attention_type": [*measured.attention_types]} if len(measured.attention_types) > 1 else {}
        inner = {"head": ("layer", "head"), "layer": ("layer",), "group": ("layer", "key_value_head")}[kind]
        coords = types | {dim: [*range(1, measured.sizes[dim] + 1)] for dim in inner}
        return cls((*types, *inner), coords)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of labels of each axis."""
        return tuple(len(self.coords[dim]) for dim in self.dims)

    def find(self, place: Place) -> tuple[int, ...]:
        """Return the index of a unit on each axis, counted from 0."""
        where = {
            "pair": place.name, "attention_type": place.attention_type, "layer": place.layer, "head": place.number,
            "key_value_head": place.number,
        }  # fmt: skip
        return tuple(list(self.coords[dim]).index(where[dim]) for dim in self.dims)
