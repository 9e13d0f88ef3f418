"""Negation frames in JSON: which words they mark, and what is refused in which sentence."""

import json
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from headscope.corpora import Document, Skipped, Span
from headscope.corpora.negation_frames import read, recognise
from refusals import refusal

refused = partial(refusal, read)

WANTED = "a sentence needs 'sent' and 'negframe', and a frame 'neg_cue', 'neg_scopes' and 'negated': add it."


def frame(cue: Any, scope: Any = (), event: Any = ()) -> dict[str, Any]:
    """A frame of words by number, in the ids of `sentence`."""
    keys = ("neg_cue", "neg_scopes", "negated")
    return {key: [f"Tale_ch1.snt_3_{i}" for i in ids] or {} for key, ids in zip(keys, (cue, scope, event), strict=True)}


def sentence(text: str, *frames: Any, prefix: str = "Tale_ch1.snt_3", first: int = 0) -> dict[str, Any]:
    words = text.split()
    ids = [f"{prefix}_{i}" for i in range(first, first + len(words))]
    return {
        "sent": dict(zip(ids, words, strict=True)),
        "pos": dict.fromkeys(ids, "X"),
        "negframe": list(frames),
        "words": words,
    }


@pytest.fixture
def file(tmp_path: Path):
    path = tmp_path / "story.json"

    def write(content: Any) -> Path:
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        return path

    return write


def test_unordered_ids_become_runs_of_words(file):
    path = file(
        [
            sentence("None came .", prefix="s3"),
            sentence(
                "&quot; He neither spoke nor did nothing",
                frame([4, 2], [6, 5, 1, 3], [3, 5]),
                frame([6]),
            ),
        ]
    )
    assert list(read(path)) == [
        Document("story.json:1", words=("None", "came", "."), group="story.json:s"),
        Document(
            "story.json:2",
            words=("&quot;", "He", "neither", "spoke", "nor", "did", "nothing"),
            spans=(
                Span(2, 3, "1", "cue"),
                Span(4, 5, "1", "cue"),
                Span(1, 2, "1", "scope"),
                Span(3, 4, "1", "scope"),
                Span(5, 7, "1", "scope"),
                Span(3, 4, "1", "event"),
                Span(5, 6, "1", "event"),
                Span(6, 7, "2", "cue"),
            ),
            group="story.json:Tale_ch1",
        ),
    ]


def test_a_word_is_found_by_its_id_and_not_by_the_number_in_it(file):
    (document,) = read(file([sentence("He never spoke", frame([2], [3, 1], [3]), first=1)]), name="sub/b")
    assert (document.id, document.group) == ("sub/b:1", "sub/b:Tale_ch1")
    assert document.spans == (
        Span(1, 2, "1", "cue"),
        Span(0, 1, "1", "scope"),
        Span(2, 3, "1", "scope"),
        Span(2, 3, "1", "event"),
    )


@pytest.mark.parametrize(
    ("prefix", "group"),
    [("Hound_ch12.snt_40", "Hound_ch12"), ("dog11._7", "dog11"), ("wood.1sthalf._300", "wood.1sthalf"), ("s8", "s")],
)
def test_a_group_is_what_ids_have_before_their_numbers(file, prefix, group):
    (document,) = read(file([sentence("a b", prefix=prefix)]))
    assert document.group == f"story.json:{group}"


def test_ids_that_come_again_in_another_sentence_are_other_words(file):
    documents = list(read(file([sentence("not a", frame([0], [1])), sentence("b never", frame([1], [0]))])))
    assert [document.id for document in documents] == ["story.json:1", "story.json:2"]
    assert [document.spans[0] for document in documents] == [Span(0, 1, "1", "cue"), Span(1, 2, "1", "cue")]


def test_an_event_that_is_not_in_the_sentence_is_skipped_and_the_rest_kept(file):
    path = file([sentence("a"), sentence("I do not", frame([2], [0, 1], [1, 500]), frame([2], [0], [501]))])
    _, *skipped, document = read(path)
    assert (
        skipped == [Skipped(f"{path}: sentence 2", "negated events with an id that no word of their sentence has")] * 2
    )
    assert document.spans == (
        Span(2, 3, "1", "cue"),
        Span(0, 2, "1", "scope"),
        Span(1, 2, "1", "event"),
        Span(2, 3, "2", "cue"),
        Span(0, 1, "2", "scope"),
    )


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ('[\n{"sent": ', 2, "Expecting value at character 10"),
        ("", 1, "Expecting value at character 1"),
        ("[]\n\n{}", 3, "Extra data at character 1"),
        ("tale01 0 0 Quiet", 1, "Expecting value at character 1"),
    ],
)
def test_what_is_no_json_is_refused_at_its_line(file, text, line, said):
    path = file(text.encode())
    assert refused(path) == (
        f"{path}:{line} is not JSON ({said}); negation frames are written in JSON: check that the file is whole, "
        f"or name the format that it is in."
    )


@pytest.mark.parametrize("text", ["[" * 100_000, "[" + "1" * 5000 + "]"], ids=["too deep", "too long a number"])
def test_json_that_python_does_not_read_is_refused(file, text):
    path = file(text.encode())
    assert refused(path) == (
        f"{path} is not JSON that can be read (too long a number, or brackets too deep); negation frames are written "
        f"in JSON: check that the file is whole, or name the format that it is in."
    )


@pytest.mark.parametrize(
    ("broken", "what"),
    [
        ("a sentence", "object 'sent'"),
        ({"negframe": []}, "object 'sent'"),
        ({"sent": ["a"], "negframe": []}, "object 'sent'"),
        ({"sent": {"s1_0": "a"}}, "list 'negframe'"),
        ({"sent": {"s1_0": "a"}, "negframe": {}}, "list 'negframe'"),
    ],
)
def test_a_sentence_without_words_or_frames_is_refused(file, broken, what):
    path = file([sentence("a")] * 16 + [broken])
    assert refused(path) == f"{path}: sentence 17 has no {what}; {WANTED}"


@pytest.mark.parametrize("key", ["neg_cue", "neg_scopes", "negated"])
@pytest.mark.parametrize("value", [None, "Tale_ch1.snt_3_0", {"Tale_ch1.snt_3_0": 1}])
def test_a_frame_that_lacks_a_list_is_refused(file, key, value):
    path = file([sentence("a"), sentence("not a", frame([0]), frame([0]) | {key: value})])
    assert refused(path) == f"{path}: sentence 2, frame 2 has no list '{key}'; {WANTED}"


def test_a_frame_that_is_no_object_is_refused(file):
    path = file([sentence("not a", ["Tale_ch1.snt_3_0"])])
    assert refused(path) == f"{path}: sentence 1, frame 1 has no list 'neg_cue'; {WANTED}"


@pytest.mark.parametrize(("key", "broken"), [("neg_cue", frame([0, 2])), ("neg_scopes", frame([0], [1, 2]))])
def test_a_cue_or_scope_that_is_not_in_the_sentence_is_refused(file, key, broken):
    path = file([sentence("a")] * 2 + [sentence("not a", broken)])
    assert refused(path) == (
        f"{path}: sentence 3, frame 1 has the id 'Tale_ch1.snt_3_2' in '{key}', which no word of its sentence has; "
        f"expected ids of 'sent': correct it."
    )


@pytest.mark.parametrize("key", ["neg_cue", "neg_scopes", "negated"])
@pytest.mark.parametrize(("own", "written"), [(0, "0"), (["s"], "['s']")])
def test_an_id_that_is_no_text_is_refused(file, key, own, written):
    path = file([sentence("not a", frame([0]) | {key: [own]})])
    assert refused(path) == (
        f"{path}: sentence 1, frame 1 has {written} in '{key}', which is not an id; expected ids of 'sent', in quotes: "
        f"correct it."
    )


def test_a_frame_without_a_cue_is_refused(file):
    path = file([sentence("a"), sentence("not a", frame([0]), frame([], [1]))])
    assert refused(path) == (
        f"{path}: sentence 2, frame 2 has no word in 'neg_cue'; a negation needs a cue: name its words, "
        f"or leave the frame out."
    )


@pytest.mark.parametrize(("word", "written"), [("", "''"), (" ", "' '"), (3, "3"), (None, "None")])
def test_an_empty_word_is_refused(file, word, written):
    path = file([sentence("a"), {"sent": {"s1_0": "a", "s1_1": word}, "negframe": []}])
    assert refused(path) == (
        f"{path}: sentence 2 has {written} for its word 's1_1'; a word needs at least one visible character: "
        f"correct it."
    )


def test_a_sentence_of_no_words_is_refused(file):
    path = file([{"sent": {}, "negframe": []}])
    assert refused(path) == (
        f"{path}: sentence 1 has no words; a sentence needs at least one in 'sent': leave it out or correct it."
    )


def test_two_words_of_one_id_are_refused(file):
    # Python would keep the second and forget the first.
    path = file(b'[{"sent": {"s1_0": "a", "s1_1": "b", "s1_1": "c"}, "negframe": []}]')
    assert refused(path) == (
        f'{path} has the key "s1_1" twice in one object, of which one would be lost; expected each key once: join the '
        f"two, or leave one out."
    )


@pytest.mark.parametrize(
    ("beginning", "expected"),
    [
        (json.dumps([sentence("not a", frame([0], [1])), sentence("b")])[:300], True),
        (json.dumps([sentence("not a", frame([0], [1]))], indent=1), True),
        (json.dumps([{"sent": {"s1_0": "a"}}]), False),
        (json.dumps(sentence("not a", frame([0]))), False),
        ("He said: [{ ", False),
        ("", False),
    ],
)
def test_a_list_of_objects_with_frames_is_recognised(beginning, expected):
    assert recognise(beginning.split("\n")) is expected


@pytest.mark.data
def test_the_stories_have_the_published_counts(data):
    # Counts of data/negation/README.md; 662 + 200 negations are those of the paper.
    path = data / "negation/conandoyle_zhao/data_story.json"
    parts = list(read(path))
    documents = [part for part in parts if isinstance(part, Document)]
    assert len(documents) == len({document.id for document in documents}) == 757
    assert Counter(part.reason for part in parts if isinstance(part, Skipped)) == {
        "negated events with an id that no word of their sentence has": 10
    }
    negations = {(document.id, document.group, span.label) for document in documents for span in document.spans}
    assert len(negations) == 862
    hound = ("data_story.json:Hound", "data_story.json:dog")
    assert sum(group.startswith(hound) for _, group, _ in negations) == 662
    assert len({document.group for document in documents}) == 15
    scopes = {(document.id, span.label) for document in documents for span in document.spans if span.kind == "scope"}
    assert len(scopes) == 862 - 103
    raw = path.read_text(encoding="utf-8")
    assert (raw.count('"neg_cue"'), raw.count('"neg_scopes": {}')) == (862, 103)
    lengths = Counter(
        (document.id, span.label)
        for document in documents
        for span in document.spans
        for _ in range(span.start, span.end)
        if span.kind == "cue"
    )
    assert Counter(lengths.values()) == {1: 845, 2: 8, 3: 8, 4: 1}


@pytest.mark.data
def test_marked_words_are_those_that_the_ids_of_the_file_name(data):
    path = data / "negation/conandoyle_zhao/data_story.json"
    documents = [part for part in read(path) if isinstance(part, Document)]
    kinds = {"neg_cue": "cue", "neg_scopes": "scope", "negated": "event"}
    for document, raw in zip(documents, json.loads(path.read_text(encoding="utf-8")), strict=True):
        assert list(document.words) == raw["words"]
        for label, expected in enumerate(raw["negframe"], start=1):
            for key, kind in kinds.items():
                spans = [span for span in document.spans if (span.label, span.kind) == (str(label), kind)]
                marked = {i for span in spans for i in range(span.start, span.end)}
                assert {own for i, own in enumerate(raw["sent"]) if i in marked} == set(expected[key]) & set(
                    raw["sent"]
                )
