"""Language models with random weights, whose output may be let read what a head adds, and what matters to them."""

from typing import Any

import torch

import headed
import headscope
import tiny
from headscope.capture.model.model import Model
from headscope.view.effects_report import list_effects

FAMILIES = {"llama": "causal-lm", "gpt2": "causal-lm", "bert": "masked-lm", "gemma2": "causal-lm"}
"""Norms before each block, norms behind it (BERT), and both (Gemma 2)."""

TEXTS = 31


def make(family: str, seed: int) -> Model:
    """An untrained model, whose weights are wide."""
    module, tokenizer = headed.make(family, FAMILIES[family])
    module.base_model.load_state_dict(tiny.make(family, seed)[0].state_dict(), strict=False)
    return Model.from_module(module, tokenizer, name=f"{family} {seed}")


PLANTED = {"llama": 0.3, "gemma2": 3.0}
"""How strongly the output reads the planted head: behind a norm of its block a head adds a tenth as much."""


def plant(model: Model, seed: int, family: str = "llama") -> None:
    """Let the output embeddings of a Llama, or of a Gemma 2, read what head 2-3 adds."""
    module, width, size = model.module, model.module.config.head_dim, PLANTED[family]
    with torch.no_grad():
        layer = module.model.layers[1]
        added = layer.self_attn.o_proj.weight[:, 2 * width : 3 * width]
        if family == "gemma2":
            added = (1 + layer.post_attention_layernorm.weight)[:, None] * added
        generator = torch.Generator().manual_seed(seed)
        read = torch.randn(len(module.lm_head.weight), width, generator=generator) @ (added / added.norm(dim=0)).T
        module.lm_head.weight = torch.nn.Parameter(module.lm_head.weight + size * read)


def list_needed(model: Model, seed: int, **options: Any) -> dict[str, list[str]]:
    """The heads, and the layers, that matter by the divergence of the model without them."""
    effects = list_effects(
        headscope.measure_effects(model, tiny.documents(TEXTS), seed=seed, progress=False, **options)
    )
    matter = effects[(effects["metric"] == "kl") & (effects["verdict"] == "matters")]
    return {kind: matter.loc[matter["kind"] == kind, "unit"].tolist() for kind in ("head", "layer")}
