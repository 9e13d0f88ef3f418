"""A forward pass under headscope's attention implementation, and one call of attention in it."""

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
"""One in this number of passes compares a few rows of a layer with the model's own function (`Pass.is_checked`)."""

Observer = Callable[[Attention], None]

Paths = Counter[tuple[str, int, str]]
"""The number of measured texts, by attention type, layer and measuring path (with or without the matrix, and why)."""


@dataclass(eq=False)
class Pass:
    """The state of one forward pass under headscope's attention implementation.

    Attributes:
        model: The model that runs.
        batch: The batch that it reads.
        observe, edit, gradients, block_rows, whole, verify: See `headscope.capture.forward.interface.Capture.run`;
            `block_rows` is `rows` there.
        matrix_because: The reason why every layer needs the matrix; empty if not every layer does.
        with_matrix: The reason why a layer needs the matrix, by layer; empty if no layer is known to need it.
        fused_from: The number of keys from which on layers are measured without the matrix; 0 for any number.
        norms: The measure of norms for the norm view; None without that view.
        unembedding: The map from values to logits; None if no reducer reads logits.
        chosen_rows: The blocks of query rows to show, by attention type. For a missing type, all rows are shown.
        kernels: The kernels that measure attention without the matrix on a GPU.
        turn: The number of the pass among all passes of its capture, counted from 0.
        comparisons: The comparisons of the layers with the model's own kernel and function.
        layers: The number of calls of attention until now, by attention type.
        paths: The number of measured texts, by layer and measuring path.
        masks: The masks that the model has asked for.
        modules: The attention module of each layer.
        vocabularies: The vocabulary of each text (`Unembedding.read`), by the device of the layers that need it.
        outputs: The edited output of the heads, the values, and the function that returns the visible keys, by layer;
            empty unless gradients are computed.
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
        """Pass a layer's attention to the observer, if there is one; no gradients are recorded meanwhile."""
        if self.observe is not None:
            with torch.no_grad():
                self.observe(attention)

    def measure_norms(self, call: "Call") -> Float[Tensor, "batch head key"] | None:
        """Return the norm of each key's value after each head's output projection; None without the norm view."""
        if self.norms is None:
            return None
        real = self.find_batch(call).keys(call.attention_type).real
        return self.norms.measure(call.attention_type, call.layer, call.value.detach(), real)

    def find_raised(self, call: "Call") -> Int[Tensor, "batch head key"] | None:
        """Return the id of the token whose logit each key's value raises most; None if no reducer reads logits."""
        if self.unembedding is None:
            return None
        device = call.value.device
        if device not in self.vocabularies:
            # Logits are read only from models with a decoder alone; all of its layers see the same tokens.
            keys = self.batch.keys("decoder")
            self.vocabularies[device] = self.unembedding.read(keys.ids, keys.word >= 0, device)
        with torch.no_grad():
            return self.unembedding.find_raised(call.attention_type, call.layer, call.value, self.vocabularies[device])

    def find_batch(self, call: "Call") -> Batch:
        """Return the batch on the device on which a call of attention runs."""
        return self.batch.on(call.device)

    def get_attention_type(self, queries: int, keys: int) -> str:
        """Return the attention type of a call with these numbers of queries and keys.

        Raises:
            ModelError: No attention type of the batch has these numbers.
        """
        if (queries, keys) not in self._attention_types:
            raise ModelError(
                f"{self.model.name!r} calls attention on {queries} queries and {keys} keys for a text of "
                f"{self.batch.encoder.length} tokens; only attention over the whole text can be captured."
            )
        return self._attention_types[queries, keys]

    def number_layer(self, attention_type: str) -> int:
        """Count a call of attention, and return the number of the layer that makes the call."""
        self.layers[attention_type] += 1
        calls, numbers = self.layers[attention_type], self._numbers[attention_type]
        # A model that calls attention more often than it has layers is refused later, by the count of its layers.
        return numbers[calls - 1] if calls <= len(numbers) else self.model.layers[attention_type] + calls

    def is_checked(self) -> bool:
        """Return whether to compare rows of the current layer with the model's own function.

        This is for layers with the output of the model's own kernel: the sums of all their rows are compared anyway.
        The first pass compares rows of every layer. Later, one pass in `CHECKED_PASSES` compares rows of one layer,
        each layer in turn.
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
        # A decoder reads one token more than its encoder (its start token), or a translation, which is padded to
        # another length (`headscope.capture.tokens.batch.collate`). So the two lengths tell the types apart.
        decoder = self.batch.decoder.length
        return {(encoder, encoder): "encoder", (decoder, decoder): "decoder", (decoder, encoder): "cross"}

    def blocks(self, call: "Call") -> Iterator[slice]:
        """Yield the query rows of a call in blocks of `block_rows` rows, or else of the most rows its device allows."""
        batch, heads, _, _ = call.given[0].shape
        rows = self.block_rows or max(1, self.find_batch(call).blocks.weights // (batch * heads * call.keys))
        for start in range(0, call.queries, rows):
            yield slice(start, min(start + rows, call.queries))


@dataclass(frozen=True, eq=False)
class Call:
    """One call of attention by a model.

    Attributes:
        module: The attention module that makes the call.
        attention_type, layer: The attention type and the number of the layer, counted from 1.
        given: The queries, keys and values, in the type of the model.
        attention_mask: The mask that the model passes, or the ticket in its place; None without a mask.
        reach: The keys that a query sees; None if more than distance and padding decides.
        terms: The other arguments of the call, by name.
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
        """The device on which the call runs."""
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
        """The factor by which the products of queries and keys are multiplied."""
        return find_scale(self.terms, self.given[0].shape[-1])

    def attend_in_blocks(
        self, run: Pass, blocks: Sequence[slice], columns: slice
    ) -> list[tuple[Tensor, Tensor, Tensor]]:
        """Run the model's own function on blocks of rows, and return output, weights and key counts of each block.

        Only the keys of `columns` take part. The key counts are the numbers of keys that each row sees. Small blocks of
        rows share one call, since each call reads all keys and values.
        """
        key, value = (_cut(side, columns) for side in (self.key, self.value))
        query, sizes = _cut(self.query, _join(blocks, self.query)), [*map(count_rows, blocks)]
        output, weights, allowed = self._eager(run, query, key, value, blocks, columns)
        if len(blocks) == 1:
            return [(output, weights, allowed)]
        parts = ((output, 1), (weights, 2), (allowed, 1))
        return [*zip(*(torch.split(part, sizes, axis) for part, axis in parts), strict=True)]

    def attend_without(self, run: Pass, edges: Bool[Tensor, "#batch #head query key"]) -> Z:
        """Return the output of the heads with keys hidden from queries where `edges` is True.

        A query whose visible keys are all hidden gets 0.
        """
        keys, outputs = self.keys, []
        for rows in run.blocks(self):
            hidden, query = edges[:, :, rows], self.query[:, :, rows]
            output, _, _ = self._eager(run, query, self.key, self.value, [rows], slice(0, keys), hidden)
            visible = run.masks.visible(self.attention_mask, rows, self.query, keys)
            outputs.append(silence(output.transpose(1, 2), visible, hidden))
        return torch.cat(outputs, dim=2)

    def attend_exactly(self, run: Pass, rows: slice) -> tuple[Tensor, Tensor]:
        """Compute output and weights of a few rows and all keys in float64, a few key heads at a time.

        In float32, a sum over tens of thousands of keys would be less exact than the sum in the fused kernel.
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
        # Some families apply a sink to the output, but return weights that sum to 1 (Granite). An added value of 1
        # shows what the weights of the output sum to.
        output, weights = eager(self.module, query, key, nn.functional.pad(value, (0, 1), value=1.0), mask, **terms)
        sums = output[..., -1].detach().transpose(1, 2)[..., None].float()
        weights = weights.float()
        # If a sink takes all attention, the sum is 0.
        scaled = weights * (sums / weights.sum(-1, keepdim=True).clamp_min(torch.finfo(weights.dtype).tiny))
        return output[..., :-1].contiguous(), scaled, allowed


def _cut(side: Float[Tensor, "batch head token size"], part: slice | Int[Tensor, " row"]) -> Float[Tensor, "..."]:
    """Return queries, keys or values for some of their tokens."""
    return side if isinstance(part, slice) and part == slice(0, side.shape[2]) else side[:, :, part]


def _join(blocks: Sequence[slice], query: Tensor) -> slice | Int[Tensor, " row"]:
    """Return one index for the rows of all blocks: a slice if there is a single block, or else their row numbers."""
    if len(blocks) == 1:
        return blocks[0]
    return torch.cat([torch.arange(rows.start, rows.stop, rows.step or 1, device=query.device) for rows in blocks])


def find_eager(module: nn.Module) -> Callable[..., tuple[Tensor, Tensor]]:
    """Find the eager attention function in the Python module that defines the class of `module` or a base class.

    Raises:
        ModelError: None of these Python modules has an ``eager_attention_forward``.
    """
    for owner in type(module).__mro__:
        beside = vars(sys.modules[owner.__module__])
        if "eager_attention_forward" in beside:
            function: Callable[..., tuple[Tensor, Tensor]] = beside["eager_attention_forward"]
            return function
    raise ModelError(
        f"{type(module).__module__} defines {type(module).__name__} without an eager_attention_forward next to it, "
        "so its attention cannot be captured."
    )
