"""A head to which an adapter gives a rule is found beside placebo adapters; of a placebo in its place, hardly any."""

import pytest
from scipy.stats import binom

from worlds.adapters import HEAD, LAYER, PLACEBOS, judge_world

# PEFT asks transformers for what that has renamed.
pytestmark = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")

WORLDS = 20
"""Of each kind; `benchmarks/verdicts.py` has a hundred."""


@pytest.mark.parametrize("worlds", [1, pytest.param(WORLDS, marks=pytest.mark.full)])
def test_a_planted_adapter_is_found_and_a_placebo_is_not(worlds: int) -> None:
    judged = [judge_world(seed) for seed in range(worlds)]
    found = sum(f"{LAYER}-{HEAD}" in real for real, _ in judged)
    others = sum(bool(real - {f"{LAYER}-{HEAD}"}) for real, _ in judged)
    false = sum(bool(placebo) for _, placebo in judged)
    assert found >= 0.95 * worlds
    assert max(others, false) <= binom.ppf(0.999, worlds, 1 / (PLACEBOS + 1))
