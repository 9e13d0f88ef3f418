"""Values and what heads make of them: the weights times the values, whatever the way to them."""

import pytest
import torch

import tiny
from headscope.capture.model.model import Model
from headscope.capture.passes.stream import Plan, Stream
from headscope.capture.rows.attention import Attention

FAMILIES = ("bert", "gpt2", "llama", "mistral", "gemma2", "gpt_oss", "t5")
"""Plain; causal; with key/value groups; a window; a softcap; a sink that is no token; three attention types."""


@pytest.mark.parametrize(
    "way", [{}, {"rows": 3}, {"rows": 3, "whole": True}, {"fused": True}], ids=["dense", "blocks", "whole", "fused"]
)
@pytest.mark.parametrize("family", FAMILIES)
def test_outputs_are_the_averages_of_values(family: str, way: dict) -> None:
    model = Model.from_module(*tiny.make(family), name=family)
    portion = next(iter(Stream(tiny.documents(7), (model,))))
    (batch,), (capture,) = portion.batches, portion.captures
    layers = set()

    def ask(attention: Attention) -> None:
        layers.add((attention.attention_type, attention.layer))
        real = batch.keys(attention.attention_type).real
        values = attention.values().where(real[:, None, :, None], 0)
        groups = attention.heads // values.shape[1]
        weights = attention.weights().double().where(real[:, None, None], 0)
        expected = weights @ values.double().repeat_interleave(groups, dim=1)
        rows = batch.queries(attention.attention_type).real[:, attention.rows]
        for averaged in (attention.output(), attention.average_by_head(values)):
            assert averaged.shape == expected.shape
            torch.testing.assert_close(
                averaged.double().transpose(1, 2)[rows], expected.transpose(1, 2)[rows], atol=2e-6, rtol=1e-5
            )

    with torch.inference_mode():
        capture.run(batch, ask, **way)
    assert layers == {(kind, layer) for kind, numbers in model.attention_layers.items() for layer in numbers}


@pytest.mark.parametrize("way", [{"rows": 3}, {"fused": True}], ids=["blocks", "fused"])
@pytest.mark.parametrize("heads", [1, 2, 6], ids=["all alike", "by key head", "by head"])
def test_columns_by_key_head_are_averaged_through_a_view(heads: int, way: dict) -> None:
    """Of a llama of 6 heads, of which 3 share a key head."""
    model = Model.from_module(*tiny.make("llama"), name="llama")
    assert (model.shape.heads, model.shape.key_value_heads) == ({"decoder": 6}, {"decoder": 2})
    portion = next(iter(Stream(tiny.documents(7), (model,), Plan(view="norm"))))
    (batch,), (capture,) = portion.batches, portion.captures
    columns = torch.rand(len(batch.documents), heads, batch.encoder.length, 3)
    asked = []

    def ask(attention: Attention) -> None:
        asked.append(attention.layer)
        rows = batch.encoder.real[:, attention.rows]
        expected = attention.weights() @ columns.repeat_interleave(6 // heads, dim=1)
        averages = attention.average_by_head(columns)
        torch.testing.assert_close(averages.transpose(1, 2)[rows], expected.transpose(1, 2)[rows], atol=2e-6, rtol=1e-5)

    with torch.inference_mode():
        capture.run(batch, ask, **way)
    assert {*asked} == {*model.attention_layers["decoder"]}
