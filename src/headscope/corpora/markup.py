"""XML read line by line, as far as several formats share it: elements with their lines, and what may stand where."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable
from xml.parsers import expat

from headscope.corpora.text import read_lines
from headscope.errors import CorpusError


@runtime_checkable
class Element(Protocol):
    """An element that was opened: the line on which that was, its name and its attributes."""

    @property
    def line(self) -> int:
        """Counted from 1."""

    @property
    def name(self) -> str:
        """As it is written."""

    @property
    def attributes(self) -> Mapping[str, str]:
        """Their values by name."""


@dataclass(frozen=True)
class Markup:
    """The elements that a format in XML allows.

    Attributes:
        title: what messages call it.
        children: the elements that may stand in each; in ``""``, the outermost.
    """

    title: str
    children: Mapping[str, tuple[str, ...]]

    def parse(
        self,
        path: Path,
        *,
        start: Callable[[int, str, dict[str, str]], None],
        end: Callable[[str], None],
        characters: Callable[[int, str], None],
    ) -> Iterator[None]:
        """Call the handlers for what a file holds, and give way after each line and at the end.

        Args:
            path: the file.
            start: takes the line, name and attributes of each element that opens.
            end: takes the name of each element that closes.
            characters: takes the line and a piece of the text between.

        Raises:
            CorpusError: the file is not well-formed XML in UTF-8, or declares a document type.
        """
        parser = expat.ParserCreate()

        def refuse_document_type(*_: object) -> None:
            raise CorpusError(
                f"{path}:{parser.CurrentLineNumber} declares a document type, which can define entities without end; "
                f"headscope reads XML without one: remove the declaration."
            )

        parser.StartElementHandler = lambda name, attributes: start(parser.CurrentLineNumber, name, attributes)
        parser.EndElementHandler = end
        parser.CharacterDataHandler = lambda data: characters(parser.CurrentLineNumber, data)
        parser.StartDoctypeDeclHandler = refuse_document_type
        last_line = 1
        try:
            # Line by line, because that is how bytes that are not UTF-8 are found, and the file is not held as a whole.
            for number, line in read_lines(path):
                last_line = number
                parser.Parse(f"{line}\n", False)
                yield
            parser.Parse("", True)
        except expat.ExpatError as error:
            raise CorpusError(
                f"{path}:{min(error.lineno, last_line)} is not well-formed XML ({expat.ErrorString(error.code)}); "
                f"{self.title} is written in XML: check that the file is whole, or correct the line."
            ) from None
        yield

    def check_place(self, path: Path, element: Element, parent: str) -> None:
        """Refuse an element that has no place in its parent.

        Raises:
            CorpusError: it has none.
        """
        allowed = self.children.get(parent, ())
        if element.name not in allowed:
            raise CorpusError(
                f"{path}:{element.line} has <{element.name}> {f'in <{parent}>' if parent else 'outermost'}, where "
                f"{self.title} has {' or '.join(f'<{name}>' for name in allowed) or 'no element'}: "
                f"correct it, or name the format that the file is in."
            )

    def get_attribute(self, path: Path, element: Element, name: str) -> str:
        """The value of an attribute that an element must have.

        Raises:
            CorpusError: it has none, or an empty one.
        """
        value = element.attributes.get(name, "")
        if not value.strip():
            raise CorpusError(
                f"{path}:{element.line} has <{element.name}> with "
                f"{'an empty' if name in element.attributes else 'no'} attribute {name!r}, which {self.title} needs: "
                f"add its value."
            )
        return value
