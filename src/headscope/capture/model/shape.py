"""The shape of a model: its layers, heads and vocabulary, by its configuration and tokenizer."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from transformers import PreTrainedTokenizerBase
from transformers.models.auto import modeling_auto

from headscope.capture.model.sizes import count_heads, count_key_value_heads, list_skipped, read_first
from headscope.layers import list_ranges

CAUSAL = frozenset(modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)
CAUSAL -= frozenset(modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES) | {"xlnet", "bert-generation"}
"""The model types whose attention is causal unless the configuration says otherwise, for use if the mask is unknown.

They can predict the next token, but not a masked one. Two such types are left out: XLNet permutes which tokens a token
may see, and BertGeneration is causal only if its configuration says so.
"""

WITHOUT_ATTENTION = frozenset({"linear_attention", "conv", "moe", "mlp"})
"""The types of layers without attention of queries to keys, as configurations of transformers name them."""


@dataclass(frozen=True)
class Shape:
    """The layers, heads and vocabulary of a model; two models of one shape can be compared head by head.

    Attributes:
        layers: The number of layers of each attention type.
        heads: The number of query heads in a layer of each attention type.
        vocabulary: The id of each token.
        without_attention: The kind of each layer without attention, by the number of the layer, in a model that mixes
            kinds of layers: ``linear_attention``, ``conv``, ``moe``, ``mlp``, ``no_op`` or ``linear``.
        key_value_heads: The number of key/value heads in a layer of each attention type. If layers differ, it is the
            largest number. If query heads do not share key/value heads, it is the number of query heads.
        key_value_heads_by_layer: The number of key/value heads of each layer in turn, only for attention types whose
            layers differ.
    """

    layers: Mapping[str, int]
    heads: Mapping[str, int]
    vocabulary: Mapping[str, int] = field(default_factory=dict, repr=False)
    without_attention: Mapping[int, str] = field(default_factory=dict)
    key_value_heads: Mapping[str, int] = field(default_factory=dict)
    key_value_heads_by_layer: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @classmethod
    def from_config(
        cls, config: Any, tokenizer: PreTrainedTokenizerBase | None = None, *, causal: bool | None = None
    ) -> "Shape":
        """Return the shape of a model with this configuration and tokenizer.

        Args:
            config: The configuration of the model.
            tokenizer: The tokenizer whose vocabulary is part of the shape. Default: no vocabulary.
            causal: Whether a token sees only itself and earlier tokens; ignored for encoder-decoders. Default: as the
                configuration and the model type say, which is not known for all types.
        """
        vocabulary = {} if tokenizer is None else tokenizer.get_vocab()
        if not config.is_encoder_decoder:
            text = config.get_text_config()
            causal = _is_causal(config, text) if causal is None else causal
            attention_type = "decoder" if causal else "encoder"
            heads = {attention_type: count_heads(text)}
            kinds = enumerate(getattr(text, "layer_types", None) or (), start=1)
            others = {number: kind for number, kind in kinds if kind in WITHOUT_ATTENTION} | {**list_skipped(text)}
            layers = {attention_type: text.num_hidden_layers}
            return cls(layers, heads, vocabulary, others, *_count_shared({attention_type: text}, heads))
        encoder, decoder = getattr(config, "encoder", config), getattr(config, "decoder", config)
        first = getattr(encoder, "encoder_layers", encoder.num_hidden_layers)
        second = read_first(decoder, "decoder_layers", "num_decoder_layers", "num_hidden_layers")
        first_heads = count_heads(encoder, "encoder_attention_heads")
        second_heads = count_heads(decoder, "decoder_attention_heads")
        layers = {"encoder": first, "decoder": second, "cross": second}
        heads = {"encoder": first_heads, "decoder": second_heads, "cross": second_heads}
        configs = {"encoder": encoder, "decoder": decoder, "cross": decoder}
        return cls(layers, heads, vocabulary, {}, *_count_shared(configs, heads))

    def count_key_value_heads(self, attention_type: str, layer: int) -> int:
        """Return the number of key/value heads of a layer, which is counted from 1."""
        by_layer = self.key_value_heads_by_layer.get(attention_type)
        return self.key_value_heads[attention_type] if by_layer is None else by_layer[layer - 1]

    @property
    def attention_layers(self) -> Mapping[str, tuple[int, ...]]:
        """The numbers of the layers that have attention, by attention type, counted from 1."""
        return {
            attention_type: tuple(number for number in range(1, layers + 1) if number not in self.without_attention)
            for attention_type, layers in self.layers.items()
        }

    @property
    def together(self) -> int:
        """The number of heads in all layers with attention together."""
        return sum(len(layers) * self.heads[kind] for kind, layers in self.attention_layers.items())

    def difference(self, other: "Shape") -> str:
        """Describe the first difference between two shapes in words; empty if they are the same."""
        for what, ours, theirs in (("layers", self.layers, other.layers), ("heads", self.heads, other.heads)):
            if tuple(ours.values()) != tuple(theirs.values()):
                return f"their {what} ({_listed(ours)}; {_listed(theirs)})"
        if self.layers.keys() != other.layers.keys():
            return f"their attention ({', '.join(self.layers)}; {', '.join(other.layers)})"
        if self.without_attention.keys() != other.without_attention.keys():
            first, second = (list_ranges([*shape.without_attention]) or "none" for shape in (self, other))
            return f"their layers without attention ({first}; {second})"
        if self.vocabulary != other.vocabulary:
            return f"their vocabularies (of {len(self.vocabulary):,} tokens; of {len(other.vocabulary):,})"
        return ""


def _count_shared(
    configs: Mapping[str, Any], heads: Mapping[str, int]
) -> tuple[dict[str, int], dict[str, tuple[int, ...]]]:
    """Return two counts of key/value heads by attention type: the largest of any layer, and the counts by layer.

    The counts by layer are only of attention types whose layers differ.
    """
    shared = {kind: count_key_value_heads(config, heads[kind]) for kind, config in configs.items()}
    most = {kind: max(counts) for kind, counts in shared.items()}
    return most, {kind: counts for kind, counts in shared.items() if len(counts) > 1}


def _is_causal(config: Any, text: Any) -> bool:
    """Return whether no token sees a later one, by the configuration of a model that is not an encoder-decoder."""
    if getattr(text, "use_bidirectional_attention", None) in (True, "all"):  # Gemma as an encoder
        return False
    return bool(getattr(text, "is_decoder", False)) or not CAUSAL.isdisjoint((config.model_type, text.model_type))


def _listed(counts: Mapping[str, int]) -> str:
    """Describe counts by attention type, such as "5", or "2 encoder, 3 decoder and 3 cross"."""
    if len(counts) == 1:
        return str(next(iter(counts.values())))
    *others, last = [f"{count} {attention_type}" for attention_type, count in counts.items()]
    return f"{', '.join(others)} and {last}"
