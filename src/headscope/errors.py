"""The errors of headscope: each message is one sentence in the user's terms.

Every message says what came, what was wanted and what to do. The command line prints the
message alone and exits with code 2; from Python it is an ordinary exception.
"""


class HeadscopeError(Exception):
    """An error of headscope; the message is one sentence."""


def first_line(error: BaseException) -> str:
    """The first line of another library's error, to be quoted within a sentence."""
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else "no reason given"


class CorpusError(HeadscopeError):
    """A corpus that cannot be read, or that lacks the annotation that was asked for."""


class ModelError(HeadscopeError):
    """A model that cannot be loaded, or whose attention cannot be captured faithfully."""


class TableError(HeadscopeError):
    """A head table, or a file that should hold one, that does not follow the schema."""
