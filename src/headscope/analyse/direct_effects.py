"""Direct effects of heads, and the share of them that the layers above undo (self-repair), as a head table.

Disabling a unit changes the output in two ways. *Directly*, the output of the unit is missing where the model reads the
residual stream at its end. *Indirectly*, the layers above read another stream and change what they add. The total
effect includes both. If the layers above make up for what is missing, the total effect is smaller than the direct
effect (McGrath et al. 2023; Rushing and Nanda 2024): *self-repair* is the share of the direct effect that is gone from
the total.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from headscope.analyse.effect_table import DIRECT, DIRECT_LIVE, NOUNS, PATHS, PREFIXES, TOTAL, Grid, Measured
from headscope.analyse.effects import Effects, compute_effects
from headscope.analyse.ends import ENDS, make_ends
from headscope.analyse.metrics import Metric

SOURCE = "McGrath et al. 2023; Rushing and Nanda 2024; intervals as docs/howto/disable-heads.md says"

TEXTS: Mapping[str, str] = {
    "direct_effect": "change of the {title} if only the final norm, scaled as it was, reads what disabling the {unit} "
    "changes",
    "direct_effect_live": "the same, with the final norm scaled anew",
    "self_repair": "share of the direct effect of the {unit} that is gone from the total effect; below 0 where the "
    "total is larger",
}
"""The description of each variable, by the beginning of its name."""


def tabulate_direct_effects(measured: Measured) -> xr.Dataset:
    """Tabulate the direct effects and the self-repair of all units whose direct effects were measured.

    ``direct_effect_<metric>``, ``direct_effect_live_<metric>`` and ``self_repair_<metric>`` are of heads. Layers and
    key/value heads have the prefixes of their other effects. Self-repair is NaN if the interval of the direct effect
    contains 0, and is missing for a divergence. ``self_repair_by_layer_<metric>`` is the self-repair of the summed
    effects of all heads of a layer; these heads were not chosen for their effects.
    """
    table = xr.Dataset()
    ways = list(dict.fromkeys(ablation.how for ablation in measured.ablations))
    for metric in measured.metrics:
        for kind in PREFIXES:
            if any(each.place.kind == kind and each.path == DIRECT for each in measured.ablations):
                new = _tabulate_kind(measured, metric, kind, ways)
                table = table.assign_coords(new.coords).assign(new.data_vars)
    return table


def _tabulate_kind(measured: Measured, metric: Metric, kind: str, ways: Sequence[str]) -> xr.Dataset:
    grid = Grid.for_kind(measured, kind)
    whole_layers = kind == "head" and bool(metric.better)
    shape = (len(ways), len(measured.subsets), *grid.shape)
    values = {name: np.full((len(ENDS), *shape), np.nan) for name in TEXTS}
    by_layer = np.full((len(ENDS), *shape[:-1]), np.nan)
    for way, how in enumerate(ways):
        own = [n for n, a in enumerate(measured.ablations) if (a.place.kind, a.how, a.placebo) == (kind, how, 0)]
        places = [measured.ablations[n].place for n in own if measured.ablations[n].path == DIRECT]
        cells = tuple(np.array([grid.find(place) for place in places], dtype=int).reshape(-1, len(grid.dims)).T)
        for number, subset in enumerate(measured.subsets.values()):
            chosen = {name: quantities[own] for name, quantities in measured.disabled.items()}
            effects = compute_effects(metric, measured.whole, chosen, measured.clusters, subset)
            of_path = {
                path: effects.select(np.array([m for m, n in enumerate(own) if measured.ablations[n].path == path]))
                for path in PATHS
            }
            direct, total = of_path[DIRECT], of_path[TOTAL]
            known = {"direct_effect": direct, "direct_effect_live": of_path[DIRECT_LIVE]}
            if metric.better:  # parts of a divergence do not add up
                known["self_repair"] = _compare(total, direct)
            at: tuple[Any, ...] = (slice(None), way, number)
            for name, each in known.items():
                values[name][(*at, *cells)] = each.values, *each.interval()
            if whole_layers:
                for layer, heads in _find_whole_layers(cells, grid).items():
                    repair = _compare(total.average([heads]), direct.average([heads]))
                    by_layer[(*at, *layer)] = np.concatenate([repair.values, *repair.interval()])
    noun, prefix, dims = NOUNS[kind], PREFIXES[kind], ["how", "subset", *grid.dims]
    share = "share of the direct effect"
    new: dict[str, xr.Variable] = {}
    for name, text in TEXTS.items():
        if name != "self_repair" or metric.better:
            new |= make_ends(
                f"{prefix}{name}_{metric.name}", values[name], dims, what=text.format(title=metric.title, unit=noun),
                units=share if name == "self_repair" else metric.units, source=SOURCE,
            )  # fmt: skip
    if whole_layers:
        what = "share of the direct effects of all heads of a layer, in sum, that is gone from the total effects"
        name = f"self_repair_by_layer_{metric.name}"
        new |= make_ends(name, by_layer, dims[:-1], what=what, units=share, source=SOURCE)
    return xr.Dataset(new, coords=grid.coords)


def _compare(total: Effects, direct: Effects) -> Effects:
    """Return the self-repair, which is 1 less the total effect divided by the direct effect.

    It is NaN if the interval of the direct effect contains 0.

    The uncertainty of the ratio comes from its linear approximation (the delta method).
    """
    lower, upper = direct.interval()
    sure = (lower > 0) | (upper < 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(sure, total.values / direct.values, np.nan)
        parts = (total.parts - ratio[:, None] * direct.parts) / direct.values[:, None]
        changes = (total.changes - ratio[:, None] * direct.changes) / direct.values[:, None]
    return Effects(total.whole, 1 - ratio, 1 - ratio[:, None] - parts, -changes, total.freedom)


def _find_whole_layers(cells: tuple[np.ndarray, ...], grid: Grid) -> Mapping[tuple[int, ...], np.ndarray]:
    """Find the layers whose heads are all among the cells; return for each layer the indices of its heads' cells."""
    of_layer: dict[tuple[int, ...], list[int]] = {}
    for place, (*layer, _) in enumerate(zip(*(axis.tolist() for axis in cells), strict=True)):
        of_layer.setdefault(tuple(layer), []).append(place)
    return {layer: np.array(heads) for layer, heads in of_layer.items() if len(heads) == grid.shape[-1]}
