"""The request of `headscope list`."""

from collections.abc import Mapping

from headscope.commands.option import argument
from headscope.commands.record import Request


class List(Request[Mapping[str, str]], command="list", loading=""):
    """List the reducers, corpora, studies or tasks that there are."""

    usage = ("headscope list corpora",)
    kind: str = argument(
        "KIND",
        "What to list: reducers, corpora, studies or tasks.",
        kw_only=False,
        choices=("reducers", "corpora", "studies", "tasks"),
    )
