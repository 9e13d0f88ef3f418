"""Finds the texts that may share a batch: in some models, a long text changes how its whole batch is computed."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, TypeVar

from transformers import PreTrainedModel

from headscope.capture.model.turns import list_configs

Text = TypeVar("Text")


def list_thresholds(module: PreTrainedModel) -> tuple[int, ...]:
    """Return the numbers of tokens beyond which one text changes the positions of all texts of its batch, sorted.

    Rotary embeddings of the type ``longrope`` have one set of frequencies for batches in which all texts have at most
    ``original_max_position_embeddings`` tokens, and another for batches with a longer text.
    """
    thresholds = set()
    for config in list_configs(module):
        if longest := _find_original_length(config):
            thresholds.add(longest)
            if module.config.is_encoder_decoder:  # the decoder also reads a start token
                thresholds.add(longest - 1)
    return tuple(sorted(thresholds))


def find_side(thresholds: Sequence[int], tokens: int) -> int:
    """Count the thresholds that a text of `tokens` tokens exceeds."""
    return bisect_left(thresholds, tokens)


def divide(
    texts: Iterable[Text], thresholds: Sequence[int], count_tokens: Callable[[Text], int]
) -> Iterator[list[Text]]:
    """Yield groups of neighbouring texts that exceed the same thresholds; each group needs a separate batch."""
    for _, part in groupby(texts, key=lambda text: find_side(thresholds, count_tokens(text))):
        yield list(part)


def _find_original_length(config: Any) -> int | None:
    parameters = getattr(config, "rope_parameters", None) or {}
    by_layer_type = [each for each in parameters.values() if isinstance(each, dict)]
    for each in (parameters, *by_layer_type):
        if each.get("rope_type") == "longrope":
            own = each.get("original_max_position_embeddings")
            length: int | None = own or getattr(config, "original_max_position_embeddings", None)
            return length
    return None
