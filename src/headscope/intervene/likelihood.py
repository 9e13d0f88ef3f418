"""The log-probability of sentences under a language model, and which sentence of a minimal pair it prefers.

A causal model predicts each token from those before it, and the logarithms of these probabilities sum to that of the
sentence. A masked model gives no such probability. Its *pseudo-log-likelihood* (Salazar et al. 2020, ACL, section 2)
sums over the tokens as well, but each is predicted from all the others, with a mask in its place. A word of several
tokens is then more probable than it should be, as its other tokens betray each (Kauf and Ivanova 2023, ACL).

Sentences are read as texts are when heads are measured: as they are written, or as words with a space before each, the
first included, where a vocabulary tells words with a space from those without.
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
    """How probable a model takes a sentence to be.

    Attributes:
        log_probability: in nats; of a masked model the pseudo-log-likelihood.
        tokens: how many tokens are in the sum. Special tokens are not.
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
    """The log-probability of each sentence, not divided by its length.

    A causal model predicts each token from those before it: the first one from what the tokenizer puts in front, or
    from `start`. If nothing is in front, the first token is not scored, nor counted in `Likelihood.tokens`. The end of
    the sentence is not scored. Name as `start` the token that was between texts in pretraining, such as
    ``<|endoftext|>`` of SmolLM2-Instruct.

    Sentences of the same tokens have the same log-probability, to the last bit. The batches change the last digits of
    others, in float32 from about the fifth on.

    Args:
        model: loaded with the task ``causal-lm`` or ``masked-lm``. What is changed in its module acts here, too.
        sentences: plain text; words are what white space parts.
        start: the token from which a causal model predicts the first one, in place of the special tokens that the
            tokenizer puts there. Default: as above.
        text: ``written``, the sentence as it is, with its white space; or ``spaced``, the words with a space before
            each. A causal model predicts the first token of a spaced text from the token for the beginning of a text
            where the tokenizer has one, even if it does not put it there.
        batch_tokens: tokens of a batch, padding included; fewer if the vocabulary is large (`HELD_LOGITS`).

    Raises:
        CorpusError: a sentence has no token that could be scored, or more tokens than the model takes.
        ModelError: the model is no causal or masked language model, predicts NaN or infinite numbers, or does not know
            the token `start` or has no use for it.
    """
    reader = SentenceReader(model, text, start)
    texts = reader.tokenize(sentences)
    # Each once: what is the same must be a tie, which rounding in different batches would break.
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
    """A row for each minimal pair, in their order: which of its sentences the model takes to be more probable.

    A row has ``pair`` (its id), ``paradigm``, ``phenomenon`` and ``field``; ``good`` and ``bad``, the log-probability
    of the grammatical sentence and of the other in nats; ``good_tokens`` and ``bad_tokens``, how many tokens are in
    these sums; ``difference``, which is ``good`` less ``bad``; and ``equal``, true if both are the same sentence. The
    model is right where the difference is above 0.

    The arguments and errors are those of `compute_likelihoods`.
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
    """The accuracy of each paradigm, phenomenon and field, and of all pairs, from `score_minimal_pairs`.

    A row has ``level`` (``paradigm``, ``phenomenon``, ``field`` or ``all``), ``name``, ``pairs``, ``equal`` (how many
    more are twice the same sentence, and left out: 7 in BLiMP), ``ties`` (how many of the pairs have a difference of 0)
    and ``accuracy``, the share of the pairs whose grammatical sentence is more probable. A tie of two sentences is
    wrong: the model does not prefer the grammatical one (Warstadt et al. 2020). Each pair counts alike; where paradigms
    are of one size, that is the mean over paradigms.
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
