"""The rotary embedding that a GGUF file declares: as parameters of transformers, and as expected frequencies.

The frequencies are computed by llama.cpp's formulas and not by transformers' functions. So a model that rotates its
queries and keys by other frequencies is noticed, whatever its configuration says.
"""

from dataclasses import dataclass
from math import ceil, floor, log, pi
from typing import Any

import numpy as np
from jaxtyping import Float
from torch import nn

from headscope.capture.open.gguf_metadata import Metadata

ROPE_KEYS = (
    "rope.scaling.type",
    "rope.scaling.factor",
    "rope.scale_linear",
    "rope.scaling.original_context_length",
    "rope.scaling.attn_factor",
    "rope.scaling.yarn_beta_fast",
    "rope.scaling.yarn_beta_slow",
    "rope.scaling.yarn_ext_factor",
    "rope.scaling.yarn_attn_factor",
    "rope.scaling.yarn_log_multiplier",
    "rope.scaling.finetuned",
    "rope.dimension_count",
    "rope.freq_base_swa",
    "rope.freq_base",
)
"""The keys that this module handles; keys that change the most come first."""

_FULL, _SLIDING = "full_attention", "sliding_attention"


@dataclass(frozen=True)
class Rope:
    """A rotary embedding.

    Attributes:
        base: The base of the wavelengths.
        size: The number of rotated numbers of each head.
        kind: The type, as transformers calls it.
        factor: The factor by which wavelengths grow (linear and yarn).
        original: The context length of the training (yarn and longrope).
        betas: Two numbers of turns in that context (yarn). The factor applies fully to frequencies with fewer turns
            than the second number, partly between the two, and not to frequencies with more turns than the first.
        attention_factor: The factor of the rotated numbers.
        short: The divisor of each frequency in texts up to that context length (longrope).
        long: The divisor of each frequency in longer texts (longrope).
    """

    base: float
    size: int
    kind: str = "default"
    factor: float = 1.0
    original: int = 0
    betas: tuple[float, float] = (32.0, 1.0)
    attention_factor: float = 1.0
    short: tuple[float, ...] = ()
    long: tuple[float, ...] = ()

    @classmethod
    def read(cls, metadata: Metadata, config: Any) -> "Rope":
        """Read the rotary embedding of the layers with full attention.

        Raises:
            ModelError: transformers has no such rotary embedding.
        """
        declared = metadata.settings
        kind, factor = _find_scaling(metadata)
        attention_factor = declared.get("rope.scaling.attn_factor") or 1.0
        if kind == "yarn":
            attention_factor *= 1.0 + 0.1 * log(factor)
        all_lengths = metadata.divisors.get("rope_freqs.weight", ())
        return cls(
            base=declared.get("rope.freq_base", _select(config.rope_parameters, _FULL)["rope_theta"]),
            size=declared.get("rope.dimension_count", head_size(config)),
            kind=kind,
            factor=factor,
            original=declared.get("rope.scaling.original_context_length", config.max_position_embeddings),
            betas=(
                declared.get("rope.scaling.yarn_beta_fast", 32.0),
                declared.get("rope.scaling.yarn_beta_slow", 1.0),
            ),
            attention_factor=attention_factor,
            short=tuple(metadata.divisors.get("rope_factors_short.weight", all_lengths)),
            long=tuple(metadata.divisors.get("rope_factors_long.weight", all_lengths)),
        )

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of the scaling, as in a configuration of transformers."""
        scaling: dict[str, Any] = {"rope_type": self.kind}
        if self.kind != "default":
            scaling["factor"] = self.factor
        if self.kind in ("yarn", "longrope"):
            scaling |= {"original_max_position_embeddings": self.original, "attention_factor": self.attention_factor}
        if self.kind == "yarn":
            scaling |= {"beta_fast": self.betas[0], "beta_slow": self.betas[1]}
        if self.kind == "longrope":
            scaling |= {"short_factor": list(self.short), "long_factor": list(self.long)}
        return scaling

    def frequencies(self) -> Float[np.ndarray, " pair"]:
        """Return the angle in radians by which one token rotates each pair of numbers (in short texts, if longrope)."""
        pairs = np.arange(self.size // 2)
        divisors = np.asarray(self.short if self.kind == "longrope" else self.factor)
        if self.kind == "yarn":
            slow, fast = (
                self.size * log(self.original / (turns * 2 * pi)) / (2 * log(self.base)) for turns in self.betas[::-1]
            )
            first, last = max(0, floor(fast)), min(self.size - 1, ceil(slow))
            scaled = np.clip((pairs - first) / max(0.001, last - first), 0, 1)
            divisors = 1 / (1 - scaled + scaled / self.factor)
        frequencies: Float[np.ndarray, " pair"] = self.base ** (-2 * pairs / self.size) / divisors
        return frequencies


def head_size(config: Any) -> int:
    """Return the width of the queries of a head."""
    return int(getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads)


def set_rope(metadata: Metadata, config: Any) -> None:
    """Set the rotary embedding of a configuration to the one of its GGUF file; do nothing if it has no such embedding.

    Raises:
        ModelError: transformers has no such rotary embedding.
    """
    parameters = getattr(config, "rope_parameters", None)
    if not parameters:
        return
    rope = Rope.read(metadata, config)
    full = {**_select(parameters, _FULL), **rope.parameters(), "rope_theta": rope.base}
    if "partial_rotary_factor" in full:
        full["partial_rotary_factor"] = rope.size / head_size(config)
    if hasattr(config, "original_max_position_embeddings"):  # Phi-3 uses this attribute, not the parameter
        config.original_max_position_embeddings = rope.original
    sliding = dict(_select(parameters, _SLIDING))
    sliding["rope_theta"] = metadata.settings.get("rope.freq_base_swa", sliding["rope_theta"])
    config.rope_parameters = {**parameters, _FULL: full, _SLIDING: sliding} if _FULL in parameters else full


def check_rope(metadata: Metadata, module: nn.Module) -> None:
    """Raise an error if a model does not rotate queries and keys by the frequencies that its GGUF file declares."""
    config: Any = module.config
    parameters = getattr(config, "rope_parameters", None) or {}
    declared = [*metadata.divisors, *(key for key in ROPE_KEYS if key in metadata.settings)]
    if "rope.freq_base_swa" in declared and _FULL not in parameters:
        raise metadata.refuse("rope.freq_base_swa")
    expected = {}
    if parameters:
        rope = Rope.read(metadata, config)
        base = metadata.settings.get("rope.freq_base_swa", _select(parameters, _SLIDING)["rope_theta"])
        expected = {"": rope, f"{_FULL}_": rope, f"{_SLIDING}_": Rope(base, rope.size)}
    turned = [
        _is_turned(part, prefix, rope)
        for part in module.modules()
        for prefix, rope in expected.items()
        if hasattr(part, f"{prefix}inv_freq")
    ]
    if declared and not (turned and all(turned)):
        raise metadata.refuse(declared[0])


def _is_turned(part: Any, prefix: str, rope: Rope) -> bool:
    actual = getattr(part, f"{prefix}inv_freq").double().cpu().numpy()
    expected = rope.frequencies()
    return bool(
        actual.shape == expected.shape
        and len(rope.long) == len(rope.short)
        and np.allclose(actual, expected, rtol=1e-4, atol=0)
        and np.isclose(getattr(part, f"{prefix}attention_scaling"), rope.attention_factor, rtol=1e-5)
    )


def _select(parameters: dict[str, Any], kind: str) -> dict[str, Any]:
    """Return the rotary parameters of one kind of layer, or the parameters of all layers if they do not differ."""
    selected: dict[str, Any] = parameters.get(kind, parameters)
    return selected


def _find_scaling(metadata: Metadata) -> tuple[str, float]:
    """Return the type of scaling, as transformers calls it, and its factor; files declare them under several keys."""
    declared = metadata.settings
    key = next((key for key in ("rope.scaling.factor", "rope.scale_linear") if declared.get(key)), None)
    factor = float(declared[key]) if key else 1.0
    kind = declared.get("rope.scaling.type", "linear")
    if kind not in ("none", "linear", "yarn", "longrope") or (kind == "longrope" and not metadata.divisors):
        raise metadata.refuse("rope.scaling.type")
    if metadata.divisors and key and factor != 1 and kind != "none":
        raise metadata.refuse(key)  # llama.cpp would divide by both
    if metadata.divisors:
        kind, factor = "longrope", 1.0
    elif kind == "none" or factor == 1:
        kind, factor = "default", 1.0
    neutral = {
        "rope.scaling.yarn_ext_factor": (-1, 1) if kind == "yarn" else (-1, 0),
        "rope.scaling.yarn_attn_factor": (-1, 0, 1),
        "rope.scaling.yarn_log_multiplier": (0,),
    }
    if kind not in ("yarn", "longrope"):
        neutral["rope.scaling.attn_factor"] = (0, 1)
    for key, values in neutral.items():
        if declared.get(key, values[0]) not in values:
            raise metadata.refuse(key)
    return kind, factor
