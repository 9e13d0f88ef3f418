"""Replacements of a head's output: values, outputs on other texts, or attention with fewer weights.

A replacement returns z' for some heads of a layer. All replacements except `CutEdges` work without attention weights.
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
    """A function that returns the new output of some heads of a layer."""

    def __call__(self, z: Z, layer: EditedLayer, heads: Int[Tensor, " head"]) -> Z:
        """Return z', the new output of `heads`, whose own output is `z`."""


@dataclass(frozen=True, eq=False)
class EditedHeads:
    """An `Edit` that replaces the output of the selected heads, and leaves all other heads unchanged.

    Attributes:
        selection: The heads.
        replacement: The replacement of their output.
        describe: A function that describes the edit in words, for tables that are measured with it; by default the
            words are empty.
    """

    selection: Selection
    replacement: Replacement
    describe: Callable[[], str] = str

    def __call__(self, z: Z, layer: EditedLayer) -> Z:
        """Return z with the outputs of the selected heads replaced."""
        chosen = self.selection.get((layer.attention_type, layer.layer))
        if chosen is None:
            return z
        heads = torch.tensor(chosen, device=z.device)
        edited = z.clone()
        edited[:, heads] = self.replacement(z[:, heads], layer, heads)
        return edited


def zero(z: Z, layer: EditedLayer, heads: Int[Tensor, " head"]) -> Z:
    """Return zeros in place of the output of heads."""
    return torch.zeros_like(z)


def uniform(z: Z, layer: EditedLayer, heads: Int[Tensor, " head"]) -> Z:
    """Return the mean of the values of all keys that a query may see: attention with equal weights.

    In an encoder the weights are the 1/L of Kovaleva et al. (2019, section 4.6), without padding; a causal head gets
    the mean over the tokens that it has read, and a head with a window the mean over the window.
    """
    values, blocks = layer.values_of(heads), []
    rows = max(1, BlockSizes.measure(z.device).weights // (len(z) * values.shape[2]))
    for start in range(0, z.shape[2], rows):
        seen = layer.visible(slice(start, min(start + rows, z.shape[2]))).to(z.dtype)
        blocks.append(seen[:, None] @ values / seen.sum(-1)[:, None, :, None].clamp_min(1))
    return torch.cat(blocks, dim=2)


@dataclass(frozen=True, eq=False)
class Mean:
    """A replacement by the mean output of each head over a corpus.

    Attributes:
        pooled: The mean over all tokens, by layer.
        by_position: The mean over the tokens at each position of a text, by layer. If this mapping is empty, or at
            positions that no text of the corpus reaches, `pooled` is used.
    """

    pooled: Mapping[tuple[str, int], Float[Tensor, "head width"]]
    by_position: Mapping[tuple[str, int], Float[Tensor, "head place width"]]

    def __call__(self, z: Z, layer: EditedLayer, heads: Int[Tensor, " head"]) -> Z:
        """Return the mean outputs of `heads`, which are the same for every text of the batch."""
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
    """A replacement by the output of each head on another text, at the same position.

    The i-th text of a batch gets the outputs on the i-th other text, in all layers. If the batch has more texts, the
    other texts are used again from the first on. If the other text is shorter, its positions are repeated. Positions
    include the padding before them, and each beam of a search counts as a text.

    Attributes:
        outputs: The outputs of each layer, for each text.
    """

    outputs: Mapping[tuple[str, int], tuple[Float[Tensor, "head _ width"], ...]]

    def __call__(self, z: Z, layer: EditedLayer, heads: Int[Tensor, " head"]) -> Z:
        """Return the outputs of `heads` on the other texts."""
        others = self.outputs[layer.attention_type, layer.layer]
        chosen = (others[text % len(others)].to(z)[heads] for text in range(len(z)))
        return torch.stack([other[:, layer.positions % other.shape[1]] for other in chosen])


@dataclass(frozen=True, eq=False)
class Shuffle:
    """A replacement by the output of each head on another example of the batch, at the same position.

    Each example gets the outputs of the example `step` before it. If the other example is shorter, its positions are
    repeated, except in cross attention and while text is generated: there each position gets the output at the same
    position, including padding. Each beam of a search counts as an example.
    """

    step: int

    def __call__(self, z: Z, layer: EditedLayer, heads: Int[Tensor, " head"]) -> Z:
        """Return the outputs of `heads` on the other examples.

        Raises:
            HeadscopeError: The batch has no other example.
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
    """A replacement by the output of each head if some queries did not see some keys.

    The weight of the hidden keys goes to the keys that are still visible.

    Attributes:
        edges: Pairs of positions, counted from 0: the query, and the key that it does not see.
    """

    edges: tuple[tuple[int, int], ...]

    def __call__(self, z: Z, layer: EditedLayer, heads: Int[Tensor, " head"]) -> Z:
        """Return the outputs of `heads` without the edges."""
        hidden = torch.zeros(len(layer.positions), len(layer.key_positions), dtype=torch.bool, device=z.device)
        for query, key in self.edges:
            hidden |= (layer.positions == query)[:, None] & (layer.key_positions == key)
        return layer.attend_without(hidden[None, None])[:, heads]


def list_edges(edges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Check edges, and return them as pairs of positions.

    Raises:
        HeadscopeError: There are no edges, or one is not a pair of whole numbers from 0 on.
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
    """Return the number of tokens of each text up to the last token that any query sees."""
    keys = layer.values.shape[2]
    rows = max(1, BlockSizes.measure(layer.values.device).weights // (len(layer.values) * keys))
    seen: Bool[Tensor, "batch key"] = torch.zeros(len(layer.values), keys, dtype=torch.bool, device=layer.values.device)
    for start in range(0, queries, rows):
        seen |= layer.visible(slice(start, min(start + rows, queries))).any(1)
    places = torch.arange(1, keys + 1, device=seen.device)
    return (seen * places).amax(1).clamp_min(1)
