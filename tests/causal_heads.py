"""Causal heads that were made up, shown to reducers without a model, and their assessed table."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr

from headscope.analyse import assess
from headscope.capture.model.model import Model
from headscope.capture.rows.attention import Attention
from headscope.capture.tokens.align import Alignment
from headscope.capture.tokens.batch import Batch, collate
from headscope.capture.tokens.words import Words
from headscope.corpora import Document
from headscope.reducers import Reducer
from headscope.score import write_scores

Scores = Callable[[Sequence[int]], np.ndarray]
"""From the ids of a text's tokens the scores of a head before the softmax, query by key."""


@dataclass
class MadeUp(Attention):
    """Weights that were made up, of one layer."""

    layer: int
    attention_type: str
    rows: slice
    batch: Batch
    matrix: torch.Tensor

    @property
    def heads(self) -> int:
        return self.matrix.shape[1]

    def at(self, keys: torch.Tensor) -> torch.Tensor:
        return self.matrix.gather(3, keys[:, None].expand(-1, self.heads, -1, -1))

    def visible(self) -> torch.Tensor:
        return torch.arange(1.0, self.matrix.shape[2] + 1).expand(len(self.matrix), -1)

    def average(self, columns: torch.Tensor) -> torch.Tensor:
        return self.matrix @ columns[:, None]

    def largest(self, queries: torch.Tensor) -> torch.Tensor:
        index = queries[:, None, :, None].expand(-1, self.heads, -1, self.matrix.shape[-1])
        return self.matrix.gather(2, index).argmax(-1)

    def words(self) -> Words:
        tokens = self.batch.encoder.word
        return Words.from_average(self.average, tokens, tokens, self.batch.words)


def build(reducer: Reducer, model: Model, heads: Sequence[Scores], documents: Sequence[Document]) -> xr.Dataset:
    """The assessed table of causal heads of one layer."""
    sums, counts = [], []
    for document in documents:
        aligned, _ = Alignment.for_model(model).align([document])
        batch = collate(model, aligned)
        ids = batch.encoder.ids[0].tolist()
        scores = torch.tensor(np.stack([head(ids) for head in heads]))[None].float()
        hidden = torch.ones(len(ids), len(ids), dtype=torch.bool).triu(1)
        weights = scores.masked_fill(hidden, -torch.inf).softmax(-1)
        facts = reducer.prepare(batch, "decoder")
        counts.append(reducer.count(facts))
        sums.append(reducer.observe(facts, MadeUp(1, "decoder", slice(0, len(ids)), batch, weights)))
    total, count = (
        {name: np.asarray(sum(each[name] for each in parts)) for name in parts[0]} for parts in (sums, counts)
    )
    table = reducer.result({name: values[None] for name, values in total.items()}, count)
    places = {"layer": [1], "head": list(range(1, len(heads) + 1))}
    return assess(table.assign_coords(places).assign_attrs(scores=write_scores(reducer.scores)))


def attend_evenly(ids: Sequence[int]) -> np.ndarray:
    return np.zeros((len(ids), len(ids)))


def look_back(distance: int, strength: float = 9) -> Scores:
    """So many tokens back, and to the first token where there are fewer."""

    def attend(ids: Sequence[int]) -> np.ndarray:
        scores = np.zeros((len(ids), len(ids)))
        for place in range(len(ids)):
            scores[place, max(0, place - distance)] = strength
        return scores

    return attend


def look_nearby(reach: float) -> Scores:
    """To what is near, less and less with the distance."""

    def attend(ids: Sequence[int]) -> np.ndarray:
        place = np.arange(len(ids))
        return -np.abs(place[:, None] - place) / reach

    return attend


def look_at_place(place: int, strength: float = 9) -> Scores:
    """To one place of the text, from everywhere."""

    def attend(ids: Sequence[int]) -> np.ndarray:
        scores = np.zeros((len(ids), len(ids)))
        scores[:, place] = strength
        return scores

    return attend


def like_tokens(ids: Sequence[int]) -> np.ndarray:
    """To some tokens, wherever they are; the first ones, which are special, are none of them."""
    return np.tile((np.asarray(ids) * 37 % 101) / 20, (len(ids), 1))
