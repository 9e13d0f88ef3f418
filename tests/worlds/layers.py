"""Worlds of layers in which a structural probe finds links of trees: in all as many, or in one of them more."""

import numpy as np
import xarray as xr

from headscope.analyse.probes import score_best_layer

LAYERS, BEST, FOLDS = 13, 4, 64
FOUND, LINKS = 0.5, 40
"""The share of links that a layer finds, and the links of a fold in the mean."""

FREE = 0.2
"""The share of links that layers find apart from each other, where they find mostly the same."""


def draw_table(draw: np.random.Generator, *, gain: float = 0.0, same: bool = False) -> xr.Dataset:
    """What each layer finds in texts that differ; one may find more of them."""
    links = 1 + draw.poisson(LINKS * draw.lognormal(0, 0.5, FOLDS))
    share = draw.beta(19 * FOUND, 19 * (1 - FOUND), FOLDS) + gain * (np.arange(LAYERS) == BEST)[:, None]
    apart = np.round(links * (FREE if same else 1.0)).astype(int)
    found = draw.binomial(apart, share.clip(0, 1)) + draw.binomial(links - apart, share[0].clip(0, 1))
    return xr.Dataset({"structural_found": (("hidden_layer", "fold"), found), "structural_links": ("fold", links)})


def is_above(table: xr.Dataset) -> bool:
    """Whether the interval of the best layer is above what every layer finds."""
    return score_best_layer(table)[2] > FOUND
