"""The errors of headscope: each message is one sentence in the user's terms.

Every message says what came, what was wanted and what to do. The command line prints only the
message and exits with code 2; in Python it is an ordinary exception.
"""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from unicodedata import category

LONGEST = 4000
"""The greatest length of a message in characters. A longer message loses its middle."""

CLOSE = 0.75
"""The similarity (`difflib`, from 0 to 1) from which one name counts as a misspelling of the other."""

_UNPRINTABLE = ("Cc", "Cs", "Zl", "Zp")
"""The Unicode categories of characters that control a terminal, end a line or are half of a character."""

_LONGEST_QUOTED = 60


class HeadscopeError(Exception):
    """An error of headscope. Its message is one sentence, with control characters escaped."""

    def __init__(self, message: str) -> None:
        printable = "".join(c.encode("unicode_escape").decode() if category(c) in _UNPRINTABLE else c for c in message)
        if len(printable) > LONGEST:
            printable = f"{printable[: LONGEST // 2]} ... {printable[-LONGEST // 2 :]}"
        super().__init__(printable)


def first_line(error: BaseException) -> str:
    """Return the first line of an error message, without final punctuation; "no reason given" if the message is empty.

    A line that ends in a colon is joined with the next.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    count = next((number for number, line in enumerate(lines, start=1) if not line.endswith(":")), len(lines))
    return " ".join(lines[:count]).rstrip(".,:") if lines else "no reason given"


def say_missing(what: str, extra: str) -> str:
    """Return an error message about a package that is not installed.

    Args:
        what: the beginning of the message, which names the package.
        extra: the extra of headscope that installs the package.
    """
    return (
        f"{what}, which is not installed; install headscope with the extra `{extra}`: pip install 'headscope[{extra}]'."
    )


def say_no_table(value: object) -> str:
    """Return an error message for a value that is not a head table, such as a path."""
    return f"a head table was wanted, and {type(value).__name__} came; headscope.read_table reads one."


def list_some(names: Sequence[str], most: int = 12) -> str:
    """Return the first `most` names, separated by commas, and the number of further names if there are any."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def list_close(name: str, names: Iterable[str], most: int = 1) -> list[str]:
    """Return at most `most` of the names that are spelt almost like `name`, the closest first; case is ignored."""
    spelt = {each.lower(): each for each in names}
    return [spelt[each] for each in get_close_matches(name.lower(), spelt, n=most, cutoff=CLOSE)]


def suggest(name: str, names: Iterable[str], *, before: str = "", after: str = "") -> str:
    """Return the note ``(did you mean NAME?)`` for a misspelt name; an empty text if no existing name is close.

    Args:
        name: the misspelt name.
        names: the existing names.
        before: the text before the closest name, such as its folder.
        after: the text after the closest name.
    """
    close = list_close(name, names)
    return f" (did you mean {before}{close[0]}{after}?)" if close else ""


def quote(text: str) -> str:
    """Return a text from a user's file for a message: in quotes, on one line, and cut if it is long."""
    return repr(text) if len(text) <= _LONGEST_QUOTED else f"{text[:_LONGEST_QUOTED]!r} ..."


class CorpusError(HeadscopeError):
    """An error about a corpus that cannot be read, or that lacks the annotation that is needed."""


class ModelError(HeadscopeError):
    """An error about a model that cannot be loaded, or whose attention cannot be captured faithfully.

    Attributes:
        lacks_head: true if the only fault of the model is that it lacks a task head.
    """

    def __init__(self, message: str, *, lacks_head: bool = False) -> None:
        super().__init__(message)
        self.lacks_head = lacks_head


class TableError(HeadscopeError):
    """An error about a head table, or a file of a head table, that does not follow the schema."""
