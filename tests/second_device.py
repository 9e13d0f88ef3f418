"""A second device without any hardware: tensors of torch's unused device ``lazy``, whose numbers the processor holds.

Within `second_device`, what is computed there is computed by the processor, to the last bit; but tensors of both
devices in one computation are refused, as GPUs do it. So a table that comes out is one that was summed where the layers
lie.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

DEVICE = torch.device("lazy:1")
MOVES = ("_to_copy", "copy_", "_copy_from")
INDEXES = ("index", "index_put", "index_put_", "_index_put_impl_")


class Far(Tensor):
    """A tensor of the second device."""

    @staticmethod
    def __new__(cls, near: Tensor) -> "Far":
        """The tensor with these numbers."""
        with torch.inference_mode(False):  # in which no views of its other tensors could be had
            return Tensor._make_wrapper_subclass(
                cls, near.shape, strides=near.stride(), storage_offset=near.storage_offset(), dtype=near.dtype,
                device=DEVICE,
            )  # fmt: skip

    def __init__(self, near: Tensor) -> None:
        """Hold the numbers."""
        self.near = near

    def __repr__(self) -> str:
        return f"Far({self.near!r})"

    def tolist(self) -> Any:
        """Return its numbers, which torch does for no class of tensors but its own."""
        return self.near.tolist()

    def untyped_storage(self) -> torch.UntypedStorage:
        """Return its memory."""
        return self.near.untyped_storage()

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, arguments: Any = (), named: Any = None) -> Any:
        return _compute(function, arguments, named or {})


class _Both(TorchDispatchMode):
    """Computes on both devices what is asked for by name."""

    def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), named: Any = None) -> Any:
        with self:  # what is made of other operations, which inference mode leaves whole
            result = function.decompose(*arguments, **named or {})
        return _compute(function, arguments, named or {}) if result is NotImplemented else result


class _Made(TorchFunctionMode):
    """Makes tensors of lists for the second device, which torch asks no dispatcher for."""

    def __torch_function__(self, function: Any, types: Any, arguments: Any = (), named: Any = None) -> Any:
        named = named or {}
        if function in (torch.tensor, torch.as_tensor) and torch.device(named.get("device") or "cpu") == DEVICE:
            return function(*arguments, **{**named, "device": "cpu"}).to(DEVICE)
        if function in (Tensor.__getitem__, Tensor.__setitem__) and isinstance(arguments[0], Far):
            tensor, index, *values = arguments
            parts = index if isinstance(index, tuple) else (index,)
            index = tuple(
                torch.tensor(part, dtype=torch.long).to(DEVICE) if isinstance(part, list) else part for part in parts
            )
            values = [each if isinstance(each, Tensor) else torch.tensor(each, dtype=tensor.dtype) for each in values]
            arguments = tensor, index, *values
        if function is Tensor.norm and isinstance(arguments[0], Far):  # it knows processors and GPUs by their names
            function = torch.linalg.vector_norm
            named = {name: value for name, value in named.items() if name != "p"}
        return function(*arguments, **named)


@contextmanager
def second_device() -> Iterator[None]:
    """Within, there is a second device."""
    with _Both(), _Made():
        yield


def _compute(function: Any, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
    name, device = function.overloadpacket.__name__, named.get("device")
    tensors = [each for each in tree_leaves((arguments, named)) if isinstance(each, Tensor)]
    is_far = any(isinstance(each, Far) for each in tensors)
    # A number may come from anywhere, and the processor may say which rows are meant.
    is_indexed = name in INDEXES and isinstance(arguments[0], Far)
    looked_at = [arguments[0], *arguments[2:3]] if is_indexed else tensors
    if is_far and name not in MOVES and any(each.ndim and not isinstance(each, Far) for each in looked_at):
        there = ", ".join(f"{tuple(each.shape)} on {each.device}" for each in tensors)
        raise RuntimeError(f"Expected all tensors to be on the same device, but {function} got {there}")
    goes_far = is_far if device is None else torch.device(device).type == DEVICE.type
    if name in ("copy_", "_copy_from"):
        goes_far = isinstance(arguments[0], Far)
    near, near_named = tree_map_only(Far, lambda each: each.near, (arguments, dict(named)))
    if device is not None:
        near_named["device"] = "cpu" if goes_far else device
    result = function(*near, **near_named)
    if function._schema.is_mutable and arguments and isinstance(arguments[0], Tensor) and result is near[0]:
        return arguments[0]
    if "out" in named:
        return named["out"]
    return tree_map_only(Tensor, Far, result) if goes_far else result
