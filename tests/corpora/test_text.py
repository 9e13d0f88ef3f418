"""Plain text: which paragraphs are pairs, in three layouts."""

from itertools import pairwise

import pytest

from headscope.corpora import Document
from headscope.corpora.text import (
    read_lines,
    read_sentences,
    read_text_lines,
    read_text_wrapped,
    read_wikitext,
    recognise_text,
    recognise_text_lines,
    recognise_text_wrapped,
    recognise_wikitext,
)
from headscope.corpora.written_text import WrittenText
from headscope.errors import CorpusError

FILE = "book.txt"

READERS = [read_text_lines, read_text_wrapped, read_wikitext]


def letters(text: str) -> WrittenText:
    """A text whose words are single letters."""
    return WrittenText(text, tuple((place, place + 1) for place, letter in enumerate(text) if not letter.isspace()))


def test_lines_pair_with_the_next_line_but_not_across_an_empty_one(file):
    path = file("a b\n c d  e \nf g\n\nh i\n \t\nj\tk\nl m\n")
    assert list(read_text_lines(path, min_words=2)) == [
        Document("book.txt:1", tuple("abcde"), group="book.txt", boundary=2, written=letters("a b c d  e")),
        Document("book.txt:2", tuple("cdefg"), group="book.txt", boundary=3, written=letters("c d  e f g")),
        Document("book.txt:7", tuple("jklm"), group="book.txt", boundary=2, written=letters("j\tk l m")),
    ]


def test_each_line_is_a_sentence_by_itself(file):
    assert list(read_sentences(file("a b\n c\td e \nf\n"))) == [
        Document("book.txt:1", words=("a", "b"), written=letters("a b")),
        Document("book.txt:2", words=("c", "d", "e"), written=letters(" c\td e ")),
        Document("book.txt:3", words=("f",), written=letters("f")),
    ]


def test_empty_lines_part_the_texts_of_sentences(file):
    path = file("\na b\nc d\n\n \ne\n")
    assert [(document.id, document.group) for document in read_sentences(path)] == [
        ("book.txt:2", "book.txt:2"),
        ("book.txt:3", "book.txt:2"),
        ("book.txt:6", "book.txt:6"),
    ]


def test_two_long_lines_in_a_row_are_paragraphs():
    long, short = " ".join("w" * 20), " ".join("w" * 19)
    assert recognise_text_lines([short, long, long])
    assert not recognise_text_lines([long, short, long, "", long])
    assert not recognise_text_lines([])


def test_wrapped_lines_are_joined_and_pair_across_empty_lines(file):
    path = file("\na  b \n\tc\n\n\nd\ne\nf\n\ng h\n")
    assert list(read_text_wrapped(path, min_words=2)) == [
        Document("book.txt:2", tuple("abcdef"), group="book.txt", boundary=3, written=letters("a  b c d e f")),
        Document("book.txt:6", tuple("defgh"), group="book.txt", boundary=3, written=letters("d e f g h")),
    ]


def test_wikitext_pairs_within_a_section_and_groups_by_article(file):
    path = file(
        " \n = One = \n \n a b \n c d \n \n = = Part = = \n \n e f \n g h = i \n"
        " = = = Deeper = = = \n j k \n = Two @-@ fold = \n \n l m \n n o \n"
    )
    assert list(read_wikitext(path, min_words=2)) == [
        Document("book.txt:4", tuple("abcd"), group="book.txt:One", boundary=2, written=letters("a b c d")),
        Document("book.txt:9", tuple("efgh=i"), group="book.txt:One", boundary=2, written=letters("e f g h = i")),
        Document("book.txt:15", tuple("lmno"), group="book.txt:Two @-@ fold", boundary=2, written=letters("l m n o")),
    ]


def test_wikitext_before_the_first_title_belongs_to_the_file(file):
    (document,) = read_wikitext(file("a b\nc d\n"), min_words=1)
    assert document.group == "book.txt"


def test_a_line_of_wikitext_that_only_begins_or_ends_like_a_heading_is_text(file):
    (first, second) = read_wikitext(file(" = a b \n q = \n N / A = \n"), min_words=1)
    assert (first.words, second.words) == (("=", "a", "b", "q", "="), ("q", "=", "N", "/", "A", "="))


@pytest.mark.parametrize("read", READERS)
def test_both_paragraphs_need_the_least_number_of_words(file, read):
    separator = "\n\n" if read is read_text_wrapped else "\n"
    path = file(separator.join(" ".join("w" * length) for length in (20, 20, 19, 23, 29, 3)))
    assert [(len(pair.words), pair.boundary) for pair in read(path)] == [(40, 20), (52, 23)]
    assert [(len(pair.words), pair.boundary) for pair in read(path, min_words=19)] == [
        (40, 20),
        (39, 20),
        (42, 19),
        (52, 23),
    ]


@pytest.mark.parametrize("read", READERS)
def test_the_given_name_stands_in_ids_and_groups(file, read):
    (pair,) = read(file("a\n\nb\n" if read is read_text_wrapped else "a\nb\n"), name="sub/x", min_words=1)
    assert (pair.id, pair.group) == ("sub/x:1", "sub/x")


@pytest.mark.parametrize("read", READERS)
def test_byte_order_mark_and_windows_lines_change_nothing(file, read):
    text = "a b\nc d\n\ne f\n"
    plain = list(read(file(text), min_words=1))
    assert plain
    assert list(read(file("\ufeff" + text.replace("\n", "\r\n")), min_words=1)) == plain


def test_wikitext_is_recognised_by_a_title_before_anything_else():
    assert recognise_wikitext([" ", " = Homarus gammarus = ", " text "])
    assert not recognise_wikitext([" = = Section = = "])
    assert not recognise_wikitext(["text", " = Title = "])
    assert not recognise_wikitext([])


def test_wrapped_text_is_recognised_by_short_lines_in_several_paragraphs():
    short, long = "s" * 120, "l" * 121
    assert recognise_text_wrapped([short, short, "", short])
    assert not recognise_text_wrapped([short, short, short])
    assert not recognise_text_wrapped([short, "", short])
    assert not recognise_text_wrapped([short, long, "", short])
    assert recognise_text_wrapped([short, "", *[short] * 97, long])
    assert not recognise_text_wrapped([short, "", *[short] * 96, long, long])
    assert not recognise_text_wrapped([])


def test_text_is_recognised_by_anything_visible():
    assert recognise_text(["", "a"])
    assert not recognise_text(["", " \t"])


# Counts of data/text/README.md: all pairs, and those with both paragraphs of at least 20 words.
@pytest.mark.data
@pytest.mark.parametrize(
    ("file", "pairs", "articles", "all_pairs"),
    [("wiki.valid.tokens", 1088, 60, 1301), ("wiki.test.tokens", 1203, 62, 1567)],
)
def test_wikitext_has_the_counts_of_its_readme(data, file, pairs, articles, all_pairs):
    path = data / "text/wikitext-2" / file
    assert len(list(read_wikitext(path))) == pairs
    everything = list(read_wikitext(path, min_words=1))
    assert len(everything) == all_pairs
    lines = path.read_text(encoding="utf-8").split("\n")
    titles = [line for line in lines if line[:3] == " = " and line[-3:] == " = "]
    assert sum(line[3] != "=" for line in titles) == articles
    assert {pair.group.partition(":")[2] for pair in everything} <= {line[3:-3] for line in titles if line[3] != "="}
    texts = {" ".join(pair).strip() for pair in pairwise(line.strip() for line in lines if line.strip())}
    for pair in everything:
        assert pair.written.content in texts
        assert pair.words == tuple(pair.written.content[start:stop] for start, stop in pair.written.offsets)


@pytest.mark.data
def test_gum_has_the_counts_of_its_readme(data):
    files = sorted((data / "text/gum").glob("*.txt"))
    assert sum(1 for path in files for _ in read_text_lines(path, min_words=1)) == 667
    genres = {
        genre: sum(1 for path in files if path.name.startswith(f"GUM_{genre}_") for _ in read_text_lines(path))
        for genre in ("bio", "voyage", "whow", "news", "academic", "textbook", "essay")
    }
    assert genres == {
        "bio": 101,
        "voyage": 70,
        "whow": 2,
        "news": 144,
        "academic": 55,
        "textbook": 71,
        "essay": 88,
    }


@pytest.mark.data
def test_novels_have_the_count_of_their_readme(data):
    files = sorted((data / "text/litbank_original").glob("*.txt"))
    assert sum(1 for path in files for _ in read_text_wrapped(path)) == 5043
    # 14,477 paragraphs in 14 files of one run each
    assert sum(1 for path in files for _ in read_text_wrapped(path, min_words=1)) == 14477 - 14


def test_a_byte_order_mark_is_not_counted_where_a_bad_byte_is_named(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbfcaf\xe9 au lait\n")
    with pytest.raises(CorpusError, match=r"a\.txt:1 holds the byte 0xe9, which is not UTF-8;"):
        list(read_lines(path))
    path.write_bytes(b"\xef\xbb\xbfcafe\r\n\xef\xbb\xbfau lait")
    assert list(read_lines(path)) == [(1, "cafe"), (2, "\ufeffau lait")]
