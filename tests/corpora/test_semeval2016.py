"""Reviews of SemEval-2016 and 2015: a pair for each category, its targets, and what is skipped or refused."""

import re
from functools import partial
from xml.etree import ElementTree

import pytest

from headscope.corpora import Document, Skipped, Span, read, semeval2016
from headscope.corpora.semeval2016 import recognise
from refusals import refusal

FILE = "reviews.xml"
refused = partial(refusal, semeval2016.read)
OUT_OF_SCOPE = "sentences out of the scope of their domain"
WITHOUT_OPINIONS = "sentences without opinions"
OF_REVIEWS = "opinions on a whole review"


def opinion(target: str | None, category: str, polarity: str = "positive", start: object = 0, end: object = 0) -> str:
    name = "" if target is None else f'target="{target}" '
    return f'<Opinion {name}category="{category}" polarity="{polarity}" from="{start}" to="{end}"/>\n'


def sentence(identity: str, text: str, *opinions: str, scope: str = "") -> str:
    """A sentence, its text on the second line, its first opinion on the fourth."""
    listed = f"<Opinions>\n{''.join(opinions)}</Opinions>\n" if opinions else ""
    return f'<sentence id="{identity}"{scope}>\n<text>{text}</text>\n{listed}</sentence>\n'


def reviews(*sentences: str, further: str = "") -> str:
    """The first sentence begins on the fifth line."""
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<Reviews>\n<Review rid="1004293">\n<sentences>\n'
        f"{''.join(sentences)}</sentences>\n{further}</Review>\n</Reviews>\n"
    )


REVIEW = reviews(
    sentence(
        "1:0",
        "Good sushi &amp; rice, sushi too dear!",
        opinion("sushi", "FOOD#QUALITY", "positive", 5, 10),
        opinion("rice", "FOOD#QUALITY", "negative", 13, 17),
        opinion("sushi", "FOOD#PRICES", "negative", 19, 24),
        opinion("sushi", "FOOD#PRICES", "negative", 19, 24),
        opinion("sushi", "FOOD#STYLE_OPTIONS", "neutral", 5, 10),
    ),
    sentence("1:1", "Never again.", opinion("NULL", "RESTAURANT#GENERAL", "negative")),
    sentence("1:2", "Ignore this.", scope=' OutOfScope="TRUE"'),
    sentence("1:3", "We came at ten."),
)


def of(document: Document, kind: str) -> list[tuple[int, int, str]]:
    boundary = document.boundary
    return [(span.start - boundary, span.end - boundary, span.label) for span in document.spans if span.kind == kind]


def test_a_sentence_is_asked_about_each_category_of_its_file(file):
    path = file(REVIEW)
    parts = list(semeval2016.read(path, name="sub/r"))
    assert [part for part in parts if isinstance(part, Skipped)] == [
        Skipped(f"{path}:21", OUT_OF_SCOPE),
        Skipped(f"{path}:24", WITHOUT_OPINIONS),
    ]
    documents = [part for part in parts if isinstance(part, Document)]
    assert [(document.id, document.label) for document in documents] == [
        ("sub/r:1:0:FOOD#QUALITY", "conflict"),
        ("sub/r:1:0:FOOD#PRICES", "negative"),
        ("sub/r:1:0:FOOD#STYLE_OPTIONS", "neutral"),
        ("sub/r:1:0:RESTAURANT#GENERAL", "none"),
        ("sub/r:1:1:FOOD#QUALITY", "none"),
        ("sub/r:1:1:FOOD#PRICES", "none"),
        ("sub/r:1:1:FOOD#STYLE_OPTIONS", "none"),
        ("sub/r:1:1:RESTAURANT#GENERAL", "negative"),
    ]
    assert {document.group for document in documents} == {"sub/r:1004293"}
    style = documents[2]
    words = "what do you think of the food style options of it ? Good sushi & rice , sushi too dear !"
    assert style.words == style.text.words == tuple(words.split())
    assert (
        style.text.content == "what do you think of the food style options of it ? Good sushi & rice, sushi too dear!"
    )
    assert style.spans[0] == Span(6, 9, "FOOD#STYLE_OPTIONS", "asked")
    assert style.boundary == 12


def test_targets_are_of_the_categories_of_their_opinions(file):
    quality, prices, style, general, *_, null = semeval2016.read(
        file(REVIEW.partition('<sentence id="1:2"')[0] + "</sentences></Review></Reviews>")
    )
    every = [(1, 2, "neutral"), (1, 2, "positive"), (3, 4, "negative"), (5, 6, "negative")]
    for document in (quality, prices, style, general):
        assert of(document, "aspect") == every
    assert of(quality, "same_aspect") == [(1, 2, "positive"), (3, 4, "negative")]
    assert of(quality, "other_aspect") == [(5, 6, "negative")]
    assert of(prices, "same_aspect") == [(5, 6, "negative")]
    assert of(prices, "other_aspect") == every[:3]
    # A target of this category is of no other, with whatever polarity.
    assert of(style, "same_aspect") == [(1, 2, "neutral")]
    assert of(style, "other_aspect") == every[2:]
    assert (of(general, "same_aspect"), of(general, "other_aspect")) == ([], every)
    # NULL has no span.
    assert [span.kind for span in null.spans] == ["asked"]


def test_opinions_without_a_target_and_on_reviews_are_those_of_laptops(file):
    path = file(
        reviews(
            sentence("a", "Fast.", opinion(None, "LAPTOP#OPERATION_PERFORMANCE")),
            further=f"<Opinions>\n{opinion(None, 'LAPTOP#GENERAL', 'conflict')}</Opinions>\n",
        )
    )
    skipped, document = semeval2016.read(path)
    assert skipped == Skipped(f"{path}:13", OF_REVIEWS)
    assert (document.id, document.label, len(document.spans)) == (
        "reviews.xml:a:LAPTOP#OPERATION_PERFORMANCE",
        "positive",
        1,
    )
    assert document.words[6:9] == ("laptop", "operation", "performance")


def test_labels_and_targets_are_those_that_a_loop_over_the_file_finds(file):
    path = file(REVIEW)
    root = ElementTree.parse(path)
    categories = dict.fromkeys(each.get("category") for each in root.iter("Opinion"))
    expected = {}
    for element in root.iter("sentence"):
        opinions = list(element.iter("Opinion"))
        for category in categories if opinions else ():
            polarities = {each.get("polarity") for each in opinions if each.get("category") == category}
            label = "none" if not polarities else polarities.pop() if len(polarities) == 1 else "conflict"
            targets = {
                (each.get("target"), each.get("polarity"))
                for each in opinions
                if each.get("category") == category and each.get("target") != "NULL"
            }
            expected[f"reviews.xml:{element.get('id')}:{category}"] = label, targets
    assert {
        document.id: (
            document.label,
            {
                (" ".join(document.words[span.start : span.end]), span.label)
                for span in document.spans
                if span.kind == "same_aspect"
            },
        )
        for document in read(path)
    } == expected
    assert len(expected) == 8


def test_byte_order_mark_windows_lines_and_one_single_line_change_nothing(file):
    plain = list(read(file(REVIEW)))
    assert len(plain) == 8
    assert list(read(file("\ufeff" + REVIEW.replace("\n", "\r\n")))) == plain
    assert list(read(file(REVIEW.replace("\n", "")))) == plain


@pytest.mark.parametrize(
    ("faulty", "message"),
    [
        (
            opinion("rice", "FOOD#QUALITY", "positive", 4, 8),
            "has the target 'rice', but the characters 4 to 8 of its text are ' ric'; the offsets of a target cut it "
            "out of the text: correct them.",
        ),
        (
            opinion("rice", "FOOD#QUALITY", "positive", -5, 9),
            "has the offsets '-5' and '9'; SemEval-2016 counts the characters of the text from 0: write two whole "
            "numbers.",
        ),
        (
            opinion("NULL", "food"),
            "has the category 'food'; SemEval-2016 names an entity and one of its attributes, such as 'FOOD#QUALITY': "
            "correct it.",
        ),
        (
            opinion("NULL", "FOOD#QUALITY", "good"),
            "has the polarity 'good'; SemEval-2016 has positive, negative, neutral, conflict: correct it.",
        ),
        (
            '<Opinion target="rice" category="FOOD#QUALITY" polarity="positive"/>\n',
            "has <Opinion> with no attribute 'from', which SemEval-2016 needs: add its value.",
        ),
        (
            '<Opinion target="" category="FOOD#QUALITY" polarity="positive"/>\n',
            "has <Opinion> with an empty attribute 'target', which SemEval-2016 needs: add its value.",
        ),
        (
            "<Holder/>\n",
            "has <Holder> in <Opinions>, where SemEval-2016 has <Opinion>: correct it, or name the format that the "
            "file is in.",
        ),
    ],
)
def test_a_faulty_opinion_is_refused(file, faulty, message):
    path = file(reviews(sentence("a", "Good rice.", faulty)))
    assert refused(path) == f"{path}:8 {message}"


def test_a_review_without_an_id_is_refused(file):
    path = file(REVIEW.replace(' rid="1004293"', ""))
    assert refused(path) == f"{path}:3 has <Review> with no attribute 'rid', which SemEval-2016 needs: add its value."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (REVIEW, True),
        (REVIEW.replace("\n", ""), True),
        ("<sentences>\n<sentence><text>", False),
        ("<Reviews>\n<Review>\n<text>", False),
        (re.sub("R", "r", REVIEW), False),
        ("", False),
    ],
)
def test_reviews_of_sentences_are_recognised(text, expected):
    assert recognise(text.split("\n")) is expected
