"""Chains shifted along the mentions of a text: by hand, and against a rule that knows nothing of tensors."""

import numpy as np
import pytest
import torch

from headscope.capture.tokens.words import Pointing
from headscope.corpora.document import Document, Span
from headscope.reducers.support.antecedents import Mention, mentions_of
from headscope.reducers.support.permutations import Permutations
from headscope.reducers.support.shifts import ShiftedChains

PERMUTATIONS, HEADS = Permutations(199), 3
# The mentions in order: a wide and a narrow one with the head word 1, then those of the words 3, 5 and 7.
DOCUMENT = Document(
    "nested",
    ("the", "dog", "saw", "Rex", "and", "him", "near", "it", "."),
    spans=(
        Span(1, 2, "2", "mention"), Span(0, 2, "1", "mention"), Span(3, 4, "1", "mention"),
        Span(5, 6, "2", "mention"), Span(7, 8, "1", "mention"),
        Span(3, 4, "PROPN", "upos"), Span(7, 8, "PRON", "upos"),
    ),
)  # fmt: skip
TOKENLESS = 5
ANSWERS = {3: (1, 0, 7), 7: (1, 3, 5)}  # where three heads point from the words 3 and 7

# The chains of the five mentions after a shift by 0, 1, 2, 3 and 4 places: 12121, 21211, 12112, 21121, 11212.
# Word 1 is never scored, since no mention has a head word before; word 5 has no token.
SCORED = {"all": (2, 2, 2, 2, 1), "proper": (1, 1, 1, 1, 0), "pronoun": (1, 1, 1, 1, 1)}
HITS = {
    "all": ((2, 2, 2, 2, 0), (1, 0, 0, 1, 1), (0, 1, 0, 0, 0)),
    "proper": ((1, 1, 1, 1, 0), (0, 0, 0, 0, 0), (0, 0, 0, 0, 0)),
    "pronoun": ((1, 1, 1, 1, 0), (1, 0, 0, 1, 1), (0, 1, 0, 0, 0)),
}


def point(answers: dict[int, tuple[int, ...]], words: int) -> Pointing:
    """Three heads that point so, and from every other word nowhere."""
    word, weight = torch.zeros(1, HEADS, words, dtype=torch.long), torch.zeros(1, HEADS, words)
    for source, targets in answers.items():
        word[0, :, source], weight[0, :, source] = torch.tensor(targets), 0.5
    return Pointing(weight, word)


def shift(mentions: list[Mention], permutations: Permutations = PERMUTATIONS) -> ShiftedChains:
    tokens = set(range(len(DOCUMENT.words))) - {TOKENLESS}
    return ShiftedChains.permute(permutations, [(DOCUMENT, mentions)], [tokens], list(SCORED), torch.device("cpu"))


def test_mentions_and_hits_of_each_shift_by_hand() -> None:
    mentions = mentions_of(DOCUMENT)
    assert [(mention.head, mention.chain) for mention in mentions] == [(1, "1"), (1, "2"), (3, "1"), (5, "2"), (7, "1")]
    shifted = shift(mentions)
    (turns,) = PERMUTATIONS.choose(DOCUMENT, [5])
    assert set(turns.tolist()) == set(range(5))
    np.testing.assert_array_equal(shifted.count(), np.array(list(SCORED.values()))[:, turns])
    hits = shifted.score(point(ANSWERS, len(DOCUMENT.words)))
    np.testing.assert_array_equal(hits, np.array(list(HITS.values())).swapaxes(0, 1)[..., turns])


@pytest.mark.parametrize("seed", range(11))
def test_mentions_and_hits_of_random_chains_are_those_of_loops(seed: int) -> None:
    random = np.random.default_rng(seed)
    words = len(DOCUMENT.words)
    heads = sorted(random.integers(0, words, 13).tolist())
    mentions = [Mention(str(random.integers(0, 4)), (DOCUMENT.words[head],), 0, head, "PRON") for head in heads]
    answers = {word: tuple(random.integers(0, words, HEADS).tolist()) for word in range(words) if word != TOKENLESS}
    shifted, (turns,) = shift(mentions), PERMUTATIONS.choose(DOCUMENT, [13])
    count, hits = shifted.count(), shifted.score(point(answers, words))
    for permutation, turn in enumerate(turns.tolist()):
        chains = [mentions[(place + turn) % 13].chain for place in range(13)]
        scored, right = 0, [0] * HEADS
        for head, chain in zip(heads, chains, strict=True):
            earlier = {other for other, label in zip(heads, chains, strict=True) if label == chain and other < head}
            if earlier and head != TOKENLESS:
                scored += 1
                right = [right[k] + (answers[head][k] in earlier) for k in range(HEADS)]
        assert count[0, permutation] == scored
        assert hits[:, 0, permutation].tolist() == right
    assert hits[:, 0].sum() > 0


def test_more_mentions_than_permutations() -> None:
    mentions = mentions_of(DOCUMENT)
    few = shift(mentions, Permutations(2))
    np.testing.assert_array_equal(few.chain.shape, (6, len(set(Permutations(2).choose(DOCUMENT, [5])[0]))))
    assert few.count().shape == (3, 2)


def test_a_text_without_mentions_has_no_hits() -> None:
    shifted = shift([])
    assert shifted.count().tolist() == torch.zeros(3, 199).tolist()
    assert not shifted.score(point(ANSWERS, len(DOCUMENT.words))).any()
