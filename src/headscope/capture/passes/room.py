"""Runs batches that do not fit into memory in parts; each batch that fails lowers the number of tokens that fit."""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import torch

from headscope.capture.model.block_sizes import find_free_memory
from headscope.capture.model.device_names import PROCESSOR
from headscope.capture.model.dispatched import is_dispatched
from headscope.capture.model.forward import is_out_of_memory
from headscope.capture.model.model import Model
from headscope.capture.passes.stream import Portion
from headscope.errors import ModelError, first_line

logger = logging.getLogger("headscope")

T = TypeVar("T")
R = TypeVar("R")

USED = 0.5
"""The share of the free memory of a GPU for which batches are planned. A batch that still does not fit is halved."""

ROWS = 512
"""The number of attention weights that memory is planned for, for each token and each head of a layer.

Long texts are read in blocks of rows.
"""


@dataclass(eq=False)
class Room:
    """The number of tokens that a model can read at once, as far as it is known; it is halved if a batch does not fit.

    Attributes:
        model: The model.
        tokens: The most tokens of a batch, padding included; None for any number, until a batch fails.
        is_shared: True if another batch runs at the same time. Then a batch that does not fit raises its error, since
            it may fit alone.
    """

    model: Model
    tokens: int | None = None
    is_shared: bool = False

    @classmethod
    def measure(cls, model: Model, batch_tokens: int | None, batches: int = 1) -> "Room":
        """Return the room of a model, estimated from the free memory of its fullest GPU.

        The room is unlimited if `batch_tokens` is given, or if the model is not on a GPU.

        Args:
            model: The model.
            batch_tokens: The tokens of a batch that the user chose; None for the number that fits.
            batches: The number of batches that run at the same time.
        """
        gpus = [device for device in model.devices if device.type == "cuda"]
        if batch_tokens is not None or not gpus:
            return cls(model)
        return cls(model, max(1, int(min(map(find_free_memory, gpus)) * USED / batches) // estimate_token_bytes(model)))

    def run(self, portion: Portion, run: Callable[[Portion], R]) -> Iterator[R]:
        """Call a function on a portion, or on each of its parts if the whole does not fit, and yield each result.

        The first part has the counts of skipped documents.

        Raises:
            ModelError: One text alone does not fit.
        """
        if not portion.batches:
            yield run(portion)
            return
        documents, length = portion.batches[0].documents, max(each.encoder.length for each in portion.batches)

        def run_rows(rows: Sequence[int]) -> R:
            part = portion if len(rows) == len(documents) else portion.select(rows)
            return run(part if rows[0] == 0 else replace(part, skipped={}))

        yield from self.run_items(range(len(documents)), length, run_rows, lambda row: repr(documents[row].id))

    def run_items(
        self, items: Sequence[T], length: int, run: Callable[[Sequence[T]], R], name: Callable[[T], str]
    ) -> Iterator[R]:
        """Call a function on all texts, or on parts if they do not fit together, and yield each result in order.

        Texts of a failed call run again in parts, so `run` must keep nothing of a call that fails.

        Args:
            items: The texts, at least one.
            length: The number of tokens of the longest text, to which the others are padded.
            run: The function; it is called with consecutive texts.
            name: Returns the name of a text, for the error.

        Raises:
            ModelError: One text alone does not fit.
        """
        waiting = [items]
        while waiting:
            part = waiting.pop()
            count = self.count(len(part), length)
            if len(part) > count:
                waiting += [part[count:], part[:count]]
                continue
            try:
                result = run(part)
            except Exception as error:
                self.shrink(len(part), length, name(part[0]), error)
                waiting.append(part)
            else:
                yield result
                continue
            self.clear()

    def count(self, texts: int, length: int) -> int:
        """Return the number of texts to run at once, with all of them padded to `length`."""
        return texts if self.tokens is None else min(texts, max(1, self.tokens // length))

    def clear(self) -> None:
        """Free the memory of a failed pass; call it when the error, which held the memory, is gone."""
        if any(device.type == "cuda" for device in self.model.devices):
            torch.cuda.empty_cache()

    def shrink(self, count: int, length: int, name: str, error: Exception) -> None:
        """Halve the room after a pass has failed, and log it.

        Args:
            count: The number of texts of the pass.
            length: The number of tokens of the longest text.
            name: The name of the first text, for the error.
            error: The error of the pass.

        Raises:
            ModelError: The pass had a single text, and it did not fit.
            Exception: `error` itself, if it is not about memory, or if the room is shared.
        """
        if self.is_shared or not is_out_of_memory(error):
            raise error
        reason = first_line(error if error.__cause__ is None else error.__cause__)
        if count == 1:
            raise ModelError(
                f"the text {name} of {length:,} tokens alone needs more memory than there is ({reason}); "
                f"{advise_on_memory(self.model)}."
            ) from error
        self.tokens = count // 2 * length
        logger.warning(
            "%s: a batch of %s tokens does not fit into memory (%s); from here on batches have %s tokens at most.",
            self.model.name, f"{count * length:,}", reason, f"{self.tokens:,}",
        )  # fmt: skip


def advise_on_memory(model: Model) -> str:
    """Return advice, as part of a sentence, for a text that does not fit into memory."""
    ways = ["lower `max_tokens`"]
    if model.module.dtype == torch.float32:
        ways.append("set `dtype` to bfloat16")
    if is_dispatched(model.module):
        ways.append("load it with a device_map that leaves more memory free")
    elif model.device.type != PROCESSOR:
        ways.append("set `device` to cpu")
    return " or ".join(filter(None, (", ".join(ways[:-1]), ways[-1])))


def estimate_token_bytes(model: Model) -> int:
    """Estimate the bytes of memory that a token of a batch takes while a model is observed; rather too many."""
    config = model.module.config.get_text_config()
    hidden = getattr(config, "hidden_size", 0) or 1024
    inner = getattr(config, "intermediate_size", None) or 4 * hidden
    logits = config.vocab_size if model.module is not model.module.base_model else 0
    weights = ROWS * max(model.shape.heads.values())
    size: int = model.module.dtype.itemsize
    return size * (8 * hidden + 3 * inner) + 4 * (4 * weights + 2 * logits)
