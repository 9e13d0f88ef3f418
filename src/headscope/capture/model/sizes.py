"""Reads the numbers of heads and the longest text from a configuration, under any name that transformers has for them.

Hybrid models state a number once, as a list, or block by block, which transformers calls heterogeneous. A configuration
here belongs to a model, or to its encoder or decoder.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from headscope.errors import ModelError, first_line

HEADS = ("num_attention_heads", "num_query_heads", "n_head", "n_heads", "num_heads")
KEY_VALUE_HEADS = ("num_key_value_heads", "num_kv_heads")
"""The names of the numbers of query heads, and of key/value heads."""

POSITIONS = (
    "max_position_embeddings", "n_positions", "max_seq_len", "max_seq_length", "max_sequence_length", "seq_length",
    "max_context_length", "context_length", "n_ctx", "max_text_positions",
)  # fmt: skip
"""The names of the length of the longest text in tokens; the first that a configuration has counts."""

SIDES = (
    "max_encoder_position_embeddings", "max_decoder_position_embeddings", "max_source_positions",
    "max_target_positions",
)  # fmt: skip
"""The names of the length of the longest text for one side of an encoder-decoder; the shortest length counts."""


def count_heads(config: Any, *names: str) -> int:
    """Return the number of query heads of a layer with attention, under one of `names` or of `HEADS`.

    Raises:
        ModelError: The configuration states no number, or layers have different numbers.
    """
    names, kind = (*names, *HEADS), getattr(config, "model_type", "") or type(config).__name__
    numbers = _list_by_layer(config, names)
    if not numbers:
        raise ModelError(
            f"the configuration of the model states no number of attention heads (a model of the type {kind!r}); give "
            "a model that has heads."
        )
    if len({*numbers.values()}) > 1:
        raise ModelError(
            f"the layers of the model have {min(numbers.values())} to {max(numbers.values())} attention heads (a model "
            f"of the type {kind!r}), and tables have as many in each layer; give a model whose layers have equally "
            "many."
        )
    # ConvBERT replaces some heads by convolutions.
    return max(1, next(iter(numbers.values())) // (getattr(config, "head_ratio", None) or 1))


def count_key_value_heads(config: Any, heads: int) -> tuple[int, ...]:
    """Return the number of key/value heads of each layer in turn; a single number if all layers have the same.

    If the configuration does not state this number, it is the number of query heads.
    """
    if getattr(config, "multi_query", False) and not getattr(config, "new_decoder_architecture", False):
        return (1,)
    numbers = _list_by_layer(config, KEY_VALUE_HEADS)
    for layer, block in enumerate(_list_blocks(config), start=1):  # states how many query heads share each
        if (shared := _get(block, "n_heads_in_group")) and layer not in list_skipped(config):
            numbers[layer] = heads // int(shared)
    different = {*numbers.values()}
    if len(different) < 2:
        return (different.pop() if different else heads,)
    return tuple(numbers.get(layer, heads) for layer in range(1, config.num_hidden_layers + 1))


def list_skipped(config: Any) -> Mapping[int, str]:
    """Return what replaces attention (``no_op``, ``linear``) in each layer without it, by the number of the layer.

    Empty if the configuration does not describe its blocks one by one.
    """
    kinds = {"no_op": "no_op", "replace_with_linear": "linear"}
    return {
        layer: kind
        for layer, block in enumerate(_list_blocks(config), start=1)
        for name, kind in kinds.items()
        if _get(block, name)
    }


def find_limit(config: Any) -> int | None:
    """Return the length in tokens of the longest text that a configuration allows; None if it states no limit."""
    stated = [_read(config, name) for name in POSITIONS]
    sides = [_read(config, name) for name in SIDES]
    # XLNet states -1 for no limit.
    first = [number for number in stated if isinstance(number, int)][:1]
    limits = [number for number in (*first, *sides) if isinstance(number, int) and number > 0]
    return min(limits, default=None)


def refuse_form(name: str, error: Exception) -> ModelError:
    """Make the error for a configuration that states its layers in an unknown form, as LXMERT's does."""
    return ModelError(
        f"the configuration of {name!r} states its layers or heads in a form that headscope does not know "
        f"({first_line(error)}); give a text model, or the part of this one that reads text."
    )


def _list_by_layer(config: Any, names: Sequence[str]) -> dict[int, int]:
    """Return the number of heads of each layer with attention (counted from 1), under the first name that is stated."""
    skipped, kinds = list_skipped(config), getattr(config, "layer_types", None) or ()
    different, numbers = getattr(config, "is_heterogeneous", False), {}
    for layer in range(1, (getattr(config, "num_hidden_layers", None) or 1) + 1):
        of_layer = config.per_layer_config[layer - 1] if different else config
        window = [*kinds[layer - 1 : layer]] == ["sliding_attention"]
        forms = ("{}_per_layer", "swa_{}", "{}") if window else ("{}_per_layer", "{}")
        stated = (_pick(_read(of_layer, form.format(name)), layer) for form in forms for name in names)
        number = next((number for number in stated if number is not None), None)
        if number and layer not in skipped:
            numbers[layer] = number
    return numbers


def _list_blocks(config: Any) -> list[Any]:
    """Return the attention settings of each layer from a configuration that lists layers, as DeciLM's; else empty."""
    return [_get(block, "attention") for block in getattr(config, "block_configs", None) or ()]


def _pick(stated: Any, layer: int) -> int | None:
    """Return the number of a layer, from one number or a list with a number for each layer; None if there is none."""
    if isinstance(stated, list | tuple):
        stated = stated[layer - 1] if layer <= len(stated) else None
    return stated if isinstance(stated, int) else None


def _get(part: Any, name: str) -> Any:
    """Return the value of a name in a part of a configuration (an object or a mapping); None if it is missing."""
    return part.get(name) if isinstance(part, Mapping) else getattr(part, name, None)


def _read(config: Any, name: str) -> Any:
    """Return the value of a name in a configuration; None if it is missing, or if layers have different values."""
    try:
        return getattr(config, name, None)
    except RuntimeError:
        return None


def read_first(config: Any, *names: str) -> Any:
    """Return the value of the first of these names that a configuration states; None if it states none of them."""
    return next((value for name in names if (value := getattr(config, name, None)) is not None), None)
