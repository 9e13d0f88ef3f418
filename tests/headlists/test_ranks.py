"""Ranks of the heads of a list among all heads: by hand, and against numpy."""

import numpy as np
import pytest

from headscope.headlists import HeadEntry
from headscope.headlists.ranks import group_entries, rank_heads

MEASURED = [HeadEntry(1, 1, 0.5), HeadEntry(1, 2, 0.25), HeadEntry(2, 1, 0.75), HeadEntry(2, 2, 0.0)]


def test_a_head_has_its_rank_among_all_heads() -> None:
    row = rank_heads([HeadEntry(1, 2, 0.9), HeadEntry(2, 1, 0.1), HeadEntry(3, 1, 0.2)], MEASURED)
    assert [(head.entry.layer, head.entry.head, head.value, head.rank) for head in row.heads] == [
        (1, 2, 0.25, 3),
        (3, 1, None, None),
        (2, 1, 0.75, 1),
    ]
    assert row.measured == 4


@pytest.mark.parametrize(
    ("listed", "top", "compared", "shared", "by_chance"),
    [
        ([HeadEntry(2, 1, 0.1)], None, 1, 1, 0.25),
        ([HeadEntry(1, 2, 0.9), HeadEntry(2, 1, 0.1)], None, 2, 1, 1),
        ([HeadEntry(1, 2, 0.9), HeadEntry(2, 1, 0.1)], 1, 1, 0, 0.25),
        ([HeadEntry(2, 2, 0.9), HeadEntry(2, 1, 0.8), HeadEntry(1, 1, 0.7), HeadEntry(1, 2, 0)], None, 2, 1, 1),
        ([HeadEntry(1, 1), HeadEntry(2, 1), HeadEntry(2, 2)], None, 3, 2, 2.25),
    ],
    ids=["one", "two", "the best of two", "half of all heads", "heads without values"],
)
def test_the_best_heads_of_a_list_are_compared_with_as_many(
    listed: list, top: int | None, compared: int, shared: int, by_chance: float
) -> None:
    row = rank_heads(listed, MEASURED, top)
    assert (row.compared, row.shared, row.by_chance) == (compared, shared, by_chance)


def test_heads_of_one_value_are_not_among_the_best_by_luck() -> None:
    alike = [HeadEntry(layer, head, 0.0) for layer in (1, 2) for head in (1, 2, 3)]
    row = rank_heads([HeadEntry(1, 1, 0.9), HeadEntry(1, 2, 0.8)], alike)
    assert ([head.rank for head in row.heads], row.shared) == ([6, 6], 0)


def test_a_key_value_head_has_the_largest_value_of_its_heads() -> None:
    values = np.random.default_rng(7).random((3, 6))
    entries = [HeadEntry(layer + 1, head + 1, values[layer, head]) for layer in range(3) for head in range(6)]
    groups = group_entries(entries, 2)
    expected = values.reshape(3, 3, 2).max(-1)
    assert {(group.layer, group.head): group.value for group in groups} == {
        (layer + 1, head + 1): expected[layer, head] for layer in range(3) for head in range(3)
    }
