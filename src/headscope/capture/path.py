"""Which way the attention of a layer is measured, and why."""

from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headscope.capture.batch import Batch
from headscope.capture.fused import FusedRows
from headscope.capture.mask import Reach

LEAVES_SCORES_ALONE = frozenset(
    {
        "scaling", "dropout", "position_ids", "use_cache", "is_causal", "encoder_hidden_states", "deterministic",
        "sliding_window", "output_attentions",
    }
)  # fmt: skip
"""What models hand to attention that does not change the scores, or is `scale`, or stands in the mask as well."""

LARGEST = 128.0
"""The largest log-sum-exp without the matrix; the weights are right to half a rounding of it, 8e-6."""

KEY_BY_KEY = frozenset({"softcap", "s_aux", "position_bias"})
"""What does change them, but each score by itself or by a column of its own, so that hidden keys can be left out."""


def plain(
    batch: Batch,
    attention_type: str,
    layer: int,
    query: Float[Tensor, "batch head query size"],
    key: Float[Tensor, "batch key_head key size"],
    value: Float[Tensor, "batch key_head key width"],
    reach: Reach | None,
    terms: Mapping[str, Any],
) -> FusedRows | str:
    """A call of attention as plain ``softmax(scale * q . k)`` under a mask, or why it is, or may be, more than that.

    What is not known to leave the scores alone counts as more: no guessing. Rows of every layer are
    compared with the model's own function all the same.
    """
    if query.dtype != torch.float32:
        return f"scores in {str(query.dtype).removeprefix('torch.')}"
    if value.shape != key.shape:
        return "values are not as wide as keys"
    more = [name for name, term in terms.items() if term is not None and name not in LEAVES_SCORES_ALONE]
    if more:
        return f"the model adds to the scores ({', '.join(more)})"
    if reach is None:
        return "the mask is of a kind that is not known"
    scale = terms.get("scaling") or query.shape[-1] ** -0.5
    return FusedRows(layer, attention_type, batch, query, key, scale, reach)


def too_large(log_sum: Float[Tensor, "batch head query"], real: Bool[Tensor, "batch query"]) -> str:
    """Why a layer's scores are too large to do without the matrix; empty where they are not.

    Without it a weight is the exponential of a difference of scores, each rounded by itself.
    """
    largest = float(log_sum.abs().amax(1)[real].max())
    return "" if largest <= LARGEST else f"scores of {largest:,.0f}, too large for float32 without it"


def may_leave_out(terms: Mapping[str, Any]) -> bool:
    """Whether keys that the mask hides can be left out of a call without a change in the others' weights."""
    return all(term is None or name in LEAVES_SCORES_ALONE | KEY_BY_KEY for name, term in terms.items())


def cut(term: Any, rows: slice, columns: slice, queries: int, keys: int) -> Any:
    """A term of the scores with axes of queries and keys (T5's position bias), cut to those of a block."""
    if isinstance(term, Tensor) and term.ndim == 4 and term.shape[-2:] == (queries, keys):
        return term[:, :, rows, columns]
    return term
