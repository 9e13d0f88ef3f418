"""Tasks for fine-tuning: examples with labels, in three splits.

A reader (one file for each task) makes a `Task` from a corpus, and `make_control` makes a control of a `Task`. A model
is tuned in the same way on both.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Literal

from headscope.corpora.document import Document
from headscope.corpora.written_text import join_texts, split_text
from headscope.results import Facts, Result
from headscope.text_forms import SPACED, WRITTEN

Kind = Literal["tagging", "classification", "regression"]

TRAIN, VALIDATION, TEST = "train", "validation", "test"
SPLITS = (TRAIN, VALIDATION, TEST)
"""The names of the splits: for training, for choosing an epoch, and for the final score."""


@dataclass(frozen=True)
class Example:
    """An input with its label.

    Attributes:
        name: The location in the corpus, for messages: ``corpus/train.tsv:7``.
        texts: One text or two; empty in a tagging task, which has words.
        label: The label of the whole example: one of the task's labels, or a number; None in a tagging task.
        words: The words of a tagging task, including marks (the braces around a cue).
        tags: A label for each word; None for a word without a tag.
        group: The source, such as a sentence or a chapter; all examples of a group are in one split.
    """

    name: str
    texts: tuple[str, ...] = ()
    label: str | float | None = None
    words: tuple[str, ...] = ()
    tags: tuple[str | None, ...] = ()
    group: str = ""

    def to_document(self) -> Document:
        """Return the texts as a document without annotation; its words are separated by white space."""
        words, texts = zip(*map(split_text, self.texts), strict=True)
        boundary = len(words[0]) if len(words) > 1 else None
        return Document(self.name, tuple(chain.from_iterable(words)), boundary=boundary, written=join_texts(texts))


@dataclass(frozen=True, repr=False)
class Task(Result):
    """A task for fine-tuning.

    Attributes:
        name: The name that the user gave to the task.
        kind: Tagging (a label for each word), classification (one label) or regression (one number).
        labels: The labels in a fixed order; empty if the label is a number.
        splits: The examples of `SPLITS`.
        metric: The score by which an epoch is chosen: ``f1``, ``accuracy``, ``matthews`` or ``pearson``.
        positive: The label whose precision, recall and F1 are scored; empty without one.
        source: The files and their SHA-256.
        skipped: The number of skipped examples or words, by reason.
        notes: The choices of the reader, for the user: a sentence each, without its full stop.
        control: Whether the labels are arbitrary.
        spaced: Whether the texts are words that are joined by spaces.
    """

    name: str
    kind: Kind
    labels: tuple[str, ...]
    splits: Mapping[str, tuple[Example, ...]]
    metric: str
    positive: str = ""
    source: Mapping[str, str] = field(default_factory=dict)
    skipped: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    control: bool = False
    spaced: bool = False

    @property
    def facts(self) -> Facts:
        """The name, the kind, the labels and the metric of the task, and the number of examples in each split."""
        sizes = {split: len(examples) for split, examples in self.splits.items()}
        return {"name": self.name, "kind": self.kind, "labels": self.labels, "metric": self.metric, **sizes}

    @property
    def text(self) -> str:
        """The form in which a model reads the examples: ``spaced`` for words joined by spaces, or ``written``."""
        return SPACED if self.spaced or self.kind == "tagging" else WRITTEN
