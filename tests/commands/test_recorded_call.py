"""How a table was measured, read from its attributes: parts of a corpus, calls of both commands, and damaged ones."""

import json
from functools import partial

import pytest
import xarray as xr

from headscope.commands.check.recorded_call import RecordedCall, read_call

make_call = partial(RecordedCall, text="spaced")  # a table that names no form is of spaced texts


def table(corpus: str = "a.conllu", call: str = "", skipped: dict | None = None, **more: object) -> xr.Dataset:
    about = {"corpus": corpus, "call": call, "skipped": json.dumps(skipped or {})}
    return xr.Dataset(attrs=about | more)


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("a.conllu", make_call("a.conllu")),
        ("a (b).conllu", make_call("a (b).conllu")),
        ("a.conllu (first 1,009 documents)", make_call("a.conllu", limit=1009)),
        ("a.conllu (first 1 document)", make_call("a.conllu", limit=1)),
        ("grammar:300:7 (101 documents at random, seed 13)", make_call("grammar:300:7", sample=101, seed=13)),
    ],
)
def test_the_part_of_the_corpus_stands_behind_its_name(title: str, expected: RecordedCall) -> None:
    assert read_call(table(title)) == expected


def test_a_call_has_the_form_that_its_table_names() -> None:
    assert read_call(table(text="written")).text == "written"
    assert read_call(table(text="given")).text is None


def test_the_call_of_measuring_has_a_plan() -> None:
    plan = "Plan(max_tokens=101, cut=True, pair_tokens=53, batch_tokens=499, rows=None, fused=None, view=None)"
    call = f"measure(model='x', reducers=['relations', 'scope'], plan={plan})"
    assert read_call(table(call=call, view="norm")) == make_call(
        "a.conllu", max_tokens=101, cut=True, pair_tokens=53, batch_tokens=499, view="norm",
        reducers=("relations", "scope"),
    )  # fmt: skip


def test_the_call_of_an_atlas_has_everything_itself() -> None:
    call = (
        "atlas(model='x', corpus='a', format='conllu', patterns='own.json', limit=None, max_tokens=None, cut=False, "
        "pair_tokens=None, batch_tokens=None, reducers=['repetition:Repetition'], views=[], effects=None)"
    )
    assert read_call(table(call=call)) == make_call(
        "a.conllu", format="conllu", patterns="own.json", cut=False, reducers=("repetition:Repetition",)
    )


def test_settings_of_reducers_are_known_from_the_request() -> None:
    call = "measure(model='x', reducers=['surface', 'repetition'], plan=Plan())"
    names = ["surface:offsets=-2|3", "repetition:Repetition"]
    for reducers, expected in ((names, names[:1]), (names[0], names[:1]), ("surface", []), (3, [])):
        request = json.dumps({"command": "measure", "reducers": reducers})
        assert read_call(table(call=call, request=request)).reducers == ("surface", "repetition", *expected)
    assert read_call(table(call=call, request="damaged")).reducers == ("surface", "repetition")


def test_the_longest_text_is_known_from_what_was_left_out() -> None:
    skipped = {"documents longer than 1,024 tokens": 3, "documents of one word": 5}
    assert read_call(table(skipped=skipped)).max_tokens == 1024
    assert read_call(table(skipped={"documents cut to 128 tokens": 7})).max_tokens == 128
    assert read_call(table(skipped={"words after the cut": 11})).max_tokens is None


@pytest.mark.parametrize(
    "call",
    [
        "",
        "measure(",
        "3",
        "measure(plan=f(x), reducers=g, cut=open, **more)",
        "(" * 999,
        "measure(plan=3, reducers='abc', cut='yes', batch_tokens='many')",
    ],
)
def test_of_a_call_that_cannot_be_read_only_the_corpus_is_known(call: str) -> None:
    assert read_call(table(call=call)) == make_call("a.conllu")
