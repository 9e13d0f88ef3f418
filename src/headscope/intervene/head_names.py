"""The names of heads, key/value heads and layers, as users write them. Needs no torch."""

import reprlib
from collections.abc import Iterable, Mapping
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np

from headscope.errors import HeadscopeError

HeadNames: TypeAlias = str | int | Iterable[str | int]
"""One or more names of heads, key/value heads or layers. A name is a text, or the number of a layer."""


def list_names(names: HeadNames, *, of_layers: bool = False) -> list[str]:
    """List the names in a string (divided at commas), a number, or a list of strings and numbers.

    Args:
        names: The names as a user writes them; a number is a whole layer.
        of_layers: Whether names can only be of layers, so that two numbers in brackets are two layers, not a head.

    Raises:
        HeadscopeError: The names have another form, such as layers and heads counted from 0, as in other libraries, or
            two numbers in brackets, which may be a head or two layers.
    """
    if isinstance(names, str):
        return names.split(",")
    if _is_number(names):
        return [str(names)]
    # A mapping has heads under its layers, and a NumPy array holds indices counted from 0, or a mask.
    is_array = isinstance(names, np.ndarray) and names.dtype.kind not in "UO"
    if isinstance(names, Mapping) or is_array or not isinstance(names, Iterable):
        raise _refuse(names)
    listed = list(names)
    is_pair = isinstance(names, tuple) and len(listed) == 2 and all(map(_is_number, listed))
    if (is_pair and not of_layers) or not all(isinstance(name, str) or _is_number(name) for name in listed):
        raise _refuse(names if isinstance(names, tuple | list) else listed)
    return [str(name) for name in listed]


def _is_number(name: object) -> bool:
    """Return True for a whole number of Python or NumPy; False for a Boolean."""
    return isinstance(name, Integral) and not isinstance(name, bool)


def _refuse(names: Any) -> HeadscopeError:
    came = " ".join(reprlib.repr(names).split())
    advice = "write them so, as in ['3-1', '4-10'], and a whole layer as '3'."
    if isinstance(names, tuple) and len(names) == 2 and all(map(_is_number, names)):
        first, second = map(int, names)
        advice = f"write '{first}-{second}' for a head, ['{first}', '{second}'] for two layers."
    elif isinstance(names, Mapping):
        advice = "write each by its name, as in ['3-1', '4-10'], or as in ['L2H0'], which counts from 0."
    return HeadscopeError(f"heads are named '3-1', layer-head, both counted from 1, and {came} came; {advice}")
