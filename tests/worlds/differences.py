"""Two tables of the same texts: what heads of one model and of another get right, as often or not."""

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

from analyse.tables import ATTRIBUTES
from headscope import heads
from headscope.analyse.paired import HIGHER, LOWER, compare_score
from headscope.reducers.relations import ACCURACY
from headscope.score import write_scores

LAYERS, HEADS, FOLDS = 6, 12, 64
ROWS = ("nsubj", "obj", "det", "amod", "case")
SHAPE = (LAYERS, HEADS, len(ROWS))

OUTCOMES: Mapping[str, Sequence[Sequence[float]]] = {
    "as often": [[0.3, 0.15, 0.15, 0.4]], "hardly ever wrong": [[0.9, 0.03, 0.03, 0.04]],
    "hardly ever right": [[0.02, 0.03, 0.03, 0.92]], "hardly ever changed": [[0.485, 0.005, 0.005, 0.505]],
    "better in a tenth of the texts": [[0.3, 0.1, 0.13, 0.47]] * 9 + [[0.3, 0.28, 0.01, 0.41]],
}  # fmt: skip
"""Of items that both models get right, that only the second does, only the first, and neither: by kind of text, each as
frequent as another. No head is better in the one or the other over all texts."""

BETTER = np.array([0.3, 0.3, 0.1, 0.3])
"""The same of a planted head, which is right more often by a fifth."""

PLACE = 2, 4, 1
"""Of the planted head: layer, head and row, counted from 0."""


def draw_tables(
    draw: np.random.Generator, name: str, texts: int, items: float = 4, *, alike: float = 0.1, share: float = 0,
    planted: bool = False,
) -> tuple[xr.Dataset, xr.Dataset]:  # fmt: skip
    """Return a table of each model.

    Args:
        draw: of random numbers.
        name: of the outcomes.
        texts: in the folds by turns.
        items: of a text and row, in the mean; rows differ, and texts do.
        alike: the correlation between the items of a text.
        share: of the heads that do in all texts what another head does, so that all of these differ together.
        planted: a head of the second model is better.
    """
    mean = items * draw.lognormal(0, 1, (len(ROWS), 1)) * draw.lognormal(0, 0.5, (1, texts))
    counts = draw.poisson(mean)
    kinds = np.array(OUTCOMES[name])
    outcomes = kinds[draw.integers(len(kinds), size=(*SHAPE, texts))]
    if planted:
        outcomes[PLACE] = BETTER
    of_text = draw.gamma((1 / alike - 1) * outcomes) + 1e-12
    right = draw.multinomial(np.broadcast_to(counts, (*SHAPE, texts)), of_text / of_text.sum(-1, keepdims=True))
    copied = draw.random((LAYERS, HEADS)) < share
    right[copied] = right[0, 0]
    fold = np.eye(FOLDS)[draw.permutation(texts) % FOLDS]
    both, second, first = (right[..., kind] for kind in range(3))
    return make_table((both + first).astype(float) @ fold, counts @ fold), make_table(
        (both + second) @ fold, counts @ fold
    )


def make_table(right: np.ndarray, items: np.ndarray) -> xr.Dataset:
    """Return a head table of what heads get right in each fold."""
    totals = items.sum(-1)
    with np.errstate(invalid="ignore"):
        share = right.sum(-1) / totals
    by_head = ("layer", "head", "relation")
    values = {
        "relation_accuracy": (by_head, share), "relation_count": (by_head[2:], totals),
        "fold_correct": ((*by_head, "fold"), right), "fold_link": (("relation", "fold"), items),
    }  # fmt: skip
    return xr.Dataset(
        {
            name: heads.variable(data, dims, name=name, units="1", source="drawn")
            for name, (dims, data) in values.items()
        },
        {"layer": np.arange(1, LAYERS + 1), "head": np.arange(1, HEADS + 1), "relation": list(ROWS)},
        ATTRIBUTES | {"scores": write_scores([ACCURACY])},
    )


def find_differences(tables: tuple[xr.Dataset, xr.Dataset]) -> np.ndarray:
    """Return which heads and rows are said to differ."""
    verdicts = compare_score(*tables, ACCURACY)["verdict"].transpose("layer", "head", "relation")
    return np.isin(verdicts.values.astype(str), [HIGHER, LOWER])
