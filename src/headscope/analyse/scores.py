"""The scores that heads have, and by what names they are reported."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import xarray as xr
from jaxtyping import Float

from headscope.analyse.rank import of_heads
from headscope.analyse.uncertainty import Counts
from headscope.errors import TableError


@dataclass(frozen=True)
class Score:
    """A score that heads have, and how it is reported.

    Attributes:
        variable: its name in the table.
        prefix: what stands before the names of the variables that report it.
        drawn: what stands before the names of the variables that compare it with permutations.
        name: what it is called in them.
        of: what is scored.
        count: the variable that says how many there are, and how the documents were assigned.
        heads, offsets: its sums in a table, for heads and for fixed offsets.
    """

    variable: str
    prefix: str
    drawn: str
    name: str
    of: str
    count: str
    heads: Callable[[xr.Dataset], Counts]
    offsets: Callable[[xr.Dataset], Counts]


_SCORES = (
    Score(
        "relation_accuracy", "", "relation", "accuracy", "links", "fold_link",
        lambda table: Counts.of(table, "fold_correct"),
        lambda table: Counts.of(table, "fold_offset"),
    ),
    Score(
        "antecedent_accuracy", "antecedent_", "antecedent", "accuracy", "mentions", "fold_antecedent",
        lambda table: Counts.of(table, "fold_antecedent_correct", "fold_antecedent"),
        lambda table: Counts.of(table, "fold_antecedent_offset", "fold_antecedent"),
    ),
    Score(
        "scope_f1", "scope_", "scope", "f1", "words", "fold_scope",
        lambda table: Counts.of_f1(table, "fold_scope_said_hits", "fold_scope_said", "fold_scope"),
        lambda table: Counts.of_f1(table, "fold_scope_near_hits", "fold_scope_near", "fold_scope"),
    ),
    Score(
        "aspect_accuracy", "aspect_", "aspect", "accuracy", "pairs", "fold_aspect",
        lambda table: Counts.of(table, "fold_aspect_correct", "fold_aspect"),
        lambda table: Counts.of(table, "fold_aspect_offset", "fold_aspect"),
    ),
    # A weight varies less than a yes or no of the same mean, so its interval is rather too wide than too narrow.
    Score(
        "role_weight", "role_", "role", "weight", "links", "fold_role",
        lambda table: Counts.of(table, "fold_role_weight", "fold_role"),
        lambda table: Counts.of(table, "fold_role_offset", "fold_role"),
    ),
)  # fmt: skip

SCORES = tuple(score.variable for score in _SCORES)
"""The scores of a table for which there are intervals and reported heads."""

_RATIOS: Mapping[str, Callable[[xr.Dataset], Counts]] = {
    **{score.variable: score.heads for score in _SCORES},
    "scope_precision": lambda table: Counts.of(table, "fold_scope_said_hits", "fold_scope_said"),
    "scope_recall": lambda table: Counts.of(table, "fold_scope_said_hits", "fold_scope"),
}


def counts_of(table: xr.Dataset, variable: str) -> Counts | None:
    """The sums whose ratio is a variable: one of `SCORES`, ``scope_precision`` or ``scope_recall``.

    None where it is another, or the table lacks the sums.
    """
    try:
        return _RATIOS[variable](table) if variable in _RATIOS else None
    except TableError:
        return None


def sums_of_heads(table: xr.Dataset, variable: str) -> Float[np.ndarray, "2 head fold"] | None:
    """The two sums whose ratio a variable of each head is, in each fold; None where `counts_of` is."""
    counts = counts_of(table, variable)
    if counts is None:
        return None
    parts = xr.broadcast(counts.right, counts.links)
    dims = (*of_heads(table, variable).dims, "fold")
    return np.stack([part.transpose(*dims).values.reshape(-1, part.sizes["fold"]) for part in parts]).astype(float)


def scores_of(table: xr.Dataset) -> list[Score]:
    """The scores that heads have in a table."""
    found = [score for score in _SCORES if score.variable in table]
    if not found:
        raise TableError(
            f"the head table has none of {', '.join(SCORES)}; "
            "measure `relations`, `coreference`, `scope`, `aspects` or `roles` first."
        )
    return found
