"""The arguments of the lesion map, checked before anything is imported that takes seconds. No torch here."""

from headscope.errors import HeadscopeError
from headscope.jobs.arguments import WAYS

FEWEST_RANDOM = 4
"""Random sets that say how much such sets differ."""


def check_lesions(how: str, size: int, random: int) -> None:
    """Refuse ways to disable sets of heads that there are not, and numbers of heads or random sets that say nothing.

    Raises:
        HeadscopeError: there is no such way, a set has no heads, or there are too few random sets.
    """
    if how not in WAYS:
        raise HeadscopeError(f"heads cannot be disabled by {how!r}; name one of {', '.join(WAYS)}.")
    if size < 1:
        raise HeadscopeError(f"sets of {size} heads cannot be disabled; give 1 or more.")
    if random < FEWEST_RANDOM:
        raise HeadscopeError(
            f"{random} random sets do not show how much such sets differ; give {FEWEST_RANDOM} or more."
        )
