"""Word-aligned pairs: what a line becomes, and what is refused in which sentence."""

from functools import partial
from pathlib import Path

import pytest

from headscope.corpora import FORMATS, Document, Link, read, summarize
from headscope.corpora.alignments import FORMS
from headscope.corpora.alignments import read as read_file
from headscope.corpora.corpus import hash_documents
from headscope.errors import CorpusError
from refusals import refusal

refused = partial(refusal, read_file)
PAIR = "das ist ein Haus ||| this is a house ||| 0-0 1-1 2p2 3-3\n"
EXAMPLE = "'das Haus ||| the house ||| 0-0 1-1'"
OR_NAME_IT = (
    "correct the link or, if all links are in another form, name the format: alignments-from-1, alignments-swapped, "
    "alignments-from-1-swapped"
)
link = partial(Link, kind="alignment")


def test_a_line_is_a_pair(tmp_path: Path) -> None:
    path = tmp_path / "pairs.txt"
    path.write_text(f"{PAIR}\n  \nja\t|||   yes  yes ||| 0-1 0p0\nnein ||| no |||\n", encoding="utf-8")
    corpus = read(path)
    assert corpus.format == "alignments"
    links = (link(0, 0, "sure"), link(1, 1, "sure"), link(2, 2, "possible"), link(3, 3, "sure"))
    assert list(corpus) == [
        Document(
            "pairs.txt:1", ("das", "ist", "ein", "Haus"), translation=("this", "is", "a", "house"), alignment=links
        ),
        Document(
            "pairs.txt:4", ("ja",), translation=("yes", "yes"), alignment=(link(0, 1, "sure"), link(0, 0, "possible"))
        ),
        Document("pairs.txt:5", ("nein",), translation=("no",)),
    ]
    summary = summarize(corpus)
    assert (summary.documents, summary.words, summary.aligned, summary.texts) == (3, 6, 4, 0)
    assert summary.skipped == {"blank lines": 2}


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("a b ||| c d", f"has ||| 1 time; a pair has it twice, as in {EXAMPLE}: correct the line."),
        ("a b c", f"has ||| 0 times; a pair has it twice, as in {EXAMPLE}: correct the line."),
        ("a ||| b ||| 0-0 ||| 0-0", f"has ||| 3 times; a pair has it twice, as in {EXAMPLE}: correct the line."),
        (" ||| b ||| ", f"has no source words; a pair has words on both sides, as in {EXAMPLE}: leave it out."),
        ("a |||  ||| 0-0", f"has no target words; a pair has words on both sides, as in {EXAMPLE}: leave it out."),
        (
            "a b ||| c ||| 0-0 2-0",
            f"has the link '2-0', and its source side has 2 words, counted from 0; {OR_NAME_IT}.",
        ),
        (
            "a b ||| c ||| 0-0 1p1",
            f"has the link '1p1', and its target side has 1 word, counted from 0; {OR_NAME_IT}.",
        ),
        *(
            (
                f"a b ||| c ||| 0-0 {written}",
                f"has the link {written!r}; a link is two places, counted from 0, with - between them if it is sure "
                "and p if it is possible, such as 1-2 or 1p1: correct it.",
            )
            for written in ("1", "1-", "1x0", "-1-0", "1-0-0", "1,0", "1.5-0")
        ),
        (
            "a b ||| c ||| 1-0 1p0",
            "has two links between source word 1 and target word 0; a pair of words is linked once: leave one out.",
        ),
    ],
)
def test_a_malformed_line_is_refused_with_its_number(tmp_path: Path, line: str, sentence: str) -> None:
    path = tmp_path / "pairs.txt"
    path.write_text(f"{PAIR}\n{line}\n{PAIR}", encoding="utf-8")
    assert refused(path) == f"{path}:3 {sentence}"
    with pytest.raises(CorpusError, match=r"pairs\.txt:3"):
        summarize(read(path, format="alignments"))


@pytest.mark.parametrize("line", ["0-0 1-1 2p1", "das Haus\tthe house\t0-0 1-1", "\n0-0 1p1"])
def test_links_without_separators_are_no_plain_text(tmp_path: Path, line: str) -> None:
    path = tmp_path / "pairs.txt"
    path.write_text(f"{line}\n")
    number = 2 if line.startswith("\n") else 1
    assert refusal(lambda path: [*read(path)], path) == (
        f"{path}:{number} has ||| 0 times; a pair has it twice, as in 'das Haus ||| the house ||| 0-0 1-1': correct "
        "the line."
    )


@pytest.mark.parametrize("line", ["0-0", "in 1990-1995 2-2", "0-0 1-1 ."])
def test_numbers_in_a_text_are_no_links(tmp_path: Path, line: str) -> None:
    path = tmp_path / "text.txt"
    path.write_text(f"{line}\n\nA dog ran .\n")
    assert read(path).format != "alignments"


@pytest.mark.parametrize(
    ("format", "links"),
    [
        ("alignments", "0-0 0-1 1p2"),
        ("alignments-from-1", "1-1 1-2 2p3"),
        ("alignments-swapped", "0-0 1-0 2p1"),
        ("alignments-from-1-swapped", "1-1 2-1 3p2"),
    ],
)
def test_links_in_each_form_are_the_same(tmp_path: Path, format: str, links: str) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(f"im Haus ||| in the house ||| {links}\n")
    expected = (link(0, 0, "sure"), link(0, 1, "sure"), link(1, 2, "possible"))
    for corpus in (tmp_path / "a.txt", tmp_path):
        documents = list(read(corpus, format=format))
        assert [document.alignment for document in documents] == [expected] * (1 if corpus.is_file() else 2)
    assert read(tmp_path).format == "alignments"


@pytest.mark.parametrize(
    ("format", "written", "sentence"),
    [
        ("alignments-from-1", "0-1", "has the link '0-1', and its source side has 2 words, counted from 1"),
        ("alignments-from-1", "1-4", "has the link '1-4', and its target side has 3 words, counted from 1"),
        ("alignments-swapped", "3-0", "has the link '3-0', and its target side has 3 words, counted from 0"),
        ("alignments-from-1-swapped", "3-3", "has the link '3-3', and its source side has 2 words, counted from 1"),
    ],
)
def test_a_link_outside_its_pair_is_refused_in_each_form(
    tmp_path: Path, format: str, written: str, sentence: str
) -> None:
    path = tmp_path / "pairs.txt"
    path.write_text(f"im Haus ||| in the house ||| {written}\n")
    others = [name for name in FORMS if name != format]
    assert refusal(FORMATS[format].read, path) == (
        f"{path}:1 {sentence}; correct the link or, if all links are in another form, name the format: "
        f"{', '.join(others)}."
    )
    path.write_text("im Haus ||| in the house ||| 1-1 1-1\n")
    assert "between source word 1 and target word 1;" in refusal(FORMATS[format].read, path)


@pytest.mark.parametrize(
    ("alignment", "translation", "sentence"),
    [
        (
            link(2, 0, "sure"),
            ("c",),
            "document 'd' has 2 words and 1 in its translation, but its alignment joins word 2 to word 0 of the "
            "translation; both are numbered from 0.",
        ),
        (
            link(0, 0, "sure"),
            (),
            "document 'd' has 2 words and 0 in its translation, but its alignment joins word 0 to word 0 of the "
            "translation; both are numbered from 0.",
        ),
        (
            link(0, 0, "perhaps"),
            ("c",),
            "document 'd' has an alignment with the label 'perhaps'; the label of a link to a word of the translation "
            "is 'sure' or 'possible'.",
        ),
    ],
)
def test_a_document_checks_its_alignment(alignment: Link, translation: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(CorpusError) as caught:
        Document("d", ("a", "b"), translation=translation, alignment=(alignment,))
    assert str(caught.value) == sentence


def test_words_of_a_translation_are_checked_as_those_of_the_text() -> None:
    with pytest.raises(CorpusError, match=r"^document 'd' has an empty word in its translation; a word has at least"):
        summarize([Document("d", ("a",), translation=("b", " "))])
    with pytest.raises(CorpusError, match=r"half of a character"):
        summarize([Document("d", ("a",), translation=("b\ud800",))])


def test_a_pair_is_cut_on_both_sides() -> None:
    pair = Document(
        "d", ("a", "b", "c"), translation=("d", "e", "f", "g"), alignment=(link(0, 3, "sure"), link(1, 0, "sure"))
    )
    assert pair.truncate(2) == Document("d", ("a", "b"), translation=("d", "e"), alignment=(link(1, 0, "sure"),))


def test_a_document_without_a_translation_keeps_its_hash_and_one_with_it_has_another() -> None:
    plain = Document("d", ("a",), label="x")
    assert repr(plain) == "Document(id='d', words=('a',), links=(), spans=(), label='x', group='', boundary=None)"
    pair = Document("d", ("a",), label="x", translation=("b",), alignment=(link(0, 0, "sure"),))
    assert repr(pair).startswith(f"{repr(plain)[:-1]}, translation=('b',), alignment=(Link(source=0, target=0, ")
    assert (
        len({hash_documents([each]) for each in (plain, pair, Document("d", ("a",), label="x", translation=("c",)))})
        == 3
    )
