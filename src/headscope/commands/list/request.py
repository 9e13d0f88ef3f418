"""The request of `headscope list`."""

from collections.abc import Mapping
from typing import Literal, TypeAlias, get_args

from headscope.commands.option import argument
from headscope.commands.record import Request

Kind: TypeAlias = Literal["reducers", "corpora", "studies", "tasks"]
KINDS = get_args(Kind)
"""The kinds of names that are listed."""


class List(Request[Mapping[str, str]], command="list", loading=""):
    """List the reducers, corpora, studies and tasks that there are: their names, or what those of one kind are."""

    usage = ("headscope list corpora",)
    kind: Kind | None = argument(
        "KIND",
        "What to describe: reducers, corpora, studies or tasks.",
        default=None,
        kw_only=False,
        unset="the names of all",
    )
