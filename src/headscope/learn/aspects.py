"""What a review says of an aspect, as a task: SemEval-2014 restaurants in the form of Sun et al. 2019 (QA-M).

A question names one of five aspects, and the review that follows is positive, negative, neutral or in conflict about
it, or does not speak of it. `headscope.corpora.semeval` makes the pairs, so that what is tuned on is what is measured.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from headscope.corpora import read
from headscope.corpora.document import Document
from headscope.corpora.semeval import ABSENT, POLARITIES
from headscope.errors import CorpusError
from headscope.files import find_by_suffix, sha256
from headscope.learn.splits import checked, held_out
from headscope.learn.task import TEST, TRAIN, VALIDATION, Example, Task

FILES = {
    TRAIN: "absa/semeval2014/Restaurants_Train.xml",
    TEST: "absa/semeval2014/Restaurants_Test_Gold.xml",
}


def read_aspects(data: str | Path, name: str = "aspects") -> Task:
    """The official training and test reviews; validation is held out of the training reviews.

    The five questions about a sentence stay together. The texts are the words of the corpus with spaces between
    them. The score is accuracy over all pairs, most of which are of an aspect that the review does not speak of.

    Args:
        data: the folder in which the files lie, directly or below ``absa/semeval2014``.
        name: what the task is called.

    Raises:
        CorpusError: a file is not there, or cannot be read.
    """
    folder = Path(data).expanduser()
    files = {split: find_by_suffix(folder, file) for split, file in FILES.items()}
    missing = [FILES[split] for split, path in files.items() if path is None]
    if missing:
        raise CorpusError(
            f"the task {name} needs {' and '.join(missing)} of SemEval-2014, which {folder} does not hold; "
            "name the folder that they lie in."
        )
    skipped: Counter[str] = Counter()
    found = {split: tuple(_pairs(path, skipped)) for split, path in files.items() if path is not None}
    train, validation = held_out(found[TRAIN])
    held = len({one.group for one in validation})
    sentences = len({one.group for one in found[TRAIN]})
    return checked(
        Task(
            name, kind="classification", labels=(*POLARITIES, ABSENT), metric="accuracy",
            splits={TRAIN: train, VALIDATION: validation, TEST: found[TEST]},
            source={FILES[split]: sha256(path) for split, path in files.items() if path is not None},
            skipped=dict(skipped),
            notes=(
                "training and test are the official files",
                f"validation is {held:,} of {sentences:,} sentences for training, with all questions, by a fixed hash",
            ),
        )
    )  # fmt: skip


def _pairs(path: Path, skipped: Counter[str]) -> Iterator[Example]:
    for part in read(path, format="semeval").read_parts():
        if isinstance(part, Document):
            texts = (" ".join(part.words[: part.boundary]), " ".join(part.words[part.boundary :]))
            yield Example(part.id, texts=texts, label=part.label, group=part.group)
        else:
            skipped[part.reason] += 1
