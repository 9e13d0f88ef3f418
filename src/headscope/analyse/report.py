"""Intervals of scores, and the head to report for each row: chosen on one half of the corpus, scored on the other."""

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from operator import and_
from typing import Any

import numpy as np
import xarray as xr

from headscope.analyse.regression import add_regression
from headscope.analyse.rivals import (
    UNTRAINED,
    ChosenRival,
    add_values,
    choose_best,
    choose_rivals,
    compare_lifts,
    describe_lift,
    describe_lift_over_strongest,
    describe_lift_p,
    describe_values,
    describe_with_ends,
    locate_largest,
    select_strongest,
)
from headscope.analyse.significance import add_significance, correct_rows
from headscope.analyse.uncertainty import ALPHA, Lift, Ratio
from headscope.errors import TableError
from headscope.score import HEAD, Score, read_scores

MINIMUM = 20
"""The number of links, or other items, that each half of the corpus must have before a head is reported for a row."""

CLUSTERS = 20
"""The number of texts that the half for scoring must have before anything is decided about the lift of a head."""

STANDS_OUT, DOES_NOT, UNDECIDED = "stands out", "does not stand out", "cannot decide"
"""The verdicts on the reported head of a row."""

NOT_YET, AWAITED = "not yet", "awaited"
"""The verdict that waits for the untrained model, and the attribute that marks a table with it (`await_untrained`)."""

HALVES = 100
"""The number of random halves of the corpus; the best head is chosen on each of them."""

SPLIT = (
    "The documents are assigned to {folds} folds by a hash of {unit}. The head (and its direction), the options of its "
    "rivals and the untrained model's head are chosen on the even folds and scored on the odd ones. The folds are the "
    "clusters of the intervals: {clusters}"
)
"""A description of how the reported numbers are computed; stored in the table and shown with them."""

FEW_TEXTS = "document of few texts"
"""The unit of the folds of a corpus with too few texts for one text to be a cluster."""

_UNITS = {
    "text": (
        "the text that they come from",
        "what comes from one text lies in one fold, so the intervals allow for texts that differ.",
    ),
    "document": (
        "their names, since the corpus does not say which text they come from",
        "documents are taken as independent, and where those of one text resemble each other the intervals are too "
        "narrow.",
    ),
    FEW_TEXTS: (
        "their names, since they come from few texts",
        "documents of one text resemble each other, so the intervals are too narrow, and no head is said to stand out.",
    ),
}
"""The name whose hash assigns a document to a fold, and the consequence for intervals, by the unit of the folds."""

CHOOSE, SCORED = slice(0, None, 2), slice(1, None, 2)
"""The folds on which a head is chosen, and the folds on which it is scored."""


def assess(table: xr.Dataset, untrained: xr.Dataset | None = None) -> xr.Dataset:
    """Add the uncertainty of all scores of a table: intervals, p-values, reported heads and regressions.

    A table without scores is returned unchanged.

    Args:
        table: A head table with any reducers. In a table of several runs the scores get only intervals: a result that
            the runs have in common can only be tested over all runs together.
        untrained: The head table of a model of the same shape with random weights, on the same corpus.
    """
    if any(score.has_report for score in read_scores(table)):
        table = add_intervals(table)
        if "run" not in table.dims:
            table = add_report(add_significance(table), untrained)
    return table if "run" in table.dims else add_regression(table)


def add_intervals(table: xr.Dataset) -> xr.Dataset:
    """Add the interval of each score by which heads are chosen: ``VARIABLE_lower`` and ``VARIABLE_upper``.

    Raises:
        TableError: The table has no such score, or lacks the sums of one.
    """
    new = {}
    for score in list_reported_scores(table):
        dims = table[score.variable].dims
        for end, values in zip(("lower", "upper"), Ratio.of_heads(table, score).interval(), strict=True):
            what = f"{end} end of the 95 % interval"
            new[f"{score.variable}_{end}"] = describe_values(values.transpose(*dims), what, f"share of {score.items}")
    return table.assign(new)


def add_report(table: xr.Dataset, untrained: xr.Dataset | None = None, *, minimum: int = MINIMUM) -> xr.Dataset:
    """Add the head to report for each row of each score, with its baselines.

    The best of many heads scores too well on the links by which it was chosen (the best of 288 chance predictors at
    0.20 scores 0.32 on 100 links). So the head, its direction and the fixed offset are chosen on one half of the
    documents and scored on the other half; the same is done with the heads of an untrained model.

    Args:
        table: A head table with the sums by fold of its scores.
        untrained: The head table of a model of the same shape with random weights, on the same corpus.
        minimum: The number of links that each half must have; rows with fewer get no head (layer and head are NaN).

    Returns:
        The table with, for each row of each score:

        * ``reported_layer``, ``reported_head``, ``reported_direction`` (and ``reported_attention_type``);
          ``reported_again`` (whether the other half would have chosen the same head), ``reported_selection_frequency``
          (the share of 100 random halves that would);
        * ``reported_permuted|p``, if there were permutations: its permuted score, and the p-value of its score against
          permuted scores, corrected for all heads;
        * ``heldout_accuracy|lower|upper|count|clusters``: its score on the other half, and the numbers of items and
          texts there;
        * ``heldout_RIVAL_accuracy|lower|upper`` and ``lift_over_RIVAL``, with ``_lower|_upper``, for each rival that
          applies, such as ``heldout_offset_accuracy`` and ``lift_over_offset``; its options, such as
          ``heldout_offset``; ``untrained_accuracy|lower|upper`` and ``lift_over_untrained`` likewise;
        * ``lift``, ``lift_lower``, ``lift_upper``: the lift over the strongest rival, which is chosen on the same half
          as the head; ``lift_rival``, its name; ``lift_detectable``, the smallest lift that a sample like this would
          find in four of five cases;
        * ``lift_p``: the p-value of no lift over at least one rival;
        * ``verdict_p``: the larger of ``lift_p`` and ``reported_p``, corrected for the rows of this score that can be
          decided: the family-wise error (Holm 1979);
        * ``reported_verdict``: `STANDS_OUT` if the lifts over all rivals have intervals above 0 and ``verdict_p`` is
          below 0.05, else `DOES_NOT`; `UNDECIDED` if there are fewer than `CLUSTERS` texts, if the documents come from
          few texts, or if the head beats all rivals but the permutations are too few (about 20 for each row) for any
          row to stand out; empty if no head is reported.

        The score's prefix, such as ``scope_``, precedes each name (the prefix of links between words is empty), and its
        measure, such as ``f1``, replaces ``accuracy``.

    Raises:
        TableError: The table has no score, or lacks the sums of one.
    """
    new: dict[str, xr.Variable] = {}
    scores = list_reported_scores(table)
    for score in scores:
        ratio = Ratio.of_heads(table, score)
        place = choose_best(ratio.half(CHOOSE))
        rivals = choose_rivals(table, score, untrained, place, CHOOSE, SCORED)
        reported = _report(score, ratio, place, rivals, minimum)
        new |= {f"{score.report_prefix}{name}": values for name, values in reported.items()}
        new |= _against_permutations(table.assign(new), score)
        if rivals:
            new |= _test_lifts(ratio.half(SCORED).at(**place), rivals, table.assign(new), score)
        new |= _judge(table.assign(new), score)
    units = [table[name].attrs.get("fold_unit") for name in scores[0].denominator]
    unit, clusters = _UNITS[next(filter(None, units), "text")]
    split = SPLIT.format(folds=table.sizes["fold"], unit=unit, clusters=clusters)
    return add_values(table, new).assign_attrs(split=split)


def await_untrained(table: xr.Dataset) -> xr.Dataset:
    """Replace each verdict that an untrained model could change by `NOT_YET`, in a table assessed without this model.

    A further rival cannot make a head stand out that did not: a head that loses to a rule still loses, and too few
    texts stay too few. Only without anything else to compare with, neither a rule nor permutations, a negative verdict
    may change.
    """
    new = {}
    for score in list_reported_scores(table):
        verdict = table[f"{score.report_prefix}reported_verdict"]
        above, compared = compare_lifts(table, score)
        loses = (verdict == DOES_NOT) & ((compared & ~above) | (f"{score.report_prefix}reported_p" in table))
        is_final = loses | (verdict == UNDECIDED) | (verdict == "")
        new[str(verdict.name)] = describe_values(verdict.where(is_final, NOT_YET).astype(str), "verdict", "label")
    return add_values(table, new).assign_attrs({AWAITED: "the untrained model"})


def score_held_out(table: xr.Dataset, score: Score) -> xr.DataArray | None:
    """Return a score of all heads on the half of the folds for scoring; None without its sums, or for a description."""
    if not {*score.numerator, *score.denominator} <= {*table.data_vars} or not score.is_ratio:
        return None
    return Ratio.of_heads(table, score).half(SCORED).value


def list_reported_scores(table: xr.Dataset) -> list[Score]:
    """Return the scores of a table by which heads are chosen.

    Raises:
        TableError: The table has no such score.
    """
    if scores := [score for score in read_scores(table) if score.has_report]:
        return scores
    raise TableError(
        "the head table has no score by which heads are chosen; measure a statistic that has one "
        "(`headscope list reducers`)."
    )


def _report(
    score: Score, ratio: Ratio, place: Mapping[str, xr.DataArray], rivals: Mapping[str, ChosenRival], minimum: int
) -> dict[str, xr.Variable]:
    """Return the variables about the reported heads of one score, which are at `place`.

    Results of permutations, p-values and verdicts are not included.
    """
    head = ratio.half(SCORED).at(**place)
    # The links of a relation are the same for all heads, but the items of an F1 differ between heads.
    counts = [part.denominator.sum("fold") for part in (ratio.half(CHOOSE).at(**place), head)]
    # If all rows count the same items, such as documents, the sums have no row dimension.
    enough = ((counts[0] >= minimum) & (counts[1] >= minimum)).broadcast_like(head.value)
    new = {}
    for dim, chosen in place.items():
        label = chosen.where(enough, "" if chosen.dtype.kind == "U" else np.nan)
        new[f"reported_{dim}"] = describe_values(label, f"{dim} of the reported head", "label")
    same = (_is_same(place, choose_best(ratio.half(SCORED))) & enough).astype(np.int8)
    new["reported_again"] = describe_values(same, "1 if the other half chooses the same head", "flag")
    frequency, what = _selection_frequency(ratio, place).where(enough), "random halves that choose the same head"
    new["reported_selection_frequency"] = describe_values(frequency, what, "share of halves")
    what = f"{score.items} on which the head is scored"
    new["heldout_count"] = describe_values(counts[1].where(enough, 0), what, score.items)
    what = "folds with whole texts (or documents) on which the head is scored"
    new["heldout_clusters"] = describe_values(head.clusters.where(enough, 0), what, "folds")
    what = f"{score.measure} of the reported head on the half it was not chosen on"
    new |= describe_with_ends("heldout", head.value, head.interval(), what, score, enough, score.measure)
    return new | _against_rivals(score, head, rivals, enough)


def _against_rivals(
    score: Score, head: Ratio, rivals: Mapping[str, ChosenRival], enough: xr.DataArray
) -> dict[str, xr.Variable]:
    """Return the scores and options of the rivals, and the lift of a head over each rival and over the strongest."""
    new: dict[str, xr.Variable] = {}
    lifts = {name: Lift(head, rival.scored) for name, rival in rivals.items()}
    for name, rival in rivals.items():
        prefix = name if name == UNTRAINED else f"heldout_{name}"
        what = f"{score.measure} of the {rival.title.removeprefix('the ')}, chosen and scored likewise"
        ratio = rival.scored
        new |= describe_with_ends(prefix, ratio.value, ratio.interval(), what, score, enough, score.measure)
        new |= describe_lift(lifts[name], f"lift_over_{name}", rival.title, score, enough)
        for dim, option in rival.options.items() if name != UNTRAINED else ():
            variable = prefix if dim == name else f"{prefix}_{dim}"
            label = option.where(enough, "" if option.dtype.kind == "U" else np.nan)
            new[variable] = describe_values(label, f"{rival.title}: {dim}", "words" if dim == "offset" else "label")
    if not rivals:
        return new
    strongest = select_strongest(lifts, rivals)
    new |= describe_lift_over_strongest("lift", strongest, score, enough)
    names = strongest.name.where(enough, "")
    new["lift_rival"] = describe_values(names, "strongest rival on the half on which the head was chosen", "label")
    what = "smallest lift over the strongest rival that this sample would find in four of five cases (level 0.05)"
    new["lift_detectable"] = describe_values(strongest.detectable.where(enough), what, f"share of {score.items}")
    return new


def _test_lifts(
    head: Ratio, rivals: Mapping[str, ChosenRival], table: xr.Dataset, score: Score
) -> dict[str, xr.Variable]:
    """Return the p-value of no lift over at least one rival, for each row with a head.

    The head and the options of the rivals were chosen on other texts, so the p-value needs no correction for this
    choice.
    """
    lifts = [Lift(head, rival.scored) for rival in rivals.values()]
    there = table[f"{score.report_prefix}reported_layer"] > 0
    return {f"{score.report_prefix}lift_p": describe_lift_p(lifts, there)}


def _judge(table: xr.Dataset, score: Score) -> dict[str, xr.Variable]:
    """Return the verdict on the reported head of each row, and its p-value.

    A head has to beat chance and every rival, so the largest p-value holds for all of them (Berger 1982). A row without
    any comparison, such as a row that the untrained model lacks, has no p-value. If there are too few permutations for
    any row to stand out, a row whose head beats every rival is undecided.
    """
    prefix, above = score.report_prefix, compare_lifts(table, score)[0]
    few = (table[f"{prefix}heldout_clusters"] < CLUSTERS) | has_few_texts(table, score)
    p = table.get(f"{prefix}lift_p", table[f"{prefix}heldout_lower"] * np.nan)
    if (chance := table.get(f"{prefix}reported_p")) is not None:
        p = p.where((p >= chance) | chance.isnull(), chance).where(chance.notnull())
    p = correct_rows(p, few)
    beats = (table[f"{prefix}heldout_lower"] > 0) & above & (p < ALPHA)
    if (permuted := table.get(f"{score.stem}_z_permuted")) is not None:
        least = 1 / (1 + permuted.notnull().sum("permutation").max())
        few = few | (above & (least * p.notnull().sum() >= ALPHA))
    what = f"verdict: {STANDS_OUT} if every lift has an interval above 0 and its p-value is below {ALPHA}"
    about = "p-value of the verdict: that of chance or of no lift, the larger, corrected for the rows (Holm 1979)"
    return {
        f"{prefix}verdict_p": describe_values(p, about, "probability"),
        f"{prefix}reported_verdict": make_verdicts(table, score, beats, few, (STANDS_OUT, DOES_NOT), what),
    }


def make_verdicts(
    table: xr.Dataset, score: Score, beats: xr.DataArray, few: xr.DataArray, verdicts: tuple[str, str], what: str
) -> xr.Variable:
    """Make the variable of verdicts: the first of `verdicts` for a row that `beats`, else the second.

    A row with `few` texts or items gets `UNDECIDED`, and a row without a reported head an empty text. The description
    of the variable is `what`.
    """
    decided = xr.full_like(beats, verdicts[1], dtype=object).where(~beats, verdicts[0]).where(~few, UNDECIDED)
    verdict = decided.where(table[f"{score.report_prefix}reported_layer"] > 0, "")
    return describe_values(verdict.astype(str), what, "label")


def list_verdicts(table: xr.Dataset, dims: Sequence[str]) -> Iterator[tuple[tuple[Any, ...], str, str]]:
    """Yield for each reported head its labels along `dims`, the name of its row, and the verdict on it."""
    for score in read_scores(table):
        dim = score.row_dimension(table)
        names = [f"{score.report_prefix}reported_{name}" for name in ("verdict", *dims)]
        if names[0] in table:
            columns = (np.atleast_1d(table[name].values).tolist() for name in names)
            labels = table[dim].values if dim else [score.title]
            for label, verdict, *head in zip(labels, *columns, strict=True):
                if verdict:
                    yield tuple(head), str(label), verdict


def has_few_texts(table: xr.Dataset, score: Score) -> bool:
    """Return True if the folds hold documents of few texts, so that they are not reliable clusters."""
    return any(table[name].attrs.get("fold_unit") == FEW_TEXTS for name in score.denominator)


def locate_reported(table: xr.Dataset, prefix: str = "") -> dict[str, xr.DataArray]:
    """Return the coordinates of the reported head of each row, by dimension.

    A row without a reported head gets the first label of each dimension.
    """
    there = table[f"{prefix}reported_layer"] > 0
    place = {dim: f"{prefix}reported_{dim}" for dim in HEAD}
    return {
        dim: table[name].where(there, table[dim][0]).astype(table[dim].dtype)
        for dim, name in place.items()
        if name in table
    }


def at_reported(table: xr.Dataset, variable: str, prefix: str = "") -> xr.DataArray:
    """Return the value of a variable at the reported head of each row; NaN for a row without a reported head."""
    there = table[f"{prefix}reported_layer"] > 0
    return table[variable].sel(locate_reported(table, prefix)).drop_vars(HEAD, errors="ignore").where(there)


def _against_permutations(table: xr.Dataset, score: Score) -> dict[str, xr.Variable]:
    """Return the permuted score and the p-value of the reported head of each row; empty without permutations."""
    new = {}
    if f"{score.stem}_permuted" in table:
        permuted = at_reported(table, f"{score.stem}_permuted", score.report_prefix)
        what = f"{score.measure} of the reported head, mean over the permutations of the gold"
        new["reported_permuted"] = describe_values(permuted, what, f"share of {score.items}")
    if f"{score.stem}_p_corrected" in table:
        p = at_reported(table, f"{score.stem}_p_corrected", score.report_prefix)
        new["reported_p"] = describe_values(p, "p-value of the reported head, corrected for all heads", "probability")
    return {f"{score.report_prefix}{name}": values for name, values in new.items()}


def _selection_frequency(ratio: Ratio, place: Mapping[str, xr.DataArray]) -> xr.DataArray:
    """Return the share of random halves of the folds on which the head at `place` is the best."""
    random, folds = np.random.default_rng(0), ratio.denominator.sizes["fold"]
    chosen = [random.permutation(folds) < folds // 2 for _ in range(HALVES)]
    halves, ratio = xr.DataArray(chosen, dims=("half", "fold")).astype(float), ratio.over_directions()
    above, below = (xr.dot(part, halves, dim="fold") for part in (ratio.numerator, ratio.denominator))
    return _is_same(place, locate_largest(above / below.where(below > 0))).mean("half")


def _is_same(place: Mapping[str, xr.DataArray], other: Mapping[str, xr.DataArray]) -> xr.DataArray:
    """Return True for each row where two choices have the same head."""
    return reduce(and_, (place[dim] == other[dim] for dim in place))
