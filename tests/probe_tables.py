"""Tables of probes in which we chose what each probe gets right."""

import json
from collections.abc import Mapping

import numpy as np
import xarray as xr

from headscope.analyse.probes import COUNT, GAIN_OVER, RIGHT, add_probe_scores
from headscope.heads import variable

FOLDS, SEEDS, CHOICES = 64, 3, 31  # choices of a fold
SHARES = {
    "right-branching": 0.3, "words-and-distances": 0.6, "untrained-attention-and-words": 0.25, "attention": 0.55,
    "attention-and-words": 0.7,
}  # fmt: skip


STRUCTURAL = {
    "links_found": np.array([[10], [20], [25], [15]]).repeat(FOLDS, 1), "links": np.full(FOLDS, 31),
}  # fmt: skip
"""What the structural probe finds of each layer by fold, most on layer 2, and all links."""


def make_probes(
    shares: Mapping[str, float] = SHARES, seed: int = 0, structural: Mapping[str, np.ndarray] = STRUCTURAL, **attrs: str
) -> xr.Dataset:
    """The table of probes that get these shares of choices right, whichever choices."""
    random = np.random.default_rng(seed)
    right = np.stack([random.binomial(CHOICES, share, (SEEDS, 1, FOLDS)) for share in shares.values()], 1)
    sums = {
        RIGHT: (right / SEEDS, ("seed", "probe", "relation", "fold")),
        COUNT: (np.full((SEEDS, 1, FOLDS), CHOICES / SEEDS), ("seed", "relation", "fold")),
        "structural_found": (structural["links_found"], ("hidden_layer", "fold")),
        "structural_links": (structural["links"], ("fold",)),
    }
    variables = {
        name: variable(values, dims, name=name, units="choices", source="planted")
        for name, (values, dims) in sums.items()
    }
    layers = len(structural["links_found"])
    coords = {"probe": [*shares], "relation": ["obj"], "seed": [*range(SEEDS)], "hidden_layer": [*range(layers)]}
    table = xr.Dataset(variables, coords=coords).assign_coords(layer=[1, 2, 3], head=[1, 2])
    about = {
        "model": "planted", "weights_sha256": "", "corpus": "trees", "corpus_sha256": "", "documents": 7, "tokens": 70,
        "skipped": json.dumps({}), "call": "probe()", "links": "dependency", "test": "",
    }  # fmt: skip
    return add_probe_scores(table, GAIN_OVER).assign_attrs(about | attrs)
