"""Single texts: what the heads score on each, and the attention of all heads on some of them.

documents --measure_apart--> what the heads score on each --read_texts--> of those that were chosen, words and maps
"""

from collections.abc import Iterator, Sequence

import numpy as np
import xarray as xr
from transformers import PreTrainedTokenizerFast

from headscope.capture.attention import Attention
from headscope.capture.batch import Batch
from headscope.capture.model import Model
from headscope.capture.stream import Plan, Stream
from headscope.corpora.document import Document
from headscope.examples import Text, quantize
from headscope.reducers.reducer import Reducer
from headscope.reducers.support.folds import FOLDS, keep_apart
from headscope.runner.checkpoint import RunSums
from headscope.runner.local import accumulate, open_stream
from headscope.runner.table import tabulate

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
            yield part, tabulate(done, model, apart)


def read_texts(model: Model, documents: Sequence[Document], plan: Plan) -> list[Text]:
    """The documents as texts with the attention of all heads, in their order; of an encoder-decoder, of the encoder.

    Documents that the model cannot read, or for which its attention is not finite, are left out.
    """
    attention_type = next(iter(model.layers))
    texts: dict[str, Text] = {}
    for portion in Stream(documents, (model,), plan):
        for batch, capture in zip(portion.batches, portion.captures, strict=True):
            layers: list[list[np.ndarray]] = []

            def keep(attention: Attention) -> None:
                if attention.attention_type == attention_type:
                    layers.append(_read_maps(attention))  # noqa: B023

            capture.run(batch, keep, whole=True)
            for row, maps in enumerate(zip(*layers, strict=True)):
                weights = np.stack(maps)
                if np.isfinite(weights).all():
                    text = _describe_text(model.tokenizer, batch, row, attention_type, quantize(weights))
                    texts[text.id] = text
    return [texts[document.id] for document in documents if document.id in texts]


def _read_maps(attention: Attention) -> list[np.ndarray]:
    """The weights of all heads of a layer on each text of a batch, without padding."""
    weights = attention.weights().detach().float().cpu().numpy()
    real = [side.real.cpu().numpy() for side in (attention.queries, attention.keys)]
    return [maps[:, queries][:, :, keys] for maps, queries, keys in zip(weights, *real, strict=True)]


def _describe_text(
    tokenizer: PreTrainedTokenizerFast, batch: Batch, row: int, attention_type: str, weights: np.ndarray
) -> Text:
    document, tokens = batch.documents[row], batch.keys(attention_type)
    real = tokens.real[row]
    return Text(
        id=document.id,
        words=document.words,
        tokens=tuple(_spell(tokenizer, token) for token in tokens.ids[row][real].tolist()),
        token_words=tuple(tokens.word[row][real].tolist()),
        links=tuple((link.source, link.target, link.label) for link in document.links),
        spans=tuple(
            (span.start, span.end, span.label, span.kind) for span in document.spans if span.kind not in HIDDEN_KINDS
        ),
        weights=weights,
    )


def _spell(tokenizer: PreTrainedTokenizerFast, token: int) -> str:
    """A token as one reads it; as the vocabulary has it where it is no whole letter."""
    piece = str(tokenizer.convert_ids_to_tokens(token))
    text = tokenizer.convert_tokens_to_string([piece])
    return piece if not text.strip() or "\ufffd" in text else text
