"""Numerical types and their names, and the conversion of half precision to float32."""

import torch
from torch import Tensor

from headscope.capture.model.device_names import DTYPES
from headscope.errors import ModelError


def read_dtype(name: str) -> torch.dtype:
    """Return the numerical type of torch that has a name of `DTYPES`, such as ``bfloat16``.

    Raises:
        ModelError: The name is not in `DTYPES`.
    """
    if not isinstance(name, str) or name not in DTYPES:
        raise ModelError(f"a model is not run in the numerical type {name!r}; give {', '.join(DTYPES)}.")
    dtype: torch.dtype = getattr(torch, name)
    return dtype


def spell_dtype(dtype: object) -> str:
    """Return the name of a numerical type, such as ``bfloat16``."""
    return str(dtype).removeprefix("torch.")


def is_half(dtype: torch.dtype) -> bool:
    """Return whether numbers of a type take fewer bytes than float32."""
    return dtype.itemsize < torch.float32.itemsize


def widen(numbers: Tensor) -> Tensor:
    """Convert half precision to float32, and return tensors of other types unchanged.

    Statistics in half precision would be rounded.
    """
    return numbers.float() if is_half(numbers.dtype) else numbers
