"""Reviews asked about their aspect terms: the laptops of SemEval-2014, and restaurants by their terms."""

import re
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import pytest

from headscope.corpora import Document, Skipped, Span, read, semeval_terms
from headscope.corpora.semeval_terms import recognise
from refusals import refusal

FILE = "laptops.xml"
refused = partial(refusal, semeval_terms.read)
WITHOUT_TERMS = "sentences without aspect terms"
ASKED = "what do you think of the {} of it ?"

LAPTOPS = """\
<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<sentences>
    <sentence id="2339">
        <text>Good screen &amp; hard drive, but the Screen's too small.</text>
        <aspectTerms>
            <aspectTerm term="screen" polarity="positive" from="5" to="11"/>
            <aspectTerm term="hard drive" polarity="positive" from="14" to="24"/>
            <aspectTerm term="Screen" polarity="negative" from="34" to="40"/>
        </aspectTerms>
    </sentence>
    <sentence id="812">
        <text>I bought it.</text>
    </sentence>
    <sentence id="9">
        <text>Price ok</text>
        <aspectTerms><aspectTerm term="Price" polarity="conflict" from="0" to="5"/></aspectTerms>
    </sentence>
</sentences>
"""


def test_a_sentence_is_asked_about_each_of_its_terms(file):
    path = file(LAPTOPS)
    screen, drive, skipped, price = semeval_terms.read(path, name="sub/l")
    assert skipped == Skipped(f"{path}:11", WITHOUT_TERMS)
    review = "Good screen & hard drive , but the Screen 's too small ."
    assert screen == Document(
        "sub/l:2339:screen",
        words=(*ASKED.format("screen").split(), *review.split()),
        spans=(
            Span(6, 7, "screen", "asked"),
            Span(11, 12, "positive", "aspect"),
            Span(13, 15, "positive", "aspect"),
            Span(18, 19, "negative", "aspect"),
            Span(11, 12, "positive", "same_aspect"),
            Span(18, 19, "negative", "same_aspect"),
            Span(13, 15, "positive", "other_aspect"),
        ),
        label="conflict",
        group="sub/l:2339",
        boundary=10,
        written=screen.written,
    )
    assert (
        screen.text.content
        == "what do you think of the screen of it ? Good screen & hard drive, but the Screen's too small."
    )
    assert screen.words == screen.text.words
    assert (drive.id, drive.label, drive.group) == ("sub/l:2339:hard drive", "positive", "sub/l:2339")
    assert drive.words[:11] == tuple(ASKED.format("hard drive").split())
    assert [(span.start, span.end, span.kind) for span in drive.spans if span.kind != "aspect"] == [
        (6, 8, "asked"),
        (14, 16, "same_aspect"),
        (12, 13, "other_aspect"),
        (19, 20, "other_aspect"),
    ]
    assert (price.id, price.label) == ("sub/l:9:Price", "conflict")


def test_terms_are_those_that_a_loop_over_the_file_finds(file):
    path = file(LAPTOPS)
    expected = []
    for sentence in ElementTree.parse(path).iter("sentence"):
        terms = [(term.get("term"), term.get("polarity")) for term in sentence.iter("aspectTerm")]
        for asked in dict.fromkeys(term.casefold() for term, _ in terms):
            same = [polarity for term, polarity in terms if term.casefold() == asked]
            expected.append((asked, same, len(terms) - len(same)))
    documents = [part for part in read(path) if isinstance(part, Document)]
    assert [
        (
            document.spans[0].label.casefold(),
            [span.label for span in document.spans if span.kind == "same_aspect"],
            sum(span.kind == "other_aspect" for span in document.spans),
        )
        for document in documents
    ] == expected
    assert len(expected) == 3


def test_byte_order_mark_windows_lines_and_one_single_line_change_nothing(file):
    plain = list(read(file(LAPTOPS)))
    assert len(plain) == 3
    assert list(read(file("\ufeff" + LAPTOPS.replace("\n", "\r\n")))) == plain
    assert list(read(file(re.sub(r"\n *", "", LAPTOPS)))) == plain


def test_offsets_that_do_not_cut_the_term_out_are_refused(file):
    path = file(LAPTOPS.replace('from="14" to="24"', 'from="18" to="28"'))
    assert refused(path) == (
        f"{path}:7 has the term 'hard drive', but the characters 18 to 28 of its text are ' drive, bu'; the offsets of "
        "a term cut it out of the text: correct them."
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (LAPTOPS, True),
        (re.sub(r"\n *", "", LAPTOPS), True),
        (LAPTOPS.replace("</aspectTerms>", "</aspectTerms><aspectCategories/>", 1), False),
        (re.sub("<aspectTerms>.*?</aspectTerms>", "", LAPTOPS, flags=re.DOTALL), False),
        ("<Reviews><Review><sentences><sentence><text/><aspectTerm/>", False),
        ("", False),
    ],
)
def test_sentences_with_terms_and_no_categories_are_recognised(text, expected):
    assert recognise(text.split("\n")) is expected


def test_a_file_is_read_as_what_it_annotates_unless_a_format_is_named(file):
    category = '<aspectCategories><aspectCategory category="food" polarity="positive"/></aspectCategories>'
    path = file(LAPTOPS)
    assert (read(path).format, read(path, format="semeval").format) == ("semeval-terms", "semeval")
    path = file(LAPTOPS.replace("</aspectTerms>", f"</aspectTerms>{category}", 1))
    assert read(path).format == "semeval"
    assert [document.label for document in read(path, format="semeval-terms")] == ["conflict", "positive", "conflict"]


@pytest.mark.data
def test_the_terms_of_the_restaurants_are_asked_about(data: Path, read_real):
    path = data / "absa/semeval2014/Restaurants_Test_Gold.xml"
    (parts,) = read_real("semeval-terms", path).values()
    terms = [
        {term.get("term").casefold() for term in sentence.iter("aspectTerm")}
        for sentence in ElementTree.parse(path).iter("sentence")
    ]
    documents = [part for part in parts if isinstance(part, Document)]
    assert len(documents) == sum(map(len, terms))
    assert len(parts) - len(documents) == terms.count(set()) == 800 - 606
    for document in documents:
        asked = next(span for span in document.spans if span.kind == "asked")
        for span in document.spans:
            if span.kind == "same_aspect":
                words = " ".join(document.words[span.start : span.end]).casefold()
                name = " ".join(document.words[asked.start : asked.end]).casefold()
                assert name in words or words in name
