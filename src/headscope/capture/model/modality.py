"""Checks that a model reads the tokens of a text, and not images, sound or characters."""

import inspect
from typing import Any

from torch import Tensor
from transformers import PreTrainedModel

from headscope.errors import ModelError

KINDS = {
    "pixel_values": "images",
    "pixel_values_videos": "videos",
    "flattened_patches": "images",
    "bbox": "places on a page",
    "visual_embeds": "images",
    "input_features": "sound",
    "input_values": "sound",
    "audio_values": "sound",
    "spectrogram": "sound",
    "past_values": "time series",
}
"""The content that a model reads, by the name of its input."""


def refuse_other_inputs(module: PreTrainedModel, name: str) -> None:
    """Raise an error if a model has no input for tokens, or no embeddings of tokens.

    Such a model reads images, sound or characters.
    """
    wanted = getattr(module, "main_input_name", "input_ids")
    if wanted != "input_ids" and "input_ids" not in inspect.signature(type(module).forward).parameters:
        raise ModelError(
            f"{name!r} ({type(module).__name__}) reads {describe_input(wanted)} and no tokens of a text; "
            f"{_advise(module)}."
        )
    if count_embeddings(module) == 0:
        raise ModelError(
            f"{name!r} ({type(module).__name__}) has no embeddings of tokens of its own, so that it does not read a "
            f"text as the tokens of a tokenizer alone; {_advise(module)}."
        )


def count_embeddings(module: PreTrainedModel) -> int:
    """Count the tokens that a model has embeddings for; 0 if it has no embeddings of tokens."""
    try:
        embeddings: Any = module.get_input_embeddings()
    except NotImplementedError:
        return 0
    if (count := getattr(embeddings, "num_embeddings", None)) is not None:
        return int(count)
    weight = getattr(embeddings, "weight", None)
    return len(weight) if isinstance(weight, Tensor) and weight.ndim == 2 else 0


def describe_input(name: str) -> str:
    """Return the content of a model's input in words, with the input's name; for an unknown input, only its name."""
    return f"{KINDS[name]} ({name})" if name in KINDS else name


def _advise(module: PreTrainedModel) -> str:
    own = next((part for part in ("text_model", "language_model") if hasattr(module, part)), "")
    return f"give the part of it that reads text alone (its .{own})" if own else "give a text model"
