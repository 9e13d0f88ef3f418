"""The rotary embedding that a GGUF file declares: as parameters of transformers, and as frequencies to compare with.

The frequencies are worked out here by llama.cpp's formulas and not by transformers' functions, so that a model that
turns its queries and keys by others is noticed, whatever its configuration says.
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
"""The keys that have a place here, first those that change the most."""

_FULL, _SLIDING = "full_attention", "sliding_attention"


@dataclass(frozen=True)
class Rope:
    """A rotary embedding.

    Attributes:
        base: of the wavelengths.
        size: how many numbers of each head are turned.
        kind: as transformers calls it.
        factor: by which wavelengths grow, if linear or yarn.
        original: the context length of the training, if yarn or longrope.
        betas: between these many turns in that context, yarn goes from none of the factor to all of it.
        attention_factor: by which what is turned is multiplied.
        short: what divides each frequency, if longrope, in texts up to that context length.
        long: the same in longer texts.
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
        """Return the rotary embedding of the layers with full attention.

        Raises:
            ModelError: transformers has none that is like it.
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
        """Return the parameters of its scaling, as a configuration of transformers has them."""
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
        """Return by how much a step in the text turns each pair of numbers, in radians; of short texts if longrope."""
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
    """Give a configuration the rotary embedding that its GGUF file declares, if models like it have any.

    Raises:
        ModelError: transformers has none that is like it.
    """
    parameters = getattr(config, "rope_parameters", None)
    if not parameters:
        return
    rope = Rope.read(metadata, config)
    full = {**_select(parameters, _FULL), **rope.parameters(), "rope_theta": rope.base}
    if "partial_rotary_factor" in full:
        full["partial_rotary_factor"] = rope.size / head_size(config)
    if hasattr(config, "original_max_position_embeddings"):  # Phi-3 prefers it to the parameter
        config.original_max_position_embeddings = rope.original
    sliding = dict(_select(parameters, _SLIDING))
    sliding["rope_theta"] = metadata.settings.get("rope.freq_base_swa", sliding["rope_theta"])
    config.rope_parameters = {**parameters, _FULL: full, _SLIDING: sliding} if _FULL in parameters else full


def check_rope(metadata: Metadata, module: nn.Module) -> None:
    """Refuse a model that does not turn its queries and keys, or by other frequencies than its GGUF file declares."""
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
    """Return the parameters of layers of one kind, if layers differ."""
    selected: dict[str, Any] = parameters.get(kind, parameters)
    return selected


def _find_scaling(metadata: Metadata) -> tuple[str, float]:
    """Return the type of scaling, as transformers calls it, and its factor; a file may declare both in several ways."""
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
