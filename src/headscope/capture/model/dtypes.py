"""Numerical types: their names, and numbers in float32 at least."""

import torch
from torch import Tensor

from headscope.capture.model.device_names import DTYPES
from headscope.errors import ModelError


def read_dtype(name: str) -> torch.dtype:
    """Return the numerical type of a name.

    Raises:
        ModelError: a model is not run in it.
    """
    if name not in DTYPES:
        raise ModelError(f"a model is not run in the numerical type {name!r}; give {', '.join(DTYPES)}.")
    dtype: torch.dtype = getattr(torch, name)
    return dtype


def spell_dtype(dtype: object) -> str:
    """Return the name of a numerical type, such as ``bfloat16``."""
    return str(dtype).removeprefix("torch.")


def is_half(dtype: torch.dtype) -> bool:
    """Return whether numbers of a type have fewer digits than float32."""
    return dtype.itemsize < torch.float32.itemsize


def widen(numbers: Tensor) -> Tensor:
    """Return numbers in float32 at least: statistics of half precision would be rounded as the numbers are."""
    return numbers.float() if is_half(numbers.dtype) else numbers
