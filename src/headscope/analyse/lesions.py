"""The lesion map: the examples on which a model gets worse without a relation's heads than without other heads.

The heads of each set are disabled together. The same is done with random sets that have the same number of heads,
either in each layer or in total. The *lesion* of a set is what it changes beyond its random sets; it counts if no
random set is as bad (`rank_test`). Two sets that each harm what the other does not are a double dissociation.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Literal, TypeAlias

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Bool, Float, Int

from headscope.analyse import student
from headscope.analyse.effects import NEGLIGIBLE, Quantities, compute_effects
from headscope.analyse.ends import BY_TEXT, ENDS, INTERVAL, describe_ends, make_ends
from headscope.analyse.folding import is_pooled
from headscope.analyse.metrics import ATTRIBUTE, Metric, describe_metrics, read_metrics
from headscope.analyse.rank import rank_heads
from headscope.analyse.rank_test import Parts
from headscope.analyse.uncertainty import ALPHA
from headscope.corpora.paths import KIND as PATH
from headscope.errors import TableError
from headscope.heads import Described, describe, variable
from headscope.score import Score, read_scores

STATISTICS: Mapping[str, str] = {
    **describe_ends("change of the {title} with the heads of the set disabled together", BY_TEXT),
    "_random": "mean change with its random sets",
    **describe_ends(
        "change with the set less the mean change with random sets", f"{INTERVAL}, by how much random sets differ",
        "_excess",
    ),
    "_p": "p-value of a change that is worse than all that random sets do, corrected for all sets, metrics and subsets",
}  # fmt: skip
"""The endings of the variables ``lesion_<metric>``, and the description of each."""

Match: TypeAlias = Literal["layer", "size"]
BY_LAYER: Match = "layer"
BY_SIZE: Match = "size"
MATCHES: tuple[Match, ...] = (BY_LAYER, BY_SIZE)
"""The property that random sets share with a set: the number of heads in each layer, or the total number of heads."""

MATCH = "match"
"""The attribute of a table of lesions that names the match of its random sets, one of `MATCHES`."""

SUFFERS, UNDECIDED = "suffers", "cannot decide"
"""The verdicts on a subset that a set of heads harms more than random sets do, and on sets with few random sets."""

SOURCE = "headscope"

Subsets: TypeAlias = Mapping[str, Bool[np.ndarray, " example"]]


@dataclass(frozen=True, eq=False)
class MeasuredSets:
    """The result of an evaluation of sets of heads: the quantities of each example with and without each set.

    Attributes:
        metrics: The metrics, the most important first.
        whole: The quantities of each example with the whole model.
        disabled: The quantities of each example in each run: for each set, the set itself and then its random sets.
        of_set: The number of the set that each run belongs to.
        sets: The heads of each set, by its name: attention type, layer and head, counted from 1.
        others: For each set, the number of other sets that match it.
        p: The p-values of `draw_until_decided`, for each part of `measure_harm`.
        norms: The norm of what disabling the heads changes in each run, in the order of `disabled`.
        clusters: The text of each example.
        subsets: Masks of parts of the examples; the first part has all examples.
        sizes: The number of layers, and of heads in a layer.
        attention_types: The attention types of the model.
    """

    metrics: Sequence[Metric]
    whole: Quantities
    disabled: Quantities
    of_set: Int[np.ndarray, " run"]
    sets: Mapping[str, Sequence[tuple[str, int, int]]]
    others: Sequence[int]
    p: Float[np.ndarray, "set part"]
    norms: Float[np.ndarray, " run"]
    clusters: Sequence[str]
    subsets: Subsets
    sizes: Mapping[str, int]
    attention_types: Sequence[str]


def tabulate_lesions(measured: MeasuredSets) -> xr.Dataset:
    """Tabulate the lesions of an evaluation as a head table, without attributes about its origin."""
    types = {"attention_type": [*measured.attention_types]} if len(measured.attention_types) > 1 else {}
    heads = types | {dim: np.arange(1, measured.sizes[dim] + 1) for dim in ("layer", "head")}
    coords = {"set": [*measured.sets], "set_other": [*measured.sets], "subset": [*measured.subsets], **heads}
    shape = (measured.sizes["layer"], measured.sizes["head"])
    member = np.zeros((len(measured.sets), len(measured.attention_types), *shape), dtype=np.int8)
    for row, of_set in enumerate(measured.sets.values()):
        for kind, layer, head in of_set:
            member[row, measured.attention_types.index(kind), layer - 1, head - 1] = 1
    if not types:
        member = member[:, 0]
    runs = [np.flatnonzero(measured.of_set == row) for row in range(len(measured.sets))]
    norms = [measured.norms[each] for each in runs]
    own, beside = np.array([each[0] for each in norms]), np.array([len(each) - 1 for each in norms])
    norms_beside = np.array([each[1:].sum() / (len(each) - 1 or np.nan) for each in norms])
    # A model of 270 heads has more sets of 27 heads than an integer in a file can hold.
    others = [float(min(count, sys.float_info.max)) for count in measured.others]
    norm = "norm of what disabling the heads changes, root mean square over tokens"
    random = "the same of their random sets, as a mean"
    described: dict[str, Described] = {
        "set_member": (member, ["set", *heads], "1 if a head is in the set", "flag"),
        "set_removed_norm": (own, ["set"], norm, "norm of a vector"),
        "set_removed_norm_random": (norms_beside, ["set"], random, "norm of a vector"),
        "set_random_sets": (beside, ["set"], "random sets that were run", "sets"),
        "set_others": (np.array(others), ["set"], "other sets with as many heads", "sets"),
    }
    new = describe(described, SOURCE)
    judged = [metric.name for metric in measured.metrics if metric.better]
    p = dict(zip(judged, np.split(measured.p, len(judged), axis=1), strict=True))
    for metric in measured.metrics:
        new |= _tabulate_metric(measured, metric, runs, p.get(metric.name, np.nan))
    return xr.Dataset(new, coords=coords).assign_attrs({ATTRIBUTE: describe_metrics(measured.metrics)})


def measure_harm(
    metrics: Sequence[Metric], whole: Quantities, disabled: Quantities, subsets: Subsets
) -> Float[np.ndarray, "run part"]:
    """Return how much worse each run is than the whole model, by each metric and in each subset.

    Metrics without a better direction are left out. A part is a metric and a subset; the subsets of the first metric
    come first.
    """
    judged = [metric for metric in metrics if metric.better]
    return np.concatenate([-each.better * _compute_changes(each, whole, disabled, subsets) for each in judged], axis=1)


def list_parts(metrics: Sequence[Metric], subsets: Subsets) -> Parts:
    """Describe the parts of `measure_harm`: the least spread is half an example, and subsets of one level are alike."""
    times = sum(metric.better != 0 for metric in metrics)
    levels = [name.partition(" ")[0] for name in subsets]
    half = [0.5 / max(1, int(subset.sum())) for subset in subsets.values()]
    return Parts(np.tile(half, times), np.tile([float(levels.count(level)) for level in levels], times))


def _compute_changes(
    metric: Metric, whole: Quantities, disabled: Quantities, subsets: Subsets
) -> Float[np.ndarray, "run subset"]:
    chosen = np.stack([*subsets.values()], axis=1).astype(float)
    sums = ({name: values @ chosen for name, values in each.items()} for each in (whole, disabled))
    with np.errstate(divide="ignore", invalid="ignore"):
        base, without = map(metric.compute, sums)
    return np.asarray(without - base)


def _tabulate_metric(
    measured: MeasuredSets,
    metric: Metric,
    runs: Sequence[Int[np.ndarray, " run"]],
    p: Float[np.ndarray, "set subset"] | float,
) -> dict[str, xr.Variable]:
    sets, shape = len(measured.sets), (len(measured.sets), len(measured.subsets))
    values = {end: np.full(shape, np.nan) for end in STATISTICS}
    between = np.full((len(ENDS), sets, *shape), np.nan)
    whole, examples = np.full(shape[1], np.nan), np.array([int(subset.sum()) for subset in measured.subsets.values()])
    first = {name: each[[of_set[0] for of_set in runs]] for name, each in measured.disabled.items()}
    for place, subset in enumerate(measured.subsets.values()):
        effects = compute_effects(metric, measured.whole, first, measured.clusters, subset)
        whole[place] = effects.whole
        for end, value in zip(ENDS, (effects.values, *effects.interval()), strict=True):
            values[end][:, place] = value
        for other in range(sets):
            less = effects.less(effects.select(np.full(sets, other)))
            between[:, :, other, place] = less.values, *less.interval()
    changes = _compute_changes(metric, measured.whole, measured.disabled, measured.subsets)
    for row, of_set in enumerate(runs):
        for end, statistic in compare_with_random(changes[of_set].T, examples).items():
            values[end][row] = statistic
    values["_p"][:] = p
    new = {
        f"lesion_{metric.name}{end}": variable(
            values[end], ["set", "subset"], name=text.format(title=metric.title),
            units="probability" if end == "_p" else metric.units, source=SOURCE,
        )
        for end, text in STATISTICS.items()
    }  # fmt: skip
    what = f"change of the {metric.title} with the heads of the set disabled less that with those of the other set"
    new |= make_ends(
        f"lesion_{metric.name}_less", between, ["set", "set_other", "subset"], what=what, units=metric.units,
        source=SOURCE, interval=BY_TEXT,
    )  # fmt: skip
    title = f"{metric.title} of the whole model"
    new[f"whole_{metric.name}"] = variable(whole, ["subset"], name=title, units=metric.units, source=SOURCE)
    new["examples"] = variable(examples, ["subset"], name="number of examples", units="examples", source=SOURCE)
    return new


def compare_with_random(
    changes: Float[np.ndarray, "row drawn"], examples: Int[np.ndarray, " row"] | int
) -> dict[str, Float[np.ndarray, " row"]]:
    """Compare the change of a metric by a set with the changes by its random sets.

    The result has the statistics by their endings in `STATISTICS`, such as ``_excess``.

    Args:
        changes: In each row, the change by the set, followed by the changes by its random sets.
        examples: The number of examples of each change. Random sets that differ by less than half an example count
            as if they differed by half an example.
    """
    own, random, count = changes[:, 0], changes[:, 1:], changes.shape[1] - 1
    mean = random.sum(1) / (count or np.nan)
    spread = np.sqrt(((random - mean[:, None]) ** 2).sum(1) / max(1, count - 1))
    error = np.maximum(spread, 0.5 / np.maximum(examples, 1)) * np.sqrt(1 + 1 / max(1, count))
    lower, upper = student.t_interval(own - mean, error, count - 1)
    return {"_random": mean, "_excess": own - mean, "_excess_lower": lower, "_excess_upper": upper}


def find_suffering(table: xr.Dataset, metric: str) -> xr.DataArray:
    """Return True for each set and subset where the metric is worse without the set than without its random sets.

    The p-value, which is corrected for all comparisons, is at most 0.05, and the harm is at least `NEGLIGIBLE`.
    """
    harm = -_sign_of(table, metric) * table[f"lesion_{metric}"]
    return (table[f"lesion_{metric}_p"] <= ALPHA) & (harm >= NEGLIGIBLE)


def find_dissociations(table: xr.Dataset, metric: str, level: str = "phenomenon") -> pd.DataFrame:
    """List the double dissociations: pairs of sets, each of which harms a subset that the other surely harms less.

    Each subset suffers without its own set, by `find_suffering`. And on each subset, the metric is surely worse without
    its own set than without the other set, by an interval that is paired on the same examples.

    Args:
        table: A table from `tabulate_lesions`.
        metric: The name of a metric of the table.
        level: The level of the subsets: ``field``, ``phenomenon`` or ``paradigm``.

    Returns:
        A row for each double dissociation: ``set``, ``subset``, ``set_other``, ``subset_other``, and how much more each
        set harms its own subset than the other set does (``harm`` and ``harm_other``).
    """
    sign, name = _sign_of(table, metric), f"lesion_{metric}_less"
    table = table.sel(subset=[each for each in table["subset"].values if str(each).partition(" ")[0] == level])
    table = table.transpose("set", "set_other", "subset", ...)
    less, *ends = (-sign * table[f"{name}{end}"].values for end in ENDS)
    surely, suffering = np.minimum(*ends), np.argwhere(find_suffering(table, metric).values)
    names, subsets = table["set"].values, table["subset"].values
    rows = [
        (names[own], subsets[mine], names[other], subsets[its], less[own, other, mine], less[other, own, its])
        for (own, mine), (other, its) in permutations(suffering, 2)
        if own < other and surely[own, other, mine] > 0 and surely[other, own, its] > 0
    ]
    return pd.DataFrame(rows, columns=["set", "subset", "set_other", "subset_other", "harm", "harm_other"])


def _sign_of(table: xr.Dataset, metric: str) -> int:
    """Return 1 if a higher value of a metric is better, and -1 otherwise.

    Raises:
        TableError: The table has no such metric.
    """
    better = {each["name"]: each["better"] for each in read_metrics(table)}
    if metric not in better:
        raise TableError(f"the table has no metric {metric!r}; it has {', '.join(better)}.")
    return 1 if better[metric] > 0 else -1


def choose_sets(table: xr.Dataset, size: int, *, rows: Sequence[str] = (), most: int = 8) -> dict[str, list[str]]:
    """Choose the heads with the best scores for each row of a table, such as the five best heads for ``obj``.

    Args:
        table: A head table with its report.
        size: The number of heads of each set.
        rows: The names of rows, such as ``obj``. Default: the most frequent rows that have a reported head, do not pool
            other rows and are not paths; of several rows with the same heads only the first.
        most: The maximum number of rows that are chosen by default.

    Returns:
        The names of the heads by row, as `headscope.disable` reads them.

    Raises:
        TableError: The table has no such row, or no row with a reported head; or the model does not have more heads
            than a set.
    """
    heads = table.sizes["layer"] * table.sizes["head"]
    if not 1 <= size < heads:
        raise TableError(f"sets of {size} heads cannot be compared with others: the model has {heads}; give fewer.")
    places = {
        " ".join(place.values()) or score.title: (score, place)
        for score in read_scores(table)
        if score.has_report and f"{score.report_prefix}reported_layer" in table
        for place in score.places(table)
        if bool(table[f"{score.report_prefix}reported_layer"].sel(place) > 0)
    }
    if not places:
        raise TableError("no row of the table has a reported head; measure on more texts.")
    if unknown := [row for row in rows if row not in places]:
        known = ", ".join([*places][:12])
        raise TableError(f"the table has no row {unknown[0]!r} with a reported head; it has {known}.")
    by_default = not rows
    if by_default:
        count = {name: score.count(table, place) for name, (score, place) in places.items()}
        rows = [
            name
            for name in sorted(count, key=lambda name: -count[name])
            if not is_pooled(name) and not name.startswith(f"{PATH} ")
        ]
    sets: dict[str, list[str]] = {}
    for row in rows:
        chosen = _rank_in_row(table, *places[row])[:size]
        if not by_default or (len(sets) < most and sorted(chosen) not in map(sorted, sets.values())):
            sets[row] = chosen
    return sets


def _rank_in_row(table: xr.Dataset, score: Score, place: Mapping[str, str]) -> list[str]:
    """List the names of the heads, the best first, by their scores for a row in the direction of the reported head."""
    values = table[score.variable].sel(place)
    if score.ascending:
        values = -values
    if "direction" in values.dims:
        values = values.sel(direction=str(table[f"{score.report_prefix}reported_direction"].sel(place).item()))
    return [name for name, _ in rank_heads(values)]
