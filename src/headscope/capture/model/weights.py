"""Weights on disk: checks that a model takes all weights that matter, and their hash.

transformers drops weights that no module takes, and says so in a report that headscope hides. If such weights bear on
attention, an error names them here.
"""

import hashlib
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel
from transformers.utils import logging as transformers_logging

from headscope.errors import ModelError
from headscope.files import reading
from headscope.guards.formats import WEIGHTS
from headscope.guards.tensors import open_tensors

logger = logging.getLogger("headscope")

COMPLETE = "give a complete checkpoint whose configuration is its own"

HARMLESS = re.compile(
    r"(^|\.)("
    r"pooler\..*"  # comes after the last attention
    r"|(position|token_type)_ids|(original_)?inv_freq|(cos|sin)_cached|relative_position_index"  # computed again
    r"|embed_positions(\.weights)?"  # sinusoids; learned ones are `embed_positions.weight`
    r"|(self_attn|attn|attention|crossattention)\.(masked_)?bias|causal_mask"  # the mask, as old checkpoints keep it
    r"|num_batches_tracked|total_ops|total_params|_extra_state|_float_tensor|version"  # data of other libraries
    r"|mtp(_layers)?\..*"  # predicts tokens after the next one
    r")$"
)
"""The weights inside a model that do not change what is measured."""

CACHE_SCALES = re.compile(r"(^|\.)[kv]_(proj\.output_)?scale$")
"""The scales by which an engine rounds the keys and values in its cache."""

EIGHT_BITS = frozenset({"F8_E4M3", "F8_E5M2", "F8_E8M0", "I8", "U8"})
"""The types of safetensors that need scales to be weights."""


@contextmanager
def quiet() -> Iterator[None]:
    """Let transformers log only errors, and draw no progress bars, inside the ``with`` block."""
    verbosity, bars = transformers_logging.get_verbosity(), transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(verbosity)
        if bars:
            transformers_logging.enable_progress_bar()


def refuse_other_weights(
    name: str, module: PreTrainedModel, loading: Mapping[str, Any], task: str | None, replaced: frozenset[str]
) -> None:
    """Raise an error if a weight is missing or has another size, or no module takes a weight that bears on attention.

    `loading` is the report of transformers (``output_loading_info``). `replaced` has the names of the modules that an
    adapter replaces; their weights may be missing or of another size.
    """
    sizes = {key: sizes for key, *sizes in loading["mismatched_keys"] if replaced.isdisjoint(key.split("."))}
    if sizes:
        key = min(sizes)
        there, wanted = (tuple(size) for size in sizes[key])
        raise ModelError(
            f"the weight {key} of {name!r} has the size {there}, and its configuration calls for {wanted}; {COMPLETE}.",
            lacks_head=task is not None,
        )
    refuse_missing_weights(name, {key for key in loading["missing_keys"] if replaced.isdisjoint(key.split("."))}, task)
    unused = list_unused(module, loading["unexpected_keys"])
    if unused:
        raise ModelError(
            f"{name!r} has {_describe(unused)} for which its configuration has no place, so attention would be "
            f"computed without; {COMPLETE}."
        )
    if scales := sorted(filter(CACHE_SCALES.search, loading["unexpected_keys"])):
        logger.warning(
            "%s has scales for a cache of rounded keys and values, such as %s; attention is measured without rounding.",
            name,
            scales[0],
        )


def refuse_missing_weights(name: str, missing: set[str], task: str | None) -> None:
    """Raise an error if weights that a model needs are missing on disk; without a task, it needs no pooler."""
    # A pooler comes after the last attention. Sentence encoders are often saved without it, but classifiers read it.
    lost = sorted(key for key in missing if task is not None or "pooler" not in key)
    if not lost:
        return
    if task is None:
        raise ModelError(
            f"{name!r} lacks {len(lost)} of the weights that its configuration calls for, such as {lost[0]}; "
            "they would be random. Give a complete checkpoint."
        )
    raise ModelError(
        f"{name!r} lacks {len(lost)} of the weights that the task {task} calls for, such as {lost[0]}; they would be "
        "random. Give a checkpoint that was trained for this task, or load the model without a task.",
        lacks_head=True,
    )


def list_unused(module: PreTrainedModel, unexpected: Iterable[str]) -> list[str]:
    """Return the sorted names of the weights on disk that belong to a model, but that no module takes.

    Heads for other tasks do not belong to the model. Neither do extra layers that predict tokens after the next one,
    which the configuration does not count. `unexpected` has the names of the weights that transformers did not use.
    """
    base, modules = module.base_model, {name for name, _ in module.named_modules() if name}
    parts, prefix = {name for name, _ in base.named_children()}, f"{module.base_model_prefix}."
    config = module.config.get_text_config()
    last = getattr(config, "num_hidden_layers", 0) + (getattr(config, "num_nextn_predict_layers", None) or 0)
    further = {str(number) for number in range(getattr(config, "num_hidden_layers", 0), last)}

    def is_part(key: str) -> bool:
        within = key.removeprefix(prefix).split(".")
        if len(within) > 2 and within[0] in parts and within[1] in further:
            return False
        return within[0] in parts or key.rpartition(".")[0] in modules

    return sorted(
        key for key in unexpected if is_part(key) and not HARMLESS.search(key) and not CACHE_SCALES.search(key)
    )


def refuse_eight_bits(name: str, module: PreTrainedModel, folder: Path) -> None:
    """Raise an error if weights on disk have 8 bits, and nothing multiplies them by their scales.

    Raises:
        ModelError: A file has such weights, and the configuration names no quantisation.
    """
    if getattr(module, "hf_quantizer", None) is not None:
        return
    for file in list_files(folder):
        if file.suffix != ".safetensors":
            continue
        with open_tensors(file, WEIGHTS) as opened:
            for key in sorted(opened.keys()):
                part = opened.get_slice(key)
                if part.get_dtype() in EIGHT_BITS and len(part.get_shape()) > 1 and not HARMLESS.search(key):
                    raise ModelError(
                        f"{name!r} has weights in 8 bits, such as {key} ({part.get_dtype()}), and its configuration "
                        "has no quantization_config that says by which scales they are multiplied; "
                        f"{COMPLETE}, or the weights in 16 or 32 bits."
                    )


def _describe(weights: Sequence[str]) -> str:
    return f"the weight {weights[0]}" if len(weights) == 1 else f"{len(weights)} weights, such as {weights[0]},"


def sha256_of_weights(folder: Path) -> str:
    """Return the SHA-256 of the weights that transformers takes from `folder`; empty if there are none.

    For a single file, `sha256sum` prints the same hash.
    """
    files = list_files(folder)
    return hash_files(files) if files else ""


def list_files(folder: Path) -> list[Path]:
    """Return the weights files that transformers takes from a folder, in the order of their names."""
    patterns = ("model.safetensors", "model-*-of-*.safetensors", "pytorch_model.bin", "pytorch_model-*-of-*.bin")
    return next((parts for pattern in patterns if (parts := sorted(folder.glob(pattern)))), [])


def hash_files(files: Iterable[Path]) -> str:
    """Return the SHA-256 of the bytes of files, one after the other."""
    digest = hashlib.sha256()
    for file in files:
        with reading(file) as opened:
            while chunk := opened.read(1 << 20):
                digest.update(chunk)
    return digest.hexdigest()
