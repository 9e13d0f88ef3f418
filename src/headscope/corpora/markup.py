"""XML read line by line, for several formats: elements with their lines, and checks of the elements in each."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from xml.parsers import expat

from headscope.corpora.text import read_lines
from headscope.errors import CorpusError, quote

MAX_DEPTH = 100
"""The greatest depth of an element; the corpora nest their elements about ten deep."""

_ENTITY = re.compile(r"&(?!(?:amp|lt|gt|quot|apos);)[A-Za-z_][\w.:-]*;")
"""An entity that XML does not define."""

_TAG = re.compile(r"<([A-Za-z_][\w.:-]*)")


@dataclass(frozen=True, slots=True, eq=False)
class Element:
    """An element: the line on which it opened, its name, its attributes, the elements around it, and its own text.

    A stretch of text between elements is an element without a name.
    """

    line: int
    name: str
    attributes: Mapping[str, str]
    ancestors: tuple["Element", ...]
    pieces: list[str] = field(default_factory=list)


def find_tags(beginning: Sequence[str]) -> Iterator[str]:
    """Return the names of the elements that open in these lines, in order."""
    return (tag[1] for line in beginning for tag in _TAG.finditer(line))


def add_sentence(path: Path, lines: dict[str, int], sentence: Element, sentence_id: str) -> None:
    """Add the line of a sentence to `lines`, under its id.

    Raises:
        CorpusError: another sentence has its id.
    """
    if sentence_id in lines:
        raise CorpusError(
            f"{path}:{sentence.line} has a sentence with the id {sentence_id!r}, as line {lines[sentence_id]} has; "
            f"a sentence needs an id of its own: rename one of them."
        )
    lines[sentence_id] = sentence.line


@dataclass(frozen=True)
class Markup:
    """The elements that a format in XML allows.

    Attributes:
        title: the name of the format in error messages.
        children: the elements that are allowed in each element; under ``""``, the root. None allows any.
        with_text: the elements that may have text; the last of them has the words. None allows any.
        mixed: true if elements are within text, whose stretches are then elements without a name.
    """

    title: str
    children: Mapping[str, tuple[str, ...]] | None = None
    with_text: tuple[str, ...] | None = None
    mixed: bool = False

    def parse(self, path: Path) -> Iterator[tuple[Literal["start", "text", "end"], Element]]:
        """Yield an event and an element whenever an element of a file opens (``start``) or closes (``end``).

        When an element closes, it has all its text. In a mixed format, a stretch of text is an event too (``text``).

        Raises:
            CorpusError: the file is not well-formed XML in UTF-8, declares entities, uses entities of another file,
                nests elements too deep, or has an element or text where the format has none.
        """
        parser = expat.ParserCreate()
        open_elements: list[Element] = []
        events: list[tuple[Literal["start", "text", "end"], Element]] = []

        document_types: list[str] = []

        def check_document_type(name: str, _system: str | None, _public: str | None, has_declarations: bool) -> None:
            document_types.append(name)
            if has_declarations:
                raise CorpusError(
                    f"{path}:{parser.CurrentLineNumber} has declarations in its document type, which can define "
                    f"entities without end; headscope reads XML without them: remove what is in the brackets."
                )

        def start(name: str, attributes: dict[str, str]) -> None:
            element = Element(parser.CurrentLineNumber, name, attributes, tuple(open_elements))
            self._check_place(path, element)
            open_elements.append(element)
            events.append(("start", element))

        def add_text(data: str) -> None:
            element = open_elements[-1]
            element.pieces.append(data)
            if self.with_text is not None and element.name not in self.with_text and data.strip():
                raise CorpusError(
                    f"{path}:{parser.CurrentLineNumber} has the text {quote(data.strip())} in <{element.name}>; "
                    f"words are in <{self.with_text[-1]}>: mark it as one, or remove it."
                )
            if self.mixed:
                events.append(("text", Element(parser.CurrentLineNumber, "", {}, tuple(open_elements), [data])))

        parser.StartElementHandler = start
        parser.EndElementHandler = lambda _: events.append(("end", open_elements.pop()))
        parser.CharacterDataHandler = add_text
        parser.StartDoctypeDeclHandler = check_document_type  # so the file that it names is never opened
        last_line = 1
        try:
            # Line by line, since that finds bytes that are not UTF-8, and the file is not held in memory.
            for number, line in read_lines(path):
                last_line = number
                parser.Parse(f"{line}\n", False)
                if document_types and (entity := _ENTITY.search(line)):  # expat ignores it without an error
                    raise CorpusError(
                        f"{path}:{number} has the entity {entity[0]}, which another file defines; headscope reads no "
                        f"file that a corpus names: write the characters that the entity means."
                    )
                yield from events
                events.clear()
            parser.Parse("", True)
        except expat.ExpatError as error:
            raise CorpusError(
                f"{path}:{min(error.lineno, last_line)} is not well-formed XML ({expat.ErrorString(error.code)}); "
                f"{self.title} is written in XML: check that the file is whole, or correct the line."
            ) from None
        yield from events

    def _check_place(self, path: Path, element: Element) -> None:
        parent = element.ancestors[-1].name if element.ancestors else ""
        if len(element.ancestors) >= MAX_DEPTH:
            raise CorpusError(
                f"{path}:{element.line} has <{element.name}> inside of {MAX_DEPTH} elements; {self.title} nests only a "
                f"few: check that each element is closed."
            )
        allowed = (element.name,) if self.children is None else self.children.get(parent, ())
        if element.name not in allowed:
            raise CorpusError(
                f"{path}:{element.line} has <{element.name}> {f'in <{parent}>' if parent else 'outermost'}, where "
                f"{self.title} has {' or '.join(f'<{name}>' for name in allowed) or 'no element'}: "
                f"correct it, or name the format that the file is in."
            )

    def get_attribute(self, path: Path, element: Element, name: str) -> str:
        """Return the value of an attribute that an element must have.

        Raises:
            CorpusError: the attribute is missing or empty.
        """
        value = element.attributes.get(name, "")
        if not value.strip():
            raise CorpusError(
                f"{path}:{element.line} has <{element.name}> with "
                f"{'an empty' if name in element.attributes else 'no'} attribute {name!r}, which {self.title} needs: "
                f"add its value."
            )
        return value
