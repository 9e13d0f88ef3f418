"""Intervals of all scores, and the head to report for each: chosen on one half of the corpus, scored on the other."""

from collections.abc import Mapping
from functools import reduce
from operator import and_

import numpy as np
import xarray as xr

from headscope import heads
from headscope.analyse.regression import add_regression
from headscope.analyse.significance import add_significance, false_discoveries
from headscope.analyse.uncertainty import Ratio
from headscope.errors import TableError
from headscope.score import HEAD, Score, read_scores

MINIMUM = 20
"""Links, or other items, that each half of the corpus must hold before a head is reported for a row."""

HALVES = 100
"""Random halves of the corpus, in each of which the best head is sought."""

SOURCE = "headscope"
SPLIT = (
    "The documents are assigned to {folds} folds by a hash of {unit}. The head (and its direction), the offset and the "
    "untrained model's head are chosen on the even folds and scored on the odd ones. The folds are the clusters of the "
    "intervals: {clusters}"
)
"""How the reported numbers are computed; stored in the table and shown beside them."""

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


def assess(table: xr.Dataset, untrained: xr.Dataset | None = None) -> xr.Dataset:
    """`table` with the uncertainty of all its scores: intervals, p-values, reported heads and regressions.

    A table without scores is returned as it is.

    Args:
        table: of any reducers. Of several runs the scores get intervals and nothing else: what runs have in common,
            and whether it is more than chance, is a question to all of them together.
        untrained: the same for a model of the same shape with random weights, on the same corpus.
    """
    if any(score.has_report for score in read_scores(table)):
        table = add_intervals(table)
        if "run" not in table.dims:
            table = add_report(add_significance(table), untrained)
    return table if "run" in table.dims else add_regression(table)


def add_intervals(table: xr.Dataset) -> xr.Dataset:
    """`table` with the ends of the interval of each score: ``VARIABLE_lower`` and ``VARIABLE_upper``.

    Raises:
        TableError: it has no score, or lacks the sums of one.
    """
    new = {}
    for score in _reported_scores(table):
        dims = table[score.variable].dims
        for end, values in zip(("lower", "upper"), Ratio.of_heads(table, score).interval(), strict=True):
            what = f"{end} end of the 95 % interval"
            new[f"{score.variable}_{end}"] = _described(values.transpose(*dims), what, f"share of {score.items}")
    return table.assign(new)


def add_report(table: xr.Dataset, untrained: xr.Dataset | None = None, *, minimum: int = MINIMUM) -> xr.Dataset:
    """`table` with the head to report for each row of each score, beside its baselines.

    The best of many heads looks better than it is on the very links on which it was chosen (the
    best of 288 chance predictors at 0.20 shows 0.32 on 100 links). So the head, its direction and
    the fixed offset are chosen on one half of the documents and scored on the other; the same is
    done with the heads of an untrained model.

    Args:
        table: with the sums by fold of its scores.
        untrained: the same for a model of the same shape with random weights, on the same corpus.
        minimum: links that each half must hold; rarer rows get no head (layer and head 0).

    Returns:
        The table with, for each row of each score, ``reported_layer``, ``reported_head``, ``reported_direction``
        (and ``reported_attention_type``), ``reported_again`` (whether the other half would have chosen the same),
        ``reported_selection_frequency`` (the share of 100 random halves that would),
        ``reported_permuted|p|q`` (its permuted score, and how likely that is to be as large, corrected for all heads,
        and for the rows of this score that have a head; if there were permutations),
        ``heldout_accuracy|lower|upper|bootstrap_lower|bootstrap_upper|count|detectable``, ``heldout_offset``,
        ``heldout_offset_accuracy|lower|upper``, and ``untrained_accuracy|lower|upper``. The score's prefix, such as
        ``scope_``, stands before each name (that of links between words is empty), and its measure, such as ``f1``,
        in the place of ``accuracy``.

    Raises:
        TableError: the table has no score, or lacks the sums of one.
    """
    new: dict[str, xr.Variable] = {}
    scores = _reported_scores(table)
    for score in scores:
        row = score.row_dimension(table)
        aligned = untrained.reindex({row: table[row]}) if untrained is not None and row else untrained
        control = None if aligned is None else Ratio.of_heads(aligned, score)
        reported = _report(score, Ratio.of_heads(table, score), Ratio.of_offsets(table, score), control, minimum)
        new |= {f"{score.report_prefix}{name}": values for name, values in reported.items()}
        new |= _against_permutations(table.assign(new), score)
    units = [table[name].attrs.get("fold_unit") for name in scores[0].denominator]
    unit, clusters = _UNITS[next(filter(None, units), "text")]
    split = SPLIT.format(folds=table.sizes["fold"], unit=unit, clusters=clusters)
    return table.assign(new).assign_attrs(split=split)


def _reported_scores(table: xr.Dataset) -> list[Score]:
    if scores := [score for score in read_scores(table) if score.has_report]:
        return scores
    raise TableError(
        "the head table has no score by which heads are chosen; measure a statistic that has one "
        "(`headscope list reducers`)."
    )


def _report(
    score: Score, ratio: Ratio, offsets: Ratio | None, untrained: Ratio | None, minimum: int
) -> dict[str, xr.Variable]:
    """The variables that report one score."""
    share = f"share of {score.items}"
    place = _best(ratio.half(_CHOOSE))
    # The links of a relation are the same for all heads; what an F1 is of is not.
    counts = [ratio.half(half).at(**place).denominator.sum("fold") for half in (_CHOOSE, _SCORE)]
    enough = (counts[0] >= minimum) & (counts[1] >= minimum)
    new = {}
    for dim, chosen in place.items():
        label = chosen.where(enough, "" if chosen.dtype.kind == "U" else 0)
        new[f"reported_{dim}"] = _described(label, f"{dim} of the reported head", "label")
    same = (_is_same(place, _best(ratio.half(_SCORE))) & enough).astype(np.int8)
    new["reported_again"] = _described(same, "1 if the other half chooses the same head", "flag")
    frequency, what = _selection_frequency(ratio, place).where(enough), "random halves that choose the same head"
    new["reported_selection_frequency"] = _described(frequency, what, "share of halves")
    what = f"{score.items} on which the head is scored"
    new["heldout_count"] = _described(counts[1].where(enough, 0), what, score.items)
    held_out = f"{score.measure} of the reported head on the half it was not chosen on"
    scored = {"heldout": (ratio.half(_SCORE).at(**place), held_out)}
    likewise = ", chosen and scored likewise"
    if offsets is not None:
        offset = _best(offsets.half(_CHOOSE), dims=("offset",))
        best_offset = offsets.half(_SCORE).at(**offset)
        scored["heldout_offset"] = (best_offset, f"{score.measure} of the best fixed offset{likewise}")
        new["heldout_offset"] = _described(offset["offset"].where(enough, 0), "best fixed offset", "words")
        what = "smallest gain over the best fixed offset that this sample could detect (level 0.05, power 0.8)"
        new["heldout_detectable"] = _described(best_offset.detectable().where(enough), what, share)
    if untrained is not None:
        best = untrained.half(_SCORE).at(**_best(untrained.half(_CHOOSE)))
        scored["untrained"] = (best, f"{score.measure} of the best head of an untrained model{likewise}")
    for name, (held, what) in scored.items():
        ends = {score.measure: (held.value, what)}
        for kind, interval in (("", held.interval()), ("bootstrap_", held.bootstrap())):
            for end, values in zip(("lower", "upper"), interval, strict=True):
                ends[f"{kind}{end}"] = (values, f"{what}: {end} end of the 95 % interval{' by bootstrap' * bool(kind)}")
        new |= {f"{name}_{end}": _described(values.where(enough), text, share) for end, (values, text) in ends.items()}
    return new


def at_reported(table: xr.Dataset, variable: str, prefix: str = "") -> xr.DataArray:
    """The value of a variable of heads at the reported head of each row; NaN where none is reported."""
    there = table[f"{prefix}reported_layer"] > 0
    place = {dim: table.get(f"{prefix}reported_{dim}") for dim in HEAD}
    chosen = {dim: where.where(there, table[dim][0]) for dim, where in place.items() if where is not None}
    return table[variable].sel(chosen).drop_vars(HEAD, errors="ignore").where(there)


def _against_permutations(table: xr.Dataset, score: Score) -> dict[str, xr.Variable]:
    """The permuted score of the reported head and its p-values; nothing where there were no permutations."""
    new = {}
    if f"{score.stem}_permuted" in table:
        permuted = at_reported(table, f"{score.stem}_permuted", score.report_prefix)
        what = f"{score.measure} of the reported head, mean over the permutations of the gold"
        new["reported_permuted"] = _described(permuted, what, f"share of {score.items}")
    if f"{score.stem}_p_corrected" in table:
        p = at_reported(table, f"{score.stem}_p_corrected", score.report_prefix)
        new["reported_p"] = _described(p, "p-value of the reported head, corrected for all heads", "probability")
        rate, what = (
            p.copy(data=false_discoveries(p.values)),
            "false discovery rate at this p-value, over rows with heads",
        )
        new["reported_q"] = _described(rate, what, "probability")
    return {f"{score.report_prefix}{name}": values for name, values in new.items()}


def _selection_frequency(ratio: Ratio, place: Mapping[str, xr.DataArray]) -> xr.DataArray:
    """The share of random halves of the folds on which the head at `place` is the best."""
    random, folds = np.random.default_rng(0), ratio.denominator.sizes["fold"]
    chosen = [random.permutation(folds) < folds // 2 for _ in range(HALVES)]
    halves = xr.DataArray(chosen, dims=("half", "fold")).astype(float)
    above, below = (xr.dot(part, halves, dim="fold") for part in (ratio.numerator, ratio.denominator))
    return _is_same(place, _argmax(above / below.where(below > 0))).mean("half")


def _is_same(place: Mapping[str, xr.DataArray], other: Mapping[str, xr.DataArray]) -> xr.DataArray:
    """True where two choices are of the same head."""
    return reduce(and_, (place[dim] == other[dim] for dim in place))


def _best(ratio: Ratio, dims: tuple[str, ...] | None = None) -> dict[str, xr.DataArray]:
    """The coordinates of the best score, for each row if there are several; the first of equals."""
    return _argmax(ratio.value, dims)


def _argmax(scores: xr.DataArray, dims: tuple[str, ...] | None = None) -> dict[str, xr.DataArray]:
    dims = dims or tuple(dim for dim in HEAD if dim in scores.dims)
    flat = scores.fillna(-1).stack(place=dims)
    where = flat.argmax("place")
    return {dim: flat[dim].isel(place=where).drop_vars(["place", *dims], errors="ignore") for dim in dims}


def _described(values: xr.DataArray, name: str, units: str) -> xr.Variable:
    return heads.variable(values.values, [str(d) for d in values.dims], name=name, units=units, source=SOURCE)
