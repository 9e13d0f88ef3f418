"""Texts as they are written, or as words with spaces: other tokens, another identity, no table that mixes them."""

import json
from dataclasses import replace

import pytest
import xarray as xr

import headed
import headscope
import tiny
from headscope.analyse.comparable import check_measured_alike
from headscope.capture.model.model import Model
from headscope.commands.inputs import refuse_other_probes
from headscope.corpora import Document
from headscope.errors import HeadscopeError, TableError
from headscope.intervene.prediction import SentenceReader
from headscope.learn.task import Task
from headscope.runner import Plan
from headscope.runner.local import Run
from headscope.runner.provenance import identify_model
from headscope.view.headings import describe_reading

STRINGS = ("The dogs don't walk.", "It was old, U.S. made.", "A dog; a house!")


def make_model() -> Model:
    return Model.from_module(*tiny.make("roberta"), name="roberta")


def test_a_written_text_has_the_tokens_of_the_tokenizer() -> None:
    model = make_model()
    written = headscope.measure(model, STRINGS, "surface", text="written")
    assert written.attrs["tokens"] == sum(len(ids) for ids in model.tokenizer(list(STRINGS))["input_ids"])
    assert written.attrs["text"] == "written"
    assert written.attrs["words"] == written.attrs["units"] == sum(len(string.split()) for string in STRINGS)


def test_written_is_the_default() -> None:
    model = make_model()
    default, written = (headscope.measure(model, STRINGS, "surface", **how) for how in ({}, {"text": "written"}))
    assert default.drop_attrs().identical(written.drop_attrs())
    assert default.attrs["text"] == "written"
    assert headscope.measure(model, STRINGS, "surface", text="spaced").attrs["text"] == "spaced"


def test_documents_without_a_text_are_counted() -> None:
    documents = [*headscope.read(STRINGS), Document("words", ("A", "cat", ".")), Document("others", ("Dogs", "walk"))]
    table = headscope.measure(make_model(), documents, "surface")
    assert (table.attrs["documents_without_text"], table.attrs["documents"]) == (2, 5)
    assert describe_reading(table.attrs).startswith("Documents without a text: 2. Their words were read with spaces")


def test_random_tokens_are_read_alike_in_both_forms() -> None:
    tables = [headscope.measure(make_model(), "repeats:3", "surface", text=text) for text in ("written", "spaced")]
    assert tables[0].identical(tables[1].assign_attrs(tables[0].attrs))
    for table in tables:
        assert (table.attrs["text"], table.attrs["documents_without_text"]) == ("given", 0)
        assert describe_reading(table.attrs) == ""
    check_measured_alike(tables[0], "a.nc", tables[1], "b.nc")


def test_a_form_that_a_request_names_is_that_of_its_table() -> None:
    table = headscope.measure("minilm", "grammar:5", "surface", text="written")
    del table.attrs["text"]  # as effects of some versions lack it
    assert headscope.rerun(table).table.attrs["text"] == "written"


def test_runs_of_another_form_are_said() -> None:
    assert describe_reading({"text": "spaced", "tuned_on_text": "written"}).endswith("tuned on written texts.")
    assert describe_reading({"text": "written", "tuned_on_text": "written"}) == ""
    tagging = Task("a", "tagging", ("x", "y"), {}, "f1")
    assert tagging.text == replace(tagging, kind="classification", spaced=True).text == "spaced"
    assert replace(tagging, kind="regression").text == "written"


def test_what_is_in_front_of_texts_is_told_from_the_texts() -> None:
    reader = SentenceReader(Model.from_module(*headed.make("gpt2", "causal-lm"), name="gpt2"))
    read = [reader.align([*headscope.read(corpus)], max_tokens=None, cut=False)[0] for corpus in (STRINGS, "repeats:3")]
    assert reader.describe(read[0]) == {"text": "written", "documents_without_text": 0, "start": ""}
    assert reader.describe(read[1]) == {"text": "given", "documents_without_text": 0, "start": "<|endoftext|>"}
    assert "start" not in reader.describe(read[0] + read[1])


def test_probes_of_another_form_are_refused() -> None:
    model = make_model()
    probes = xr.Dataset(attrs={**identify_model(model), "text": "written"})
    refuse_other_probes(probes, model, Plan())
    with pytest.raises(TableError, match=r"the probes are of written texts.*train them with --text spaced"):
        refuse_other_probes(probes, model, Plan(text="spaced"))


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
    for text in ("written", "spaced"):
        table = headscope.measure("minilm", "grammar:5", "surface", text=text)
        again = headscope.rerun(table)
        assert again.table.attrs["text"] == text
        assert again.differing == ()
    # A table from before there were two forms is of spaced texts, and its request says nothing about them.
    request = {name: value for name, value in json.loads(table.attrs["request"]).items() if name != "text"}
    before = table.assign_attrs(request=json.dumps(request))
    del before.attrs["text"]
    again = headscope.rerun(before)
    assert again.table.attrs["text"] == "spaced"
    assert again.differing == ()


def test_an_unknown_way_to_read_a_text_is_refused() -> None:
    for read in (lambda: headscope.measure(make_model(), STRINGS, "surface", text="other"), lambda: Plan(text="other")):
        with pytest.raises(HeadscopeError, match=r"'other'.*written.*spaced"):
            read()


def test_heads_of_one_way_to_read_are_not_judged_by_texts_of_the_other() -> None:
    model = make_model()
    here, there = (headscope.measure(model, f"grammar:31:{seed}", "relations", permutations=0) for seed in (3, 5))
    there = there.assign_attrs(text="spaced")
    variable = here["relation_accuracy"].isel(relation=0, direction=0)
    for judge in (
        lambda: headscope.analyse.add_replication(here, there),
        lambda: headscope.analyse.consistency(here, there, variable.name),
    ):
        with pytest.raises(HeadscopeError, match=r"read as \w+ and .* as \w+; measure both with one --text"):
            judge()
