"""nnsight: each layer's attention weights inside a trace, where their statistics are taken in torch and saved.

Saving the statistics and not the weights is what nnsight is for: only one layer's weights exist at a time.
"""

import warnings
from collections.abc import Sequence
from pathlib import Path

import nnsight
import numpy as np
from clock import mean_of, run
from matrix import of_layer
from shapes import Text
from transformers import AutoModel


def load(folder: Path) -> nnsight.NNsight:
    """The model under the one implementation that makes weights, inside nnsight's wrapper."""
    with warnings.catch_warnings():
        # BERT has parts that are called `output`, a name that nnsight has taken.
        warnings.filterwarnings("ignore", message=".*submodule named 'output'.*")
        return nnsight.NNsight(AutoModel.from_pretrained(folder, attn_implementation="eager").eval())


def of_text(model: nnsight.NNsight, text: Text) -> dict[str, np.ndarray]:
    """One traced forward pass."""
    if model.config.model_type == "bert":
        attentions = [layer.attention.self for layer in model.encoder.layer]
    else:
        attentions = [layer.self_attn for layer in model.layers]
    with model.trace(input_ids=text.ids, use_cache=False):
        by_layer = nnsight.save([])
        for attention in attentions:
            by_layer.append(of_layer(attention.output[1][0], text))
    return {name: np.stack([layer[name] for layer in by_layer]) for name in by_layer[0]}


def measure(model: nnsight.NNsight, texts: Sequence[Text]) -> dict[str, np.ndarray]:
    """The mean over the texts."""
    return mean_of(of_text(model, text) for text in texts)


if __name__ == "__main__":
    run(load, measure)
