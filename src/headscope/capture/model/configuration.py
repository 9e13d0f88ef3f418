"""Reads the configuration of a model on disk or on the hub, without settings that make transformers fetch code."""

from typing import Any

from transformers import AutoConfig

USUAL = {
    "_attn_implementation": (None, "eager", "sdpa"),
    "_experts_implementation": (None, "eager", "grouped_mm", "batched_mm"),
}
"""The implementations of attention and of experts that are part of transformers and torch."""


def read_config(source: str, **settings: Any) -> Any:
    """Read the configuration of a model, and drop implementations of attention and experts that are not in `USUAL`.

    A configuration may name a kernel on the hub, which transformers would download and run. The settings are those of
    ``AutoConfig.from_pretrained``.
    """
    config = AutoConfig.from_pretrained(source, **settings)
    _choose_usual(config)
    return config


def _choose_usual(config: Any) -> None:
    # Setting a value of a configuration also sets it in its parts.
    for name, usual in USUAL.items():
        if getattr(config, name, None) not in usual:
            setattr(config, name, None)
    for key in getattr(config, "sub_configs", {}):
        if (part := getattr(config, key, None)) is not None:
            _choose_usual(part)
