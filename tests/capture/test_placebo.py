"""Placebo adapters: random ones of the same size, and what there are none of."""

import copy
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import peft
import pytest
import torch
import transformers as hf

import headscope
import tiny
from headscope.capture.model.model import Model
from headscope.capture.open.loading import load
from headscope.errors import HeadscopeError, ModelError

# PEFT asks transformers for what that has renamed.
pytestmark = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")

RANK = 3


def adapt(family: str = "llama", model: hf.PreTrainedModel | None = None, **settings) -> peft.PeftModel:
    """A model with an adapter of random weights."""
    names = ["q_proj", "v_proj"] if family == "llama" else ["query", "value"]
    config = {"r": RANK, "target_modules": names, "init_lora_weights": False}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return peft.get_peft_model(model or tiny.make(family)[0], peft.LoraConfig(**{**config, **settings}))


def list_updates(model: Model) -> dict[str, np.ndarray]:
    """The update of each weight by its adapter, as PEFT itself computes it."""
    layers = {name: part for name, part in model.module.named_modules() if hasattr(part, "get_delta_weight")}
    return {
        name: part.get_delta_weight(part.active_adapters[0]).detach().double().numpy() for name, part in layers.items()
    }


@pytest.mark.parametrize("family", ["llama", "bert"])
def test_a_placebo_changes_the_same_weights_by_as_much(family: str) -> None:
    words = tiny.make(family)[1]
    adapted = load((adapt(family), words))
    placebo = headscope.placebo_adapter(adapted, seed=5)
    updates, random = list_updates(adapted), list_updates(placebo)
    assert updates.keys() == random.keys()
    assert len(updates) == 4
    for name, update in updates.items():
        assert np.linalg.norm(random[name]) == pytest.approx(np.linalg.norm(update), rel=1e-5)
        assert np.linalg.matrix_rank(random[name], tol=1e-5) == RANK
        sizes, expected = (np.linalg.svd(each, compute_uv=False) for each in (random[name], update))
        np.testing.assert_allclose(sizes, expected, atol=1e-5)
        angle = abs((random[name] * update).sum()) / np.linalg.norm(update) ** 2
        assert angle < 0.5
    parts = dict(placebo.module.named_parameters())
    for name, part in adapted.module.named_parameters():
        assert (parts[name] is part) == ("lora_" not in name)


def test_embeddings_of_words_have_placebos_too() -> None:
    adapted = load((adapt("bert", target_modules=["word_embeddings"]), tiny.make("bert")[1]))
    (update,), (random,) = (list_updates(each).values() for each in (adapted, headscope.placebo_adapter(adapted)))
    np.testing.assert_allclose(*(np.linalg.svd(each, compute_uv=False) for each in (random, update)), atol=1e-5)
    assert abs(random - update).max() > 0.1


def test_a_rank_above_that_of_the_weight_is_that_of_the_weight() -> None:
    adapted = load((adapt("bert", r=41), tiny.make("bert")[1]))
    updates, random = (list_updates(each) for each in (adapted, headscope.placebo_adapter(adapted)))
    for name, update in updates.items():
        assert update.shape == random[name].shape == (35, 35)
        sizes, expected = (np.linalg.svd(each, compute_uv=False) for each in (random[name], update))
        np.testing.assert_allclose(sizes, expected, rtol=1e-4, atol=1e-4)


def test_seeds_differ_and_a_seed_gives_the_same_again() -> None:
    pair = adapt(), tiny.make("llama")[1]
    first, again, other = (headscope.placebo_adapter(pair, seed=seed) for seed in (1, 1, 2))
    assert first.weights_sha256 == again.weights_sha256 != other.weights_sha256
    for one, same, another in zip(*(list_updates(each).values() for each in (first, again, other)), strict=True):
        np.testing.assert_array_equal(one, same)
        assert abs(one - another).max() > 0.1
    assert first.placebo_of == load(pair).weights_sha256
    assert first.name == f"placebo (seed 1) of {load(pair).name}"


def test_the_adapter_stays_as_it_is() -> None:
    pair = adapt(), tiny.make("llama")[1]
    before = load(pair).weights_sha256
    headscope.measure(headscope.placebo_adapter(pair), ["The dog sees the cat."], "surface")
    assert load(pair).weights_sha256 == before


def test_a_folder_has_the_placebos_of_the_model_in_memory(tmp_path: Path) -> None:
    base = tiny.save(tmp_path / "base", "llama")
    adapted = adapt(model=hf.AutoModel.from_pretrained(base))
    adapted.save_pretrained(tmp_path / "adapter")
    placebos = [
        headscope.placebo_adapter(model, seed=7) for model in (tmp_path / "adapter", (adapted, tiny.make("llama")[1]))
    ]
    for one, same in zip(*(list_updates(each).values() for each in placebos), strict=True):
        np.testing.assert_allclose(one, same, atol=1e-6)
    tables = [headscope.measure(each, ["The dog sees the old cat."], "surface") for each in placebos]
    np.testing.assert_allclose(tables[0]["entropy"], tables[1]["entropy"], atol=1e-5)
    assert tables[0].attrs["placebo_of"] == load(tmp_path / "adapter").weights_sha256
    assert tables[0].attrs["adapter_of"] == tables[1].attrs["adapter_of"] == str(base)


def merge(adapted: peft.PeftModel) -> None:
    adapted.merge_adapter()


def switch_off(adapted: peft.PeftModel) -> None:
    adapted.base_model.disable_adapter_layers()


def add_another(adapted: peft.PeftModel) -> None:
    adapted.add_adapter("other", copy.deepcopy(adapted.peft_config["default"]))
    adapted.base_model.set_adapter(["default", "other"])


def clear(adapted: peft.PeftModel) -> None:
    with torch.no_grad():
        for name, part in adapted.named_parameters():
            if "lora_B" in name:
                part.zero_()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (merge, "is merged into the weights of layers.0.self_attn.q_proj; take it out, as by model.unmerge_adapter()."),
        (switch_off, "is switched off at layers.0.self_attn.q_proj; switch it on, as by "
         "model.enable_adapter_layers()."),
        (add_another, "is one of 2 that are active at layers.0.self_attn.q_proj (default, other); choose one by "
         "set_adapter."),
    ],
)  # fmt: skip
def test_what_is_not_at_work_alone_has_no_placebo(change: Callable, said: str) -> None:
    adapted = adapt()
    change(adapted)
    with pytest.raises(ModelError) as refused:
        headscope.placebo_adapter((adapted, tiny.make("llama")[1]))
    assert str(refused.value) == f"no placebo can be made of 'adapter of LlamaModel', whose adapter {said}"


def test_an_adapter_that_changes_nothing_has_no_placebo() -> None:
    adapted = adapt()
    clear(adapted)
    with pytest.raises(ModelError) as refused:
        headscope.placebo_adapter((adapted, tiny.make("llama")[1]))
    assert str(refused.value) == (
        "the adapter of 'adapter of LlamaModel' changes no weight, and so would a placebo; give a trained one."
    )


WANTED = "give the folder of an adapter by LoRA, or a PeftModel with one"


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (peft.IA3Config(target_modules=["k_proj"], feedforward_modules=[]),
         f"is not by LoRA: layers.0.self_attn.k_proj is a layer of the kind peft.tuners.ia3.layer; {WANTED}."),
        (peft.LoHaConfig(target_modules=["q_proj"]),
         f"is not by LoRA: layers.0.self_attn.q_proj is a layer of the kind peft.tuners.loha.layer; {WANTED}."),
        (peft.LoraConfig(target_modules=["q_proj"], use_dora=True, init_lora_weights=False),
         "is not by LoRA alone: layers.0.self_attn.q_proj is scaled or shifted as well (such as by DoRA); "
         f"{WANTED}."),
        (peft.LoraConfig(target_modules=["q_proj"], modules_to_save=["up_proj"], init_lora_weights=False),
         f"has layers.0.mlp.up_proj trained as a whole, and not by LoRA; {WANTED} and without modules_to_save."),
        (peft.LoraConfig(target_modules=["q_proj"], bias="all", init_lora_weights=False),
         f"has biases trained as well (bias='all'); {WANTED} and without biases."),
    ],
    ids=["IA3", "LoHa", "DoRA", "modules to save", "biases"],
)  # fmt: skip
def test_other_kinds_have_no_placebo(config: peft.PeftConfig, said: str) -> None:
    adapted = peft.get_peft_model(tiny.make("llama")[0], config)
    with pytest.raises(ModelError) as refused:
        headscope.placebo_adapter((adapted, tiny.make("llama")[1]))
    assert str(refused.value) == f"no placebo can be made of 'adapter of LlamaModel', whose adapter {said}"


def test_an_update_with_a_shift_has_no_placebo() -> None:
    adapted = adapt("bert", lora_bias=True)
    with pytest.raises(ModelError, match="is scaled or shifted as well"):
        headscope.placebo_adapter((adapted, tiny.make("bert")[1]))


def test_a_model_without_an_adapter_has_no_placebo() -> None:
    with pytest.raises(ModelError) as refused:
        headscope.placebo_adapter(tiny.make("llama"))
    assert str(refused.value) == f"'LlamaModel' has no adapter, and a placebo is a random one in its place; {WANTED}."


def test_a_model_with_an_edit_has_no_placebo() -> None:
    adapted = load((adapt(), tiny.make("llama")[1]))
    with headscope.disable(adapted, "1-2"), pytest.raises(HeadscopeError) as refused:
        headscope.placebo_adapter(adapted)
    assert re.fullmatch(
        "'adapter of LlamaModel' runs with .*1-2.*, and a placebo is made of a model without edits; make it outside of "
        "the block of the edit.",
        str(refused.value),
    )
