"""The negation frames of Zhao and Bethard 2020 (ConanDoyle-neg), in JSON: a sentence is a Document.

The file is a list of sentences. Each has its words under ``sent``, by id and in order, and a list of negations under
``negframe``. A negation has the ids of the words of its cue (``neg_cue``), of its scope (``neg_scopes``) and of the
negated event (``negated``), in any order, or ``{}`` for no words. Ids are unique only within a sentence. As the whole
file may be one line, error messages name the number of the sentence, counted from 1.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from headscope.corpora.document import Document, Skipped, Span, merge_into_spans
from headscope.corpora.jsontext import read_json
from headscope.errors import CorpusError

_EVENT_ELSEWHERE = "negated events with an id that no word of their sentence has"
_KINDS: dict[type, str] = {dict: "object", list: "list"}
_FRAMES = re.compile(r'\s*\[\s*\{.*"negframe"\s*:', re.DOTALL)


def read(path: Path, *, name: str | None = None) -> Iterator[Document | Skipped]:
    """Yield the sentences of one file, with the cue, the scope and the event of each negation.

    Negations are numbered from 1 in the order of their frames. The words are those of ``sent``, unchanged: in a part of
    the released file a quotation mark is the HTML entity ``&quot;``, and the paper's figures were measured on that
    text. (With quotation marks instead, the best head of minilm would have an F1 of 0.394 instead of 0.388.) The id of
    a document ends in its number in the list. Its group is the id of its first word without the numbers of the sentence
    and of the word: ``HoundOfTheBaskervilles_ch1`` for ``HoundOfTheBaskervilles_ch1.snt_7_0``, ``dog11`` for
    ``dog11._1_0``. Ids such as ``s8_0`` occur in two chapters and do not distinguish them, so these two are one group,
    ``s``. If an event names a word that the sentence does not have, the word is skipped, and the other words of the
    event are marked.

    Raises:
        CorpusError: the file is not JSON in UTF-8 or has no list of such sentences, a word is empty, a
            frame has no cue, or a word of its cue or scope is not in the sentence.
    """
    prefix = name or path.name
    for number, sentence in enumerate(_read_sentences(path), start=1):
        where = f"{path}: sentence {number}"
        words = _read_words(where, sentence)
        positions = {word_id: i for i, word_id in enumerate(words)}
        spans: list[Span] = []
        for label, frame in enumerate(_get_member(where, sentence, "negframe", list), start=1):
            location = f"{where}, frame {label}"
            cue = _read_positions(location, frame, "neg_cue", positions)
            if not cue:
                raise CorpusError(
                    f"{location} has no word in 'neg_cue'; a negation needs a cue: name its words, or leave the "
                    "frame out."
                )
            spans += merge_into_spans(cue, str(label), "cue")
            spans += merge_into_spans(_read_positions(location, frame, "neg_scopes", positions), str(label), "scope")
            event = _read_ids(location, frame, "negated")
            known = (positions[word_id] for word_id in event if word_id in positions)
            spans += merge_into_spans(known, str(label), "event")
            if any(word_id not in positions for word_id in event):
                yield Skipped(where, _EVENT_ELSEWHERE)
        group = f"{prefix}:{_parse_chapter(next(iter(words)))}"
        yield Document(f"{prefix}:{number}", words=tuple(words.values()), spans=tuple(spans), group=group)


def recognise(beginning: Sequence[str]) -> bool:
    """Return whether a file that begins with these lines is a JSON list whose first objects have negation frames."""
    return _FRAMES.match("\n".join(beginning)) is not None


def _read_sentences(path: Path) -> list[Any]:
    advice = "check that the file is whole, or name the format that it is in."
    sentences = read_json(path, f"negation frames are written in JSON: {advice}")
    if not isinstance(sentences, list) or not sentences:
        raise CorpusError(f"{path} has no list of sentences; expected one object for each sentence: {advice}")
    return sentences


def _get_member(where: str, container: Any, key: str, kind: type) -> Any:
    value = container.get(key) if isinstance(container, dict) else None
    if not isinstance(value, kind):
        raise CorpusError(
            f"{where} has no {_KINDS[kind]} {key!r}; a sentence needs 'sent' and 'negframe', and a frame 'neg_cue', "
            f"'neg_scopes' and 'negated': add it."
        )
    return value


def _read_words(where: str, sentence: Any) -> dict[str, str]:
    words = _get_member(where, sentence, "sent", dict)
    for word_id, word in words.items():
        if not isinstance(word, str) or not word.strip():
            raise CorpusError(
                f"{where} has {word!r} for its word {word_id!r}; a word needs at least one visible character: "
                f"correct it."
            )
    if not words:
        raise CorpusError(f"{where} has no words; a sentence needs at least one in 'sent': leave it out or correct it.")
    return dict(words)


def _read_positions(where: str, frame: Any, key: str, positions: Mapping[str, int]) -> list[int]:
    ids = _read_ids(where, frame, key)
    for word_id in ids:
        if word_id not in positions:
            raise CorpusError(
                f"{where} has the id {word_id!r} in {key!r}, which no word of its sentence has; "
                f"expected ids of 'sent': correct it."
            )
    return [positions[word_id] for word_id in ids]


def _read_ids(where: str, frame: Any, key: str) -> list[str]:
    if isinstance(frame, dict) and frame.get(key) == {}:
        return []
    ids: list[str] = _get_member(where, frame, key, list)
    for word_id in ids:
        if not isinstance(word_id, str):
            raise CorpusError(
                f"{where} has {word_id!r} in {key!r}, which is not an id; expected ids of 'sent', in quotes: "
                f"correct it."
            )
    return ids


def _parse_chapter(word_id: str) -> str:
    return re.sub("[0-9]+_[0-9]+$", "", word_id).rstrip("._").removesuffix(".snt")
