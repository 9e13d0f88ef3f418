"""The rules that decide whether the attention of a layer is measured with its matrix or without it."""

import math
from collections.abc import Mapping
from typing import Any

from jaxtyping import Int
from torch import Tensor

LEAVES_SCORES_ALONE = frozenset(
    "scaling dropout position_ids use_cache is_causal encoder_hidden_states deterministic sliding_window "
    "output_attentions".split()
)
"""The arguments of attention that add nothing to ``scale * q . k`` under a mask.

They have no effect on the scores, or are the scale itself, or are part of the mask as well.
"""

KEY_BY_KEY = frozenset({"softcap", "s_aux", "position_bias"})
"""The arguments that change the score of each key separately, or add a column; hidden keys can still be left out."""

LARGEST = 128.0
"""The largest log-sum-exp that is allowed without the matrix; its rounding changes a weight by at most 8e-6 of it."""


def list_terms(terms: Mapping[str, Any]) -> list[str]:
    """List the names of the arguments of a call of attention that may change plain ``scale * q . k``.

    Every argument counts that is not None and not in `LEAVES_SCORES_ALONE`. In addition, rows of every layer are
    compared with the model's own function.
    """
    return [name for name, term in terms.items() if term is not None and name not in LEAVES_SCORES_ALONE]


def find_scale(terms: Mapping[str, Any], size: int) -> float:
    """Return the factor of the products of queries and keys in a call of attention; `size` is the width of a key."""
    return float(terms.get("scaling") or size**-0.5)


def may_be_large(bound: float, keys: int) -> bool:
    """Return whether scores between -`bound` and `bound` may have a log-sum-exp larger than `LARGEST`."""
    # NaN counts as large.
    return not bound + math.log(keys) <= LARGEST


def describe_large_scores(largest: float) -> str:
    """Return a description of scores that are too large to do without the matrix; empty if they are not too large.

    Without the matrix, a weight is the exponential of a difference of two numbers that are each rounded.

    Args:
        largest: The largest log-sum-exp of the layer.
    """
    return "" if largest <= LARGEST else f"scores of {largest:,.0f}, too large for float32 without it"


def may_leave_out(terms: Mapping[str, Any]) -> bool:
    """Return whether a call can leave out the keys that its mask hides, without a change of the other weights."""
    return all(term is None or name in LEAVES_SCORES_ALONE | KEY_BY_KEY for name, term in terms.items())


def cut(term: Any, rows: slice | Int[Tensor, " row"], columns: slice, queries: int, keys: int) -> Any:
    """Return the block of an argument with axes of queries and keys (T5's position bias); return others unchanged."""
    if isinstance(term, Tensor) and term.ndim == 4 and term.shape[-2:] == (queries, keys):
        return term[:, :, rows, columns]
    return term
