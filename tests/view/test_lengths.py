"""Accuracy by length of link: the bars are the table's numbers."""

from itertools import combinations

import numpy as np
import pytest

from headscope.errors import TableError
from headscope.view.figures.draw_lengths import draw_score_by_length
from headscope.view.page.reported_heads import draw_parts
from headscope.view.reports import Part
from view.tables import head_table


@pytest.mark.parametrize("attention_types", [False, True])
def test_each_length_that_there_is_has_a_bar_as_high_as_the_accuracy(attention_types) -> None:
    table = head_table(attention_types=attention_types)
    figure = draw_score_by_length(table)
    panels = [axes for axes in figure.axes if axes.get_title("left")]
    assert [axes.get_title("left").split(" · ")[0] for axes in panels] == ["nsubj", "obj"]
    for axes, name in zip(panels, ["nsubj", "obj"], strict=True):
        row = table.sel(relation=name)
        dims = ["layer", "head", "direction", *(["attention_type"] if attention_types else [])]
        accuracy = row["length_accuracy"].sel({dim: row[f"reported_{dim}"].item() for dim in dims})
        there = row["length_count"].values > 0
        bars = [(bar.get_x() + 0.4, bar.get_height(), bar) for bar in axes.patches]
        grounds, heights, (offset,) = bars[:-1:2], bars[1:-1:2], bars[-1:]
        lengths = table["length"].values[there]
        np.testing.assert_allclose([place for place, _, _ in heights], lengths)
        np.testing.assert_allclose([place for place, _, _ in grounds], lengths)
        np.testing.assert_allclose([height for _, height, _ in heights], accuracy.values[there])
        few = [bar.get_alpha() < 1 for _, _, bar in heights]
        assert few == (row["length_count"].values[there] < 20).tolist()
        written = {text.get_position()[0]: text.get_text() for text in axes.texts if text.get_gid() == "count"}
        counts = row["length_count"].values[there].tolist()
        assert written == dict(zip(lengths.tolist(), map(str, counts), strict=True))
        assert offset[:2] == (pytest.approx(row["heldout_offset"].item()), 1)
    assert f"from {row['reported_direction'].item().split('_')[0]} · {row['length_count'].sum().item()} links" in (
        axes.get_title("left")
    )


def test_the_numbers_of_links_stand_above_their_bars_and_cover_nothing() -> None:
    table = head_table()
    table["length_count"] = table["length_count"] * 1009
    figure = draw_score_by_length(table)
    figure.draw_without_rendering()
    for axes in figure.axes:
        boxes = [text.get_window_extent() for text in axes.texts]
        assert boxes
        assert all(box.y0 > axes.transData.transform((0, 1))[1] and box.y1 < axes.bbox.y1 for box in boxes)
        assert not [(one, other) for one, other in combinations(boxes, 2) if one.overlaps(other)]


def test_no_more_than_twelve_relations_are_drawn() -> None:
    table = head_table(relations=[f"relation {number}" for number in range(17)], rare=["relation 3"])
    titles = [axes.get_title("left").split(" · ")[0] for axes in draw_score_by_length(table).axes]
    assert titles == [f"relation {number}" for number in (0, 1, 2, *range(4, 13))]


def test_without_accuracies_by_length_there_is_no_figure() -> None:
    with pytest.raises(TableError) as refused:
        draw_score_by_length(head_table().drop_vars("length_accuracy"))
    assert str(refused.value) == (
        "the head table has no reported heads with scores by length; measure a corpus with links and choose heads "
        "by add_report first."
    )


def test_the_bars_in_a_row_stand_apart_for_back_and_ahead() -> None:
    drawn = draw_parts((Part(-6, 31, 0.25), Part(-1, 7, 1.0), Part(1, 4211, 0.0)), -1)
    assert '<rect class="bar" x="0" y="14.0" width="7" height="4.0"/>' in drawn
    assert '<rect class="bar few" x="40" y="2.0" width="7" height="16.0"/>' in drawn
    assert '<rect class="bar" x="52" y="18.0" width="7" height="0.0"/>' in drawn
    assert drawn.count('class="ground"') == 3
    assert '<rect class="offset" x="40" y="20" width="7" height="3"/>' in drawn
    assert "<title>−6 and further: 0.25 of 31\n−1: 1.00 of 7\n+1: 0.00 of 4,211</title>" in drawn
    assert draw_parts((), -1) == "–"
