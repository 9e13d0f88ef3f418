"""The two directions of a link, from its source and from its target, and which items count in each.

Where a word sees both sides, all items count in both directions. In a decoder it sees what stands before it, and each
direction has items of its own.
"""

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

DIRECTIONS = ("dependent_to_head", "head_to_dependent")

NO_WORD = -1
"""In the place of a word, where an item has fewer than another."""


def find_scored(
    source: Int[Tensor, " item"], targets: Int[Tensor, "item target"], *, is_causal: bool
) -> Bool[Tensor, "item direction"]:
    """Whether each item counts in each direction: in a decoder, if all of its targets stand before the source, or all
    behind it.
    """
    none, distance = targets == NO_WORD, targets - source[:, None]
    sides = torch.stack([(none | (distance < 0)).all(1), (none | (distance > 0)).all(1)], dim=-1)
    return sides if is_causal else torch.ones_like(sides)


def count_by_direction(
    right: Bool[Tensor, "item option"], scored: Bool[Tensor, "item direction"]
) -> Bool[Tensor, "item any"]:
    """What is right of each item, in each direction in which the item counts; the last axis is direction and option."""
    return (right[:, None] & scored[..., None]).flatten(1)


def put_direction_first(count: np.ndarray, *options: int) -> np.ndarray:
    """Sums by row, fold, and direction and option: the direction first, and an axis for each of so many options."""
    return np.moveaxis(count.reshape(*count.shape[:2], len(DIRECTIONS), *options), 2, 0)
