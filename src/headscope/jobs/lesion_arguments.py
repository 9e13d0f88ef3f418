"""The arguments of the lesion map, checked before anything is imported that takes seconds. No torch here."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import xarray as xr

from headscope.analyse.lesions import MATCHES, choose_sets
from headscope.errors import HeadscopeError
from headscope.intervene.head_names import list_names
from headscope.jobs.arguments import WAYS
from headscope.jobs.tables import open_table

FEWEST_RANDOM = 4
"""Random sets that say how much such sets differ."""


HeadSets = str | Path | xr.Dataset | Mapping[str, Iterable[str]]
"""The folder of an atlas, a head table or its file, or the heads of each set by its name."""


def check_lesions(how: str, size: int, random: int, match: str) -> None:
    """Refuse ways to disable or match sets that there are not, and numbers of heads or random sets that say nothing.

    Raises:
        HeadscopeError: there is no such way or match, a set has no heads, or there are too few random sets.
    """
    if how not in WAYS:
        raise HeadscopeError(f"heads cannot be disabled by {how!r}; name one of {', '.join(WAYS)}.")
    if match not in MATCHES:
        raise HeadscopeError(f"random sets cannot match by {match!r}; name one of {', '.join(MATCHES)}.")
    if size < 1:
        raise HeadscopeError(f"sets of {size} heads cannot be disabled; give 1 or more.")
    if random < FEWEST_RANDOM:
        raise HeadscopeError(
            f"{random} random sets do not show how much such sets differ; give {FEWEST_RANDOM} or more."
        )


def name_heads(sets: HeadSets, size: int, rows: Sequence[str] = ()) -> dict[str, list[str]]:
    """The names of the heads of each set.

    Raises:
        HeadscopeError: there is no such table, its rows have no heads, or a set is empty or no names of heads.
    """
    if not isinstance(sets, Mapping) or isinstance(sets, xr.Dataset):
        return choose_sets(open_table(sets), size, rows=rows)
    named = {name: list_names(heads) for name, heads in sets.items()}
    if not named or not all(named.values()):
        raise HeadscopeError("no set of heads is named, or one has no heads; give heads such as 3-1 for each set.")
    return named
