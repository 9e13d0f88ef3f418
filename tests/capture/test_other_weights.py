"""Weights and fields of a configuration that a model on disk has and transformers does not use."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers as hf
from safetensors.torch import load_file, save_file
from torch import Tensor

import headscope
import tiny
from headscope.capture.open.loading import load
from headscope.errors import ModelError, first_line

Weights = dict[str, Tensor]
ADVICE = "give a complete checkpoint whose configuration is its own."


def change(
    folder: Path, weights: Callable[[Weights], Weights] | None = None, configuration: dict | None = None
) -> Path:
    """Change the weights and the configuration that lie in a folder."""
    if weights:
        file = folder / "model.safetensors"
        changed = {name: value.clone().contiguous() for name, value in weights(load_file(file)).items()}
        save_file(changed, file, metadata={"format": "pt"})
    if configuration:
        file = folder / "config.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | configuration))
    return folder


def add(**weights: Tensor) -> Callable[[Weights], Weights]:
    """Add weights; two underscores stand for a dot."""
    return lambda others: others | {name.replace("__", "."): value for name, value in weights.items()}


def scale(name: str, dtype: torch.dtype) -> Callable[[Weights], Weights]:
    """Round the query weights to 8 bits, and keep their scales under a name."""

    def rounded(weights: Weights) -> Weights:
        changed = dict(weights)
        for key in [key for key in weights if "q_proj.weight" in key]:
            largest = weights[key].abs().max()
            changed[key] = (weights[key] / largest * 100).to(dtype)
            if name:
                changed[key.replace("weight", name)] = (largest / 100).reshape(1)
        return changed

    return rounded


SIZE = torch.zeros(7)
# What is done to a model, and the weight that the message names.
DROPPED = {
    "relative positions of bert": (
        "bert", add(encoder__layer__0__attention__self__distance_embedding__weight=SIZE), None,
        "the weight encoder.layer.0.attention.self.distance_embedding.weight",
    ),
    "a bias of one projection": (
        "llama", add(layers__1__self_attn__q_proj__bias=SIZE), None, "the weight layers.1.self_attn.q_proj.bias"
    ),
    "norms of queries and keys": (
        "llama", add(layers__0__self_attn__q_norm__weight=SIZE, layers__0__self_attn__k_norm__weight=SIZE), None,
        "2 weights, such as layers.0.self_attn.k_norm.weight,",
    ),
    "matrices of an adapter": (
        "llama", add(layers__0__self_attn__q_proj__lora_A__default__weight=SIZE), None,
        "the weight layers.0.self_attn.q_proj.lora_A.default.weight",
    ),
    "a layer more than the configuration has": (
        "bert", None, {"num_hidden_layers": 1},
        "16 weights, such as encoder.layer.1.attention.output.LayerNorm.bias,",
    ),
    "a norm outside of the layers": ("llama", add(norm__bias=SIZE), None, "the weight norm.bias"),
    "scales of fp8": (
        "llama", scale("weight_scale_inv", torch.float8_e4m3fn), None,
        "2 weights, such as layers.0.self_attn.q_proj.weight_scale_inv,",
    ),
    "scales of int8": (
        "llama", scale("SCB", torch.int8), None, "2 weights, such as layers.0.self_attn.q_proj.SCB,"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", DROPPED)
def test_weights_that_no_module_takes_are_refused_and_named(case: str, tmp_path: Path) -> None:
    family, weights, configuration, named = DROPPED[case]
    folder = change(tiny.save(tmp_path, family), weights, configuration)
    with pytest.raises(ModelError) as refused:
        load(folder)
    assert str(refused.value) == (
        f"{str(folder)!r} has {named} for which its configuration has no place, so attention would be computed "
        f"without; {ADVICE}"
    )


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.int8])
def test_weights_in_8_bits_without_scales_are_refused(dtype: torch.dtype, tmp_path: Path) -> None:
    folder = change(tiny.save(tmp_path, "llama"), scale("", dtype))
    kind = {torch.float8_e4m3fn: "F8_E4M3", torch.int8: "I8"}[dtype]
    with pytest.raises(ModelError) as refused:
        load(folder)
    assert str(refused.value) == (
        f"{str(folder)!r} has weights in 8 bits, such as layers.0.self_attn.q_proj.weight ({kind}), and its "
        "configuration has no quantization_config that says by which scales they are multiplied; "
        "give a complete checkpoint whose configuration is its own, or the weights in 16 or 32 bits."
    )


HARMLESS = {
    "buffers of positions": ("llama", add(layers__0__self_attn__rotary_emb__inv_freq=SIZE), None),
    "ids of positions and segments": (
        "bert", add(embeddings__position_ids=torch.arange(7)[None], embeddings__token_type_ids=SIZE.long()), None
    ),
    "sinusoids": ("bart", add(encoder__embed_positions__weights=SIZE, h__0__attn__embed_positions=SIZE), None),
    "causal masks": (
        "gpt2",
        add(h__0__attn__bias=torch.ones(1, 1, 7, 7, dtype=torch.uint8), h__1__attn__masked_bias=torch.tensor(-1e4)),
        None,
    ),
    "a pooler": ("distilbert", add(pooler__dense__weight=SIZE), None),
    "heads for tasks": ("bert", add(cls__seq_relationship__weight=SIZE, classifier__bias=SIZE), None),
    "a bias of the logits": ("bart", add(final_logits_bias=SIZE[None]), None),
    "a layer that predicts the token after the next": (
        "llama", add(layers__2__self_attn__q_proj__weight=SIZE), {"num_nextn_predict_layers": 1}
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", HARMLESS)
def test_weights_that_change_nothing_are_left_out(case: str, tmp_path: Path) -> None:
    family, weights, configuration = HARMLESS[case]
    expected = load(tiny.save(tmp_path / "plain", family)).module.state_dict()
    loaded = load(change(tiny.save(tmp_path / "more", family), weights, configuration)).module.state_dict()
    assert expected.keys() == loaded.keys()
    assert all(torch.equal(expected[name], loaded[name]) for name in expected)


def test_scales_of_a_cache_are_left_out_with_a_sentence(tmp_path: Path, caplog) -> None:
    folder = change(tiny.save(tmp_path, "llama"), add(layers__0__self_attn__k_scale=torch.tensor(0.5)))
    load(folder)
    assert caplog.messages == [
        f"{folder} has scales for a cache of rounded keys and values, such as layers.0.self_attn.k_scale; attention is "
        "measured without rounding."
    ]


def test_a_bias_of_the_head_of_a_task_is_refused_with_the_task_alone(tmp_path: Path) -> None:
    folder = tiny.save(tmp_path, "llama")
    module = hf.AutoModelForCausalLM.from_pretrained(folder)
    module.save_pretrained(folder)
    change(folder, add(lm_head__bias=SIZE, cls__seq_relationship__weight=SIZE))
    load(folder)
    with pytest.raises(ModelError, match=r" has the weight lm_head\.bias for which "):
        load(folder, task="causal-lm")


def test_a_weight_of_another_size_is_named(tmp_path: Path) -> None:
    folder = change(tiny.save(tmp_path, "bert"), None, {"intermediate_size": 31})
    with pytest.raises(ModelError) as refused:
        load(folder)
    assert str(refused.value) == (
        f"the weight encoder.layer.0.intermediate.dense.bias of {str(folder)!r} has the size (37,), and its "
        f"configuration calls for (31,); {ADVICE}"
    )


UNREAD = {
    "pruned_heads": ("bert", {"pruned_heads": {"0": [1]}}, "{'0': [1]}"),
    "position_embedding_type": ("bert", {"position_embedding_type": "relative_key_query"}, "relative_key_query"),
    "sliding_window": ("llama", {"sliding_window": 5}, "5"),
    "attn_logit_softcapping": ("llama", {"attn_logit_softcapping": 50.0}, "50.0"),
}


@pytest.mark.parametrize("field", UNREAD)
def test_fields_that_transformers_does_not_read_are_refused_and_named(field: str, tmp_path: Path) -> None:
    family, configuration, value = UNREAD[field]
    folder = change(tiny.save(tmp_path, family), None, configuration)
    with pytest.raises(ModelError) as refused:
        load(folder)
    assert str(refused.value) == (
        f"the configuration of {str(folder)!r} sets {field} to {value}, which the installed transformers does not read "
        f"for a model of the type {family!r}, so attention would be measured without it; give a checkpoint without it, "
        "or one of a type that has it."
    )


READ = {
    "defaults": ("bert", {"pruned_heads": {}, "position_embedding_type": "absolute"}),
    "a window that is off": ("llama", {"sliding_window": 5, "use_sliding_window": False}),
    "a window as long as any text": ("llama", {"sliding_window": 4096, "max_position_embeddings": 149}),
    "a window that is read": ("mistral", {"sliding_window": 5}),
    "no window": ("llama", {"sliding_window": None}),
}


@pytest.mark.parametrize("case", READ)
def test_other_fields_are_read_as_before(case: str, tmp_path: Path) -> None:
    family, configuration = READ[case]
    model = load(change(tiny.save(tmp_path, family), None, configuration))
    table = headscope.measure(model, tiny.documents(3), ["surface"])
    assert np.isfinite(table["entropy"]).all()


def test_a_reason_that_ends_with_a_colon_has_the_next_line() -> None:
    assert first_line(ValueError("Error(s) in loading:\n\n\tsize mismatch for x.\nmore")) == (
        "Error(s) in loading: size mismatch for x"
    )
    assert first_line(ValueError("nothing follows:")) == "nothing follows"
    assert first_line(ValueError(" \n")) == "no reason given"
