"""Figures of runs beside the model before: the numbers read back from the artists."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from matplotlib.legend import Legend

from headscope.errors import TableError
from headscope.view.figures.draw_runs import (
    draw_class_heatmaps,
    draw_pairs,
    draw_similarity_heatmap,
    pair_classes,
    pair_comparisons,
)
from view.comparisons import comparison, drawn, family

CLASSES = ("noun", "negation", "cls", "sep")
BY_CLASS = ("layer", "head", "token_class")
ATTENTION = {"variable": "token_class_attention"}


def similar(runs: int, *, control: bool = False):
    values = np.random.default_rng(runs).uniform(0.43, 0.97, (runs, 5, 7))
    return values, family(values, {"similarity": ("run", "layer", "head")}, units="1", control=control)


def classes(runs: int | None = None, *, control: bool = False):
    """Attention to classes, of which the corpus has no words of negation."""
    shape = (5, 7, len(CLASSES)) if runs is None else (runs, 5, 7, len(CLASSES))
    values = np.random.default_rng(runs).dirichlet(np.ones(len(CLASSES)), shape[:-1])
    values[..., 1] = np.nan
    dims = BY_CLASS if runs is None else ("run", *BY_CLASS)
    named = {"token_class_attention": dims}
    coords = {"token_class": list(CLASSES)}
    return values, family(values, named, units="share of attention", coords=coords, control=control)


def shown(figure: Figure) -> list[QuadMesh]:
    panels = [axes for axes in figure.axes if axes.get_xlabel() == "head"]
    return [one for axes in panels for one in axes.collections if isinstance(one, QuadMesh)]


def test_similarity_of_each_head_beside_the_means_of_layers() -> None:
    (values, table), (others, control) = similar(3), similar(2, control=True)
    figure = draw_similarity_heatmap(table, control)
    least = min(values.mean(0).min(), others.mean(0).min())
    for mesh, of in zip(shown(figure), (values, others), strict=True):
        np.testing.assert_allclose(np.ma.getdata(mesh.get_array()), of.mean(0))
        assert mesh.norm.vmin <= least < mesh.norm.vmin + 0.1
        assert mesh.norm.vmax == 1
    sides = [axes for axes in figure.axes if axes.get_xlabel() == "mean of layer"]
    for side, of in zip(sides, (values, others), strict=True):
        (mean,) = [line for line in side.lines if line.get_gid() == "mean"]
        np.testing.assert_allclose(mean.get_xdata(), of.mean((0, 2)))
        assert mean.get_ydata().tolist() == [1, 2, 3, 4, 5]
        runs = [line.get_xdata() for line in side.lines if line.get_gid() == "run"]
        np.testing.assert_allclose(runs, of.mean(2))
        assert side.get_ylim() == (5.5, 0.5)  # as its neighbour, layer 1 at the top
    titles = [axes.get_title("left") for axes in figure.axes if axes.get_xlabel() == "head"]
    assert titles == ["negation, 3 runs", "control, 2 runs"]


def test_similarity_of_one_model_needs_no_runs() -> None:
    values, table = similar(1)
    figure = draw_similarity_heatmap(table.isel(run=0, drop=True))
    np.testing.assert_array_equal(np.ma.getdata(shown(figure)[0].get_array()), values[0])
    assert [line.get_gid() for axes in figure.axes for line in axes.lines] == ["mean"]


def test_attention_to_classes_before_after_and_its_change() -> None:
    (start, before), (ends, after) = classes(), classes(3)
    figure = draw_class_heatmaps(before, after, ("negation", "cls", "sep"), **ATTENTION)
    panels = iter(shown(figure))
    for place in (2, 3):  # the corpus has no words of negation
        mean = ends.mean(0)[..., place]
        for expected in (start[..., place], mean, mean - start[..., place]):
            np.testing.assert_allclose(np.ma.getdata(next(panels).get_array()), expected)
    assert next(panels, None) is None
    assert [axes.get_title("left") for axes in figure.axes if axes.get_xlabel() == "head"] == [
        f"to [{name}]: {when}" for name in ("CLS", "SEP") for when in ("before", "after", "change")
    ]
    most = max(start[..., 2:].max(), ends.mean(0)[..., 2:].max())
    levels = [mesh.norm for mesh in shown(figure) if not mesh.axes.get_title("left").endswith("change")]
    assert [(scale.vmin, scale.vmax) for scale in levels] == [(0, pytest.approx(most))] * 4


def test_pairs_of_classes_are_means_over_heads() -> None:
    (start, before), (ends, after), (others, control) = classes(), classes(3), classes(2, control=True)
    frame = pair_classes(before, after, control, **ATTENTION)
    assert list(dict.fromkeys(frame["entry"])) == ["noun", "[CLS]", "[SEP]"]
    assert len(frame) == 3 * (3 + 2)
    row = frame.set_index(["entry", "group", "run"]).loc[("[SEP]", "control", 2)]
    assert row.tolist() == pytest.approx([start[..., 3].mean(), others[1, ..., 3].mean()])
    last = (
        pair_classes(before, after, layer=5, **ATTENTION).set_index(["entry", "group", "run"]).loc[("noun", "task", 3)]
    )
    assert last.tolist() == pytest.approx([start[4, :, 0].mean(), ends[2, 4, :, 0].mean()])


def test_pairs_of_comparisons_are_of_the_best_the_average_or_a_named_head() -> None:
    before, afters = drawn(runs=(3, 2))
    changed = comparison(before, afters)
    best = np.unravel_index(before.argmax(), before.shape)
    expected = {
        "best": (f"F1, {best[0] + 1}-{best[1] + 1}", before.max(), [after[:, *best] for after in afters]),
        "average": ("F1", before.mean(), [after.mean((1, 2)) for after in afters]),
        "2-3": ("F1, 2-3", before[1, 2], [after[:, 1, 2] for after in afters]),
    }
    for of, (entry, start, ends) in expected.items():
        frame = pair_comparisons({"F1": changed}, of)
        assert set(frame["entry"]) == {entry}
        assert frame["before"].tolist() == pytest.approx([start] * 5)
        assert frame["after"].tolist() == pytest.approx(np.concatenate(ends).tolist())
        assert frame["group"].tolist() == ["task"] * 3 + ["control"] * 2


def test_each_run_is_a_thin_line_and_their_mean_a_thick_one() -> None:
    before, afters = drawn(runs=(3, 2))
    changed = comparison(before, afters)
    names = [f"entry {number}" for number in range(5)]
    figure = draw_pairs(
        pair_comparisons(dict.fromkeys(names, changed), "average"), changed, "means", units="share of words"
    )
    panels = [axes for axes in figure.axes if axes.get_title("left")]
    assert [axes.get_title("left") for axes in panels] == names
    for axes in panels:
        for group, after in zip(("task", "control"), afters, strict=True):
            runs = [line.get_ydata() for line in axes.lines if line.get_gid() == f"{group}-run"]
            np.testing.assert_allclose(runs, [[before.mean(), end] for end in after.mean((1, 2))])
            (mean,) = [line for line in axes.lines if line.get_gid() == f"{group}-mean"]
            np.testing.assert_allclose(mean.get_ydata(), [before.mean(), after.mean()])
            assert mean.get_linewidth() > 2 * axes.lines[0].get_linewidth()
    assert [axes.get_ylabel() for axes in panels[:2]] == ["share of words", ""]
    (legend,) = figure.findobj(Legend)
    assert [text.get_text() for text in legend.get_texts()] == ["negation, 3 runs", "control, 2 runs"]
    assert "each panel has its own scale" in figure.get_supxlabel()


def test_what_is_lacking_is_named() -> None:
    _, before = classes()
    _, table = similar(2)
    with pytest.raises(TableError) as refused:
        draw_similarity_heatmap(before)
    assert str(refused.value) == (
        "the head table has no similarity of the model before and the model after; measure it first."
    )
    for draw in (draw_class_heatmaps, pair_classes):
        with pytest.raises(TableError) as refused:
            draw(before, table, **ATTENTION)
        assert str(refused.value) == (
            "the head table has no token_class_attention; measure attention to classes of tokens first, on a corpus "
            "with parts of speech."
        )
    with pytest.raises(TableError) as refused:
        draw_class_heatmaps(before, classes(2)[1], ["negation"], **ATTENTION)
    assert str(refused.value) == "the corpus has no tokens of negation; name a class that it has."
    with pytest.raises(TableError) as refused:
        draw_pairs(pd.DataFrame(columns=["entry", "group", "run", "before", "after"]), before, "nothing")
    assert str(refused.value) == "no entry has values before and after tuning, so nothing can be drawn; give others."


def test_what_a_table_lacks_is_named() -> None:
    before, after = classes()[1], classes(2)[1]
    less = after.sel(token_class=["noun", "sep"])
    for draw in (draw_class_heatmaps, pair_classes):
        with pytest.raises(TableError) as refused:
            draw(before, less, **ATTENTION)
        assert str(refused.value) == (
            "the head table has no token_class 'cls'; it has noun, sep: measure the same classes in all tables."
        )
    assert (
        draw_class_heatmaps(before, less, ["sep", "adverb"], **ATTENTION).axes[0].get_title("left")
        == "to [SEP]: before"
    )
    with pytest.raises(TableError) as refused:
        pair_classes(before, after, layer=6, **ATTENTION)
    assert str(refused.value) == "there is no layer 6; the model has 5."
    with pytest.raises(TableError) as refused:
        draw_similarity_heatmap(similar(3)[1] * np.nan)
    assert str(refused.value) == (
        "no head has a value of similarity; measure the model after on texts that the model takes."
    )
    attention_types = similar(3)[1].expand_dims(attention_type=["encoder", "decoder"])
    with pytest.raises(TableError) as refused:
        draw_similarity_heatmap(attention_types)
    assert str(refused.value) == (
        "the head table has the attention types encoder, decoder, and this figure shows one; "
        "select one: table.sel(attention_type=...)."
    )
