"""The ranks of the heads of a list among all heads of a model, by a measured score."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from headscope.headlists.head_list import HeadEntry


@dataclass(frozen=True)
class RankedHead:
    """A head of a list, with its measured score.

    Attributes:
        entry: the entry of the list.
        value: the measured score; None if the head has none.
        rank: its rank among all heads with a value, from 1 on. Heads with the same value all have the last of their
            ranks, so that none is among the best by luck.
        best: true for a head that is compared with the best heads of the model.
    """

    entry: HeadEntry
    value: float | None
    rank: int | None
    best: bool


@dataclass(frozen=True)
class RankedRow:
    """The heads of one row of a list, the best of the list first.

    Attributes:
        heads: the heads with their ranks.
        measured: the number of heads of the model that have a value.
    """

    heads: tuple[RankedHead, ...]
    measured: int

    @property
    def compared(self) -> int:
        """The number of heads of the list that are compared with the best heads of the model."""
        return sum(head.best for head in self.heads)

    @property
    def shared(self) -> int:
        """The number of compared heads that are also among the `compared` best heads by the measured score."""
        return sum(head.best and head.rank is not None and head.rank <= self.compared for head in self.heads)

    @property
    def by_chance(self) -> float:
        """The average number of shared heads if the list were drawn at random."""
        return self.compared**2 / self.measured if self.measured else 0.0


def rank_heads(row: Sequence[HeadEntry], measured: Sequence[HeadEntry], top: int | None = None) -> RankedRow:
    """Return the ranks of the heads of one row of a list.

    Args:
        row: the entries of the row. If all have values, the highest is the best; otherwise the order is kept.
        measured: all heads of the model with a score; the highest score is the best.
        top: the number of heads of the list that are compared. Default: all; but of heads with values at most half the
            number of heads in the model.
    """
    values = {(entry.layer, entry.head): entry.value for entry in measured if entry.value is not None}
    has_values = all(entry.value is not None for entry in row)
    ordered = sorted(row, key=lambda entry: -(entry.value or 0.0)) if has_values else [*row]
    if top is None:
        half = len(values) // 2
        top = len(ordered) if len(ordered) <= half or not has_values else half
    ranks = []
    for number, entry in enumerate(ordered):
        value = values.get((entry.layer, entry.head))
        rank = None if value is None else sum(other >= value for other in values.values())
        ranks.append(RankedHead(entry, value, rank, number < top))
    return RankedRow(tuple(ranks), len(values))


def group_entries(entries: Sequence[HeadEntry], size: int) -> list[HeadEntry]:
    """Return an entry for each key/value head, with the largest value of the `size` heads that share it.

    A key/value head is missing if none of its heads has a value.
    """
    groups: dict[tuple[int, int], HeadEntry] = {}
    for entry in entries:
        key = (entry.layer, (entry.head - 1) // size + 1)
        other = groups.get(key)
        if entry.value is not None and (other is None or other.value is None or other.value < entry.value):
            groups[key] = replace(entry, head=key[1])
    return [*groups.values()]
