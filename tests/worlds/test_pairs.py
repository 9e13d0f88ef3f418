"""Minimal pairs of an untrained decoder: what is said to suffer without random heads, and without those that matter."""

from pathlib import Path

import pytest
from scipy.stats import binom

from worlds.pairs import SETS, list_suffering
from worlds.shares import LEVEL


@pytest.mark.full
def test_hardly_ever_does_anything_suffer_without_random_heads(tmp_path: Path) -> None:
    worlds = 8
    false = sum(bool(list_suffering(tmp_path, seed)) for seed in range(worlds))
    assert false <= binom.ppf(0.99, worlds, LEVEL)


def test_something_suffers_without_the_heads_that_the_output_reads_and_nothing_without_others(tmp_path: Path) -> None:
    assert list_suffering(tmp_path, 1, planted=True) == {SETS[0]}
