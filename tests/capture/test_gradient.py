"""The gradients of all heads, from one backward pass and without a matrix, are those of eager autograd."""

import re
from collections import Counter

import pytest
import torch
from transformers import PreTrainedModel

import headscope.capture.rows.fused
import tiny
import witnesses
from headscope.capture.forward.interface import Capture
from headscope.capture.model.block_sizes import BlockSizes
from headscope.capture.model.model import Model
from headscope.capture.rows import kernel
from headscope.capture.tokens.align import Alignment
from headscope.capture.tokens.batch import Batch, collate
from headscope.errors import HeadscopeError

DOCUMENTS = tiny.documents(7)
FUSED = pytest.mark.parametrize("fused", [False, True], ids=["dense", "fused"])

ROUNDING = 16 * torch.finfo(torch.float32).eps
"""Of a gradient in float32, relative to the largest: 1.9e-6."""


def make(family: str, spread: float = 1.0, dtype: torch.dtype = torch.float32) -> PreTrainedModel:
    """A tiny model, its matrices less wide if asked for: through wide ones rounding grows from layer to layer."""
    module, _ = tiny.make(family)
    with torch.no_grad():
        for name, weights in module.named_parameters():
            if weights.ndim > 1 or name.endswith("q_norm.weight"):
                weights.mul_(spread)
    return module.to(dtype)


def load(family: str, *how) -> tuple[Capture, Batch]:
    model = Model.from_module(make(family, *how), tiny.tokenizer(tiny.FAMILIES[family].style), name=family)
    batch = collate(model, Alignment.for_model(model).align(DOCUMENTS)[0])
    return Capture.verified(model, batch), batch


def loss_on(batch: Batch, row: int | None = None):
    """A number that depends on each token's hidden state in its own way: the sum over texts, or what one text adds."""
    real = (batch.decoder or batch.encoder).real

    def loss(output) -> torch.Tensor:
        hidden = output.last_hidden_state
        weights = torch.randn((*real.shape, hidden.shape[2]), generator=torch.Generator().manual_seed(11)).to(hidden)
        if row is None:
            return (weights * hidden.sin())[real].sum()
        return (weights[row, real[row]] * hidden[0].sin()).sum()

    return loss


def in_order(model: Model) -> list[tuple[str, int]]:
    """The layers as the forward pass comes by them; a decoder's own attention and cross attention take turns."""
    layers = [(kind, number) for kind, layers in model.layers.items() for number in range(1, layers + 1)]
    return sorted(layers, key=lambda layer: ("cross" in model.layers and layer[0] != "encoder", layer[1]))


def largest_error(capture: Capture, batch: Batch, exact: PreTrainedModel, **how) -> float:
    """The largest difference of ``g . v`` from eager autograd in float64, as a share of the layer's largest gradient.

    The other side sees each text alone, without padding. A weight is what the softmax gives: also with a softcap, sinks
    or position biases, which act before it.
    """
    gradients = capture.run(batch, gradients=True, loss=loss_on(batch), **how).gradients
    places, difference, largest = in_order(capture.model), Counter(), Counter()
    for row, real in enumerate(batch.encoder.real.sum(1).tolist()):
        alone = {
            name: values[row : row + 1, : real + name.startswith("decoder")] for name, values in batch.inputs.items()
        }
        with witnesses.hold_attention(exact) as held:
            loss_on(batch, row)(exact(**alone)).backward()
        assert len(held) == len(places) == len(gradients)
        for place, weights in zip(places, (each.weights for each in held), strict=True):
            _, heads, queries, keys = weights.shape
            g, v = gradients[place].g[row, :, :queries].double(), gradients[place].v[row, :, :keys].double()
            seen = weights[0] > 0
            expected = weights.grad[0, seen]
            ours = (g @ v.repeat_interleave(heads // len(v), dim=0).mT)[seen]
            difference[place] = max(difference[place], float((ours - expected).abs().max()))
            largest[place] = max(largest[place], float(expected.abs().max()))
    assert min(largest.values()) > 0.1
    return max(difference[place] / largest[place] for place in places)


@pytest.mark.parametrize("rows", [None, 3])
@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_the_gradient_of_a_weight_is_g_times_v(family: str, rows: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """In float64 throughout, a text at a time: the masks of some families overflow there in rows of padding."""
    softmax = torch.nn.functional.softmax
    # Many families take theirs in float32 whatever the weights are in, and a block of rows may round otherwise.
    monkeypatch.setattr(torch.nn.functional, "softmax", lambda scores, dim, dtype=None: softmax(scores, dim))
    exact = make(family, 1.0, torch.float64)
    model = Model.from_module(
        make(family, 1.0, torch.float64), tiny.tokenizer(tiny.FAMILIES[family].style), name=family
    )
    for text in Alignment.for_model(model).align(DOCUMENTS)[0]:
        batch = collate(model, [text])
        assert largest_error(Capture(model, "interface"), batch, exact, rows=rows) < 1e-12


@FUSED
@pytest.mark.parametrize("rows", [None, 3])
@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_in_float32_it_is_so_up_to_rounding(family: str, rows: int | None, fused: bool) -> None:
    """In Gemma 2, whose scores pass through a tanh, rounding reaches 1.4e-6; elsewhere it stays below 1e-6."""
    assert largest_error(*load(family, 0.25), make(family, 0.25, torch.float64), rows=rows, fused=fused) < ROUNDING


@pytest.mark.parametrize("family", ["bert", "llama", "mistral", "modernbert", "bart"])
def test_with_plain_products_in_place_of_the_processors_kernel(family: str, monkeypatch) -> None:
    """As on a GPU."""
    monkeypatch.setattr(BlockSizes, "measure", lambda device: BlockSizes(held=2000))
    monkeypatch.setattr(headscope.capture.rows.fused, "attend", kernel.in_blocks)
    assert largest_error(*load(family, 0.25), make(family, 0.25, torch.float64), fused=True) < 1e-6


@FUSED
@pytest.mark.parametrize("trained", [True, False])
@pytest.mark.parametrize("family", ["bert", "gpt2", "t5"])
def test_nothing_is_left_behind(family: str, trained: bool, fused: bool) -> None:
    capture, batch = load(family)
    module = capture.model.module.requires_grad_(trained)
    gradients = {name: torch.full_like(weights, 3.0) for name, weights in module.named_parameters()}
    for name, weights in module.named_parameters():
        weights.grad = gradients[name].clone() if trained else None
    before, plain = module.config._attn_implementation, capture.run(batch, fused=fused)
    outputs = capture.run(batch, gradients=True, loss=loss_on(batch), fused=fused)
    assert module.config._attn_implementation == before
    assert torch.is_grad_enabled()
    for name, weights in module.named_parameters():
        assert weights.requires_grad == trained
        assert torch.equal(weights.grad, gradients[name]) if trained else weights.grad is None
    assert outputs.hidden is not None
    assert plain.hidden is not None
    torch.testing.assert_close(outputs.hidden, plain.hidden, atol=1e-5 * float(plain.hidden.abs().max()), rtol=0)
    tensors = [outputs.hidden, *(t for gradient in outputs.gradients.values() for t in (gradient.g, gradient.v))]
    assert not any(tensor.requires_grad for tensor in tensors)


@FUSED
def test_observers_are_no_part_of_what_is_differentiated(fused: bool) -> None:
    capture, batch = load("llama")
    answers, plain = [], []
    capture.run(batch, lambda a: answers.append(a.entropy()), gradients=True, loss=loss_on(batch), fused=fused)
    capture.run(batch, lambda a: plain.append(a.entropy()), fused=fused)
    for ours, theirs in zip(answers, plain, strict=True):
        assert not ours.requires_grad
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)


def test_after_an_edit_g_is_of_what_went_on() -> None:
    """A step along g, put into z by an edit, changes the loss by the square of its length."""
    capture, batch = load("gpt2", 0.25, torch.float64)
    losses, step, loss = [], 1e-7, loss_on(batch)

    def record(output) -> torch.Tensor:
        losses.append(loss(output))
        return losses[-1]

    first = capture.run(batch, edit=lambda z, layer: 0.5 * z, gradients=True, loss=record).gradients["decoder", 1].g
    capture.run(
        batch, edit=lambda z, layer: 0.5 * z + (step * first if layer.layer == 1 else 0), gradients=True, loss=record
    )
    assert float((losses[1] - losses[0]).detach()) == pytest.approx(step * float((first**2).sum()), rel=1e-4)


LOSSES = {
    "no loss": (
        None,
        "gradients of 'bert' need a loss, and the model returns none; give `loss`, a function of what the model "
        "returns, or load the model with its task head and put `labels` into the inputs of the batch.",
    ),
    "no number": (
        lambda output: output.last_hidden_state[:, :2, 0] * 0,
        r"the loss is tensor\(.*\); it must be a tensor of one number, computed from what the model returns.",
    ),
    "no tensor": (
        lambda output: float(output.last_hidden_state.detach().sum()),
        r"the loss is [-\d.]+; it must be a tensor of one number, computed from what the model returns.",
    ),
}


@pytest.mark.parametrize("wrong", LOSSES)
def test_what_is_no_loss_is_refused(wrong: str) -> None:
    capture, batch = load("bert")
    loss, message = LOSSES[wrong]
    with pytest.raises(HeadscopeError) as refused:
        capture.run(batch, gradients=True, loss=loss)
    assert re.fullmatch(message, str(refused.value), re.DOTALL)
    assert capture.model.module.config._attn_implementation == "sdpa"
