"""The lesion map: on which examples a model gets worse without the heads of a relation, beyond other heads.

Each set of heads is disabled together, and so are random sets with as many heads, in each layer or in whatever layers.
What a set changes more than they do is its *lesion*. Two sets that each harm what the other does not are a double
dissociation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Bool, Float

from headscope.analyse import student
from headscope.analyse.effects import Quantities, compute_effects
from headscope.analyse.ends import BY_TEXT, ENDS, INTERVAL, describe_ends, make_ends
from headscope.analyse.folding import is_pooled
from headscope.analyse.metrics import ATTRIBUTE, Metric, describe_metrics, read_metrics
from headscope.analyse.rank import rank_heads
from headscope.analyse.significance import false_discoveries
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
    "_p": "p-value of a change no worse than with one more random set (one-sided)",
    "_q": "false discovery rate at this p-value, over all sets and the subsets of the same level",
}  # fmt: skip
"""The endings of variables ``lesion_<metric>``, and what they are of."""

BY_LAYER, BY_SIZE = MATCHES = ("layer", "size")
"""What random sets have in common with a set: the number of heads in each layer, or the number of heads."""

MATCH = "match"
"""The attribute of a table of lesions that says which of them its random sets have."""

SUFFERS = "suffers"
"""The verdict on a subset that a set of heads harms more than random sets do."""

SOURCE = "headscope"


@dataclass(frozen=True, eq=False)
class MeasuredSets:
    """What an evaluation has given of sets of heads: the quantities of examples, by the whole model and without a set.

    Attributes:
        metrics: the most important first.
        whole: quantities of each example.
        disabled: the same, for each set and behind it its random sets.
        sets: the heads of each set, by name: attention type, layer and head, counted from 1.
        random: random sets of each set.
        norms: of what disabling each changes, as `disabled`.
        clusters: the text of each example.
        subsets: parts of the examples; the first has all.
        sizes: the number of layers, and of heads in a layer.
        attention_types: of the model.
    """

    metrics: Sequence[Metric]
    whole: Quantities
    disabled: Quantities
    sets: Mapping[str, Sequence[tuple[str, int, int]]]
    random: int
    norms: Float[np.ndarray, "set drawn"]
    clusters: Sequence[str]
    subsets: Mapping[str, Bool[np.ndarray, " example"]]
    sizes: Mapping[str, int]
    attention_types: Sequence[str]


def tabulate_lesions(measured: MeasuredSets) -> xr.Dataset:
    """The lesions of an evaluation as a head table, without the attributes that say where it came from.

    A p-value compares a set with its random sets by Student's t with one degree of freedom less than there are of them
    (a prediction interval), so that sets of layers that bear little are not compared with those of others.
    """
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
    norm = "norm of what disabling the heads changes, root mean square over tokens"
    random = "the same of their random sets, as a mean"
    described: dict[str, Described] = {
        "set_member": (member, ["set", *heads], "1 if a head is in the set", "flag"),
        "set_removed_norm": (measured.norms[:, 0], ["set"], norm, "norm of a vector"),
        "set_removed_norm_random": (measured.norms[:, 1:].mean(1), ["set"], random, "norm of a vector"),
    }
    new = describe(described, SOURCE)
    for metric in measured.metrics:
        new |= _tabulate_metric(measured, metric)
    table = xr.Dataset(new, coords=coords)
    return table.assign_attrs({ATTRIBUTE: describe_metrics(measured.metrics), "random_sets": measured.random})


def _tabulate_metric(measured: MeasuredSets, metric: Metric) -> dict[str, xr.Variable]:
    sets, shape = len(measured.sets), (len(measured.sets), len(measured.subsets))
    values = {end: np.full(shape, np.nan) for end in STATISTICS}
    between = np.full((len(ENDS), sets, *shape), np.nan)
    whole, examples = np.full(shape[1], np.nan), np.zeros(shape[1], dtype=int)
    for place, subset in enumerate(measured.subsets.values()):
        effects = compute_effects(metric, measured.whole, measured.disabled, measured.clusters, subset)
        whole[place], examples[place] = effects.whole, int(subset.sum())
        by_set = effects.values.reshape(shape[0], 1 + measured.random)
        ends = [end.reshape(by_set.shape)[:, 0] for end in effects.interval()]
        values[""][:, place], values["_lower"][:, place], values["_upper"][:, place] = by_set[:, 0], *ends
        for end, statistic in compare_with_random(by_set, metric.better, int(examples[place])).items():
            values[end][:, place] = statistic
        own = effects.select(np.arange(sets) * by_set.shape[1])
        for other in range(sets):
            less = own.less(own.select(np.full(sets, other)))
            between[:, :, other, place] = less.values, *less.interval()
    levels = np.array([name.partition(" ")[0] for name in measured.subsets])
    for level in dict.fromkeys(levels):
        at = levels == level
        values["_q"][:, at] = false_discoveries(values["_p"][:, at])
    new = {
        f"lesion_{metric.name}{end}": variable(
            values[end], ["set", "subset"], name=text.format(title=metric.title),
            units="probability" if end in ("_p", "_q") else metric.units, source=SOURCE,
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
    changes: Float[np.ndarray, "set drawn"], better: int, examples: int
) -> dict[str, Float[np.ndarray, " set"]]:
    """The change with each set beside those with its random sets.

    Args:
        changes: of a metric, with the set and behind it with its random sets.
        better: of the metric: 1 if more is better, -1 if less is, 0 if any change is the worse the larger it is.
        examples: on which it was measured. Random sets that differ by less than half an example count as if they
            differed by that much.
    """
    own, random = changes[:, 0], changes[:, 1:]
    count = random.shape[1]
    spread = np.maximum(random.std(1, ddof=1), 0.5 / max(examples, 1))
    error = spread * np.sqrt(1 + 1 / count)
    excess = own - random.mean(1)
    lower, upper = student.t_interval(excess, error, count - 1)
    p = student.cdf(excess * (1 if better > 0 else -1) / error, count - 1)
    return {"_random": random.mean(1), "_excess": excess, "_excess_lower": lower, "_excess_upper": upper, "_p": p}


def find_dissociations(table: xr.Dataset, metric: str, level: str = "phenomenon") -> pd.DataFrame:
    """The double dissociations: of two sets each harms a subset that the other harms less, beyond random sets.

    Both halves must hold, so the p-value of a pair is the larger of the two (intersection-union test: Berger 1982); it
    is corrected for all pairs of sets and of subsets (Benjamini and Hochberg 1995).

    Args:
        table: of `tabulate_lesions`.
        metric: the name of a metric of the table.
        level: of the subsets: ``field``, ``phenomenon`` or ``paradigm``.

    Returns:
        A row for each that has a false discovery rate below 0.05: ``set``, ``subset``, ``set_other``, ``subset_other``,
        how much more each harms its own subset than the other set does (``harm`` and ``harm_other``), ``p`` and ``q``.
    """
    sign, count = _sign_of(table, metric), int(table.attrs["random_sets"])
    subsets = [str(name) for name in table["subset"].values if str(name).partition(" ")[0] == level]
    chosen = table.sel(subset=subsets)
    harm = -sign * chosen[f"lesion_{metric}_excess"].transpose("set", "subset").values
    width = chosen[f"lesion_{metric}_excess_upper"] - chosen[f"lesion_{metric}_excess"]
    error = width.transpose("set", "subset").values / student.half_width(1, count - 1)
    names, rows = [str(name) for name in table["set"].values], []
    for first, second in combinations(range(len(names)), 2):
        difference = harm[first] - harm[second]
        both = np.sqrt(error[first] ** 2 + error[second] ** 2)
        # Welch's degrees of freedom.
        freedom = both**4 / ((error[first] ** 4 + error[second] ** 4) / (count - 1))
        p_first, p_second = student.sf(difference / both, freedom), student.sf(-difference / both, freedom)
        for own, other in permutations(range(len(subsets)), 2):
            p = max(p_first[own], p_second[other])
            rows.append(
                (names[first], subsets[own], names[second], subsets[other], difference[own], -difference[other], p)
            )
    columns = ["set", "subset", "set_other", "subset_other", "harm", "harm_other", "p"]
    frame = pd.DataFrame(rows, columns=columns)
    frame["q"] = false_discoveries(frame["p"].to_numpy(dtype=float))
    return frame[frame["q"] < ALPHA].sort_values("p", kind="stable").reset_index(drop=True)


def _sign_of(table: xr.Dataset, metric: str) -> int:
    """1 if a higher value of a metric is better, and -1 elsewhere."""
    better = {each["name"]: each["better"] for each in read_metrics(table)}
    if metric not in better:
        raise TableError(f"the table has no metric {metric!r}; it has {', '.join(better)}.")
    return 1 if better[metric] > 0 else -1


def choose_sets(table: xr.Dataset, size: int, *, rows: Sequence[str] = (), most: int = 8) -> dict[str, list[str]]:
    """The heads that lead each row of the scores of a table, such as the five that find most objects.

    Args:
        table: a head table with its report.
        size: heads of each set.
        rows: names of rows, such as ``obj``. Default: the most frequent rows with a reported head that pool no others
            and are no paths; of rows with the same heads the first.
        most: rows that are taken by default.

    Returns:
        The names of the heads by row, as `headscope.disable` reads them.

    Raises:
        TableError: the table has no such row, or none with a reported head; or the model has not more heads than a set.
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
    """The names of the heads by their score in a row, in the direction of the reported head, the best first."""
    values = table[score.variable].sel(place)
    if score.ascending:
        values = -values
    if "direction" in values.dims:
        values = values.sel(direction=str(table[f"{score.report_prefix}reported_direction"].sel(place).item()))
    return [name for name, _ in rank_heads(values)]
