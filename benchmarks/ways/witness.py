"""Not a way but what all are held to: model and statistics in float64, each by its definition, in numpy.

It shares no line with any way beyond the text, and is slow: for short texts.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from clock import mean_of, run
from shapes import Text
from transformers import AutoModel, PreTrainedModel


def load(folder: Path) -> PreTrainedModel:
    """The model in float64; of its attention only the softmax is taken in float32, by transformers, for a Llama."""
    return AutoModel.from_pretrained(folder, attn_implementation="eager").double().eval()


def of_text(model: PreTrainedModel, text: Text) -> dict[str, np.ndarray]:
    """One forward pass, then the statistics of each head by itself."""
    attentions = model(input_ids=text.ids, use_cache=False, output_attentions=True).attentions
    heads = [[of_head(head.double().numpy(), text) for head in layer[0]] for layer in attentions]
    return {name: np.array([[head[name] for head in layer] for layer in heads]) for name in heads[0][0]}


def of_head(weights: np.ndarray, text: Text) -> dict[str, float | list[float]]:
    """Every statistic of one matrix, axes query and key."""
    length = len(weights)
    cls, sep, punctuation = text.cls.numpy(), text.sep.numpy(), text.punctuation.numpy()
    mass_sep = weights[:, sep].sum(1)
    positive = np.where(weights > 0, weights, 1)
    entropy = -(positive * np.log(positive)).sum(1)
    by_distance = {distance: np.trace(weights, distance) for distance in range(1 - length, length)}
    allowed = [query + 1 if text.causal else length for query in range(length)]
    edges = [2**power for power in range(13)]
    after = [_between(by_distance, edge, 2 * edge if edge < edges[-1] else length) for edge in edges]
    before = [_between(by_distance, 1 - 2 * edge if edge < edges[-1] else -length, 1 - edge) for edge in edges]
    return {
        "mass_self": by_distance[0] / length,
        "mass_previous": by_distance[-1] / (length - 1),
        "mass_next": by_distance[1] / (length - 1),
        "mass_cls": weights[:, cls].sum(1).mean() if cls.any() else np.nan,
        "mass_sep": mass_sep.mean() if sep.any() else np.nan,
        "mass_sep_from_sep": mass_sep[sep].mean() if sep.any() else np.nan,
        "mass_sep_from_other": mass_sep[~sep].mean() if sep.any() else np.nan,
        "mass_punctuation": weights[:, punctuation].sum(1).mean(),
        "mass_first": weights[:, 0].mean(),
        "entropy": entropy.mean(),
        "entropy_from_cls": entropy[cls].mean() if cls.any() else np.nan,
        "entropy_uniform": np.log(allowed).mean(),
        "mean_distance": sum(abs(distance) * mass for distance, mass in by_distance.items()) / length,
        "mass_distance": [mass / length for mass in (*before[::-1], by_distance[0], *after)],
    }


def _between(by_distance: dict[int, float], first: int, end: int) -> float:
    return sum((mass for distance, mass in by_distance.items() if first <= distance < end), 0.0)


def measure(model: PreTrainedModel, texts: Sequence[Text]) -> dict[str, np.ndarray]:
    """The mean over the texts."""
    return mean_of(of_text(model, text) for text in texts)


if __name__ == "__main__":
    run(load, measure)
