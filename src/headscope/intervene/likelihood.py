"""The log-probability of sentences under a language model, and which sentence of a minimal pair it prefers.

A causal model predicts each token from those before it, and the logarithms of these probabilities sum to that of the
sentence. A masked model gives no such probability. Its *pseudo-log-likelihood* (Salazar et al. 2020, ACL, section 2)
sums over the tokens as well, but each is predicted from all the others, with a mask in its place. A word of several
tokens is then more probable than it should be, as its other tokens betray each (Kauf and Ivanova 2023, ACL).

Sentences are read as they are when heads are measured: word by word, with a space before each word, the first
included, where a vocabulary tells words with a space from those without.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import pandas as pd
import torch
from jaxtyping import Float
from torch import Tensor
from transformers.models.auto import modeling_auto

from headscope.capture.align import Aligned, Alignment
from headscope.capture.batch import collate
from headscope.capture.model import Model
from headscope.capture.stream import BATCH_TOKENS
from headscope.corpora.blimp import MinimalPair
from headscope.corpora.document import Document
from headscope.errors import CorpusError, ModelError, quote

HELD_LOGITS = 1 << 26
"""Logits that are held at once (256 MiB), if one text does not have more alone: 512 tokens of 131,072 logits."""


@dataclass(frozen=True, slots=True)
class Likelihood:
    """How probable a model takes a sentence to be.

    Attributes:
        log_probability: in nats; of a masked model the pseudo-log-likelihood.
        tokens: how many tokens are in the sum. Special tokens are not.
    """

    log_probability: float
    tokens: int


@dataclass(frozen=True, slots=True, eq=False)
class _Row:
    """A text as the model reads it, and which of its tokens are predicted there.

    Attributes:
        sentence: the ids of the sentence that it stands for.
        text: what the model reads, perhaps with a mask.
        places: the tokens whose logits predict.
        targets: what they should predict.
    """

    sentence: tuple[int, ...]
    text: Aligned
    places: list[int]
    targets: list[int]


def compute_likelihoods(
    model: Model, sentences: Sequence[str], *, start: str | None = None, batch_tokens: int = BATCH_TOKENS
) -> list[Likelihood]:
    """The log-probability of each sentence, not divided by its length.

    A causal model predicts the first token from the tokenizer's begin-of-sequence token, which is put in front where
    the tokenizer does not do so itself. If it has none, the first token is not scored, nor counted in
    `Likelihood.tokens`. The end of the sentence is not scored.

    In chat models the begin-of-sequence token may announce a turn of the conversation, behind which these sentences
    are not to be expected. Name as `start` the token that stood between texts in pretraining, such as
    ``<|endoftext|>`` of SmolLM2-Instruct in place of its ``<|im_start|>``.

    Sentences of the same tokens have the same log-probability, to the last bit. The batches change the last digits of
    others: float32 models agree to about 1e-5.

    Args:
        model: loaded with the task ``causal-lm`` or ``masked-lm``. What is changed in its module acts here, too.
        sentences: plain text; words are what white space parts.
        start: the token from which a causal model predicts the first one, in place of the special tokens that the
            tokenizer puts there. Default: as above.
        batch_tokens: tokens of a batch, padding included; fewer if the vocabulary is large (`HELD_LOGITS`).

    Raises:
        CorpusError: a sentence has no token that could be scored, or more tokens than the model takes.
        ModelError: the model is no causal or masked language model, predicts NaN or infinite numbers, or does not know
            the token `start` or has no use for it.
    """
    mask = _find_mask(model)
    texts = _tokenize(model, sentences, causal=mask is None, start=_find_start(model, start, causal=mask is None))
    # Each once: what is the same must be a tie, which rounding in different batches would break.
    distinct = {tuple(text.ids): text for text in texts}
    totals = dict.fromkeys(distinct, 0.0)
    longest_first = sorted(distinct.values(), key=lambda text: -len(text.ids))
    rows = (row for text in longest_first for row in _make_rows(text, mask))
    tokens = min(batch_tokens, HELD_LOGITS // model.module.config.get_text_config().vocab_size)
    for batch in _batches(rows, tokens):
        for row, total in zip(batch, _sum_log_probabilities(model, batch).tolist(), strict=True):
            totals[row.sentence] += total
    for text in texts:
        if not abs(totals[tuple(text.ids)]) < float("inf"):
            raise ModelError(
                f"{model.name!r} gives the sentence {quote(' '.join(text.document.words))} the log-probability "
                f"{totals[tuple(text.ids)]}; a finite number was expected: check the weights, or load them in float32."
            )
    return [Likelihood(totals[tuple(text.ids)], len(_find_scored(text, causal=mask is None))) for text in texts]


def score_minimal_pairs(
    model: Model, pairs: Sequence[MinimalPair], *, start: str | None = None, batch_tokens: int = BATCH_TOKENS
) -> pd.DataFrame:
    """A row for each minimal pair, in their order: which of its sentences the model takes to be more probable.

    A row has ``pair`` (its id), ``paradigm``, ``phenomenon`` and ``field``; ``good`` and ``bad``, the log-probability
    of the grammatical sentence and of the other in nats; ``good_tokens`` and ``bad_tokens``, how many tokens are in
    these sums; and ``difference``, which is ``good`` less ``bad``. The model is right where it is above 0.

    The arguments and errors are those of `compute_likelihoods`.
    """
    sentences = [sentence for pair in pairs for sentence in (pair.good, pair.bad)]
    likelihoods = compute_likelihoods(model, sentences, start=start, batch_tokens=batch_tokens)
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
        }
    )


def compute_accuracy(scores: pd.DataFrame) -> pd.DataFrame:
    """The accuracy of each paradigm, phenomenon and field, and of all pairs, from `score_minimal_pairs`.

    A row has ``level`` (``paradigm``, ``phenomenon``, ``field`` or ``all``), ``name``, ``pairs``, ``ties`` (how many
    have a difference of 0) and ``accuracy``, the share of the pairs whose grammatical sentence is more probable. A tie
    is wrong: the model does not prefer that sentence (Warstadt et al. 2020). In BLiMP 7 pairs are
    twice the same sentence. Each pair counts alike; where paradigms are of one size, as in BLiMP, that is the mean
    over paradigms.
    """
    judged = scores.assign(all="all", tie=scores["difference"] == 0, right=scores["difference"] > 0)
    levels = [
        judged.groupby(level, sort=False)
        .agg(pairs=("right", "size"), ties=("tie", "sum"), accuracy=("right", "mean"))
        .rename_axis("name")
        .reset_index()
        .assign(level=level)
        for level in ("paradigm", "phenomenon", "field", "all")
    ]
    return pd.concat(levels, ignore_index=True)[["level", "name", "pairs", "ties", "accuracy"]]


def _find_mask(model: Model) -> int | None:
    """The token that a masked model reads in place of what it predicts; None for a causal model.

    Raises:
        ModelError: the model is neither.
    """
    kind, attention_types = type(model.module).__name__, set(model.layers)
    advice = "load a language model with its task head, as in headscope.load(..., task='causal-lm')"
    if model.module.training:
        raise ModelError(
            f"{model.name!r} is in training mode, where dropout changes scores; call `.eval()` on it first."
        )
    if model.module.get_output_embeddings() is None or len(attention_types) > 1:
        raise ModelError(f"{model.name!r} ({kind}) gives a sentence no probability; {advice}.")
    if attention_types == {"decoder"}:
        return None
    # BERT with a causal head and without a causal mask has seen what it predicts, and XLNet wants an order of tokens.
    if kind in modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values():
        raise ModelError(f"{model.name!r} ({kind}) sees the token that it is to predict next; load the task masked-lm.")
    mask: int | None = model.tokenizer.mask_token_id
    if mask is None:
        raise ModelError(f"the tokenizer of {model.name!r} has no mask; give the one that the model was trained with.")
    return mask


def _find_start(model: Model, start: str | None, *, causal: bool) -> int | None:
    """The number of the token that is to be in front; None if the tokenizer decides."""
    if start is None:
        return None
    if not causal:
        raise ModelError(
            f"{model.name!r} is a masked model, which predicts no token from {start!r}; leave `start` out."
        )
    vocabulary = model.tokenizer.get_vocab()
    if start not in vocabulary:
        raise ModelError(
            f"the tokenizer of {model.name!r} has no token {quote(start)}; name as `start` a token of its vocabulary, "
            "or leave it out."
        )
    return int(vocabulary[start])


def _tokenize(model: Model, sentences: Sequence[str], *, causal: bool, start: int | None) -> list[Aligned]:
    """Each sentence as tokens, with what a causal model predicts the first of them from.

    Raises:
        CorpusError: it has no token that could be scored, or more tokens than the model takes.
    """
    documents = [Document(str(number), tuple(sentence.split())) for number, sentence in enumerate(sentences)]
    texts, _ = Alignment(model.tokenizer, None, cut=False, pair_tokens=1).align(documents)
    if causal:
        texts = [_begin(text, start, model.tokenizer.bos_token_id) for text in texts]
    scored = {int(text.document.id) for text in texts if _find_scored(text, causal=causal)}
    for number, sentence in enumerate(sentences):
        if number not in scored:
            raise CorpusError(
                f"the sentence {quote(sentence)} has no token that the model could predict; leave it out, or add words."
            )
    for text in texts:
        if model.max_tokens is not None and len(text.ids) > model.max_tokens:
            raise CorpusError(
                f"the sentence {quote(sentences[int(text.document.id)])} has {len(text.ids)} tokens, and the model "
                f"takes {model.max_tokens}; leave it out, or shorten it."
            )
    return texts


def _begin(text: Aligned, start: int | None, bos: int | None) -> Aligned:
    """The tokens with that from which the first is predicted in front of them."""
    front = next((place for place, word in enumerate(text.word) if word >= 0), len(text.word))
    first = bos if start is None and front == 0 else start
    if first is None:
        return text
    return replace(
        text, ids=[first, *text.ids[front:]], word=[-1, *text.word[front:]], segment=[0, *text.segment[front:]]
    )


def _find_scored(text: Aligned, *, causal: bool) -> list[int]:
    """The places of the tokens that are predicted: those of words, if anything before them could predict them."""
    return [place for place, word in enumerate(text.word) if word >= 0 and not (causal and place == 0)]


def _make_rows(text: Aligned, mask: int | None) -> Iterator[_Row]:
    sentence, scored = tuple(text.ids), _find_scored(text, causal=mask is None)
    if mask is None:
        yield _Row(sentence, text, [place - 1 for place in scored], [text.ids[place] for place in scored])
        return
    for place in scored:
        masked = replace(text, ids=[*text.ids[:place], mask, *text.ids[place + 1 :]])
        yield _Row(sentence, masked, [place], [text.ids[place]])


def _batches(rows: Iterable[_Row], tokens: int) -> Iterator[list[_Row]]:
    """The rows, of which the longest come first, in batches of at most so many tokens, padding included."""
    rest = iter(rows)
    for longest in rest:
        yield [longest, *islice(rest, max(1, tokens // len(longest.text.ids)) - 1)]


def _sum_log_probabilities(model: Model, rows: Sequence[_Row]) -> Float[Tensor, " row"]:
    """The log-probability of what each row should predict, from one forward pass."""
    batch = collate(model, [row.text for row in rows])
    with torch.inference_mode():
        logits = model.module(**batch.inputs).logits
        sums = []
        # Row by row, since the logarithms are as large as the logits.
        for row, row_logits in zip(rows, logits, strict=True):
            targets = torch.tensor(row.targets, device=logits.device)[:, None]
            sums.append(row_logits[row.places].float().log_softmax(-1).gather(-1, targets).double().sum())
        return torch.stack(sums)
