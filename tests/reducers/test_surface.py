"""What can be asked of `Surface` beyond its defaults, and what cannot. Its numbers are in `test_witness`."""

import re

import pytest

import tiny
from headscope.capture.model import Model
from headscope.errors import HeadscopeError
from headscope.reducers import KeyClass, Surface
from headscope.runner import Plan, measure

REFUSALS = {
    "edges that do not begin with 1, 2": (
        lambda: Surface(edges=(1, 4)),
        "the edges (1, 4) do not begin with 1, 2 and grow; give such as 1, 2, 4, 8.",
    ),
    "edges that do not grow": (
        lambda: Surface(edges=(1, 2, 8, 4)),
        "the edges (1, 2, 8, 4) do not begin with 1, 2 and grow; give such as 1, 2, 4, 8.",
    ),
    "no edges": (lambda: Surface(edges=()), "the edges () do not begin with 1, 2 and grow; give such as 1, 2, 4, 8."),
    "too far": (
        lambda: Surface(offsets=(2**64,)),
        "18446744073709551616 is no distance in tokens; give whole numbers up to 2,147,483,647.",
    ),
    "an offset twice": (lambda: Surface(offsets=(-2, -2)), "the offset -2 is named twice; name each once."),
    "a class twice": (
        lambda: Surface(classes=(KeyClass("no", ("not",)), KeyClass("no", ("never",)))),
        "the class no is named twice; name each once.",
    ),
    "a word for words": (
        lambda: KeyClass("no", "not"),
        "the class 'no' has 'not' for words; give a list of at least one.",
    ),
    "no words": (lambda: KeyClass("no", ()), "the class 'no' has () for words; give a list of at least one."),
    "blocks of nothing": (
        lambda: Plan(rows=0),
        "blocks of 0 rows were asked for; ask for 1 or more, or for none.",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_what_has_no_place_in_a_table_is_refused(case: str) -> None:
    ask, sentence = REFUSALS[case]
    with pytest.raises(HeadscopeError, match=f"^{re.escape(sentence)}$"):
        ask()


def test_lists_will_do() -> None:
    surface = Surface(offsets=[-2], classes=[KeyClass("no", ["not", "never"])], edges=[1, 2])
    assert surface == Surface(offsets=(-2,), classes=(KeyClass("no", ("not", "never")),), edges=(1, 2))
    table = measure(Model.from_module(*tiny.make("bert")), tiny.documents(2), [surface])
    assert table["distance"].values.tolist() == [-2, -1, 0, 1, 2]
    assert dict(table["mass_class"].sizes) == {"layer": 2, "head": 5, "class": 1}


def test_what_was_not_asked_for_is_not_there() -> None:
    table = measure(Model.from_module(*tiny.make("bert")), tiny.documents(2), ["surface"])
    assert not {"mass_offset", "mass_class", "class_share"} & set(table.data_vars)
    assert table["distance"].values.tolist() == sorted([0, *(s * 2**p for p in range(13) for s in (1, -1))])
