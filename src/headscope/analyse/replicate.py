"""Replication: heads that were chosen on one corpus, scored on another corpus on which no head was chosen."""

from collections.abc import Mapping

import numpy as np
import xarray as xr

from headscope.analyse.comparable import check_read_alike
from headscope.analyse.report import (
    CLUSTERS,
    MINIMUM,
    has_few_texts,
    list_reported_scores,
    locate_reported,
    make_verdicts,
)
from headscope.analyse.rivals import (
    add_values,
    choose_rivals,
    compare_lifts,
    describe_lift,
    describe_lift_over_strongest,
    describe_lift_p,
    describe_values,
    describe_with_ends,
    select_strongest,
)
from headscope.analyse.significance import correct_rows
from headscope.analyse.uncertainty import ALPHA, Lift, Ratio
from headscope.errors import TableError
from headscope.identity import name_differences
from headscope.score import Score

SURVIVES, FAILS = "survives", "does not survive"
"""Two of the verdicts on the reported head of a row on the other corpus; the third is `UNDECIDED`."""

WHERE = " of the other corpus"

_DIMENSIONS = ("attention_type", "layer", "head")
_COUNTS = ("documents", "words", "tokens", "skipped")


def add_replication(table: xr.Dataset, other: xr.Dataset, untrained_other: xr.Dataset | None = None) -> xr.Dataset:
    """Add the score of each reported head on another corpus, and whether its lift survives there.

    The head, its direction and its attention type are the ones that `add_report` chose on the corpus of `table`. On the
    other corpus only the rivals' options are chosen (the best offset, the part of speech and its side, the untrained
    model's head). They are chosen on all of the other corpus and scored on the same texts. This favours the rivals,
    never the head, so the verdict is conservative. Since the head was fixed in advance, its p-value needs no correction
    for a choice, and no permutations are needed there. The p-values are only corrected for the number of rows.

    Args:
        table: A head table with reported heads (`add_report`).
        other: The head table of the same model on the other corpus, with the sums by fold of the same scores. It may
            have other rows; a row that it lacks is not decided.
        untrained_other: The head table of the untrained model on the other corpus.

    Returns:
        The table with, for each row of each score:

        * ``replication_accuracy|lower|upper|count|clusters``: the score of the reported head on all of the other
          corpus, its 95 % interval, and the numbers of items and texts (folds) there;
        * ``replication_lift_over_RIVAL``, with ``_lower|_upper``, for each rival that applies there;
        * ``replication_lift``, ``replication_lift_lower|_upper``: the lift over the strongest rival there, and
          ``replication_rival``, its name;
        * ``replication_lift_p``: the p-value of no lift over at least one rival there; ``replication_p``, the same
          corrected for the rows of this score that can be decided: the family-wise error (Holm 1979);
        * ``replication_verdict``: `SURVIVES` if the interval of the lift over every rival that applies there lies above
          0 and ``replication_p`` is below 0.05, else `FAILS`; `UNDECIDED` if there are fewer than `MINIMUM` items or
          `CLUSTERS` texts, if the documents come from few texts, or if no rival applies there; empty without a reported
          head.

        As in `add_report`, the score's prefix precedes these names, and its measure replaces ``accuracy``. The
        attributes ``replication_corpus``, ``replication_corpus_sha256|source``, ``replication_documents|words|tokens``
        and ``replication_skipped`` describe the other corpus.

    Raises:
        TableError: The table has no reported heads; or the other table is of the same corpus or of another model, or
            lacks every score.
    """
    scores = [s for s in list_reported_scores(table) if f"{s.report_prefix}reported_layer" in table]
    if not scores:
        raise TableError("the head table has no reported heads, so nothing can be replicated; call add_report first.")
    _check_model(table, other)
    check_read_alike(table, "the table", other, "that of the other corpus")
    sha256, other_sha256 = (str(t.attrs.get("corpus_sha256", "")) for t in (table, other))
    refuse_same_corpus(sha256, other_sha256, str(other.attrs.get("corpus", "")))
    if not any(_has_sums(other, score) for score in scores):
        wanted = ", ".join(score.variable for score in scores)
        raise TableError(f"the head table of the other corpus has none of the scores {wanted}; measure them there too.")
    new: dict[str, xr.Variable] = {}
    for score in scores:
        replicated = _replicate(table, other, untrained_other, score)
        new |= {f"{score.report_prefix}{name}": values for name, values in replicated.items()}
        new |= _judge(table.assign(new), other, score)
    return add_values(table, new).assign_attrs(_describe_corpus(other))


def refuse_same_corpus(sha256: str, other_sha256: str, other: str) -> None:
    """Raise an error if the other corpus has the texts on which the heads were chosen; `other` is its name.

    Raises:
        TableError: The two corpora have the same contents.
    """
    if sha256 and sha256 == other_sha256:
        raise TableError(
            f"the corpus to replicate on, {other}, has the same contents as the one on which the heads are chosen; "
            "give other texts."
        )


def _check_model(table: xr.Dataset, other: xr.Dataset) -> None:
    """Raise an error if the tables come from two different models."""
    first, second = ({dim: t.sizes.get(dim) for dim in _DIMENSIONS} for t in (table, other))
    differences = name_differences(table.attrs, other.attrs)
    if first != second or differences:
        names = [str(t.attrs.get("model", "unknown")) for t in (table, other)]
        raise TableError(
            f"the heads were chosen in the model {names[0]}, and the other corpus was measured with a model that "
            f"differs in its {differences or 'numbers of layers and heads'} ({names[1]}); measure it with the same one."
        )


def _has_sums(table: xr.Dataset, score: Score) -> bool:
    return {score.variable, *score.numerator, *score.denominator} <= {*table.data_vars}


def _replicate(
    table: xr.Dataset, other: xr.Dataset, untrained_other: xr.Dataset | None, score: Score
) -> dict[str, xr.Variable]:
    """Return the variables of one score, without the verdict; only counts of 0 if the other corpus lacks the score."""
    there = table[f"{score.report_prefix}reported_layer"] > 0
    what = f"{score.items}{WHERE} on which the head is scored"
    clusters = f"folds with whole texts (or documents){WHERE}"
    if not _has_sums(other, score):
        none = xr.zeros_like(there, dtype=int)
        return {
            "replication_count": describe_values(none, what, score.items),
            "replication_clusters": describe_values(none, clusters, "folds"),
        }
    row = score.row_dimension(table)
    aligned = other.reindex({row: table[row]}) if row else other
    place = locate_reported(table, score.report_prefix)
    head = Ratio.of_heads(aligned, score).at(**place)
    count = head.denominator.sum("fold").where(there, 0)
    what_score = f"{score.measure} of the reported head on all {what.partition(' on ')[0]}"
    return {
        **describe_with_ends("replication", head.value, head.interval(), what_score, score, there, score.measure),
        "replication_count": describe_values(count.astype(int), what, score.items),
        "replication_clusters": describe_values(head.clusters.where(there, 0), clusters, "folds"),
        **_lift(head, score, aligned, untrained_other, place, there),
    }


def _lift(
    head: Ratio, score: Score, other: xr.Dataset, untrained: xr.Dataset | None, place: Mapping[str, xr.DataArray],
    there: xr.DataArray,
) -> dict[str, xr.Variable]:  # fmt: skip
    """Return the lift of the head over each rival that applies on the other corpus, and over the strongest rival."""
    if untrained is not None and not _has_sums(untrained, score):
        untrained = None
    rivals = choose_rivals(other, score, untrained, place)
    lifts = {name: Lift(head, rival.scored) for name, rival in rivals.items()}
    new: dict[str, xr.Variable] = {}
    for name, lift in lifts.items():
        new |= describe_lift(lift, f"replication_lift_over_{name}", rivals[name].title, score, there, WHERE)
    if rivals:
        new["replication_lift_p"] = describe_lift_p(lifts.values(), there, WHERE)
        strongest = select_strongest(lifts, rivals)
        new |= describe_lift_over_strongest("replication_lift", strongest, score, there, WHERE)
        names = strongest.name.where(there & strongest.lift.notnull(), "")
        new["replication_rival"] = describe_values(names, f"strongest rival on all {score.items}{WHERE}", "label")
    return new


def _judge(table: xr.Dataset, other: xr.Dataset, score: Score) -> dict[str, xr.Variable]:
    """Return the verdict on the reported head of each row on the other corpus, and its p-value."""
    prefix = score.report_prefix
    above, compared = compare_lifts(table, score, "replication_")
    few = (table[f"{prefix}replication_clusters"] < CLUSTERS) | (table[f"{prefix}replication_count"] < MINIMUM)
    few = few | ~compared | (_has_sums(other, score) and has_few_texts(other, score))
    p = table.get(f"{prefix}replication_lift_p", table[f"{prefix}replication_count"] * np.nan)
    p = correct_rows(p, few)
    what = f"verdict on the other corpus: {SURVIVES} if every lift there has an interval above 0 and p is below {ALPHA}"
    about = "p-value of no lift on the other corpus, corrected for the rows (Holm 1979)"
    return {
        f"{prefix}replication_p": describe_values(p, about, "probability"),
        f"{prefix}replication_verdict": make_verdicts(table, score, above & (p < ALPHA), few, (SURVIVES, FAILS), what),
    }


def _describe_corpus(other: xr.Dataset) -> dict[str, object]:
    """Return the attributes that describe the other corpus."""
    names = {key: f"replication_{key}" for key in ("corpus", "corpus_sha256", "corpus_source", *_COUNTS)}
    return {name: other.attrs[key] for key, name in names.items() if key in other.attrs}
