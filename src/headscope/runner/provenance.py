"""The origin of the numbers of a table: the model, and the versions of the packages that computed the numbers."""

import json
import platform
from collections.abc import Sequence
from importlib import metadata
from typing import Any

from headscope.capture.forward.installed import describe_edits
from headscope.capture.model.dispatched import describe_placement
from headscope.capture.model.dtypes import spell_dtype
from headscope.capture.model.hashes import hash_config, hash_tokenizer
from headscope.capture.model.model import Model
from headscope.capture.passes.stream import Plan
from headscope.capture.tokens.align import Alignment
from headscope.heads import EDITED, KEY_VALUE_HEADS, KEY_VALUE_HEADS_BY_LAYER
from headscope.identity import ADAPTER_OF, GPU_UNUSED, PLACEBO_OF, PLACEMENT
from headscope.layers import write_without_attention

PACKAGES = ("headscope", "torch", "transformers", "tokenizers", "numpy", "xarray")
"""The packages whose versions every table states."""


def identify_model(model: Model) -> dict[str, Any]:
    """Return the attributes of a table that identify its model, how the model was run, and the edits it ran with.

    `headscope.identity.MODEL_PARTS` lists the attributes by which two models are distinguished.
    """
    about: dict[str, Any] = {
        "model": model.name,
        "revision": model.revision,
        "weights_sha256": model.weights_sha256,
        "config_sha256": hash_config(model.module.config),
        "tokenizer_sha256": hash_tokenizer(model.tokenizer),
        "dtype": spell_dtype(model.module.dtype),
        "device": ", ".join(map(str, model.devices)),
        "tokenizer": type(model.tokenizer).__name__,
    }
    placed = describe_placement(model.module)
    placement = {PLACEMENT: json.dumps(placed)} if placed else {}
    parts = {"adapter_of": model.adapter_of, ADAPTER_OF: model.adapter_of_sha256, PLACEBO_OF: model.placebo_of}
    adapter = {name: value for name, value in parts.items() if value}
    shape = model.shape
    groups = {*shape.key_value_heads.values()}
    if shape.key_value_heads_by_layer:
        about[KEY_VALUE_HEADS_BY_LAYER] = json.dumps({**shape.key_value_heads_by_layer})
    elif groups != {*shape.heads.values()} and len(groups) == 1:
        about[KEY_VALUE_HEADS] = groups.pop()
    edits = describe_edits(model.module)
    edited = {EDITED: edits} if edits else {}
    unused = {GPU_UNUSED: model.gpu_unused} if model.gpu_unused else {}
    return about | placement | adapter | edited | unused | write_without_attention(shape.without_attention)


def identify_reading(model: Model, plan: Plan) -> dict[str, str]:
    """Return the attribute ``text`` of a table: the form in which the model read the texts."""
    return {"text": Alignment.for_model(model, text=plan.text).text}


def list_versions(packages: Sequence[str] = PACKAGES) -> dict[str, str]:
    """Return the versions of Python and of some packages."""
    return {"python": platform.python_version()} | {name: metadata.version(name) for name in packages}
