"""Attention masks as blocks of rows, never whole."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from transformers import masking_utils
from transformers.masking_utils import bidirectional_mask_function, causal_mask_function, sdpa_mask

from headscope.capture.model.block_sizes import BlockSizes
from headscope.errors import ModelError

HIDES = -1e4
"""What is added to a score and leaves no weight: transformers adds the lowest number of the type, older code this."""

CHECKED_FROM = 256
"""Keys from which on two rows of each mask are compared: a capture is verified on shorter texts, with shorter
windows."""


@dataclass(frozen=True, eq=False)
class Reach:
    """Which keys a query sees, where that is a matter of distance and padding.

    Attributes:
        before: how many keys before its own place; None for all.
        after: how many keys after its own place; None for all.
        hidden: keys that no query sees (padding); None if there are none.
    """

    before: int | None = None
    after: int | None = None
    hidden: Bool[Tensor, "batch key"] | None = None
    _counts: dict[tuple[int, int, int, torch.device], Float[Tensor, "batch query"]] = field(
        default_factory=dict, repr=False
    )

    @property
    def everywhere(self) -> bool:
        """Every query sees every key."""
        return self.before is None and self.after is None and self.hidden is None

    def on(self, device: torch.device) -> "Reach":
        """Return the same reach for queries and keys on a device."""
        return self if self.hidden is None else replace(self, hidden=self.hidden.to(device))

    def __str__(self) -> str:
        """In words, as the table's paths name it."""
        if (self.before, self.after) == (None, None):
            return "all keys"
        if self.before is None:
            return "causal" if self.after == 0 else f"up to {self.after:,} keys after"
        return f"window of {self.before:,} keys before" + (f" and {self.after:,} after" if self.after else "")

    def keys(self, rows: slice, keys: int) -> slice:
        """The keys that any query of a block of rows sees; hidden ones may be among them."""
        first = 0 if self.before is None else max(0, rows.start - self.before)
        return slice(first, keys if self.after is None else min(keys, rows.stop + self.after))

    def within(self, distance: Int[Tensor, "..."]) -> Bool[Tensor, "..."]:
        """True where a key at this distance (its place minus the query's) is near enough."""
        near = torch.ones_like(distance, dtype=torch.bool)
        if self.before is not None:
            near &= distance >= -self.before
        if self.after is not None:
            near &= distance <= self.after
        return near

    def sees(
        self, queries: Int[Tensor, " query"], keys: Int[Tensor, " key"] | Int[Tensor, "batch key"]
    ) -> Bool[Tensor, "any query key"]:
        """True where a query sees a key; the keys are the same for all texts, or others for each."""
        keys = keys.expand(1, -1) if keys.ndim == 1 else keys
        seen = self.within(keys[:, None] - queries[:, None])
        if self.hidden is None:
            return seen
        return seen & ~self.hidden.gather(1, keys.expand(len(self.hidden), -1))[:, None]

    def count(self, texts: int, queries: int, keys: int, device: torch.device) -> Float[Tensor, "batch query"]:
        """Return how many keys each query sees, found once for all layers that have the same mask."""
        size = (texts, queries, keys, device)
        if size not in self._counts:
            place = torch.arange(queries, device=device)
            shown = torch.ones(texts, keys, device=device) if self.hidden is None else (~self.hidden).float()
            up_to = torch.nn.functional.pad(shown.cumsum(1), (1, 0))
            first = (place - (keys if self.before is None else self.before)).clamp(0, keys)
            last = (place + (keys if self.after is None else self.after + 1)).clamp_max(keys)
            self._counts[size] = up_to[:, last] - up_to[:, first]
        return self._counts[size]

    def hiding(self, keys: slice, queries: int, dtype: torch.dtype) -> Float[Tensor, "batch 1 query key"] | None:
        """A mask that hides padding from a kernel: one row for each text, expanded, so that it takes no memory."""
        if self.hidden is None:
            return None
        return as_mask(self.hidden[:, keys], dtype)[:, None, None].expand(-1, 1, queries, -1)


def count_rows(rows: slice) -> int:
    """The number of rows of a block, which may be every so manieth row from the first on."""
    return len(range(rows.start, rows.stop, rows.step or 1))


def as_mask(hidden: Bool[Tensor, "..."], dtype: torch.dtype) -> Float[Tensor, "..."]:
    """A mask that is added to scores: finite, so that a row of which all is hidden has a sum, of nothing."""
    return torch.zeros_like(hidden, dtype=dtype).masked_fill_(hidden, torch.finfo(dtype).min)


def hide(mask: Tensor | None, hidden: Bool[Tensor, "..."], dtype: torch.dtype) -> Float[Tensor, "..."]:
    """A mask that is added to scores and hides some keys more than another one (a Boolean, added, or None) does."""
    if mask is not None and mask.dtype == torch.bool:
        return as_mask(hidden | ~mask, dtype)
    before = torch.zeros((), dtype=dtype, device=hidden.device) if mask is None else mask
    return torch.where(hidden, torch.finfo(dtype).min, before.to(dtype))


@dataclass(eq=False)
class _Kept:
    """The arguments of a mask that is built when its rows are known.

    Attributes:
        tickets: the tensors that stand for the mask until then, by the devices of layers.
        size: of these.
        given: those arguments as they came.
        arguments: those of transformers' mask function, for a mask that is built whatever it shows.
        reach: what they come to, if that is known.
        reaches: the same on the devices of the layers that have asked for it.
        blocks: those that were asked for last, by their rows, keys, type and device.
    """

    tickets: dict[torch.device, Tensor]
    size: tuple[int, ...]
    given: Mapping[str, Any]
    arguments: dict[str, Any]
    reach: Reach | None
    reaches: dict[torch.device, Reach] = field(default_factory=dict)
    blocks: dict[tuple[int, int, int, int, int, torch.dtype, torch.device], tuple[Tensor | None, Tensor]] = field(
        default_factory=dict
    )

    @cached_property
    def own(self) -> Tensor | None:
        """The whole mask, as transformers would have made it for its fused kernels."""
        whole: Tensor | None = sdpa_mask(**self.given)
        return whole

    def find_reach(self, device: torch.device) -> Reach | None:
        """Return the reach of the mask on a device, if it is known."""
        if self.reach is not None and device not in self.reaches:
            self.reaches[device] = self.reach.on(device)
        return self.reaches.get(device)

    def block(self, rows: slice, keys: slice, dtype: torch.dtype, device: torch.device) -> tuple[Tensor | None, Tensor]:
        """The mask that is added to the scores (None where every key may be seen), and the number of visible keys."""
        block = (rows.start, rows.stop, rows.step or 1, keys.start, keys.stop, dtype, device)
        if block not in self.blocks:
            seen, size = self._seen(rows, keys, device), (self.arguments["batch_size"], count_rows(rows))
            if seen is None:
                allowed = torch.full(size, float(keys.stop - keys.start), device=device)
            else:
                allowed = seen[:, 0].sum(-1, dtype=torch.float32).expand(size)
            # Every layer asks for the same blocks; all are kept while they are small.
            kept = BlockSizes.measure(allowed.device).kept
            if sum(mask.numel() for mask, _ in self.blocks.values() if mask is not None) > kept:
                self.blocks = {}
            self.blocks[block] = (None if seen is None else as_mask(~seen, dtype), allowed)
        return self.blocks[block]

    def _seen(self, rows: slice, keys: slice, device: torch.device) -> Tensor | None:
        reach = self.find_reach(device)
        if reach is None:
            size = {"q_length": rows.stop - rows.start, "q_offset": self.arguments["q_offset"] + rows.start}
            seen: Tensor | None = sdpa_mask(**self.arguments | size)
            return seen if seen is None else seen[:, :, :: rows.step or 1].to(device)
        if reach.everywhere:
            return None
        places = (torch.arange(part.start, part.stop, part.step or 1, device=device) for part in (rows, keys))
        return reach.sees(*places)[:, None]


class Ticket(Tensor):
    """An empty tensor in place of a mask, which can be moved to other devices.

    Attributes:
        move: returns the ticket on another device.
    """

    move: Callable[[torch.device], Tensor]

    @classmethod
    def __torch_function__(
        cls, function: Callable[..., Any], types: Any, arguments: Any = (), named: Any = None
    ) -> Any:
        """Return what a function of torch makes of it, which is no ticket."""
        with torch._C.DisableTorchFunctionSubclass():
            return function(*arguments, **named or {})

    def to(self, *arguments: Any, **named: Any) -> Tensor:
        """Return the ticket on another device, or of another type."""
        elsewhere: Tensor = super().to(*arguments, **named)
        return elsewhere if elsewhere.device == self.device else self.move(elsewhere.device)


@dataclass(eq=False)
class Masks:
    """The masks of one forward pass.

    Where a model asks transformers for a mask it is handed a ticket, an empty tensor, which it
    passes on to attention. There the mask is built, for the rows of a block. Layers on other devices are handed a
    ticket that was moved there.
    """

    _kept: dict[int, _Kept] = field(default_factory=dict)
    _everywhere: Reach = field(default_factory=Reach)

    def keep(self, arguments: Mapping[str, Any]) -> Tensor:
        """A ticket for the mask that these arguments of transformers' mask function would make."""
        defaults: dict[str, Any] = {"allow_is_bidirectional_skip": False, "device": "cpu"}
        kept = defaults | dict(arguments) | {"allow_is_causal_skip": False}
        size = (int(kept["batch_size"]), 1, int(kept["q_length"]), 0)
        mask = _Kept({}, size, arguments, kept, _find_reach(kept))
        ticket = self._issue(mask, torch.device(kept["device"])).as_subclass(Ticket)
        ticket.move = partial(self._issue, mask)
        return ticket

    def _issue(self, kept: _Kept, device: torch.device) -> Tensor:
        """Return the ticket for a mask on a device."""
        if device not in kept.tickets:
            # Gemma 4 slices its masks, to all of their rows: a ticket is known by its memory, so it has some, which no
            # copy of an empty tensor would have.
            kept.tickets[device] = torch.empty(1, device=device).as_strided(kept.size, (0, 0, 0, 0))
            self._kept[_find_memory(kept.tickets[device])] = kept
        return kept.tickets[device]

    def reach(self, attention_mask: Tensor | None, device: torch.device) -> Reach | None:
        """Return which keys a mask shows to queries on a device; None unless only distance and padding decide."""
        if attention_mask is None:
            return self._everywhere
        kept = self._find(attention_mask)
        return None if kept is None else kept.find_reach(device)

    def own(self, attention_mask: Tensor | None, device: torch.device) -> Tensor | None:
        """The whole mask that the model would have handed to a fused kernel; None where there is none to hand over."""
        kept = None if attention_mask is None else self._find(attention_mask)
        own = attention_mask if kept is None else kept.own
        return own if own is None else own.to(device)

    def _find(self, attention_mask: Tensor) -> _Kept | None:
        """Return what a ticket stands for; None if the mask is the model's own, or has other rows than the ticket."""
        kept = self._kept.get(_find_memory(attention_mask))
        return None if kept is None or kept.size != tuple(attention_mask.shape) else kept

    def block(
        self, attention_mask: Tensor | None, rows: slice, columns: slice, query: Tensor, keys: int
    ) -> tuple[Tensor | None, Float[Tensor, "batch query"]]:
        """A block of a mask as an eager attention function wants it, and the number of keys it leaves to each row.

        `attention_mask` is what the model hands to attention: one of our tickets, or its own mask. If `reach` does not
        know the mask, the block has all `keys` as columns. Device and type are taken from `query`.

        Raises:
            ModelError: the model has made something else of its ticket.
        """
        size = (query.shape[0], count_rows(rows))
        if attention_mask is None:
            return None, torch.full(size, float(keys), device=query.device)
        kept = self._find(attention_mask)
        if kept is not None:
            return kept.block(rows, columns, query.dtype, query.device)
        if attention_mask.ndim != 4 or attention_mask.shape[-1] != keys:
            raise ModelError(
                f"the model rewrites its attention mask to the shape {tuple(attention_mask.shape)}, "
                "which cannot be followed; its attention cannot be captured."
            )
        own = attention_mask if attention_mask.shape[-2] == 1 else attention_mask[:, :, rows]
        return own, shown(own)[:, 0].sum(-1, dtype=torch.float32).expand(size)

    def blocks(
        self, attention_mask: Tensor | None, blocks: Sequence[slice], columns: slice, query: Tensor, keys: int
    ) -> tuple[Tensor | None, Float[Tensor, "batch query"]]:
        """Several blocks as one, one below the other; the arguments are those of `block`."""
        masks, allowed = zip(*(self.block(attention_mask, rows, columns, query, keys) for rows in blocks), strict=True)
        if len(blocks) == 1:
            return masks[0], allowed[0]
        if masks[0] is None:
            return None, torch.cat(allowed, dim=1)
        # A mask of the model's own may have one row for all.
        whole = [mask.expand(*mask.shape[:-2], count_rows(rows), -1) for mask, rows in zip(masks, blocks, strict=True)]
        return torch.cat(whole, dim=-2), torch.cat(allowed, dim=1)

    def visible(
        self, attention_mask: Tensor | None, rows: slice, query: Tensor, keys: int
    ) -> Bool[Tensor, "batch query key"]:
        """The keys that a mask shows to each query of a block of rows; the arguments are those of `block`."""
        size = (query.shape[0], count_rows(rows), keys)
        mask, _ = self.block(attention_mask, rows, slice(0, keys), query, keys)
        if mask is None:
            return torch.ones(size, dtype=torch.bool, device=query.device)
        return shown(mask)[:, 0].expand(size)


def _find_memory(mask: Tensor) -> int:
    return int(mask.untyped_storage().data_ptr())


def shown(mask: Tensor) -> Bool[Tensor, "..."]:
    """True where a mask, a Boolean or added to the scores, does not hide a key: a sum far below zero hides it."""
    return mask if mask.dtype == torch.bool else mask > HIDES


def _find_reach(arguments: Mapping[str, Any]) -> Reach | None:
    window = _find_window(arguments.get("mask_function", causal_mask_function))
    if window is None or arguments["q_offset"] or arguments.get("kv_offset"):
        return None
    # A window as long as the text is none.
    before, after = (None if side and side >= arguments["kv_length"] - 1 else side for side in window)
    padding = arguments.get("attention_mask")
    # Padding stands on the right, where a causal mask hides it from every real query.
    hidden = None if padding is None or after == 0 or bool(padding.all()) else ~padding.bool()
    reach = Reach(before, after, hidden)
    return reach if arguments["kv_length"] < CHECKED_FROM or _agrees_with_transformers(reach, arguments) else None


def _agrees_with_transformers(reach: Reach, arguments: Mapping[str, Any]) -> bool:
    """True if two rows of the mask are those of transformers: one shows a window, one what lies ahead."""
    queries, padding, device = arguments["q_length"], arguments.get("attention_mask"), arguments["device"]
    for row in (queries - 1, queries // 2):
        expected = sdpa_mask(**dict(arguments) | {"q_length": 1, "q_offset": row})
        if expected is None:
            return reach.everywhere
        ours = reach.sees(torch.tensor([row], device=device), torch.arange(expected.shape[-1], device=device))
        differ = (ours != expected[:, 0]).any(-1)[:, 0]
        # What padding sees is of no interest.
        if bool((differ if padding is None else differ & padding[:, row].bool()).any()):
            return False
    return True


def _find_window(mask_function: Callable[..., Any]) -> tuple[int | None, int | None] | None:
    """The number of keys before and after a query that a mask function of transformers shows; None if it is another.

    Windows are closures: they are known by the code they share, and their size is what they close over.
    """
    if mask_function is bidirectional_mask_function:
        return None, None
    if mask_function is causal_mask_function:
        return None, 0
    if not inspect.isfunction(mask_function):
        return None
    for make in (
        masking_utils.sliding_window_causal_mask_function,
        masking_utils.sliding_window_bidirectional_mask_function,
    ):
        pattern = make(1)
        if mask_function.__code__ is not pattern.__code__:
            continue
        overlay, base = _list_parts(mask_function) if len(_list_parts(mask_function)) == 2 else (None, None)
        overlay_like, base_like = _list_parts(pattern)
        if inspect.isfunction(overlay) and overlay.__code__ is overlay_like.__code__ and base is base_like:
            size = int(inspect.getclosurevars(overlay).nonlocals["sliding_window"])
            # The causal window counts the query itself, the other does not.
            return (size - 1, 0) if base is causal_mask_function else (size, size)
    return None


def _list_parts(mask_function: Callable[..., Any]) -> tuple[Callable[..., Any], ...]:
    """The mask functions that a joint one consists of."""
    parts: tuple[Callable[..., Any], ...] = inspect.getclosurevars(mask_function).nonlocals["mask_functions"]
    return parts
