"""Average maps: naive loops over the maps of the model itself, what a decoder cannot see, and short texts."""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch
import xarray as xr

import tiny
import witnesses
from headscope.capture.model.model import Model
from headscope.corpora import Document, summarize
from headscope.errors import HeadscopeError
from headscope.reducers import REDUCERS, AverageMap
from headscope.runner import Plan, measure
from headscope.runner.completed_table import name_view

DOCUMENTS = tiny.documents(11)
LONG = [
    replace(document, id=f"long {document.id}", words=document.words * 3, links=(), spans=(), boundary=None)
    for document in DOCUMENTS
    if len(document.words) >= 11
]
DIMS = ("layer", "head", "query_bin", "key_bin")


def asked(family: str, documents: list[Document]) -> tuple[Model, dict[str, list[witnesses.Seen]]]:
    """A tiny model, and what the witness saw of it in each attention type."""
    module, tokenizer = tiny.make(family)
    seen: dict[str, list[witnesses.Seen]] = {}
    for document in documents:
        for attention_type, maps in witnesses.see(module, tokenizer, document).items():
            seen.setdefault(attention_type, []).append(maps)
    return Model.from_module(module, tokenizer, name=family), seen


def of_attention_type(table: xr.Dataset, attention_type: str) -> xr.DataArray:
    """The maps of one attention type, without the layers that only other attention types have."""
    values = table["average_map"]
    if "attention_type" in values.dims:
        values = values.sel(attention_type=attention_type).dropna("layer", how="all")
    return values.transpose(*DIMS)


@pytest.mark.parametrize("family", tiny.FAMILIES)
@pytest.mark.parametrize(
    "plan",
    [Plan(), Plan(batch_tokens=1, rows=3), Plan(fused=True), Plan(batch_tokens=1, fused=True)],
    ids=["batched", "alone, 3 rows", "batched, fused", "alone, fused"],
)
def test_maps_equal_naive_loops(family: str, plan: Plan) -> None:
    model, seen = asked(family, DOCUMENTS)
    table = measure(model, DOCUMENTS, [AverageMap(7)], plan=plan)
    for attention_type, maps in seen.items():
        assert len({len(text.keys) for text in maps}) > 5
        ours = of_attention_type(table, attention_type)
        assert ours.sizes["query_bin"] == ours.sizes["key_bin"] == 7
        assert len({*ours.shape}) > 2
        expected = witnesses.average_map(maps, 7)
        np.testing.assert_allclose(ours.values, expected, atol=1e-6, rtol=0, err_msg=attention_type)


@pytest.mark.parametrize("family", ["bert", "gpt2", "bart"])
def test_sixteen_parts_of_longer_texts(family: str) -> None:
    model, seen = asked(family, LONG)
    table = measure(model, LONG, ["average_map"])
    for attention_type, maps in seen.items():
        assert min(len(text.keys) for text in maps) > 16
        ours = of_attention_type(table, attention_type)
        np.testing.assert_allclose(ours.values, witnesses.average_map(maps, 16), atol=1e-6, rtol=0)
        np.testing.assert_allclose(ours.sum("key_bin"), 1, atol=1e-5)
        assert ours["query_bin"].values.tolist() == ours["key_bin"].values.tolist() == list(range(1, 17))
    assert table["average_map"].attrs["units"] == "share of attention"


def test_sinks_that_are_no_token_leave_rows_with_less_than_one() -> None:
    model, _ = asked("gpt_oss", [])
    table = measure(model, DOCUMENTS, ["average_map"])
    assert (table["average_map"].sum("key_bin").max("query_bin") < 1).all()


@pytest.mark.parametrize("family", ["gpt2", "mistral", "bart"])
def test_a_decoder_attends_to_no_later_part(family: str) -> None:
    """Of a text that has as many tokens as the map has parts, or twice as many."""
    model, seen = asked(family, LONG[:1])
    tokens = len(seen["decoder"][0].queries)
    for bins in [tokens, *([tokens // 2] if tokens % 2 == 0 else [])]:
        values = of_attention_type(measure(model, LONG[:1], [AverageMap(bins)]), "decoder")
        later = values["key_bin"] > values["query_bin"]
        assert later.any()
        assert float(values.where(later, 0).max()) == 0
        assert (values.where(~later).sum("key_bin").max("query_bin") > 0.99).all()


def stretch(weights: np.ndarray, bins: int) -> np.ndarray:
    """A map of one text as one of parts: each token is repeated, and then as many neighbours are averaged."""
    queries, keys = weights.shape[-2:]
    fine = weights.repeat(bins, -2).repeat(bins, -1) / bins
    parts = fine.reshape(*fine.shape[:-2], bins, queries, bins, keys)
    return parts.mean(-3).sum(-1)


@pytest.mark.parametrize("family", ["bert", "gpt2", "bart"])
def test_a_short_text_is_stretched(family: str) -> None:
    documents = [document for document in DOCUMENTS if len(document.words) == 3][:1]
    model, seen = asked(family, documents)
    table = measure(model, documents, ["average_map"])
    for attention_type, (text,) in seen.items():
        assert len(text.queries) < 16
        ours = of_attention_type(table, attention_type)
        np.testing.assert_allclose(ours, stretch(text.weights, 16), atol=1e-6)


def test_equal_weights_are_equal_parts_at_any_length() -> None:
    model, seen = asked("bert", [*DOCUMENTS, *LONG])
    with torch.no_grad():
        for layer in model.module.encoder.layer:
            layer.attention.self.query.weight.zero_()
            layer.attention.self.query.bias.zero_()
    assert len({len(text.keys) for text in seen["encoder"]}) > 7
    table = measure(model, [*DOCUMENTS, *LONG], ["average_map"])
    np.testing.assert_allclose(table["average_map"], 1 / 16, atol=1e-6)


def test_short_texts_add_up_with_long_ones() -> None:
    model, seen = asked("bert", [*DOCUMENTS, *LONG])
    both = measure(model, [*DOCUMENTS, *LONG], ["average_map"])
    expected = witnesses.average_map(seen["encoder"], 16)
    np.testing.assert_allclose(of_attention_type(both, "encoder"), expected, atol=1e-6)


def test_the_unit_is_that_of_the_view() -> None:
    model, _ = asked("gpt2", [])
    table = name_view(measure(model, LONG, ["average_map"], plan=Plan(view="norm")), "norm")
    assert table["average_map"].attrs["units"] == table.attrs["view_units"] != "share of attention"
    np.testing.assert_allclose(table["average_map"].sum("key_bin"), 1, atol=1e-5)


def test_any_corpus_has_average_maps() -> None:
    summary = summarize([Document("plain", ("the", "dog"))])
    assert REDUCERS["average_map"].supports(summary)
    assert REDUCERS["average_map"].for_corpus(summary) == AverageMap(16)


@pytest.mark.parametrize("bins", [0, -3, 513, True])
def test_what_is_no_number_of_parts_is_refused(bins: int) -> None:
    sentence = f"an average map cannot have {bins!r} bins; give a whole number from 1 to 512, such as 16."
    with pytest.raises(HeadscopeError, match=f"^{re.escape(sentence)}$"):
        AverageMap(bins)
