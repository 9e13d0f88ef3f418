"""The identity of a model: whatever of it changes a number, as the attributes of a table state it."""

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
"""The attribute that says why a model was not run on a GPU that was there."""

PLACEMENT = "placement"
"""The attribute that says on which device each part of a model ran that lies on several; `device` lists these."""

REMARKS = frozenset({GPU_UNUSED, PLACEMENT})
"""Attributes that change no number: runs that differ in them alone are the same."""

DIFFERS_IN = "differs_in"
"""The attribute of a comparison of two models: the parts of their identity in which they differ, in words."""


def list_differences(attributes: Mapping[str, Any], others: Mapping[str, Any]) -> list[str]:
    """Return the names of the parts of their identity in which two models differ, in the order of `MODEL_PARTS`.

    Args:
        attributes: of a table, or as `headscope.runner.identify_model` returns them.
        others: of another model. A part that one of the two does not state is not compared, except the weights.
    """
    compared = [part for part in MODEL_PARTS if part == "weights_sha256" or {part} <= attributes.keys() & others.keys()]
    return [MODEL_PARTS[part] for part in compared if attributes.get(part) != others.get(part)]


def drop_remarks(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of a run without those that change no number."""
    return {name: value for name, value in attributes.items() if name not in REMARKS}


def name_differences(*models: Mapping[str, Any]) -> str:
    """Return in which parts of their identity models differ from the first one, in words; empty if in none."""
    first, *others = models
    differences = {part for other in others for part in list_differences(first, other)}
    *parts, last = [part for part in MODEL_PARTS.values() if part in differences] or [""]
    return f"{', '.join(parts)} and {last}" if parts else last
