"""Whether a head or a layer matters to a model: to an untrained one none does, and one that is planted does."""

import pytest
from scipy.stats import binom

from worlds.shares import LEVEL
from worlds.untrained import FAMILIES, list_needed, make, plant

MODELS = 2
"""Of each family; `benchmarks/verdicts.py` has a hundred."""


def test_nothing_matters_to_an_untrained_model() -> None:
    """Beside placebos of any direction, which turn the residual stream, both layers of this one would matter."""
    assert not any(list_needed(make("gpt2", 0), 0).values())


@pytest.mark.full
def test_hardly_anything_matters_to_untrained_models_of_all_families() -> None:
    needed = [list_needed(make(family, seed), seed) for family in FAMILIES for seed in range(MODELS)]
    for kind in ("head", "layer"):
        assert sum(bool(each[kind]) for each in needed) <= binom.ppf(0.99, len(needed), LEVEL)


@pytest.mark.full
def test_a_head_that_the_output_reads_matters_and_no_other_does() -> None:
    models, power, false = 3, 0, 0
    for seed in range(models):
        model = make("llama", seed)
        plant(model, seed)
        heads = list_needed(model, seed)["head"]
        power += "2-3" in heads
        false += heads not in ([], ["2-3"])
    assert power / models > 0.4
    assert false <= binom.ppf(0.999, models, LEVEL)
