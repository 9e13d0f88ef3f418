"""Intervals of all scores, and the head to report for each: chosen on one half of the corpus, scored on the other."""

from collections.abc import Mapping
from functools import reduce
from operator import and_

import numpy as np
import xarray as xr

from headscope import heads
from headscope.analyse.regression import with_regression
from headscope.analyse.scores import SCORES, Score, scores_of
from headscope.analyse.significance import false_discoveries, with_significance
from headscope.analyse.uncertainty import Counts

MINIMUM = 20
"""Links that each half of the corpus must hold before a head is reported for a relation."""

HALVES = 100
"""Random halves of the corpus that are asked for their best head."""

SOURCE = "headscope"
SPLIT = (
    "The documents are assigned to {folds} folds by a hash of {unit}. The head (and its direction), the offset and the "
    "untrained model's head are chosen on the even folds and scored on the odd ones. The folds are the clusters of the "
    "intervals: {clusters}"
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
"""What is assigned, and what follows for the intervals."""

_CHOOSE, _SCORE = slice(0, None, 2), slice(1, None, 2)
_HEAD = ("layer", "head", "direction")


def analysed(table: xr.Dataset, untrained: xr.Dataset | None = None) -> xr.Dataset:
    """`table` with all that can be told of the scores that it has; without any, as it is.

    Args:
        table: of any reducers. Of several runs their scores get intervals and nothing else: what runs have in
            common, and whether it is more than chance, is asked of all of them together.
        untrained: the same for a model of the same shape with random weights, on the same corpus.
    """
    if "run" in table.dims:
        return with_intervals(table) if any(score in table for score in SCORES) else table
    if any(score in table for score in SCORES):
        table = with_report(with_significance(with_intervals(table)), untrained)
    return with_regression(table) if "scope_f1" in table else table


def with_intervals(table: xr.Dataset) -> xr.Dataset:
    """`table` with the interval of every ``relation_accuracy``, ``antecedent_accuracy`` and ``scope_f1``.

    Raises:
        TableError: it has none of them, or lacks their sums.
    """
    new = {}
    for score in scores_of(table):
        dims = table[score.variable].dims
        for end, values in zip(("lower", "upper"), score.heads(table).interval(), strict=True):
            what = f"{end} end of the 95 % interval"
            new[f"{score.variable}_{end}"] = _described(values.transpose(*dims), what, f"share of {score.of}")
    return table.assign(new)


def with_report(table: xr.Dataset, untrained: xr.Dataset | None = None, *, minimum: int = MINIMUM) -> xr.Dataset:
    """`table` with the head to report for each relation, class of mentions and negation scope, beside its baselines.

    The best of many heads looks better than it is on the very links on which it was chosen (the
    best of 288 chance predictors at 0.20 shows 0.32 on 100 links). So the head, its direction and
    the fixed offset are chosen on one half of the documents and scored on the other; the same is
    done with the heads of an untrained model.

    Args:
        table: with the sums that the reducers ``relations``, ``coreference`` and ``scope`` keep.
        untrained: the same for a model of the same shape with random weights, on the same corpus.
        minimum: links that each half must hold; rarer relations get no head (layer and head 0).

    Returns:
        The table with, for each relation, ``reported_layer``, ``reported_head``, ``reported_direction``
        (and ``reported_attention_type``), ``reported_again`` (whether the other half would have chosen the same),
        ``reported_selection_frequency`` (the share of 100 random halves that would),
        ``reported_permuted|p|q`` (its score where the gold stands elsewhere, and how likely that is to be as large,
        corrected for all heads, and for the rows of this score that have a head; if there were permutations),
        ``heldout_accuracy|lower|upper|bootstrap_lower|bootstrap_upper|count|detectable``, ``heldout_offset``,
        ``heldout_offset_accuracy|lower|upper``, and ``untrained_accuracy|lower|upper``; for each class of mentions
        the same with ``antecedent_`` before, for each target of aspects with ``aspect_``, and for negation scope
        with ``scope_`` before and F1 for accuracy.

    Raises:
        TableError: the table has none of these scores, or lacks their sums.
    """
    new: dict[str, xr.Variable] = {}
    if untrained is not None and "relation" in table.dims:
        untrained = untrained.reindex(relation=table["relation"])
    found = scores_of(table)
    for score in found:
        untrained_counts = None if untrained is None else score.heads(untrained)
        reported = _report(score, score.heads(table), score.offsets(table), untrained_counts, minimum)
        new |= {f"{score.prefix}{name}": values for name, values in reported.items()}
        new |= _against_permutations(table.assign(new), score)
    unit, clusters = _UNITS[table[found[0].count].attrs.get("fold_unit", "text")]
    split = SPLIT.format(folds=table.sizes["fold"], unit=unit, clusters=clusters)
    return table.assign(new).assign_attrs(split=split)


def _report(
    score: Score, counts: Counts, offsets: Counts, untrained_counts: Counts | None, minimum: int
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
    new["reported_selection_frequency"] = _described(
        _selection_frequency(counts, place).where(enough), "random halves that choose the same head", "share of halves"
    )
    new["heldout_count"] = _described(there[1].where(enough, 0), f"{score.of} on which the head is scored", score.of)
    new["heldout_offset"] = _described(offset["offset"].where(enough, 0), "best fixed offset", "words")
    new["heldout_detectable"] = _described(
        offsets.half(_SCORE).at(**offset).detectable().where(enough),
        "smallest rise above the best fixed offset that so many would show (level 0.05, power 0.8)",
        f"share of {score.of}",
    )
    scores = {
        "heldout": (held, f"{score.name} of the reported head on the half it was not chosen on"),
        "heldout_offset": (
            offsets.half(_SCORE).at(**offset),
            f"{score.name} of the best fixed offset, chosen and scored likewise",
        ),
    }
    if untrained_counts is not None:
        best = untrained_counts.half(_SCORE).at(**_best(untrained_counts.half(_CHOOSE)))
        scores["untrained"] = (best, f"{score.name} of the best head of an untrained model, chosen and scored likewise")
    for name, (scored, what) in scores.items():
        ends = {score.name: (scored.accuracy, what)}
        for kind, interval in (("", scored.interval()), ("bootstrap_", scored.bootstrap())):
            for end, values in zip(("lower", "upper"), interval, strict=True):
                ends[f"{kind}{end}"] = (values, f"{what}: {end} end of the 95 % interval{' by bootstrap' * bool(kind)}")
        new |= {
            f"{name}_{end}": _described(values.where(enough), text, f"share of {score.of}")
            for end, (values, text) in ends.items()
        }
    return new


def at_reported(table: xr.Dataset, variable: str, prefix: str = "") -> xr.DataArray:
    """What a variable is at the reported head of each row; NaN where none is reported.

    Args:
        table: with a report.
        variable: of heads.
        prefix: what stands before the names of the report.
    """
    there = table[f"{prefix}reported_layer"] > 0
    place = {dim: table.get(f"{prefix}reported_{dim}") for dim in ("attention_type", *_HEAD)}
    chosen = {dim: where.where(there, table[dim][0]) for dim, where in place.items() if where is not None}
    return table[variable].sel(chosen).drop_vars(["attention_type", *_HEAD], errors="ignore").where(there)


def _against_permutations(table: xr.Dataset, score: Score) -> dict[str, xr.Variable]:
    """What the reported head scores where the gold stands elsewhere, and how likely that is; if there were
    permutations.
    """
    new = {}
    if f"{score.drawn}_permuted" in table:
        moved = at_reported(table, f"{score.drawn}_permuted", score.prefix)
        what = f"{score.name} of the reported head where the gold stands elsewhere"
        new["reported_permuted"] = _described(moved, what, f"share of {score.of}")
    if f"{score.drawn}_p_corrected" in table:
        p = at_reported(table, f"{score.drawn}_p_corrected", score.prefix)
        new["reported_p"] = _described(p, "p-value of the reported head, corrected for all heads", "probability")
        rate = p.copy(data=false_discoveries(p.values))
        new["reported_q"] = _described(
            rate, "false discovery rate at this p-value, over rows with heads", "probability"
        )
    return {f"{score.prefix}{name}": values for name, values in new.items()}


def _selection_frequency(counts: Counts, place: Mapping[str, xr.DataArray]) -> xr.DataArray:
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


def _best(counts: Counts, dims: tuple[str, ...] | None = None) -> dict[str, xr.DataArray]:
    """The coordinates of the best score, for each relation if there are several; the first of equals."""
    return _best_of(counts.accuracy, dims)


def _best_of(scores: xr.DataArray, dims: tuple[str, ...] | None = None) -> dict[str, xr.DataArray]:
    dims = dims or tuple(dim for dim in ("attention_type", *_HEAD) if dim in scores.dims)
    flat = scores.fillna(-1).stack(place=dims)
    where = flat.argmax("place")
    return {dim: flat[dim].isel(place=where).drop_vars(["place", *dims], errors="ignore") for dim in dims}


def _described(values: xr.DataArray, name: str, units: str) -> xr.Variable:
    return heads.variable(values.values, [str(d) for d in values.dims], name=name, units=units, source=SOURCE)
