"""The negation frames of Zhao and Bethard 2020 (ConanDoyle-neg), in JSON: a sentence is a Document.

The file is a list of sentences. Each has its words under ``sent``, by id and in order, and under
``negframe`` a list of negations, each with the ids of the words of its cue (``neg_cue``), of its scope
(``neg_scopes``) and of the event that is negated (``negated``), in any order, or ``{}`` for no words. Ids
are unique in a sentence only. As the whole file may be one line, messages name the sentence, counted from 1.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from headscope.corpora.document import Document, Skipped, Span, runs
from headscope.corpora.text import numbered_lines
from headscope.errors import CorpusError

_EVENT_ELSEWHERE = "negated events with an id that no word of their sentence has"
_KINDS: dict[type, str] = {dict: "object", list: "list"}
_FRAMES = re.compile(r'\s*\[\s*\{.*"negframe"\s*:', re.DOTALL)


def read(path: Path, *, name: str | None = None) -> Iterator[Document | Skipped]:
    """The sentences of one file, with the cue, the scope and the event of each negation.

    Negations are numbered from 1 in the order of their frames. The words are those of ``sent`` as they
    stand: in a part of the released file a quotation mark is the HTML entity ``&quot;``, and the paper's
    figures were measured so. (With the marks in its place, the best head of minilm would have an F1 of
    0.394 instead of 0.388.) The id of a document ends in its place in the list. Its group is
    what the id of its first word has before the numbers of the sentence and of the word:
    ``HoundOfTheBaskervilles_ch1`` of ``HoundOfTheBaskervilles_ch1.snt_7_0``, ``dog11`` of
    ``dog11._1_0``. The ids ``s8_0`` stand for two chapters that they do not tell apart, so these two are
    one group, ``s``. An event that names a word that the sentence does not have is reported as skipped; its
    other words are marked.

    Args:
        path: the file.
        name: what the file is called in ids and groups; its file name if not given.

    Raises:
        CorpusError: the file is no JSON in UTF-8 or has no list of such sentences, a word is empty, a
            frame has no cue, or a word of its cue or scope is not in the sentence.
    """
    called = name or path.name
    for number, sentence in enumerate(_sentences(path), start=1):
        where = f"{path}: sentence {number}"
        words = _words(where, sentence)
        places = {own: i for i, own in enumerate(words)}
        spans: list[Span] = []
        for label, frame in enumerate(_member(where, sentence, "negframe", list), start=1):
            here = f"{where}, frame {label}"
            spans += runs(_cue(here, frame, places), str(label), "cue")
            spans += runs(_found(here, frame, "neg_scopes", places), str(label), "scope")
            event = _ids(here, frame, "negated")
            spans += runs((places[own] for own in event if own in places), str(label), "event")
            if any(own not in places for own in event):
                yield Skipped(where, _EVENT_ELSEWHERE)
        yield Document(
            f"{called}:{number}",
            words=tuple(words.values()),
            spans=tuple(spans),
            group=f"{called}:{_chapter(next(iter(words)))}",
        )


def recognise(beginning: Sequence[str]) -> bool:
    """Whether a file that begins with these lines is a list in JSON whose first objects have negation frames."""
    return _FRAMES.match("\n".join(beginning)) is not None


def _sentences(path: Path) -> list[Any]:
    def without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            keys = [key for key, _ in pairs]
            double = next(key for key in keys if keys.count(key) > 1)
            raise CorpusError(
                f"{path} has the key {double!r} twice in one object; the first would be lost: rename one."
            )
        return found

    text = "\n".join(line for _, line in numbered_lines(path))
    try:
        sentences = json.loads(text, object_pairs_hook=without_doubles)
    except json.JSONDecodeError as error:
        raise CorpusError(
            f"{path}:{error.lineno} is no JSON ({error.msg}); negation frames are written in JSON: check that the file "
            f"is whole, or name the format that it is in."
        ) from None
    if not isinstance(sentences, list) or not sentences:
        raise CorpusError(
            f"{path} has no list of sentences; negation frames want one, of an object for each sentence: "
            f"check that the file is whole, or name the format that it is in."
        )
    return sentences


def _member(where: str, thing: Any, key: str, kind: type) -> Any:
    value = thing.get(key) if isinstance(thing, dict) else None
    if not isinstance(value, kind):
        raise CorpusError(
            f"{where} has no {_KINDS[kind]} {key!r}; a sentence wants 'sent' and 'negframe', and a frame 'neg_cue', "
            f"'neg_scopes' and 'negated': add it."
        )
    return value


def _words(where: str, sentence: Any) -> dict[str, str]:
    words = _member(where, sentence, "sent", dict)
    for own, word in words.items():
        if not isinstance(word, str) or not word.strip():
            raise CorpusError(
                f"{where} has {word!r} for its word {own!r}; a word wants at least one visible character: correct it."
            )
    if not words:
        raise CorpusError(f"{where} has no words; a sentence wants at least one in 'sent': leave it out or correct it.")
    return dict(words)


def _cue(where: str, frame: Any, places: Mapping[str, int]) -> list[int]:
    cue = _found(where, frame, "neg_cue", places)
    if not cue:
        raise CorpusError(
            f"{where} has no word in 'neg_cue'; a negation wants a cue: name its words, or leave the frame out."
        )
    return cue


def _found(where: str, frame: Any, key: str, places: Mapping[str, int]) -> list[int]:
    ids = _ids(where, frame, key)
    for own in ids:
        if own not in places:
            raise CorpusError(
                f"{where} has the id {own!r} in {key!r}, which no word of its sentence has; "
                f"wanted are ids of 'sent': correct it."
            )
    return [places[own] for own in ids]


def _ids(where: str, frame: Any, key: str) -> list[str]:
    if isinstance(frame, dict) and frame.get(key) == {}:
        return []
    ids: list[str] = _member(where, frame, key, list)
    for own in ids:
        if not isinstance(own, str):
            raise CorpusError(
                f"{where} has {own!r} in {key!r}, which is no id; wanted are ids of 'sent', in quotes: correct it."
            )
    return ids


def _chapter(own: str) -> str:
    return re.sub("[0-9]+_[0-9]+$", "", own).rstrip("._").removesuffix(".snt")
