"""Training, validation and test: what is held out, how much is trained on, and that their labels are the same."""

import hashlib
import random
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

from headscope.errors import CorpusError, HeadscopeError
from headscope.learn.task import SPLITS, TEST, TRAIN, VALIDATION, Example, Task

SHARE = 0.15
"""Of the training examples, held out for validation where a corpus has no split for that."""

TEST_SHARE = 0.2
"""Of all examples, where a corpus has no splits at all."""

MOST = 1000
"""Held out from a large corpus, so that scoring an epoch stays cheap beside training it."""

FEWEST_GROUPS = 5
"""Texts that a corpus must have for whole texts to be held out; below that, whole sentences are."""


def held_out(
    examples: Sequence[Example], share: float = SHARE, most: int = MOST
) -> tuple[tuple[Example, ...], tuple[Example, ...]]:
    """The examples that stay, and those that are held out, both in their order.

    Whole groups are held out; those whose names differ in case and punctuation alone are one, since the name of a
    group is often its text. Their order is that of a hash of their names, so it is the same for all seeds and
    does not depend on the order of the file. A group is held out if that brings the number of examples nearer to
    the share; if that holds of none, the smallest is.

    Args:
        examples: of which some are held out.
        share: of the examples.
        most: hold out no more than about so many.

    Raises:
        CorpusError: the examples are one group or none.
    """
    named: dict[str, str] = {}
    for name in sorted({example.group or example.name for example in examples}):
        named.setdefault(plain(name) or name, name)
    of = [named[plain(name) or name] for name in (example.group or example.name for example in examples)]
    sizes = Counter(of)
    if len(sizes) < 2:
        raise CorpusError(
            f"{examples[0].name if examples else 'the corpus'} is the only text there is, and none can be held out; "
            "give a split of its own for validation and one for test, or a larger corpus."
        )
    wanted, count, chosen = min(share * len(examples), most), 0, set()
    order = sorted(sizes, key=lambda group: hashlib.sha256(group.encode()).digest())
    for group in order:
        if abs(count + sizes[group] - wanted) < abs(count - wanted):
            chosen.add(group)
            count += sizes[group]
    chosen = chosen or {min(order, key=sizes.__getitem__)}
    apart: tuple[list[Example], list[Example]] = ([], [])
    for example, group in zip(examples, of, strict=True):
        apart[group in chosen].append(example)
    return tuple(apart[0]), tuple(apart[1])


def plain(text: str) -> str:
    """A text in small letters and without punctuation, by which near duplicates are told."""
    return " ".join("".join(map(_kept, text.casefold())).split())


@cache
def _kept(character: str) -> str:
    """Letters, marks and numbers as they are; else a space."""
    return character if unicodedata.category(character)[0] in "LMN" else " "


def completed(splits: Mapping[str, Sequence[Example]]) -> tuple[dict[str, tuple[Example, ...]], tuple[str, ...]]:
    """All three splits, and what was decided.

    Without a test, the validation examples are the test, or a fifth of all examples where there are none of these
    either. Without a validation, it is held out of the training examples.
    """
    found = {split: tuple(examples) for split, examples in splits.items() if examples}
    notes = []
    if TEST not in found and VALIDATION in found:
        found[TEST] = found.pop(VALIDATION)
        notes.append(f"test is the {len(found[TEST]):,} examples of validation, since none of test have labels")
    if TEST not in found:
        every = found.get(TRAIN, ())
        found[TRAIN], found[TEST] = held_out(every, TEST_SHARE, len(every))
        notes.append(f"test is {len(found[TEST]):,} of {len(every):,} examples, chosen by a fixed hash")
    if VALIDATION not in found:
        every = found.get(TRAIN, ())
        found[TRAIN], found[VALIDATION] = held_out(every)
        notes.append(
            f"validation is {len(found[VALIDATION]):,} of {len(every):,} examples for training, chosen by a fixed hash"
        )
    return found, tuple(notes)


def without_validation(task: Task) -> Task:
    """The task with its validation examples among those trained on.

    Zhao and Bethard 2020 (section 5.2) train on all that is not test, and choose the epoch on the test examples. A
    control is to be made of what this returns, since its labels are those of the training vocabulary.
    """
    train, validation, test = (task.splits.get(split, ()) for split in SPLITS)
    if not validation:
        return task
    note = f"trained on all {len(train) + len(validation):,} examples that are not test; none is held out"
    return replace(
        task, splits={TRAIN: (*train, *validation), VALIDATION: (), TEST: test}, notes=(*task.notes, note)
    )  # fmt: skip


def at_most(task: Task, most: int) -> Task:
    """The task with a random sample of its training examples, the same each time; the rest is counted.

    Args:
        task: any task; one that has no more examples is returned as it is.
        most: training examples, 1 or more.

    Raises:
        HeadscopeError: `most` is below 1.
    """
    if most < 1:
        raise HeadscopeError(f"a task of {most} training examples cannot be learnt; give 1 or more.")
    examples = task.splits.get(TRAIN, ())
    if len(examples) <= most:
        return task
    chosen = sorted(random.Random(0).sample(range(len(examples)), most))
    skipped = {**task.skipped, f"training examples beyond a sample of {most}": len(examples) - most}
    return replace(task, splits={**task.splits, TRAIN: tuple(examples[i] for i in chosen)}, skipped=skipped)


def labels_of(example: Example) -> tuple[str, ...]:
    """The labels that an example has, of the whole or of its words."""
    if isinstance(example.label, str):
        return (example.label,)
    return tuple(tag for tag in example.tags if tag is not None)


def checked(task: Task) -> Task:
    """The task, if each split has examples and they have the same labels.

    In a tagging task, a label of the training words may be missing elsewhere, since some are rare. Examples whose
    text is also trained on are left where the corpus has them, and a note says how many they are.

    Raises:
        CorpusError: a split is empty, or a label is in one and not in another.
    """
    for split in SPLITS:
        if not task.splits.get(split):
            raise CorpusError(f"the task {task.name} has no examples for {split}; give it some, or a larger corpus.")
    task = replace(task, notes=(*task.notes, *_known(task)))
    if task.kind == "regression":
        return task
    first: dict[str, dict[str, str]] = {split: {} for split in SPLITS}
    for split in SPLITS:
        for example in task.splits[split]:
            for label in labels_of(example):
                first[split].setdefault(label, example.name)
    for split in (VALIDATION, TEST):
        for one, other in ((split, TRAIN), (TRAIN, split)):
            if task.kind == "tagging" and one == TRAIN:
                continue
            for label, name in first[one].items():
                if label not in first[other]:
                    raise CorpusError(
                        f"the task {task.name} has the label {label!r} in {one} (first in {name}) and not in {other}, "
                        f"which has {_listed(first[other])}; all splits want the same labels: correct it, or deal the "
                        "examples anew."
                    )
    if len(first[TRAIN]) < 2:
        raise CorpusError(
            f"the task {task.name} has one label only, {next(iter(first[TRAIN]), 'none')!r}; there is nothing to learn "
            "with fewer than two: check the column of the labels."
        )
    return task


def _known(task: Task) -> list[str]:
    """How many examples have a text that is trained on, where there are such."""
    trained, notes = {_text(one) for one in task.splits[TRAIN]}, []
    for split in (VALIDATION, TEST):
        count = sum(_text(one) in trained for one in task.splits[split])
        if count:
            notes.append(
                f"{count:,} of the {len(task.splits[split]):,} examples of {split} have the same text as one that is "
                "trained on, but for case and punctuation"
            )
    return notes


def _text(example: Example) -> tuple[str, ...]:
    texts = example.texts or (" ".join(example.words),)
    return tuple(plain(text) or text for text in texts)


def _listed(labels: dict[str, str], most: int = 7) -> str:
    shown = ", ".join(map(repr, sorted(labels)[:most]))
    return f"{shown} and {len(labels) - most} more" if len(labels) > most else shown or "none"
