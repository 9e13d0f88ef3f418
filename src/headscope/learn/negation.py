"""Which words a negation is about, as a task: Zhao and Bethard 2020, section 5.1.

A word is tagged 1 if it is in the scope of the negation, and 0 otherwise. Where the cue stands is told by the words
``{`` and ``}`` round it, which have no tag::

    He did { not } come .
    1  1     0     1    0

Each negation is an example, so a sentence with two negations is two, with other braces and other tags.
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
from headscope.learn.splits import FEWEST_GROUPS, SHARE, TEST_SHARE, checked, held_out
from headscope.learn.task import TEST, TRAIN, VALIDATION, Example, Task

IN_SCOPE, OUT_OF_SCOPE = "1", "0"
OPENING, CLOSING = "{", "}"

CORPUS = "negation/conandoyle_zhao/data_story.json"
"""What is tuned on if a folder holds it; otherwise the folder itself is the corpus."""

PAPERS_TRAINING = ("HoundOfTheBaskervilles_", "dog")
PAPERS_TEST = ("s", "wisteria.1sthalf")
"""How the texts of Zhao and Bethard's file begin that are its 662 negations for training, and which are the 200.

That this is the paper's split follows from these two counts, which are the paper's; the file does not say it.
"""

AFFIXAL = "negations whose cue is part of a word"
WITHOUT_CUE = "scopes without a cue"

# A group is FILE:TEXT in these formats. The file is left out, so that what is held out does not depend on its name.
_FILE_IN_GROUP = ("frames", "starsem")
_OFFICIAL = {TRAIN: "train", VALIDATION: "dev|valid", TEST: "test"}


def read_negation(data: str | Path, name: str = "negation") -> Task:
    """The task for any corpus with cues and scopes.

    The file of Zhao and Bethard 2020 is split as in the paper: 662 negations to train on and 200 to test on, by
    their texts. Where the names of a corpus's files say which split they are (*SEM 2012), they are that split.
    Otherwise a fifth of the negations is the test. What is held out is whole texts, or whole sentences where the
    corpus has fewer than `FEWEST_GROUPS` texts; from the training negations, `SHARE` are held out for validation.

    A cue of several words has one pair of braces for each of its stretches (``{ neither } man { nor } beast``), so
    that nothing stands in braces that is no cue. A negation without a scope has words with tag 0 only. Left out
    and counted are cues that are part of a word, as in the paper, and scopes without a cue.

    Args:
        data: a file or folder, or ``grammar:COUNT``. In a folder, `CORPUS` is looked for first.
        name: what the task is called.

    Raises:
        CorpusError: the corpus cannot be read, has no cues, or is too small to be split.
    """
    corpus, called = _corpus(data)
    skipped: Counter[str] = Counter()
    by_file: dict[str, list[tuple[Document, Example]]] = {}
    stretches = words = 0
    for file, part in _parts(corpus):
        if isinstance(part, Skipped):
            skipped[part.reason] += 1
            continue
        found = by_file.setdefault(file, [])
        for example, cue in _examples(part, skipped):
            found.append((part, replace(example, group=_text_of(part, corpus))))
            stretches += example.words.count(OPENING) - part.words.count(OPENING) > 1
            words += len(cue) > 1
    pairs = [pair for found in by_file.values() for pair in found]
    if not pairs:
        raise CorpusError(
            f"{called} has no negation cue that is a word, and the task {name} wants them; give a corpus that has, "
            "such as that of Zhao and Bethard 2020, *SEM 2012, SFU or grammar:2000."
        )
    splits, notes = _split(by_file, corpus, pairs)
    if words:
        notes += (
            f"{words:,} of {len(pairs):,} cues are several words, {stretches:,} of these several stretches, with a "
            "pair of braces round each stretch",
        )
    return checked(
        Task(
            name, kind="tagging", labels=(OUT_OF_SCOPE, IN_SCOPE), splits=splits, metric="f1", positive=IN_SCOPE,
            source={called: corpus.sha256}, skipped=dict(skipped), notes=notes,
        )
    )  # fmt: skip


def _corpus(data: str | Path) -> tuple[Corpus, str]:
    """The corpus, and what it is called in a folder that may lie anywhere."""
    folder = Path(data).expanduser()
    if str(data).partition(":")[0] == GRAMMAR and not folder.exists():
        return read(str(data)), str(data)
    path = find_by_suffix(folder, CORPUS) if folder.is_dir() else None
    return (read(folder), folder.name or str(folder)) if path is None else (read(path), CORPUS)


def _parts(corpus: Corpus) -> Iterator[tuple[str, Document | Skipped]]:
    """The documents and what was left out, each with the name of its file."""
    files = [replace(corpus, files=(path,)) for path in corpus.files] or [corpus]
    for one in files:
        file = one.files[0].name if one.files else one.name
        for part in one.read_parts():
            yield file, part


def _text_of(document: Document, corpus: Corpus) -> str:
    group = document.group or document.id
    return group.rpartition(":")[2] if corpus.format in _FILE_IN_GROUP else group


def _examples(document: Document, skipped: Counter[str]) -> Iterator[tuple[Example, set[int]]]:
    """The negations of a sentence, each with the words of its cue."""
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
        for place, word in enumerate(document.words):
            if place in cue and place - 1 not in cue:
                words.append(OPENING)
                tags.append(None)
            words.append(word)
            tags.append(IN_SCOPE if place in scopes[label] else OUT_OF_SCOPE)
            if place in cue and place + 1 not in cue:
                words.append(CLOSING)
                tags.append(None)
        yield Example(f"{document.id}, negation {label}", words=tuple(words), tags=tuple(tags)), cue


def _split(
    by_file: dict[str, list[tuple[Document, Example]]], corpus: Corpus, pairs: Sequence[tuple[Document, Example]]
) -> tuple[dict[str, tuple[Example, ...]], tuple[str, ...]]:
    """The splits, and what is to be said of them."""
    examples = [example for _, example in pairs]
    official = {file: _official(file) for file in by_file}
    if None not in official.values() and {TRAIN, TEST} <= set(official.values()):
        files: dict[str, list[tuple[Document, Example]]] = {split: [] for split in _OFFICIAL}
        for file, found in by_file.items():
            files[str(official[file])] += found
        test = tuple(example for _, example in files[TEST])
        if files[VALIDATION]:
            splits = {split: tuple(example for _, example in found) for split, found in files.items()}
            return splits, ("training, validation and test are the corpus's own files",)
        rest, note = files[TRAIN], "training and test are the corpus's own files"
    elif corpus.format == "frames" and _is_the_papers(examples):
        test = tuple(one for one in examples if one.group in PAPERS_TEST)
        rest = [pair for pair in pairs if pair[1].group not in PAPERS_TEST]
        note = f"training and test are those of Zhao and Bethard 2020, by their texts: {len(rest)} and {len(test)}"
    else:
        stay, test = held_out(_grouped(pairs), TEST_SHARE, len(pairs))
        kept = {example.name for example in stay}
        rest = [pair for pair in pairs if pair[1].name in kept]
        note = f"test is {len(test):,} of {len(pairs):,} negations, chosen by a fixed hash"
    train, validation = held_out(_grouped(rest), SHARE, len(rest))
    return (
        {TRAIN: train, VALIDATION: validation, TEST: test},
        (note, f"validation is {len(validation):,} of {len(rest):,} negations for training, chosen by a fixed hash"),
    )  # fmt: skip


def _official(file: str) -> str | None:
    """The split that the name of a file says it is."""
    named = [split for split, pattern in _OFFICIAL.items() if re.search(pattern, file.casefold())]
    return named[0] if len(named) == 1 else None


def _is_the_papers(examples: Sequence[Example]) -> bool:
    texts = {example.group for example in examples}
    return set(PAPERS_TEST) <= texts and all(
        text in PAPERS_TEST or text.startswith(PAPERS_TRAINING) for text in texts
    )  # fmt: skip


def _grouped(pairs: Sequence[tuple[Document, Example]]) -> list[Example]:
    """The examples by text, or by sentence where there are few texts."""
    if len({example.group for _, example in pairs}) >= FEWEST_GROUPS:
        return [example for _, example in pairs]
    return [replace(example, group=document.id) for document, example in pairs]
