"""The names of devices and numerical types that a user can choose; this module does not load torch."""

from typing import Literal, TypeAlias, get_args

Device: TypeAlias = Literal["auto", "cpu", "cuda", "mps"] | str
"""The name of a device; a number may follow, as in ``cuda:1``. Editors complete the names in this type."""

AUTO = "auto"
"""The name for a GPU that works, or else the processor. It is the default wherever a user can name a device."""

PROCESSOR = "cpu"

Dtype: TypeAlias = Literal["float32", "bfloat16", "float16"]
"""A numerical type in which a model can be run."""

DTYPES = get_args(Dtype)
