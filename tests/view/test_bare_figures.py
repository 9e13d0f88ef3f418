"""Figures without their words, for papers: what is left out, and that the rest stays as it was."""

import io
import re
from pathlib import Path

import pytest
from matplotlib.image import imread

import headscope
from headscope.view import figures
from headscope.view.figures import draw_layers
from headscope.view.figures.draw_heatmaps import draw_score_heatmap
from headscope.view.figures.draw_lengths import draw_score_by_length
from headscope.view.figures.draw_reported import draw_reported_heads
from view.tables import head_table

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "paper-figures.md"

DRAW = (draw_score_heatmap, draw_score_by_length, draw_reported_heads, draw_layers.draw_entropies)


def words(paths: list[Path]) -> list[str]:
    (svg,) = (path for path in paths if path.suffix == ".svg")
    return re.findall(r">([^<>\n]+)</text>", svg.read_text(encoding="utf-8"))


@pytest.mark.parametrize("draw", DRAW)
def test_title_and_caption_are_left_out_and_all_else_is_there(draw, tmp_path) -> None:
    figure = draw(head_table())
    around = [*figure.get_suptitle().split("\n"), *figure.get_supxlabel().split("\n")]
    whole, bare = (words(figures.save(figure, tmp_path / str(bare), "it", bare=bare)) for bare in (False, True))
    assert set(around) <= set(whole)
    assert sorted([*bare, *around]) == sorted(whole)


@pytest.mark.full
@pytest.mark.parametrize("draw", DRAW)
def test_the_panels_keep_their_size_and_the_figure_its_words(draw, tmp_path) -> None:
    figure, fresh = draw(head_table()), draw(head_table())
    title, height = figure.get_suptitle(), figure.get_figheight()
    sizes = []
    for bare in (False, True):
        png = figures.save(figure, tmp_path, "it", bare=bare)[0]
        inches = imread(png).shape[0] / 150
        sizes.append([axes.get_window_extent().height / figure.bbox.height * inches for axes in figure.axes])
    assert sizes[1] == pytest.approx(sizes[0], abs=0.05)
    assert (figure.get_suptitle(), figure.get_figheight()) == (title, height)
    after, before = io.StringIO(), io.StringIO()
    for drawn, file in ((figure, after), (fresh, before)):
        drawn.savefig(file, format="svg")
    assert re.findall(r">([^<>]+)</text>", after.getvalue()) == re.findall(r">([^<>]+)</text>", before.getvalue())


def test_the_python_of_the_page_runs(monkeypatch, tmp_path, capsys) -> None:
    headscope.write_table(head_table(), tmp_path / "ewt" / "heads.nc")
    monkeypatch.chdir(tmp_path)
    (program,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    exec(program, {})
    stems, suffixes = ("relations", "offsets", "objects"), ("png", "svg", "pdf")
    assert {path.name for path in Path("paper").iterdir()} == {f"{stem}.{s}" for stem in stems for s in suffixes}
    assert capsys.readouterr().out.startswith("object → its verb (obj) · 2,477 links\n")
