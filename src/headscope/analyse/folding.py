"""Rows that repeat another row: a row that pools labels of which the corpus has only one.

``compound:*`` pools ``compound`` with its subtypes. If a corpus has ``compound:prt`` and no other subtype, the two rows
have the same links, and a reader would read the same row twice.
"""

import numpy as np
import xarray as xr

from headscope.score import Score

SUBTYPES, ALL = ":*", "all"
"""The endings of the names of rows that pool a label with its subtypes, or all labels of a kind."""


def find_folded(table: xr.Dataset, score: Score) -> dict[str, str]:
    """Map each pooled row, such as ``nsubj:*``, that equals one of its own rows to the name of that row.

    Equal rows have the same number of items and the same values.
    """
    dim = score.row_dimension(table)
    names = [str(name) for name in table[dim].values] if dim else []
    pooled = [name for name in names if is_pooled(name)]
    if not pooled:
        return {}
    counts = {name: score.count(table, {dim: name}) for name in names}
    values = dict(zip(names, table[score.variable].transpose(dim, ...).values, strict=True))
    folded = {}
    for name in pooled:
        singles = [other for other in names if _pools(name, other) and counts[other] == counts[name] > 0]
        same = (other for other in singles if np.array_equal(values[other], values[name], equal_nan=True))
        if single := next(same, None):
            folded[name] = single
    return folded


def is_pooled(name: str) -> bool:
    """Return whether a row pools other rows, judging by its name."""
    return name.endswith((SUBTYPES, f" {ALL}")) or name == ALL


def _pools(pooled: str, other: str) -> bool:
    """Return whether a row pools another row, judging by their names."""
    if pooled.endswith(SUBTYPES):
        base = pooled.removesuffix(SUBTYPES)
        return other == base or (other.startswith(f"{base}:") and other != pooled)
    kind = pooled.removesuffix(ALL)
    # If the pooled row has no kind before its name, it pools the rows without a kind.
    return other != pooled and not other.endswith(SUBTYPES) and (other.startswith(kind) if kind else " " not in other)
