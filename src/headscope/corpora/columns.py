"""The columns of CoNLL-U, and their order in a file. CoNLL-U Plus names its columns; not all are of these ten."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from pathlib import Path

from headscope.errors import CorpusError, quote

COLUMNS = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
ID, FORM, UPOS, FEATS, HEAD, DEPREL, MISC = map(
    COLUMNS.index, ("ID", "FORM", "UPOS", "FEATS", "HEAD", "DEPREL", "MISC")
)
HEADER = "global.columns"
"""The comment that names the columns of CoNLL-U Plus."""


@dataclass(frozen=True)
class Layout:
    """The columns that the lines of a file have.

    Attributes:
        names: the names of the columns, in their order.
        line: the line that names them; 0 if no line does.
        extended: true if more columns without names follow.
    """

    names: tuple[str, ...] = COLUMNS
    line: int = 0
    extended: bool = False

    def split(self, line: str) -> list[str] | None:
        """Return the cells of a line in the ten columns of CoNLL-U; None if the line has a wrong number of columns.

        A column that the file lacks has ``_``. Cells of unnamed columns follow after the ten.
        """
        cells = line.split("\t")
        if len(cells) <= len(self.names) if self.extended else len(cells) != len(self.names):
            return None
        if self.names == COLUMNS:
            return cells
        cells.append("_")
        return [cells[i] for i in self._positions]

    def locate(self, column: int) -> int:
        """Return the number of a column in the file, counted from 1; `column` is its index among the ten."""
        return self.names.index(COLUMNS[column]) + 1

    @property
    def width(self) -> str:
        """The number of columns that a line needs, in words for error messages: ``10`` or ``more than 10``."""
        return f"{'more than ' if self.extended else ''}{len(self.names)}"

    @cached_property
    def _positions(self) -> list[int]:
        return [self.names.index(name) if name in self.names else -1 for name in COLUMNS]


def parse_header(path: Path, line: int, value: str) -> Layout:
    """Return the layout that a comment ``global.columns`` describes.

    Raises:
        CorpusError: a required column is missing, or a column occurs twice.
    """
    names = tuple(value.split())
    needed = ("ID", "FORM", *(("DEPREL",) if "HEAD" in names else ()))
    missing = [name for name in needed if name not in names]
    if missing or len({*names}) < len(names):
        fault = f"without {' and '.join(missing)}" if missing else "with a name twice"
        raise CorpusError(
            f"{path}:{line} names the columns {quote(value)}, {fault}; CoNLL-U Plus needs ID and FORM, DEPREL "
            f"if it has HEAD, and each name once: correct the line."
        )
    return Layout(names, line)


def has_header(beginning: Sequence[str]) -> bool:
    """Return whether a file that begins with these lines names its columns before its first word."""
    comments = takewhile(lambda line: line.startswith("#") or not line.strip(), beginning)
    return any(line[1:].lstrip().startswith(HEADER) for line in comments)
