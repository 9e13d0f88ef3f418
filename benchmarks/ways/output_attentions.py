"""All attention matrices by `output_attentions=True`, then their statistics in torch."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from clock import mean_of, run
from matrix import statistics
from shapes import Text
from transformers import AutoModel, PreTrainedModel


def load(folder: Path) -> PreTrainedModel:
    """The model under the one implementation that returns its weights."""
    return AutoModel.from_pretrained(folder, attn_implementation="eager").eval()


def of_text(model: PreTrainedModel, text: Text) -> dict[str, np.ndarray]:
    """One forward pass, then the statistics of each layer."""
    attentions = model(input_ids=text.ids, use_cache=False, output_attentions=True).attentions
    return statistics((weights[0] for weights in attentions), text)


def measure(model: PreTrainedModel, texts: Sequence[Text]) -> dict[str, np.ndarray]:
    """The mean over the texts."""
    return mean_of(of_text(model, text) for text in texts)


if __name__ == "__main__":
    run(load, measure)
