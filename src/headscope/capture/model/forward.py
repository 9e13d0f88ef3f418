"""One forward pass of a model. If it fails, the error names the cause and the advice that fits it."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from headscope.capture.model.dispatched import is_dispatched
from headscope.capture.model.modality import KINDS, describe_input
from headscope.capture.model.model import Model
from headscope.capture.model.turns import hold
from headscope.capture.model.unwrap import run_uncompiled
from headscope.errors import HeadscopeError, ModelError, first_line

MEMORY = re.compile(r"out of memory|can't allocate memory|not enough memory", re.IGNORECASE)
TYPES = re.compile(r"dtype|scalar type|same type|not implemented for", re.IGNORECASE)
DEVICES = re.compile(r"same device|meta tensor|on device|device type", re.IGNORECASE)
PADDING = re.compile(r"padding token|pad_token", re.IGNORECASE)
"""The words of error messages of libraries, by cause."""


def run_model(model: Model, inputs: Mapping[str, Any], **options: Any) -> Any:
    """Run a model on the inputs of a batch, and return its output.

    Nothing is generated, so keys and values are not cached. Some classifiers find the end of a text by its padding; if
    the configuration names no padding token, it gets one for this pass.

    Raises:
        ModelError: The pass fails for a known reason. Other errors are raised unchanged.
    """
    kept = {"use_cache": False} if hasattr(model.module.config, "use_cache") else {}
    with _name_padding(model.module, inputs), run_uncompiled(model.module):
        try:
            return _bring_outputs(model.module(**{**inputs, **kept, **options}), model.device)
        except HeadscopeError:
            raise
        except Exception as error:  # models raise many kinds of errors on input that they cannot read
            if cause := _explain(model, inputs, error):
                raise ModelError(f"{model.title} {cause}.") from error
            raise


def is_out_of_memory(error: BaseException | None) -> bool:
    """Return whether an error, or one of its causes, says that memory is too small."""
    while error is not None:
        kinds = torch.OutOfMemoryError | MemoryError
        if isinstance(error, kinds) or (isinstance(error, RuntimeError) and MEMORY.search(str(error))):
            return True
        error = error.__cause__
    return False


def refuse_run(model: Model, error: Exception) -> ModelError:
    """Make the error for a pass that failed for an unknown reason."""
    return ModelError(
        f"{model.title} cannot be run on text ({type(error).__name__}: {first_line(error)}); mend what this says, or "
        "give another model with its own tokenizer."
    )


def _bring_outputs(output: Any, device: torch.device) -> Any:
    """Move the outputs of the model to the device of its inputs; outputs of single layers stay where they are."""
    for name in ("last_hidden_state", "logits", "loss"):
        part = getattr(output, name, None)
        if isinstance(part, Tensor) and part.device != device:
            setattr(output, name, part.to(device))
    return output


@contextmanager
def _name_padding(module: PreTrainedModel, inputs: Mapping[str, Any]) -> Iterator[None]:
    """Set a padding token in the configuration of a classifier inside the ``with`` block, if it needs one and has none.

    A classifier needs a padding token if it reads several texts at once.
    """
    config, ids = module.config.get_text_config(), inputs.get("input_ids")
    classifies = "SequenceClassification" in type(module).__name__
    if not classifies or ids is None or len(ids) == 1 or getattr(config, "pad_token_id", None) is not None:
        yield
        return
    with hold([config]):
        config.pad_token_id = _find_padding(ids, inputs.get("attention_mask"))
        try:
            yield
        finally:
            config.pad_token_id = None


def _find_padding(ids: Tensor, mask: Tensor | None) -> int:
    """Return the id of the padding token of a batch; without padding, an id that is not the last of any text."""
    padding = ids[:0] if mask is None else ids[mask == 0]
    if padding.numel():
        return int(padding.flatten()[0])
    ends = {*ids[:, -1].tolist()}
    return next(number for number in range(len(ends) + 1) if number not in ends)


def _explain(model: Model, inputs: Mapping[str, Any], error: Exception) -> str:
    """Return the cause of an error, and advice, as words after the model's name; empty if the cause is unknown."""
    text, module = str(error), model.module
    batch, length = max((part.shape[:2] for part in inputs.values() if isinstance(part, Tensor)), default=(0, 0))
    if is_out_of_memory(error):
        return (
            f"needs more memory than there is for {batch} texts of up to {length} tokens ({first_line(error)}); lower "
            "--batch-tokens, lower --max-tokens, or load it in bfloat16"
        )
    if needed := [name for name in KINDS if name not in inputs and re.search(rf"\b{name}\b", text)]:
        return (
            f"also needs {describe_input(needed[0])}, and is run on text alone ({first_line(error)}); give a text "
            "model, or the part of this one that reads text"
        )
    limit = _find_positions(module)
    if limit is not None and length > limit and isinstance(error, IndexError | RuntimeError | ValueError):
        return (
            f"has embeddings of {limit} positions, and a text has {length} tokens; lower --max-tokens to {limit}, or "
            "state the limit in its configuration"
        )
    if DEVICES.search(text) and is_dispatched(module):
        there = " and ".join(map(str, model.devices))
        return (
            f"cannot be run where its parts lie, on {there} ({first_line(error)}); load it with another device_map, "
            "whose parts are whole layers, or without one"
        )
    if DEVICES.search(text) and len(devices := _list_devices(module)) > 1:
        return f"has weights on {' and '.join(devices)}; put all of it on one device, as with model.to({devices[0]!r})"
    types = sorted({str(part.dtype).removeprefix("torch.") for part in module.parameters() if part.is_floating_point()})
    if TYPES.search(text) and len(types) > 1:
        return (
            f"has weights of the types {' and '.join(types)}, which it cannot multiply ({first_line(error)}); give all "
            "of them one type, as with model.to(torch.float32)"
        )
    if PADDING.search(text):
        return (
            f"reads texts together only with a padding token ({first_line(error)}); set pad_token_id in its "
            "configuration, or measure each text alone (--batch-tokens 1)"
        )
    return ""


def _find_positions(module: nn.Module) -> int | None:
    """Return the number of positions that a model has embeddings for; None if it has no position embeddings.

    BART does not use its first rows, and RoBERTa does not use the rows up to the padding row.
    """
    sizes = []
    for name, part in module.named_modules():
        own = name.rpartition(".")[2]
        if isinstance(part, nn.Embedding) and (own == "wpe" or re.search(r"(^|_)positions?(_|$)", own)):
            unused = getattr(part, "offset", 0 if part.padding_idx is None else part.padding_idx + 1)
            sizes += [] if "relative" in own else [part.num_embeddings - int(unused)]
    return min(sizes, default=None)


def _list_devices(module: nn.Module) -> list[str]:
    parts = [*module.parameters(), *module.buffers()]
    return [*dict.fromkeys(str(part.device) for part in parts)]
