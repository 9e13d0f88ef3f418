"""The task of aspect sentiment: SemEval-2014 restaurants as question and review (QA-M of Sun et al. 2019).

A question names one of five aspects. The review that follows is positive, negative, neutral or in conflict about the
aspect, or does not mention it. `headscope.corpora.semeval` makes the pairs, so a model is tuned on the same pairs as it
is measured on.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from headscope.corpora import read
from headscope.corpora.document import Document
from headscope.corpora.reviews import ABSENT, POLARITIES
from headscope.errors import CorpusError
from headscope.files import find_by_suffix, sha256
from headscope.learn.splits import check_splits, hold_out
from headscope.learn.task import TEST, TRAIN, VALIDATION, Example, Task

FILES = {TRAIN: "absa/semeval2014/Restaurants_Train.xml", TEST: "absa/semeval2014/Restaurants_Test_Gold.xml"}


def read_aspects(data: str | Path, name: str = "aspects") -> Task:
    """Read the task with the official training and test reviews; validation is held out of the training reviews.

    The five questions about a sentence stay in one split. The texts are the words of the corpus with spaces between
    them. The score is the accuracy over all pairs; in most of them the review does not mention the aspect.

    The files are in the folder `data`, or in ``absa/semeval2014`` below it.

    Raises:
        CorpusError: A file is missing or cannot be read.
    """
    folder = Path(data).expanduser()
    files = {split: find_by_suffix(folder, file) for split, file in FILES.items()}
    missing = [FILES[split] for split, path in files.items() if path is None]
    if missing:
        raise CorpusError(
            f"the task {name} needs {' and '.join(missing)} of SemEval-2014, which {folder} does not hold; "
            "give the folder that holds them."
        )
    skipped: Counter[str] = Counter()
    pairs = {split: tuple(_read_pairs(path, skipped)) for split, path in files.items() if path is not None}
    train, validation = hold_out(pairs[TRAIN])
    held_out, sentences = (len({example.group for example in examples}) for examples in (validation, pairs[TRAIN]))
    return check_splits(
        Task(
            name, kind="classification", labels=(*POLARITIES, ABSENT), metric="accuracy",
            splits={TRAIN: train, VALIDATION: validation, TEST: pairs[TEST]},
            source={FILES[split]: sha256(path) for split, path in files.items() if path is not None},
            skipped=dict(skipped), spaced=True,
            notes=(
                "training and test are the official files",
                f"validation is {held_out:,} of {sentences:,} training sentences with all their questions, chosen by a "
                "fixed hash",
            ),
        )
    )  # fmt: skip


def _read_pairs(path: Path, skipped: Counter[str]) -> Iterator[Example]:
    for part in read(path, format="semeval").read_parts():
        if isinstance(part, Document):
            texts = (" ".join(part.words[: part.boundary]), " ".join(part.words[part.boundary :]))
            yield Example(part.id, texts=texts, label=part.label, group=part.group)
        else:
            skipped[part.reason] += 1
