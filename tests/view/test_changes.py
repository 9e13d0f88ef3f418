"""Figures of a comparison: the numbers read back from the artists, by the scores that the comparison was made of."""

import numpy as np
import pytest
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection, QuadMesh
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.text import Text

from headscope.errors import TableError
from headscope.view import figures
from headscope.view.figures.draw_changes import draw_baseline_scatter, draw_change_heatmaps, draw_layer_boxes
from view.comparisons import comparison, drawn, released

DRAW = (draw_change_heatmaps, draw_layer_boxes, draw_baseline_scatter)


def meshes(figure: Figure) -> list[QuadMesh]:
    panels = [axes for axes in figure.axes if axes.get_xlabel() == "head"]
    return [one for axes in panels for one in axes.collections if isinstance(one, QuadMesh)]


def dots(axes: Axes, name: str) -> np.ndarray:
    found = [one for one in axes.collections if isinstance(one, PathCollection) and one.get_gid() == name]
    return np.concatenate([np.asarray(one.get_offsets()) for one in found]) if found else np.empty((0, 2))


def boxes(axes: Axes) -> list[PathPatch]:
    return [patch for patch in axes.patches if isinstance(patch, PathPatch)]


def writing(figure: Figure) -> list[Text]:
    """All text that is drawn: matplotlib makes the labels of ticks outside of an axis too, and does not draw them."""
    axis = [one for axes in figure.axes if axes.axison for one in (axes.xaxis, axes.yaxis)]
    ticks = [(one, tick) for one in axis for tick in one.get_major_ticks()]
    outside = set()
    for one, tick in ticks:
        low, high = sorted(one.get_view_interval())
        if not low <= tick.get_loc() <= high:
            outside |= {tick.label1, tick.label2}
    found = set(figure.findobj(Text)) - outside
    return [text for text in found if text.get_text().strip() and text.get_visible()]


def test_the_mean_change_of_each_head_on_one_scale_about_0() -> None:
    before, afters = drawn(runs=(7, 5))
    figure = draw_change_heatmaps(comparison(before, afters))
    shown = meshes(figure)
    means = [after.mean(0) - before for after in afters]
    for mesh, mean in zip(shown, means, strict=True):
        np.testing.assert_allclose(np.ma.getdata(mesh.get_array()), mean, atol=1e-12)
    most = max(np.abs(mean).max() for mean in means)
    assert [limit for mesh in shown for limit in (mesh.norm.vmin, mesh.norm.vmax)] == pytest.approx([-most, most] * 2)
    assert all(mesh.norm(0) == pytest.approx(0.5) for mesh in shown)
    panels = [axes for axes in figure.axes if axes.get_xlabel() == "head"]
    assert [axes.get_title("left") for axes in panels] == ["negation, 7 runs", "control, 5 runs"]
    assert panels[0].yaxis_inverted()  # layer 1 at the top, as in the other heatmaps


def test_heads_that_change_otherwise_than_with_the_control_are_marked() -> None:
    changed = comparison(*drawn(runs=(7, 5)))
    figure = draw_change_heatmaps(changed)
    low = np.argwhere((changed["q"] <= 0.05).values)
    assert 0 < len(low) < changed["q"].size
    panels = [axes for axes in figure.axes if axes.get_xlabel() == "head"]
    assert {tuple(place) for place in dots(panels[0], "marked")} == {(head + 1, layer + 1) for layer, head in low}
    assert len(dots(panels[1], "marked")) == 0
    lines = figure.get_suptitle().split("\n")
    assert lines == [
        "change of scope F1 by fine-tuning on negation",
        "tiny/bert",
        f"● q ≤ 0.05 (negation against control, rank-sum): {len(low)} of 35 heads",
        f"□ {changed.attrs['best_head']}, the best head before",
    ]
    layer, head = (int(part) for part in changed.attrs["best_head"].split("-"))
    for axes in panels:
        (outline,) = [patch for patch in axes.patches if patch.get_gid() == "best"]
        assert isinstance(outline, Rectangle)
        assert outline.get_xy() == (head - 0.5, layer - 0.5)


def test_without_a_control_there_is_one_panel_and_heads_that_change_at_all_are_marked() -> None:
    changed = comparison(*drawn(runs=(11,)))
    figure = draw_change_heatmaps(changed)
    (panel,) = [axes for axes in figure.axes if axes.get_xlabel() == "head"]
    assert len(dots(panel, "marked")) == int((changed["before_q"].sel(group="task") <= 0.05).sum()) > 0
    assert "(after against before, signed-rank)" in figure.get_suptitle()


@pytest.mark.parametrize(("runs", "least"), [((3, 3), "0.1"), ((1, 1), "1"), ((5,), "0.0625")])
def test_too_few_runs_to_mark_a_head_are_said_to_be_too_few(runs, least) -> None:
    figure = draw_change_heatmaps(comparison(*drawn(runs=runs)))
    told = f"no head can be marked: p is {least} at least with so few runs"
    assert told in figure.get_suptitle().replace("\n", " ")
    assert len(dots(figure.axes[0], "marked")) == 0


def test_a_head_without_a_value_is_hatched_and_the_figure_says_so() -> None:
    before, afters = drawn(runs=(3, 2))
    afters[0][1, 2, 3] = np.nan
    figure = draw_change_heatmaps(comparison(before, afters))
    for mesh in meshes(figure):
        assert np.argwhere(np.ma.getmaskarray(mesh.get_array())).tolist() == [[2, 3]]
        assert mesh.axes.patch.get_hatch()
    assert figure.get_suptitle().endswith("\n▨ no value")
    whole = draw_change_heatmaps(comparison(*drawn(runs=(3, 2))))
    assert not meshes(whole)[0].axes.patch.get_hatch()
    assert "▨" not in whole.get_suptitle()


def test_every_run_of_a_layer_is_a_dot_and_five_have_a_box() -> None:
    before, afters = drawn(runs=(5, 3))
    (axes,) = draw_layer_boxes(comparison(before, afters)).axes
    for group, after in zip(("task", "control"), afters, strict=True):
        for layer in range(5):
            found = dots(axes, f"{group}-{layer + 1}")
            np.testing.assert_allclose(found[:, 1], (after[:, layer] - before[layer]).mean(-1), atol=1e-12)
            assert (np.abs(found[:, 0] - (layer + 1)) < 0.5).all()
            assert (found[:, 0] < layer + 1).all() == (group == "task")
    found = boxes(axes)
    assert len(found) == 5  # those of the task: three runs of the control have none
    for layer, box in enumerate(found):
        ends = box.get_path().vertices[:, 1]
        quartiles = np.percentile((afters[0][:, layer] - before[layer]).mean(-1), [25, 75])
        assert [ends.min(), ends.max()] == pytest.approx(quartiles.tolist())
    (legend,) = axes.figure.findobj(Legend)
    assert [text.get_text() for text in legend.get_texts()][:3] == [
        "negation, 5 runs",
        "control, 3 runs",
        "quartiles and median",
    ]


def test_a_star_stands_above_layers_that_change_otherwise() -> None:
    changed = comparison(*drawn(runs=(7, 5)))
    (axes,) = draw_layer_boxes(changed).axes
    starred = [int(place) for place, _ in dots(axes, "starred")]
    assert starred == changed["layer"].values[(changed["layer_q"] <= 0.05).values].tolist()
    assert 0 < len(starred) < 5
    none = draw_layer_boxes(comparison(*drawn(runs=(3, 3))))
    assert len(dots(none.axes[0], "starred")) == 0
    assert "no layer has q ≤ 0.05 (negation against control, rank-sum)" in none.get_supxlabel().replace("\n", " ")


def test_before_and_change_of_each_head_with_both_taus() -> None:
    before, afters = drawn(runs=(3, 2))
    changed = comparison(before, afters)
    changed = changed.assign(
        baseline_tau_corrected=changed["baseline_tau_corrected"].copy(data=[[0.2, 0.3, 0.1], [0.4, 0.2, np.nan]])
    )
    figure = draw_baseline_scatter(changed)
    for axes, group, after in zip(figure.axes, ("task", "control"), afters, strict=True):
        expected = np.stack([before.ravel(), (after.mean(0) - before).ravel()], axis=1)
        np.testing.assert_allclose(dots(axes, group), expected, atol=1e-12)
    tau = changed["baseline_tau"].sel(group="task").mean().item()
    told = f"τ as published {tau:.2f} · corrected 0.20".replace("-", "−")
    assert figure.axes[0].get_title("left") == f"negation, 3 runs\n{told}"
    without = draw_baseline_scatter(comparison(before, afters)).axes[0].get_title("left")
    assert without.split("\n")[1] == told.partition(" · ")[0]


@pytest.mark.parametrize("draw", DRAW)
@pytest.mark.parametrize(("layers", "count_of_heads", "runs"), [(6, 12, (1,)), (24, 16, (2, 5))])
def test_no_writing_covers_other_writing(draw, layers, count_of_heads, runs) -> None:
    name = "an-organisation/bert-large-uncased-whole-word-masking-finetuned-on-a-corpus-with-a-long-name"
    figure = draw(comparison(*drawn(layers, count_of_heads, runs), model=name))
    figure.draw_without_rendering()
    extents = [text.get_window_extent().padded(-1) for text in writing(figure)]
    for place, one in enumerate(extents):
        for other in extents[place + 1 :]:
            assert not one.overlaps(other)
        assert figure.bbox.padded(2).contains(*one.min)
        assert figure.bbox.padded(2).contains(*one.max)


def test_the_same_comparison_gives_the_same_files(tmp_path) -> None:
    changed = comparison(*drawn(runs=(5, 2)))
    one, other = (figures.save(draw_layer_boxes(changed), tmp_path / name, "boxes") for name in ("one", "other"))
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in other]


@pytest.mark.parametrize("draw", DRAW)
def test_what_is_no_comparison_is_refused(draw) -> None:
    with pytest.raises(TableError) as refused:
        draw(xr.Dataset(attrs={"model": "tiny/bert"}))
    assert str(refused.value) == (
        "the table is not a comparison; `headscope compare` makes one of tables before and after."
    )


def test_several_stacks_are_refused() -> None:
    changed = comparison(*drawn()).expand_dims(attention_type=["encoder", "decoder"])
    with pytest.raises(
        TableError, match=r"^the comparison is of a model with the attention types encoder, decoder, and what "
    ):
        draw_change_heatmaps(changed)


@pytest.mark.data
def test_released_scores_gain_most_in_layers_6_to_10() -> None:
    """Zhao and Bethard 2020, section 5 and figures 4 and 5, of bert-base."""
    changed = released()
    (axes,) = draw_layer_boxes(changed).axes
    medians = [np.median(dots(axes, f"task-{layer}")[:, 1]) for layer in range(1, 13)]
    assert sorted(np.argsort(medians)[-5:] + 1) == [6, 7, 8, 9, 10]
    starred = {int(place) for place, _ in dots(axes, "starred")}
    assert {6, 7, 8, 9, 10} <= starred
    assert len(boxes(axes)) == 24
    task, control = (np.ma.getdata(mesh.get_array()) for mesh in meshes(draw_change_heatmaps(changed)))
    assert np.unravel_index(task.argmax(), task.shape)[0] + 1 in range(6, 11)
    assert task.max() > 1.5 * control.max()
