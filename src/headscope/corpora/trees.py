"""Sentences of a treebank whose heads form no tree; they are measured and counted, since their links are valid."""

from collections.abc import Sequence

CYCLE = "with a cycle"
NO_ROOT = "without a root, and so with a cycle"
SEVERAL_ROOTS = "with several roots"


def find_fault(heads: Sequence[int | None]) -> str:
    """Return why the heads of a sentence form no tree; empty if they do, or if a head is not annotated.

    The fault is the first that applies of `NO_ROOT`, `CYCLE` and `SEVERAL_ROOTS`.

    Args:
        heads: for each word, the number of its head, counted from 1; 0 for a root, and None if it is not annotated.
    """
    if None in heads:
        return ""
    roots = heads.count(0)
    if not roots:
        return NO_ROOT
    if _has_cycle(heads):
        return CYCLE
    return SEVERAL_ROOTS if roots > 1 else ""


def _has_cycle(heads: Sequence[int | None]) -> bool:
    """Return whether the path up from some word does not end at a root."""
    # For each word, and the root at 0, the first word of the path that reached it; 0 for none.
    seen = [0] * (len(heads) + 1)
    seen[0] = -1
    for start in range(1, len(seen)):
        word = start
        while not seen[word]:
            seen[word] = start
            word = heads[word - 1] or 0
        if seen[word] == start:
            return True
    return False
