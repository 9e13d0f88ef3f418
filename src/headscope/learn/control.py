"""The control of a task: the same inputs with arbitrary labels, which can only be learned by heart.

After Hewitt and Liang 2019 (section 2) and Zhao and Bethard 2020 (section 5.1). What a model scores on a task above
what it scores on the control is the task's *selectivity*.
"""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from headscope.errors import HeadscopeError
from headscope.learn.task import TEST, TRAIN, VALIDATION, Example, Task

UNSEEN = "words of validation and test that training does not have, which the control cannot tag"
NOTHING_SEEN = "examples of validation and test of which training has no word"


def control_of(task: Task, seed: int = 0) -> Task:
    """The task with arbitrary labels, the same for all runs.

    **Tagging.** Each word type of the training examples has one label wherever it stands. Upper and lower case are
    one type, since many models cannot tell them apart. The labels are drawn so that the training words, counted as
    often as they stand there, have the task's distribution: if types alone were drawn from it, whether ``the``
    happens to be in scope would change it by percents. Words of validation and test that are not in training have no
    tag and are counted, as in the paper, since no label of theirs could be known. What the task does not tag (the
    braces round a cue) is not tagged either.

    **Classification and regression.** The labels of the distinct texts (pairs of texts) of the training examples are
    assigned to these texts anew, so that the same text always has the same label. What a sentence was assigned cannot
    be known before it was seen. So validation and test are training examples, chosen at random, as many as the
    task has or as there are: the scores of this control say how well it is learned by heart, and no more.

    The score is accuracy, or Pearson's correlation where the labels are numbers.

    Args:
        task: whose inputs are used.
        seed: of the labels. It is no run's seed: all runs are tuned on one control.

    Raises:
        HeadscopeError: the task is a control, or none of the words of a split are in training.
    """
    if task.control:
        raise HeadscopeError(f"the task {task.name} is a control already; make one of the task itself.")
    rng = random.Random(seed)
    made = _of_words(task, rng) if task.kind == "tagging" else _of_texts(task, rng)
    return replace(made, metric="pearson" if task.kind == "regression" else "accuracy", positive="", control=True)


def _of_words(task: Task, rng: random.Random) -> Task:
    tagged = [(word.casefold(), tag) for one in task.splits[TRAIN] for word, tag in _tagged(one)]
    label_of = _dealt(Counter(word for word, _ in tagged), Counter(tag for _, tag in tagged), rng)
    skipped = Counter(task.skipped)
    splits: dict[str, tuple[Example, ...]] = {}
    for split, examples in task.splits.items():
        found: list[Example] = []
        for one in examples:
            tags = tuple(
                None if tag is None else label_of.get(word.casefold())
                for word, tag in zip(one.words, one.tags, strict=True)
            )
            unseen = sum(tag is not None for tag in one.tags) - sum(tag is not None for tag in tags)
            if unseen:
                skipped[UNSEEN] += unseen
            if any(tag is not None for tag in tags):
                found.append(replace(one, tags=tags))
            else:
                skipped[NOTHING_SEEN] += 1
        if examples and not found:
            raise HeadscopeError(
                f"the control of {task.name} has nothing to tag in {split}, since none of its words are in train; give "
                "splits of one kind of text."
            )
        splits[split] = tuple(found)
    note = f"each of the {len(label_of):,} word types of the training examples has one arbitrary label"
    return replace(task, splits=splits, skipped=dict(skipped), notes=(*task.notes, note))


def _tagged(example: Example) -> list[tuple[str, str]]:
    return [(word, tag) for word, tag in zip(example.words, example.tags, strict=True) if tag is not None]


def _dealt(words: Mapping[str, int], wanted: Mapping[str, int], rng: random.Random) -> dict[str, str]:
    """A label for each type, such that each label has about as many tokens as are wanted of it.

    The most frequent types are assigned first, so that the many rare ones even out what these leave.
    """
    order = sorted(words)
    rng.shuffle(order)
    order.sort(key=words.__getitem__, reverse=True)
    labels = sorted(wanted)
    room = [wanted[label] for label in labels]
    found: dict[str, str] = {}
    for word in order:
        weights = [left if left >= words[word] else 0 for left in room]
        (place,) = (
            rng.choices(range(len(labels)), weights) if any(weights) else [max(range(len(room)), key=room.__getitem__)]
        )
        room[place] -= words[word]
        found[word] = labels[place]
    return found


def _of_texts(task: Task, rng: random.Random) -> Task:
    first: dict[tuple[str, ...], str | float | None] = {}
    for one in task.splits[TRAIN]:
        first.setdefault(one.texts, one.label)
    texts, labels = list(first), list(first.values())
    rng.shuffle(labels)
    label_of = dict(zip(texts, labels, strict=True))
    train = tuple(replace(one, label=label_of[one.texts]) for one in task.splits[TRAIN])
    distinct = _distinct(train)
    splits = {TRAIN: train}
    for split in (VALIDATION, TEST):
        size = min(len(task.splits[split]), len(distinct))
        # In the order of the training examples.
        splits[split] = tuple(distinct[place] for place in sorted(rng.sample(range(len(distinct)), size)))
    note = (
        f"each of the {len(texts):,} distinct texts of the training examples has an arbitrary label; validation and "
        "test are training examples, since the label of a text that was never seen cannot be known"
    )
    return replace(task, splits=splits, notes=(*task.notes, note))


def _distinct(examples: Sequence[Example]) -> list[Example]:
    """The first example of each text."""
    return list({one.texts: one for one in reversed(examples)}.values())[::-1]
