"""The tolerance of the verification follows from the model's own noise: valid models pass, a small error does not."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from transformers import PreTrainedModel

import hybrids
import tiny
from headscope.capture.forward import interface, untouched
from headscope.capture.forward.interface import Capture
from headscope.capture.forward.verify import find_tolerance, select_real
from headscope.capture.model.model import Model
from headscope.capture.model.noise import NOISE_FACTOR, measure_noise
from headscope.capture.tokens.align import Alignment
from headscope.capture.tokens.batch import Batch, collate
from headscope.errors import ModelError

DOCUMENTS = tiny.documents(7)
MAKERS = {**dict.fromkeys(tiny.FAMILIES, tiny.make), **dict.fromkeys(hybrids.HYBRIDS, hybrids.make)}
EACH = pytest.mark.parametrize("family", MAKERS)
LLAMA = tiny.FAMILIES["llama"]
DEEP = replace(LLAMA, settings={**LLAMA.settings, "num_hidden_layers": 11}, attention_types={"decoder": 11}, spread=0.6)
"""A model of many layers, each of which multiplies the roundings of the layers below."""


def batch_of(model: Model) -> Batch:
    return collate(model, Alignment.for_model(model).align(DOCUMENTS)[0])


def run(model: Model, batch: Batch) -> torch.Tensor:
    """The model's outputs, padding left out, without any code of the capture."""
    tokens = batch.decoder or batch.encoder
    with torch.no_grad():
        return model.module(**batch.inputs).last_hidden_state[tokens.real]


def plant(monkeypatch: pytest.MonkeyPatch, layer: tuple[str, int], head: int) -> None:
    """From now on the capture returns the output of one head 0.1 % too large."""
    honest = interface.attend_with_all_rows

    def attend(run, call):
        output, way = honest(run, call)
        if (call.attention_type, call.layer) == layer:
            output = output.clone()
            output[:, :, head] *= 1.001
        return output, way

    monkeypatch.setattr(interface, "attend_with_all_rows", attend)


@EACH
def test_an_error_of_a_tenth_of_a_percent_in_any_head_is_refused(monkeypatch: pytest.MonkeyPatch, family: str) -> None:
    model = Model.from_module(*MAKERS[family](family), name=family)
    batch = batch_of(model)
    for layer in Capture.verified(model, batch).modules:
        for head in range(model.shape.heads[layer[0]]):
            with monkeypatch.context() as patch:
                plant(patch, layer, head)
                with pytest.raises(ModelError, match=f"the outputs of '{family}' differ by"):
                    Capture.verified(model, batch)


@EACH
def test_the_noise_covers_what_kernels_and_float64_differ_by(family: str) -> None:
    """The witness: the model itself with every number in float64, and by its other attention kernel."""
    module, words = MAKERS[family](family)
    model = Model.from_module(module, words, name=family)
    batch = batch_of(model)
    noise, outputs = measure_noise(module, lambda: run(model, batch)), run(model, batch)
    if module._supports_sdpa:
        module.set_attn_implementation("eager")
        assert NOISE_FACTOR * noise > 2 * float((run(model, batch) - outputs).abs().max())
        module.set_attn_implementation("sdpa")
    if family not in ("gemma2", "granite_swa"):  # which return NaN in float64
        exact = run(Model.from_module(module.double(), words, name=family), batch)
        assert 0.1 * noise < float((exact - outputs).abs().max()) < 10 * noise


def test_measuring_the_noise_leaves_the_model_as_it_was() -> None:
    model = Model.from_module(*tiny.make("llama"), name="llama")
    batch = batch_of(model)
    before, name = run(model, batch), model.module.config._attn_implementation
    measure_noise(model.module, lambda: run(model, batch))
    torch.testing.assert_close(run(model, batch), before, atol=0, rtol=0)
    assert model.module.config._attn_implementation == name
    assert not any(part._forward_hooks for part in model.module.modules())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_unit_in_the_last_place_is_that_of_the_models_type(dtype: torch.dtype) -> None:
    """An identity that is read once differs by exactly one unit in the last place."""

    class Identity(torch.nn.Module):
        def forward(self, numbers: torch.Tensor) -> torch.Tensor:
            return numbers

    class Copies(tiny.FAMILIES["bert"].model):
        def __init__(self, config) -> None:
            super().__init__(config)
            self.copy = Identity()

    module = Copies(tiny.make("bert")[0].config).to(dtype)
    numbers = torch.ones(1009, dtype=dtype)
    assert measure_noise(module, lambda: module.copy(numbers)) == torch.finfo(dtype).eps


def test_a_model_that_carries_roundings_far_is_not_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model.from_module(*tiny.build(DEEP, "deep"), name="deep")
    batch = batch_of(model)
    outputs = run(model, batch)
    observed = select_real(batch, Capture.verified(model, batch).run(batch, lambda _: None).verified)
    difference = float((observed - outputs).abs().max())
    assert difference > find_tolerance(torch.float32) * float(outputs.abs().max())
    with monkeypatch.context() as patch:
        plant(patch, ("decoder", 1), 5)
        with pytest.raises(ModelError, match="the outputs of 'deep' differ by"):
            Capture.verified(model, batch)
    # It is the noise that allows the difference.
    monkeypatch.setattr(untouched, "measure_noise", lambda module, run: difference / NOISE_FACTOR / 2)
    with pytest.raises(ModelError, match="the outputs of 'deep' differ by"):
        Capture.verified(model, batch)


@pytest.mark.parametrize("noise", [float("inf"), float("nan")])
def test_noise_that_is_not_finite_excuses_nothing(monkeypatch: pytest.MonkeyPatch, noise: float) -> None:
    monkeypatch.setattr(untouched, "measure_noise", lambda module, run: noise)
    plant(monkeypatch, ("encoder", 1), 2)
    model = Model.from_module(*tiny.make("bert"), name="bert")
    with pytest.raises(ModelError, match="the outputs of 'bert' differ by"):
        Capture.verified(model, batch_of(model))


def test_the_noise_is_not_measured_where_one_rounding_explains_the_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(module: PreTrainedModel, run: Callable[[], torch.Tensor]) -> float:
        raise AssertionError("two more passes for nothing")

    monkeypatch.setattr(untouched, "measure_noise", fail)
    model = Model.from_module(*tiny.make("bert"), name="bert")
    assert Capture.verified(model, batch_of(model)).route == "interface"
