"""Reviews and their aspects: the five pairs of a sentence, where its terms are, and what is refused at which line."""

import re
from functools import partial
from pathlib import Path

import pytest

import headscope
from headscope.corpora import Document, Skipped, Span, summarize
from headscope.corpora.semeval import read, recognise
from headscope.corpora.written_text import WrittenText
from headscope.errors import CorpusError, quote
from refusals import refusal

refused = partial(refusal, read)

SOUP = """\
<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<sentences>
    <sentence id="7">
        <text>Soup &amp; bread: the chef's soup wasn't hot!</text>
        <aspectTerms>
            <aspectTerm term="Soup" polarity="conflict" from="0" to="4"/>
            <aspectTerm term="chef" polarity="neutral" from="18" to="22"/>
            <aspectTerm term="soup" polarity="negative" from="25" to="29"/>
        </aspectTerms>
        <aspectCategories>
            <aspectCategory category="food" polarity="conflict"/>
            <aspectCategory category="anecdotes/miscellaneous" polarity="neutral"/>
        </aspectCategories>
    </sentence>
</sentences>
"""
REVIEW = ("Soup", "&", "bread", ":", "the", "chef", "'s", "soup", "wasn't", "hot", "!")
WRITTEN = WrittenText(
    "what do you think of the food of it ? Soup & bread: the chef's soup wasn't hot!",
    (
        *((0, 4), (5, 7), (8, 11), (12, 17), (18, 20), (21, 24), (25, 29), (30, 32), (33, 35), (36, 37)),
        *((38, 42), (43, 44), (45, 50), (50, 51), (52, 55), (56, 60), (60, 62), (63, 67), (68, 74), (75, 78), (78, 79)),
    ),
)


def sentence(text: str, *terms: str, category: str = '"food" polarity="positive"', id: str = '"1"') -> str:
    """A sentence in eight lines and one for each term: the text is on its second, the first term on its fourth."""
    listed = "".join(f"<aspectTerm {term}/>\n" for term in terms)
    return (
        f"<sentence id={id}>\n<text>{text}</text>\n<aspectTerms>\n{listed}</aspectTerms>\n"
        f"<aspectCategories>\n<aspectCategory category={category}/>\n</aspectCategories>\n</sentence>\n"
    )


def term(text: str, start: object, end: object, polarity: str = "positive") -> str:
    return f'term="{text}" polarity="{polarity}" from="{start}" to="{end}"'


@pytest.fixture
def file(tmp_path: Path):
    path = tmp_path / "reviews.xml"

    def write(sentences: str, *, whole: bool = False) -> Path:
        path.write_text(sentences if whole else f"<sentences>\n{sentences}</sentences>\n", encoding="utf-8")
        return path

    return write


def covered(document: Document) -> list[str]:
    return [" ".join(document.words[span.start : span.end]) for span in document.spans if span.kind == "aspect"]


def test_a_sentence_is_asked_about_each_of_the_five_categories(file):
    path = file(SOUP, whole=True)
    *untold, food, _, _, _, anecdotes = read(path, name="sub/r")
    # What is said of miscellaneous matters (the chef) is of no aspect, as is what nothing is said of.
    reason = "aspect terms whose category is unclear (the pairs are used)"
    assert untold == [Skipped(f"{path}:{line}", reason) for line in (7, 8)]
    documents = list(read(path, name="sub/r"))[2:]
    assert [(document.id, document.label) for document in documents] == [
        ("sub/r:7:food", "conflict"),
        ("sub/r:7:service", "none"),
        ("sub/r:7:price", "none"),
        ("sub/r:7:ambience", "none"),
        ("sub/r:7:anecdotes/miscellaneous", "neutral"),
    ]
    assert {document.group for document in documents} == {"sub/r:7"}
    assert food == Document(
        "sub/r:7:food",
        words=("what", "do", "you", "think", "of", "the", "food", "of", "it", "?", *REVIEW),
        spans=(
            Span(6, 7, "food", "asked"),
            Span(10, 11, "conflict", "aspect"),
            Span(15, 16, "neutral", "aspect"),
            Span(17, 18, "negative", "aspect"),
            Span(10, 11, "conflict", "same_aspect"),
        ),
        label="conflict",
        group="sub/r:7",
        boundary=10,
        written=WRITTEN,
    )
    assert anecdotes.words[6:12] == ("anecdotes", "/", "miscellaneous", "of", "it", "?")
    assert anecdotes.text.content == WRITTEN.content.replace("the food", "the anecdotes / miscellaneous")
    assert anecdotes.words[anecdotes.boundary :] == REVIEW
    # They are no aspect, so nothing of theirs is asked.
    assert [(span.start, span.label, span.kind) for span in anecdotes.spans] == [
        (12, "conflict", "aspect"),
        (17, "neutral", "aspect"),
        (19, "negative", "aspect"),
    ]


def test_a_term_is_of_the_category_that_it_names_or_else_that_alone_has_its_polarity(file):
    terms = [
        term("Price", 0, 5), term("food stalls", 6, 17, "neutral"), term("waiters", 18, 25, "negative"),
        term("tables", 26, 32), term("price of food", 33, 46), term("door", 47, 51, "conflict"),
    ]  # fmt: skip
    listed = (
        '"food" polarity="positive"/><aspectCategory category="service" polarity="negative"/>'
        '<aspectCategory category="price" polarity="positive"/>'
        '<aspectCategory category="anecdotes/miscellaneous" polarity="conflict"'
    )
    path = file(sentence("Price food stalls waiters tables price of food door", *terms, category=listed))
    *untold, food, service, price, ambience, _ = read(path)
    # Two categories are positive, two are named at once, and what is told of no aspect is of no aspect.
    assert [one.where for one in untold] == [f"{path}:{line}" for line in (8, 9, 10)]

    def of(document: Document, kind: str) -> list[str]:
        return [document.words[span.start] for span in document.spans if span.kind == kind]

    found = {one.spans[0].label: (of(one, "same_aspect"), of(one, "other_aspect")) for one in (food, service, price)}
    assert found == {
        "food": (["food"], ["Price", "waiters"]),
        "service": (["waiters"], ["Price", "food"]),
        "price": (["Price"], ["food", "waiters"]),
    }
    assert (ambience.label, of(ambience, "other_aspect")) == ("none", ["Price", "food", "waiters"])
    assert {(span.start, span.end, span.label) for span in food.spans if span.kind == "same_aspect"} == {
        (11, 13, "neutral")
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("half-price, (well) 20%", ["half-price", ",", "(", "well", ")", "20", "%"]),
        ("It's the chefs' or chef’s-", ["It", "'s", "the", "chefs", "'", "or", "chef", "’s", "-"]),
        ("I don't -- cliché...", ["I", "don't", "-", "-", "cliché", ".", ".", "."]),
        ("D'Angelo's rock'n'roll 'so so'", ["D'Angelo", "'s", "rock'n'roll", "'", "so", "so", "'"]),
        ("  two\tspaces  ", ["two", "spaces"]),
    ],
)
def test_words_keep_hyphens_and_apostrophes_inside_them_but_no_possessive(file, text, words):
    document = next(read(file(sentence(text))))
    assert list(document.words[document.boundary :]) == words


@pytest.mark.parametrize(
    ("text", "start", "cut", "expected"),
    [
        ("the sushi plate, here", 4, "sushi plat", "sushi plate"),
        ("salads-all good", 0, "salads", "salads-all"),
        ("an 'egg roll' here", 4, "egg roll", "egg roll"),
        ("try mahi (with rice)", 4, "mahi (with rice", "mahi ( with rice"),
    ],
)
def test_a_term_covers_every_word_that_it_has_a_part_in(file, text, start, cut, expected):
    assert covered(next(read(file(sentence(text, term(cut, start, start + len(cut))))))) == [expected]


def test_a_term_that_comes_twice_is_two_spans_in_every_pair(file):
    path = file(sentence("wine, more wine", term("wine", 0, 4), term("wine", 11, 15, "negative")))
    _, *documents = read(path)
    assert len(documents) == 5
    for document in documents:
        assert covered(document) == ["wine", "wine"]
        aspects = [span for span in document.spans if span.kind == "aspect"]
        assert [(span.start - document.boundary, span.label) for span in aspects] == [(0, "positive"), (3, "negative")]


def test_offsets_count_the_characters_that_the_markup_stands_for(file):
    path = file(sentence("&quot;Crème&quot; &#38; <![CDATA[<tea>]]> é", term("tea", 11, 14), term("é", 16, 17)))
    assert covered(next(read(path))) == ["tea", "é"]


def test_a_category_that_is_listed_twice_alike_counts_once(file):
    twice = '"food" polarity="negative"/><aspectCategory category="food" polarity="negative"'
    assert [document.label for document in read(file(sentence("Bad.", category=twice)))] == ["negative", *["none"] * 4]


def test_a_sentence_that_lists_no_category_is_skipped(file):
    path = file('<sentence id="a">\n<text>Fast disk.</text>\n</sentence>\n' + sentence("Good."))
    skipped, *documents = read(path)
    assert skipped == Skipped(f"{path}:2", "sentences without aspect categories")
    assert [document.group for document in documents] == ["reviews.xml:1"] * 5


def test_byte_order_mark_windows_lines_and_one_single_line_change_nothing(file):
    plain = list(read(file(SOUP, whole=True)))
    assert len(plain) == 7
    assert list(read(file("\ufeff" + SOUP.replace("\n", "\r\n"), whole=True))) == plain
    assert list(read(file(re.sub(r"\n *", "", SOUP), whole=True)))[2:] == plain[2:]


def test_sentences_before_a_fault_are_read(file):
    documents = read(file(sentence("Good.") + "<broken\n"))
    assert [next(documents).label for _ in range(5)] == ["positive", *["none"] * 4]
    with pytest.raises(CorpusError):
        next(documents)


@pytest.mark.parametrize(
    ("offsets", "came"),
    [((3, 7), "p of"), ((0, 3), "Sou"), ((8, 40), "the day"), ((5, 5), ""), ((90, 94), ""), ((4, 0), "")],
)
def test_offsets_that_do_not_cut_the_term_out_are_refused(file, offsets, came):
    path = file(sentence("Soup of the day", term("Soup", 0, 4), term("Soup", *offsets)))
    assert refused(path) == (
        f"{path}:6 has the term 'Soup', but the characters {offsets[0]} to {offsets[1]} of its text are {came!r}; "
        f"the offsets of a term cut it out of the text: correct them."
    )


@pytest.mark.parametrize("offsets", [(-4, 4), ("a", 4), (0, "4.0"), (0, "٤"), (0, "1" * 5000)])
def test_offsets_that_are_no_whole_numbers_are_refused(file, offsets):
    path = file(sentence("Soup", term("Soup", *offsets)))
    start, end = (quote(str(offset)) for offset in offsets)
    assert refused(path) == (
        f"{path}:5 has the offsets {start} and {end}; SemEval-2014 counts the characters of the text from 0: write two "
        "whole numbers."
    )


def test_a_polarity_outside_the_task_is_refused(file):
    path = file(sentence("Soup", term("Soup", 0, 4, "none")))
    assert refused(path) == (
        f"{path}:5 has the polarity 'none'; SemEval-2014 has positive, negative, neutral, conflict: correct it."
    )
    path = file(sentence("Soup", category='"food" polarity="Positive"'))
    assert refused(path) == (
        f"{path}:7 has the polarity 'Positive'; SemEval-2014 has positive, negative, neutral, conflict: correct it."
    )


def test_a_category_outside_the_task_is_refused(file):
    path = file(sentence("Soup", category='"drinks" polarity="positive"'))
    assert refused(path) == (
        f"{path}:7 has the category 'drinks'; the restaurants of SemEval-2014 have food, service, price, ambience, "
        f"anecdotes/miscellaneous: correct it."
    )


def test_a_category_with_two_polarities_is_refused(file):
    both = '"food" polarity="positive"/>\n<aspectCategory category="food" polarity="neutral"'
    path = file(sentence("Soup", category=both))
    assert refused(path) == (
        f"{path}:8 has the category 'food' as neutral, but its sentence has it as positive before; "
        f"a category needs one polarity: leave one out, or write 'conflict'."
    )


@pytest.mark.parametrize(
    ("faulty", "at", "element", "what"),
    [
        (sentence("Soup", id='" "'), 2, "sentence", "an empty attribute 'id'"),
        (sentence("Soup").replace(' id="1"', ""), 2, "sentence", "no attribute 'id'"),
        (sentence("Soup", 'polarity="positive" from="0" to="4"'), 5, "aspectTerm", "no attribute 'term'"),
        (sentence("Soup", term("", 0, 0)), 5, "aspectTerm", "an empty attribute 'term'"),
        (sentence("Soup", 'term="Soup" from="0" to="4"'), 5, "aspectTerm", "no attribute 'polarity'"),
        (sentence("Soup", 'term="Soup" polarity="positive" from="0"'), 5, "aspectTerm", "no attribute 'to'"),
        (sentence("Soup", category='"food"'), 7, "aspectCategory", "no attribute 'polarity'"),
    ],
)
def test_an_attribute_that_is_missing_is_refused(file, faulty, at, element, what):
    path = file(faulty)
    assert refused(path) == f"{path}:{at} has <{element}> with {what}, which SemEval-2014 needs: add its value."


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("<text> </text>", "1 text that is empty"),
        ("", "no text"),
        ("<text>a</text><text>b</text>", "2 texts"),
    ],
)
def test_a_sentence_without_exactly_one_text_is_refused(file, text, what):
    path = file(sentence("Soup", id='"2"') + sentence("Soup").replace("<text>Soup</text>", text))
    assert refused(path) == (
        f"{path}:10 has a sentence with {what}; SemEval-2014 needs one <text> with words in it: correct it."
    )


@pytest.mark.parametrize(
    ("text", "at", "what"),
    [
        ("\n<Reviews/>", 2, "<Reviews> outermost, where SemEval-2014 has <sentences>"),
        ("<sentences>\n<Review/></sentences>", 2, "<Review> in <sentences>, where SemEval-2014 has <sentence>"),
        (
            '<sentences>\n<sentence id="1">\n<Opinions/></sentence></sentences>',
            3,
            "<Opinions> in <sentence>, where SemEval-2014 has <text> or <aspectTerms> or <aspectCategories>",
        ),
        (
            '<sentences><sentence id="1"><text>so <b>good</b></text></sentence></sentences>',
            1,
            "<b> in <text>, where SemEval-2014 has no element",
        ),
    ],
)
def test_an_element_out_of_place_is_refused(file, text, at, what):
    path = file(text, whole=True)
    assert refused(path) == f"{path}:{at} has {what}: correct it, or name the format that the file is in."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (SOUP, True),
        ("<!-- a & b -->\n<!DOCTYPE sentences>\n" + SOUP.partition("\n")[2], True),
        (re.sub(r"\n *", "", SOUP), True),
        ("<sentences>\n<sentence", False),
        ("<treebank>\n<sentences><sentence><text>", False),
        ("sentences sentence text", False),
        ("", False),
    ],
)
def test_sentences_with_a_text_are_recognised(text, expected):
    assert recognise(text.split("\n")) is expected


def test_sentences_with_one_id_are_refused_on_one_line_too(file):
    path = file(f"<sentences>{(sentence('Good.') * 2).replace(chr(10), '')}</sentences>", whole=True)
    assert refused(path) == (
        f"{path}:1 has a sentence with the id '1', as line 1 has; a sentence needs an id of its own: rename one of "
        "them."
    )


def test_reviews_that_are_asked_the_same_are_not_nearly_the_same(file):
    different = [f"{dish} was good and {price} dear" for dish in ("Soup", "Rice", "Fish") for price in ("not", "so")]
    path = file("".join(sentence(text, id=f'"{number}"') for number, text in enumerate([*different, different[0]])))
    summary = summarize(headscope.read(path))
    assert (summary.documents, summary.texts, summary.originals.near) == (35, 6, {})
    longer = " ".join(f"w{number}" for number in range(20))
    path = file(sentence(longer, id='"a"') + sentence(f"{longer} too", id='"b"') + sentence("Good soup", id='"c"'))
    summary = summarize(headscope.read(path))
    assert (summary.texts, summary.originals.near) == (2, {"reviews.xml:b": "reviews.xml:a"})
