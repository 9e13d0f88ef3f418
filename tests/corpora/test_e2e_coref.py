"""Coreference in the JSON Lines of e2e-coref: its words and mentions, and what is refused at which line."""

import json
from functools import partial

import pytest

from headscope.corpora import Document, Span, e2e_coref, read
from headscope.corpora.e2e_coref import recognise
from refusals import refusal

FILE = "train.english.jsonlines"
refused = partial(refusal, e2e_coref.read)

SENTENCES = [["Ann", "saw", "the", "dog", "of", "her", "sister", "."], ["She", "called", "it", "."]]
CLUSTERS = [[[0, 0], [5, 5], [8, 8]], [[10, 10], [2, 6]], [[5, 6]]]


def line(key: str | None = "nw/wsj/00/wsj_0001_0", **changes: object) -> str:
    record = {"doc_key": key, "sentences": SENTENCES, "speakers": [["-"] * 8, ["-"] * 4], "clusters": CLUSTERS}
    return json.dumps({**record, **changes}) + "\n"


def test_a_line_is_a_document_with_a_mention_for_each_of_its_clusters(file):
    path = file(line() + "\n" + line("nw/wsj/00/wsj_0001_12", clusters=[], sentences=[["Yes"], []]))
    assert list(e2e_coref.read(path, name="sub/t")) == [
        Document(
            "sub/t:nw/wsj/00/wsj_0001_0",
            words=("Ann", "saw", "the", "dog", "of", "her", "sister", ".", "She", "called", "it", "."),
            spans=(
                Span(0, 1, "1", "mention"),
                Span(2, 7, "2", "mention"),
                Span(5, 6, "1", "mention"),
                Span(5, 7, "3", "mention"),
                Span(8, 9, "1", "mention"),
                Span(10, 11, "2", "mention"),
            ),
            group="sub/t:nw/wsj/00/wsj_0001",
        ),
        Document("sub/t:nw/wsj/00/wsj_0001_12", words=("Yes",), group="sub/t:nw/wsj/00/wsj_0001"),
    ]


@pytest.mark.parametrize(
    ("key", "identity", "group"),
    [
        ("bc/cctv/00/cctv_0000_12", "bc/cctv/00/cctv_0000_12", "bc/cctv/00/cctv_0000"),
        ("nw/x", "nw/x", "nw/x"),
        # Only parts of OntoNotes are numbered so: these are other documents.
        ("wsj_0001", "wsj_0001", "wsj_0001"),
        ("genre/text_1", "genre/text_1", "genre/text_1"),
        (None, "1", "1"),
    ],
)
def test_parts_of_a_document_are_a_group(file, key, identity, group):
    (document,) = e2e_coref.read(file(line(key)))
    assert (document.id, document.group) == (f"{FILE}:{identity}", f"{FILE}:{group}")


def test_mentions_are_those_that_a_loop_over_the_file_finds(file):
    path = file(line() + line("b", clusters=[[[0, 7]], [[1, 1], [2, 3]]]))
    for text, document in zip(path.read_text().splitlines(), read(path), strict=True):
        record = json.loads(text)
        words = [word for sentence in record["sentences"] for word in sentence]
        expected = []
        for number, cluster in enumerate(record["clusters"]):
            for first, last in cluster:
                expected.append((str(number + 1), words[first : last + 1]))
        assert sorted(expected) == sorted(
            (span.label, list(document.words[span.start : span.end])) for span in document.spans
        )
        assert document.words == tuple(words)


def test_byte_order_mark_and_windows_lines_change_nothing(file):
    text = line() + line("b")
    plain = list(e2e_coref.read(file(text)))
    assert len(plain) == 2
    assert list(e2e_coref.read(file("\ufeff" + text.replace("\n", "\r\n")))) == plain


WORDS = "; a mention goes from its first to its last word, counted from 0 to 11: correct it."
MENTION = "; a mention is its first and its last word, such as [3, 3], counted from 0: correct it."
NO_CLUSTERS = (
    "; a document needs a list of them, each a list of mentions, such as [[[0, 0], [3, 3]]], or [] if nothing is "
    "mentioned twice: write them there."
)
NO_SENTENCES = (
    '; a document needs a list of them, each a list of words, such as [["She", "left"]]: write them there.'
)  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"clusters": [[[0, 0]], [[1, 12]]]}, f"has the mention [1, 12] in cluster 2, but 12 words{WORDS}"),
        ({"clusters": [[[-1, 0]]]}, f"has the mention [-1, 0] in cluster 1, but 12 words{WORDS}"),
        ({"clusters": [[[3, 2]]]}, f"has the mention [3, 2] in cluster 1, but 12 words{WORDS}"),
        ({"clusters": [[[3]]]}, f"has [3] in cluster 1{MENTION}"),
        ({"clusters": [[[0, 1, 2]]]}, f"has [0, 1, 2] in cluster 1{MENTION}"),
        ({"clusters": [[[0, True]]]}, f"has [0, true] in cluster 1{MENTION}"),
        ({"clusters": [[[0, 1.0]]]}, f"has [0, 1.0] in cluster 1{MENTION}"),
        ({"clusters": [[0, 1]]}, f"has 0 in cluster 1{MENTION}"),
        ({"clusters": [3]}, f'has the "clusters" [3]{NO_CLUSTERS}'),
        ({"clusters": None}, f'has no "clusters"{NO_CLUSTERS}'),
        ({"sentences": ["Ann"]}, f'has the "sentences" ["Ann"]{NO_SENTENCES}'),
        ({"sentences": None}, f'has no "sentences"{NO_SENTENCES}'),
        ({"sentences": [[], []]}, "has a document without words; each needs at least one: leave it out."),
        (
            {"sentences": [["a", "b"], ["c", " "]]},
            'has " " as word 3, counted from 0; a word is a string with at least one visible character: correct it.',
        ),
        (
            {"doc_key": 3},
            'has the "doc_key" 3; expected a string with at least one visible character: correct it, or leave it out.',
        ),
        *(
            (
                {key: [0] * 12},
                f'has the key "{key}": its "sentences" are the pieces of words of one tokenizer, with special tokens '
                "among them; headscope reads words: give the file of words that it was made from.",
            )
            for key in ("subtoken_map", "sentence_map")
        ),
    ],
)
def test_a_faulty_line_is_refused(file, changes, message):
    path = file(line("a") + line("b", **changes))
    assert refused(path) == f"{path}:2 {message}"


def test_a_line_that_is_cut_is_refused(file):
    path = file(line("a") + line("b")[:60])
    assert refused(path).startswith(f"{path}:2 is not JSON (")
    assert refused(path).endswith("correct the line, or name the format that the file is in.")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (line(), True),
        (line().replace(" ", ""), True),
        ("\n" + line(), True),
        # A long document is cut before its clusters.
        (line()[:90], True),
        (json.dumps({"clusters": CLUSTERS, "sentences": SENTENCES}), True),
        (json.dumps({"sentences": SENTENCES}), False),
        (json.dumps({"sentences": ["a"], "doc_key": "b"}), False),
        (json.dumps({"words": ["a"]}), False),
        (f"[{line()}]", False),
        ("", False),
    ],
)
def test_sentences_of_words_with_another_key_are_recognised(text, expected):
    assert recognise(text.split("\n")) is expected


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonlines", "a.json"])
def test_a_file_is_read_so_whatever_its_name(tmp_path, name):
    (tmp_path / name).write_text(line())
    corpus = read(tmp_path / name)
    assert (corpus.format, len(corpus)) == ("e2e-coref", 1)
