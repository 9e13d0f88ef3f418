"""The two directions of a link, from its source and from its target, and the items that count in each.

If a word sees both sides, all items count in both directions. In a decoder a word sees only the words before it, so
each direction has its own items.
"""

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

DIRECTIONS = ("dependent_to_head", "head_to_dependent")

NO_WORD = -1
"""The index that fills up the words of an item that has fewer words than another item."""


def find_scored(
    source: Int[Tensor, " item"], targets: Int[Tensor, "item target"], *, is_causal: bool
) -> Bool[Tensor, "item direction"]:
    """Return whether each item counts in each direction.

    In a decoder, an item counts in the first direction if all of its targets come before the source, and in the second
    if all come after it. In other models every item counts in both directions.
    """
    none, distance = targets == NO_WORD, targets - source[:, None]
    sides = torch.stack([(none | (distance < 0)).all(1), (none | (distance > 0)).all(1)], dim=-1)
    return sides if is_causal else torch.ones_like(sides)


def count_by_direction(
    right: Bool[Tensor, "item option"], scored: Bool[Tensor, "item direction"]
) -> Bool[Tensor, "item any"]:
    """Return the hits of each item by direction and option; False in a direction in which the item does not count.

    The last axis is the flattened axes direction and option.
    """
    return (right[:, None] & scored[..., None]).flatten(1)


def put_direction_first(count: np.ndarray, *options: int) -> np.ndarray:
    """Return sums with the direction as the first axis, and with one axis of each size in `options` at the end."""
    return np.moveaxis(count.reshape(*count.shape[:2], len(DIRECTIONS), *options), 2, 0)
