"""Layers of tiny models that are run without their matrix, and their weights in float64."""

import torch

import tiny
from headscope.capture.forward.interface import Capture
from headscope.capture.model.model import Model
from headscope.capture.rows.attention import Attention
from headscope.capture.rows.fused import FusedRows
from headscope.capture.tokens.align import Alignment
from headscope.capture.tokens.batch import Batch, collate

DOCUMENTS = tiny.documents(7)
PLAIN = (
    "bert", "roberta", "distilbert", "electra", "albert", "modernbert", "gpt2", "llama", "qwen3", "mistral", "bart",
)  # fmt: skip
"""Families whose scores are plain products of queries and keys."""


def load(
    family: str, documents: int = len(DOCUMENTS), dtype: torch.dtype = torch.float32, device: str = "cpu"
) -> tuple[Model, Batch]:
    """Return a model with weights of a type on a device, and the first `documents` documents as it reads them."""
    module, tokenizer = tiny.make(family)
    model = Model.from_module(module.to(device, dtype), tokenizer, name=family)
    batch = collate(model, Alignment.for_model(model).align(DOCUMENTS[:documents])[0])
    return model, batch


def observe(model: Model, batch: Batch, **how) -> list[Attention]:
    attentions: list[Attention] = []
    Capture(model, "interface").run(batch, attentions.append, **how)
    return attentions


def real(attention: Attention, values: torch.Tensor) -> torch.Tensor:
    """Rows of tokens, without padding."""
    return values.transpose(1, 2)[attention.queries.real]


def make_weights(fused: FusedRows) -> torch.Tensor:
    """The weights in float64, by plain softmax of all scores."""
    groups = fused.heads // fused.key.shape[1]
    scores = fused.scale * fused.query.double() @ fused.key.double().repeat_interleave(groups, 1).transpose(-1, -2)
    device = fused.query.device
    place = torch.arange(fused.queries.length, device=device)[:, None]
    key = torch.arange(fused.keys.length, device=device)
    seen = fused.keys.real[:, None, None].expand(-1, 1, len(place), -1)
    if fused.reach.before is not None:
        seen = seen & (place - key <= fused.reach.before)
    if fused.reach.after is not None:
        seen = seen & (key - place <= fused.reach.after)
    return scores.masked_fill(~seen, -torch.inf).softmax(-1)


def in_float64(fused: FusedRows) -> tuple[torch.Tensor, torch.Tensor]:
    """The weights and entropies of real rows."""
    weights = make_weights(fused)
    return real(fused, weights), real(fused, torch.special.entr(weights).sum(-1, keepdim=True))[..., 0]
