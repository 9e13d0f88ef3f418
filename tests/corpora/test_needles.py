"""Facts hidden in texts: what a text is made of, and that a seed gives the same ones."""

from collections import Counter

import pytest

from headscope.corpora import Document, read, summarize
from headscope.corpora.needles import ANSWER, NEEDLES, POOL


def spans(document: Document, kind: str) -> list[tuple[str, ...]]:
    return [document.words[span.start : span.end] for span in document.spans if span.kind == kind]


def test_each_text_asks_for_one_needle_and_answers() -> None:
    for document in read("needles:61:3"):
        (needle,), (answer,), others = (spans(document, kind) for kind in ("needle", "answer", "other needle"))
        assert needle == answer
        assert len(needle) == ANSWER
        assert len(others) == NEEDLES - 1
        assert len({*needle, *(word for other in others for word in other)}) <= POOL
        question = document.words[-ANSWER - 11 :]
        assert question[:6] == ("What", "are", "the", "secret", "words", "of")
        name = question[6]
        assert question[7:10] == ("?", "They", "are")
        where = next(span.start for span in document.spans if span.kind == "needle")
        assert document.words[where - 6 : where] == ("The", "secret", "words", "of", name, "are")
        introduced = [
            document.words[span.start - 2] for span in document.spans if span.kind in ("needle", "other needle")
        ]
        assert len({*introduced}) == NEEDLES


def test_a_seed_gives_the_same_texts() -> None:
    documents = list(read("needles:11:3"))
    assert documents == list(read("needles:11:3"))
    assert documents[:5] == list(read("needles:5:3"))
    assert documents[0].words != next(iter(read("needles:1:4"))).words
    assert summarize(documents).spans == {"needle": 11, "other needle": 33, "answer": 11}


@pytest.mark.full
def test_the_needle_that_is_asked_for_stands_anywhere() -> None:
    documents, orders, parts = list(read("needles:400")), Counter[int](), Counter[int]()
    for document in documents:
        needles = [span for span in document.spans if "needle" in span.kind]
        asked = next(place for place, span in enumerate(needles) if span.kind == "needle")
        orders[asked] += 1
        parts[needles[asked].start * 5 // len(document.words)] += 1
    assert all(70 < orders[place] < 130 for place in range(NEEDLES))
    assert all(40 < parts[part] < 130 for part in range(5))
