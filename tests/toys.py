"""Tasks that a tiny model learns in seconds: how a word is tagged, or a text is called, is told by its words."""

import random
from dataclasses import replace

import tiny
from headscope.learn.task import Example, Task

MARKED = ("dog", "cat", "old", "house", "red")
SIZES = {"train": 101, "validation": 11, "test": 13}

FAST = {"epochs": 3, "learning_rate": 2e-2, "batch_size": 3}
"""How to tune so that `tagging` is learnt."""


def tagging(**changes: object) -> Task:
    """Which words are not of `MARKED`; the first word of a text is not asked about."""
    splits = {split: tuple(_tagged(split, number) for number in range(size)) for split, size in SIZES.items()}
    return replace(Task("marks", "tagging", ("0", "1"), splits, "f1", "1", {"marks.tsv": "0" * 64}), **changes)


def classification(texts: int = 1, **changes: object) -> Task:
    """Whether a text, or the first of two, has few, some or many of `MARKED`."""
    splits = {split: tuple(_called(split, number, texts) for number in range(size)) for split, size in SIZES.items()}
    return replace(Task("amounts", "classification", ("few", "many", "some"), splits, "matthews"), **changes)


def regression(**changes: object) -> Task:
    """How many of `MARKED` a text has."""
    of = classification().splits
    splits = {
        split: tuple(
            replace(one, label=float(sum(word in MARKED for word in one.texts[0].split()))) for one in of[split]
        )
        for split in of
    }
    return replace(Task("count", "regression", (), splits, "pearson"), **changes)


def control(task: Task) -> Task:
    """The same inputs with tags that go by the length of a word."""
    splits = {
        split: tuple(
            replace(one, tags=tuple(tag and str(len(word) % 2) for word, tag in zip(one.words, one.tags, strict=True)))
            for one in examples
        )
        for split, examples in task.splits.items()
    }
    return replace(task, splits=splits, metric="accuracy", positive="", control=True)


def _tagged(split: str, number: int) -> Example:
    draw = random.Random(f"{split} {number}")
    words = tuple(draw.choices((*tiny.WHOLE, "naïve", "unseen"), k=draw.choice(tiny.LENGTHS[:3])))
    tags = ("0", *("0" if word in MARKED else "1" for word in words))
    return Example(f"{split}.tsv:{number}", words=("the", *words), tags=(None, *tags[1:]))


def _called(split: str, number: int, texts: int) -> Example:
    draw = random.Random(f"{split} {number}")
    said = [draw.choices(tiny.WHOLE, k=draw.choice((5, 7))) for _ in range(texts)]
    marked = sum(word in MARKED for word in said[0])
    label = "few" if marked < 3 else "some" if marked < 4 else "many"
    return Example(f"{split}.tsv:{number}", texts=tuple(map(" ".join, said)), label=label)
