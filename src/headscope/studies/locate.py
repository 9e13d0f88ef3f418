"""The corpora of a study: where they are, and which of their documents are measured."""

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
    """Where the corpora of a study are.

    A corpus is looked for under its path in the folder and under the ends of that (`headscope.files.find_by_suffix`).

    Args:
        study: names its corpora.
        data: the folder.
        given: other files or folders, by the name of the measurement that they are for.

    Raises:
        CorpusError: one or more are not there, or one is given for a measurement that the study does not have.
    """
    wanted = {name: one for name, one in study.measurements.items() if not one.of_task}
    for name in given:
        if name not in wanted:
            raise CorpusError(
                f"a corpus was given for {name!r}, which the study does not measure; it measures {', '.join(wanted)}."
            )
    found = dict(given)
    for name, one in wanted.items():
        if name not in found and (path := find_by_suffix(data, one.corpus)) is not None:
            found[name] = path
    missing = [f"{one.corpus} ({one.source})" for name, one in wanted.items() if name not in found]
    if missing:
        place = f"the folder {data}" if data.is_dir() else f"{data}, which is no folder"
        raise CorpusError(
            f"the study needs what is not in {place}: {'; '.join(missing)}. Put it there, or name another "
            f"corpus by --corpus {next(name for name in wanted if name not in found)}=PATH."
        )
    return {name: found[name] for name in wanted}


def texts_of(task: Task, seed: int, most: int | None) -> tuple[list[Document], str]:
    """The texts of the test split of a task, as documents without annotation, and which they are.

    Args:
        task: of one text or two.
        seed: of a sample.
        most: at most so many, drawn at random.
    """
    examples = [example for example in task.splits[TEST] if all(text.split() for text in example.texts)]
    if most is not None and len(examples) > most:
        examples = [examples[place] for place in sorted(random.Random(seed).sample(range(len(examples)), most))]
    documents = []
    for example in examples:
        first, *second = (tuple(text.split()) for text in example.texts)
        boundary = len(first) if second else None
        documents.append(Document(example.name, (*first, *(second[0] if second else ())), boundary=boundary))
    return documents, f"{len(documents):,} of {len(task.splits[TEST]):,} test examples"


def chosen(measurement: Measurement, path: Path, seed: int) -> tuple[Corpus, Iterable[Document], CorpusSummary, str]:
    """A corpus, those of its documents that are measured, what these hold, and which they are, if not all.

    Args:
        measurement: says which documents.
        path: of the corpus.
        seed: of a sample.

    Raises:
        CorpusError: the corpus cannot be read, or has no document that is wanted.
    """
    corpus = read(path)
    summary = summarize(corpus)
    documents: Iterable[Document] = corpus
    if measurement.having:
        documents = [one for one in corpus if any(span.kind == measurement.having for span in one.spans)]
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
    measured = summarize(documents)
    which = f"{measured.documents:,} of {summary.documents:,} documents"
    if measurement.having:
        which += f", with a span of the kind {measurement.having}"
    if measurement.sample is not None:
        which += f", at most {measurement.sample:,} at random (seed {seed})"
    return corpus, documents, replace(measured, skipped=summary.skipped), which
