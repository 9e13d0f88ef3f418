"""Rows that say the same: one that pools others, of which the corpus has a single one.

``compound:*`` pools ``compound`` with its subtypes. Where a corpus has ``compound:prt`` and no other, the two rows
have the same links, and whoever reads both reads one twice.
"""

import numpy as np
import xarray as xr

from headscope.score import Score

SUBTYPES, ALL = ":*", "all"
"""How the name of a row ends that pools a label with its subtypes, or everything of a kind."""


def find_folded(table: xr.Dataset, score: Score) -> dict[str, str]:
    """The rows of a score that pool others, each with the single row that has as many items and all of its values."""
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
    """True for the name of a row that pools others."""
    return name.endswith((SUBTYPES, f" {ALL}")) or name == ALL


def _pools(pooled: str, other: str) -> bool:
    """True where a row pools another one, as their names say."""
    if pooled.endswith(SUBTYPES):
        base = pooled.removesuffix(SUBTYPES)
        return other == base or (other.startswith(f"{base}:") and other != pooled)
    kind = pooled.removesuffix(ALL)
    # What has no kind before its name is of the kind that needs none.
    return other != pooled and not other.endswith(SUBTYPES) and (other.startswith(kind) if kind else " " not in other)
