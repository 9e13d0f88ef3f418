"""The errors of headscope: each message is one sentence in the user's terms.

Every message says what came, what was wanted and what to do. The command line prints the
message alone and exits with code 2; from Python it is an ordinary exception.
"""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from unicodedata import category

LONGEST = 4000
"""Characters of a message; what it quotes in between is shortened."""

CLOSE = 0.75
"""How much of two names must be common to both, from 0 to 1 (`difflib`), for one to be meant by the other."""

_UNPRINTABLE = ("Cc", "Cs", "Zl", "Zp")
"""The categories of Unicode that control a terminal, end a line or are half of a character."""

_LONGEST_QUOTED = 60


class HeadscopeError(Exception):
    """An error of headscope; the message is one sentence, without control characters that a terminal would obey."""

    def __init__(self, message: str) -> None:
        printable = "".join(c.encode("unicode_escape").decode() if category(c) in _UNPRINTABLE else c for c in message)
        if len(printable) > LONGEST:
            printable = f"{printable[: LONGEST // 2]} ... {printable[-LONGEST // 2 :]}"
        super().__init__(printable)


def first_line(error: BaseException) -> str:
    """Return the first line of another library's error, to be quoted within a sentence; with the next after a colon."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    count = next((number for number, line in enumerate(lines, start=1) if not line.endswith(":")), len(lines))
    return " ".join(lines[:count]).rstrip(".,:") if lines else "no reason given"


def say_missing(what: str, extra: str) -> str:
    """Return the sentence on a package that is not installed, given its beginning and the extra that brings it."""
    return (
        f"{what}, which is not installed; install headscope with the extra `{extra}`: pip install 'headscope[{extra}]'."
    )


def list_some(names: Sequence[str], most: int = 12) -> str:
    """Return the first names in a row, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def list_close(name: str, names: Iterable[str], most: int = 1) -> list[str]:
    """Return the names that are spelt nearly like another one, upper case or not, the closest first."""
    spelt = {each.lower(): each for each in names}
    return [spelt[each] for each in get_close_matches(name.lower(), spelt, n=most, cutoff=CLOSE)]


def suggest(name: str, names: Iterable[str], *, before: str = "", after: str = "") -> str:
    """Return what stands in a sentence behind a misspelt name: the closest that there is, or nothing.

    Args:
        name: that is none of `names`.
        names: that there are.
        before: what is shown in front of the closest name, such as its folder.
        after: what is shown behind it.
    """
    close = list_close(name, names)
    return f" (did you mean {before}{close[0]}{after}?)" if close else ""


def quote(text: str) -> str:
    """A text of a user's file in quotes, as a message shows it: on one line and not at full length."""
    return repr(text) if len(text) <= _LONGEST_QUOTED else f"{text[:_LONGEST_QUOTED]!r} ..."


class CorpusError(HeadscopeError):
    """A corpus that cannot be read, or that lacks the annotation that was asked for."""


class ModelError(HeadscopeError):
    """A model that cannot be loaded, or whose attention cannot be captured faithfully.

    Attributes:
        lacks_head: it is only the task head that is missing.
    """

    def __init__(self, message: str, *, lacks_head: bool = False) -> None:
        super().__init__(message)
        self.lacks_head = lacks_head


class TableError(HeadscopeError):
    """A head table, or a file that should hold one, that does not follow the schema."""
