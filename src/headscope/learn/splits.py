"""Training, validation and test splits: held-out groups, samples, and the check that all have the same labels."""

import hashlib
import random
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from headscope.errors import CorpusError, list_some
from headscope.learn.task import SPLITS, TEST, TRAIN, VALIDATION, Example, Task

SHARE = 0.15
"""The share of training examples that is held out for validation if a corpus has no validation split."""

TEST_SHARE = 0.2
"""The share of all examples that becomes the test split if a corpus has neither a test nor a validation split."""

MAX_HELD_OUT = 1000
"""The maximum number of examples that are held out for validation, so that scoring is cheap next to training."""

FEWEST_GROUPS = 5
"""The minimum number of texts for holding out whole texts; with fewer, whole sentences are held out."""


def hold_out(
    examples: Sequence[Example], share: float = SHARE, max_examples: int = MAX_HELD_OUT, *, staying: int = 1
) -> tuple[tuple[Example, ...], tuple[Example, ...]]:
    """Divide examples into a part that stays and a part that is held out; both keep the order of the examples.

    Whole groups are held out. Groups whose names differ only in case and punctuation are one group, since the name of a
    group is often its text. Groups are taken in the order of a hash of their names, which is the same for all seeds and
    does not depend on the order of the file. A group is held out if that brings the number of examples closer to the
    share, or to `max_examples`; if no group does, the smallest is held out. If only one part would have a label of
    whole examples, which may happen to a rare label, a group with this label changes sides.

    Args:
        examples: The examples with their labels and groups.
        share: The share of the examples that is held out.
        max_examples: The maximum number of examples that are held out.
        staying: The number of groups with a label that stay, if there are more: 2 if the rest is divided again.

    Raises:
        CorpusError: There is only one group, or none.
    """
    first_names: dict[str, str] = {}
    for name in sorted({example.group or example.name for example in examples}):
        first_names.setdefault(normalize(name) or name, name)
    names = (example.group or example.name for example in examples)
    group_names = [first_names[normalize(name) or name] for name in names]
    sizes = Counter(group_names)
    if len(sizes) < 2:
        raise CorpusError(
            f"{examples[0].name if examples else 'the corpus'} is the only text, and none can be held out; give "
            "separate splits for validation and test, or a larger corpus."
        )
    wanted_size, count, chosen = min(share * len(examples), max_examples), 0, set()
    order = sorted(sizes, key=lambda group: hashlib.sha256(group.encode()).digest())
    for group in order:
        if abs(count + sizes[group] - wanted_size) < abs(count - wanted_size):
            chosen.add(group)
            count += sizes[group]
    chosen = chosen or {min(order, key=sizes.__getitem__)}
    chosen = _share_labels(chosen, _find_groups_of_labels(examples, group_names, order), staying)
    parts: tuple[list[Example], list[Example]] = ([], [])
    for example, group in zip(examples, group_names, strict=True):
        parts[group in chosen].append(example)
    return tuple(parts[0]), tuple(parts[1])


def _find_groups_of_labels(
    examples: Sequence[Example], group_names: Sequence[str], order: Sequence[str]
) -> dict[str, list[str]]:
    """Return the groups that have each label of whole examples, in the given order of groups."""
    labels: dict[str, set[str]] = {}
    for example, group in zip(examples, group_names, strict=True):
        if isinstance(example.label, str) and not example.tags:
            labels.setdefault(example.label, set()).add(group)
    return {label: [group for group in order if group in labels[label]] for label in sorted(labels)}


def _share_labels(held_out: set[str], groups_of: Mapping[str, Sequence[str]], staying: int) -> set[str]:
    """Return the held-out groups, changed so that both parts have each label, if enough groups have the label."""
    held_out = {*held_out}
    for groups in groups_of.values():
        inside = [group for group in groups if group in held_out]
        if len(groups) <= staying:
            continue
        if not inside:
            held_out.add(groups[0])
        elif len(groups) - len(inside) < staying:
            held_out -= {*inside[len(groups) - staying :]}
    return held_out


def normalize(text: str) -> str:
    """Return a text in lower case and without punctuation, so that near-duplicates become equal."""
    folded = text.casefold()
    # These are all characters except letters, marks and numbers.
    separators = {ord(character): " " for character in set(folded) if unicodedata.category(character)[0] not in "LMN"}
    return " ".join(folded.translate(separators).split())


def complete_splits(splits: Mapping[str, Sequence[Example]]) -> tuple[dict[str, tuple[Example, ...]], tuple[str, ...]]:
    """Return all three splits, and notes on how missing splits were made.

    Without a test split, the validation examples become the test, or a fifth of all examples if there is no validation
    split either. A missing validation split is held out of the training examples.
    """
    complete = {split: tuple(examples) for split, examples in splits.items() if examples}
    notes = []
    if TEST not in complete and VALIDATION in complete:
        complete[TEST] = complete.pop(VALIDATION)
        notes.append(f"test is the {len(complete[TEST]):,} examples of validation, since there is no test with labels")
    if TEST not in complete:
        examples = complete.get(TRAIN, ())
        complete[TRAIN], complete[TEST] = hold_out(examples, TEST_SHARE, len(examples), staying=2)
        notes.append(f"test is {len(complete[TEST]):,} of {len(examples):,} examples, chosen by a fixed hash")
    if VALIDATION not in complete:
        examples = complete.get(TRAIN, ())
        complete[TRAIN], complete[VALIDATION] = hold_out(examples)
        notes.append(
            f"validation is {len(complete[VALIDATION]):,} of {len(examples):,} training examples, chosen by a fixed "
            "hash"
        )
    return complete, tuple(notes)


def merge_validation(task: Task) -> Task:
    """Return a task whose validation examples are moved to its training examples.

    Zhao and Bethard 2020 (section 5.2) train on all examples that are not test, and choose the epoch on the test
    examples. Make a control from the returned task and not before, since its labels are those of the training
    vocabulary.
    """
    train, validation, test = (task.splits.get(split, ()) for split in SPLITS)
    if not validation:
        return task
    note = f"trained on all {len(train) + len(validation):,} examples that are not test; none is held out"
    splits = {TRAIN: (*train, *validation), VALIDATION: (), TEST: test}
    return replace(task, splits=splits, notes=(*task.notes, note))


def sample_training(task: Task, max_examples: int) -> Task:
    """Return a task with a random sample of its training examples, the same sample each time.

    The other examples are counted as skipped. A task with at most `max_examples` examples is returned unchanged.
    """
    examples = task.splits.get(TRAIN, ())
    if len(examples) <= max_examples:
        return task
    chosen = sorted(random.Random(0).sample(range(len(examples)), max_examples))
    skipped = {**task.skipped, f"training examples beyond a sample of {max_examples}": len(examples) - max_examples}
    return replace(task, splits={**task.splits, TRAIN: tuple(examples[i] for i in chosen)}, skipped=skipped)


def find_labels(examples: Iterable[Example]) -> dict[str, str]:
    """Map each label of examples, or of their words, to the name of the first example that has it."""
    names: dict[str, str] = {}
    for example in examples:
        for label in example.tags or (example.label,):
            if isinstance(label, str):
                names.setdefault(label, example.name)
    return names


def check_splits(task: Task) -> Task:
    """Check the splits of a task, and return the task with notes on texts that are also training texts.

    In a tagging task, validation and test may lack a label of the training words, since some labels are rare. Examples
    whose text is also a training text stay in their split.

    Raises:
        CorpusError: A split is empty, a label is missing in one of the splits, or the task has fewer than two labels.
    """
    for split in SPLITS:
        if not task.splits.get(split):
            raise CorpusError(f"the task {task.name} has no examples for {split}; give it some, or a larger corpus.")
    task = replace(task, notes=(*task.notes, *_count_known_texts(task)))
    if task.kind == "regression":
        return task
    first = {split: find_labels(task.splits[split]) for split in SPLITS}
    for split in (VALIDATION, TEST):
        for present, absent in ((split, TRAIN), (TRAIN, split)):
            if task.kind == "tagging" and present == TRAIN:
                continue
            for label, name in first[present].items():
                if label not in first[absent]:
                    known = list_some([*map(repr, sorted(first[absent]))], 7)
                    raise CorpusError(
                        f"the task {task.name} has the label {label!r} in {present} (first in {name}) and not in "
                        f"{absent}, which has {known or 'none'}; all splits need the same "
                        "labels: correct it, or split the examples again."
                    )
    if len(first[TRAIN]) < 2:
        raise CorpusError(
            f"the task {task.name} has one label only, {next(iter(first[TRAIN]), 'none')!r}, and needs two or more; "
            "check the column of the labels."
        )
    return task


def _count_known_texts(task: Task) -> list[str]:
    """Return a note for each split with examples whose text is also a training text."""
    trained, notes = {_normalize_texts(example) for example in task.splits[TRAIN]}, []
    for split in (VALIDATION, TEST):
        count = sum(_normalize_texts(example) in trained for example in task.splits[split])
        if count:
            notes.append(
                f"{count:,} of the {len(task.splits[split]):,} examples of {split} have the text of a training "
                "example, apart from case and punctuation"
            )
    return notes


def _normalize_texts(example: Example) -> tuple[str, ...]:
    texts = example.texts or (" ".join(example.words),)
    return tuple(normalize(text) or text for text in texts)
