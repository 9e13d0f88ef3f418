"""What is held out, and which splits are refused."""

from dataclasses import replace

import pytest

from headscope.errors import CorpusError
from headscope.learn.splits import check_splits, complete_splits, hold_out, merge_validation, normalize
from headscope.learn.task import SPLITS, Example, Task


def examples(count: int, groups: int, label: str = "ab") -> tuple[Example, ...]:
    return tuple(
        Example(f"file:{i}", texts=(f"t{i}",), label=label[i % len(label)], group=f"g{i % groups}")
        for i in range(count)
    )


def make_task(train: str, validation: str, test: str, kind: str = "classification") -> Task:
    def make_example(split: str, place: int, label: str) -> Example:
        if kind == "tagging":
            return Example(f"{split}.tsv:{place}", words=("w",), tags=(label,))
        return Example(f"{split}.tsv:{place}", texts=("t",), label=label)

    splits = {
        split: tuple(make_example(split, place, label) for place, label in enumerate(labels, start=1))
        for split, labels in zip(SPLITS, (train, validation, test), strict=True)
    }
    return Task("own", kind, tuple(sorted({*train, *validation, *test})), splits, metric="accuracy")


@pytest.mark.parametrize(("count", "groups"), [(307, 307), (307, 53), (307, 7), (31, 31)])
def test_the_share_is_met_within_half_a_group_and_no_group_is_divided(count, groups):
    every = examples(count, groups)
    stay, held = hold_out(every, 0.15)
    assert sorted((*stay, *held), key=every.index) == list(every)
    assert not {example.group for example in stay} & {example.group for example in held}
    assert abs(len(held) - 0.15 * count) <= count / groups / 2 + 1
    assert [every.index(example) for example in held] == sorted(every.index(example) for example in held)


@pytest.mark.parametrize("rare", [2, 3, 5])
@pytest.mark.parametrize("corpus", range(40))
def test_a_rare_label_is_in_both_parts(corpus: int, rare: int) -> None:
    labels = ["rare"] * rare + ["common"] * (300 - rare)
    every = [Example(f"{corpus}:{i}", texts=(f"t{i}",), label=label) for i, label in enumerate(labels)]
    stay, held = hold_out(every)
    assert {example.label for example in stay} == {example.label for example in held} == {"rare", "common"}
    assert len(held) == pytest.approx(45, abs=1)
    if rare > 2:
        complete, _ = complete_splits({"train": every})
        check_splits(Task("own", "classification", ("common", "rare"), complete, metric="accuracy"))


def test_where_both_parts_have_all_labels_or_cannot_nothing_changes_sides() -> None:
    every = [Example("alone", texts=("t",), label="alone"), *examples(100, 100)]
    numbers = [replace(example, label=1.0) for example in every]  # of a regression
    parts, wanted = ([{example.name for example in part} for part in hold_out(each)] for each in (every, numbers))
    assert parts == wanted


def test_no_more_are_held_out_than_are_wanted_of_a_large_corpus():
    assert len(hold_out(examples(307, 307), 0.5, 23)[1]) == 23


def test_where_all_texts_are_large_the_smallest_is_held_out():
    every = (*examples(11, 1), *(Example(f"x:{i}", group="small") for i in range(5)))
    assert {example.group for example in hold_out(every, 0.1)[1]} == {"small"}


def test_texts_that_differ_in_case_and_punctuation_are_held_out_together():
    texts = [f"{'The' if again else 'the'} word{i} {'!' * again}" for i in range(97) for again in range(2)]
    every = tuple(Example(f"file:{i}", texts=(text,), group=text) for i, text in enumerate(texts))
    stay, held = hold_out(every, 0.2)
    numbers = [{example.texts[0].split()[1] for example in part} for part in (stay, held)]
    assert not numbers[0] & numbers[1]
    assert len(held) == pytest.approx(0.2 * len(every), abs=2)
    assert normalize("Don't -- DO\tthat: ß 2.5 किताब") == "don t do that ss 2 5 किताब"


def test_texts_that_are_trained_on_are_counted_in_other_splits():
    def make_example(words: str, group: str) -> Example:
        return Example(group, words=tuple(words.split()), tags=("a", "b", *[None] * (len(words.split()) - 2)))

    splits = {
        "train": (make_example("{ No } .", "1"), make_example("I know .", "2"), make_example("— —", "3")),
        "validation": (make_example("we do", "4"),),
        "test": (
            make_example("no !", "5"),
            make_example("NO { } .", "6"),
            make_example("i know not", "7"),
            make_example("… …", "8"),
        ),
    }
    task = check_splits(Task("own", "tagging", ("a", "b"), splits, metric="accuracy", notes=("assigned by hand",)))
    assert task.notes == (
        "assigned by hand",
        "2 of the 4 examples of test have the text of a training example, apart from case and punctuation",
    )
    assert task.splits == splits


def test_examples_without_a_group_are_groups_of_their_own():
    stay, held = hold_out([Example(f"file:{i}") for i in range(20)], 0.25)
    assert (len(stay), len(held)) == (15, 5)


@pytest.mark.parametrize(("every", "what"), [((), "the corpus"), (examples(5, 1), "file:0")])
def test_one_group_cannot_be_divided(every, what):
    with pytest.raises(CorpusError) as caught:
        hold_out(every)
    assert str(caught.value) == (
        f"{what} is the only text, and none can be held out; give separate splits for validation and test, or a "
        "larger corpus."
    )


def test_what_is_missing_is_held_out_and_told():
    every = examples(101, 101)
    alone, notes = complete_splits({"train": every})
    assert [len(alone[split]) for split in SPLITS] == [69, 12, 20]
    assert notes == (
        "test is 20 of 101 examples, chosen by a fixed hash",
        "validation is 12 of 81 training examples, chosen by a fixed hash",
    )
    unlabelled, notes = complete_splits({"train": every, "validation": examples(7, 7), "test": ()})
    assert [len(unlabelled[split]) for split in SPLITS] == [86, 15, 7]
    assert notes[0] == "test is the 7 examples of validation, since there is no test with labels"
    whole = {split: examples(3, 3) for split in SPLITS}
    assert complete_splits(whole) == (whole, ())


def test_without_validation_all_that_is_not_test_is_trained_on():
    task = merge_validation(make_task("aab", "ab", "ba"))
    assert [len(task.splits[split]) for split in SPLITS] == [5, 0, 2]
    assert task.notes == ("trained on all 5 examples that are not test; none is held out",)


REFUSED = {
    "a label that training lacks": (
        ("ab", "ba", "abc"),
        "classification",
        "the task own has the label 'c' in test (first in test.tsv:3) and not in train, which has 'a', 'b'; all "
        "splits need the same labels: correct it, or split the examples again.",
    ),
    "a label of training that another split lacks": (
        ("abc", "ab", "abc"),
        "classification",
        "the task own has the label 'c' in train (first in train.tsv:3) and not in validation, which has 'a', 'b'; "
        "all splits need the same labels: correct it, or split the examples again.",
    ),
    "a tag that training lacks": (
        ("ab", "cab", "ab"),
        "tagging",
        "the task own has the label 'c' in validation (first in validation.tsv:1) and not in train, which has 'a', "
        "'b'; all splits need the same labels: correct it, or split the examples again.",
    ),
    "many labels": (
        ("abcdefghi", "abcdefghi", "abcdefghij"),
        "classification",
        "the task own has the label 'j' in test (first in test.tsv:10) and not in train, which has 'a', 'b', 'c', 'd', "
        "'e', 'f', 'g' and 2 more; all splits need the same labels: correct it, or split the examples again.",
    ),
    "one label": (
        ("aa", "a", "a"),
        "classification",
        "the task own has one label only, 'a', and needs two or more; check the column of the labels.",
    ),
    "an empty split": (
        ("ab", "", "ab"),
        "classification",
        "the task own has no examples for validation; give it some, or a larger corpus.",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_splits_that_do_not_fit_are_refused(case):
    splits, kind, sentence = REFUSED[case]
    with pytest.raises(CorpusError) as caught:
        check_splits(make_task(*splits, kind=kind))
    assert str(caught.value) == sentence


def test_a_rare_tag_may_be_missing_where_it_is_not_learned():
    task = make_task("abc", "ab", "ba", kind="tagging")
    assert check_splits(task).splits == task.splits
