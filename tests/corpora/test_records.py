"""JSON Lines of a user's own: what a line becomes, and what is refused in which sentence."""

import json
from functools import partial
from typing import Any

import pytest

from headscope.corpora import Document, Link, Span
from headscope.corpora.records import read, recognise
from headscope.corpora.written_text import WrittenText
from headscope.errors import CorpusError
from refusals import refusal

FILE = "own.jsonl"
refused = partial(refusal, read)

OBJECT = (
    'each line needs one JSON object, such as {"words": ["She", "left"]}: correct the line, or name the format that '
    "the file is in."
)
LINK = (
    'a link is {"source": 2, "target": 0, "label": "reflexive"} with "kind" and "rivals" if it has any, or '
    '[2, 0, "reflexive"]: correct it.'
)
SPAN = 'a span is {"start": 0, "end": 2, "label": "1", "kind": "cue"}, or [0, 2, "1", "cue"]: correct it.'
RIVALS = "the target is a candidate by itself, and its rivals are other words, each named once: leave it out."
POSITION = "a position is a whole number, counted from 0: correct it."
FOLLOW = (
    "the words follow one another in the text, with nothing but white space between them: correct one of the two, or "
    'leave "text" out.'
)
STRING = "expected a string with at least one visible character: correct it, or leave it out."


def line(*words: Any, **keys: Any) -> str:
    return json.dumps({"words": list(words or ("a", "b", "c")), **keys}) + "\n"


def test_a_line_is_a_document_with_all_that_it_says(file):
    path = file(
        '{"words": ["She", "saw", "herself", "."], "id": "s1", "group": "letter", "label": "true", "boundary": 3, '
        '"links": [[2, 0, "reflexive"], {"label": "nsubj", "target": 1, "source": 0, "kind": "dependency"}], '
        '"spans": [[0, 1, "1", "mention"], {"start": 1, "end": 4, "label": "x", "kind": "stretch"}]}\n'
    )
    assert list(read(path)) == [
        Document(
            "own.jsonl:s1",
            words=("She", "saw", "herself", "."),
            links=(Link(2, 0, "reflexive", "link"), Link(0, 1, "nsubj", "dependency")),
            spans=(Span(0, 1, "1", "mention"), Span(1, 4, "x", "stretch")),
            label="true",
            group="own.jsonl:letter",
            boundary=3,
        )
    ]


def test_words_are_enough_and_null_is_nothing(file):
    nulls = dict.fromkeys(("id", "links", "spans", "label", "group", "boundary"))
    path = file(
        line("a", "New York") + line(**nulls) + line(links=[{"source": 1, "target": 0, "label": "x", "kind": None}])
    )
    assert list(read(path, name="sub/b")) == [
        Document("sub/b:1", words=("a", "New York"), group="sub/b:1"),
        Document("sub/b:2", words=("a", "b", "c"), group="sub/b:2"),
        Document("sub/b:3", words=("a", "b", "c"), links=(Link(1, 0, "x", "link"),), group="sub/b:3"),
    ]


def test_a_group_is_shared_and_an_id_alone_is_its_own_group(file):
    path = file(line(group="g") + line(group="g", id="x") + line(id="y"))
    assert [(d.id, d.group) for d in read(path)] == [
        ("own.jsonl:1", "own.jsonl:g"),
        ("own.jsonl:x", "own.jsonl:g"),
        ("own.jsonl:y", "own.jsonl:y"),
    ]


def test_the_same_words_may_be_joined_under_another_label_kind_or_direction(file):
    links = [[1, 0, "x"], [1, 0, "y"], [0, 1, "x"], {"source": 1, "target": 0, "label": "x", "kind": "k"}]
    (document,) = read(file(line(links=links)))
    assert document.links == (
        Link(1, 0, "x", "link"),
        Link(1, 0, "y", "link"),
        Link(0, 1, "x", "link"),
        Link(1, 0, "x", "k"),
    )


def test_a_link_may_have_rivals(file):
    links = [
        {"source": 2, "target": 0, "label": "x", "rivals": [1]},
        [1, 0, "x"],
        {"source": 0, "target": 3, "label": "x", "kind": "k", "rivals": [4, 1]},
        {"source": 0, "target": 2, "label": "x", "rivals": []},
        {"source": 0, "target": 1, "label": "x", "rivals": None},
    ]
    (document,) = read(file(line(*"abcde", links=links)))
    assert document.links == (
        Link(2, 0, "x", "link", rivals=(1,)),
        Link(1, 0, "x", "link"),
        Link(0, 3, "x", "k", rivals=(4, 1)),
        Link(0, 2, "x", "link"),
        Link(0, 1, "x", "link"),
    )


@pytest.mark.parametrize(
    ("rivals", "problem"),
    [
        (
            1,
            "a link with the rivals 1; expected a list of positions, which are whole numbers, counted from 0: correct "
            "it.",
        ),
        (
            [1, True],
            "a link with the rivals [1, true]; expected a list of positions, which are whole numbers, counted from 0: "
            "correct it.",
        ),
        (
            [1, 5],
            'a link "x" with the rival 5, but 5 words; words are counted from 0, so the last is 4: correct the rival.',
        ),
        (
            [-1],
            'a link "x" with the rival -1, but 5 words; words are counted from 0, so the last is 4: correct the rival.',
        ),
        ([1, 0], 'a link "x" with the rival 0, which is its target; ' + RIVALS),
        ([2], 'a link "x" with the rival 2, which is its source; ' + RIVALS),
        ([4, 1, 4], 'a link "x" with the rival 4 twice; ' + RIVALS),
    ],
    ids=str,
)
def test_rivals_that_are_no_wrong_answers_are_refused(file, rivals, problem):
    path = file(line() + line(*"abcde", links=[{"source": 2, "target": 0, "label": "x", "rivals": rivals}]))
    assert refused(path) == f"{path}:2 has {problem}"


def test_a_link_with_other_rivals_is_the_same_link(file):
    links = [{"source": 2, "target": 0, "label": "x", "rivals": rivals} for rivals in ([1], [])]
    path = file(line(links=links))
    assert refused(path).startswith(f'{path}:1 has the link "x" from word 2 to word 0 twice; ')


def test_empty_lines_a_byte_order_mark_and_windows_lines_change_nothing_but_the_numbers(file):
    path = file("\ufeff" + line() + "\r\n  \n" + line().replace("\n", "\r\n") + "\t\n")
    assert [document.id for document in read(path)] == ["own.jsonl:1", "own.jsonl:4"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"words": ["a"]', "is not JSON (Expecting ',' delimiter at character 16); "),
        ("{'words': ['a']}", "is not JSON (Expecting property name enclosed in double quotes at character 2); "),
        ("a b c", "is not JSON (Expecting value at character 1); "),
        ("[" * 100_000, "is not JSON that can be read (too long a number, or brackets too deep); "),
        (
            '{"boundary": ' + "1" * 5000 + "}",
            "is not JSON that can be read (too long a number, or brackets too deep); ",
        ),
        ('["a", "b"]', 'has ["a", "b"], which is not an object; '),
        ("7", "has 7, which is not an object; "),
    ],
    ids=["cut", "python", "text", "deep", "digits", "list", "number"],
)
def test_a_line_that_is_no_object_is_refused(file, text, problem):
    path = file(line() + "\n" + text + "\n")
    assert refused(path) == f"{path}:3 {problem}{OBJECT}"


@pytest.mark.parametrize(
    ("keys", "named"), [({"link": []}, 'the key "link"'), ({"link": [], "tokens": 1}, 'the keys "link", "tokens"')]
)
def test_a_key_that_is_not_known_is_named(file, keys, named):
    path = file(line() + line(**keys))
    assert refused(path) == (
        f'{path}:2 has {named}; known are "words", "text", "messages", "id", "links", "spans", "label", "group", '
        f'"boundary": correct the spelling, or leave it out.'
    )


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('{"words": ["a"], "words": ["b"]}', "words"),
        ('{"words": ["a"], "links": [{"label": "x", "label": "y"}]}', "label"),
    ],
)
def test_a_key_that_is_there_twice_is_refused(file, text, key):
    path = file(text)
    assert refused(path) == (
        f'{path}:1 has the key "{key}" twice in one object, of which one would be lost; expected each key once: '
        f"join the two, or leave one out."
    )


@pytest.mark.parametrize(
    ("text", "came"),
    [
        ("{}", 'no "words"'),
        ('{"words": null}', 'no "words"'),
        ('{"words": []}', 'the "words" []'),
        ('{"words": "She left"}', 'the "words" "She left"'),
        (json.dumps({"words": "long " * 13}), 'the "words" "' + ("long " * 12)[:59] + " ..."),
    ],
)
def test_a_line_without_a_list_of_words_is_refused(file, text, came):
    path = file(line() + text)
    assert refused(path) == (
        f'{path}:2 has {came}; a text needs the list of its words, such as ["She", "left"], or a string as its "text": '
        "write them there."
    )


@pytest.mark.parametrize(
    ("word", "shown"),
    [("", '""'), (" \u00a0", '" \u00a0"'), (7, "7"), (None, "null"), (["a"], '["a"]'), ("\ud83d", r'"\ud83d"')],
)
def test_a_word_that_is_none_is_refused(file, word, shown):
    path = file(line("a", word, "c"))
    assert refused(path) == (
        f"{path}:1 has {shown} as word 1, counted from 0; a word is a string with at least one visible character: "
        f"correct it, or leave it out and count the words anew in links and spans."
    )


def test_a_character_of_two_escapes_is_a_character(file):
    (document,) = read(file(line("\U0001f40b")))
    assert r"\ud83d\udc0b" in line("\U0001f40b")
    assert document.words == ("\U0001f40b",)


@pytest.mark.parametrize("key", ["links", "spans"])
@pytest.mark.parametrize(("value", "shown"), [({"source": 1}, '{"source": 1}'), ("x", '"x"'), (0, "0")])
def test_links_and_spans_that_are_no_list_are_refused(file, key, value, shown):
    path = file(line(**{key: value}))
    assert refused(path) == (
        f'{path}:1 has the "{key}" {shown}; expected a list of them, even of one: put it in brackets.'
    )


@pytest.mark.parametrize(
    ("key", "entry", "problem"),
    [
        ("links", 5, "5 among its links; " + LINK),
        ("links", [1, 0], "[1, 0] among its links; " + LINK),
        ("links", [1, 0, "x", "y"], '[1, 0, "x", "y"] among its links; ' + LINK),
        (
            "links",
            {"source": 1, "label": "x"},
            '{"source": 1, "label": "x"} among its links, without "target"; ' + LINK,
        ),
        (
            "links",
            {"source": 1, "tgt": 0, "label": "x"},
            '{"source": 1, "tgt": 0, "label": "x"} among its links, with the unknown "tgt"; ' + LINK,
        ),
        ("spans", [0, 1, "x"], '[0, 1, "x"] among its spans; ' + SPAN),
        ("spans", {"start": 0, "end": 1}, '{"start": 0, "end": 1} among its spans, without "label", "kind"; ' + SPAN),
        ("links", [True, 0, "x"], "a link with the source true; " + POSITION),
        ("links", [1, 0.0, "x"], "a link with the target 0.0; " + POSITION),
        ("links", ["1", 0, "x"], 'a link with the source "1"; ' + POSITION),
        ("spans", [0, None, "x", "cue"], "a span with the end null; " + POSITION),
        (
            "links",
            [1, 0, 3],
            "a link with the label 3; a label is a string with at least one visible character: correct it.",
        ),
        (
            "links",
            {"source": 1, "target": 0, "label": "x", "kind": " "},
            'a link with the kind " "; a kind is a string with at least one visible character: correct it.',
        ),
        (
            "spans",
            [0, 1, "", "cue"],
            'a span with the label ""; a label is a string with at least one visible character: correct it.',
        ),
    ],
)
def test_a_link_or_span_of_another_form_is_refused(file, key, entry, problem):
    path = file(line() + line(**{key: [[1, 0, "x"] if key == "links" else [0, 1, "x", "y"], entry]}))
    assert refused(path) == f"{path}:2 has {problem}"


def test_a_link_that_is_there_twice_is_refused(file):
    path = file(line(links=[[2, 1, "x"], {"source": 2, "target": 1, "label": "x"}]))
    assert refused(path) == (
        f'{path}:1 has the link "x" from word 2 to word 1 twice; it would count twice: leave one out, or give it '
        f"another label or kind."
    )


@pytest.mark.parametrize(("start", "end"), [(0, 4), (-1, 1), (1, 1), (2, 1)])
def test_a_span_outside_the_words_or_of_none_is_refused(file, start, end):
    path = file(line(spans=[[start, end, "x", "cue"]]))
    assert refused(path) == (
        f'{path}:1 has a span "x" from {start} to {end}, but 3 words; a span goes from its first word, counted from 0, '
        f"to the word after its last: correct it."
    )


@pytest.mark.parametrize("key", ["id", "label", "group"])
@pytest.mark.parametrize(("value", "shown"), [(7, "7"), ("", '""'), (True, "true"), (["a"], '["a"]')])
def test_an_id_label_or_group_that_is_no_string_is_refused(file, key, value, shown):
    path = file(line(**{key: value}))
    assert refused(path) == f'{path}:1 has the "{key}" {shown}; {STRING}'


@pytest.mark.parametrize(("value", "shown"), [(0, "0"), (3, "3"), (True, "true"), (1.0, "1.0"), ("1", '"1"')])
def test_a_boundary_that_is_no_inner_word_is_refused(file, value, shown):
    path = file(line(boundary=value))
    assert refused(path) == (
        f'{path}:1 has the "boundary" {shown}, but 3 words; it is the place, counted from 0, of the first word of the '
        f"second segment, with at least one word on each side: correct it, or leave it out."
    )


def test_documents_before_a_fault_are_read(file):
    documents = read(file(line() + "broken"))
    assert next(documents).id == "own.jsonl:1"
    with pytest.raises(CorpusError):
        next(documents)


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        (line(), True),
        (' {"id": "x", "words" : ["a', True),  # cut
        ('{"id": "words", "tokens": ["a"]}', False),
        ('["words"]', False),
        ('[{"words": ["a"]}]', False),
        ("words: a", False),
        ("", False),
    ],
)
def test_an_object_with_words_is_recognised(first, expected):
    assert recognise(["", " \r", first.rstrip("\n")]) is expected
    assert recognise([]) is False


def test_the_words_of_a_text_are_what_white_space_parts(file):
    path = file('{"text": "She  left\\t there .", "links": [[1, 0, "subject"]]}\n{"text": "He came", "id": "b"}\n')
    first, second = read(path)
    assert first.words == ("She", "left", "there", ".")
    assert first.written == WrittenText("She  left\t there .", ((0, 3), (5, 9), (11, 16), (17, 18)))
    assert first.links == (Link(1, 0, "subject", "link"),)
    assert (second.words, second.id.rpartition(":")[2]) == (("He", "came"), "b")
    assert recognise(path.read_text().split("\n"))


def test_words_may_be_given_beside_their_text(file):
    written = WrittenText(" She didn't\u00a0see  New York.", ((1, 4), (5, 8), (8, 11), (12, 15), (17, 25), (25, 26)))
    words = ("She", "did", "n't", "see", "New York", ".")
    (document,) = read(file(line(*words, text=written.content, links=[[2, 1, "negation"]])))
    links = (Link(2, 1, "negation", "link"),)
    assert document == Document("own.jsonl:1", words, links, group="own.jsonl:1", written=written)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            '{"text": "He left", "words": ["He", "did", "left"]}',
            f'has "did" as word 1, counted from 0, where its "text" goes on with "left"; {FOLLOW}',
        ),
        (
            '{"text": "He left", "words": ["He", "left", "."]}',
            f'has "." as word 2, counted from 0, where its "text" ends; {FOLLOW}',
        ),
        (
            '{"text": "He left . ", "words": ["He", "left"]}',
            f'has no word 2, counted from 0, where its "text" goes on with "."; {FOLLOW}',
        ),
        (
            '{"text": "a", "words": []}',
            'has the "words" []; a text needs the list of its words, such as ["She", "left"], or a string as its '
            '"text": write them there.',
        ),
        (
            '{"text": " "}',
            'has the "text" " "; expected a string with at least one visible character: correct it, or leave the line '
            "out.",
        ),
        (
            '{"text": ["a"]}',
            'has the "text" ["a"]; expected a string with at least one visible character: correct it, or leave the '
            "line out.",
        ),
    ],
)
def test_what_is_no_text_is_refused(file, text, problem):
    path = file(text)
    assert refused(path) == f"{path}:1 {problem}"
