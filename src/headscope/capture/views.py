"""What can be measured in place of the weights of attention, by name. No torch here."""

from collections.abc import Mapping
from dataclasses import dataclass

from headscope.errors import HeadscopeError


@dataclass(frozen=True)
class View:
    """What a view shows, in the words that a table has.

    Attributes:
        share: the unit of its weights.
        shows: what a weight is, and who defined it.
    """

    share: str
    shows: str


VIEWS: Mapping[str, View] = {
    "norm": View(
        "share of what flows",
        "the norm of what flows from each token (its value behind the output projection, times its weight), as a share "
        "of the sum of these norms over all tokens (Kobayashi et al. 2020, section 3)",
    ),
}


def check_view(view: str | None) -> None:
    """Refuse a view that there is not; None is that of the weights themselves.

    Raises:
        HeadscopeError: it is none of `VIEWS`.
    """
    if view is not None and view not in VIEWS:
        raise HeadscopeError(f"there is no view {view!r}; name one of {', '.join(VIEWS)}, or none for the weights.")
