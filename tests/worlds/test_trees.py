"""The sentence on the structural probe names the layer that has the trees."""

from pathlib import Path

import pytest

from worlds.trees import BEST, SIZE, finds_trees, read_sentence


@pytest.mark.full
def test_the_layer_whose_hidden_states_have_the_trees_is_named(tmp_path: Path) -> None:
    layer, lower, _ = sentence = read_sentence(tmp_path, 0, size=2 * SIZE)
    assert layer == BEST
    assert lower > 0.4
    assert finds_trees(sentence)
