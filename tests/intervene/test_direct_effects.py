"""Direct effects and self-repair, in models where they are known."""

from pathlib import Path

import numpy as np
import pytest
import torch
import transformers as hf
from torch import nn

import headscope
import tiny
from headscope.capture.model.model import Model
from headscope.errors import HeadscopeError
from headscope.view.effects_report import list_effects
from planted_task import make_task, plant_task

BEGINNINGS = ("the old dog sees a house", "she was there", "a cat likes the dog now", "they see it", "it was old")
TEXTS = [f"{text}{end}" for end in ("", " now", " there", " too") for text in BEGINNINGS]
KINDS = {"llama": hf.LlamaForCausalLM, "gpt2": hf.GPT2LMHeadModel}
LAYER, HEAD = 1, 2


def make_language_model(family: str) -> Model:
    base, tokenizer = tiny.make(family)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = KINDS[family](base.config).eval()
    module.base_model.load_state_dict(base.state_dict(), strict=False)
    return Model.from_module(module, tokenizer, name=family)


def measure(model: Model, folder: Path, **settings: object):
    settings = {
        "start": model.tokenizer.bos_token,
        "how": "zero",
        "placebos": 0,
        "direct": True,
        "progress": False,
    } | settings
    return headscope.measure_effects(model, TEXTS, folder, **settings)


def compute_loss(model: Model, text: str, logits) -> tuple[float, int]:
    """The loss of a text behind the token that begins texts, summed, and the number of tokens that are predicted."""
    ids, first = model.tokenizer(text, return_tensors="pt")["input_ids"], model.tokenizer.bos_token_id
    if ids[0, 0] != first:
        ids = torch.cat([torch.tensor([[first]]), ids], dim=1)
    log_probability = logits(ids)[0, :-1].double().log_softmax(-1)
    return -float(log_probability.gather(-1, ids[0, 1:, None]).sum()), ids.shape[1] - 1


@pytest.mark.parametrize("family", KINDS)
def test_direct_effects_are_those_of_a_naive_change_at_the_final_norm(family: str, tmp_path: Path) -> None:
    """The witness adds minus the head's part of the projection to what the norm reads, by hooks of its own."""
    model = make_language_model(family)
    table = measure(model, tmp_path, heads=f"{LAYER}-{HEAD}").sel(how="zero", subset="all", layer=LAYER, head=HEAD)
    module = model.module
    if family == "llama":
        projection, norm = module.model.layers[LAYER - 1].self_attn.o_proj, module.model.norm
        weight = projection.weight.T
    else:
        projection, norm = module.transformer.h[LAYER - 1].attn.c_proj, module.transformer.ln_f
        weight = projection.weight
    width = weight.shape[0] // module.config.num_attention_heads
    rows = slice((HEAD - 1) * width, HEAD * width)
    changes: list[torch.Tensor] = []
    projection.register_forward_pre_hook(lambda _, given: changes.append(-(given[0][..., rows] @ weight[rows])))

    def run_live(ids: torch.Tensor) -> torch.Tensor:
        hook = norm.register_forward_pre_hook(lambda _, given: (given[0] + changes[-1],))
        logits = module(ids).logits
        hook.remove()
        return logits

    def run_frozen(ids: torch.Tensor) -> torch.Tensor:
        def scale_as_before(part: nn.Module, given: tuple, returned: torch.Tensor) -> torch.Tensor:
            (read,), change = given, changes[-1]
            center = read.mean(-1, keepdim=True) if family == "gpt2" else 0
            change = change - change.mean(-1, keepdim=True) if family == "gpt2" else change
            eps = part.eps if family == "gpt2" else part.variance_epsilon
            return returned + part.weight * change / ((read - center).square().mean(-1, keepdim=True) + eps).sqrt()

        hook = norm.register_forward_hook(scale_as_before)
        logits = module(ids).logits
        hook.remove()
        return logits

    with torch.no_grad():
        expected = {}
        for name, logits in {"whole": lambda ids: module(ids).logits, "frozen": run_frozen, "live": run_live}.items():
            losses, tokens = zip(*(compute_loss(model, text, logits) for text in TEXTS), strict=True)
            expected[name] = sum(losses) / sum(tokens)
    assert float(table["whole_loss"]) == pytest.approx(expected["whole"], abs=1e-5)
    assert abs(expected["frozen"] - expected["whole"]) > 1e-5
    assert float(table["direct_effect_loss"]) == pytest.approx(expected["frozen"] - expected["whole"], abs=5e-7)
    assert float(table["direct_effect_live_loss"]) == pytest.approx(expected["live"] - expected["whole"], abs=5e-7)


@pytest.mark.full
def test_where_nothing_stands_above_the_total_effect_is_the_direct_one(tmp_path: Path) -> None:
    """All that lies above the attention of layer 1 adds nothing, so that nothing is repaired or used."""
    model = make_language_model("gpt2")
    blocks = model.module.transformer.h
    for part in (blocks[0].mlp.c_proj, blocks[1].attn.c_proj, blocks[1].mlp.c_proj):
        nn.init.zeros_(part.weight)
        nn.init.zeros_(part.bias)
    table = measure(model, tmp_path, how=["zero", "mean"]).sel(subset="all", layer=1)
    np.testing.assert_allclose(table["effect_loss"], table["direct_effect_live_loss"], atol=1e-6)
    assert float(np.abs(table["effect_loss"]).max()) > 1e-3
    assert float(np.abs(table["direct_effect_loss"] - table["direct_effect_live_loss"]).max()) > 1e-4


class Undo(nn.Module):
    """A feed-forward part that takes away a share of what one direction of the stream holds, whatever the norm says."""

    def __init__(self, direction: torch.Tensor, share: float) -> None:
        super().__init__()
        self.direction, self.share, self.stream = direction, share, torch.zeros(())

    def read(self, module: nn.Module, given: tuple[torch.Tensor, ...]) -> None:
        self.stream = given[0]

    def forward(self, _: torch.Tensor) -> torch.Tensor:
        return -self.share * (self.stream @ self.direction)[..., None] * self.direction


@pytest.mark.parametrize("share", [0.0, 0.75])
def test_planted_repair_is_found_in_its_size(share: float, tmp_path: Path) -> None:
    """Heads of layer 1 make the words of the texts likelier, and layer 2 takes three quarters of that away.

    A large constant in another direction keeps the final norm from repairing anything.
    """
    model = make_language_model("gpt2")
    first, second = model.module.transformer.h
    generator = torch.Generator().manual_seed(1)
    words = model.module.lm_head.weight[model.tokenizer(" ".join(TEXTS))["input_ids"]].mean(0)
    basis = torch.stack([torch.ones(35), torch.randn(35, generator=generator), words.detach()], dim=1)
    _, constant, direction = torch.linalg.qr(basis).Q.T
    direction = direction * (direction @ words).sign().detach()
    with torch.no_grad():
        first.attn.c_attn.weight.mul_(0.01)
        first.attn.c_attn.bias.copy_(torch.ones(105))
        first.attn.c_proj.weight.copy_(0.2 * torch.ones(35, 1) * direction)
        for part in (first.mlp.c_proj, second.attn.c_proj):
            part.weight.zero_()
            part.bias.zero_()
        first.mlp.c_proj.bias.copy_(200 * constant)
    second.mlp = Undo(direction, share)
    second.register_forward_pre_hook(second.mlp.read)
    table = measure(model, tmp_path, layers="1").sel(how="zero", subset="all", layer=1)
    assert float(table["layer_direct_effect_loss_lower"]) > 1e-3
    assert float(table["layer_self_repair_loss"]) == pytest.approx(share, abs=0.1)
    assert float(table["layer_self_repair_loss_lower"]) < float(table["layer_self_repair_loss_upper"])


@pytest.mark.full
def test_no_self_repair_is_said_where_the_direct_effect_is_not_sure(tmp_path: Path) -> None:
    table = measure(make_language_model("llama"), tmp_path)
    sure = (table["direct_effect_loss_lower"] > 0) | (table["direct_effect_loss_upper"] < 0)
    assert bool((table["self_repair_loss"].notnull() == sure).all())
    assert "self_repair_kl" not in table
    frame = list_effects(table)
    row = frame[(frame["unit"] == "1-2") & (frame["metric"] == "loss")].iloc[0]
    assert row["direct_effect"] == pytest.approx(float(table["direct_effect_loss"].sel(layer=1, head=2).item()))


def test_self_repair_of_a_layer_is_that_of_the_sums_over_its_heads(tmp_path: Path) -> None:
    table = measure(make_language_model("gpt2"), tmp_path).sel(how="zero", subset="all")
    ratio = 1 - table["effect_loss"].sum("head") / table["direct_effect_loss"].sum("head")
    known = table["self_repair_by_layer_loss"].notnull()
    assert bool(known.any())
    np.testing.assert_allclose(table["self_repair_by_layer_loss"].where(known), ratio.where(known))


def test_a_model_without_an_additive_stream_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HeadscopeError, match="leave out `direct`"):
        headscope.measure_effects(plant_task([(2, 3)]), make_task(), tmp_path, direct=True, progress=False)
