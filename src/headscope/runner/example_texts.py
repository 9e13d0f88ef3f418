"""Single texts: what the heads score on each, and the attention of all heads on some of them.

documents --measure_apart--> what the heads score on each --read_texts--> of those that were chosen, words and maps
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import xarray as xr
from transformers import PreTrainedTokenizerFast

from headscope.capture.forward.interface import Capture
from headscope.capture.model.model import Model
from headscope.capture.passes.stream import Plan, Stream
from headscope.capture.rows.attention import Attention
from headscope.capture.tokens.align import spell_token
from headscope.capture.tokens.batch import Batch, Tokens
from headscope.corpora.document import Document
from headscope.examples import READS, Side, Text, quantize
from headscope.reducers.reducer import Reducer
from headscope.reducers.support.folds import FOLDS, keep_apart
from headscope.runner.accumulate import accumulate
from headscope.runner.checkpoint import RunSums
from headscope.runner.completed_table import tabulate
from headscope.runner.local import open_stream

HIDDEN_KINDS = frozenset({"upos"})
"""Kinds of spans that are of every word, and so mark nothing in a text."""


def measure_apart(
    model: Model, documents: Sequence[Document], reducers: Sequence[Reducer], plan: Plan
) -> Iterator[tuple[Sequence[Document], xr.Dataset]]:
    """Documents, no more than there are folds, with a head table in which each has a fold of its own."""
    for start in range(0, len(documents), FOLDS):
        part = documents[start : start + FOLDS]
        apart = [keep_apart(reducer, part) for reducer in reducers]
        *_, sums = accumulate(open_stream(model, part, apart, plan), apart)
        done = RunSums.from_tensors(sums)
        if done.select_run("seen").get("documents"):
            yield part, tabulate(done, model.shape, apart)


def read_texts(model: Model, documents: Sequence[Document], plan: Plan) -> list[Text]:
    """The documents as texts with the attention of all heads, in their order.

    Documents that the model cannot read, or for which its attention is not finite, are left out.
    """
    texts: dict[str, Text] = {}
    for portion in Stream(documents, (model,), plan):
        for batch, capture in zip(portion.batches, portion.captures, strict=True):
            for row, weights in enumerate(_read_weights(model, capture, batch)):
                if all(np.isfinite(each).all() for each in weights.values()):
                    text = _describe_text(model.tokenizer, batch, row, weights)
                    texts[text.id] = text
    return [texts[document.id] for document in documents if document.id in texts]


def _read_weights(model: Model, capture: Capture, batch: Batch) -> Iterator[dict[str, np.ndarray]]:
    """Of each text of a batch, by attention type, the weights of all heads of all layers; 0 where there is none."""
    maps: dict[str, dict[int, list[np.ndarray]]] = {name: {} for name in model.layers}

    def observe(attention: Attention) -> None:
        maps[attention.attention_type][attention.layer] = _read_maps(attention)

    capture.run(batch, observe, whole=True)
    for row in range(len(batch.documents)):
        yield {
            name: np.stack([
                # A layer without attention has no weights.
                layers[number][row] if number in layers else np.zeros_like(next(iter(layers.values()))[row])
                for number in range(1, model.layers[name] + 1)
            ])
            for name, layers in maps.items()
        }  # fmt: skip


def _read_maps(attention: Attention) -> list[np.ndarray]:
    """The weights of all heads of a layer on each text of a batch, without padding."""
    weights = attention.weights().detach().float().cpu().numpy()
    real = [side.real.cpu().numpy() for side in (attention.queries, attention.keys)]
    return [maps[:, queries][:, :, keys] for maps, queries, keys in zip(weights, *real, strict=True)]


def _describe_text(
    tokenizer: PreTrainedTokenizerFast, batch: Batch, row: int, weights: Mapping[str, np.ndarray]
) -> Text:
    document = batch.documents[row]
    sides = {READS[name][0]: batch.queries(name) for name in weights}
    return Text(
        id=document.id,
        words=document.words,
        content=document.text.content,
        offsets=document.text.offsets,
        boundary=document.boundary,
        sides={name: _describe_side(tokenizer, tokens, row, len(document.words)) for name, tokens in sides.items()},
        links=tuple((link.source, link.target, link.label) for link in document.links),
        spans=tuple(
            (span.start, span.end, span.label, span.kind) for span in document.spans if span.kind not in HIDDEN_KINDS
        ),
        weights={name: quantize(each) for name, each in weights.items()},
        random_tokens=document.random_tokens,
        messages=tuple(message.record for message in document.messages),
    )


def _describe_side(tokenizer: PreTrainedTokenizerFast, tokens: Tokens, row: int, words: int) -> Side:
    """One side of a text of so many words; the words of a translation, which are none of these, are shown as tokens."""
    real = tokens.real[row]
    return Side(
        tuple(spell_token(tokenizer, token) for token in tokens.ids[row][real].tolist()),
        tuple(word if 0 <= word < words else -1 for word in tokens.word[row][real].tolist()),
    )
