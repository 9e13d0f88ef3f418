"""The corpora of a study: their paths, and the documents that are measured."""

import hashlib
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from headscope.corpora import Corpus, CorpusSummary, read, summarize
from headscope.corpora.document import Document
from headscope.errors import CorpusError
from headscope.files import find_by_suffix
from headscope.learn.task import TEST, Task
from headscope.studies.study import Lesions, Measurement, Study

T = TypeVar("T")


def locate(study: Study, data: Path, given: Mapping[str, Path | Corpus]) -> dict[str, Path | Corpus]:
    """Return each corpus of a study, or its path: as in `given`, or else in `data` (`files.find_by_suffix`).

    Raises:
        CorpusError: a corpus is missing, or one is given for a measurement that the study does not have.
    """
    measured = {name: measurement for name, measurement in study.measurements.items() if not measurement.of_task}
    needed: dict[str, Measurement | Lesions] = {**measured, **study.lesions}
    for name in given:
        if name not in needed:
            raise CorpusError(
                f"a corpus was given for {name!r}, which the study does not measure; it measures {', '.join(needed)}."
            )
    paths = {name: given.get(name) or find_by_suffix(data, measurement.corpus) for name, measurement in needed.items()}
    if missing := [name for name, path in paths.items() if path is None]:
        place = f"the folder {data}" if data.is_dir() else f"{data}, which is no folder"
        corpora = "; ".join(f"{needed[name].corpus} ({needed[name].source})" for name in missing)
        raise CorpusError(
            f"the study needs what is not in {place}: {corpora}. Put it there, or name another "
            f"corpus by --corpus {missing[0]}=PATH."
        )
    return {name: path for name, path in paths.items() if path is not None}


@dataclass(frozen=True)
class Texts:
    """The texts of a measurement: the documents, their corpus, and the part of the corpus that they are.

    Attributes:
        corpus: the path of the corpus, or the name of the task.
        sha256: the SHA-256 of the corpus.
        documents: the documents.
        summary: the summary of the documents.
        part: the part of the corpus in words; empty for all of it.
    """

    corpus: str
    sha256: str
    documents: Iterable[Document]
    summary: CorpusSummary
    part: str


def sample_texts(task: Task, seed: int, max_texts: int | None) -> Texts:
    """Return texts of a task's test split as documents without annotation: `max_texts` at random, or all."""
    examples = [example for example in task.splits[TEST] if all(text.split() for text in example.texts)]
    documents = [example.to_document() for example in _sample(examples, seed, max_texts)]
    sha256 = hashlib.sha256(repr(sorted(task.source.items())).encode()).hexdigest()
    part = f"{len(documents):,} of {len(task.splits[TEST]):,} test examples"
    return Texts(task.name, sha256, documents, summarize(documents), part)


def select_documents(measurement: Measurement, source: Path | Corpus, seed: int) -> Texts:
    """Return the documents of a corpus that a measurement uses.

    Raises:
        CorpusError: the corpus cannot be read, or has no document with the required kind of span.
    """
    corpus = read(source, hops=measurement.hops)
    summary = summarize(corpus)
    if not measurement.having and measurement.sample is None:
        return Texts(corpus.name, corpus.sha256, corpus, summary, "")
    kind = measurement.having
    documents = [document for document in corpus if not kind or any(span.kind == kind for span in document.spans)]
    documents = _sample(documents, seed, measurement.sample)
    if not documents:
        raise CorpusError(f"no document of {corpus.name} has a span of the kind {kind!r}; give another corpus.")
    selected = summarize(documents)
    part = f"{selected.documents:,} of {summary.documents:,} documents"
    if kind:
        part += f", with a span of the kind {kind}"
    if measurement.sample is not None:
        part += f", at most {measurement.sample:,} at random (seed {seed})"
    return Texts(corpus.name, corpus.sha256, documents, replace(selected, skipped=summary.skipped), part)


def _sample(items: list[T], seed: int, size: int | None) -> list[T]:
    """Return a random sample in the order of the corpus, so neighbours stay neighbours; all items if `size` is None."""
    if size is None or len(items) <= size:
        return items
    return [items[place] for place in sorted(random.Random(seed).sample(range(len(items)), size))]
