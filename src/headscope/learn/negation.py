"""The task of negation scope, which marks the words that a negation applies to (Zhao and Bethard 2020, section 5.1).

A word is tagged 1 if it is in the scope of the negation, and 0 otherwise. The cue is marked by the words ``{`` and
``}`` round it, which have no tag::

    He did { not } come .
    1  1     0     1    0

Each negation is an example, so a sentence with two negations becomes two examples with different braces and tags.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from headscope.corpora import Corpus, read
from headscope.corpora.corpus import GRAMMAR
from headscope.corpora.document import Document, Skipped
from headscope.errors import CorpusError
from headscope.files import find_by_suffix
from headscope.learn.splits import FEWEST_GROUPS, SHARE, TEST_SHARE, check_splits, hold_out
from headscope.learn.task import TEST, TRAIN, VALIDATION, Example, Task

IN_SCOPE, OUT_OF_SCOPE = "1", "0"
OPENING, CLOSING = "{", "}"

CORPUS = "negation/conandoyle_zhao/data_story.json"
"""The path of the corpus of Zhao and Bethard; a folder without this file is itself the corpus."""

PAPERS_TRAINING = ("HoundOfTheBaskervilles_", "dog")
PAPERS_TEST = ("s", "wisteria.1sthalf")
"""The beginnings of the names of the paper's training texts, and the full names of its test texts.

The file of Zhao and Bethard does not mark the split; these texts give the paper's counts, 662 and 200 negations.
"""

AFFIXAL = "negations whose cue is part of a word"
WITHOUT_CUE = "scopes without a cue"

# A group is FILE:TEXT in these formats. The file is dropped, so that the split does not depend on its name.
_FILE_IN_GROUP = ("frames", "starsem")
_OFFICIAL = {TRAIN: "train", VALIDATION: "dev|valid", TEST: "test"}


def read_negation(data: str | Path, name: str = "negation") -> Task:
    """Read a corpus with cues and scopes of negations as a task.

    The file of Zhao and Bethard 2020 is split as in the paper: 662 negations to train on and 200 to test on, by their
    texts. If a corpus's files are named after splits (*SEM 2012), they are these splits. Otherwise a fifth of the
    negations is the test. Whole texts are held out, or whole sentences if the corpus has fewer than `FEWEST_GROUPS`
    texts; `SHARE` of the training negations are held out for validation.

    A cue of several words has one pair of braces for each of its contiguous parts (``{ neither } man { nor } beast``),
    so that the braces hold only cue words. A negation without a scope has only words with tag 0. Cues that are part of
    a word (as in the paper) and scopes without a cue are left out and counted.

    The corpus is a file or folder, or ``grammar:COUNT``. A folder that holds `CORPUS` is read from there.

    Raises:
        CorpusError: The corpus cannot be read, has no cues, or is too small to be split.
    """
    corpus, corpus_name = _find_corpus(data)
    skipped: Counter[str] = Counter()
    by_file: dict[str, list[tuple[Document, Example]]] = {}
    stretches = words = 0
    for file, part in _read_parts(corpus):
        if isinstance(part, Skipped):
            skipped[part.reason] += 1
            continue
        file_pairs = by_file.setdefault(file, [])
        for example, cue in _make_examples(part, skipped):
            file_pairs.append((part, replace(example, group=_text_name(part, corpus))))
            stretches += example.words.count(OPENING) - part.words.count(OPENING) > 1
            words += len(cue) > 1
    pairs = [pair for file_pairs in by_file.values() for pair in file_pairs]
    if not pairs:
        raise CorpusError(
            f"{corpus_name} has no negation cue that is a word, and the task {name} needs them; give a corpus with "
            "cues, such as that of Zhao and Bethard 2020, *SEM 2012, SFU or grammar:2000."
        )
    splits, notes = _split(by_file, corpus, pairs)
    if words:
        notes += (
            f"{words:,} of {len(pairs):,} cues are several words, {stretches:,} of these several stretches, with a "
            "pair of braces round each stretch",
        )
    return check_splits(
        Task(
            name, kind="tagging", labels=(OUT_OF_SCOPE, IN_SCOPE), splits=splits, metric="f1", positive=IN_SCOPE,
            source={corpus_name: corpus.sha256}, skipped=dict(skipped), notes=notes,
        )
    )  # fmt: skip


def _find_corpus(data: str | Path) -> tuple[Corpus, str]:
    """Read the corpus at a path; return it, and its name without the folder that it is in."""
    folder = Path(data).expanduser()
    if str(data).partition(":")[0] == GRAMMAR and not folder.exists():
        return read(str(data)), str(data)
    path = find_by_suffix(folder, CORPUS) if folder.is_dir() else None
    return (read(folder), folder.name or str(folder)) if path is None else (read(path), CORPUS)


def _read_parts(corpus: Corpus) -> Iterator[tuple[str, Document | Skipped]]:
    """Yield the documents and the skipped documents of a corpus, each with the name of its file."""
    for file_corpus in [replace(corpus, files=(path,)) for path in corpus.files] or [corpus]:
        file = file_corpus.files[0].name if file_corpus.files else file_corpus.name
        for part in file_corpus.read_parts():
            yield file, part


def _text_name(document: Document, corpus: Corpus) -> str:
    group = document.group or document.id
    return group.rpartition(":")[2] if corpus.format in _FILE_IN_GROUP else group


def _make_examples(document: Document, skipped: Counter[str]) -> Iterator[tuple[Example, set[int]]]:
    """Yield an example for each negation of a sentence, and the indices of the words of its cue."""
    marked: defaultdict[str, defaultdict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for span in document.spans:
        marked[span.kind][span.label].update(range(span.start, span.end))
    cues, affixal, scopes = marked["cue"], marked["affixal_cue"], marked["scope"]
    if left_out := len(affixal.keys() - cues.keys()):
        skipped[AFFIXAL] += left_out
    if left_out := len(scopes.keys() - cues.keys() - affixal.keys()):
        skipped[WITHOUT_CUE] += left_out
    for label, cue in cues.items():
        words: list[str] = []
        tags: list[str | None] = []
        for position, word in enumerate(document.words):
            if position in cue and position - 1 not in cue:
                words.append(OPENING)
                tags.append(None)
            words.append(word)
            tags.append(IN_SCOPE if position in scopes[label] else OUT_OF_SCOPE)
            if position in cue and position + 1 not in cue:
                words.append(CLOSING)
                tags.append(None)
        yield Example(f"{document.id}, negation {label}", words=tuple(words), tags=tuple(tags)), cue


def _split(
    by_file: dict[str, list[tuple[Document, Example]]], corpus: Corpus, pairs: Sequence[tuple[Document, Example]]
) -> tuple[dict[str, tuple[Example, ...]], tuple[str, ...]]:
    """Divide the negations into splits; return the splits, and notes on how they were made."""
    examples = [example for _, example in pairs]
    official = {file: _official_split(file) for file in by_file}
    if None not in official.values() and {TRAIN, TEST} <= set(official.values()):
        files: dict[str, list[tuple[Document, Example]]] = {split: [] for split in _OFFICIAL}
        for file, file_pairs in by_file.items():
            files[str(official[file])] += file_pairs
        test = tuple(example for _, example in files[TEST])
        if files[VALIDATION]:
            splits = {split: tuple(example for _, example in file_pairs) for split, file_pairs in files.items()}
            return splits, ("training, validation and test are the corpus's own files",)
        rest, note = files[TRAIN], "training and test are the corpus's own files"
    elif corpus.format == "frames" and _is_papers_corpus(examples):
        test = tuple(example for example in examples if example.group in PAPERS_TEST)
        rest = [pair for pair in pairs if pair[1].group not in PAPERS_TEST]
        note = f"training and test are those of Zhao and Bethard 2020, by their texts: {len(rest)} and {len(test)}"
    else:
        stay, test = hold_out(_group_examples(pairs), TEST_SHARE, len(pairs))
        rest_names = {example.name for example in stay}
        rest = [pair for pair in pairs if pair[1].name in rest_names]
        note = f"test is {len(test):,} of {len(pairs):,} negations, chosen by a fixed hash"
    train, validation = hold_out(_group_examples(rest), SHARE, len(rest))
    return (
        {TRAIN: train, VALIDATION: validation, TEST: test},
        (note, f"validation is {len(validation):,} of {len(rest):,} training negations, chosen by a fixed hash"),
    )  # fmt: skip


def _official_split(file: str) -> str | None:
    """Return the split that the name of a file indicates; None if it indicates none or several."""
    named = [split for split, pattern in _OFFICIAL.items() if re.search(pattern, file.casefold())]
    return named[0] if len(named) == 1 else None


def _is_papers_corpus(examples: Sequence[Example]) -> bool:
    texts = {example.group for example in examples}
    rest = texts - set(PAPERS_TEST)
    return set(PAPERS_TEST) <= texts and all(text.startswith(PAPERS_TRAINING) for text in rest)


def _group_examples(pairs: Sequence[tuple[Document, Example]]) -> list[Example]:
    """Return the examples with their texts as groups; with their sentences if there are too few texts."""
    if len({example.group for _, example in pairs}) >= FEWEST_GROUPS:
        return [example for _, example in pairs]
    return [replace(example, group=document.id) for document, example in pairs]
