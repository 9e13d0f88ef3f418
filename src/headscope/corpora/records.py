"""Texts with a user's own links and spans, as JSON Lines: a line is a Document.

The keys of a line are the attributes of `Document`. Required is only ``words``, or ``text``, or both, or ``messages``::

    {"words": ["She", "saw", "herself"], "links": [[2, 0, "reflexive"]], "group": "letter 3"}
    {"words": ["She", "did", "n't", "."], "text": "She didn't.", "links": [[2, 1, "negation"]]}
    {"messages": [{"role": "user", "content": "Where is Eve?"}, {"role": "assistant", "content": "In Rome."}]}

A link may have rivals, the words that are the wrong answers::

    {"words": ["Ann", "met", "Eve", "when", "she", "left"],
     "links": [{"source": 4, "target": 0, "label": "pronoun", "rivals": [2]}]}

Words are counted from 0 and the end of a span is the word after its last, as everywhere in headscope.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from headscope.corpora.conversations import list_roles, read_messages, split_messages
from headscope.corpora.document import Document, Link, Span
from headscope.corpora.identities import Identities
from headscope.corpora.jsontext import get_text, is_text, parse_object, show
from headscope.corpora.message import Message
from headscope.corpora.text import format_count, read_lines
from headscope.corpora.written_text import WrittenText, locate_tokens, split_text
from headscope.errors import CorpusError

KIND = "link"
"""The kind of a link whose kind is not given."""

_KEYS = ("words", "text", "messages", "id", "links", "spans", "label", "group", "boundary")
_LINK, _SPAN = ("source", "target", "label"), ("start", "end", "label", "kind")
_EXAMPLES = {
    "links": (
        '{"source": 2, "target": 0, "label": "reflexive"} with "kind" and "rivals" if it has any, or '
        '[2, 0, "reflexive"]'
    ),
    "spans": '{"start": 0, "end": 2, "label": "1", "kind": "cue"}, or [0, 2, "1", "cue"]',
}
_WORDS = re.compile(r'\s*\{.*"(words|text|messages)"\s*:', re.DOTALL)


def read(path: Path, *, name: str | None = None) -> Iterator[Document]:
    r"""Yield the documents of one file, each a JSON object on a line of its own.

    =============  ================================================================================
    key            value
    =============  ================================================================================
    ``words``      a list of strings, each with a visible character
    ``text``       a string, the text as it is written. The words follow one another in it, with nothing
                   but white space between them; without ``words``, white space separates the words
    ``messages``   a conversation, in place of ``words`` and ``text``: a list of ``{"role", "content"}``
                   (`headscope.corpora.conversations`)
    ``id``         a unique string; by default the number of the line
    ``links``      a list of ``{"source", "target", "label", "kind", "rivals"}`` or of
                   ``[source, target, label]``; ``kind`` is optional, by default ``link``, and so is
                   ``rivals``, a list of words that might be taken for the target
    ``spans``      a list of ``{"start", "end", "label", "kind"}`` or ``[start, end, label, kind]``
    ``label``      a string for the whole text
    ``group``      a string, the text that this one was cut from; by default this one alone
    ``boundary``   the first word of the second segment
    =============  ================================================================================

    A key with the value null counts as missing. Lines without a visible character are ignored.

    Raises:
        CorpusError: a line is not a JSON object, lacks ``words``, ``text`` and ``messages`` or has other words than its
            text, has an unknown key or a value of another type, or points outside its words; a link joins a word to
            itself or occurs twice; a rival is the source or the target of its link, or occurs twice; two lines have the
            same id; or the file holds no line or is not UTF-8.
    """
    prefix = name or path.name
    identities = Identities()
    for number, text_id, record in _parse_lines(path):
        where = f"{path}:{number}"
        if not identities.add(text_id):
            earlier = next(other for other, other_id, _ in _parse_lines(path) if other_id == text_id)
            if earlier < number:
                raise CorpusError(
                    f"{where} has the id {show(text_id)}{'' if record.get('id') else ', which is its number,'} as line "
                    f"{earlier} has; a text needs an id of its own: rename one of them, or leave all ids out."
                )
        yield build_document(where, prefix, text_id, record)
    if not identities:
        raise CorpusError(
            f'{path} has no text; expected a JSON object with "words" on each line: check that the file is whole.'
        )


def recognise(beginning: Sequence[str]) -> bool:
    """Return whether the first nonempty line begins an object with ``words``, ``text`` or ``messages``."""
    # The line may be cut off, so it cannot be parsed.
    return _WORDS.match(next((line for line in beginning if line.strip()), "")) is not None


def check_links(where: str, count: int, links: Iterable[Link]) -> tuple[Link, ...]:
    """Return the links of a text of `count` words after checking them.

    Raises:
        CorpusError: a link or a rival points outside the words, a link joins a word to itself or occurs twice, or a
            rival is the source or the target of its link, or occurs twice.
    """
    unique: dict[Link, Link] = {}
    for link in links:
        ends = [("source", link.source), ("target", link.target), *[("rival", rival) for rival in link.rivals]]
        for end, position in ends:
            if not 0 <= position < count:
                raise CorpusError(
                    f"{where} has a link {show(link.label)} with the {end} {position}, but "
                    f"{format_count(count, 'word')}; words are counted from 0, so the last is {count - 1}: correct "
                    f"the {end}."
                )
        if link.source == link.target:
            raise CorpusError(
                f"{where} has a link {show(link.label)} from word {link.source} to itself; a link joins two "
                f"different words: correct the link or leave it out."
            )
        if link.rivals and (wrong := link.wrong_rivals):
            raise CorpusError(
                f"{where} has a link {show(link.label)} with {wrong}; the target is a candidate by itself, and its "
                f"rivals are other words, each named once: leave it out."
            )
        same = replace(link, rivals=()) if link.rivals else link
        if same in unique:
            raise CorpusError(
                f"{where} has the link {show(link.label)} from word {link.source} to word {link.target} twice; "
                f"it would count twice: leave one out, or give it another label or kind."
            )
        unique[same] = link
    return tuple(unique.values())


def build_document(where: str, prefix: str, text_id: str, record: Mapping[str, Any]) -> Document:
    """Return the document of a JSON object, checked in the same way as a line in `read`.

    Args:
        where: the location of the object, for error messages.
        prefix: the beginning of the id and the group of the document.
        text_id: the rest of the id.
        record: the object.

    Raises:
        CorpusError: as in `read`.
    """
    messages = _parse_messages(where, record)
    words, written = split_messages(messages) if messages else _parse_text(where, record)
    optional = {"kind": KIND, "rivals": []}
    links = [
        Link(source, target, label, kind=kind, rivals=_parse_rivals(where, rivals))
        for source, target, label, kind, rivals in _parse_entries(where, record, "links", _LINK, optional=optional)
    ]
    spans = [Span(*entry) for entry in _parse_entries(where, record, "spans", _SPAN, optional={})]
    for span in spans:
        if not 0 <= span.start < span.end <= len(words):
            raise CorpusError(
                f"{where} has a span {show(span.label)} from {span.start} to {span.end}, but "
                f"{format_count(len(words), 'word')}; a span goes from its first word, counted from 0, to the word "
                f"after its last: correct it."
            )
    group = get_text(where, record, "group")
    return Document(
        f"{prefix}:{text_id}",
        words=words,
        links=check_links(where, len(words), links),
        spans=(*list_roles(messages), *spans),
        label=get_text(where, record, "label"),
        group=f"{prefix}:{text_id if group is None else group}",
        boundary=_get_boundary(where, record, len(words)),
        written=written,
        messages=messages,
    )


def _parse_lines(path: Path) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Yield the number, the id and the object of each line with a text."""
    for number, line in read_lines(path):
        if line.strip():
            where = f"{path}:{number}"
            record = _parse_record(where, line)
            yield number, get_text(where, record, "id") or str(number), record


def _parse_record(where: str, line: str) -> dict[str, Any]:
    """Return the object on a line, without keys whose value is null."""
    record = parse_object(where, line, '{"words": ["She", "left"]}')
    if unknown := [key for key in record if key not in _KEYS]:
        raise CorpusError(
            f"{where} has the key{'s' * (len(unknown) > 1)} {_join_keys(unknown)}; known are {_join_keys(_KEYS)}: "
            f"correct the spelling, or leave it out."
        )
    return record


def _parse_messages(where: str, record: Mapping[str, Any]) -> tuple[Message, ...]:
    """Return the messages of a line; empty if the line has none."""
    if "messages" not in record:
        return ()
    if beside := next((key for key in ("words", "text", "boundary") if key in record), None):
        raise CorpusError(
            f'{where} has the keys "messages" and {show(beside)}; the words of a conversation are those of its '
            "messages: leave one of the two out."
        )
    return read_messages(where, record["messages"])


def _parse_text(where: str, record: Mapping[str, Any]) -> tuple[tuple[str, ...], WrittenText | None]:
    """Return the words of a line, and its text as written; None if the line has only words."""
    if "text" not in record:
        return _parse_words(where, record), None
    text = record["text"]
    if not is_text(text):
        raise CorpusError(
            f'{where} has the "text" {show(text)}; expected a string with at least one visible character: correct it, '
            "or leave the line out."
        )
    if "words" not in record:
        return split_text(text)
    words = _parse_words(where, record)
    offsets = locate_tokens(text, words)
    place, rest = len(offsets), text[offsets[-1][1] if offsets else 0 :].strip()
    if place < len(words) or rest:
        word = f"{show(words[place])} as word {place}" if place < len(words) else f"no word {place}"
        raise CorpusError(
            f'{where} has {word}, counted from 0, where its "text" {f"goes on with {show(rest)}" if rest else "ends"}; '
            "the words follow one another in the text, with nothing but white space between them: correct one of the "
            'two, or leave "text" out.'
        )
    return words, WrittenText(text, offsets)


def _parse_words(where: str, record: Mapping[str, Any]) -> tuple[str, ...]:
    words = record.get("words")
    if not isinstance(words, list) or not words:
        problem = f'the "words" {show(words)}' if "words" in record else 'no "words"'
        raise CorpusError(
            f'{where} has {problem}; a text needs the list of its words, such as ["She", "left"], or a string as its '
            '"text": write them there.'
        )
    if not all(map(is_text, words)):
        position, word = next((position, word) for position, word in enumerate(words) if not is_text(word))
        raise CorpusError(
            f"{where} has {show(word)} as word {position}, counted from 0; a word is a string with at least one "
            f"visible character: correct it, or leave it out and count the words anew in links and spans."
        )
    return tuple(words)


def _parse_entries(
    where: str, record: Mapping[str, Any], key: str, names: Sequence[str], *, optional: Mapping[str, Any]
) -> Iterator[tuple[Any, ...]]:
    """Yield the values of each link or span of a line, checked: two positions, a label, a kind, and perhaps rivals.

    Args:
        where: the location of the line, for error messages.
        record: the object of the line.
        key: ``links`` or ``spans``.
        names: the names of the required values.
        optional: the defaults of the optional values, by their names.
    """
    entries, noun = record.get(key, []), key.removesuffix("s")
    if not isinstance(entries, list):
        raise CorpusError(
            f'{where} has the "{key}" {show(entries)}; expected a list of them, even of one: put it in brackets.'
        )
    required, known = {*names}, {*names, *optional}
    for entry in entries:
        if isinstance(entry, list) and len(entry) == len(names):
            values = [*entry, *optional.values()]
        elif isinstance(entry, dict) and required <= entry.keys() <= known:
            values = [entry.get(name, optional.get(name)) for name in (*names, *optional)]
        else:
            raise CorpusError(
                f"{where} has {show(entry)} among its {key}{_describe_keys(entry, names, optional)}; a {noun} is "
                f"{_EXAMPLES[key]}: correct it."
            )
        first, second, label, kind, *_ = values
        for name, position in ((names[0], first), (names[1], second)):
            # True is an int in Python, but not a position.
            if type(position) is not int:
                raise CorpusError(
                    f"{where} has a {noun} with the {name} {show(position)}; a position is a whole number, counted "
                    f"from 0: correct it."
                )
        for name, text in (("label", label), ("kind", kind)):
            if not is_text(text):
                raise CorpusError(
                    f"{where} has a {noun} with the {name} {show(text)}; a {name} is a string with at least one "
                    f"visible character: correct it."
                )
        yield tuple(values)


def _parse_rivals(where: str, rivals: object) -> tuple[int, ...]:
    if not isinstance(rivals, list) or any(type(rival) is not int for rival in rivals):
        raise CorpusError(
            f"{where} has a link with the rivals {show(rivals)}; expected a list of positions, which are whole "
            f"numbers, counted from 0: correct it."
        )
    return tuple(rivals)


def _describe_keys(fields: object, names: Sequence[str], optional: Iterable[str]) -> str:
    """Return the unknown or missing keys of a link or span as words for a message; empty if it is not an object."""
    if not isinstance(fields, dict):
        return ""
    unknown = [key for key in fields if key not in {*names, *optional}]
    missing = [name for name in names if name not in fields]
    return f", with the unknown {_join_keys(unknown)}" if unknown else f", without {_join_keys(missing)}"


def _get_boundary(where: str, record: Mapping[str, Any], count: int) -> int | None:
    value = record.get("boundary")
    if value is not None and (type(value) is not int or not 0 < value < count):
        raise CorpusError(
            f'{where} has the "boundary" {show(value)}, but '
            f"{format_count(count, 'word')}; it is the place, counted from 0, of the first word of the second "
            f"segment, with at least one word on each side: correct it, or leave it out."
        )
    return value


def _join_keys(keys: Iterable[str]) -> str:
    return ", ".join(show(key) for key in keys)
