"""Retrieval heads: naive loops over the maps of the model itself, and worlds of heads."""

from collections.abc import Sequence

import numpy as np
import pytest
import xarray as xr

import tiny
import witnesses
from causal_heads import Scores, attend_evenly, build, like_tokens, look_at_place, look_back, look_nearby
from family_maps import make, see_all
from headscope.corpora import Document, Span, read, summarize
from headscope.errors import CorpusError
from headscope.reducers import REDUCERS, Retrieval
from headscope.reducers.retrieval import NEEDLES
from headscope.runner import Plan, measure

ANSWER, OTHERS = 3, 5


def hide(number: int) -> Document:
    """Random words of the tiny tokenizers, in which the answer stands, and four others or fewer beside it."""
    random = np.random.default_rng(number)
    vocabulary = sorted({word for document in tiny.documents(7) for word in document.words})
    needles = [tuple(random.choice(vocabulary[:OTHERS], ANSWER, replace=False)) for _ in range(number % 4 + 1)]
    asked, words, spans = number % len(needles), [], []
    for place, needle in enumerate(needles):
        words += [str(word) for word in random.choice(vocabulary, int(random.integers(1, 4)))]
        kind = "needle" if place == asked else "other needle"
        spans.append(Span(len(words), len(words) + ANSWER, kind, kind))
        words += map(str, needle)
    words += [str(random.choice(vocabulary)), *map(str, needles[asked])]
    spans.append(Span(len(words) - ANSWER, len(words), "answer", "answer"))
    return Document(f"hidden {number}", tuple(words), spans=tuple(spans))


DOCUMENTS = [*map(hide, range(19)), *tiny.documents(23)]


@pytest.mark.parametrize("family", tiny.FAMILIES)
@pytest.mark.parametrize(
    "plan", [Plan(), Plan(batch_tokens=1, rows=3), Plan(fused=True)], ids=["batched", "3 rows", "fused"]
)
def test_shares_equal_naive_loops(family: str, plan: Plan) -> None:
    seen = see_all(family, tuple(DOCUMENTS))
    table = measure(make(family), DOCUMENTS, ["retrieval"], plan=plan)
    for attention_type, maps in seen.items():
        ours = table
        if "attention_type" in table.dims:
            ours = table.sel(attention_type=attention_type).isel(layer=slice(0, len(maps[0].weights)))
        for name, expected in witnesses.retrieval(maps).items():
            row = ours.sel(answer=name)
            assert int(row["retrieval_count"]) == expected.count > 10
            np.testing.assert_array_equal(row["retrieval_accuracy"].transpose("layer", "head"), expected.share)
            assert row["fold_retrieved_needle"].sum("fold").values.tolist() == expected.needle
            assert row["fold_retrieved_match"].sum("fold").values.tolist() == expected.match
        assert sum(witnesses.retrieval(maps)["later tokens"].match) > 0


def ask(number: int) -> Document:
    """Random tokens with four needles of the same five tokens in them, the names before them, and a question.

    A needle is a name and four tokens; the question is the name of one of them.
    """
    random = np.random.default_rng(number)
    names, pool, filler = (random.permutation(part) for part in np.split(np.arange(50, 200), [30, 60]))
    tokens, spans, needles = [], [], [[*random.permutation(pool[:5])[:4]] for _ in NEEDLES]
    asked = int(random.integers(len(NEEDLES)))
    for place, needle in enumerate(needles):
        tokens += [*filler[place * 9 :][: int(random.integers(1, 9))], names[place]]
        kind = "needle" if place == asked else "other needle"
        spans.append(Span(len(tokens), len(tokens) + 4, kind, kind))
        tokens += needle
    tokens += [*filler[40 : 40 + int(random.integers(1, 9))], names[asked], *needles[asked]]
    spans.append(Span(len(tokens) - 4, len(tokens), "answer", "answer"))
    places = tuple((int(token) + 0.5) / 211 for token in tokens)
    return Document(str(number), tuple(f"t{token}" for token in tokens), spans=tuple(spans), random_tokens=places)


def follow(which: int, strength: float = 9) -> Scores:
    """To the token behind an earlier place of the same token, such as the last one (-1): an induction head."""

    def attend(ids: Sequence[int]) -> np.ndarray:
        scores = np.zeros((len(ids), len(ids)))
        for place, token in enumerate(ids):
            earlier = [other for other in range(place) if ids[other] == token and other + 1 < place]
            if earlier:
                scores[place, earlier[which] + 1] = strength
        return scores

    return attend


def retrieve(strength: float = 9) -> Scores:
    """To what comes next in the needle of which the name was asked for; evenly before the question."""

    def attend(ids: Sequence[int]) -> np.ndarray:
        scores = np.zeros((len(ids), len(ids)))
        question = len(ids) - 5
        named = next(place for place in range(question) if ids[place] == ids[question])
        for step in range(5):
            scores[question + step, named + 1 + step] = strength
        return scores

    return attend


IGNORANT = [attend_evenly, like_tokens, look_back(1), look_back(30), look_at_place(0), look_nearby(9.0), follow(-1),
            follow(0)]  # fmt: skip
"""Heads that attend evenly, to liked tokens, to a place, at a distance, nearby, or to what followed the same token."""


def judge(heads: Sequence[Scores], documents: Sequence[Document]) -> xr.Dataset:
    model = make("gpt2")
    return build(Retrieval.for_corpus(summarize(documents)), model, heads, documents)


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    return [ask(number) for number in range(150)]


def test_no_head_stands_out_that_does_not_know_the_question(documents: list[Document]) -> None:
    """Where the question's name comes again, what followed it is the answer, and so an induction head finds it."""
    table = judge(IGNORANT, documents)
    assert table["retrieval_reported_verdict"].values.tolist() == ["does not stand out"] * 2
    assert float(table["retrieval_accuracy"].sel(answer="later tokens", layer=1, head=7)) > 0.2
    assert float(table["retrieval_heldout_match_accuracy"].sel(answer="first token")) == 1


@pytest.mark.parametrize("strength", [9, 4])
def test_a_head_that_looks_up_the_answer_stands_out(documents: list[Document], strength: float) -> None:
    table = judge([*IGNORANT, retrieve(strength)], documents)
    row = table.sel(answer="later tokens")
    assert str(row["retrieval_reported_verdict"].item()) == "stands out"
    assert int(row["retrieval_reported_head"]) == len(IGNORANT) + 1


def test_a_corpus_without_needles_is_refused() -> None:
    assert not REDUCERS["retrieval"].supports(summarize(read("grammar:5")))
    sentence = (
        "the reducer `retrieval` needs spans of needles and answers, and the corpus has none; give the corpus "
        "`needles`, or measure `surface` only."
    )
    with pytest.raises(CorpusError) as refused:
        Retrieval.for_corpus(summarize(read("grammar:5")))
    assert str(refused.value) == sentence


def test_needles_that_are_longer_than_the_context_are_refused() -> None:
    model = make("gpt2")
    with pytest.raises(CorpusError, match=r"none of the 3 documents could be measured \(3 documents longer than"):
        measure(model, list(read("needles:3")), ["retrieval"])
