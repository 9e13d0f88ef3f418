"""FrameNet 1.7 (Ruppenhofer et al. 2016), through NLTK's reader: a sentence is a Document.

A release is a folder: ``frameIndex.xml`` and other indexes, the frames in ``frame/``, the exemplar sentences of
each lexical unit in ``lu/``, and running texts in ``fulltext/``. The sentences of ``fulltext/`` and ``lu/`` are one
corpus; one of these two folders may be missing.

FrameNet is not tokenised: its spans are offsets of characters. Words are those of NLTK's ``WordPunctTokenizer``: runs
of letters and digits, and runs of other visible characters. A span has every word that it touches, so a span that ends
within a word takes all of it.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headscope.corpora.document import Document, Link, Skipped, Span
from headscope.corpora.markup import Markup, find_tags
from headscope.corpora.written_text import WrittenText
from headscope.errors import CorpusError, first_line, say_missing
from headscope.files import check_regular

_LEXICON = ("luIndex.xml", "frRelation.xml", "semTypes.xml")
_TEXT_INDEX = "fulltextIndex.xml"
_FE_LAYERS = ("FE", "FE2", "FE3")

_NOT_IN_INDEX = "files that FrameNet's index does not list, or marks as a problem"
_NO_FILE = "texts and lexical units of FrameNet's index that have no file"
_IN_A_TEXT = "exemplar sentences that are in a running text too"
_NOT_ANNOTATED = "targets whose elements were not annotated"
_NO_TARGET = "annotation sets without a target"
_NO_WORD = "spans over no word"
_AT_TARGET = "elements that end at the first word of their target"
_SAME_LINK = "elements that join the same words by the same name as another one"
_UNLISTED = "elements that their frame does not list"


def read(path: Path, *, name: str | None = None) -> Iterator[Document | Skipped]:
    """Yield the sentences of the release with this ``frameIndex.xml``: running texts, then exemplars.

    The annotation sets of a sentence that have a target are numbered from 1. The target N is a span of kind
    ``target`` with the label ``N``; several spans if it is not contiguous. Each stretch of a frame element is a span of
    kind ``element`` with the label ``N NAME``, and another span whose kind says how central the element is to its
    frame: ``core_element``, ``core_unexpressed_element``, ``peripheral_element``, ``extra_thematic_element``.

    Each stretch of an element has a link of kind ``role`` from its last word to the first word of the target, with
    the name of the element. FrameNet does not annotate heads, so the last word is used as the head. In English it is
    the head of a noun phrase without words after its noun; it is rarely the head of a clause.

    The id of a document is its file and the number of its sentence. Its group is the running text, or the lexical
    unit, whose exemplars are alike. A sentence of a running text that is an exemplar too is read once, in its text.

    Skipped: elements without words (null instantiation), by type; targets that nobody annotated; elements that end at
    the first word of their target, since a link joins two words; and inconsistent annotation of FrameNet. NLTK's reader
    leaves out annotations of constructions.

    Args:
        path: the path of ``frameIndex.xml``.
        name: the name of the file; ids and groups begin with the folder of this name, if it has one.

    Raises:
        CorpusError: NLTK is not installed (extra ``framenet``); a file is missing, not well-formed XML, or not as
            NLTK's reader needs it; a span is outside its sentence; or there are neither texts nor exemplars.
    """
    reader, tokenizer = _import_nltk()
    release = path.parent
    prefix = (name or path.name).removesuffix(path.name)
    _check_release(path)
    occurrences: Counter[str] = Counter()
    with _allow_folder(release):
        lexicon = reader(str(release.resolve()), [])
        with _translate_errors(path):
            frames = lexicon.frame_ids_and_names()
        for frame, title in frames.items():
            file = release / "frame" / f"{title}.xml"
            check_regular(file)  # NLTK would wait for a pipe for ever
            with _translate_errors(file):
                lexicon.frame(frame)
        for part in _read_sentences(lexicon, release):
            if isinstance(part, Skipped):
                yield part
                continue
            file, number, sentence = part
            group = prefix + file.relative_to(release).as_posix()
            identity = f"{group}:{number}"
            occurrences[identity] += 1
            # A sentence may be an exemplar of one lexical unit in two of its subcorpora.
            suffix = f"@{occurrences[identity]}" if occurrences[identity] > 1 else ""
            words = list(tokenizer.span_tokenize(sentence.text))
            yield from _build_document(f"{file}, sentence {number}", f"{identity}{suffix}", group, sentence, words)


def recognise(beginning: Sequence[str]) -> bool:
    """Return whether a file that begins with these lines is FrameNet's index of frames."""
    return next(find_tags(beginning), None) == "frameIndex"


def find_companions(path: Path) -> tuple[Path, ...]:
    """Return the other files of the release with this ``frameIndex.xml``."""
    indexes = (path.parent / name for name in (*_LEXICON, _TEXT_INDEX))
    files = (file for folder in ("frame", "fulltext", "lu") for file in sorted((path.parent / folder).glob("*.xml")))
    return (*(index for index in indexes if index.is_file()), *files)


def _import_nltk() -> tuple[Any, Any]:
    """Return NLTK's reader of FrameNet, and its tokenizer."""
    try:
        from nltk.corpus.reader.framenet import FramenetCorpusReader
        from nltk.tokenize import WordPunctTokenizer
    except ImportError:
        raise CorpusError(say_missing("FrameNet is read through NLTK", "framenet")) from None
    return FramenetCorpusReader, WordPunctTokenizer()


@contextmanager
def _allow_folder(folder: Path) -> Iterator[None]:
    """Let NLTK open files in a folder while the block runs; NLTK opens only files in registered folders."""
    import nltk.data

    path = str(folder.resolve())
    nltk.data.path.append(path)
    try:
        yield
    finally:
        nltk.data.path.remove(path)


@contextmanager
def _translate_errors(path: Path) -> Iterator[None]:
    """Turn errors of NLTK's reader about a file into a `CorpusError`."""
    try:
        yield
    # The reader raises assertion errors and errors of its look-ups.
    except Exception as error:
        _check_well_formed(path)
        raise CorpusError(
            f"{path} is not as NLTK's reader of FrameNet 1.7 needs it ({type(error).__name__}: {first_line(error)}); "
            f"check that the release is whole and unchanged."
        ) from error


def _check_release(path: Path) -> None:
    release = path.parent
    folders = [folder for folder in ("fulltext", "lu") if (release / folder).is_dir()]
    if not folders:
        raise CorpusError(
            f"{release} has neither fulltext/ nor lu/ next to {path.name}, so it has no sentences; give the folder of "
            f"a FrameNet release."
        )
    indexes = [release / name for name in (*_LEXICON, *((_TEXT_INDEX,) if "fulltext" in folders else ()))]
    for index in indexes:
        if not index.is_file():
            raise CorpusError(
                f"{release} has no {index.name}, which a FrameNet release has next to {path.name}: give the folder of "
                f"a whole release; of lu/ and fulltext/ one may be missing."
            )
    # NLTK searches for elements, and would accept an index that breaks off as a short one.
    for index in (path, *indexes):
        _check_well_formed(index)


def _check_well_formed(path: Path) -> None:
    for _ in Markup("FrameNet").parse(path):
        pass


def _read_sentences(lexicon: Any, release: Path) -> Iterator[tuple[Path, Any, Any] | Skipped]:
    """Yield the file, the id and the annotation of each sentence: first of running texts, then of other exemplars."""
    text_sentences = set()
    for part in _read_texts(lexicon, release) if (release / "fulltext").is_dir() else ():
        if not isinstance(part, Skipped):
            text_sentences.add(part[1])
        yield part
    for part in _read_exemplars(lexicon, release) if (release / "lu").is_dir() else ():
        if not isinstance(part, Skipped) and part[1] in text_sentences:
            part = Skipped(f"{part[0]}, sentence {part[1]}", _IN_A_TEXT)
        yield part


def _read_texts(lexicon: Any, release: Path) -> Iterator[tuple[Path, Any, Any] | Skipped]:
    with _translate_errors(release / _TEXT_INDEX):
        texts = {release / "fulltext" / text.filename: text.ID for text in lexicon.docs_metadata()}
    for file, number in texts.items():
        if file.is_file():
            with _translate_errors(file):
                sentences = [(file, sentence.ID, sentence) for sentence in lexicon.doc(number).sentence]
            yield from sentences
    yield from _compare_with_index(release / "fulltext", texts)


def _read_exemplars(lexicon: Any, release: Path) -> Iterator[tuple[Path, Any, Any] | Skipped]:
    with _translate_errors(release / "luIndex.xml"):
        # For a unit with a problem in its frame, NLTK has only the index, without exemplars.
        listed = (unit for unit in lexicon.lus() if "exemplars" in unit)
        units = {release / "lu" / f"lu{unit.ID}.xml": unit for unit in listed}
    for file, unit in units.items():
        if file.is_file():
            with _translate_errors(file):
                sentences = [(file, sentence.ID, sentence) for sentence in unit.exemplars]
            yield from sentences
            # Otherwise NLTK would keep the exemplars of all lexical units in memory.
            unit.pop("exemplars")
            unit.pop("subCorpus")
    yield from _compare_with_index(release / "lu", units)


def _compare_with_index(folder: Path, listed: Mapping[Path, Any]) -> Iterator[Skipped]:
    """Yield a `Skipped` for each file that is only in the index or only in the folder."""
    yield from (Skipped(str(file), _NO_FILE) for file in listed if not file.is_file())
    yield from (Skipped(str(file), _NOT_IN_INDEX) for file in sorted(folder.glob("*.xml")) if file not in listed)


def _build_document(
    where: str, identity: str, group: str, sentence: Any, words: Sequence[tuple[int, int]]
) -> Iterator[Document | Skipped]:
    if not words:
        raise CorpusError(f"{where}, has no text; a sentence needs at least one word: check that the file is whole.")
    spans: dict[Span, None] = {}
    links: dict[Link, None] = {}
    number = 0
    # The first set holds the parts of speech of the sentence.
    for annotation in sentence.annotationSet[1:]:
        location = f"{where}, annotation set {annotation.get('ID')}"
        if "Target" not in annotation:
            yield Skipped(location, _NO_TARGET)
            continue
        if annotation.get("status") == "UNANN":
            yield Skipped(location, _NOT_ANNOTATED)
            continue
        targets = [_find_words(location, sentence, words, start, end) for start, end in annotation.Target]
        if not all(targets):
            yield Skipped(location, _NO_WORD)
            continue
        number += 1
        spans |= dict.fromkeys(Span(span.start, span.stop, str(number), "target") for span in targets)
        first = min(span.start for span in targets)
        layers = [annotation[layer][:2] for layer in _FE_LAYERS if layer in annotation]
        for start, end, element in (stretch for stretches, _ in layers for stretch in stretches):
            stretch = _find_words(location, sentence, words, start, end)
            if not stretch:
                yield Skipped(location, _NO_WORD)
                continue
            kinds = ["element"]
            if element in annotation.frame.FE:
                kinds.append(f"{annotation.frame.FE[element].coreType.lower().replace('-', '_')}_element")
            else:
                yield Skipped(location, _UNLISTED)
            for kind in kinds:
                spans[Span(stretch.start, stretch.stop, f"{number} {element}", kind)] = None
            link = Link(stretch.stop - 1, first, element, kind="role")
            if link.source == link.target:
                yield Skipped(location, _AT_TARGET)
            elif link in links:
                yield Skipped(location, _SAME_LINK)
            else:
                links[link] = None
        for _, without_words in layers:
            for type in without_words.values():
                yield Skipped(location, f"elements without words ({type})")
    texts = tuple(sentence.text[start:end] for start, end in words)
    written = WrittenText(sentence.text, tuple(words))
    yield Document(identity, words=texts, links=tuple(links), spans=tuple(spans), group=group, written=written)


def _find_words(location: str, sentence: Any, words: Sequence[tuple[int, int]], start: Any, end: Any) -> range:
    """Return the indices of the words that a span of characters touches."""
    if not (isinstance(start, int) and 0 <= start < end <= len(sentence.text)):
        # NLTK has made the end exclusive.
        raise CorpusError(
            f"{location}, has a span from character {start} to {end - 1}, but its sentence has {len(sentence.text)} "
            f"characters, counted from 0; a span lies within its sentence: check that the file is unchanged."
        )
    overlapping = [i for i, (first, last) in enumerate(words) if first < end and start < last]
    return range(overlapping[0], overlapping[-1] + 1) if overlapping else range(0)
