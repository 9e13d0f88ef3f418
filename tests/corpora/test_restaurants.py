"""The restaurants of SemEval-2014: the published counts, and what a pattern finds in the file."""

import html
import re
from collections import Counter

import pytest

from headscope.corpora import Document
from headscope.corpora.semeval import CATEGORIES, NO_ASPECT

pytestmark = pytest.mark.data


def covered(document: Document) -> list[str]:
    return [" ".join(document.words[span.start : span.end]) for span in document.spans if span.kind == "aspect"]


def tally(positive: int, negative: int, neutral: int, conflict: int) -> dict[str, int]:
    return {"positive": positive, "negative": negative, "neutral": neutral, "conflict": conflict}


@pytest.mark.parametrize(
    ("part", "sentences", "with_terms", "terms", "polarities", "categories", "repeated"),
    [
        # Counts of data/absa/README.md, which counts what is listed: two sentences list a category twice.
        (
            "Train",
            3044,
            2023,
            tally(2164, 807, 637, 91),
            tally(2178, 839, 501, 196),
            (1233, 597, 319, 432, 1133),
            {"anecdotes/miscellaneous": 2, "positive": 2},
        ),
        ("Test_Gold", 800, 606, tally(728, 196, 196, 14), tally(657, 222, 94, 52), (418, 172, 83, 118, 234), {}),
    ],
)
def test_restaurants_have_the_published_counts(
    data, read_real, part, sentences, with_terms, terms, polarities, categories, repeated
):
    (parts,) = read_real("semeval", data / f"absa/semeval2014/Restaurants_{part}.xml").values()
    documents = [document for document in parts if isinstance(document, Document)]
    assert len(documents) == len({document.id for document in documents}) == 5 * sentences
    assert len({document.group for document in documents}) == sentences
    for document in documents:
        text = document.written
        assert document.words == tuple(text.content[start:stop] for start, stop in text.offsets)
        assert text.content.startswith(" ".join(document.words[: document.boundary]) + " ")
    asked = {category: documents[i::5] for i, category in enumerate(CATEGORIES)}
    for pairs in asked.values():
        aspects = [[span.label for span in document.spans if span.kind == "aspect"] for document in pairs]
        assert sum(map(bool, aspects)) == with_terms
        assert Counter(label for labels in aspects for label in labels) == terms
    found = Counter(document.label for document in documents if document.label != "none")
    assert found + Counter(positive=repeated.get("positive", 0)) == polarities
    for category, listed in zip(CATEGORIES, categories, strict=True):
        questions = {span for document in asked[category] for span in document.spans if span.kind == "asked"}
        assert [span.label for span in questions] == ([category] * (category != NO_ASPECT))
        assert sum(document.label != "none" for document in asked[category]) == listed - repeated.get(category, 0)


@pytest.mark.parametrize(("part", "cut"), [("Train", 15), ("Test_Gold", 1)])
def test_terms_are_those_that_a_pattern_finds_in_the_file(data, read_real, part, cut):
    path = data / f"absa/semeval2014/Restaurants_{part}.xml"
    raw = path.read_text(encoding="utf-8")
    found = [
        (html.unescape(term), polarity)
        for term, polarity in re.findall(r'<aspectTerm term="(.*?)" polarity="(\w+)"', raw)
    ]
    documents = [document for document in read_real("semeval", path)[path] if isinstance(document, Document)][::5]
    texts = [text for document in documents for text in covered(document)]
    labels = [span.label for document in documents for span in document.spans if span.kind == "aspect"]
    assert labels == [polarity for _, polarity in found]
    # Some terms end inside a word, most by a slip of one letter ("sushi plat"): those cover more than their text.
    longer = [
        (term, text)
        for (term, _), text in zip(found, texts, strict=True)
        if "".join(term.split()) != "".join(text.split())
    ]
    assert len(longer) == cut
    assert all("".join(term.split()) in "".join(text.split()) for term, text in longer)
    reviews = [re.sub(r"\s", "", "".join(document.words[document.boundary :])) for document in documents]
    assert reviews == [re.sub(r"\s", "", html.unescape(text)) for text in re.findall(r"<text>(.*?)</text>", raw)]


@pytest.mark.parametrize(
    ("part", "told", "untold", "of_both"), [("Train", 2451, 1248, 360), ("Test_Gold", 779, 355, 112)]
)
def test_the_category_of_two_terms_in_three_can_be_told(data, read_real, part, told, untold, of_both):
    (parts,) = read_real("semeval", data / f"absa/semeval2014/Restaurants_{part}.xml").values()
    documents = [document for document in parts if isinstance(document, Document)]
    kinds = [Counter(span.kind for span in document.spans) for document in documents]
    assert sum(kind["same_aspect"] for kind in kinds) == told
    # Each is another aspect's in the pairs of the three other aspects.
    assert sum(kind["other_aspect"] for kind in kinds) == 3 * told
    assert len(parts) - len(documents) == untold
    assert sum(bool(kind["same_aspect"] and kind["other_aspect"]) for kind in kinds) == of_both
    for document, kind in zip(documents, kinds, strict=True):
        terms = {(span.start, span.end, span.label) for span in document.spans if span.kind == "aspect"}
        told_here = [span for span in document.spans if span.kind in ("same_aspect", "other_aspect")]
        assert terms >= {(span.start, span.end, span.label) for span in told_here}
        assert not kind["same_aspect"] or document.label != "none"
