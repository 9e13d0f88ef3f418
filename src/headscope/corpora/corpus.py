"""A corpus of documents, which come from files, from a generator or from memory."""

import errno
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from headscope.corpora import grammar, hub, needles, repeats, text, treebanks
from headscope.corpora.document import Document, Skipped
from headscope.corpora.formats import FORMATS
from headscope.corpora.memory import StreamedDataset, read_memory
from headscope.corpora.paths import Paths, check_hops
from headscope.corpora.selection import Selection
from headscope.corpora.spacy_patterns import Patterns
from headscope.corpora.spacy_patterns import read as read_patterns
from headscope.errors import CorpusError, quote, suggest
from headscope.files import check_regular, expand_home, hash_lines, hash_texts, reading, sha256, suggest_path
from headscope.first_guesses import explained
from headscope.results import Described

GRAMMAR = "grammar"
GENERATED = {
    GRAMMAR: grammar.generate_sentences,
    "repeats": repeats.generate_repeats,
    "needles": needles.generate_needles,
}
"""The generated corpora by name: ``NAME``, ``NAME:COUNT`` or ``NAME:COUNT:SEED``."""

DOWNLOADED = (treebanks.PREFIX, hub.PREFIX)
"""The beginnings of the names of corpora that are downloaded into a cache."""

MEMORY = "documents in memory"
"""The name and the format of a corpus in memory."""

_BEGINNING = 1 << 16


@dataclass(frozen=True, repr=False)
class Corpus(Described):
    """Documents that can be read again and again; documents from files and generators are not kept in memory.

    Attributes:
        name: the corpus as the user named it; `MEMORY` for texts in memory.
        files: the files that are read, in order.
        format: a name of `FORMATS` or `GENERATED`, or `MEMORY`.
        ignored: the other files of the folder, without hidden ones.
        patterns: patterns that add links and spans to the documents.
        held: the documents of a corpus in memory.
        selection: the part of the documents that is taken; by default all.
        hops: the greatest length of the dependency paths that become links (`headscope.corpora.paths`); 1 for none.
        source: where the corpus was downloaded, with its licence; empty if it was not.
    """

    name: str
    files: tuple[Path, ...]
    format: str
    ignored: tuple[Path, ...] = ()
    patterns: Patterns | None = None
    held: Iterable[Document] = ()
    selection: Selection | None = None
    hops: int = 1
    source: str = ""

    def __iter__(self) -> Iterator[Document]:
        return (part for part in self.read_parts() if isinstance(part, Document))

    @cached_property
    def _length(self) -> int:
        return sum(1 for _ in self)

    def __len__(self) -> int:
        """Return the number of documents; they are read once to count them."""
        return self._length

    def __bool__(self) -> bool:
        """Return True, since a corpus without documents cannot be read."""
        return True

    def __getitem__(self, place: int) -> Document:
        """Return the document at an index, counted from 0 or, if negative, from the end; all before it are read.

        Raises:
            IndexError: there are fewer documents.
        """
        start = place if place >= 0 else len(self) + place
        document = next(islice(self, start, None), None) if start >= 0 else None
        if document is None:
            raise IndexError(f"there is no document {place}; the corpus has {len(self)}")
        return document

    def __repr__(self) -> str:
        """Return a short description of the corpus, without reading its documents."""
        files = f", {len(self.files)} files" if len(self.files) > 1 else ""
        patterns = f", patterns={self.patterns.name!r}" if self.patterns is not None else ""
        part = f", {self.selection}" if self.selection is not None else ""
        part += f", {self._describe_hops}" if self.hops > 1 else ""
        return f"Corpus({self.name!r}{f', {self.format}' if self.format != self.name else ''}{files}{patterns}{part})"

    @property
    def title(self) -> str:
        """The name of the corpus, with its selection if that leaves out documents; the documents may be read for it."""
        return self.name if self._chosen is None else f"{self.name} ({self.selection})"

    def find_files(self) -> "Corpus":
        """Return the corpus with the paths of its files on this machine, whose cache may be in another folder."""
        if all(path.exists() for path in self.files) or not self.source:
            return self
        return replace(self, files=_locate(self.name, self.format).files)

    def read_parts(self) -> Iterator[Document | Skipped]:
        """Yield the documents and, between them, the skipped parts; for a sample, the skipped parts of all files."""
        skipped: Skipped | None = None
        empty = True
        parts = self._read_files()
        if self.selection is not None and self._chosen is not None:
            parts = self.selection.select(parts, self._chosen)
        for part in parts if self.patterns is None else self.patterns.annotate(parts, self.title):
            if isinstance(part, Skipped):
                skipped = skipped or part
                yield part
            else:
                empty = False
                yield part if self._paths is None else self._paths.add_to(part)
        if empty and skipped is not None:
            raise CorpusError(f"the corpus {self.name!r} has nothing but {skipped.reason} (first {skipped.where}).")
        if empty:
            raise CorpusError(
                f"the corpus {self.name!r}, read as {self.format}, gave no document; expected two consecutive "
                f"paragraphs of at least {text.MIN_WORDS} words: if the paragraphs are laid out in another way, name "
                f"the format ({', '.join(FORMATS)})."
            )

    @cached_property
    def sha256(self) -> str:
        """The SHA-256 of the contents of the corpus.

        Several files, with their companions, have the hash of the output of ``sha256sum`` for them, in order.

        A generated corpus has the hash of its documents' reprs. A part of a corpus has the hash of two lines: the
        SHA-256 of the whole, and the selection as in `title`. For the first documents of a streamed dataset, the
        SHA-256 of these documents replaces that of the whole, which is not read. Patterns and dependency paths give the
        hash of two lines: the SHA-256 without them, and the SHA-256 of the patterns or a line on the hops.
        """
        if self.hops > 1:
            return hash_lines((replace(self, hops=1).sha256, self._describe_hops))
        if self.patterns is not None:
            return hash_lines((replace(self, patterns=None).sha256, self.patterns.sha256))
        if self._chosen is not None:
            return hash_lines((self._hash_before_selection(), str(self.selection)))
        if self.format in GENERATED:
            # The words determine the written text.
            return hash_lines(repr(replace(document, written=None)) for document in self)
        if self.format == MEMORY:
            return self.held.sha256 if isinstance(self.held, StreamedDataset) else hash_texts(map(repr, self.held))
        paths = [file for path in self.files for file in (path, *FORMATS[self.format].companions(path))]
        digests = [sha256(path) for path in paths]
        if len(digests) == 1:
            return digests[0]
        names = [self._name_file(path) for path in paths]
        return hash_lines(f"{digest}  {name}" for digest, name in zip(digests, names, strict=True))

    def _hash_before_selection(self) -> str:
        whole = replace(self, selection=None)
        if isinstance(self.held, StreamedDataset) and self.selection is not None and self.selection.limit is not None:
            return hash_texts(map(repr, islice(whole, self.selection.limit)))
        return whole.sha256

    @cached_property
    def _chosen(self) -> frozenset[int] | None:
        """The indices of the documents that are taken, counted from 0; None if all are taken."""
        documents = (part for part in self._read_files() if isinstance(part, Document))
        return None if self.selection is None else self.selection.choose(documents)

    @cached_property
    def _paths(self) -> Paths | None:
        """The dependency paths that become links, for which all documents are read; None if `hops` is 1."""
        return Paths.of_corpus(replace(self, hops=1), self.hops) if self.hops > 1 else None

    @property
    def _describe_hops(self) -> str:
        return f"paths of up to {self.hops} dependencies"

    def _read_files(self) -> Iterator[Document | Skipped]:
        if self.format in GENERATED:
            yield from GENERATED[self.format](**_parse_generated_name(self.name))
        yield from self.held
        for path in self.files:
            yield from FORMATS[self.format].read(path, name=self._name_file(path))

    def _name_file(self, path: Path) -> str:
        # Several subfolders may have files of one name.
        folder = expand_home(self.name)
        if not path.is_relative_to(folder):
            return path.name
        relative = path.relative_to(folder)
        return relative.as_posix() if relative.parts else path.name


@explained
def read(
    corpus: str | Path | Iterable[Any],
    *,
    format: str | None = None,
    patterns: str | Path | None = None,
    column: str | None = None,
    limit: int | None = None,
    sample: int | None = None,
    seed: int = 0,
    hops: int = 1,
) -> Corpus:
    """Return the corpus in a file or folder, a generated or downloaded one, or a corpus of texts in memory.

    >>> corpus = headscope.read("grammar:211")
    >>> corpus[0].words, len(corpus)

    The format is detected from the content of the files unless it is named. A folder is searched with all its
    subfolders, in the order of the relative paths; hidden files and folders are ignored. If a folder holds annotated
    files as well as plain text, only the annotated ones are read. README and LICENSE are plain text only if given by
    their own paths. A named format also takes all files with its suffixes. `Corpus.ignored` lists what is left out.

    Args:
        corpus: a file, a folder, or ``grammar``, ``grammar:COUNT`` or ``grammar:COUNT:SEED`` for generated sentences;
            likewise ``repeats`` for repeated random tokens, and ``needles`` for questions about facts in long texts;
            ``ud:en_ewt`` for a treebank that is downloaded (`headscope.corpora.treebanks`), and ``hf:NAME`` for a
            dataset of the Hugging Face hub (`headscope.corpora.hub`). A `Path` is always a file or folder. In memory:
            strings, lists of words or of messages, a dataset (a streamed one is not kept), Docs of spaCy, or documents.
        format: a name of `FORMATS`, for files.
        patterns: a file of spaCy's patterns (`headscope.corpora.spacy_patterns`), which add links and spans.
        column: the name of the column of a dataset that has the texts. Default: ``text``, ``sentence``, ``words``,
            ``tokens`` or ``messages``.
        limit: take only the first `limit` documents. Default: all.
        sample: take `sample` documents at random, in their order; all of a corpus with fewer. Default: all.
        seed: the random seed of the sample.
        hops: for a treebank, 2 or 3 to add the most frequent paths of up to 2 or 3 dependencies as links
            (`headscope.corpora.paths`). Default: only dependencies.

    Raises:
        CorpusError: the file or folder does not exist, nothing in it can be read, its format cannot be detected, an
            item in memory is not a text, the patterns cannot be used, `limit` or `sample` is not a number from 1 on,
            or `hops` is not from 1 to 3. Faults inside a file, a pattern without a match and paths that are too rare
            raise an error when the corpus is read; `summarize` reads all of it.
    """
    check_hops(hops)
    on_disk = isinstance(corpus, str | Path)
    if format is not None and not on_disk:
        raise CorpusError("`format` is for a corpus on disk; leave it out, or give a path.")
    if column is not None and (on_disk or isinstance(corpus, Corpus)):
        raise CorpusError(f"`column` is for a dataset in memory, and the corpus is {corpus}; leave it out.")
    if isinstance(corpus, Corpus):
        located = corpus
    elif isinstance(corpus, str | Path):
        located = _locate(corpus, format)
    else:
        located = Corpus(MEMORY, files=(), format=MEMORY, held=read_memory(corpus, column=column))
    if limit is not None or sample is not None:
        if located.selection is not None:
            raise CorpusError(
                f"of the corpus {located.name!r} a part is taken already; leave `limit` and `sample` out."
            )
        located = replace(located, selection=Selection(limit, sample, seed))
    if patterns is not None:
        located = replace(located, patterns=read_patterns(patterns))
    return located if hops == 1 else replace(located, hops=hops)


def hash_documents(documents: Iterable[Document]) -> str:
    """Return the SHA-256 of a corpus, or of the reprs of documents that are not a `Corpus`."""
    return documents.sha256 if isinstance(documents, Corpus) else hash_texts(map(repr, documents))


def name_documents(documents: Iterable[Document]) -> str:
    """Return the title of a corpus, or `MEMORY` for documents that are not a `Corpus`."""
    return documents.title if isinstance(documents, Corpus) else MEMORY


def _locate(corpus: str | Path, format: str | None) -> Corpus:
    if isinstance(corpus, str) and (kind := corpus.partition(":")[0]) in GENERATED:
        _parse_generated_name(corpus)
        if format not in (None, kind):
            raise CorpusError(
                f"the corpus {corpus!r} is generated, but the format {format!r} was asked for; "
                f"leave the format out, or write './{corpus}' for a file of that name."
            )
        return Corpus(corpus, files=(), format=kind)
    if format is not None and format not in FORMATS:
        raise CorpusError(
            f"the format {format!r} is not known{suggest(format, FORMATS)}; name one of {', '.join(FORMATS)}."
        )
    if isinstance(corpus, str) and corpus.startswith(treebanks.PREFIX):
        split = treebanks.fetch_treebank(corpus)
        return Corpus(corpus, files=(split.path,), format=format or "conllu", source=split.source)
    if isinstance(corpus, str) and corpus.startswith(hub.PREFIX):
        if format is not None:
            raise CorpusError(f"the corpus {corpus!r} is a dataset, which has no format; leave out `format`.")
        held, source = hub.open_dataset(corpus)
        return Corpus(corpus, files=(), format=MEMORY, held=held, source=source)
    path = expand_home(corpus)
    if len(str(corpus).split()) > 1 and not suggest_path(path) and _is_missing(path):
        raise CorpusError(
            f"there is no corpus {quote(str(corpus))}; to measure a sentence itself, write it to a file or, in Python, "
            "into a list."
        )
    check_regular(path)
    if path.is_dir():
        return _read_folder(str(corpus), path, format)
    if not path.is_file():
        kind, *numbers = str(corpus).partition(":")
        close = suggest_path(path) or suggest(kind, GENERATED, after="".join(numbers))
        is_code = str(corpus) in treebanks.list_treebanks()
        other = f"'ud:{corpus}' for the treebank" if is_code else f"{GRAMMAR!r} for generated sentences"
        raise CorpusError(f"the corpus {str(corpus)!r} does not exist{close}; give a file, a folder, or {other}.")
    format = format or _detect_format(path)
    if format is None:
        raise CorpusError(
            f"the format of {path} cannot be detected from its name and its first lines; "
            f"name the format ({', '.join(FORMATS)})."
        )
    return Corpus(str(corpus), files=(path,), format=format)


def _is_missing(path: Path) -> bool:
    """Return whether a path is missing; True if its name is too long for a file, such as a whole text."""
    try:
        return not path.exists()
    except OSError as error:
        return error.errno == errno.ENAMETOOLONG


def _read_folder(name: str, folder: Path, format: str | None) -> Corpus:
    formats: dict[Path, str | None] = {}
    for path in sorted(folder.rglob("*"), key=lambda path: path.relative_to(folder).as_posix()):
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts):
            formats[path] = _detect_format_in_folder(path, format)
    if "text-lines" in formats.values():  # next to paragraphs, a file without a pair is no list of sentences
        formats = {path: "text-lines" if value == "sentences" else value for path, value in formats.items()}
    counts = Counter(value for value in formats.values() if value is not None)
    candidates = [value for value in counts if FORMATS[value].annotated] or list(counts)
    # Companions of files in one format are not a corpus of their own.
    companions = {file for value in counts for file in _find_companions(formats, value)}
    independent = {value for path, value in formats.items() if path.resolve() not in companions}
    candidates = [value for value in candidates if value in independent] or candidates
    if not candidates:
        raise CorpusError(
            f"the folder {name!r} has no file "
            f"{'in a format that headscope knows' if format is None else f'for the format {format!r}'} "
            f"among its {len(formats)}; "
            f"give a folder with files in one of {', '.join(FORMATS)}, or one file and the name of its format."
        )
    if len(candidates) > 1:
        raise CorpusError(
            f"the folder {name!r} holds files in several formats "
            f"({', '.join(f'{counts[value]} in {value}' for value in candidates)}); a corpus has one: name the format."
        )
    files = tuple(path for path, value in formats.items() if value == candidates[0])
    companions = _find_companions(formats, candidates[0])
    ignored = tuple(path for path in formats if path not in files and path.resolve() not in companions)
    return Corpus(name, files=files, format=candidates[0], ignored=ignored)


def _find_companions(formats: Mapping[Path, str | None], name: str) -> set[Path]:
    """Return the files that are read together with the files in the format `name`."""
    paths = (path for path, value in formats.items() if value == name)
    return {file.resolve() for path in paths for file in FORMATS[name].companions(path)}


def _detect_format_in_folder(path: Path, format: str | None) -> str | None:
    detected = _detect_format(path)
    if format is not None:
        wanted = FORMATS[format]
        is_known = detected == format or path.suffix.lower() in wanted.suffixes  # forms of alignments look alike
        is_wanted = is_known or (wanted.annotated and wanted.recognise(_read_beginning(path)))
        detected = format if is_wanted else None
    is_notice = path.name.upper().startswith(("README", "LICENSE", "LICENCE"))
    return None if detected is None or (is_notice and not FORMATS[detected].annotated) else detected


def _read_beginning(path: Path) -> list[str]:
    with reading(path) as file:
        # A file in another encoding is recognised too; its reader then says which line is not UTF-8.
        return file.read(_BEGINNING).decode("utf-8-sig", errors="replace").split("\n")


def _detect_format(path: Path) -> str | None:
    beginning = _read_beginning(path)
    return next((name for name, format in FORMATS.items() if format.supports(path.suffix.lower(), beginning)), None)


def _parse_generated_name(name: str) -> dict[str, int]:
    kind = name.partition(":")[0]
    if not re.fullmatch(rf"{kind}(:[1-9][0-9]{{0,17}}(:[0-9]{{1,18}})?)?", name):
        raise CorpusError(
            f"the corpus {quote(name)} is not understood; generated texts are named {kind!r}, "
            f"'{kind}:COUNT' or '{kind}:COUNT:SEED', such as '{kind}:5000:7'."
        )
    return dict(zip(("count", "seed"), map(int, name.split(":")[1:]), strict=False))
