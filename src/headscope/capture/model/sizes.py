"""The numbers of heads and the longest text that a configuration states, under whatever names it has for them.

Hybrids of one family state them once, as a list, or block by block; transformers calls the last heterogeneous.
A configuration is that of a model, or of its encoder or decoder.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from headscope.errors import ModelError, first_line

HEADS = ("num_attention_heads", "num_query_heads", "n_head", "n_heads", "num_heads")
KEY_VALUE_HEADS = ("num_key_value_heads", "num_kv_heads")
"""Names of the numbers of query heads and of key/value heads."""

POSITIONS = (
    "max_position_embeddings", "n_positions", "max_seq_len", "max_seq_length", "max_sequence_length", "seq_length",
    "max_context_length", "context_length", "n_ctx", "max_text_positions",
)  # fmt: skip
"""Names of the number of tokens of the longest text; the first that a configuration has counts."""

SIDES = (
    "max_encoder_position_embeddings", "max_decoder_position_embeddings", "max_source_positions",
    "max_target_positions",
)  # fmt: skip
"""Names of the same for one side of an encoder-decoder; all that a configuration has count."""


def count_heads(config: Any, *names: str) -> int:
    """Return the number of query heads of each layer that has attention, under these names or those in `HEADS`.

    Raises:
        ModelError: the configuration states none, or layers have different numbers.
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
    """Return the number of key/value heads of each layer in turn; a single one where all layers have as many.

    It is that of the query heads where the configuration states no other.
    """
    if getattr(config, "multi_query", False) and not getattr(config, "new_decoder_architecture", False):
        return (1,)
    numbers = _list_by_layer(config, KEY_VALUE_HEADS)
    for layer, block in enumerate(_list_blocks(config), start=1):  # by how many query heads share each
        if (shared := _get(block, "n_heads_in_group")) and layer not in list_skipped(config):
            numbers[layer] = heads // int(shared)
    different = {*numbers.values()}
    if len(different) < 2:
        return (different.pop() if different else heads,)
    return tuple(numbers.get(layer, heads) for layer in range(1, config.num_hidden_layers + 1))


def list_skipped(config: Any) -> Mapping[int, str]:
    """Return the layers that have no attention where a configuration says so block by block, and what each is."""
    kinds = {"no_op": "no_op", "replace_with_linear": "linear"}
    return {
        layer: kind
        for layer, block in enumerate(_list_blocks(config), start=1)
        for name, kind in kinds.items()
        if _get(block, name)
    }


def find_limit(config: Any) -> int | None:
    """Return the number of tokens of the longest text that a configuration allows; None if it states no limit."""
    stated = [_read(config, name) for name in POSITIONS]
    sides = [_read(config, name) for name in SIDES]
    # XLNet says -1: no limit.
    first = [number for number in stated if isinstance(number, int)][:1]
    limits = [number for number in (*first, *sides) if isinstance(number, int) and number > 0]
    return min(limits, default=None)


def refuse_form(name: str, error: Exception) -> ModelError:
    """Return the error for a configuration that states its layers in a form that is not known, as LXMERT's does."""
    return ModelError(
        f"the configuration of {name!r} states its layers or heads in a form that headscope does not know "
        f"({first_line(error)}); give a text model, or the part of this one that reads text."
    )


def _list_by_layer(config: Any, names: Sequence[str]) -> dict[int, int]:
    """Return the number for each layer that has attention, counted from 1, under the first of the names that it has."""
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
    """Return the attention of each layer, if a configuration describes layers one by one, as DeciLM's does."""
    return [_get(block, "attention") for block in getattr(config, "block_configs", None) or ()]


def _pick(stated: Any, layer: int) -> int | None:
    """Return the number of a layer, which is stated for that layer, for all layers, or for each in a list."""
    if isinstance(stated, list | tuple):
        stated = stated[layer - 1] if layer <= len(stated) else None
    return stated if isinstance(stated, int) else None


def _get(part: Any, name: str) -> Any:
    """Return the value that a part of a configuration, an object or a dictionary, has under a name, or None."""
    return part.get(name) if isinstance(part, Mapping) else getattr(part, name, None)


def _read(config: Any, name: str) -> Any:
    """Return the value that a configuration has under a name, or None, also if layers have different ones."""
    try:
        return getattr(config, name, None)
    except RuntimeError:
        return None


def read_first(config: Any, *names: str) -> Any:
    """Return the first of several fields that a configuration states; None if it states none of them."""
    return next((value for name in names if (value := getattr(config, name, None)) is not None), None)
