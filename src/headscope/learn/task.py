"""Tasks for fine-tuning: examples with labels, in three splits.

A reader (one file for each task) makes a `Task` of a corpus; `make_control` makes a control of a `Task`; a model is
tuned in the same way on both.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Literal

from headscope.corpora.document import Document
from headscope.corpora.written_text import join_texts, split_text
from headscope.text_forms import SPACED, WRITTEN

Kind = Literal["tagging", "classification", "regression"]

TRAIN, VALIDATION, TEST = "train", "validation", "test"
SPLITS = (TRAIN, VALIDATION, TEST)
"""In this order: the split that is trained on, that on which epochs are chosen, and that which is scored at the end."""


@dataclass(frozen=True)
class Example:
    """One input with its label.

    Attributes:
        name: its place in the corpus, for messages: ``corpus/train.tsv:7``.
        texts: one text or two; a tagging task has words instead.
        label: of the whole: one of the task's labels, or a number; none in a tagging task.
        words: of a tagging task, with the marks among them (the braces round a cue).
        tags: a label for each word; None for a word that is not tagged.
        group: its source (a sentence, a chapter): the examples of one group are in one split.
    """

    name: str
    texts: tuple[str, ...] = ()
    label: str | float | None = None
    words: tuple[str, ...] = ()
    tags: tuple[str | None, ...] = ()
    group: str = ""

    def to_document(self) -> Document:
        """Return the texts as a document without annotation, whose words are what white space parts."""
        words, texts = zip(*map(split_text, self.texts), strict=True)
        boundary = len(words[0]) if len(words) > 1 else None
        return Document(self.name, tuple(chain.from_iterable(words)), boundary=boundary, written=join_texts(texts))


@dataclass(frozen=True)
class Task:
    """A task for fine-tuning.

    Attributes:
        name: as the user gave it.
        kind: tagging (a label for each word), classification (one label) or regression (one number).
        labels: in a fixed order; none where the label is a number.
        splits: the examples of `SPLITS`.
        metric: the score by which an epoch is chosen: ``f1``, ``accuracy``, ``matthews`` or ``pearson``.
        positive: the label whose precision, recall and F1 are scored; empty where there is none.
        source: the files and their SHA-256.
        skipped: counts of skipped examples or words, by reason.
        notes: the choices of the reader, for the user: a sentence each, without its full stop.
        control: the labels are arbitrary.
        spaced: the texts are words that are joined by spaces.
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
    def text(self) -> str:
        """Return the form in which a model reads the examples; those of a tagging task have words and no text."""
        return SPACED if self.spaced or self.kind == "tagging" else WRITTEN
