"""Single texts: the scores of the heads on each text, and the attention of all heads on some texts.

documents --measure_apart--> the scores of the heads on each document
chosen documents --read_texts--> words, the attention of all heads, and the items that each head gets right
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
import xarray as xr
from jaxtyping import Bool, UInt8
from torch import Tensor
from transformers import PreTrainedTokenizerFast

from headscope.capture.forward.interface import Capture
from headscope.capture.model.model import Model
from headscope.capture.passes.room import Room
from headscope.capture.passes.stream import Plan, Portion, Stream
from headscope.capture.rows.attention import Attention
from headscope.capture.tokens.align import spell_token
from headscope.capture.tokens.batch import Batch, Tokens
from headscope.corpora.document import Document
from headscope.examples import READS, Item, Judged, Side, Text, quantize
from headscope.reducers.reducer import Reducer
from headscope.reducers.support.folds import FOLDS, keep_apart
from headscope.reducers.support.items import ItemReducer
from headscope.runner.accumulate import accumulate
from headscope.runner.checkpoint import RunSums
from headscope.runner.completed_table import tabulate
from headscope.runner.local import open_stream

HIDDEN_KINDS = frozenset({"upos"})
"""The kinds of spans that are left out of a text, since every word has one."""


@dataclass(frozen=True)
class RowRule:
    """The best rule for a row of a score; a rule is a rival of the heads.

    Attributes:
        name: The name of the rival.
        options: The options of the rival that were chosen, by dimension.
        direction: The index of the direction in which the row is scored.
    """

    name: str
    options: Mapping[str, str]
    direction: int


def measure_apart(
    model: Model, documents: Sequence[Document], reducers: Sequence[Reducer], plan: Plan
) -> Iterator[tuple[Sequence[Document], xr.Dataset]]:
    """Yield documents, at most `FOLDS` at a time, with a head table in which each document has its own fold.

    A part of the documents is left out if the model can read none of them.
    """
    for start in range(0, len(documents), FOLDS):
        part = documents[start : start + FOLDS]
        apart = [keep_apart(reducer, part) for reducer in reducers]
        *_, sums = accumulate(open_stream(model, part, apart, plan), apart)
        done = RunSums.from_tensors(sums)
        if done.select_run("seen").get("documents"):
            yield part, tabulate(done, model.shape, apart)


def read_texts(
    model: Model, documents: Sequence[Document], plan: Plan, reducers: Sequence[Reducer] = (),
    rules: Mapping[str, RowRule] = MappingProxyType({}),
) -> list[Text]:  # fmt: skip
    """Return documents as texts with the attention of all heads, the items, and which items each head gets right.

    The texts are in the order of `documents`. Documents that the model cannot read, or for which its attention is not
    finite, are left out.

    Args:
        model: The model whose attention is read.
        documents: The documents to read.
        plan: How to batch.
        reducers: The reducers; those that score items (`ItemReducer`) judge which items are right.
        rules: The rule whose picks are kept, by the key of a row.
    """
    texts: dict[str, Text] = {}
    judging = [reducer for reducer in reducers if isinstance(reducer, ItemReducer)]
    room = Room.measure(model, plan.batch_tokens)

    def read(portion: Portion) -> list[Text]:
        of_portion = []
        for batch, capture in zip(portion.batches, portion.captures, strict=True):
            for row, (weights, items, judged) in enumerate(_read_batch(model, capture, batch, judging)):
                if all(np.isfinite(each).all() for each in weights.values()):
                    text = _describe_text(model.tokenizer, batch, row, weights)
                    picks = _list_picks(batch.documents[row], items, judging, rules)
                    of_portion.append(replace(text, items=items, judged=judged, picks=picks))
        return of_portion

    for portion in Stream(documents, (model,), plan):
        for of_part in room.run(portion, read):
            texts |= {text.id: text for text in of_part}
    return [texts[document.id] for document in documents if document.id in texts]


def _read_batch(
    model: Model, capture: Capture, batch: Batch, reducers: Sequence[ItemReducer]
) -> Iterator[tuple[dict[str, np.ndarray], tuple[Item, ...], dict[str, Judged]]]:
    """Yield for each text of a batch the weights of all layers, its items, and which items each head gets right."""
    maps: dict[str, dict[int, list[np.ndarray]]] = {name: {} for name in model.layers}
    right: dict[str, dict[int, np.ndarray]] = {name: {} for name in model.layers}
    facts: dict[tuple[str, torch.device], list[tuple[ItemReducer, Any]]] = {}

    def prepare(name: str, device: torch.device) -> list[tuple[ItemReducer, Any]]:
        if (name, device) not in facts:
            facts[name, device] = [(reducer, reducer.prepare(batch.on(device), name)) for reducer in reducers]
        return facts[name, device]

    def observe(attention: Attention) -> None:
        name, layer = attention.attention_type, attention.layer
        maps[name][layer] = _read_maps(attention)
        if reducers:
            words, prepared = attention.words(), prepare(name, attention.batch.device)
            judged = [_number_directions(reducer.judge(known, words)) for reducer, known in prepared]
            right[name][layer] = np.concatenate(judged).T

    capture.run(batch, observe, whole=True)
    # Links and mentions are the same for all attention types.
    first = prepare(next(iter(model.layers)), batch.device)
    items = [item for reducer, known in first for item in reducer.list_items(known)]
    counts = {
        name: np.concatenate(
            [_number_directions(reducer.find_counting(known)) for reducer, known in prepare(name, batch.device)]
        )
        for name in model.layers
        if reducers
    }
    for row in range(len(batch.documents)):
        own = [place for place, (document, _) in enumerate(items) if document == row]
        weights = {
            name: _join_layers({n: of_texts[row] for n, of_texts in layers.items()}, model.layers[name])
            for name, layers in maps.items()
        }
        judged = {
            name: Judged(counts[name][own], _join_layers(layers, model.layers[name])[..., own])
            for name, layers in right.items()
            if reducers
        }
        yield weights, tuple(items[place][1] for place in own), judged


def _list_picks(
    document: Document, items: Sequence[Item], reducers: Sequence[ItemReducer], rules: Mapping[str, RowRule]
) -> dict[str, tuple[tuple[int, int], ...]]:
    """Return the picks of each row's rule for the items of the row, by the key of the row.

    A row is left out if the document has none of its items, or if the rule has no pick (None) for one of them.
    """
    picks: dict[str, tuple[tuple[int, int], ...]] = {}
    for reducer in reducers:
        for key, rule in rules.items():
            of_row = [item for item in items if key in item.rows and key.startswith(f"{reducer.scores[0].stem}:")]
            pairs = [reducer.pick(document, item, rule.direction, rule.name, rule.options) for item in of_row]
            if pairs and all(pairs):
                picks[key] = tuple(filter(None, pairs))
    return picks


def _join_layers(layers: Mapping[int, np.ndarray], count: int) -> np.ndarray:
    """Return the values of layers 1 to `count`; 0 for a layer without attention."""
    nothing = np.zeros_like(next(iter(layers.values())))
    return np.stack([layers.get(number, nothing) for number in range(1, count + 1)])


def _number_directions(values: Bool[Tensor, "*of direction"]) -> UInt8[np.ndarray, " *of"]:
    """Return a number for the directions in which each value is True: 0 none, 1 the first, 2 the second, 3 both."""
    bits: np.ndarray = np.packbits(values.cpu().numpy(), axis=-1, bitorder="little")
    return bits[..., 0]


def _read_maps(attention: Attention) -> list[np.ndarray]:
    """Return the weights of all heads of a layer on each text of a batch, without padding."""
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
        sides={name: describe_side(tokenizer, tokens, row, len(document.words)) for name, tokens in sides.items()},
        links=tuple((link.source, link.target, link.label) for link in document.links),
        spans=tuple(
            (span.start, span.end, span.label, span.kind) for span in document.spans if span.kind not in HIDDEN_KINDS
        ),
        weights={name: quantize(each) for name, each in weights.items()},
        random_tokens=document.random_tokens,
        messages=tuple(message.record for message in document.messages),
    )


def describe_side(tokenizer: PreTrainedTokenizerFast, tokens: Tokens, row: int, words: int) -> Side:
    """Return one side of a text: its tokens, and for each token the index of its word or -1.

    Args:
        tokenizer: The tokenizer that made the tokens.
        tokens: The tokens of a batch.
        row: The index of the text in the batch.
        words: The number of words of the text.
    """
    real = tokens.real[row]
    return Side(
        tuple(spell_token(tokenizer, token) for token in tokens.ids[row][real].tolist()),
        tuple(word if 0 <= word < words else -1 for word in tokens.word[row][real].tolist()),
    )
