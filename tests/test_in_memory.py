"""The scripts of the page about what one has in memory: each kind of model and corpus is measured."""

import os
import re
import subprocess
import sys
from contextlib import chdir
from pathlib import Path

import pandas as pd
import pytest

import headscope
import tiny

pytestmark = pytest.mark.full

PAGE = (Path(__file__).parents[1] / "docs" / "howto" / "in-memory.md").read_text(encoding="utf-8")
MEASURE, LOOK = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A folder with a tiny decoder in it."""
    folder = tmp_path_factory.mktemp("memory")
    tiny.save(folder / "my-model", "gpt2")
    return folder


def test_each_kind_of_model_and_corpus_is_measured(folder: Path) -> None:
    names: dict = {}
    with chdir(folder):
        exec(MEASURE, names)
    assert names["table"].attrs["corpus"] == "documents in memory"
    assert names["result"].table["relation_count"].sel(relation="reflexive").sum() == 1
    assert (folder / "atlas" / "atlas.html").exists()


def test_the_result_can_be_looked_at(folder: Path, capsys) -> None:
    names: dict = {"headscope": headscope}
    with chdir(folder):
        exec(LOOK, names)
    shown = capsys.readouterr().out
    assert shown.startswith("Corpus('grammar:60', grammar) 60 ('")
    assert f"Model('my-model', GPT2Model, 2 x 5 heads (decoder), cpu) {headscope.__version__}" in shown
    table, frame = names["table"], names["frame"]
    assert {"layer", "head", "relation", "direction", "relation_accuracy"} <= {*frame.columns}
    row = frame.iloc[17]
    place = {dim: row[dim] for dim in ("layer", "head", "relation", "direction")}
    assert row["relation_accuracy"] == table["relation_accuracy"].sel(place).item()
    assert len(frame) == table["relation_accuracy"].notnull().sum()
    assert len(names["heads"]) == table.sizes["layer"] * table.sizes["head"]
    assert names["head"].equals(table.sel(layer=1, head=3))
    assert list(names["entropy"].columns) == ["layer", "head", "entropy"]
    assert names["again"].equals(table)
    assert names["both"].attrs["model"] == "my-model"
    assert "corpus" not in names["both"].attrs
    assert [line.get_ydata().tolist() for line in names["lines"]] == [
        each["entropy"].mean("head").values.tolist() for each in (table, names["other"])
    ]
    assert isinstance(names["every"], pd.DataFrame)


def test_names_and_help_are_shown() -> None:
    assert {"Document", "Link", "Model", "Span", "atlas", "head", "load", "measure", "to_frame"} <= {*dir(headscope)}
    code = "import headscope; help(headscope.measure)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PAGER": "cat"}
    )
    assert done.stdout.startswith("Help on function measure in module headscope.commands.measure.request:")
    assert "reducers: What to measure" in done.stdout
