"""The keys of a GGUF file -> a configuration of transformers that follows them, or an error.

transformers reads some keys of each architecture and drops the others silently. It also drops every tensor that no
parameter takes. Here each key is in `SETTINGS` if a configuration can follow it, in
`headscope.capture.open.gguf_rope` if it is about rotary embeddings, or in `UNRELATED` if no number depends on it. Other
keys raise an error.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isclose
from typing import Any

from torch import nn

from headscope.capture.model.shape import WITHOUT_ATTENTION
from headscope.capture.open.gguf_metadata import ROPE_TENSORS, Metadata
from headscope.capture.open.gguf_rope import ROPE_KEYS, head_size, set_rope

UNRELATED = {
    "vocab_size",  # the embeddings show this size
    "tensor_data_layout",  # the order of the rows of the weights, which transformers undoes by architecture
    "use_parallel_residual",  # of StableLM; llama.cpp and transformers decide by the tensors
    "pooling_type",  # applies after the last layer
    "nextn_predict_layers",  # come after the layers of the model, which do not depend on them
}
"""The keys of an architecture that change no number which the model computes."""

_FLAGS = {"attn_q.bias": "attention_bias", "ffn_down.bias": "mlp_bias"}
"""The attribute of a configuration that must be True if the file has tensors with a certain ending, by that ending."""

_UNNAMED = {
    "experts.gate_up_proj": ("experts.down_proj", ("ffn_gate_exps", "ffn_up_exps")),
    "linear_attn.dt_bias": ("linear_attn.A_log", ("ssm_dt.bias",)),
}
"""The parameters that the package gguf cannot name, by their endings.

Each has a neighbour that gguf can name, and the tensors of the file that the parameter consists of.
"""

_GEMMA_27B = {"gemma2": 46, "gemma3": 62}
"""The number of layers of Gemma's 27B models, which scale queries by the model's width divided by its number of heads.

Models of other sizes scale queries by the width of a head.
"""


@dataclass(frozen=True)
class Setting:
    """The rule by which a configuration of transformers follows a key of a GGUF file.

    Attributes:
        attributes: The names of attributes of a configuration; the first that the configuration has holds the value.
        neutral: The values that change nothing.
        follow: Returns the value that a model with a configuration really follows. Default: the value of the attribute.
        optional: True if a model without the attribute is right, since its weights show the value, or it has no such
            norm.
    """

    attributes: tuple[str, ...] = ()
    neutral: tuple[Any, ...] = ()
    follow: Callable[[Any], Any] | None = None
    optional: bool = False

    def find(self, config: Any) -> str | None:
        """Return the name of the configuration's attribute for the key; None if it has no such attribute."""
        return next((name for name in self.attributes if _has(config, name)), None)

    def is_followed(self, config: Any, value: Any) -> bool:
        """Return whether a model with this configuration follows the value of the key."""
        name = self.find(config)
        followed = self.follow(config) if self.follow else getattr(config, name) if name else None
        if name is None and (self.optional or value in self.neutral):
            return True
        return _are_equal(followed, value) or (followed is None and value in self.neutral)


def _count_key_value_heads(config: Any) -> int | list[int]:
    """Return the number of key/value heads of a layer; for LFM2 a list for all layers, since most have no attention.

    For a Falcon whose weights transformers does not convert, the number is 0, which equals no number in a file.
    """
    if config.model_type == "falcon":  # transformers does not undo llama.cpp's order of the weights of other Falcons
        return 1 if config.multi_query and not config.new_decoder_architecture else 0
    count = int(getattr(config, "num_key_value_heads", config.num_attention_heads))
    if config.model_type == "lfm2":
        return [0 if kind in WITHOUT_ATTENTION else count for kind in config.layer_types]
    return count


def _find_window(config: Any) -> int | None:
    kinds = getattr(config, "layer_types", None)
    return getattr(config, "sliding_window", None) if kinds is None or "sliding_attention" in kinds else None


def _find_interval(config: Any) -> int | None:
    kinds = list(getattr(config, "layer_types", None) or ())
    return kinds.index("full_attention") + 1 if "full_attention" in kinds else None


def _find_sections(config: Any) -> list[int]:
    """Return the sizes of the rotary sections of time, height, width and an unused fourth axis."""
    sections = (getattr(config, "rope_parameters", None) or {}).get("mrope_section", ())
    return [*sections, 0, 0, 0, 0][:4]


def _find_inner_size(config: Any) -> int | None:
    heads = getattr(config, "linear_num_value_heads", None)
    return heads * int(config.linear_value_head_dim) if heads else None


_FACTOR = Setting(neutral=(0, 1))

SETTINGS: Mapping[str, Setting] = {
    "block_count": Setting(("num_hidden_layers",)),
    "context_length": Setting(("max_position_embeddings",), optional=True),
    "embedding_length": Setting(("hidden_size",)),
    "feed_forward_length": Setting(("ffn_hidden_size", "n_inner", "intermediate_size"), optional=True),
    "attention.head_count": Setting(("num_attention_heads",)),
    "attention.head_count_kv": Setting(("num_key_value_heads",), follow=_count_key_value_heads),
    "attention.key_length": Setting(("head_dim",), follow=head_size),
    "attention.value_length": Setting(follow=head_size),
    "attention.layer_norm_epsilon": Setting(
        ("layer_norm_eps", "layer_norm_epsilon", "norm_epsilon", "norm_eps"), optional=True
    ),
    "attention.layer_norm_rms_epsilon": Setting(("rms_norm_eps", "norm_eps"), optional=True),
    "attention.sliding_window": Setting(("sliding_window",), (0,), _find_window),
    "attention.sliding_window_pattern": Setting(
        follow=lambda config: [kind == "sliding_attention" for kind in getattr(config, "layer_types", None) or ()]
    ),
    "attention.scale": Setting(
        (), (0,), lambda config: (getattr(config, "query_pre_attn_scalar", None) or head_size(config)) ** -0.5
    ),
    "attention.causal": Setting(follow=lambda config: not getattr(config, "use_bidirectional_attention", False)),
    "attention.max_alibi_bias": Setting((), (0,), lambda config: 8.0 if config.model_type == "bloom" else None),
    "attention.clamp_kqv": Setting(neutral=(0,)),
    "attn_logit_softcapping": Setting(("attn_logit_softcapping",), (0,)),
    "final_logit_softcapping": Setting(("final_logit_softcapping",), (0,)),
    "logit_scale": _FACTOR,
    "embedding_scale": _FACTOR,
    "residual_scale": _FACTOR,
    "shortconv.l_cache": Setting(("conv_L_cache",)),
    "full_attention_interval": Setting(follow=_find_interval),
    "ssm.conv_kernel": Setting(("linear_conv_kernel_dim",)),
    "ssm.state_size": Setting(("linear_key_head_dim",)),
    "ssm.group_count": Setting(("linear_num_key_heads",)),
    "ssm.time_step_rank": Setting(("linear_num_value_heads",)),
    "ssm.inner_size": Setting(follow=_find_inner_size),
    "rope.dimension_sections": Setting(follow=_find_sections),
    "expert_count": Setting(("num_experts", "num_local_experts"), (0,)),
    "expert_used_count": Setting(("num_experts_per_tok",), (0,)),
    "expert_feed_forward_length": Setting(("moe_intermediate_size",), (0,)),
    "expert_shared_feed_forward_length": Setting(("shared_expert_intermediate_size",), (0,)),
}
"""The keys of an architecture that a configuration can follow, except most keys of rotary embeddings."""


def refuse_layers(metadata: Metadata) -> None:
    """Raise an error if a GGUF file has a number for each layer, and transformers has one number for all layers."""
    for key in ("attention.head_count", "attention.head_count_kv", "feed_forward_length"):
        if isinstance(metadata.settings.get(key), list) and metadata.architecture != "lfm2":
            raise metadata.refuse(key)


def configure(metadata: Metadata, config: Any) -> Any:
    """Return a configuration that follows all keys of a decoder's GGUF file.

    Args:
        metadata: The keys of the file.
        config: The configuration that transformers makes from the file; it is changed.

    Raises:
        ModelError: A key cannot be followed.
    """
    declared = dict(metadata.settings)
    declared["block_count"] -= declared.get("nextn_predict_layers", 0)
    for key, value in declared.items():
        setting = SETTINGS.get(key)
        if setting is None or setting.is_followed(config, value):
            continue
        if name := setting.find(config):
            _assign(config, name, None if value in setting.neutral else value)
    if hasattr(config, "query_pre_attn_scalar"):
        wide = config.num_hidden_layers == _GEMMA_27B.get(metadata.architecture)
        config.query_pre_attn_scalar = config.hidden_size // config.num_attention_heads if wide else config.head_dim
    for suffix, name in _FLAGS.items():
        if any(tensor.endswith(suffix) for tensor in metadata.tensors):
            _assign(config, name, True)
    set_rope(metadata, config)
    try:
        config = type(config).from_dict(config.to_dict())  # as if it were read from a folder
    except Exception as error:  # each configuration raises its own errors
        if turning := [key for key in ROPE_KEYS if key in declared]:
            raise metadata.refuse(turning[0]) from error
        raise
    for key, value in declared.items():
        if key in UNRELATED or key in ROPE_KEYS:
            continue
        if key not in SETTINGS or not SETTINGS[key].is_followed(config, value):
            raise metadata.refuse(key)
    return config


def check_tensors(metadata: Metadata, module: nn.Module) -> None:
    """Raise an error if a GGUF file has tensors that no parameter of its model takes."""
    config: Any = module.config
    layers, ahead = config.num_hidden_layers, metadata.settings.get("nextn_predict_layers", 0)
    unrelated = tuple(f"blk.{layer}." for layer in range(layers, layers + ahead))
    named = _list_tensors(metadata, module, layers)
    if lost := [name for name in metadata.tensors if _stem(name) not in named and not name.startswith(unrelated)]:
        raise metadata.refuse_tensors(lost)


def _has(config: Any, name: str) -> bool:
    """Return whether the class of a configuration has an attribute; models ignore attributes of an instance alone."""
    return hasattr(type(config), name) or name in config.attribute_map


def _assign(config: Any, name: str, value: Any) -> None:
    """Set an attribute of a configuration, if it has the attribute and does not compute it from others."""
    if _has(config, name) and not isinstance(getattr(type(config), name, None), property):
        setattr(config, name, value)


def _are_equal(followed: Any, value: Any) -> bool:
    if isinstance(followed, list) and isinstance(value, int):  # the value is a period: every n-th layer differs
        value = [bool(number % value) for number in range(1, len(followed) + 1)]
    if isinstance(followed, float) and isinstance(value, int | float):
        return isclose(followed, value, rel_tol=1e-6)
    return bool(followed == value)


def _stem(name: str) -> str:
    return name.removesuffix(".weight")


def _list_tensors(metadata: Metadata, module: nn.Module, layers: int) -> set[str]:
    """Return the names of the tensors that the parameters of a model take, without ``.weight``."""
    from gguf import MODEL_ARCH_NAMES, get_tensor_name_map  # imported here, since only GGUF files need it

    architecture = next(key for key, name in MODEL_ARCH_NAMES.items() if name == metadata.architecture)
    names = get_tensor_name_map(architecture, layers)
    named = set(map(_stem, ROPE_TENSORS))
    for parameter in module.state_dict():
        for name in (parameter, parameter.partition(".")[2]):
            if tensor := names.get_name(name, (".weight", ".bias")):
                named.add(_stem(tensor))
            for ending, (neighbour, tensors) in _UNNAMED.items():
                if name.endswith(ending) and (place := names.get_name(name.replace(ending, neighbour))):
                    named |= {f"{place.rpartition('.')[0]}.{tensor}" for tensor in tensors}
    return named
