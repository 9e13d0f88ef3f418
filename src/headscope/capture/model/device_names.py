"""The names of devices and of numerical types that can be asked for, known before torch is loaded."""

AUTO = "auto"
"""The GPU if there is one that works, else the processor; the default wherever a device can be named."""

PROCESSOR = "cpu"

DTYPES = ("float32", "bfloat16", "float16")
"""The numerical types in which a model can be run."""
