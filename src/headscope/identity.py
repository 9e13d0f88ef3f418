"""The identity of a model: every part of it that changes a number, as the attributes of a table state it."""

from collections.abc import Mapping
from typing import Any

MODEL_PARTS: Mapping[str, str] = {
    "weights_sha256": "weights",
    "config_sha256": "configuration",
    "tokenizer_sha256": "tokenizer",
    "dtype": "numerical type",
}
"""The attributes that identify a model, and their names in messages."""

GPU_UNUSED = "gpu_unused"
"""The attribute that says why a model did not run on an available GPU."""

PLACEMENT = "placement"
"""The attribute with the device of each part of a model that runs on several devices; `device` lists the devices."""

ADAPTER_OF = "adapter_of_sha256"
"""The attribute with the hashes of the weights of the model that an adapter was trained for, with spaces between."""

PLACEBO_OF = "placebo_of"
"""The attribute of a table of placebo adapters: the hash of the weights of the trained adapter that they replace."""

REMARKS = frozenset({GPU_UNUSED, PLACEMENT})
"""Attributes that have no influence on numbers: measurements that differ only in these count as the same."""

DIFFERS_IN = "differs_in"
"""The attribute of a comparison of two models with the parts in which they differ, such as ``weights``."""


def list_differences(attributes: Mapping[str, Any], others: Mapping[str, Any]) -> list[str]:
    """Return the parts in which two models differ, such as ``tokenizer``, in the order of `MODEL_PARTS`.

    Args:
        attributes: the attributes of a table, or a result of `headscope.runner.identify_model`.
        others: the attributes of another model. A part that only one of the two states is not compared, except the
            weights.
    """
    compared = [part for part in MODEL_PARTS if part == "weights_sha256" or {part} <= attributes.keys() & others.keys()]
    return [MODEL_PARTS[part] for part in compared if attributes.get(part) != others.get(part)]


def drop_remarks(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of a table or a run without the attributes in `REMARKS`."""
    return {name: value for name, value in attributes.items() if name not in REMARKS}


def name_differences(*models: Mapping[str, Any]) -> str:
    """Return the parts in which models differ from the first model, as ``weights and tokenizer``; empty if in none."""
    first, *others = models
    differences = {part for other in others for part in list_differences(first, other)}
    *parts, last = [part for part in MODEL_PARTS.values() if part in differences] or [""]
    return f"{', '.join(parts)} and {last}" if parts else last
