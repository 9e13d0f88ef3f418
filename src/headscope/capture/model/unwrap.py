"""Finds the transformers model inside a compiled or distributed model, a pipeline or a sentence encoder.

Wrappers are recognised by their attributes, so that no further library is imported.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, Protocol, runtime_checkable

import torch
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase


@runtime_checkable
class Holder(Protocol):
    """An object that holds a model and its tokenizer, such as a pipeline of transformers."""

    model: nn.Module
    tokenizer: PreTrainedTokenizerBase | None


DISTRIBUTED = (nn.DataParallel, nn.parallel.DistributedDataParallel)


def unwrap(model: Any) -> tuple[Any, PreTrainedTokenizerBase | None]:
    """Return the innermost model of a wrapper, and the tokenizer that the wrapper holds, if any.

    Args:
        model: A compiled or distributed model, a pipeline of transformers, a ``SentenceTransformer`` or a
            ``CrossEncoder``. Anything else is returned as it is.
    """
    tokenizer = None
    while not isinstance(model, PreTrainedModel):
        if (compiled := getattr(model, "_modules", {}).get("_orig_mod")) is not None:
            model = compiled
        elif isinstance(model, DISTRIBUTED):
            model = model.module
        elif isinstance(model, nn.Sequential) and len(model) and hasattr(model[0], "auto_model"):
            tokenizer, model = _find_tokenizer(model[0], tokenizer), model[0].auto_model
        elif isinstance(model, Holder) and isinstance(model.model, nn.Module):
            tokenizer, model = _find_tokenizer(model, tokenizer), model.model
        else:
            break
    return model, tokenizer


@contextmanager
def run_uncompiled(module: nn.Module) -> Iterator[None]:
    """Run compiled parts of a model as plain Python inside the ``with`` block; compiled code cannot be observed."""
    compiled = any(getattr(part, "_compiled_call_impl", None) is not None for part in module.modules())
    compiled = compiled or any("_orig_mod" in part._modules for part in module.modules())
    with torch.compiler.set_stance("force_eager") if compiled else nullcontext():
        yield


def _find_tokenizer(holder: Any, known: PreTrainedTokenizerBase | None) -> PreTrainedTokenizerBase | None:
    own = getattr(holder, "tokenizer", None)
    return own if known is None and isinstance(own, PreTrainedTokenizerBase) else known
