"""The seam: blocks of rows are the whole, nothing is left changed behind, and what cannot be captured is refused."""

import re
from itertools import product

import pytest
import torch
from transformers import AttentionInterface

import tiny
from headscope.capture.forward.interface import NAME, Capture
from headscope.capture.model.model import Model
from headscope.capture.rows.attention import Attention
from headscope.capture.tokens.align import Alignment
from headscope.capture.tokens.batch import Batch, collate
from headscope.errors import ModelError

DOCUMENTS = tiny.documents(7)


def load(family: str) -> Model:
    return Model.from_module(*tiny.make(family), name=family)


def one_batch(model: Model) -> Batch:
    return collate(model, Alignment.for_model(model).align(DOCUMENTS)[0])


def untouched(model: Model, batch: Batch) -> torch.Tensor:
    with torch.no_grad():
        return model.module(**batch.inputs).last_hidden_state


def observe(capture: Capture, batch: Batch, **how) -> list[Attention]:
    attentions: list[Attention] = []
    capture.run(batch, attentions.append, **how)
    return attentions


@pytest.mark.parametrize("family", tiny.FAMILIES)
@pytest.mark.parametrize("rows", [3, None])
def test_outputs_are_those_of_the_untouched_model(family: str, rows: int | None) -> None:
    model = load(family)
    batch = one_batch(model)
    tokens = batch.decoder or batch.encoder
    expected = untouched(model, batch)[tokens.real]
    outputs = Capture.verified(model, batch).run(batch, lambda attention: None, rows=rows)
    assert dict(outputs.layers) == dict(model.layers)
    bound = 1e-5 * max(1.0, float(expected.abs().max()))
    torch.testing.assert_close(outputs.hidden[tokens.real], expected, atol=bound, rtol=0)


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_gathered_blocks_are_the_whole(family: str) -> None:
    model = load(family)
    batch = one_batch(model)
    capture = Capture.verified(model, batch)
    for whole, pieces in zip(observe(capture, batch), observe(capture, batch, rows=3, whole=True), strict=True):
        assert (whole.attention_type, whole.layer, whole.rows) == (pieces.attention_type, pieces.layer, pieces.rows)
        torch.testing.assert_close(whole.weights(), pieces.weights(), atol=1e-5, rtol=0)
        torch.testing.assert_close(whole.visible(), pieces.visible())


def test_blocks_cover_every_row_once() -> None:
    model = load("bert")
    batch = one_batch(model)
    rows = [a.rows for a in observe(Capture.verified(model, batch), batch, rows=5) if a.layer == 2]
    assert [row for block in rows for row in range(block.start, block.stop)] == list(range(batch.encoder.length))


@pytest.mark.parametrize("family", ["bert", "llama", "bart"])
def test_answers_follow_from_the_matrix(family: str) -> None:
    model = load(family)
    batch = one_batch(model)
    for attention in observe(Capture.verified(model, batch), batch, rows=7):
        weights = attention.weights().double()
        keys = attention.keys.length
        columns = torch.rand(len(batch.documents), keys, 3, generator=torch.Generator().manual_seed(5))
        expected = torch.einsum("bhqk,bkf->bhqf", weights, columns.double())
        torch.testing.assert_close(attention.average(columns).double(), expected, atol=1e-5, rtol=0)
        torch.testing.assert_close(attention.entropy().double(), torch.special.entr(weights).sum(-1), atol=1e-5, rtol=0)
        batch_size, heads, queries, _ = weights.shape
        chosen = torch.randint(keys, (batch_size, queries, 2), generator=torch.Generator().manual_seed(7))
        picked = attention.at(chosen).double()
        for b, h, q, n in product(range(batch_size), range(heads), range(queries), range(2)):
            assert picked[b, h, q, n] == weights[b, h, q, chosen[b, q, n]]


@pytest.mark.parametrize("family", ["bert", "gemma2", "t5"])
def test_the_implementation_is_restored_even_after_an_error(family: str) -> None:
    model = load(family)
    batch = one_batch(model)
    capture = Capture.verified(model, batch)
    before, outputs = model.module.config._attn_implementation, untouched(model, batch)

    def fail(attention: Attention) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        capture.run(batch, fail)
    assert model.module.config._attn_implementation == before != NAME
    torch.testing.assert_close(untouched(model, batch), outputs, atol=0, rtol=0)


def test_training_mode_is_refused() -> None:
    model = load("bert")
    batch = one_batch(model)
    model.module.train()
    with pytest.raises(ModelError) as refused:
        Capture.verified(model, batch)
    assert str(refused.value) == (
        "'bert' is in training mode, where dropout changes attention; call `.eval()` on it first."
    )


def test_a_layer_that_is_not_seen_is_refused() -> None:
    model = load("bert")
    batch = one_batch(model)
    model.module.config.num_hidden_layers = 3  # the model has 2
    with pytest.raises(ModelError) as refused:
        Capture.verified(model, batch)
    assert str(refused.value) == (
        "the attention of 'bert' cannot be captured: 3 encoder layers were expected and 2 encoder layers seen. "
        "The model mixes attention with other layers, or computes it apart."
    )


@pytest.mark.parametrize("how", ["leave the mask out", "other weights than were used"])
def test_a_wrong_capture_is_noticed(monkeypatch, how: str) -> None:
    """The check must fail where it should: the eager function beside BERT's attention is made to lie."""
    from transformers.models.bert import modeling_bert

    honest = modeling_bert.eager_attention_forward

    def lying(module, query, key, value, mask, **terms):
        if how == "leave the mask out":
            return honest(module, query, key, value, None, **terms)
        output, weights = honest(module, query, key, value, mask, **terms)
        return output, weights.roll(1, dims=1)

    model = load("bert")
    batch = one_batch(model)
    monkeypatch.setattr(modeling_bert, "eager_attention_forward", lying)
    what = "the outputs" if how == "leave the mask out" else "the values averaged by layer 1"
    with pytest.raises(ModelError) as refused:
        Capture.verified(model, batch)
    assert re.fullmatch(
        rf"{what} of 'bert' differ by [\d.e-]+ from what the model computes by itself \(at most [\d.e-]+ is allowed\), "
        "so its attention cannot be captured.",
        str(refused.value),
    )


def test_a_fallback_family_is_verified_too() -> None:
    model = load("mpnet")
    assert Capture.verified(model, one_batch(model)).route == "outputs"


def test_our_name_is_registered_once() -> None:
    assert NAME in AttentionInterface()


def test_half_precision_is_measured_in_float32() -> None:
    module, tokenizer = tiny.make("llama")
    model = Model.from_module(module.to(torch.bfloat16), tokenizer, name="llama")
    batch = collate(model, Alignment.for_model(model).align(DOCUMENTS)[0])
    attentions = observe(Capture.verified(model, batch), batch)
    assert {attention.weights().dtype for attention in attentions} == {torch.float32}
