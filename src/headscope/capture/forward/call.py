"""A forward pass under our implementation, and one call of attention in it."""

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from headscope.capture.forward.comparisons import Comparisons, Reasons
from headscope.capture.forward.head_edit import Edit, Visible, Z, silence
from headscope.capture.forward.path import cut, find_scale
from headscope.capture.forward.unembedding import Unembedding, Vocabulary
from headscope.capture.model.dtypes import widen
from headscope.capture.model.mask import Masks, Reach, count_rows, hide
from headscope.capture.model.model import Model
from headscope.capture.rows.attention import Attention
from headscope.capture.rows.gpu import Kernels
from headscope.capture.rows.norms import Norms
from headscope.capture.tokens.batch import Batch
from headscope.errors import ModelError

CHECKED_PASSES = 8
"""Passes of which one compares rows of a layer, where sums are compared in all rows anyway."""

Observer = Callable[[Attention], None]

Paths = Counter[tuple[str, int, str]]
"""The number of texts measured, by attention type, layer and way: with the matrix or without it, and why."""


@dataclass(eq=False)
class Pass:
    """The state of one forward pass under our implementation.

    Attributes:
        model, batch: what is run on what.
        observe, edit, gradients, block_rows, whole, verify: as in `headscope.capture.forward.interface.Capture.run`.
        matrix_because: why the matrix is needed in every layer; empty where it is not.
        with_matrix: why some layers need it.
        fused_from: keys from which on layers do without the matrix.
        norms: those by which the norm view is shown in place of the weights; None where these are.
        unembedding: by which it is found which tokens the values raise; None where nobody reads logits.
        chosen_rows: the blocks of rows that are shown, by attention type; of other types all rows are.
        kernels: which GPUs have the kernel that does without the matrix.
        turn: the number of the pass among all passes of its capture.
        comparisons: of its layers with the model's own kernel and function.
        layers: the calls of attention so far.
        paths: the way each layer was measured.
        masks: those that the model has asked for.
        modules: the module of each layer, whose attention it is.
        vocabularies: the tokens of the texts whose logits are read, by the device of the layers that ask for them.
        outputs: z as it went on, v, and the keys that may be seen, of each layer, where gradients are asked for.
    """

    model: Model
    batch: Batch
    observe: Observer | None
    edit: Edit | None
    gradients: bool
    block_rows: int | None
    whole: bool
    verify: bool
    matrix_because: str
    fused_from: int
    norms: Norms | None = None
    unembedding: Unembedding | None = None
    chosen_rows: Mapping[str, Sequence[slice]] = field(default_factory=dict)
    kernels: Kernels = field(default_factory=Kernels)
    with_matrix: Reasons = field(default_factory=dict)
    turn: int = 0
    comparisons: Comparisons = field(default_factory=Comparisons)
    layers: Counter[str] = field(default_factory=Counter)
    paths: Paths = field(default_factory=Counter)
    masks: Masks = field(default_factory=Masks)
    modules: dict[tuple[str, int], nn.Module] = field(default_factory=dict)
    vocabularies: dict[torch.device, Sequence[Vocabulary]] = field(default_factory=dict)
    outputs: dict[tuple[str, int], tuple[Tensor, Tensor, Visible]] = field(default_factory=dict)

    def show(self, attention: Attention) -> None:
        """Hand a layer's attention to the observer, who is no part of what is differentiated."""
        if self.observe is not None:
            with torch.no_grad():
                self.observe(attention)

    def measure_norms(self, call: "Call") -> Float[Tensor, "batch head key"] | None:
        """The norms of what each head takes from each key; None where the weights themselves are shown."""
        if self.norms is None:
            return None
        real = self.find_batch(call).keys(call.attention_type).real
        return self.norms.measure(call.attention_type, call.layer, call.value.detach(), real)

    def find_raised(self, call: "Call") -> Int[Tensor, "batch head key"] | None:
        """The token that the value of each key raises most; None where nobody reads logits."""
        if self.unembedding is None:
            return None
        device = call.value.device
        if device not in self.vocabularies:
            # Only a decoder alone has logits that are read; all of its layers see the same tokens.
            keys = self.batch.keys("decoder")
            self.vocabularies[device] = self.unembedding.read(keys.ids, keys.word >= 0, device)
        with torch.no_grad():
            return self.unembedding.find_raised(call.attention_type, call.layer, call.value, self.vocabularies[device])

    def find_batch(self, call: "Call") -> Batch:
        """Return the batch on the device on which a call of attention runs."""
        return self.batch.on(call.device)

    def get_attention_type(self, queries: int, keys: int) -> str:
        """The attention type that a call belongs to, by its numbers of queries and keys."""
        if (queries, keys) not in self._attention_types:
            raise ModelError(
                f"{self.model.name!r} calls attention on {queries} queries and {keys} keys for a text of "
                f"{self.batch.encoder.length} tokens; only attention over the whole text can be captured."
            )
        return self._attention_types[queries, keys]

    def number_layer(self, attention_type: str) -> int:
        """The number of the layer whose attention is called next."""
        self.layers[attention_type] += 1
        calls, numbers = self.layers[attention_type], self._numbers[attention_type]
        # What calls attention more often than it has layers is noticed by its count.
        return numbers[calls - 1] if calls <= len(numbers) else self.model.layers[attention_type] + calls

    def is_checked(self) -> bool:
        """Return whether rows of the layer that is called are compared with the model's own function.

        In a layer with the output of the model's own kernel, whose sums are compared in all rows. The first pass
        compares rows of every layer; later, one pass in `CHECKED_PASSES` compares those of one layer, in turn.
        """
        calls, layers = sum(self.layers.values()), sum(self.model.layers.values())
        later, rest = divmod(self.turn, CHECKED_PASSES)
        return self.turn == 0 or (rest == 0 and (calls - later) % layers == 0)

    @cached_property
    def _numbers(self) -> Mapping[str, Sequence[int]]:
        return self.model.attention_layers

    @cached_property
    def _attention_types(self) -> dict[tuple[int, int], str]:
        encoder = self.batch.encoder.length
        if self.batch.decoder is None:
            return {(encoder, encoder): next(iter(self.model.layers))}
        # A decoder reads one token more than its encoder (its start token) or a translation, which is padded to another
        # length (`headscope.capture.tokens.batch.collate`), so the two lengths tell.
        decoder = self.batch.decoder.length
        return {(encoder, encoder): "encoder", (decoder, decoder): "decoder", (decoder, encoder): "cross"}

    def blocks(self, call: "Call") -> Iterator[slice]:
        """Yield blocks of query rows of a call, of the length that was asked for or that its device allows."""
        batch, heads, _, _ = call.given[0].shape
        rows = self.block_rows or max(1, self.find_batch(call).blocks.weights // (batch * heads * call.keys))
        for start in range(0, call.queries, rows):
            yield slice(start, min(start + rows, call.queries))


@dataclass(frozen=True, eq=False)
class Call:
    """One call of attention by a model.

    Attributes:
        given: its queries, keys and values.
    """

    module: nn.Module
    attention_type: str
    layer: int
    given: tuple[
        Float[Tensor, "batch head query size"],
        Float[Tensor, "batch key_head key size"],
        Float[Tensor, "batch key_head key width"],
    ]
    attention_mask: Tensor | None
    reach: Reach | None
    terms: Mapping[str, Any]

    @cached_property
    def query(self) -> Float[Tensor, "batch head query size"]:
        """The queries, in float32 at least."""
        return widen(self.given[0])

    @cached_property
    def key(self) -> Float[Tensor, "batch key_head key size"]:
        """The keys, in float32 at least."""
        return widen(self.given[1])

    @cached_property
    def value(self) -> Float[Tensor, "batch key_head key width"]:
        """The values, in float32 at least."""
        return widen(self.given[2])

    @property
    def device(self) -> torch.device:
        """Where it runs."""
        return self.given[0].device

    @property
    def queries(self) -> int:
        """The number of queries."""
        return self.given[0].shape[2]

    @property
    def keys(self) -> int:
        """The number of keys."""
        return self.given[1].shape[2]

    @property
    def scale(self) -> float:
        """By which the products of queries and keys are multiplied."""
        return find_scale(self.terms, self.given[0].shape[-1])

    def attend_in_blocks(
        self, run: Pass, blocks: Sequence[slice], columns: slice
    ) -> list[tuple[Tensor, Tensor, Tensor]]:
        """The output and weights of the model's own function for some rows and keys; how many keys each row sees.

        Small blocks of rows go together in one call: each call reads all keys and values.
        """
        key, value = (_cut(side, columns) for side in (self.key, self.value))
        query, sizes = _cut(self.query, _join(blocks, self.query)), [*map(count_rows, blocks)]
        output, weights, allowed = self._eager(run, query, key, value, blocks, columns)
        if len(blocks) == 1:
            return [(output, weights, allowed)]
        parts = ((output, 1), (weights, 2), (allowed, 1))
        return [*zip(*(torch.split(part, sizes, axis) for part, axis in parts), strict=True)]

    def attend_without(self, run: Pass, edges: Bool[Tensor, "#batch #head query key"]) -> Z:
        """Z of the model's own function, with some keys out of sight of some queries."""
        keys, outputs = self.keys, []
        for rows in run.blocks(self):
            hidden, query = edges[:, :, rows], self.query[:, :, rows]
            output, _, _ = self._eager(run, query, self.key, self.value, [rows], slice(0, keys), hidden)
            visible = run.masks.visible(self.attention_mask, rows, self.query, keys)
            outputs.append(silence(output.transpose(1, 2), visible, hidden))
        return torch.cat(outputs, dim=2)

    def attend_exactly(self, run: Pass, rows: slice) -> tuple[Tensor, Tensor]:
        """Return output and weights of a few rows and all keys, in float64, a few key heads at a time.

        For so few rows a sum over tens of thousands of keys is further off in float32 than the fused kernel's is.
        """
        query, *sides = self.given
        some, keys = run.find_batch(self).blocks.key_heads, slice(0, self.keys)
        queries = torch.split(query[:, :, rows].double(), some * (query.shape[1] // sides[0].shape[1]), dim=1)
        outputs, weights = [], []
        for few, key, value in zip(queries, *(torch.split(side, some, dim=1) for side in sides), strict=True):
            output, weight, _ = self._eager(run, few, key.double(), value.double(), [rows], keys)
            outputs.append(output)
            weights.append(weight)
        return torch.cat(outputs, dim=2), torch.cat(weights, dim=1)

    def _eager(
        self,
        run: Pass,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        blocks: Sequence[slice],
        columns: slice,
        hidden: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        queries, keys, rows = self.queries, self.keys, _join(blocks, query)
        mask, allowed = run.masks.blocks(self.attention_mask, blocks, columns, query, keys)
        mask = mask if hidden is None else hide(mask, hidden, query.dtype)
        terms = {name: cut(term, rows, columns, queries, keys) for name, term in self.terms.items()}
        eager = find_eager(self.module)
        if self.terms.get("s_aux") is None:
            output, weights = eager(self.module, query, key, value, mask, **terms)
            return output, weights.float(), allowed
        # Some families hide a sink in the output and return weights that sum to 1 (Granite): a value of 1 beside the
        # others says what the weights behind the output sum to.
        output, weights = eager(self.module, query, key, nn.functional.pad(value, (0, 1), value=1.0), mask, **terms)
        sums = output[..., -1].detach().transpose(1, 2)[..., None].float()
        weights = weights.float()
        # Where a sink takes all, nothing is left to divide.
        scaled = weights * (sums / weights.sum(-1, keepdim=True).clamp_min(torch.finfo(weights.dtype).tiny))
        return output[..., :-1].contiguous(), scaled, allowed


def _cut(side: Float[Tensor, "batch head token size"], part: slice | Int[Tensor, " row"]) -> Float[Tensor, "..."]:
    """Return some tokens of queries, keys or values."""
    return side if isinstance(part, slice) and part == slice(0, side.shape[2]) else side[:, :, part]


def _join(blocks: Sequence[slice], query: Tensor) -> slice | Int[Tensor, " row"]:
    """The rows of some blocks, as an index into queries."""
    if len(blocks) == 1:
        return blocks[0]
    return torch.cat([torch.arange(rows.start, rows.stop, rows.step or 1, device=query.device) for rows in blocks])


def find_eager(module: nn.Module) -> Callable[..., tuple[Tensor, Tensor]]:
    """The eager attention function beside the class of `module`, or beside a class it derives from."""
    for owner in type(module).__mro__:
        beside = vars(sys.modules[owner.__module__])
        if "eager_attention_forward" in beside:
            function: Callable[..., tuple[Tensor, Tensor]] = beside["eager_attention_forward"]
            return function
    raise ModelError(
        f"{type(module).__module__} defines {type(module).__name__} without an eager_attention_forward next to it, "
        "so its attention cannot be captured."
    )
