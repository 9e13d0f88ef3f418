"""Checks that the captured attention is what the model computes; each raises a `ModelError` if it is not."""

import math
import re
from collections.abc import Callable, Mapping

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from headscope.capture.model.dtypes import is_half
from headscope.capture.model.model import Model
from headscope.capture.model.noise import NOISE_FACTOR
from headscope.capture.rows.attention import Attention
from headscope.capture.rows.dense import DenseRows
from headscope.capture.tokens.batch import Batch
from headscope.errors import ModelError


def verify_rows(model: Model, attention: Attention) -> None:
    """Raise an error unless a layer has the stated number of heads, and rows that sum to 1 (or less with sinks)."""
    _verify_heads(model, attention)
    weights = attention.weights()
    real = attention.queries.real[:, attention.rows]
    sums = weights.sum(-1).movedim(1, -1)[real]
    tolerance = 10 * find_tolerance(model.module.dtype)
    if not bool(torch.isfinite(sums).all()) or bool((sums > 1 + tolerance).any()):
        raise ModelError(
            f"layer {attention.layer} of {model.name!r} has attention rows that sum to {float(sums.max()):.6g}; "
            "a row of attention sums to 1 at most, so the attention cannot be captured."
        )
    if bool((sums < 1 - tolerance).any()) and not any("sink" in name for name, _ in model.module.named_parameters()):
        raise ModelError(
            f"layer {attention.layer} of {model.name!r} has attention rows that sum to {float(sums.min()):.6g} and no "
            "attention sinks that would explain it."
        )


def _verify_heads(model: Model, attention: Attention) -> None:
    """Raise an error if a layer does not have the number of heads that the configuration states."""
    stated, seen = model.sizes.heads[attention.attention_type], attention.weights().shape[1]
    if seen != stated:
        raise ModelError(
            f"layer {attention.layer} of {model.name!r} has {seen} heads, and by its configuration each has {stated}; "
            "give a model with equally many in all layers, whose configuration is its own."
        )


def verify_numbers(model: Model, modules: Mapping[tuple[str, int], nn.Module]) -> None:
    """Raise an error if an attention layer of a hybrid model does not have the number of its block.

    For a block that runs several times, as in Zamba, the number of one of its layers is enough.
    """
    if not model.shape.without_attention:
        return
    places = {part: re.search(r"\.(\d+)\.", f".{name}.") for name, part in model.module.named_modules()}
    for (attention_type, layer), module in modules.items():
        place, layers = places[module], [number for (_, number), other in modules.items() if other is module]
        if place is not None and int(place[1]) + 1 not in layers:
            raise ModelError(
                f"the attention of {model.name!r} cannot be captured: by its configuration {attention_type} layer "
                f"{layer} has attention, and what was seen is that of block {int(place[1]) + 1}."
            )


def verify_average(
    model: Model,
    attention: DenseRows,
    value: Float[Tensor, "batch value_head key width"],
    output: Float[Tensor, "batch query head width"],
) -> None:
    """Raise an error unless the average of the values under the weights is the output of the attention function."""
    heads = value.repeat_interleave(attention.heads // value.shape[1], dim=1).float()
    expected = torch.matmul(attention.matrix, heads).transpose(1, 2)
    real = attention.queries.real[:, attention.rows]
    what = f"the values averaged by layer {attention.layer}"
    _verify_close(model, expected[real], output.float()[real], what, heads.abs().max())


def verify_same(
    model: Model,
    batch: Batch,
    untouched: Float[Tensor, "batch ..."],
    observed: Float[Tensor, "batch ..."],
    measure_noise: Callable[[], float],
) -> None:
    """Raise an error if the model's outputs under observation differ from the outputs of the untouched model.

    Outputs for padding are ignored. The model's rounding noise is measured only if the outputs differ by more than one
    rounding.
    """
    before, after = (select_real(batch, output).float() for output in (untouched, observed))
    _verify_close(model, before, after, "the outputs", before.abs().max(), measure_noise)


def select_real(batch: Batch, output: Float[Tensor, "batch ..."]) -> Float[Tensor, "..."]:
    """Return the outputs of a batch for real tokens, without padding; outputs by text are returned unchanged."""
    return output[batch.output_tokens.real] if by_token(batch, output) else output


def are_finite(batch: Batch, output: Float[Tensor, "batch ..."]) -> Bool[Tensor, " batch"]:
    """Return, for each document, whether the model's output for it is finite; outputs for padding are ignored.

    A weight that is not finite makes everything after it not finite, and so the output.
    """
    # Finding the largest and the smallest logit takes a tenth of the time of checking each; a NaN makes both NaN.
    # Multiplied by 0, only a finite number is 0.
    finite = output.amax(-1) * 0 == output.amin(-1) * 0
    if by_token(batch, output):
        finite = finite | ~batch.output_tokens.real
    return finite.reshape(len(finite), -1).all(1)


def refuse_not_finite(model: str, where: str, what: str = "outputs") -> ModelError:
    """Make the error for a model whose outputs are not finite."""
    return ModelError(
        f"the {what} of {model!r} are not finite (NaN or infinite) {where}; its weights are damaged, or too large for "
        "half precision: give whole weights, or load it in float32."
    )


def by_token(batch: Batch, output: Float[Tensor, "batch ..."]) -> bool:
    """Return whether an output has an entry for each token (as most logits), not for each text (as a classifier's)."""
    return output.ndim == 3 and output.shape[1] == batch.output_tokens.length


def verify_unpadded(
    model: Model,
    batch: Batch,
    padded: Float[Tensor, "..."],
    alone: Float[Tensor, "..."],
    measure_noise: Callable[[], float],
) -> None:
    """Raise an error if the outputs for a text of a batch depend on its padding.

    `padded` has the outputs for the text in the batch, `alone` the outputs for the text without padding.
    `measure_noise` is as in `verify_same`.
    """
    padded, alone = (padded[: len(alone)] if by_token(batch, padded[None]) else padded).float(), alone.float()
    difference, bound = measure_difference(model, alone, padded, alone.abs().max(), measure_noise)
    if not difference <= bound:
        raise ModelError(
            f"the outputs of {model.name!r} change by {difference:.2g} with the padding next to a text; "
            "measure each text alone (--batch-tokens 1)."
        )


def _verify_close(
    model: Model,
    expected: Tensor,
    actual: Tensor,
    what: str,
    scale: Tensor,
    measure_noise: Callable[[], float] | None = None,
) -> None:
    if expected.numel() == 0:
        return
    difference, bound = measure_difference(model, expected, actual, scale, measure_noise)
    if not difference <= bound:
        raise refuse_difference(model, what, difference, bound)


def refuse_difference(model: Model, what: str, difference: float, bound: float) -> ModelError:
    """Make the error for numbers that differ from the model's own by more than is allowed."""
    return ModelError(
        f"{what} of {model.name!r} differ by {difference:.2g} from what the model computes by itself (at most "
        f"{bound:.2g} is allowed), so its attention cannot be captured."
    )


def measure_difference(
    model: Model,
    expected: Float[Tensor, "*shape"],
    actual: Float[Tensor, "*shape"],
    scale: Tensor,
    measure_noise: Callable[[], float] | None = None,
) -> tuple[float, float]:
    """Return the largest difference of two tensors, and the largest difference allowed.

    A difference of one rounding of numbers as large as `scale` is allowed. If the difference is larger and
    `measure_noise` is given, `NOISE_FACTOR` times the model's noise is allowed, since many layers carry roundings on.
    The noise takes two passes, so it is measured only then. Noise that is not finite, as when half precision
    overflows, allows nothing.
    """
    difference = float((expected - actual).abs().max())
    bound = find_bound(model, float(scale))
    if difference > bound and measure_noise is not None and math.isfinite(noise := measure_noise()):
        bound = max(bound, NOISE_FACTOR * noise)
    return difference, bound


def find_bound(model: Model, size: float, tolerance: float | None = None) -> float:
    """Return the largest allowed difference of numbers as large as `size`: the share `tolerance`, or one rounding."""
    return (tolerance or find_tolerance(model.module.dtype)) * max(1.0, size)


def is_same(model: Model, expected: Float[Tensor, "*shape"], actual: Float[Tensor, "*shape"]) -> bool:
    """Return whether two outputs of a model are the same except for rounding."""
    difference, bound = measure_difference(model, expected, actual, expected.abs().max())
    return difference <= bound


def find_tolerance(dtype: torch.dtype) -> float:
    """Return the difference that rounding allows between two numbers of a type, as a share of the larger number."""
    # Statistics are computed in float32, not in a wider type.
    return max(1e-5, 16 * torch.finfo(dtype).eps if is_half(dtype) else 0.0)
