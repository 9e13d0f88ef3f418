"""The layer in which a structural probe finds most: it is said to find no more than it does."""

import numpy as np
import pytest
from scipy.stats import binom

from headscope.analyse.probes import score_best_layer
from worlds.layers import BEST, FOUND, LAYERS, draw_table, is_above


@pytest.mark.parametrize("same", [False, True])
def test_the_interval_of_the_best_layer_is_hardly_ever_above_the_truth(same: bool) -> None:
    draw, worlds = np.random.default_rng(int(same)), 150
    above = sum(is_above(draw_table(draw, same=same)) for _ in range(worlds))
    assert above <= binom.ppf(0.99, worlds, 0.025)


def test_on_the_texts_on_which_it_is_the_best_a_layer_looks_better_than_it_is() -> None:
    draw = np.random.default_rng(3)
    tables = [draw_table(draw) for _ in range(50)]
    shares = np.array(
        [(table["structural_found"].sum("fold") / table["structural_links"].sum("fold")) for table in tables]
    )
    assert shares.shape == (50, LAYERS)
    assert shares.max(1).mean() > FOUND + 0.01
    assert np.mean([score_best_layer(table)[1] for table in tables]) == pytest.approx(FOUND, abs=0.01)


def test_a_layer_that_finds_more_is_named() -> None:
    draw = np.random.default_rng(2)
    assert sum(score_best_layer(draw_table(draw, gain=0.1))[0] == BEST for _ in range(20)) >= 18


def test_of_a_single_fold_with_links_no_interval_is_known() -> None:
    table = draw_table(np.random.default_rng(5), gain=0.3)
    table = table.where(table["fold"] == 7, 0)
    layer, share, lower, upper = score_best_layer(table)
    assert layer == BEST
    assert share == pytest.approx(float(table["structural_found"][BEST, 7] / table["structural_links"][7]))
    assert np.isnan([lower, upper]).all()
