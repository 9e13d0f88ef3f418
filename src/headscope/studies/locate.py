"""The corpora of a study: their paths, and the documents that are measured."""

import random
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from headscope.corpora import Corpus, CorpusSummary, read, summarize
from headscope.corpora.document import Document
from headscope.errors import CorpusError
from headscope.files import find_by_suffix
from headscope.learn.task import TEST, Task
from headscope.studies.study import Measurement, Study


def locate(study: Study, data: Path, given: Mapping[str, Path]) -> dict[str, Path]:
    """The paths of a study's corpora, by measurement.

    A corpus is searched under its path in the folder and under the ends of that path (`files.find_by_suffix`).

    Args:
        study: names its corpora.
        data: the folder.
        given: files or folders to use instead, by the name of the measurement.

    Raises:
        CorpusError: a corpus is missing, or one is given for a measurement that the study does not have.
    """
    needed = {name: measurement for name, measurement in study.measurements.items() if not measurement.of_task}
    for name in given:
        if name not in needed:
            raise CorpusError(
                f"a corpus was given for {name!r}, which the study does not measure; it measures {', '.join(needed)}."
            )
    paths = dict(given)
    for name, measurement in needed.items():
        if name not in paths and (path := find_by_suffix(data, measurement.corpus)) is not None:
            paths[name] = path
    missing = {name: measurement for name, measurement in needed.items() if name not in paths}
    if missing:
        place = f"the folder {data}" if data.is_dir() else f"{data}, which is no folder"
        corpora = "; ".join(f"{measurement.corpus} ({measurement.source})" for measurement in missing.values())
        raise CorpusError(
            f"the study needs what is not in {place}: {corpora}. Put it there, or name another "
            f"corpus by --corpus {next(iter(missing))}=PATH."
        )
    return {name: paths[name] for name in needed}


def sample_texts(task: Task, seed: int, max_texts: int | None) -> tuple[list[Document], str]:
    """Texts of a task's test split as documents without annotation, and in words how many of how many they are.

    Args:
        task: a task whose examples are one text or two.
        seed: random seed of the sample.
        max_texts: size of the sample; None for all texts.
    """
    examples = [example for example in task.splits[TEST] if all(text.split() for text in example.texts)]
    if max_texts is not None and len(examples) > max_texts:
        examples = [examples[place] for place in sorted(random.Random(seed).sample(range(len(examples)), max_texts))]
    documents = []
    for example in examples:
        first, *second = (tuple(text.split()) for text in example.texts)
        boundary = len(first) if second else None
        documents.append(Document(example.name, (*first, *(second[0] if second else ())), boundary=boundary))
    return documents, f"{len(documents):,} of {len(task.splits[TEST]):,} test examples"


def select_documents(
    measurement: Measurement, path: Path, seed: int
) -> tuple[Corpus, Iterable[Document], CorpusSummary, str]:
    """A corpus, those of its documents that are measured, their summary, and in words which part they are.

    Args:
        measurement: says which documents.
        path: path of the corpus.
        seed: random seed of the sample.

    Raises:
        CorpusError: the corpus cannot be read, or has none of these documents.
    """
    corpus = read(path)
    summary = summarize(corpus)
    documents: Iterable[Document] = corpus
    if measurement.having:
        documents = [document for document in corpus if any(span.kind == measurement.having for span in document.spans)]
    if measurement.sample is not None:
        documents = list(documents)
        if len(documents) > measurement.sample:
            # In the order of the corpus, so that neighbours are still neighbours.
            places = sorted(random.Random(seed).sample(range(len(documents)), measurement.sample))
            documents = [documents[place] for place in places]
    if documents is corpus:
        return corpus, corpus, summary, ""
    if not documents:
        raise CorpusError(f"no document of {path} has a span of the kind {measurement.having!r}; give another corpus.")
    selected = summarize(documents)
    part = f"{selected.documents:,} of {summary.documents:,} documents"
    if measurement.having:
        part += f", with a span of the kind {measurement.having}"
    if measurement.sample is not None:
        part += f", at most {measurement.sample:,} at random (seed {seed})"
    return corpus, documents, replace(selected, skipped=summary.skipped), part
