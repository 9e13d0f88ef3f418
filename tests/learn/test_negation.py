"""Negation as a task: where the braces stand, what is tagged, and which negations are in which split."""

import json
from collections import Counter
from pathlib import Path

import pytest

from headscope.errors import CorpusError
from headscope.learn.control import UNSEEN, make_control
from headscope.learn.negation import AFFIXAL, WITHOUT_CUE, read_negation
from headscope.learn.splits import merge_validation
from headscope.learn.task import SPLITS, Example, Task


def sentence(words: str, *negations: tuple[list[int], list[int]], kind: str = "cue", group: str = "") -> str:
    """A line of a corpus of one's own: its negations are the words of a cue and those of a scope."""
    spans = []
    for label, (cue, scope) in enumerate(negations, start=1):
        for span_kind, places in ((kind, cue), ("scope", scope)):
            spans += [{"start": i, "end": i + 1, "label": str(label), "kind": span_kind} for i in places]
    return json.dumps({"words": words.split(), "spans": spans, "group": group or words})


@pytest.fixture
def corpus(tmp_path: Path):
    path = tmp_path / "own.jsonl"

    def write(*lines: str) -> Path:
        path.write_text("\n".join(lines) + "\n")
        return path

    return write


def all_examples(task: Task) -> list[Example]:
    return [example for split in SPLITS for example in task.splits[split]]


def shown(example: Example) -> str:
    tagged = zip(example.words, example.tags, strict=True)
    return " ".join(word if tag is None else f"{word}/{tag}" for word, tag in tagged)


def test_braces_stand_round_each_stretch_of_the_cue_and_have_no_tag(corpus):
    path = corpus(
        sentence("he did not come .", ([2], [0, 1, 3])),
        sentence("neither man nor beast slept", ([0, 2], [1, 3, 4])),
        sentence("by no means never", ([0, 1, 2], []), ([3], [2])),
    )
    task = read_negation(path)
    assert sorted(shown(example) for example in all_examples(task)) == [
        "by/0 no/0 means/1 { never/0 }",
        "he/1 did/1 { not/0 } come/1 ./0",
        "{ by/0 no/0 means/0 } never/0",
        "{ neither/0 } man/1 { nor/0 } beast/1 slept/1",
    ]
    assert task.notes[-1] == (
        "2 of 4 cues are several words, 1 of these several stretches, with a pair of braces round each stretch"
    )
    assert (task.kind, task.labels, task.metric, task.positive) == ("tagging", ("0", "1"), "f1", "1")


def test_a_brace_of_the_text_is_a_word_with_a_tag(corpus):
    path = corpus(*(sentence(f"say{i} {{ not }} this", ([2], [1, 4])) for i in range(3)))
    assert {shown(example).partition(" ")[2] for example in all_examples(read_negation(path))} == {
        "{/1 { not/0 } }/0 this/1"
    }


def test_cues_that_are_part_of_a_word_and_scopes_without_a_cue_are_counted(corpus):
    scope_only = {"words": ["a", "b"], "spans": [{"start": 0, "end": 1, "label": "9", "kind": "scope"}]}
    path = corpus(
        sentence("an unhappy man", ([1], [0, 2]), kind="affixal_cue"),
        sentence("never unhappy", ([0], [1])), sentence("not here", ([0], [1])), sentence("not there", ([0], [1])),
        json.dumps(scope_only), json.dumps({**scope_only, "words": ["c", "d"]}),
    )  # fmt: skip
    task = read_negation(path)
    assert task.skipped == {AFFIXAL: 1, WITHOUT_CUE: 2}
    assert len(all_examples(task)) == 3


def test_a_sentence_is_never_divided_and_neither_is_a_text_where_there_are_five(corpus):
    lines = [sentence(f"not a{i} and not b{i}", ([0], [1]), ([3], [4]), group=f"text {i % 7}") for i in range(7 * 11)]
    task = read_negation(corpus(*lines))
    splits = {split: {example.group for example in task.splits[split]} for split in SPLITS}
    assert sum(map(len, splits.values())) == len(set.union(*splits.values())) == 7
    few = read_negation(corpus(*(line.replace("text", "text of few") for line in lines if '"text 1"' in line)))
    names = {split: {example.name.rpartition(",")[0] for example in few.splits[split]} for split in SPLITS}
    assert sum(map(len, names.values())) == len(set.union(*names.values())) == 11
    assert [len(few.splits[split]) for split in SPLITS] == [16, 2, 4]


def test_what_is_held_out_does_not_depend_on_the_order_of_the_file(corpus):
    lines = [sentence(f"not a{i}", ([0], [1])) for i in range(53)]
    straight, backwards = read_negation(corpus(*lines)), read_negation(corpus(*reversed(lines)))
    for split in SPLITS:
        assert {example.words for example in straight.splits[split]} == {
            example.words for example in backwards.splits[split]
        }


def test_generated_sentences_are_a_corpus_too():
    task = read_negation("grammar:101")
    assert all(task.splits[split] for split in SPLITS)
    assert list(task.source) == ["grammar:101"]
    assert Counter(example.words.count("{") for example in all_examples(task)) == {1: len(all_examples(task))}


def test_a_corpus_without_cues_is_refused(corpus):
    path = corpus(json.dumps({"words": ["a", "b"], "spans": [{"start": 0, "end": 1, "label": "X", "kind": "upos"}]}))
    with pytest.raises(CorpusError) as caught:
        read_negation(path)
    assert str(caught.value) == (
        "own.jsonl has no negation cue that is a word, and the task negation needs them; give a corpus with cues, "
        "such as that of Zhao and Bethard 2020, *SEM 2012, SFU or grammar:2000."
    )


def test_a_single_sentence_cannot_be_split(corpus):
    path = corpus(sentence("not a", ([0], [1])))
    with pytest.raises(CorpusError, match=r"^own.jsonl:1, negation 1 is the only text, and none can be held"):
        read_negation(path)


@pytest.mark.data
def test_the_papers_file_has_its_662_and_200_negations(data):
    """By a loop over the JSON that does as the paper says."""
    task = read_negation(data)
    assert list(task.source) == ["negation/conandoyle_zhao/data_story.json"]
    assert [len(task.splits[split]) for split in SPLITS] == [555, 107, 200]
    assert len(merge_validation(task).splits["train"]) == 662
    sentences = json.loads((data / "negation/conandoyle_zhao/data_story.json").read_text())
    wanted: dict[str, Counter] = {"test": Counter(), "rest": Counter()}
    for sentence in sentences:
        ids = list(sentence["sent"])
        split = "rest" if ids[0].startswith(("HoundOfTheBaskervilles_", "dog")) else "test"
        for frame in sentence["negframe"]:
            cue = {ids.index(own) for own in frame["neg_cue"]}
            words = []
            for i, own in enumerate(ids):
                tagged = (sentence["sent"][own], "1" if own in frame["neg_scopes"] else "0")
                before, behind = i in cue and i - 1 not in cue, i in cue and i + 1 not in cue
                words += [("{", None)] * before + [tagged] + [("}", None)] * behind
            wanted[split][tuple(words)] += 1
    parts = {"test": task.splits["test"], "rest": task.splits["train"] + task.splits["validation"]}
    for split, examples in parts.items():
        assert Counter(tuple(zip(example.words, example.tags, strict=True)) for example in examples) == wanted[split]
    assert task.notes[-2].startswith("17 of 862 cues are several words, 6 of these several stretches, ")
    assert task.notes[-1].startswith("2 of the 107 examples of validation have the text of a training example")


@pytest.mark.data
def test_the_papers_split_does_not_depend_on_where_the_file_is(data, tmp_path):
    (tmp_path / "renamed.json").write_bytes((data / "negation/conandoyle_zhao/data_story.json").read_bytes())
    original, renamed = read_negation(data), read_negation(tmp_path / "renamed.json")
    for split in SPLITS:
        assert [example.words for example in original.splits[split]] == [
            example.words for example in renamed.splits[split]
        ]


@pytest.mark.data
def test_starsem_has_files_for_its_splits(data):
    task = read_negation(data / "negation/conandoyle_starsem2012")
    assert [len(task.splits[split]) for split in SPLITS] == [825, 140, 228]
    assert task.skipped[AFFIXAL] == 228
    assert task.notes[0] == "training, validation and test are the corpus's own files"


@pytest.mark.data
def test_the_control_of_the_papers_file_has_its_distribution_and_leaves_unseen_words_untagged(data):
    task = read_negation(data)
    control = make_control(task)
    train = [pair for example in task.splits["train"] for pair in zip(example.words, example.tags, strict=True)]
    seen = {word.casefold() for word, tag in train if tag is not None}
    unseen = 0
    for split in SPLITS:
        for example, relabelled in zip(task.splits[split], control.splits[split], strict=True):
            for word, tag, arbitrary in zip(example.words, example.tags, relabelled.tags, strict=True):
                assert (arbitrary is not None) == (tag is not None and word.casefold() in seen)
                unseen += tag is not None and arbitrary is None
    assert control.skipped[UNSEEN] == unseen == 717
    share = [Counter(tag for example in x.splits["train"] for tag in example.tags if tag) for x in (task, control)]
    assert share[1] == share[0]
