"""The names of devices and numerical types that a user can choose; this module does not load torch."""

AUTO = "auto"
"""A GPU that works, or else the processor. This is the default wherever a user can name a device."""

PROCESSOR = "cpu"

DTYPES = ("float32", "bfloat16", "float16")
"""The numerical types in which a model can be run."""
