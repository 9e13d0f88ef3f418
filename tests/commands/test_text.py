"""Texts as they are written: other tokens, another identity, and no table that mixes the two."""

import pytest

import headscope
import tiny
from headscope.analyse.comparable import check_measured_alike
from headscope.capture.model.model import Model
from headscope.errors import HeadscopeError
from headscope.runner import Plan
from headscope.runner.local import Run

STRINGS = ("The dogs don't walk.", "It was old, U.S. made.", "A dog; a house!")


def make_model() -> Model:
    return Model.from_module(*tiny.make("roberta"), name="roberta")


def test_a_written_text_has_the_tokens_of_the_tokenizer() -> None:
    model = make_model()
    written = headscope.measure(model, STRINGS, "surface", text="written")
    assert written.attrs["tokens"] == sum(len(ids) for ids in model.tokenizer(list(STRINGS))["input_ids"])
    assert written.attrs["text"] == "written"
    assert written.attrs["words"] == written.attrs["units"] == sum(len(string.split()) for string in STRINGS)


def test_spaced_is_the_default_and_has_a_space_before_each_word() -> None:
    model = make_model()
    default, spaced = (headscope.measure(model, STRINGS, "surface", **how) for how in ({}, {"text": "spaced"}))
    assert "text" not in default.attrs
    assert default.drop_attrs(deep=False).identical(spaced.drop_attrs(deep=False))


def test_how_texts_are_read_is_part_of_the_identity_of_sums() -> None:
    documents = headscope.read(STRINGS)
    runs = [
        Run.open(make_model(), documents, "surface", plan=Plan(text=text)).identity for text in ("spaced", "written")
    ]
    assert {name for name, value in runs[0].items() if value != runs[1][name]} == {"plan", "about"}


def test_tables_of_texts_that_were_read_otherwise_are_not_compared() -> None:
    spaced, written = (headscope.measure(make_model(), STRINGS, "surface", text=text) for text in ("spaced", "written"))
    with pytest.raises(HeadscopeError) as refused:
        check_measured_alike(spaced, "a.nc", written, "b.nc")
    assert str(refused.value) == ("b.nc is of texts read as written and a.nc as spaced; measure both with one --text.")


def test_a_table_is_measured_again_as_its_texts_were_read() -> None:
    again = headscope.rerun(headscope.measure("minilm", "grammar:5", "surface", text="written"))
    assert again.table.attrs["text"] == "written"
    assert again.differing == ()


def test_an_unknown_way_to_read_a_text_is_refused() -> None:
    for read in (lambda: headscope.measure(make_model(), STRINGS, "surface", text="other"), lambda: Plan(text="other")):
        with pytest.raises(HeadscopeError, match=r"'other'.*written.*spaced"):
            read()


def test_heads_of_one_way_to_read_are_not_judged_by_texts_of_the_other() -> None:
    model = make_model()
    here, there = (headscope.measure(model, f"grammar:31:{seed}", "relations", permutations=0) for seed in (3, 5))
    there = there.assign_attrs(text="written")
    variable = here["relation_accuracy"].isel(relation=0, direction=0)
    for judge in (
        lambda: headscope.add_replication(here, there),
        lambda: headscope.consistency(here, there, variable.name),
    ):
        with pytest.raises(HeadscopeError, match=r"read as written and .* as spaced; measure both with one --text"):
            judge()
