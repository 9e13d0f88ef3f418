"""An edit changes a head before the output projection, on both paths and in every family with the interface."""

import re
from collections import Counter

import pytest
import torch

import tiny
from headscope.capture.forward.head_edit import EditedLayer
from headscope.capture.forward.interface import Capture
from headscope.capture.forward.outputs import Outputs
from headscope.capture.model.model import Model
from headscope.capture.tokens.align import Alignment
from headscope.capture.tokens.batch import Batch, collate
from headscope.errors import HeadscopeError, ModelError
from projections import order_of_calls, replaced

DOCUMENTS = tiny.documents(7)
FUSED = pytest.mark.parametrize("fused", [False, True], ids=["dense", "fused"])


def load(family: str) -> tuple[Capture, Batch]:
    model = Model.from_module(*tiny.make(family), name=family)
    batch = collate(model, Alignment.for_model(model).align(DOCUMENTS)[0])
    return Capture.verified(model, batch), batch


def real(outputs: Outputs, batch: Batch) -> torch.Tensor:
    """The last hidden states of tokens, without padding."""
    assert outputs.hidden is not None
    return outputs.hidden[(batch.decoder or batch.encoder).real]


@FUSED
@pytest.mark.parametrize("rows", [None, 3])
@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_an_edit_that_changes_nothing_gives_the_same_bits(family: str, rows: int | None, fused: bool) -> None:
    capture, batch = load(family)
    layers = []

    def keep(z: torch.Tensor, layer: EditedLayer) -> torch.Tensor:
        layers.append((layer.attention_type, layer.layer, z.shape))
        return z

    plain = capture.run(batch, fused=fused, rows=rows)
    edited = capture.run(batch, edit=keep, fused=fused, rows=rows)
    assert plain.hidden is not None
    assert edited.hidden is not None
    assert torch.equal(plain.hidden, edited.hidden)
    assert plain.paths == edited.paths
    # Once a layer, whatever the number of blocks.
    assert Counter(kind for kind, _, _ in layers) == capture.model.layers
    assert {(shape[0], shape[1], shape[2]) for _, _, shape in layers} == {
        (len(DOCUMENTS), tiny.FAMILIES[family].heads, batch.queries(kind).length) for kind in capture.model.layers
    }


@FUSED
@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_a_zeroed_head_is_a_zeroed_slice_of_the_projections_input(family: str, fused: bool) -> None:
    capture, batch = load(family)
    plain = real(capture.run(batch, fused=fused), batch)
    for attention_type in capture.model.layers:

        def zero(z: torch.Tensor, layer: EditedLayer, attention_type: str = attention_type) -> torch.Tensor:
            if (layer.attention_type, layer.layer) == (attention_type, 2):
                z = z.clone()
                z[:, 3] = 0
            return z

        edited = real(capture.run(batch, edit=zero, fused=fused), batch)
        call = order_of_calls(capture.model).index((attention_type, 2))
        with replaced(capture.model, family, call, 3, lambda z: torch.zeros_like(z)):
            hooked = real(capture.run(batch, fused=fused), batch)
        torch.testing.assert_close(edited, hooked, atol=1e-6, rtol=0)
        assert (edited - plain).abs().max() > 1e-3


@FUSED
@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_an_edit_knows_enough_to_spread_attention_evenly(family: str, fused: bool) -> None:
    """The mean of the values of all visible keys, against the attention that the mask alone would give."""
    capture, batch = load(family)
    allowed = {}

    def observe(attention) -> None:
        allowed.setdefault((attention.attention_type, attention.layer), []).append(attention.visible())

    def uniform(z: torch.Tensor, layer: EditedLayer) -> torch.Tensor:
        values = layer.values.repeat_interleave(z.shape[1] // layer.values.shape[1], dim=1)
        blocks = []
        for start in range(0, z.shape[2], 5):
            seen = layer.visible(slice(start, min(start + 5, z.shape[2]))).float()
            blocks.append(seen[:, None] @ values / seen.sum(-1)[:, None, :, None].clamp_min(1))
            rows = batch.queries(layer.attention_type).real[:, start : start + 5]
            expected = torch.cat(allowed[layer.attention_type, layer.layer], dim=1)[:, start : start + 5]
            if not tiny.FAMILIES[family].settings.get("sliding_window"):  # there blocks leave hidden keys out
                torch.testing.assert_close(seen.sum(-1)[rows], expected[rows])
        return torch.cat(blocks, dim=2)

    module, _ = tiny.make(family)
    edited = real(capture.run(batch, observe, uniform, fused=fused), batch)
    with torch.no_grad():  # scores of nothing but the mask
        for name, weights in module.named_parameters():
            if re.search(r"(q_norm|query|q_lin|q_proj|\.q)\.(weight|bias)$|relative_attention_bias", name):
                weights.zero_()
            elif re.search(r"(Wqkv|c_attn)\.(weight|bias)$", name):
                part = weights if weights.ndim == 1 or "Wqkv" in name else weights.T
                part[: part.shape[0] // 3] = 0
            elif name.endswith("sinks"):
                weights.fill_(-1e4)
    with torch.inference_mode():
        expected = module(**batch.inputs).last_hidden_state[(batch.decoder or batch.encoder).real]
    torch.testing.assert_close(edited, expected, atol=1e-5 * float(expected.abs().max()), rtol=0)


def test_z_of_another_text_can_be_put_in_its_place() -> None:
    capture, batch = load("llama")
    held = {}

    def hold(z: torch.Tensor, layer: EditedLayer) -> torch.Tensor:
        held[layer.layer] = z.roll(1, dims=0)
        return z

    plain = capture.run(batch, edit=hold)
    resampled = capture.run(batch, edit=lambda z, layer: held[layer.layer])
    assert not torch.allclose(real(plain, batch), real(resampled, batch), atol=1e-3)


WRONG = {
    "a number too few": (lambda z: z[..., 1:], "a tensor of (7, 5, 35, 6) in float32 on cpu"),
    "another type": (lambda z: z.double(), "a tensor of (7, 5, 35, 7) in float64 on cpu"),
    "nothing": (lambda z: None, "a NoneType"),
}


@FUSED
@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_no_z_is_refused(wrong: str, fused: bool) -> None:
    capture, batch = load("bert")
    change, described = WRONG[wrong]
    before = capture.model.module.config._attn_implementation
    described = described.replace("35", str(batch.encoder.length))
    with pytest.raises(HeadscopeError) as refused:
        capture.run(batch, edit=lambda z, layer: change(z), fused=fused)
    assert str(refused.value) == (
        f"the edit of encoder layer 1 returned {described}, and a tensor of (7, 5, {batch.encoder.length}, 7) in "
        "float32 on cpu was wanted; return a tensor of the shape, type and device of the one that came."
    )
    assert capture.model.module.config._attn_implementation == before


@pytest.mark.parametrize("family", sorted(set(tiny.UNSUPPORTED) - {"falcon"}))
@pytest.mark.parametrize("how", [{"edit": lambda z, layer: z}, {"gradients": True}], ids=["edit", "gradients"])
def test_families_without_the_interface_can_only_be_observed(family: str, how) -> None:
    capture, batch = load(family)
    with pytest.raises(ModelError) as refused:
        capture.run(batch, **how)
    assert str(refused.value) == (
        f"the heads of {family!r} ({type(capture.model.module).__name__}) cannot be edited or differentiated: the "
        "model does not use transformers' attention interface; its attention can only be observed."
    )
