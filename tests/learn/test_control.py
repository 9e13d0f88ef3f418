"""Controls: arbitrary labels that are the task's by distribution, and can only be learned by heart."""

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from scipy.stats import chi2_contingency

from headscope.errors import HeadscopeError
from headscope.learn.control import NOTHING_SEEN, UNSEEN, make_control
from headscope.learn.task import SPLITS, Example, Task

LABELS = ("a", "b", "c")
WEIGHTS = (0.6, 0.3, 0.1)


def tagging(sentences: int = 211, types: int = 307, seed: int = 0) -> Task:
    """Words that are as unequally frequent as those of a language."""
    rng = Random(seed)
    frequent = [1 / (place + 1) for place in range(types)]

    def make_example(split: str, number: int) -> Example:
        words = rng.choices([f"w{place}" for place in range(types)], frequent, k=11)
        tags = [*rng.choices(LABELS, WEIGHTS, k=11)]
        return Example(f"{split}:{number}", words=("{", *words, "}"), tags=(None, *tags, None))

    sizes = {"train": sentences, "validation": 31, "test": 37}
    splits = {split: tuple(make_example(split, number) for number in range(sizes[split])) for split in SPLITS}
    return Task("tags", "tagging", LABELS, splits, metric="f1", positive="a", skipped={"longer texts": 3})


def texts(kind: str = "classification") -> Task:
    rng = Random(1)

    def example(split: str, number: int) -> Example:
        label = rng.choices(LABELS, WEIGHTS)[0] if kind == "classification" else rng.random()
        return Example(f"{split}:{number}", texts=(f"{split} {number % 97}", "?"), label=label)

    sizes = {"train": 101, "validation": 13, "test": 17}
    splits = {split: tuple(example(split, number) for number in range(sizes[split])) for split in SPLITS}
    labels = LABELS if kind == "classification" else ()
    return Task("whole", kind, labels, splits, metric="matthews" if labels else "pearson", positive="a")


def tokens(task: Task, split: str = "train") -> list[tuple[str, str]]:
    return [
        (w, t)
        for example in task.splits[split]
        for w, t in zip(example.words, example.tags, strict=True)
        if t is not None
    ]


def test_a_word_type_has_one_label_in_all_splits_whatever_its_case():
    task = tagging()
    louder = {
        split: tuple(
            Example(
                example.name,
                words=tuple(w.upper() if i % 2 else w for i, w in enumerate(example.words)),
                tags=example.tags,
            )
            for example in examples
        )
        for split, examples in task.splits.items()
    }
    control = make_control(Task("tags", "tagging", LABELS, louder, metric="f1"))
    label_of: dict[str, str] = {}
    for split in SPLITS:
        for word, tag in tokens(control, split):
            assert label_of.setdefault(word.casefold(), tag) == tag
    assert set(label_of.values()) == set(LABELS)
    assert {word for word, _ in tokens(control)} >= {"W0", "w0"}


@pytest.mark.parametrize("seed", range(5))
def test_training_tokens_have_the_tasks_distribution(seed):
    task = tagging(seed=seed)
    wanted, assigned = (Counter(tag for _, tag in tokens(variant)) for variant in (task, make_control(task, seed=seed)))
    assert sum(assigned.values()) == sum(wanted.values())
    assert all(abs(assigned[label] - wanted[label]) <= 3 for label in LABELS)


def test_labels_of_types_tell_nothing_of_the_tasks_labels():
    """Over many controls, what a type is labelled is independent of what it is tagged most in the task."""
    task = tagging(types=53)
    tags: dict[str, Counter] = {}
    for word, tag in tokens(task):
        tags.setdefault(word, Counter())[tag] += 1
    rare = [word for word in tags if sum(tags[word].values()) < 30]
    table = Counter()
    for seed in range(41):
        label_of = dict(tokens(make_control(task, seed=seed)))
        table.update((tags[word].most_common(1)[0][0] == "a", label_of[word]) for word in rare)
    counts = [[table[mostly_a, label] for label in LABELS] for mostly_a in (True, False)]
    assert min(map(min, counts)) > 10
    assert chi2_contingency(counts).pvalue > 0.01


def test_the_same_seed_gives_the_same_labels_and_another_seed_others():
    task = tagging()
    assert make_control(task) == make_control(task)
    assert tokens(make_control(task)) != tokens(make_control(task, seed=1))
    backwards = Task(
        "tags", "tagging", LABELS, {**task.splits, "train": task.splits["train"][::-1]}, metric="f1", positive="a"
    )
    assert dict(tokens(make_control(backwards))) == dict(tokens(make_control(task)))


def test_braces_stay_untagged_and_unseen_words_are_counted():
    train = (Example("1", words=("{", "Not", "}", "a"), tags=(None, "a", None, "b")),)
    rest = (
        Example("2", words=("not", "new", "{"), tags=("b", "b", None)),
        Example("3", words=("{", "newer", "newest"), tags=(None, "a", "b")),
    )
    task = Task("t", "tagging", ("a", "b"), {"train": train, "validation": rest, "test": rest[:1]}, metric="f1")
    control = make_control(task)
    ((brace, cue, other, word),) = [example.tags for example in control.splits["train"]]
    assert (brace, other) == (None, None)
    assert {cue, word} == {"a", "b"}
    assert [example.tags for example in control.splits["validation"]] == [(cue, None, None)]
    assert control.skipped == {UNSEEN: 4, NOTHING_SEEN: 1}


def test_a_split_without_a_word_of_training_is_refused():
    task = tagging()
    strange = tuple(
        replace(example, words=tuple(f"x{word}" for word in example.words)) for example in task.splits["test"]
    )
    with pytest.raises(HeadscopeError) as refused:
        make_control(replace(task, splits={**task.splits, "test": strange}))
    assert str(refused.value) == (
        "the control of tags has nothing to tag in test, since none of its words are in train; give splits of the "
        "same kind of text."
    )


def test_a_control_is_told_from_its_task_and_scored_by_accuracy():
    task, control = tagging(), make_control(tagging())
    assert (control.control, control.metric, control.positive) == (True, "accuracy", "")
    assert (control.name, control.labels, control.kind, control.source) == (
        task.name, task.labels, task.kind, task.source,
    )  # fmt: skip
    assert control.skipped.items() >= task.skipped.items()
    with pytest.raises(
        HeadscopeError,
        match=(
            r"^the task tags is a control already; make the control from the task "
            r"itself.$"
        ),
    ):
        make_control(control)


@pytest.mark.parametrize("kind", ["classification", "regression"])
def test_a_text_has_one_label_and_all_splits_are_of_training_texts(kind):
    task = texts(kind)
    control = make_control(task)
    label_of: dict[tuple[str, ...], object] = {}
    for split in SPLITS:
        for example in control.splits[split]:
            assert label_of.setdefault(example.texts, example.label) == example.label
    train = {example.texts for example in task.splits["train"]}
    assert set(label_of) == train
    assert len(train) == 97
    assert [len(control.splits[split]) for split in SPLITS] == [101, 13, 17]
    assert control.metric == ("accuracy" if kind == "classification" else "pearson")
    first = {example.texts: example.label for example in reversed(task.splits["train"])}
    assert Counter(label_of.values()) == Counter(first.values())
    assert label_of != first


def test_there_are_no_more_validation_texts_than_distinct_training_texts():
    task = texts()
    few = Task("few", "classification", LABELS, {**task.splits, "train": task.splits["train"][:7]}, metric="accuracy")
    assert [len(make_control(few).splits[split]) for split in SPLITS] == [7, 7, 7]
