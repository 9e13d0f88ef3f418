"""The hidden states of a model, layer by layer, computed without any observation."""

import torch
from jaxtyping import Float
from torch import Tensor

from headscope.capture.model.forward import run_model
from headscope.capture.model.model import Model
from headscope.capture.model.turns import hold, list_configs
from headscope.capture.tokens.batch import Batch
from headscope.errors import ModelError


def compute_hidden_states(model: Model, batch: Batch) -> list[Float[Tensor, "batch token width"]]:
    """Return the embeddings and the output of each layer of a model; for an encoder-decoder, of its encoder.

    Raises:
        ModelError: The model does not return its hidden states.
    """
    with hold(list_configs(model.module)), torch.inference_mode():
        output = run_model(model, batch.inputs, output_hidden_states=True)
    states = getattr(output, "encoder_hidden_states", None) or getattr(output, "hidden_states", None)
    size = batch.encoder.ids.shape
    if not states or any(state.shape[:2] != size for state in states):
        raise ModelError(
            f"{model.title} does not return its hidden states, which the structural probe reads; leave that probe out."
        )
    return [state.float() for state in states]
