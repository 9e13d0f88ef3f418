"""What a model is fine-tuned on: examples with labels, in three splits.

A reader (one file a task) turns a corpus into a `Task`; a `Task` turns into its control; both are tuned on alike.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["tagging", "classification", "regression"]

TRAIN, VALIDATION, TEST = "train", "validation", "test"
SPLITS = (TRAIN, VALIDATION, TEST)
"""Trained on; epochs are chosen on; never looked at before the end."""


@dataclass(frozen=True)
class Example:
    """One input with its label.

    Attributes:
        name: where it comes from, for messages: ``corpus/train.tsv:7``.
        texts: one text or two; the text of a tagging task is its words.
        label: of the whole: one of the task's labels, or a number; none in a tagging task.
        words: of a tagging task, with what marks a place among them (the braces round a cue).
        tags: a label for each word; none where a word is not to be tagged.
        group: what it was taken from (a sentence, a chapter): the examples of one group are in one split.
    """

    name: str
    texts: tuple[str, ...] = ()
    label: str | float | None = None
    words: tuple[str, ...] = ()
    tags: tuple[str | None, ...] = ()
    group: str = ""


@dataclass(frozen=True)
class Task:
    """What a model is fine-tuned on.

    Attributes:
        name: as the user calls it.
        kind: a label for each word, a label for the whole, or a number for the whole.
        labels: in a fixed order; none where the label is a number.
        splits: the examples of `SPLITS`.
        metric: the score by which an epoch is chosen: ``f1``, ``accuracy``, ``matthews`` or ``pearson``.
        positive: the label that precision, recall and F1 are of; empty where there is none.
        source: the files and their SHA-256.
        skipped: what was left out, by reason.
        notes: what the reader decided, to be told: a sentence each, without its full stop.
        control: the labels are arbitrary.
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
