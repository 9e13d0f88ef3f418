"""The log-probability of sentences under a language model, and which sentence of a minimal pair it prefers.

A causal model predicts each token from the tokens before it, and the logarithms of these probabilities sum to the
log-probability of the sentence. A masked model gives no such probability. Its *pseudo-log-likelihood* (Salazar et al.
2020, ACL, section 2) also sums over the tokens, but each is predicted from all the others, with a mask in its place. A
word of several tokens is then more probable than it should be, as its other tokens give each one away (Kauf and Ivanova
2023, ACL).

Sentences are read like texts when heads are measured: either as they are written, or as words with a space before each,
including the first, where a vocabulary distinguishes words with a space from words without.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import pandas as pd
import torch

from headscope.capture.model.forward import run_model
from headscope.capture.model.model import Model
from headscope.capture.passes.room import Room
from headscope.capture.passes.stream import BATCH_TOKENS
from headscope.capture.tokens.batch import collate
from headscope.corpora.blimp import MinimalPair
from headscope.errors import ModelError, quote
from headscope.intervene.prediction import Row, SentenceReader, batch_rows, find_scored, make_rows, score_rows
from headscope.text_forms import WRITTEN


@dataclass(frozen=True, slots=True)
class Likelihood:
    """The probability of a sentence under a model.

    Attributes:
        log_probability: The log-probability in nats; for a masked model, the pseudo-log-likelihood.
        tokens: The number of tokens in the sum, without special tokens.
    """

    log_probability: float
    tokens: int


def compute_likelihoods(
    model: Model,
    sentences: Sequence[str],
    *,
    start: str | None = None,
    text: str = WRITTEN,
    batch_tokens: int = BATCH_TOKENS,
) -> list[Likelihood]:
    """Compute the log-probability of each sentence, not divided by its length.

    A causal model predicts each token from the tokens before it. It predicts the first token from the tokens that the
    tokenizer puts in front, or from `start`. If nothing is in front, the first token is not scored, and not counted in
    `Likelihood.tokens`. The end of the sentence is not scored. Give as `start` the token that was between texts in
    pretraining, such as ``<|endoftext|>`` for SmolLM2-Instruct.

    Sentences with the same tokens have the same log-probability, to the last bit. For other sentences the last digits
    depend on the batches, in float32 from about the fifth digit on.

    Args:
        model: A model that was loaded with the task ``causal-lm`` or ``masked-lm``. Changes of its module act here,
            too.
        sentences: Sentences as plain text; white space separates words.
        start: The token from which a causal model predicts the first token, in place of the special tokens that the
            tokenizer puts there. Default: as above.
        text: ``written`` for the sentence as it is, with its white space; or ``spaced`` for the words with a space
            before each. A causal model predicts the first token of a spaced text from the token for the beginning of a
            text, if the tokenizer has one, even if the tokenizer does not put it there.
        batch_tokens: The number of tokens of a batch, including padding; fewer if the vocabulary is large
            (`HELD_LOGITS`).

    Raises:
        CorpusError: A sentence has no token that could be scored, or more tokens than the model's limit.
        ModelError: The model is not a causal or masked language model, predicts NaN or infinite numbers, or does not
            know the token `start` or cannot use it.
    """
    reader = SentenceReader(model, text, start)
    texts = reader.tokenize(sentences)
    # Score each distinct sentence once: rounding in different batches would break ties of equal sentences.
    distinct = {tuple(each.ids): each for each in texts}
    totals = dict.fromkeys(distinct, 0.0)
    longest_first = sorted(distinct.values(), key=lambda each: -len(each.ids))
    rows = (row for each in longest_first for row in make_rows(each, reader.mask))
    room = Room(model)

    @torch.inference_mode()
    def score(batch: Sequence[Row]) -> list[float]:
        output = run_model(model, collate(model, [row.text for row in batch]).inputs)
        log_probabilities: list[float] = score_rows(output.logits, batch).tolist()
        return log_probabilities

    for batch in batch_rows(model, rows, batch_tokens):
        scores = room.run_items(batch, len(batch[0].text.ids), score, lambda row: repr(row.text.document.text.content))
        for row, total in zip(batch, chain.from_iterable(scores), strict=True):
            totals[row.sentence] += total
    for each in texts:
        if not abs(totals[tuple(each.ids)]) < float("inf"):
            raise ModelError(
                f"{model.name!r} gives the sentence {quote(each.document.text.content)} the log-probability "
                f"{totals[tuple(each.ids)]}; a finite number was expected: check the weights, or load them in float32."
            )
    return [Likelihood(totals[tuple(each.ids)], len(find_scored(each, causal=reader.causal))) for each in texts]


def score_minimal_pairs(
    model: Model,
    pairs: Sequence[MinimalPair],
    *,
    start: str | None = None,
    text: str = WRITTEN,
    batch_tokens: int = BATCH_TOKENS,
) -> pd.DataFrame:
    """Score both sentences of each minimal pair; return a row for each pair, in the order of the pairs.

    A row has ``pair`` (its id), ``paradigm``, ``phenomenon`` and ``field``; ``good`` and ``bad``, the log-probabilities
    of the grammatical and the other sentence in nats; ``good_tokens`` and ``bad_tokens``, the numbers of tokens in
    these sums; ``difference``, which is ``good`` less ``bad``; and ``equal``, true if both are the same sentence. The
    model is right if the difference is above 0.

    The arguments and errors are the same as for `compute_likelihoods`.
    """
    sentences = [sentence for pair in pairs for sentence in (pair.good, pair.bad)]
    likelihoods = compute_likelihoods(model, sentences, start=start, text=text, batch_tokens=batch_tokens)
    good, bad = likelihoods[::2], likelihoods[1::2]
    return pd.DataFrame(
        {
            "pair": [pair.id for pair in pairs],
            "paradigm": [pair.paradigm for pair in pairs],
            "phenomenon": [pair.phenomenon for pair in pairs],
            "field": [pair.field for pair in pairs],
            "good": [each.log_probability for each in good],
            "bad": [each.log_probability for each in bad],
            "good_tokens": [each.tokens for each in good],
            "bad_tokens": [each.tokens for each in bad],
            "difference": [g.log_probability - b.log_probability for g, b in zip(good, bad, strict=True)],
            "equal": [pair.is_equal for pair in pairs],
        }
    )


def compute_accuracy(scores: pd.DataFrame) -> pd.DataFrame:
    """Compute the accuracy on each paradigm, phenomenon and field, and on all pairs, from `score_minimal_pairs`.

    A row has ``level`` (``paradigm``, ``phenomenon``, ``field`` or ``all``), ``name``, ``pairs``, ``equal`` (the number
    of further pairs that are left out because both sentences are equal: 7 in BLiMP), ``ties`` (the number of pairs with
    a difference of 0) and ``accuracy``, the share of the pairs whose grammatical sentence is more probable. A tie
    counts as wrong: the model does not prefer the grammatical sentence (Warstadt et al. 2020). Each pair has the same
    weight; if all paradigms have one size, the accuracy is also the mean over paradigms.
    """
    right = (scores["difference"] > 0).astype(float).mask(scores["equal"])
    judged = scores.assign(all="all", tie=(scores["difference"] == 0) & ~scores["equal"], right=right)
    levels = [
        judged.groupby(level, sort=False)
        .agg(pairs=("right", "count"), equal=("equal", "sum"), ties=("tie", "sum"), accuracy=("right", "mean"))
        .rename_axis("name")
        .reset_index()
        .assign(level=level)
        for level in ("paradigm", "phenomenon", "field", "all")
    ]
    return pd.concat(levels, ignore_index=True)[["level", "name", "pairs", "equal", "ties", "accuracy"]]
