"""Worlds of heads of which a sample of the query rows is measured: heads that know neither words nor distances."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from headscope.analyse import add_report
from headscope.analyse.report import STANDS_OUT
from headscope.capture.rows.attention import Attention
from headscope.capture.tokens.batch import Batch, Tokens
from headscope.corpora import Document, summarize
from headscope.reducers.reducer import Reducer, Sums
from headscope.runner import resolve_reducers
from headscope.runner.row_sample import DEVIATION, RowSample
from headscope.score import write_scores

TEXTS, SHORTEST, LONGEST, VOCABULARY = 44, 131, 173, 997
ROWS = 32
"""Rows that are sampled, behind the first ones, which are measured in any case."""

HEADS = 3
"""Of each kind."""

HEADINGS = {"nearby_tokens": "tokens nearby", "induction": "tokens that come again"}
"""The reducers that can be sampled and have verdicts, and what their tables are of."""

NEAR, FAR = 5, 40
KINDS = ("uniform", "sink", "words", "near", "earlier")
"""What heads look at: anything; the first token; words that are liked; near tokens alike; earlier tokens alike.

Heads of the kind ``places`` like some places of any text more than others."""

WORLDS = {
    "heads of all kinds": KINDS, "heads that look at all near tokens": ("near",),
    "heads that look at all earlier tokens": ("earlier",), "heads that look at some places": ("places",),
}  # fmt: skip


@dataclass
class Sampled(Attention):
    """Some rows of heads that were drawn."""

    layer: int
    attention_type: str
    rows: slice
    batch: Batch
    drawn: Tensor

    @property
    def heads(self) -> int:
        return self.drawn.shape[1]

    def at(self, keys: Tensor) -> Tensor:
        return self.drawn.gather(3, keys[:, None].expand(-1, self.heads, -1, -1))

    def visible(self) -> Tensor:
        return torch.full((len(self.drawn), self.drawn.shape[2]), float(self.keys.length))


def write_texts(draw: np.random.Generator) -> list[Document]:
    """Texts of words of which some are more frequent."""
    frequency, documents = 1 / np.arange(VOCABULARY, 2 * VOCABULARY), []
    for number, length in enumerate(draw.integers(SHORTEST, LONGEST, TEXTS)):
        words = draw.choice(VOCABULARY, (1, length), p=frequency / frequency.sum()).astype(str)
        documents.append(Document(f"text {number}", tuple(words[0].tolist()), group=f"text {number}"))
    return documents


def make_batch(document: Document) -> Batch:
    """A text as a model reads it that has no special tokens."""
    ids = torch.tensor([[int(word) for word in document.words]])
    there, nothing = torch.ones_like(ids, dtype=torch.bool), torch.zeros_like(ids, dtype=torch.bool)
    place = torch.arange(ids.shape[1]).expand(ids.shape)
    return Batch((document,), Tokens(ids, there, place, place, nothing, nothing, nothing), None, ids.shape[1], {})


def attend(
    kind: str, habits: Mapping[str, np.ndarray], batch: Batch, rows: np.ndarray, draw: np.random.Generator
) -> np.ndarray:
    """The attention of the heads of a kind, by text, head, query and key."""
    ids, far = batch.encoder.ids.numpy(), np.arange(batch.words) - rows[:, None]
    weights = draw.standard_exponential((len(ids), HEADS, len(rows), batch.words), dtype=np.float32)
    if kind == "sink":
        weights[..., 0] *= 30 * habits["size"][:, None]
    if kind == "words":
        weights *= habits["words"][:, ids].swapaxes(0, 1)[:, :, None]
    if kind == "places":
        weights *= habits["places"][:, None, : batch.words]
    if kind == "near":
        weights *= np.where(np.abs(far) <= NEAR, FAR * habits["size"][:, None, None], 1)
    if kind == "earlier":
        weights *= (far < 0) + 1e-9
    return weights / weights.sum(-1, keepdims=True)


def tabulate(seed: int, kinds: Sequence[str] = KINDS, *, planted: float = 0.0) -> list[xr.Dataset]:
    """The tables of a world, measured from a sample of the rows and judged.

    Args:
        seed: of the world.
        kinds: of the heads.
        planted: the share of its attention that the first head gives to the token before, whatever else it does.
    """
    draw = np.random.default_rng(seed)
    documents = write_texts(draw)
    reducers = resolve_reducers([*HEADINGS], summarize(documents))
    habits = {
        kind: {
            "size": draw.uniform(0.5, 2, HEADS), "words": draw.exponential(size=(HEADS, VOCABULARY)),
            "places": draw.exponential(size=(HEADS, LONGEST)),
        }
        for kind in kinds
    }  # fmt: skip
    sums: list[Sums] = [{} for _ in reducers]
    counts: list[Sums] = [{} for _ in reducers]
    for batch in map(make_batch, documents):
        facts = [reducer.prepare(batch, "encoder") for reducer in reducers]
        sample = RowSample.draw(batch, "encoder", ROWS, seed)
        blocks = [*sample.blocks]
        rows = [np.arange(batch.words)[block] for block in blocks]
        every = np.concatenate(rows)
        by_kind = [attend(kind, habits[kind], batch, every, draw) for kind in kinds]
        if planted:
            _plant(by_kind[0], every, planted)
        parts = torch.split(torch.from_numpy(np.concatenate(by_kind, axis=1)), [len(each) for each in rows], dim=2)
        for place, reducer in enumerate(reducers):
            observed = [
                (block, reducer.observe(facts[place], Sampled(1, "encoder", block, batch, part)))
                for block, part in zip(blocks, parts, strict=True)
            ]
            estimates = sample.estimate(observed)
            _add(sums[place], {name: value for name, value in estimates.items() if not name.endswith(DEVIATION)})
            _add(counts[place], reducer.count(facts[place]))
    return [_judge(*each) for each in zip(reducers, sums, counts, strict=True)]


def _plant(weights: np.ndarray, rows: np.ndarray, size: float) -> None:
    there = np.flatnonzero(rows > 0)
    weights[:, 0] *= 1 - size
    weights[:, 0, there, rows[there] - 1] += size


def _add(total: Sums, more: Sums) -> None:
    for name, value in more.items():
        total[name] = total[name] + value if name in total else value


def _judge(reducer: Reducer, sums: Sums, counts: Sums) -> xr.Dataset:
    table = reducer.result({n: v.numpy()[None] for n, v in sums.items()}, {n: v.numpy() for n, v in counts.items()})
    places = {dim: np.arange(1, table.sizes[dim] + 1) for dim in ("layer", "head")}
    return add_report(table.assign_coords(places).assign_attrs(scores=write_scores(reducer.scores)))


def list_stars(table: xr.Dataset) -> list[str]:
    """The rows of a table that stand out."""
    (name,) = (str(name) for name in table.variables if str(name).endswith("reported_verdict"))
    return [str(row) for row in table[table[name].dims[0]].values[table[name].values == STANDS_OUT]]
