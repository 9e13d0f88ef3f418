"""Heads far out of their layer carry their name: which these are, by another's quartiles, and where the names stand."""

from itertools import combinations

import matplotlib.cbook
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Annotation

from headscope.view.figures import draw_layers
from headscope.view.figures.draw_outliers import measure_distances
from view.tables import head_table


def names(axes: Axes) -> list[Annotation]:
    return [text for text in axes.texts if isinstance(text, Annotation) and text.get_gid() == "outlier"]


def test_far_out_is_what_lies_beyond_the_outer_fences_of_tukey() -> None:
    values = head_table(23, 11)["mass_self"] ** 3
    values[3] = np.nan
    values[5, 2:] = np.nan
    distances = measure_distances(values).values
    for layer, (heads, beyond) in enumerate(zip(values.values, distances, strict=True)):
        present = heads[np.isfinite(heads)]
        if not len(present):
            assert not beyond.any()
            continue
        # The fliers of a box plot with whiskers of three quartile distances.
        (box,) = matplotlib.cbook.boxplot_stats(present, whis=3.0)
        assert set(heads[beyond > 0]) == set(box["fliers"]), layer
        high = heads > box["q3"]
        expected = np.where(high, heads - box["q3"], box["q1"] - heads)
        np.testing.assert_allclose(beyond[beyond > 0], expected[beyond > 0])
    assert 3 < (distances > 0).sum() < values.size / 5


def test_the_head_that_is_alone_is_named_beside_its_point() -> None:
    table = head_table()
    for variable in ("mass_self", "mass_previous", "mass_next"):
        table[variable] = table[variable] * 0 + 0.1 + 0.001 * table["head"]
    table["mass_next"].loc[{"layer": 4, "head": 6}] = 0.9
    (axes,) = draw_layers.draw_offsets(table).axes
    (name,) = names(axes)
    assert (name.get_text(), name.xy[1]) == ("4-6", 0.9)
    assert round(name.xy[0]) == 4


def test_a_head_that_nobody_sees_apart_is_not_named() -> None:
    table = head_table()
    table["mean_distance"] = 10 + 0.001 * table["head"] + 0 * table["layer"]
    table["mean_distance"].loc[{"layer": 4, "head": 6}] = 10.5  # by its layer far out, on an axis from 0 on not at all
    assert measure_distances(table["mean_distance"]).sel(layer=4, head=6) > 0
    assert not names(draw_layers.draw_distances(table).axes[0])


@pytest.mark.parametrize(
    "draw", [draw_layers.draw_special_tokens, draw_layers.draw_offsets, draw_layers.draw_entropies]
)
@pytest.mark.parametrize(("count", "width"), [(5, 7), (24, 16)])
def test_no_name_covers_a_point_or_another_name(draw, count: int, width: int) -> None:
    figure: Figure = draw(head_table(count, width, seed=3))
    figure.draw_without_rendering()
    for axes in figure.axes:
        boxes = [name.get_window_extent() for name in names(axes)]
        assert not [pair for pair in combinations(boxes, 2) if pair[0].overlaps(pair[1])]
        points = np.concatenate([axes.transData.transform(np.asarray(some.get_offsets())) for some in axes.collections])
        for box in boxes:
            assert not ((points > box.min) & (points < box.max)).all(axis=1).any()
            assert axes.bbox.contains(*box.min)
            assert axes.bbox.contains(*box.max)
    if draw is draw_layers.draw_special_tokens:
        assert sum(len(names(axes)) for axes in figure.axes) > 1
