"""Scores: written into tables and read again, whatever they say; refusals."""

import json
from dataclasses import replace

import pytest
import xarray as xr

from headscope.errors import TableError
from headscope.reducers import REDUCERS
from headscope.score import Rival, Score, find_score, main_score, offset_rival, read_scores, write_scores

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


RIVAL = Rival("nearest", "nearest word of a class", ("hits",), ("all",), ("side", "kind"), "{kind} on the {side}")


def test_a_rival_says_which_rule_was_chosen() -> None:
    assert RIVAL.describe({"side": "left", "kind": "NOUN"}) == "NOUN on the left"
    assert offset_rival("hits", ("all", "more")) == Rival(
        "offset", "best fixed offset", ("hits",), ("all", "more"), ("offset",), "offset {offset}"
    )
    assert offset_rival("hits", "all").describe({"offset": "−2"}) == "offset −2"
    assert Rival("blind", "pointing blindly", ("hits",), ("all",)).describe({}) == "pointing blindly"


def test_a_rival_applies_where_a_table_has_all_its_sums() -> None:
    sums = xr.Dataset({"hits": ("fold", [2, 3]), "all": ("fold", [5, 7])})
    assert RIVAL.applies(sums)
    assert not RIVAL.applies(sums.drop_vars("hits"))
    assert not RIVAL.applies(sums.drop_vars("all"))


@pytest.mark.parametrize("label", ["nearest {word_class}", "nearest {}", "nearest {", "{side.left}", "{side[left]}"])
def test_a_label_that_its_options_do_not_fill_in_is_refused_in_python_and_in_a_table(label: str) -> None:
    sentence = (
        f"the label {label!r} of the rival 'nearest' cannot be filled in; write its options in braces: "
        "{side}, {kind}."
    )
    with pytest.raises(TableError) as refused:
        replace(RIVAL, label=label)
    assert str(refused.value) == sentence
    stored = write_scores([Score("a_b", "A", numerator=("c",), denominator=("d",), rivals=(RIVAL,))])
    damaged = stored.replace(json.dumps(RIVAL.label)[1:-1], label)
    assert damaged != stored
    with pytest.raises(TableError) as refused:
        read_scores(xr.Dataset(attrs={"scores": damaged}))
    assert str(refused.value) == sentence


def test_a_label_without_options_has_no_braces() -> None:
    with pytest.raises(TableError) as refused:
        Rival("blind", "pointing {blindly}", ("hits",), ("all",))
    assert str(refused.value) == (
        "the label 'pointing {blindly}' of the rival 'blind' cannot be filled in; write its options in "
        "braces: none, for it has no options."
    )
