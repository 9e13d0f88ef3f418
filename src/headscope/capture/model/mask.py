"""Attention masks, built in blocks of rows."""

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
"""An additive mask hides a key by this number, as older code does, or by a lower number, as transformers does."""

CHECKED_FROM = 256
"""The number of keys from which on two rows of each mask are compared with transformers.

A capture is verified on shorter texts, which may not show the limits of a window.
"""


@dataclass(frozen=True, eq=False)
class Reach:
    """A rule for the keys that a query sees, for masks in which only distance and padding decide.

    Attributes:
        before: The number of visible keys before the query's position; None for all.
        after: The number of visible keys after the query's position; None for all.
        hidden: True for keys that no query sees (padding); None if only distance decides.
    """

    before: int | None = None
    after: int | None = None
    hidden: Bool[Tensor, "batch key"] | None = None
    _counts: dict[tuple[int, int, int, torch.device], Float[Tensor, "batch query"]] = field(
        default_factory=dict, repr=False
    )

    @property
    def everywhere(self) -> bool:
        """True if every query sees every key."""
        return self.before is None and self.after is None and self.hidden is None

    def on(self, device: torch.device) -> "Reach":
        """Return the same reach for queries and keys on a device."""
        return self if self.hidden is None else replace(self, hidden=self.hidden.to(device))

    def __str__(self) -> str:
        """Return the reach in words, as the measuring paths of a table name it."""
        if (self.before, self.after) == (None, None):
            return "all keys"
        if self.before is None:
            return "causal" if self.after == 0 else f"up to {self.after:,} keys after"
        return f"window of {self.before:,} keys before" + (f" and {self.after:,} after" if self.after else "")

    def keys(self, rows: slice, keys: int) -> slice:
        """Return the range of keys that any query of a block of rows sees; it may include padding."""
        first = 0 if self.before is None else max(0, rows.start - self.before)
        return slice(first, keys if self.after is None else min(keys, rows.stop + self.after))

    def within(self, distance: Int[Tensor, "..."]) -> Bool[Tensor, "..."]:
        """Return True where a key at a distance (key position minus query position) is near enough to be seen."""
        near = torch.ones_like(distance, dtype=torch.bool)
        if self.before is not None:
            near &= distance >= -self.before
        if self.after is not None:
            near &= distance <= self.after
        return near

    def sees(
        self, queries: Int[Tensor, " query"], keys: Int[Tensor, " key"] | Int[Tensor, "batch key"]
    ) -> Bool[Tensor, "any query key"]:
        """Return True where a query sees a key; the key positions may be the same for all texts, or differ by text."""
        keys = keys.expand(1, -1) if keys.ndim == 1 else keys
        seen = self.within(keys[:, None] - queries[:, None])
        if self.hidden is None:
            return seen
        return seen & ~self.hidden.gather(1, keys.expand(len(self.hidden), -1))[:, None]

    def count(self, texts: int, queries: int, keys: int, device: torch.device) -> Float[Tensor, "batch query"]:
        """Return the number of keys that each query sees, counted once for all layers with the same mask."""
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
        """Return a mask that hides padding from a kernel; None without padding.

        It has one row for each text, expanded to all queries without using memory.
        """
        if self.hidden is None:
            return None
        return as_mask(self.hidden[:, keys], dtype)[:, None, None].expand(-1, 1, queries, -1)


def count_rows(rows: slice) -> int:
    """Count the rows of a block, which may have a step."""
    return len(range(rows.start, rows.stop, rows.step or 1))


def as_mask(hidden: Bool[Tensor, "..."], dtype: torch.dtype) -> Float[Tensor, "..."]:
    """Return a mask to add to scores: the lowest finite number where `hidden` is True, and 0 elsewhere.

    With infinite numbers, a row with all keys hidden would give NaN.
    """
    return torch.zeros_like(hidden, dtype=dtype).masked_fill_(hidden, torch.finfo(dtype).min)


def hide(mask: Tensor | None, hidden: Bool[Tensor, "..."], dtype: torch.dtype) -> Float[Tensor, "..."]:
    """Return an additive mask that hides the keys that `mask` (Boolean, additive or None) or `hidden` hides."""
    if mask is not None and mask.dtype == torch.bool:
        return as_mask(hidden | ~mask, dtype)
    before = torch.zeros((), dtype=dtype, device=hidden.device) if mask is None else mask
    return torch.where(hidden, torch.finfo(dtype).min, before.to(dtype))


@dataclass(eq=False)
class _Kept:
    """The arguments of a mask, which is built later, when its rows are known.

    Attributes:
        tickets: The tensors that replace the mask until then, by device of the layers.
        size: The shape of the tickets.
        given: The arguments of transformers' mask function, as the model passed them.
        arguments: The same arguments, changed so that transformers never skips a causal mask.
        reach: The reach of the mask; None if it is unknown.
        reaches: The reach on each device whose layers have asked for it.
        blocks: The blocks that were built last, by their rows, keys, type and device.
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
        """The whole mask, as transformers would have made it for its fused kernels; None if they need none."""
        whole: Tensor | None = sdpa_mask(**self.given)
        return whole

    def find_reach(self, device: torch.device) -> Reach | None:
        """Return the reach of the mask on a device; None if it is unknown."""
        if self.reach is not None and device not in self.reaches:
            self.reaches[device] = self.reach.on(device)
        return self.reaches.get(device)

    def block(self, rows: slice, keys: slice, dtype: torch.dtype, device: torch.device) -> tuple[Tensor | None, Tensor]:
        """Return a block of the additive mask (None if every key is visible), and each row's number of visible keys."""
        block = (rows.start, rows.stop, rows.step or 1, keys.start, keys.stop, dtype, device)
        if block not in self.blocks:
            seen, size = self._seen(rows, keys, device), (self.arguments["batch_size"], count_rows(rows))
            if seen is None:
                allowed = torch.full(size, float(keys.stop - keys.start), device=device)
            else:
                allowed = seen[:, 0].sum(-1, dtype=torch.float32).expand(size)
            # Every layer asks for the same blocks, so they are kept as long as they are small together.
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
        move: A function that returns the ticket on another device.
    """

    move: Callable[[torch.device], Tensor]

    @classmethod
    def __torch_function__(
        cls, function: Callable[..., Any], types: Any, arguments: Any = (), named: Any = None
    ) -> Any:
        """Apply a function of torch; its result is a plain tensor, not a ticket."""
        with torch._C.DisableTorchFunctionSubclass():
            return function(*arguments, **named or {})

    def to(self, *arguments: Any, **named: Any) -> Tensor:
        """Return the ticket on another device, or of another type."""
        elsewhere: Tensor = super().to(*arguments, **named)
        return elsewhere if elsewhere.device == self.device else self.move(elsewhere.device)


@dataclass(eq=False)
class Masks:
    """The masks of one forward pass.

    If a model asks transformers for a mask, it gets a ticket, an empty tensor, and passes it on to attention. From the
    ticket, attention builds the mask for a block of rows. Layers on other devices get a ticket that was moved there.
    """

    _kept: dict[int, _Kept] = field(default_factory=dict)
    _everywhere: Reach = field(default_factory=Reach)

    def keep(self, arguments: Mapping[str, Any]) -> Tensor:
        """Return a ticket for the mask that transformers' mask function would make from these arguments."""
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
            # Gemma 4 slices its masks (to all rows). So a ticket is recognised by its memory address, and has a byte
            # of memory, since a copy of an empty tensor has no address.
            kept.tickets[device] = torch.empty(1, device=device).as_strided(kept.size, (0, 0, 0, 0))
            self._kept[_find_memory(kept.tickets[device])] = kept
        return kept.tickets[device]

    def reach(self, attention_mask: Tensor | None, device: torch.device) -> Reach | None:
        """Return the reach of a mask on a device; None if more than distance and padding decides what it shows."""
        if attention_mask is None:
            return self._everywhere
        kept = self._find(attention_mask)
        return None if kept is None else kept.find_reach(device)

    def own(self, attention_mask: Tensor | None, device: torch.device) -> Tensor | None:
        """Return the whole mask that the model would have passed to a fused kernel; None if it would pass none."""
        kept = None if attention_mask is None else self._find(attention_mask)
        own = attention_mask if kept is None else kept.own
        return own if own is None else own.to(device)

    def _find(self, attention_mask: Tensor) -> _Kept | None:
        """Find the kept mask of a ticket; None if the tensor is not a ticket, or has another shape than the ticket."""
        kept = self._kept.get(_find_memory(attention_mask))
        return None if kept is None or kept.size != tuple(attention_mask.shape) else kept

    def block(
        self, attention_mask: Tensor | None, rows: slice, columns: slice, query: Tensor, keys: int
    ) -> tuple[Tensor | None, Float[Tensor, "batch query"]]:
        """Build a block of a mask for an eager attention function, and count the visible keys of each row.

        `attention_mask` is the mask that the model passes to attention: a ticket, or its own mask. If the reach of the
        mask is unknown, the block has all `keys` as columns. Device and type are those of `query`.

        Raises:
            ModelError: The model has changed its ticket into another tensor.
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
        """Return what `block` returns for several blocks, joined row after row; the arguments are as in `block`."""
        masks, allowed = zip(*(self.block(attention_mask, rows, columns, query, keys) for rows in blocks), strict=True)
        if len(blocks) == 1:
            return masks[0], allowed[0]
        if masks[0] is None:
            return None, torch.cat(allowed, dim=1)
        # The model's own mask may have a single row for all queries.
        whole = [mask.expand(*mask.shape[:-2], count_rows(rows), -1) for mask, rows in zip(masks, blocks, strict=True)]
        return torch.cat(whole, dim=-2), torch.cat(allowed, dim=1)

    def visible(
        self, attention_mask: Tensor | None, rows: slice, query: Tensor, keys: int
    ) -> Bool[Tensor, "batch query key"]:
        """Return True where a query of a block of rows may see a key; the arguments are as in `block`."""
        size = (query.shape[0], count_rows(rows), keys)
        mask, _ = self.block(attention_mask, rows, slice(0, keys), query, keys)
        if mask is None:
            return torch.ones(size, dtype=torch.bool, device=query.device)
        return shown(mask)[:, 0].expand(size)


def _find_memory(mask: Tensor) -> int:
    return int(mask.untyped_storage().data_ptr())


def shown(mask: Tensor) -> Bool[Tensor, "..."]:
    """Return True where a mask, Boolean or additive, shows a key; an additive mask hides it by a very low number."""
    return mask if mask.dtype == torch.bool else mask > HIDES


def _find_reach(arguments: Mapping[str, Any]) -> Reach | None:
    window = _find_window(arguments.get("mask_function", causal_mask_function))
    if window is None or arguments["q_offset"] or arguments.get("kv_offset"):
        return None
    # A window as long as the text hides nothing.
    before, after = (None if side and side >= arguments["kv_length"] - 1 else side for side in window)
    padding = arguments.get("attention_mask")
    # Padding is on the right, where a causal mask hides it from every real query.
    hidden = None if padding is None or after == 0 or bool(padding.all()) else ~padding.bool()
    reach = Reach(before, after, hidden)
    return reach if arguments["kv_length"] < CHECKED_FROM or _agrees_with_transformers(reach, arguments) else None


def _agrees_with_transformers(reach: Reach, arguments: Mapping[str, Any]) -> bool:
    """Return whether two rows of the mask agree with transformers: the last row, and the row in the middle.

    The last row shows a window; the middle row also shows whether later keys are hidden.
    """
    queries, padding, device = arguments["q_length"], arguments.get("attention_mask"), arguments["device"]
    for row in (queries - 1, queries // 2):
        expected = sdpa_mask(**dict(arguments) | {"q_length": 1, "q_offset": row})
        if expected is None:
            return reach.everywhere
        ours = reach.sees(torch.tensor([row], device=device), torch.arange(expected.shape[-1], device=device))
        differ = (ours != expected[:, 0]).any(-1)[:, 0]
        # Rows of padding are not compared.
        if bool((differ if padding is None else differ & padding[:, row].bool()).any()):
            return False
    return True


def _find_window(mask_function: Callable[..., Any]) -> tuple[int | None, int | None] | None:
    """Return the number of keys that a mask function of transformers shows before and after a query.

    Returns None for an unknown function; None for one of the two numbers means all keys. Windows are closures: they are
    recognised by their code, and their size is a variable that they close over.
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
            # The causal window counts the query itself, the bidirectional one does not.
            return (size - 1, 0) if base is causal_mask_function else (size, size)
    return None


def _list_parts(mask_function: Callable[..., Any]) -> tuple[Callable[..., Any], ...]:
    """Return the mask functions that a joint mask function combines."""
    parts: tuple[Callable[..., Any], ...] = inspect.getclosurevars(mask_function).nonlocals["mask_functions"]
    return parts
