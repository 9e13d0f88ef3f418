"""The texts on which each seed trains, stops and tests, and what is done for a seed after it was killed."""

import numpy as np
import pytest

from headscope.learn import probe_training
from headscope.learn.probe import ATTENTION, RIGHT_BRANCHING, Fitting, run_steps, split
from headscope.learn.probe_data import PARTS
from probe_worlds import at_random, by_weights, make_data, make_vectors


def test_five_seeds_test_on_every_text_once(tmp_path) -> None:
    data = make_data(tmp_path, at_random, blocks=1)
    tested = []
    for seed in range(11):
        parts = split(data, seed)
        paths = [{block.maps.name for block in blocks} for blocks in (parts.train, parts.held_out, parts.test)]
        assert sum(map(len, paths)) == len(set().union(*paths)) == PARTS
        assert [len(names) for names in paths] == [14, 2, 4]
        tested.append(paths)
    assert len(set().union(*(test for _, _, test in tested[:5]))) == PARTS
    assert tested[0][2] == tested[5][2]
    assert tested[0][1] != tested[5][1]  # another seed, other texts to stop by


def test_texts_of_their_own_leave_all_others_for_training(tmp_path) -> None:
    data, test = (make_data(tmp_path / name, at_random, blocks=1) for name in ("train", "test"))
    held_out = []
    for seed in range(5):
        parts = split(data, seed, test)
        assert [block.maps.parent.name for block in parts.test] == ["test"] * PARTS
        assert (len(parts.train), len(parts.held_out)) == (18, 2)
        held_out.append({block.maps.name for block in parts.held_out})
    assert len(set().union(*held_out)) == 10


@pytest.mark.full
def test_steps_that_are_done_are_not_done_again(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(probe_training, "MAX_EPOCHS", 3)
    data = make_data(tmp_path, by_weights(np.ones((5, 2))), blocks=1)
    fitting = Fitting(split(data, 0), None, make_vectors(), 1, 0, "word")
    steps = fitting.steps(control=False, code_length=False, rank=None, layers=0)
    whole = dict(run_steps(steps, {}))
    kept = {name: whole[name] for name in (RIGHT_BRANCHING, ATTENTION)}
    rest = dict(run_steps(steps, kept))
    assert rest.keys() == whole.keys() - kept.keys()
    for name, sums in rest.items():
        for key, values in sums.items():
            np.testing.assert_array_equal(values, whole[name][key])
