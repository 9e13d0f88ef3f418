"""Figures follow the theme: greys are exchanged in the dark one, and what has a hue keeps it."""

import base64
import io

import pytest
from matplotlib.figure import Figure

from headscope.view.figures import save
from headscope.view.figures.draw_heatmaps import draw_score_heatmap
from headscope.view.page import render_page
from headscope.view.page.theme import follow_theme
from view.parsed import Browse
from view.tables import head_table

READ = """
  const picture = document.querySelector("figure img");
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 100;
  const paper = canvas.getContext("2d", { willReadFrequently: true });
  await picture.decode();
  paper.drawImage(picture, 0, 0, 100, 100);
  const at = (x, y) => [...paper.getImageData(x, y, 1, 1).data].slice(0, 3).join();
  document.body.dataset.seen = [at(2, 2), at(25, 50), at(75, 50)].join(" ");
"""
PICTURE = """<svg xmlns="http://www.w3.org/2000/svg" width="100" height="100">
<rect width="100" height="100" style="fill: #ffffff"/>
<rect y="30" width="50" height="40" style="fill: #000000"/>
<rect x="50" y="30" width="50" height="40" style="fill: #0072b2"/></svg>"""


@pytest.mark.parametrize(
    ("dark", "wanted"), [(False, "255,255,255 0,0,0 0,114,178"), (True, "20,23,27 230,233,237 0,114,178")]
)
def test_a_figure_is_as_dark_as_the_page(browse: Browse, dark: bool, wanted: str) -> None:
    parsed = browse(render_page(head_table(), figures={"One": PICTURE}), script=READ, dark=dark)
    assert parsed.find("body")[0][0]["data-seen"] == wanted


def test_the_cells_of_a_heatmap_keep_their_colours() -> None:
    cells = '<g id="QuadMesh_1"><path style="fill: #f7f7f7; stroke: #ffffff"/></g></svg>'
    themed = follow_theme(f"<svg>{cells}")
    assert '[style*="fill: #f7f7f7"]:not([id^=QuadMesh] *){fill:#' in themed
    assert '[style*="stroke: #ffffff"]{stroke:#14171b!important}' in themed
    assert themed.startswith("<svg>" + cells.removesuffix("</svg>"))


def test_every_grey_of_our_figures_is_exchanged(tmp_path) -> None:
    figure = draw_score_heatmap(head_table(), "relation_accuracy", "obj")
    svg = next(path for path in save(figure, tmp_path, "one") if path.suffix == ".svg").read_text()
    themed = follow_theme(svg)
    for grey in ("#262626", "#737373"):
        assert f'[style*="fill: {grey}"]' in themed
    assert "@media (prefers-color-scheme: dark)" in themed
    assert follow_theme("<svg><path style='fill: #0072b2'/></svg>") == "<svg><path style='fill: #0072b2'/></svg>"


def test_black_text_of_matplotlib_has_no_colour_of_its_own_and_is_exchanged_too() -> None:
    figure, file = Figure(), io.StringIO()
    figure.text(0.5, 0.5, "black", color="black")
    figure.savefig(file, format="svg")
    assert 'text:not([style*="fill:"]){fill:#e6e9ed}' in follow_theme(file.getvalue().replace("<path", "<text/><path"))


def test_what_stands_in_the_page_is_the_figure_that_follows_the_theme() -> None:
    code = base64.b64encode(follow_theme(PICTURE).encode()).decode()
    assert f"data:image/svg+xml;base64,{code}" in render_page(head_table(), figures={"One": PICTURE})
