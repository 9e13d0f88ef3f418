"""Whether a head or a layer matters to a model: to an untrained one none does, and one that is planted does."""

import pytest
from scipy.stats import binom

from worlds.shares import LEVEL
from worlds.untrained import FAMILIES, list_needed, make, plant


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("models", [2, pytest.param(10, marks=pytest.mark.full)])
def test_nothing_matters_to_an_untrained_model(family: str, models: int) -> None:
    needed = [list_needed(make(family, seed), seed) for seed in range(models)]
    for kind in ("head", "layer"):
        assert sum(bool(each[kind]) for each in needed) <= binom.ppf(0.999, models, LEVEL)


@pytest.mark.full
def test_a_head_that_the_output_reads_matters_and_no_other_does() -> None:
    models, power, false = 12, 0, 0
    for seed in range(models):
        model = make("llama", seed)
        plant(model, seed)
        heads = list_needed(model, seed)["head"]
        power += "2-3" in heads
        false += heads not in ([], ["2-3"])
    assert power / models > 0.4
    assert false <= binom.ppf(0.999, models, LEVEL)
