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
"""Arguments of attention that do not change the scores, are `scale`, or stand in the mask as well."""

KEY_BY_KEY = frozenset({"softcap", "s_aux", "position_bias"})
"""Arguments that do, but each score by itself or by a column of its own, so that hidden keys can be left out."""

LARGEST = 128.0
"""The largest log-sum-exp without the matrix; the weights are right to half a rounding of it, 8e-6."""


def list_terms(terms: Mapping[str, Any]) -> list[str]:
    """The terms of a call of attention that are, or may be, added to plain ``scale * q . k``.

    A term that is not known to leave the scores alone counts: no guessing. Rows of every layer are compared with the
    model's own function all the same.
    """
    return [name for name, term in terms.items() if term is not None and name not in LEAVES_SCORES_ALONE]


def find_scale(terms: Mapping[str, Any], size: int) -> float:
    """By which a call of attention multiplies the products of queries and keys of so many numbers."""
    return float(terms.get("scaling") or size**-0.5)


def may_be_large(bound: float, keys: int) -> bool:
    """True if a log-sum-exp of scores within this bound, either way, may be larger than `LARGEST`."""
    # So is what is not a number.
    return not bound + math.log(keys) <= LARGEST


def describe_large_scores(largest: float) -> str:
    """Return why a layer's scores are too large to do without the matrix, by their largest log-sum-exp; empty if not.

    Without it a weight is the exponential of a difference of scores, each rounded by itself.
    """
    return "" if largest <= LARGEST else f"scores of {largest:,.0f}, too large for float32 without it"


def may_leave_out(terms: Mapping[str, Any]) -> bool:
    """True if keys that the mask hides can be left out of a call without a change in the others' weights."""
    return all(term is None or name in LEAVES_SCORES_ALONE | KEY_BY_KEY for name, term in terms.items())


def cut(term: Any, rows: slice | Int[Tensor, " row"], columns: slice, queries: int, keys: int) -> Any:
    """A term of the scores with axes of queries and keys (T5's position bias), cut to those of a block."""
    if isinstance(term, Tensor) and term.ndim == 4 and term.shape[-2:] == (queries, keys):
        return term[:, :, rows, columns]
    return term
