"""Tasks that a tiny model learns in seconds: the tag of a word, or the label of a text, follows from its words."""

import random
from dataclasses import replace

import tiny
from headscope.learn.task import Example, Task
from headscope.learn.training_settings import Settings

MARKED = ("dog", "cat", "old", "house", "red")
SIZES = {"train": 101, "validation": 11, "test": 13}

FAST = Settings(epochs=4, learning_rate=7e-3, batch_size=3)
"""How to tune so that `tagging` is learnt."""


def tagging(**changes: object) -> Task:
    """Which words are not of `MARKED`; the first word of a text is not asked about."""
    splits = {split: tuple(_make_tagged(split, number) for number in range(size)) for split, size in SIZES.items()}
    return replace(Task("marks", "tagging", ("0", "1"), splits, "f1", "1", {"marks.tsv": "0" * 64}), **changes)


def classification(texts: int = 1, **changes: object) -> Task:
    """Whether a text, or the first of two, has few, some or many of `MARKED`."""
    splits = {
        split: tuple(_make_classified(split, number, texts) for number in range(size)) for split, size in SIZES.items()
    }
    return replace(Task("amounts", "classification", ("few", "many", "some"), splits, "matthews"), **changes)


def regression(**changes: object) -> Task:
    """The number of words of `MARKED` in a text."""

    def count(example: Example) -> float:
        return float(sum(word in MARKED for word in example.texts[0].split()))

    splits = {
        split: tuple(replace(example, label=count(example)) for example in examples)
        for split, examples in classification().splits.items()
    }
    return replace(Task("count", "regression", (), splits, "pearson"), **changes)


def control(task: Task) -> Task:
    """The same inputs with tags that go by the length of a word."""

    def relabel(example: Example) -> Example:
        pairs = zip(example.words, example.tags, strict=True)
        return replace(example, tags=tuple(tag and str(len(word) % 2) for word, tag in pairs))

    splits = {split: tuple(map(relabel, examples)) for split, examples in task.splits.items()}
    return replace(task, splits=splits, metric="accuracy", positive="", control=True)


def _make_tagged(split: str, number: int) -> Example:
    rng = random.Random(f"{split} {number}")
    words = tuple(rng.choices((*tiny.WHOLE, "naïve", "unseen"), k=rng.choice(tiny.LENGTHS[:3])))
    tags = ("0", *("0" if word in MARKED else "1" for word in words))
    return Example(f"{split}.tsv:{number}", words=("the", *words), tags=(None, *tags[1:]))


def _make_classified(split: str, number: int, texts: int) -> Example:
    rng = random.Random(f"{split} {number}")
    sides = [rng.choices(tiny.WHOLE, k=rng.choice((5, 7))) for _ in range(texts)]
    marked = sum(word in MARKED for word in sides[0])
    label = "few" if marked < 3 else "some" if marked < 4 else "many"
    return Example(f"{split}.tsv:{number}", texts=tuple(map(" ".join, sides)), label=label)
