"""The map of heads and the tree in which they join, as drawn."""

import numpy as np
import pytest
import xarray as xr

import headscope
import tiny
from headscope.analyse.behaviour import name_behaviours
from headscope.capture.model.model import Model
from headscope.errors import TableError
from headscope.runner import measure
from headscope.view.figures import draw_head_map

DOCUMENTS = tiny.documents(11)


def tabulate(family: str) -> xr.Dataset:
    model = Model.from_module(*tiny.make(family), name=family)
    table = headscope.analyse.add_head_map(measure(model, DOCUMENTS, ["surface", "head_distances"]))
    return headscope.analyse.add_behaviours(table, share=0.2, breadth=0.99)


@pytest.fixture(scope="module")
def table() -> xr.Dataset:
    return tabulate("bert")


def points(axes) -> dict[str, np.ndarray]:
    return {drawn.get_gid(): np.asarray(drawn.get_offsets()) for drawn in axes.collections}


def test_each_head_stands_at_its_place_on_both_sides(table: xr.Dataset) -> None:
    figure = draw_head_map.draw_head_map(table)
    left, right = (points(axes) for axes in figure.axes[:2])
    places = np.stack([table["head_map_x"].values.ravel(), table["head_map_y"].values.ravel()], axis=-1)
    np.testing.assert_array_equal(right["heads by layer"], places)
    behaviours = name_behaviours(table).values.ravel()
    assert len(set(behaviours) - {""}) > 1
    for behaviour in set(behaviours):
        np.testing.assert_array_equal(left[f"heads: {behaviour or 'none of these'}"], places[behaviours == behaviour])
    names = [text.get_text() for text in figure.axes[0].texts]
    assert len(names) == (behaviours != "").sum()
    assert "stress" in figure.get_supxlabel()


def test_each_attention_type_has_its_panels() -> None:
    figure = draw_head_map.draw_head_map(tabulate("bart"))
    shown = [len(points(axes)["heads by layer"]) for axes in figure.axes[1:6:2]]
    assert shown == [10, 15, 15]
    titles = [axes.get_title(loc="left") for axes in draw_head_map.draw_head_tree(tabulate("bart")).axes]
    assert titles == ["encoder", "decoder", "cross"]


def test_the_tree_has_a_leaf_for_each_head_and_joins_at_the_distances(table: xr.Dataset) -> None:
    (axes,) = draw_head_map.draw_head_tree(table).axes
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert sorted(labels) == sorted(f"{layer}-{head}" for layer in (1, 2) for head in range(1, 6))
    joined = [segment[:, 0].max() for segment in axes.collections[0].get_segments()]
    np.testing.assert_allclose(sorted(joined), table["cluster_merge"].sel(merge="distance"))
    clusters = table["cluster"].values
    colours = {label.get_text(): label.get_color() for label in axes.get_yticklabels()}
    first = [colours[f"1-{head}"] for head in range(1, 6)]
    assert [[a == b for b in first] for a in first] == [[a == b for b in clusters[0]] for a in clusters[0]]


def test_a_large_tree_is_cut(table: xr.Dataset, monkeypatch) -> None:
    monkeypatch.setattr(draw_head_map, "MOST_LEAVES", 5)
    (axes,) = draw_head_map.draw_head_tree(table).axes
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert len(labels) == 5
    assert any(label.startswith("(") for label in labels)


def test_without_a_map_nothing_is_drawn(table: xr.Dataset) -> None:
    with pytest.raises(TableError) as refused:
        draw_head_map.draw_head_map(table.drop_vars("behaviour"))
    assert str(refused.value) == "the head table has no behaviour; add it by headscope.analyse.add_behaviours first."
    with pytest.raises(TableError) as refused:
        draw_head_map.draw_head_tree(table.drop_vars("cluster_merge"))
    assert str(refused.value) == "the head table has no cluster_merge; add it by headscope.analyse.add_head_map first."
