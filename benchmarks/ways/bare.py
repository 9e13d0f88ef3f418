"""The limit: the bare model under the implementation that transformers chooses (SDPA), nothing looked at."""

from collections.abc import Sequence
from pathlib import Path

from clock import run
from shapes import Text
from transformers import AutoModel, PreTrainedModel


def load(folder: Path) -> PreTrainedModel:
    """The model as transformers loads it."""
    return AutoModel.from_pretrained(folder).eval()


def measure(model: PreTrainedModel, texts: Sequence[Text]) -> dict:
    """One forward pass for each text."""
    for text in texts:
        model(input_ids=text.ids, use_cache=False)
    return {}


if __name__ == "__main__":
    run(load, measure)
