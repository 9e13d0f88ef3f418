"""The rule by part of speech against loops over the words of a text, and its sums in a table."""

import random
from dataclasses import replace

import numpy as np
import pytest

import tiny
from headscope.capture.model.model import Model
from headscope.corpora import summarize
from headscope.corpora.document import Document, Link, Span
from headscope.reducers.relations import DIRECTIONS, Relations
from headscope.reducers.support.folds import FOLDS, FoldAssignment
from headscope.reducers.support.nearest import CLASSES, SIDES, find_by_class
from headscope.runner import measure
from witnesses.relations import PARTS_OF_SPEECH, PLACES, WORD_CLASSES, links_by_rule

TAGS = (*PARTS_OF_SPEECH, "CONJ", "_")
"""The last two are no universal parts of speech."""


def text(seed: int, length: int = 37, known: float = 0.8) -> Document:
    """A text of which most words have a part of speech, with links between any two words."""
    draw = random.Random(seed)
    spans = [Span(w, w + 1, draw.choice(TAGS), "upos") for w in range(length) if draw.random() < known]
    spans += [Span(w, w + 1, "NOUN", "xpos") for w in range(0, length, 5)]  # not of this kind
    ends = [draw.sample(range(length), 2) for _ in range(101)]
    ends += [(w, w + step) for w in range(1, length - 1) for step in (-1, 1)]
    return Document(str(seed), ("a",) * length, tuple(Link(*pair, "dep") for pair in ends), tuple(spans))


def test_the_classes_are_those_of_the_witness() -> None:
    assert tuple(WORD_CLASSES) == CLASSES
    assert SIDES == PLACES


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize(("seed", "known"), [(3, 0.8), (5, 0.8), (7, 0.3), (11, 1.0), (13, 0.0)])
def test_the_rule_is_what_a_loop_over_words_finds(seed: int, known: float, is_causal: bool) -> None:
    document = text(seed, known=known)
    found = find_by_class(document, document.links, is_causal=is_causal)
    assert found.shape == (len(document.links), len(DIRECTIONS), len(SIDES), len(CLASSES))
    every = links_by_rule(document, is_causal=is_causal)
    for place, key in enumerate(np.ndindex(found.shape[1:])):
        direction, side, word_class = DIRECTIONS[key[0]], SIDES[key[1]], CLASSES[key[2]]
        expected = [hit for _, hit in every[direction, side, word_class]]
        np.testing.assert_array_equal(found[(slice(None), *key)], expected, err_msg=str(place))
    if known:
        assert found.any(0).mean() > 0.4  # many rules find some link
        assert ((found == 1).any((0, 3)) & (found < 1).any((0, 3))).all()  # in each direction and on each side
    else:
        assert ((found == 1) | (found <= 0.5)).all()  # a guess, or the word beside


def test_a_rule_that_finds_no_such_word_is_as_good_as_a_guess_or_as_the_word_beside() -> None:
    """Closed forms: a link from the third of five words to the fourth, and no word has a part of speech."""
    document = Document("1", tuple("abcde"), (Link(2, 3, "dep"),))
    (found,) = find_by_class(document, document.links)
    assert (found[0, :4] == 1 / 4).all()
    assert [found[0, 4 + side, 0] for side in range(4)] == [0, 1, 0, 1]
    (found,) = find_by_class(document, document.links, is_causal=True)
    assert found[:, 0, 0].tolist() == [1 / 2, 1 / 3]  # two words stand before the third, three before the fourth


def test_a_text_without_links_has_no_answers() -> None:
    assert find_by_class(replace(text(17), links=()), ()).shape == (0, 2, 8, len(CLASSES))


def test_the_sums_of_a_table_are_those_of_the_loop() -> None:
    documents = tiny.documents(23)
    table = measure(Model.from_module(*tiny.make("bert"), name="bert"), documents, ["relations"])
    assignment = FoldAssignment.for_corpus(summarize(documents))
    rows = {str(name): {} for name in table["relation"].values}
    for document in documents:
        for key, links in links_by_rule(document).items():
            for label, hit in links:
                names = [label, *(["all"] * (label != "punct")), f"{label.split(':')[0]}:*"]
                for name in filter(rows.__contains__, names):
                    sums = rows[name].setdefault(key, np.zeros(FOLDS))
                    sums[assignment.fold(document)] += hit
    for name, expected in rows.items():
        for (direction, side, word_class), sums in expected.items():
            place = {"relation": name, "direction": direction, "side": side, "word_class": word_class}
            np.testing.assert_allclose(table["fold_upos"].sel(place).values, sums, rtol=1e-12, err_msg=str(place))
    assert (table["fold_upos"] <= table["fold_link"] + 1e-9).all()
    assert table["fold_upos"].sum() > 101
    assert table["fold_upos"].dims == ("direction", "relation", "fold", "side", "word_class")


def test_a_link_whose_end_has_no_token_is_not_counted() -> None:
    # WordPiece drops the words 2 and 4.
    document = tiny.tokenless_document()
    spans = tuple(Span(word, word + 1, "NOUN", "upos") for word in range(len(document.words)))
    table = measure(Model.from_module(*tiny.make("bert"), name="bert"), [replace(document, spans=spans)], ["relations"])
    row = table.sel(relation="all")
    assert 0 < row["fold_link"].sum() < len(document.links)
    assert (row["fold_upos"].sum("fold") <= row["fold_link"].sum("fold")).all()


def test_a_corpus_without_parts_of_speech_has_no_such_rule() -> None:
    documents = [replace(document, spans=()) for document in tiny.documents(7)]
    reducer = Relations.for_corpus(summarize(documents))
    assert not reducer.upos
    table = measure(Model.from_module(*tiny.make("bert"), name="bert"), documents, [reducer])
    assert "fold_upos" not in table
    assert not {"side", "word_class"} & set(table.dims)
    assert Relations.for_corpus(summarize(tiny.documents(7))).upos
