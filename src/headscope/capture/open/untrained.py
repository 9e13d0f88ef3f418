"""Models with untrained weights, as controls."""

import copy

import torch
from torch import nn

from headscope.capture.model.dispatched import hold_weights, place_alike
from headscope.capture.model.implementation import EDITED_PREFIX
from headscope.capture.model.model import Model
from headscope.capture.model.turns import list_configs
from headscope.capture.open.loading import Loadable, load
from headscope.first_guesses import explained


@explained
def untrained_model(model: Loadable, *, seed: int = 0, keep_embeddings: bool = False) -> Model:
    """Return a model of the same shape with untrained weights, as a control.

    Its scores come from the architecture and the tokenizer alone.

    >>> untrained = headscope.untrained_model("minilm", seed=1)
    >>> table = headscope.measure(untrained, ["The dog sees the old house."], "surface")

    Args:
        model: The model whose shape and tokenizer the untrained model has, as for `headscope.load`.
        seed: The seed of the random weights.
        keep_embeddings: Keep the trained embeddings of words and positions below the first layer (Clark et al. 2019,
            section 5). Then its scores may also come from the words of the text.

    Raises:
        ModelError: The model cannot be loaded, or is only saved queries, keys and values.
    """
    model = load(model)
    model.require_weights("the untrained model")
    config = copy.deepcopy(model.module.config)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        module = type(model.module)(config)
    module = module.to(model.module.dtype)
    for part in list_configs(module):
        if (chosen := part._attn_implementation or "").startswith(EDITED_PREFIX):  # if heads of the model are edited
            part._attn_implementation = chosen.removeprefix(EDITED_PREFIX)
    name = f"random weights (seed {seed}) of {model.name}"
    if keep_embeddings:
        trained = _list_embeddings(model.module)
        for place, embedding in _list_embeddings(module).items():
            with hold_weights(trained[place]):
                embedding.load_state_dict(trained[place].state_dict())
        name = f"random weights (seed {seed}) of {model.name}, with its embeddings"
    return Model.from_module(place_alike(module, model.module), model.tokenizer, name=name)


def _list_embeddings(module: nn.Module) -> dict[str, nn.Module]:
    """Return the embeddings below the first layer, by name; embeddings of layers are inside a ``ModuleList``."""
    inside = {part for each in module.modules() if isinstance(each, nn.ModuleList) for part in each.modules()}
    return {
        place: part for place, part in module.named_modules() if isinstance(part, nn.Embedding) and part not in inside
    }
