"""The end of a residual stream: what a change there does with the norm as it was, and with the norm anew."""

import pytest
import torch

import tiny
from edited import Subject, agree, make
from headscope.capture.passes.blocks import get_first, record_blocks
from headscope.capture.passes.projection import find_projections
from headscope.capture.passes.residual import ResidualStream, find_residual_stream, freeze_norm
from headscope.errors import ModelError
from headscope.intervene.edit import capture_model

ADDITIVE = {"modernbert": True, "gpt2": True, "llama": False, "qwen3": False, "mistral": False, "gpt_oss": False}
"""Families with an additive stream, and whether their last norm takes the mean away."""

WHY = {
    "bert": "the attention of block 1 does more than to project",
    "distilbert": "block 1 does more than to add",
    "albert": "its layers are one block",
    "gemma2": "block 1 does more than to add",
    "t5": "not one sequence of blocks",
}


def find(subject: Subject) -> ResidualStream:
    capture = capture_model(subject.model)
    return find_residual_stream(capture, subject.batch, find_projections(capture, subject.batch))


@pytest.mark.parametrize("family", ADDITIVE)
def test_the_norm_at_the_end_of_the_stream_is_found(family: str) -> None:
    stream = find(make(family))
    assert "norm" in type(stream.norm).__name__.lower()
    assert stream.centers == ADDITIVE[family]


@pytest.mark.parametrize("family", WHY)
def test_a_model_without_an_additive_stream_is_refused_with_the_reason(family: str) -> None:
    with pytest.raises(ModelError, match=WHY[family]):
        find(make(family))


@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_a_frozen_norm_is_its_closed_form(family: str) -> None:
    """RMS norm: w x / sqrt(mean x^2 + eps); layer norm: the same of x less its mean, plus b. The root is kept."""
    subject = make(family)
    stream = find(subject)
    generator = torch.Generator().manual_seed(3)
    width = subject.model.module.config.hidden_size
    before, change = (torch.randn(2, 5, width, generator=generator).double() for _ in range(2))
    change[0, 1] = 0
    norm = stream.norm.double()
    center = (lambda x: x - x.mean(-1, keepdim=True)) if stream.centers else (lambda x: x)
    eps = norm.eps if family == "gpt2" else norm.variance_epsilon
    root = (center(before).square().mean(-1, keepdim=True) + eps).sqrt()
    bias = norm.bias if family == "gpt2" else 0.0
    frozen = freeze_norm(norm.forward, before, centers=stream.centers)
    expected = norm.weight * center(before + 0.01 * change) / root + bias
    with torch.no_grad():
        agree(frozen(before + 0.01 * change), expected, to=1e-6)
        agree(frozen(before + 100 * change), norm.weight * center(before + 100 * change) / root + bias, to=1e-6)


@pytest.mark.parametrize("family", ["llama", "gpt2", "modernbert"])
def test_ending_with_another_stream_is_the_norm_of_it(family: str) -> None:
    subject = make(family)
    stream, capture = find(subject), capture_model(subject.model)
    cache = {"use_cache": False} if hasattr(subject.model.module.config, "use_cache") else {}
    with torch.inference_mode(), record_blocks(capture) as recorded:
        plain = subject.model.module(**subject.batch.inputs, **cache).last_hidden_state
    last = get_first(recorded.outputs[-1])
    other = last + torch.randn(last.shape, generator=torch.Generator().manual_seed(5))
    with torch.inference_mode(), recorded.end_with(other):
        agree(subject.model.module(**subject.batch.inputs, **cache).last_hidden_state, stream.norm(other))
    with torch.inference_mode(), stream.freeze_scale(last), recorded.end_with(last):
        agree(subject.model.module(**subject.batch.inputs, **cache).last_hidden_state, plain)
    assert torch.equal(subject.run(), plain[(subject.batch.decoder or subject.batch.encoder).real])


def test_every_family_is_either_measured_or_refused() -> None:
    assert set(tiny.FAMILIES) == set(ADDITIVE) | set(WHY) | {"roberta", "electra", "bart"}
