"""The figures of sets of heads."""

import pytest
import xarray as xr
from matplotlib.legend import Legend

from headscope.view.figures.draw_head_sets import draw_two_scores

HEADS = [f"{layer}-{head}" for layer in range(1, 49) for head in range(1, 26)]


@pytest.mark.parametrize("count", [2, 111, 600])
def test_the_legend_of_two_scores_stands_above_the_panel_and_within_the_figure(count: int) -> None:
    score = {head: place / len(HEADS) for place, head in enumerate(HEADS)}
    sets = {"single-hop": HEADS[:count], "multi-hop": HEADS[count // 2 : count // 2 + count]}
    figure = draw_two_scores(
        xr.Dataset(attrs={"model": "some/model"}), score, score, sets, title="two scores", labels=("across", "up")
    )
    figure.draw_without_rendering()
    (legend,) = figure.findobj(Legend)
    assert [text.get_text() for text in legend.get_texts()] == [
        f"neither ({len(HEADS) - count - count // 2:d})", f"single-hop ({count // 2})",
        f"multi-hop ({count // 2})", f"both ({count - count // 2})",
    ]  # fmt: skip
    box = legend.get_window_extent()
    assert not box.overlaps(figure.axes[0].get_window_extent())
    assert figure.bbox.contains(*box.min)
    assert figure.bbox.contains(*box.max)
