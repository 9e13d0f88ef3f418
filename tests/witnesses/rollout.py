"""Attention rollout, Abnar and Zuidema 2020, section 3: matrices of one document multiplied layer by layer."""

from dataclasses import replace

import numpy as np

from witnesses.seen import Seen

KEPT = 0.5


def see_rollout(seen: dict[str, Seen], *, sink: bool) -> dict[str, Seen]:
    """The same document with the attention of each head carried down to the tokens of the input.

    Args:
        seen: the attention of each attention type, encoder first.
        sink: attention to the special tokens of an encoder, and to the first token of a decoder, counts.
    """
    shown, maps, reaches = {}, {}, {}
    for attention_type, one in seen.items():
        below, reach = maps.get("encoder"), reaches.get("encoder")
        if attention_type != "cross":
            below, reach = np.eye(len(one.keys)), np.eye(len(one.keys))
        sees = [sink or not is_sink(one, attention_type, key) for key in range(len(one.keys))]
        rows, visible = np.zeros_like(one.weights), np.zeros_like(one.visible)
        for layer, weights in enumerate(one.weights):
            heads = [head if sink else without_sink(head, one, attention_type) for head in weights]
            rows[layer] = [np.einsum("ij,jk->ik", head, below) for head in heads]
            visible[layer] = np.einsum("ij,jk->ik", (one.visible[layer] & np.array(sees)).astype(int), reach) > 0
            if attention_type != "cross":
                below = KEPT * below + (1 - KEPT) * np.einsum("ij,jk->ik", sum(heads) / len(heads), below)
                reach = (visible[layer] + reach > 0).astype(int)
        maps[attention_type], reaches[attention_type] = below, reach
        shown[attention_type] = replace(one, weights=rows, visible=visible)
    return shown


def is_sink(seen: Seen, attention_type: str, key: int) -> bool:
    return key == 0 if attention_type == "decoder" else seen.keys[key].word is None


def without_sink(weights: np.ndarray, seen: Seen, attention_type: str) -> np.ndarray:
    """Rows without the sink, which sum to 1 again, or to 0 where there was nothing else."""
    rest = np.zeros_like(weights)
    for q, row in enumerate(weights):
        kept = [0 if is_sink(seen, attention_type, k) else weight for k, weight in enumerate(row)]
        rest[q] = [weight / sum(kept) if sum(kept) else 0 for weight in kept]
    return rest
