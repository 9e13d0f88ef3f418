"""Scores: written into tables and read again, whatever they say; refusals."""

import pytest
import xarray as xr

from headscope.errors import TableError
from headscope.reducers import REDUCERS
from headscope.score import Score, find_score, main_score, read_scores, write_scores

SCORES = [score for reducer in REDUCERS.values() for score in reducer.scores]


def table(*scores: Score) -> xr.Dataset:
    """A table with a variable for each score."""
    values = {score.variable: (("layer", "head"), [[0.5]]) for score in scores}
    return xr.Dataset(values, attrs={"scores": write_scores(scores)})


@pytest.mark.parametrize("score", SCORES, ids=lambda score: score.variable)
def test_what_is_read_is_what_was_written(score: Score) -> None:
    assert read_scores(table(score)) == [score]
    assert find_score(xr.Dataset(attrs=table(score).attrs), score.variable) == score
    assert find_score(table(score), "another") is None


def test_a_description_is_shown_and_no_head_is_chosen_by_it() -> None:
    description, ratio = (
        Score("mass_rare", "Rare words"),
        Score("rare_f1", "Rare", numerator=("a",), denominator=("b",)),
    )
    assert (description.has_report, ratio.has_report) == (False, True)
    assert (ratio.stem, ratio.measure, ratio.report_prefix) == ("rare", "f1", "rare_")
    assert main_score(table(description, ratio)) == ratio
    assert read_scores(table(ratio).drop_vars("rare_f1")) == []


@pytest.mark.parametrize(("made", "sentence"), [
    (
        lambda: Score("a_b", "A", numerator=("c",)),
        "the score 'a_b' has half a ratio; give it a numerator and a denominator.",
    ),
    (lambda: main_score(table()), "the head table has no score by which heads are chosen; name the variable."),
    (
        lambda: main_score(table(*(score for score in SCORES if score.variable in ("scope_f1", "role_weight")))),
        "the head table has the scores scope_f1, role_weight; name the variable.",
    ),
    (
        lambda: read_scores(xr.Dataset(attrs={"scores": "[{"})),
        "the attribute scores of the head table is damaged (Expecting property name enclosed in double quotes: line 1 "
        "column 3 (char 2)); measure again.",
    ),
])  # fmt: skip
def test_refusals_are_one_sentence(made, sentence: str) -> None:
    with pytest.raises(TableError) as refused:
        made()
    assert str(refused.value) == sentence
