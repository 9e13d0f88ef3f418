"""Words with head and relation, as the code of Clark et al. 2019 reads them: what is read and refused."""

from functools import partial
from pathlib import Path

import pytest

from headscope.corpora import Document, Link, read, summarize
from headscope.corpora.head_labels import read as read_file
from headscope.corpora.head_labels import recognise
from headscope.corpora.trees import NO_ROOT
from refusals import refusal

refused = partial(refusal, read_file)
FILE = "dev.txt"
SENTENCE = "the 3-det\nold 3-amod\ndog 4-nsubj\nsaw 0-root\n\n"


def test_a_file_is_recognised_and_its_sentences_have_links(file) -> None:
    corpus = read(file(f"\ufeff{SENTENCE}\n1\\/2-year\t2-nsubj:pass\nran-away 1-x-y \n"))
    assert corpus.format == "head-labels"
    assert list(corpus) == [
        Document(
            "dev.txt:1",
            ("the", "old", "dog", "saw"),
            (Link(0, 2, "det"), Link(1, 2, "amod"), Link(2, 3, "nsubj")),
            group="dev.txt:1",
        ),
        Document(
            "dev.txt:7",
            ("1\\/2-year", "ran-away"),
            (Link(0, 1, "nsubj:pass"), Link(1, 0, "x-y")),
            group="dev.txt:7",
        ),
    ]
    summary = summarize(corpus)
    assert (summary.documents, summary.texts, summary.written, summary.skipped) == (2, 0, 0, {})
    assert summary.tree_faults == {NO_ROOT: 1}


@pytest.mark.parametrize(
    ("beginning", "expected"),
    [
        (SENTENCE, True),
        ("yes 0-root\n\nno 0-root\n", True),
        ("yes 0-root\n", False),
        ("the 3-det\nold 3-amod\ndog 4\nsaw 0-root\n", False),
        ("a 3-day trip\nto 2-room flats\nand 4-door cars\n", False),
        ("see 2-3\nand so on\n", False),
        ("das Haus ||| the house ||| 0-0 1-1\nja ||| yes ||| 0-0\n", False),
        ("", False),
    ],
)
def test_plain_text_is_not_taken_for_it(beginning: str, expected: bool) -> None:
    assert recognise(beginning.split("\n")) is expected


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        *(
            (
                line,
                f"has {line.strip()!r}; expected a word, a space, and its head and relation with - between them, as in "
                "'dog 3-nsubj': correct the line.",
            )
            for line in ("dog", "4-nsubj", "dog 4", "dog 4-", "dog nsubj-4", "old dog 4-nsubj", f"dog {'9' * 10}-nsubj")
        ),
        *(
            (
                f"dog {head}-nsubj",
                f"gives word 3 of 4 the head {head}; a head is 0 for the root or the number of another word of the "
                "sentence, counted from 1: correct it.",
            )
            for head in (3, 5)
        ),
    ],
)
def test_a_malformed_line_is_refused_with_its_number(file, line: str, sentence: str) -> None:
    path: Path = file(SENTENCE + SENTENCE.replace("dog 4-nsubj", line))
    assert refused(path) == f"{path}:8 {sentence}"
