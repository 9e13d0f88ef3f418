"""Evaluations of a language model on texts, minimal pairs and last words."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from headscope.analyse.metrics import ratio_metric
from headscope.capture.model.model import Model
from headscope.capture.passes.stream import BATCH_TOKENS
from headscope.capture.tokens.align import Aligned
from headscope.capture.tokens.batch import collate
from headscope.corpora.blimp import MinimalPair
from headscope.corpora.document import Document, Origin
from headscope.corpora.last_words import end_at_last_word
from headscope.corpora.near_texts import find_near
from headscope.corpora.originals import name_clusters
from headscope.errors import CorpusError
from headscope.intervene.evaluation import (
    ALL,
    Evaluation,
    EvaluationBatch,
    compute_divergence,
    loss_metric,
    name_sums,
)
from headscope.intervene.prediction import (
    Row,
    SentenceReader,
    batch_rows,
    find_scored,
    make_rows,
    mask_some,
    score_rows,
)

QUANTITIES = ("log_probability", "tokens", "divergence")
"""The quantities of each text or sentence, which are sums over the predicted tokens."""


def prepare_texts(
    reader: SentenceReader,
    documents: Iterable[Document],
    *,
    name: str,
    max_tokens: int | None = None,
    batch_tokens: int = BATCH_TOKENS,
) -> Evaluation:
    """Prepare an evaluation on texts, whose tokens a language model predicts.

    A causal model predicts each token from the tokens before it. A masked model predicts 15 % of the tokens of a text,
    with all of them replaced by masks.

    Args:
        reader: The model, and how it reads texts.
        documents: The texts.
        name: The name of the corpus.
        max_tokens: Cut longer texts to this number of tokens, and count them. Default: the limit of the model.
        batch_tokens: The number of tokens of a batch, including padding.

    Raises:
        CorpusError: No text has a token that can be predicted.
        ModelError: The model is not a language model, or does not know the token `start`.
    """
    mask = reader.mask
    aligned, skipped = reader.align([*documents], max_tokens=max_tokens, cut=True)
    texts = [each for each in aligned if find_scored(each, causal=reader.causal)]
    skipped["texts without a token that could be predicted"] = len(aligned) - len(texts)
    if not texts:
        raise CorpusError(
            f"{name} has no text with a token that {reader.model.name!r} could predict; give longer texts."
        )
    rows = [next(make_rows(each, None)) if mask is None else mask_some(each, mask) for each in texts]
    return Evaluation(
        name=name,
        batches=_collate(reader.model, rows, range(len(rows)), batch_tokens),
        quantities=QUANTITIES,
        quantify=_quantify,
        gather=partial(name_sums, quantities=QUANTITIES),
        metrics=(loss_metric("loss of the language model", "nats per token", "tokens"), _DIVERGENCE),
        **_describe_texts(reader, texts, skipped),
    )


def prepare_pairs(
    reader: SentenceReader,
    pairs: Sequence[MinimalPair],
    *,
    name: str,
    batch_tokens: int = BATCH_TOKENS,
) -> Evaluation:
    """Prepare an evaluation on minimal pairs: does a model prefer the grammatical sentence (Warstadt et al. 2020)?

    Sentences are scored as in `headscope.intervene.likelihood.score_minimal_pairs`, with the same arguments and errors.
    The metrics are the accuracy and the margin, which is the mean difference of the log-probabilities of the two
    sentences. Each paradigm, phenomenon and field is a subset. Pairs of two equal sentences are left out and counted.
    """
    given = len(pairs)
    if not (pairs := [pair for pair in pairs if not pair.is_equal]):
        raise CorpusError(f"{name} has no pair of two sentences that differ; give other pairs.")
    sentences = [sentence for pair in pairs for sentence in (pair.good, pair.bad)]
    texts = reader.tokenize(sentences)
    # Sentences with the same tokens are one item, so that equal sentences are an exact tie.
    numbers = {ids: number for number, ids in enumerate(dict.fromkeys(tuple(each.ids) for each in texts))}
    item = np.array([numbers[tuple(each.ids)] for each in texts])
    distinct = {tuple(each.ids): each for each in texts}
    rows = [row for each in distinct.values() for row in make_rows(each, reader.mask)]
    together = coo_array((np.ones(len(pairs)), (item[::2], item[1::2])), shape=(len(numbers), len(numbers)))

    def gather(sums: Float[np.ndarray, "... item quantity"]) -> Mapping[str, Float[np.ndarray, "... example"]]:
        good, bad = (name_sums(sums[..., item[side::2], :], QUANTITIES) for side in (0, 1))
        margin = good["log_probability"] - bad["log_probability"]
        both = {quantity: good[quantity] + bad[quantity] for quantity in QUANTITIES}
        return {**both, "margin": margin, "right": (margin > 0).astype(float), "pairs": np.ones_like(margin)}

    return Evaluation(
        name=name, content="minimal pairs",
        batches=_collate(reader.model, rows, [numbers[row.sentence] for row in rows], batch_tokens),
        items=len(numbers), quantities=QUANTITIES, quantify=_quantify, gather=gather,
        metrics=(
            ratio_metric("accuracy", "accuracy", "share of minimal pairs", 1, "right", "pairs"),
            ratio_metric("margin", "margin", "nats", 1, "margin", "pairs"),
            _DIVERGENCE,
        ),
        smooth="margin",
        examples=tuple(pair.id for pair in pairs),
        clusters=name_clusters([Origin("", pair.id) for pair in pairs], [*zip(item[::2], item[1::2], strict=True)]),
        subsets=_divide(pairs), groups=connected_components(together)[1].tolist(), reading=reader.describe(texts),
        skipped={"minimal pairs of twice the same sentence": given - len(pairs)} if given > len(pairs) else {},
    )  # fmt: skip


def prepare_last_words(
    reader: SentenceReader,
    documents: Iterable[Document],
    *,
    name: str,
    max_tokens: int | None = None,
    batch_tokens: int = BATCH_TOKENS,
) -> Evaluation:
    """Prepare an evaluation on texts whose last word a model predicts (Paperno et al. 2016, ACL: LAMBADA).

    A word is right if each of its tokens is the most probable one, given the tokens before it. A masked model predicts
    each token with a mask in its place, and sees the other tokens of the word. The loss is the loss of the whole word.

    The arguments and errors are the same as for `prepare_texts`. A text that is longer than `max_tokens`, or than the
    model's limit, is left out and counted: after a cut, it would end with another word.
    """
    given = [*documents]
    passages = [passage for passage in map(end_at_last_word, given) if passage is not None]
    aligned, skipped = reader.align(passages, max_tokens=max_tokens, cut=False)
    scored = [_find_last(each, causal=reader.causal) for each in aligned]
    texts = [each for each, places in zip(aligned, scored, strict=True) if places]
    skipped["texts without a word after the first"] = len(given) - len(passages)
    skipped["texts whose last word has no token that could be predicted"] = len(aligned) - len(texts)
    if not texts:
        raise CorpusError(f"{name} has no text whose last word {reader.model.name!r} could predict; give other texts.")
    rows = [
        (row, number)
        for number, (each, places) in enumerate(zip(texts, filter(None, scored), strict=True))
        for row in make_rows(each, reader.mask, places)
    ]

    quantities = (*QUANTITIES, "correct")

    def gather(sums: Float[np.ndarray, "... item quantity"]) -> Mapping[str, Float[np.ndarray, "... example"]]:
        of_words = name_sums(sums, quantities)
        right = (of_words["correct"] == of_words["tokens"]).astype(float)
        return {**of_words, "right": right, "words": np.ones_like(right)}

    return Evaluation(
        name=name,
        batches=_collate(reader.model, [row for row, _ in rows], [number for _, number in rows], batch_tokens),
        quantities=quantities,
        quantify=_quantify_with_correct,
        gather=gather,
        metrics=(
            ratio_metric("accuracy", "accuracy", "share of last words", 1, "right", "words"),
            loss_metric("loss of the last word", "nats per word", "words"),
            _DIVERGENCE,
        ),
        **_describe_texts(reader, texts, skipped),
    )


def _find_last(text: Aligned, *, causal: bool) -> list[int]:
    """Return the positions of the tokens in the last word of a text, without tokens that the model cannot predict."""
    last = len(text.document.words) - 1
    return [place for place in find_scored(text, causal=causal) if text.word[place] == last]


_DIVERGENCE = ratio_metric("kl", "divergence from the whole model", "nats per token", 0, "divergence", "tokens")


def _divide(pairs: Sequence[MinimalPair]) -> dict[str, np.ndarray]:
    """Return masks of all pairs, and of the pairs of each field, phenomenon and paradigm."""
    subsets = {ALL: np.ones(len(pairs), dtype=bool)}
    for level in ("field", "phenomenon", "paradigm"):
        names = np.array([getattr(pair, level) for pair in pairs])
        subsets |= {f"{level} {name}": names == name for name in dict.fromkeys(names.tolist()) if name}
    return subsets


def _describe_texts(reader: SentenceReader, texts: Sequence[Aligned], skipped: Counter[str]) -> dict[str, Any]:
    """Return the fields of `Evaluation` that texts and last words have in common.

    Texts with the same tokens count as copies, so they are in one cluster.
    """
    documents = [text.document for text in texts]
    return {
        "content": "texts",
        "items": len(texts),
        "smooth": "loss",
        "examples": tuple(text.document.id for text in texts),
        "clusters": name_clusters(
            [document.origin for document in documents], [tuple(text.ids) for text in texts], find_near(documents)
        ),
        "subsets": {ALL: np.ones(len(texts), dtype=bool)},
        "skipped": +skipped,
        "reading": reader.describe(texts),
    }


def _collate(model: Model, rows: Sequence[Row], items: Iterable[int], batch_tokens: int) -> tuple[EvaluationBatch, ...]:
    """Make batches of rows, the longest rows first; `items` has the number of the item of each row."""
    order = sorted(zip(rows, items, strict=True), key=lambda row: -len(row[0].text.ids))
    item = {id(row): number for row, number in order}
    return tuple(
        EvaluationBatch(
            collate(model, [row.text for row in batch]).inputs, torch.tensor([item[id(row)] for row in batch]), batch
        )
        for batch in batch_rows(model, (row for row, _ in order), batch_tokens)
    )


def _quantify(batch: EvaluationBatch, logits: Tensor, whole: Tensor | None) -> Float[Tensor, "row quantity"]:
    """Return the log-probability of each row's targets; with `whole`, the whole model's logits, all `QUANTITIES`."""
    log_probability = score_rows(logits, batch.targets)
    if whole is None:
        return log_probability[:, None]
    tokens = torch.tensor([float(len(row.places)) for row in batch.targets], device=logits.device)
    divergence = [
        compute_divergence(whole_row[row.places], row_logits[row.places]).sum()
        for row, row_logits, whole_row in zip(batch.targets, logits, whole, strict=True)
    ]
    return torch.stack([log_probability, tokens.double(), torch.stack(divergence)], dim=-1)


def _quantify_with_correct(
    batch: EvaluationBatch, logits: Tensor, whole: Tensor | None
) -> Float[Tensor, "row quantity"]:
    """Return the result of `_quantify`; with `whole`, also the number of targets that are the most probable token."""
    quantities = _quantify(batch, logits, whole)
    if whole is None:
        return quantities
    correct = [
        (row_logits[row.places].argmax(-1) == torch.tensor(row.targets, device=logits.device)).sum()
        for row, row_logits in zip(batch.targets, logits, strict=True)
    ]
    return torch.cat([quantities, torch.stack(correct).double()[:, None]], dim=-1)
