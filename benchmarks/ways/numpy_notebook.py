"""All attention matrices by `output_attentions=True`, then their statistics in numpy, one matrix after the other.

In the manner of the notebook of Clark et al. 2019: what a token or an offset stands for is laid out once as an
array, and every head is multiplied with it. Two of its habits are left out, for they change the numbers: it adds a
little to every weight to avoid the logarithm of 0, and divides by two separators wherever there is one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from clock import mean_of, run
from shapes import Text
from transformers import AutoModel, PreTrainedModel


@dataclass(frozen=True, eq=False)
class Layout:
    """The facts of a text that are the same for every head.

    Attributes:
        columns: 1 on the keys that are cls, sep, punctuation, first; axes key, kind.
        offset: which diagonal each weight is on, counted from the lowest; axes query, key, flat.
        distance: of each diagonal, keys after the query being positive.
    """

    columns: np.ndarray
    offset: np.ndarray
    distance: np.ndarray

    @classmethod
    def from_text(cls, text: Text) -> "Layout":
        """The layout of a text."""
        place = np.arange(text.length)
        columns = np.stack([text.cls, text.sep, text.punctuation, place == 0], axis=-1).astype(np.float32)
        offset = (place - place[:, None] + text.length - 1).ravel()
        return cls(columns, offset, np.arange(1 - text.length, text.length))


def load(folder: Path) -> PreTrainedModel:
    """The model under the one implementation that returns its weights."""
    return AutoModel.from_pretrained(folder, attn_implementation="eager").eval()


def of_text(model: PreTrainedModel, text: Text) -> dict[str, np.ndarray]:
    """One forward pass, then the statistics of each head by itself."""
    attentions = model(input_ids=text.ids, use_cache=False, output_attentions=True).attentions
    layout = Layout.from_text(text)
    heads = [[of_head(head.numpy(), text, layout) for head in layer[0]] for layer in attentions]
    return {name: np.array([[head[name] for head in layer] for layer in heads]) for name in heads[0][0]}


def of_head(weights: np.ndarray, text: Text, layout: Layout) -> dict[str, float | np.ndarray]:
    """Every statistic of one matrix, axes query and key."""
    length, cls, sep = text.length, text.cls.numpy(), text.sep.numpy()
    mass_cls, mass_sep, mass_punctuation, mass_first = (weights @ layout.columns).T
    logarithms = np.log(weights, out=np.zeros_like(weights), where=weights > 0)
    entropy = -np.einsum("qk,qk->q", weights, logarithms)
    by_distance = np.bincount(layout.offset, weights.ravel())
    on = dict(zip(layout.distance.tolist(), by_distance.tolist(), strict=True))
    return {
        "mass_self": on[0] / length,
        "mass_previous": on[-1] / (length - 1),
        "mass_next": on[1] / (length - 1),
        "mass_cls": mass_cls.mean() if cls.any() else np.nan,
        "mass_sep": mass_sep.mean() if sep.any() else np.nan,
        "mass_sep_from_sep": mass_sep[sep].mean() if sep.any() else np.nan,
        "mass_sep_from_other": mass_sep[~sep].mean() if sep.any() else np.nan,
        "mass_punctuation": mass_punctuation.mean(),
        "mass_first": mass_first.mean(),
        "entropy": entropy.mean(),
        "entropy_from_cls": entropy[cls].mean() if cls.any() else np.nan,
        "entropy_uniform": np.log(text.allowed()).mean(),
        "mean_distance": by_distance @ np.abs(layout.distance) / length,
        "mass_distance": _buckets(by_distance, length) / length,
    }


def _buckets(by_distance: np.ndarray, length: int) -> np.ndarray:
    """From one sum a distance to one a power of two, either side: ..., -3 and -2, -1, 0, 1, 2 and 3, ..."""
    before, own, after = by_distance[length - 2 :: -1], by_distance[length - 1], by_distance[length:]
    starts = 2 ** np.arange(13) - 1
    there = starts[starts < length - 1]
    sums = np.zeros((2, len(starts)))
    for side, values in enumerate((before, after)):
        sums[side, : len(there)] = np.add.reduceat(values, there)
    return np.concatenate([sums[0, ::-1], [own], sums[1]])


def measure(model: PreTrainedModel, texts: Sequence[Text]) -> dict[str, np.ndarray]:
    """The mean over the texts."""
    return mean_of(of_text(model, text) for text in texts)


if __name__ == "__main__":
    run(load, measure)
