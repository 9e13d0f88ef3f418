"""The hash of the weights of a model in memory. Quantised weights may be packed, or may not be tensors."""

import hashlib
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from headscope.capture.model.dispatched import NOWHERE, read_weights
from headscope.errors import ModelError, first_line

PLAIN = (bool, int, float, complex, str, type(None), torch.dtype, torch.device, torch.Size, torch.layout)
"""Types whose `repr` describes a value completely."""


def hash_parameters(module: nn.Module, name: str, names: Mapping[str, str] | None = None) -> str:
    """Return the SHA-256 of the whole state of a model, or of some parts of it under other names.

    Args:
        module: The model.
        name: The model's name in errors.
        names: The new names of the parts to hash, by their names in the state. By default all parts are hashed, under
            their own names.

    Raises:
        ModelError: A part of the state is of a type that cannot be hashed.
    """
    digest = hashlib.sha256()
    state = module.state_dict()
    names = {key: key for key in state} if names is None else names
    for own, key in sorted((own, key) for key, own in names.items()):
        part = state[key]
        try:
            is_empty = isinstance(part, Tensor) and part.device.type == NOWHERE
            for piece in _write(own, read_weights(module, key) if is_empty else part):
                digest.update(piece)
        except Exception as error:  # each type of object raises its own errors
            raise ModelError(
                f"the state of {name!r} has {key}, of the type {type(part).__name__}, which cannot be hashed "
                f"({first_line(error)}); save the model to a folder, and give that."
            ) from error
    return digest.hexdigest()


def _write(key: str, part: Any) -> Iterator[bytes]:
    """Yield a part of a state as bytes, so that different parts give different bytes."""
    if isinstance(part, Tensor):
        yield from _write_tensor(key, part.detach())
    elif isinstance(part, PLAIN):
        yield f"{key} {type(part).__name__} {part!r}\n".encode()
    elif isinstance(part, bytes | bytearray | io.BytesIO):
        content = part.getvalue() if isinstance(part, io.BytesIO) else bytes(part)
        yield f"{key} bytes {len(content)}\n".encode() + content
    elif isinstance(part, np.ndarray):
        yield f"{key} {part.dtype} {part.shape}\n".encode() + part.tobytes()
    elif isinstance(part, Mapping):
        yield f"{key} mapping {len(part)}\n".encode()
        for name, value in sorted(part.items(), key=lambda item: str(item[0])):
            yield from _write(f"{key}.{name}", value)
    elif isinstance(part, Sequence):
        yield f"{key} sequence {len(part)}\n".encode()
        for number, value in enumerate(part):
            yield from _write(f"{key}.{number}", value)
    else:
        yield from _write_object(key, part)


def _write_tensor(key: str, tensor: Tensor) -> Iterator[bytes]:
    if hasattr(tensor, "__tensor_flatten__"):  # made of other tensors, as in torchao
        names, context = tensor.__tensor_flatten__()
        yield f"{key} {type(tensor).__name__} {tuple(tensor.shape)}\n".encode()
        yield from _write(f"{key}.context", context)
        for name in names:
            yield from _write(f"{key}.{name}", getattr(tensor, name))
    elif tensor.is_quantized:
        yield f"{key} {tensor.dtype} {tensor.qscheme()}\n".encode()
        yield from _write(f"{key}.values", tensor.int_repr())
        if tensor.qscheme() in (torch.per_tensor_affine, torch.per_tensor_symmetric):
            yield from _write(f"{key}.scale", (tensor.q_scale(), tensor.q_zero_point()))
        else:
            scales = (tensor.q_per_channel_scales(), tensor.q_per_channel_zero_points(), tensor.q_per_channel_axis())
            yield from _write(f"{key}.scale", scales)
    else:
        dense = tensor if tensor.layout == torch.strided else tensor.to_dense()
        yield f"{key} {tensor.dtype} {tuple(tensor.shape)}\n".encode()
        yield dense.cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def _write_object(key: str, part: Any) -> Iterator[bytes]:
    """Yield an object as the parts from which pickle would restore it; nothing is unpickled."""
    kind = type(part)
    yield f"{key} {kind.__module__}.{kind.__qualname__}\n".encode()
    if isinstance(part, type) or callable(part):
        yield f"{getattr(part, '__module__', '')}.{getattr(part, '__qualname__', '')}\n".encode()
    elif isinstance(part, torch.ScriptObject):
        yield from _write(key, part.__getstate__())
    else:
        _, *parts = part.__reduce_ex__(2)
        contents = [[*each] if isinstance(each, Iterator) else each for each in parts]
        yield from _write(key, contents)
