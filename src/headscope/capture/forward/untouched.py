"""The untouched model, whose outputs are compared with the outputs under observation."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import torch
from jaxtyping import Float
from torch import Tensor

from headscope.capture.forward.installed import suspend_edits
from headscope.capture.forward.outputs import gather_outputs
from headscope.capture.forward.verify import are_finite, select_real, verify_unpadded
from headscope.capture.model.forward import refuse_run, run_model
from headscope.capture.model.model import Model
from headscope.capture.model.noise import measure_noise
from headscope.capture.model.turns import hold, list_configs
from headscope.capture.tokens.batch import Batch
from headscope.errors import HeadscopeError


def run_untouched(model: Model, batch: Batch) -> Float[Tensor, "batch ..."]:
    """Run the model on a batch without observing anything, and return its logits or last hidden state.

    Raises:
        ModelError: The model cannot be run on the batch.
    """
    try:
        with hold(list_configs(model.module)), torch.inference_mode():
            output = run_model(model, batch.inputs)
    except HeadscopeError:
        raise
    except Exception as error:
        raise refuse_run(model, error) from error
    return gather_outputs(output, {}, Counter(), {}, {}).verified


def is_finite(model: Model, batch: Batch) -> bool:
    """Return whether the model's outputs for all texts of a batch are finite.

    Raises:
        ModelError: The model cannot be run on the batch.
    """
    with suspend_edits():
        return bool(are_finite(batch, run_untouched(model, batch)).all())


def prepare_noise(model: Model, batch: Batch) -> Callable[[], float]:
    """Return a function that returns the rounding noise of a model on a batch; its first call measures the noise."""
    return cache(lambda: measure_noise(model.module, lambda: select_real(batch, run_untouched(model, batch))))


def verify_without_padding(model: Model, batch: Batch, untouched: Tensor, noise: Callable[[], float]) -> None:
    """Raise an error if the shortest text of a batch has other outputs in `untouched` than when it runs alone.

    Some families mix padding into the text. Nothing is checked if the shortest text has no padding.
    """
    row = int(batch.encoder.real.sum(1).argmin())
    alone = int(batch.encoder.real[row].sum())
    if alone == batch.encoder.length:
        return
    read_by_decoder = alone if batch.decoder is None else int(batch.decoder.real[row].sum())
    lengths = {
        name: read_by_decoder if name.startswith("decoder") else alone for name in batch.inputs if name != "labels"
    }
    inputs = {name: batch.inputs[name][row : row + 1, :length] for name, length in lengths.items()}
    (output,) = run_untouched(model, replace(batch, inputs=inputs))
    verify_unpadded(model, batch, untouched[row], output, noise)
