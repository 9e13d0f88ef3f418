"""The control of a task: the same inputs with arbitrary labels, which a model can only memorise.

This follows Hewitt and Liang 2019 (section 2) and Zhao and Bethard 2020 (section 5.1). The score on a task less the
score on its control is the task's *selectivity*.
"""

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from headscope.errors import HeadscopeError
from headscope.learn.task import TEST, TRAIN, VALIDATION, Example, Task

UNSEEN = "words of validation and test that training does not have, which the control cannot tag"
NOTHING_SEEN = "examples of validation and test of which training has no word"


def make_control(task: Task, seed: int = 0) -> Task:
    """Return the control of a task: the same inputs with arbitrary labels, the same for all runs.

    **Tagging.** Each word type of the training examples has the same label wherever it occurs. Upper and lower case are
    one type, since many models cannot distinguish them. The labels are sampled so that the training *tokens* have the
    task's distribution of labels: if types were sampled from this distribution, the label of ``the`` alone would change
    it by percents. Words of validation and test that are not in training have no tag, since their label could not be
    known; they are counted, as in the paper. Words that the task does not tag (the braces around a cue) stay untagged.

    **Classification and regression.** The labels of the distinct texts (pairs of texts) of the training examples are
    permuted over these texts, so that the same text always has the same label. The label of an unseen text cannot be
    known. So validation and test are training examples, chosen at random, the same number as in the task if there are
    enough: the scores of this control measure only memorisation.

    The score is the accuracy, or Pearson's correlation if the labels are numbers.

    Args:
        task: The task whose inputs are used.
        seed: The seed of the arbitrary labels. It is not the seed of a run: all runs are tuned on the same control.

    Raises:
        HeadscopeError: The task is a control, or a split has no word that is in training.
    """
    if task.control:
        raise HeadscopeError(f"the task {task.name} is a control already; make the control from the task itself.")
    rng = random.Random(seed)
    control = _relabel_words(task, rng) if task.kind == "tagging" else _relabel_texts(task, rng)
    return replace(control, metric="pearson" if task.kind == "regression" else "accuracy", positive="", control=True)


def _relabel_words(task: Task, rng: random.Random) -> Task:
    words = [(word.casefold(), tag) for e in task.splits[TRAIN] for word, tag in zip(e.words, e.tags, strict=True)]
    tagged = [(word, tag) for word, tag in words if tag is not None]
    label_of = _assign_labels(Counter(word for word, _ in tagged), Counter(tag for _, tag in tagged), rng)
    skipped = Counter(task.skipped)
    splits: dict[str, tuple[Example, ...]] = {}
    for split, examples in task.splits.items():
        relabelled: list[Example] = []
        for example in examples:
            tags = tuple(
                None if tag is None else label_of.get(word.casefold())
                for word, tag in zip(example.words, example.tags, strict=True)
            )
            unseen = sum(tag is not None for tag in example.tags) - sum(tag is not None for tag in tags)
            if unseen:
                skipped[UNSEEN] += unseen
            if any(tag is not None for tag in tags):
                relabelled.append(replace(example, tags=tags))
            else:
                skipped[NOTHING_SEEN] += 1
        if examples and not relabelled:
            raise HeadscopeError(
                f"the control of {task.name} has nothing to tag in {split}, since none of its words are in train; give "
                "splits of the same kind of text."
            )
        splits[split] = tuple(relabelled)
    note = f"each of the {len(label_of):,} word types of the training examples has one arbitrary label"
    return replace(task, splits=splits, skipped=dict(skipped), notes=(*task.notes, note))


def _assign_labels(words: Mapping[str, int], wanted: Mapping[str, int], rng: random.Random) -> dict[str, str]:
    """Assign a label to each word type, so that each label gets about the wanted number of tokens.

    Frequent types are assigned first, so that the many rare types can fill the remaining room.

    Args:
        words: The number of tokens of each type.
        wanted: The number of tokens for each label.
        rng: The source of random numbers.
    """
    order = sorted(words)
    rng.shuffle(order)
    order.sort(key=words.__getitem__, reverse=True)
    labels = sorted(wanted)
    room = [wanted[label] for label in labels]
    assigned: dict[str, str] = {}
    for word in order:
        weights = [left if left >= words[word] else 0 for left in room]
        (place,) = (
            rng.choices(range(len(labels)), weights) if any(weights) else [max(range(len(room)), key=room.__getitem__)]
        )
        room[place] -= words[word]
        assigned[word] = labels[place]
    return assigned


def _relabel_texts(task: Task, rng: random.Random) -> Task:
    first_labels: dict[tuple[str, ...], str | float | None] = {}
    for example in task.splits[TRAIN]:
        first_labels.setdefault(example.texts, example.label)
    texts, labels = list(first_labels), list(first_labels.values())
    rng.shuffle(labels)
    label_of = dict(zip(texts, labels, strict=True))
    train = tuple(replace(example, label=label_of[example.texts]) for example in task.splits[TRAIN])
    # Keep the first example of each text.
    distinct = list({example.texts: example for example in reversed(train)}.values())[::-1]
    splits = {TRAIN: train}
    for split in (VALIDATION, TEST):
        size = min(len(task.splits[split]), len(distinct))
        # Keep the order of the training examples.
        splits[split] = tuple(distinct[place] for place in sorted(rng.sample(range(len(distinct)), size)))
    note = (
        f"each of the {len(texts):,} distinct texts of the training examples has an arbitrary label; validation and "
        "test are training examples, since the label of an unseen text cannot be known"
    )
    return replace(task, splits=splits, notes=(*task.notes, note))
