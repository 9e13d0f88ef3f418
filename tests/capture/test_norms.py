"""What flows from each token, against a loop over vectors; and where the output projection is."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from torch import nn

import edited
import tiny
import witnesses
from headscope.capture.forward.interface import Capture
from headscope.capture.model.model import Model
from headscope.capture.passes.projection import find_norms
from headscope.capture.rows.attention import Attention
from headscope.capture.tokens.batch import Batch
from headscope.corpora import Document
from headscope.errors import ModelError

DOCUMENTS = tiny.documents(7)


def through_norms(model: Model, batch: Batch) -> Capture:
    capture = Capture.verified(model, batch)
    return replace(capture, norms=find_norms(capture, batch))


def shown(capture: Capture, batch: Batch, **how) -> dict[tuple[str, int], torch.Tensor]:
    """The rows that an observer is shown, together for each layer, by the questions that give them whole."""
    blocks: dict[tuple[str, int], list[torch.Tensor]] = {}

    def observe(attention: Attention) -> None:
        everything = torch.eye(attention.keys.length).expand(len(batch.documents), -1, -1)
        asked = attention.average(everything)
        real = attention.queries.real[:, attention.rows]
        by_row = (answer.transpose(1, 2)[real] for answer in (attention.weights(), asked))
        torch.testing.assert_close(*by_row, atol=1e-5, rtol=0)
        blocks.setdefault((attention.attention_type, attention.layer), []).append(asked)

    capture.run(batch, observe, **how)
    return {layer: torch.cat(rows, dim=2) for layer, rows in blocks.items()}


@cache
def see(family: str, dtype: torch.dtype, document: Document) -> list[tuple[str, witnesses.Seen, witnesses.Seen]]:
    """The maps of each attention type, and beside them those of what flows."""
    module, tokenizer = tiny.make(family)
    module = module.to(dtype)
    plain = witnesses.see(module, tokenizer, document)
    return [(name, plain[name], seen) for name, seen in witnesses.see_norms(module, tokenizer, document).items()]


@pytest.mark.parametrize("how", [{}, {"rows": 3}, {"fused": True}], ids=["dense", "3 rows", "fused"])
@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_a_row_has_the_shares_of_the_norms_of_what_flows(family: str, how: dict) -> None:
    module, tokenizer = tiny.make(family)
    # The wide weights of tiny models make large scores, in which float32 rounds; without the matrix there is no other.
    # In float64 two families make NaN of padding that sees no key.
    exact = "fused" not in how and family not in ("modernbert", "gemma2")
    module, bound = (module.double(), 1e-6) if exact else (module, 1e-5)
    model = Model.from_module(module, tokenizer, name=family)
    batch = edited.read(model, DOCUMENTS)
    ours, far = shown(through_norms(model, batch), batch, **how), 0.0
    for place, document in enumerate(batch.documents):
        for attention_type, plain, seen in see(family, module.dtype, document):
            for layer, expected in enumerate(seen.weights, start=1):
                rows = ours[attention_type, layer][place, :, : expected.shape[1], : expected.shape[2]]
                np.testing.assert_allclose(rows, expected, atol=bound, rtol=0)
                far = max(far, abs(expected - plain.weights[layer - 1]).max())
    assert far > 0.1  # the view is not the weights


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "bart"])
def test_norms_are_those_of_vectors_in_the_width_of_the_model(family: str) -> None:
    """A value behind the projection: the difference that it makes to the module's output."""
    subject = edited.make(family)
    capture = through_norms(subject.model, subject.batch)
    heads, width = capture.norms.projections[subject.kind, 1].shape[:2]
    values = torch.randn(1, heads, 3, width, dtype=torch.float64)
    real = torch.tensor([[True, True, False]])
    norms = capture.norms.measure(subject.kind, 1, values, real)
    by_name = {"bert": "encoder.layer.0.attention.output.dense", "gpt2": "h.0.attn.c_proj"}
    by_name |= {"llama": "layers.0.self_attn.o_proj", "bart": "decoder.layers.0.encoder_attn.out_proj"}
    module = subject.model.module.double().get_submodule(by_name[family])
    for head in range(heads):
        for key in (0, 1):
            alone = torch.zeros(1, heads, values.shape[-1], dtype=torch.float64)
            alone[0, head] = values[0, head, key]
            flow = module(alone.flatten(1)) - module(torch.zeros_like(alone.flatten(1)))
            assert norms[0, head, key].item() == pytest.approx(flow.norm().item(), rel=1e-6)
    assert (norms[:, :, 2] == 1).all()  # padding


class Adapted(nn.Module):
    """A projection with something of low rank added to it, as adapters do."""

    def __init__(self, base: nn.Linear) -> None:
        super().__init__()
        self.base, self.down = base, nn.Linear(base.in_features, 2, bias=False)
        self.up = nn.Linear(2, base.out_features, bias=False)

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        return self.base(z) + self.up(self.down(z))


def test_an_adapter_belongs_to_the_projection() -> None:
    subject = edited.make("llama")
    plain = through_norms(subject.model, subject.batch).norms.projections
    for layer in subject.model.module.layers:
        layer.self_attn.o_proj = Adapted(layer.self_attn.o_proj).eval()
    adapted = through_norms(subject.model, subject.batch).norms.projections
    for (kind, number), factor in adapted.items():
        module = subject.model.module.layers[number - 1].self_attn.o_proj
        whole = module.base.weight + module.up.weight @ module.down.weight
        expected = [part.mT @ part for part in whole.chunk(len(factor), dim=1)]
        torch.testing.assert_close(factor @ factor.mT, torch.stack(expected), atol=1e-4, rtol=1e-4)
        assert (plain[kind, number] - factor).abs().max() > 0.01


def test_a_layer_that_does_more_than_to_project_is_refused() -> None:
    subject = edited.make("llama")
    projection = subject.model.module.layers[1].self_attn
    projection.o_proj = nn.Sequential(nn.LayerNorm(84), projection.o_proj)
    with pytest.raises(ModelError) as refused:
        through_norms(subject.model, subject.batch)
    assert str(refused.value) == (
        "what the heads of 'llama' (LlamaModel) add cannot be seen: no module of decoder layer 2 takes the "
        "output of the heads and only projects it; leave out --view to measure the weights, or disable heads with "
        "--placebos 0."
    )


@pytest.mark.parametrize("family", ["deberta", "xlnet", "mpnet"])
def test_a_family_without_the_interface_is_refused(family: str) -> None:
    subject = edited.make(family)
    name = type(subject.model.module).__name__
    with pytest.raises(ModelError) as refused:
        through_norms(subject.model, subject.batch)
    assert str(refused.value) == (
        f"what the heads of '{family}' ({name}) add cannot be seen, since it does not use transformers' attention "
        "interface; leave out --view to measure its weights."
    )


def test_after_the_search_the_model_has_no_hooks() -> None:
    subject = edited.make("bert")
    before = subject.run()
    through_norms(subject.model, subject.batch)
    assert not any(part._forward_pre_hooks for part in subject.model.module.modules())
    assert torch.equal(subject.run(), before)


@pytest.mark.parametrize("family", ["bert", "llama", "t5"])
def test_a_head_from_which_nothing_flows_has_shares_of_zero(family: str) -> None:
    subject = edited.make(family)
    name = {"bert": "attention.output.dense", "llama": "o_proj", "t5": "Attention.o"}[family]
    heads = tiny.FAMILIES[family].heads
    for part_name, part in subject.model.module.named_modules():
        if part_name.endswith(name):
            with torch.no_grad():
                part.weight.unflatten(1, (heads, -1))[:, 2] = 0
    capture = through_norms(subject.model, subject.batch)
    for (attention_type, _), rows in shown(capture, subject.batch, fused=True).items():
        real = subject.batch.queries(attention_type).real
        sums = rows.sum(-1).transpose(1, 2)[real]
        expected = torch.ones(heads)
        expected[2] = 0
        torch.testing.assert_close(sums, expected.expand_as(sums), atol=1e-5, rtol=0)
    ways = {way for _, _, way in capture.run(subject.batch, fused=True).paths}
    if family != "t5":
        assert ways == {"with the matrix: nothing flows from some of its tokens"}
