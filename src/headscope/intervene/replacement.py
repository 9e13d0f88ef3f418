"""What can take the place of a head's output, made from values, from other texts, or from fewer weights.

A replacement is asked for z' of some heads of a layer. All but `CutEdges` are made without a matrix of weights.
"""

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headscope.capture.forward.head_edit import EditedLayer, Z
from headscope.capture.model.block_sizes import BlockSizes
from headscope.errors import HeadscopeError
from headscope.intervene.selected_heads import Selection


@runtime_checkable
class Replacement(Protocol):
    """Says what the output of some heads of a layer is to be."""

    def __call__(self, z: Z, layer: EditedLayer, heads: Int[Tensor, " head"]) -> Z:
        """Z' of those heads, whose own output is `z`."""


@dataclass(frozen=True, eq=False)
class EditedHeads:
    """Return an `Edit` that replaces the output of the selected heads, and leaves all others as they are.

    Attributes:
        selection: the heads.
        replacement: what takes the place of their output.
        describe: says so in words, for what is measured meanwhile; by default it says nothing.
    """

    selection: Selection
    replacement: Replacement
    describe: Callable[[], str] = str

    def __call__(self, z: Z, layer: EditedLayer) -> Z:
        """Z with the selected heads replaced."""
        chosen = self.selection.get((layer.attention_type, layer.layer))
        if chosen is None:
            return z
        heads = torch.tensor(chosen, device=z.device)
        edited = z.clone()
        edited[:, heads] = self.replacement(z[:, heads], layer, heads)
        return edited


def zero(z: Z, layer: EditedLayer, heads: Int[Tensor, " head"]) -> Z:
    """No output."""
    return torch.zeros_like(z)


def uniform(z: Z, layer: EditedLayer, heads: Int[Tensor, " head"]) -> Z:
    """The mean of the values of all keys that a query may see: attention with equal weights.

    In an encoder this is the 1/L of Kovaleva et al. (2019, section 4.6), with padding left out; a causal head has the
    mean of what it has read, one with a window that of the window.
    """
    values, blocks = layer.values_of(heads), []
    rows = max(1, BlockSizes.measure(z.device).weights // (len(z) * values.shape[2]))
    for start in range(0, z.shape[2], rows):
        seen = layer.visible(slice(start, min(start + rows, z.shape[2]))).to(z.dtype)
        blocks.append(seen[:, None] @ values / seen.sum(-1)[:, None, :, None].clamp_min(1))
    return torch.cat(blocks, dim=2)


@dataclass(frozen=True, eq=False)
class Mean:
    """The mean output of each head over a corpus.

    Attributes:
        pooled: over all tokens, by layer.
        by_position: over the tokens at each place of a text, by layer; where it is empty, or the corpus has no text so
            long, `pooled` is taken.
    """

    pooled: Mapping[tuple[str, int], Float[Tensor, "head width"]]
    by_position: Mapping[tuple[str, int], Float[Tensor, "head place width"]]

    def __call__(self, z: Z, layer: EditedLayer, heads: Int[Tensor, " head"]) -> Z:
        """The means of those heads, the same for every text."""
        key = layer.attention_type, layer.layer
        means = self.pooled[key].to(z)[heads][:, None].expand(-1, z.shape[2], -1)
        if key in self.by_position:
            places = self.by_position[key].to(z)[heads]
            known = layer.positions < places.shape[1]
            at_place = places[:, layer.positions.clamp_max(places.shape[1] - 1)]
            means = torch.where(known[:, None], at_place, means)
        return means.expand_as(z)


@dataclass(frozen=True, eq=False)
class Resample:
    """The output that each head has on another text, at the same place.

    The i-th text of a batch gets that of the i-th text here, in all layers; behind the last comes the first again.
    Where the other text is shorter, its places come again too. Places are counted with the padding before them, and a
    beam of a search is a text.

    Attributes:
        outputs: of each layer, for each text.
    """

    outputs: Mapping[tuple[str, int], tuple[Float[Tensor, "head _ width"], ...]]

    def __call__(self, z: Z, layer: EditedLayer, heads: Int[Tensor, " head"]) -> Z:
        """The outputs of those heads on other texts."""
        others = self.outputs[layer.attention_type, layer.layer]
        chosen = (others[text % len(others)].to(z)[heads] for text in range(len(z)))
        return torch.stack([other[:, layer.positions % other.shape[1]] for other in chosen])


@dataclass(frozen=True, eq=False)
class Shuffle:
    """The output that each head has on another example of the batch, at the same place.

    Each example gets that of the one so many before it. Where the other is shorter its places come again, except in
    cross attention and while text is generated, where each place has its own, padding included. A beam of a search is
    an example.
    """

    step: int

    def __call__(self, z: Z, layer: EditedLayer, heads: Int[Tensor, " head"]) -> Z:
        """The outputs of those heads on the other examples.

        Raises:
            HeadscopeError: the batch has no other example.
        """
        if self.step % len(z) == 0:
            raise HeadscopeError(
                f"the heads of a batch of {len(z)} cannot be shuffled by {self.step}: each example would get its own; "
                "run two examples or more at once, or resample from a corpus."
            )
        others, queries = z.roll(self.step, dims=0), z.shape[2]
        if layer.attention_type == "cross" or layer.values.shape[2] != queries:
            return others
        lengths = _find_lengths(layer, queries).roll(self.step, dims=0)
        places = torch.arange(queries, device=z.device) % lengths[:, None]
        return others.gather(2, places[:, None, :, None].expand_as(z))


@dataclass(frozen=True, eq=False)
class CutEdges:
    """The output of each head if some queries did not see some keys; their weight goes to the other keys.

    Attributes:
        edges: pairs of places, from the query that attends to the key, counted from 0.
    """

    edges: tuple[tuple[int, int], ...]

    def __call__(self, z: Z, layer: EditedLayer, heads: Int[Tensor, " head"]) -> Z:
        """The outputs of those heads without the edges."""
        hidden = torch.zeros(len(layer.positions), len(layer.key_positions), dtype=torch.bool, device=z.device)
        for query, key in self.edges:
            hidden |= (layer.positions == query)[:, None] & (layer.key_positions == key)
        return layer.attend_without(hidden[None, None])[:, heads]


def list_edges(edges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Edges as pairs of places.

    Raises:
        HeadscopeError: there is none, or one is not a pair of whole numbers from 0 on.
    """
    listed = []
    for edge in edges:
        try:
            query, key = (operator.index(place) for place in edge)
        except (TypeError, ValueError):
            query = key = -1
        if min(query, key) < 0:
            raise HeadscopeError(
                f"{edge!r} is not an edge; write (from, to), two places of tokens counted from 0, as in (5, 2)."
            )
        listed.append((query, key))
    if not listed:
        raise HeadscopeError("no edge is named; give pairs (from, to) of places of tokens, as in [(5, 2)].")
    return tuple(listed)


def _find_lengths(layer: EditedLayer, queries: int) -> Int[Tensor, " batch"]:
    """The number of tokens of each text up to its last one that any query sees."""
    keys = layer.values.shape[2]
    rows = max(1, BlockSizes.measure(layer.values.device).weights // (len(layer.values) * keys))
    seen: Bool[Tensor, "batch key"] = torch.zeros(len(layer.values), keys, dtype=torch.bool, device=layer.values.device)
    for start in range(0, queries, rows):
        seen |= layer.visible(slice(start, min(start + rows, queries))).any(1)
    places = torch.arange(1, keys + 1, device=seen.device)
    return (seen * places).amax(1).clamp_min(1)
