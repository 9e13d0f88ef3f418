"""Fields of a configuration that bear on attention, but that the installed transformers does not read."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from transformers import PreTrainedConfig

from headscope.errors import ModelError


def _has_window(config: Mapping[str, Any]) -> bool:
    """Return whether a sliding window is on, and shorter than the longest text."""
    size, longest = config.get("sliding_window"), config.get("max_position_embeddings")
    return bool(size) and config.get("use_sliding_window") is not False and not (longest and size >= longest)


BEARING: Mapping[str, Callable[[Mapping[str, Any]], bool]] = {
    "pruned_heads": lambda config: bool(config.get("pruned_heads")),
    "position_embedding_type": lambda config: config.get("position_embedding_type") not in (None, "absolute"),
    "sliding_window": _has_window,
    "attn_logit_softcapping": lambda config: bool(config.get("attn_logit_softcapping")),
}
"""The fields, each with a function that returns whether a configuration sets it to a value that changes attention."""


def refuse_unread_fields(name: str, where: str, config: PreTrainedConfig) -> None:
    """Raise an error if a configuration sets a field that bears on attention, but that transformers does not read.

    Its class in transformers keeps such a field without reading it. Examples are heads that transformers 4 pruned, and
    BERT's relative positions.
    """
    settings, _ = PreTrainedConfig.get_config_dict(where)
    read = {field.name for field in dataclasses.fields(config)} if dataclasses.is_dataclass(config) else {*vars(config)}
    for field, is_set in BEARING.items():
        if field not in read and is_set(settings):
            raise ModelError(
                f"the configuration of {name!r} sets {field} to {str(settings[field])[:80]}, which the installed "
                f"transformers does not read for a model of the type {config.model_type!r}, so attention would be "
                "measured without it; give a checkpoint without it, or one of a type that has it."
            )
