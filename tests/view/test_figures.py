"""The figures show the table's own numbers: read back from the artists, compared with the table."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection, QuadMesh
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from headscope.errors import HeadscopeError, TableError
from headscope.view import figures
from headscope.view.figures import draw_layers
from headscope.view.figures.draw_heatmaps import draw_score_heatmap
from view.tables import STACKS, head_table, with_verdicts


def panel_of(figure: Figure, variable: str, attention_type: str = "") -> Axes:
    """The axes that show a variable (for a attention type)."""
    found = [
        axes
        for axes in figure.axes
        if any(points.get_gid() == variable for points in axes.collections) and attention_type in axes.get_title("left")
    ]
    assert len(found) == 1
    return found[0]


def points(axes: Axes, variable: str) -> np.ndarray:
    """Layer and value of each head that is drawn, in any order."""
    (drawn,) = [one for one in axes.collections if isinstance(one, PathCollection) and one.get_gid() == variable]
    return np.array(sorted((round(float(x)), float(y)) for x, y in np.asarray(drawn.get_offsets())))


def expected(values: xr.DataArray) -> np.ndarray:
    """Layer and value of each head of the table."""
    rows = [
        (int(layer), float(values.sel(layer=layer, head=head))) for layer in values["layer"] for head in values["head"]
    ]
    return np.array(sorted(row for row in rows if np.isfinite(row[1])))


def line(axes: Axes, name: str) -> Line2D:
    (found,) = [one for one in axes.lines if one.get_gid() == name]
    return found


def heatmaps(figure: Figure) -> list[Axes]:
    return [axes for axes in figure.axes if axes.get_xlabel() == "head"]


def mesh(axes: Axes) -> QuadMesh:
    (found,) = [one for one in axes.collections if isinstance(one, QuadMesh)]
    return found


def outlined(axes: Axes) -> list[tuple[int, int]]:
    """Layer and head of each outlined cell."""
    outlines = [patch for patch in axes.patches if isinstance(patch, Rectangle) and patch.get_gid() == "outlined"]
    return [(round(outline.get_y() + 0.5), round(outline.get_x() + 0.5)) for outline in outlines]


def labels(figure: Figure) -> list[str]:
    return [text.get_text() for legend in figure.findobj(Legend) for text in legend.get_texts()]


def joined(text: str) -> str:
    """Lines of a title, which break where they must."""
    return " ".join(text.split())


SHOWN = [
    (
        draw_layers.draw_special_tokens,
        ["mass_cls", "mass_sep", "mass_punctuation", "mass_sep_from_sep", "mass_sep_from_other"],
    ),
    (draw_layers.draw_offsets, ["mass_self", "mass_previous", "mass_next"]),
    (draw_layers.draw_entropies, ["entropy", "entropy_from_cls"]),
    (draw_layers.draw_distances, ["mean_distance"]),
]


@pytest.mark.parametrize(("draw", "variables"), SHOWN)
def test_every_head_is_a_point_and_the_line_is_their_mean(draw, variables) -> None:
    table = head_table()
    figure = draw(table)
    for variable in variables:
        axes = panel_of(figure, variable)
        np.testing.assert_allclose(points(axes, variable), expected(table[variable]))
        means = [table[variable].sel(layer=layer).values.mean() for layer in range(1, 6)]
        np.testing.assert_allclose(np.asarray(line(axes, f"{variable}-mean").get_ydata()), means)


@pytest.mark.parametrize(("draw", "variables"), SHOWN)
def test_each_stack_has_its_own_column(draw, variables) -> None:
    table = head_table(attention_types=True)
    figure = draw(table)
    for variable in variables:
        for attention_type, depth in STACKS.items():
            drawn = points(panel_of(figure, variable, attention_type), variable)
            assert len(drawn) == depth * 7
            np.testing.assert_allclose(drawn, expected(table[variable].sel(attention_type=attention_type)))


def test_a_decoder_without_special_tokens_shows_its_first_token() -> None:
    table = head_table()
    for variable in ("mass_cls", "mass_sep", "mass_sep_from_sep", "mass_sep_from_other"):
        table[variable] = table[variable] * np.nan
    figure = draw_layers.draw_special_tokens(table)
    (axes,) = figure.axes
    assert labels(figure) == ["first token", "“.” and “,”"]
    np.testing.assert_allclose(points(axes, "mass_first"), expected(table["mass_first"]))


def test_a_model_with_cls_does_not_show_its_first_token_twice() -> None:
    shown = labels(draw_layers.draw_special_tokens(head_table()))
    assert shown == ["[CLS]", "[SEP]", "“.” and “,”", "from [SEP]", "from other tokens"]


@pytest.mark.parametrize("draw", [draw for draw, _ in SHOWN])
@pytest.mark.parametrize("attention_types", [False, True])
def test_legends_stand_above_all_panels_and_within_the_figure(draw, attention_types) -> None:
    figure = draw(head_table(attention_types=attention_types))
    figure.draw_without_rendering()
    for legend in figure.findobj(Legend):
        box = legend.get_window_extent()
        assert not [axes for axes in figure.axes if box.overlaps(axes.get_window_extent())]
        assert figure.bbox.contains(*box.min)
        assert figure.bbox.contains(*box.max)


def test_panels_of_one_unit_have_one_scale() -> None:
    figure = draw_layers.draw_entropies(head_table())
    limits = {axes.get_ylim() for axes in figure.axes}
    assert len(limits) == 1
    assert limits.pop()[1] > np.log(31)


def test_dashed_lines_are_uniform_attention() -> None:
    table = head_table()
    table["entropy_uniform"] = table["entropy_uniform"] + table["layer"] / 10
    uniform = np.log(31) + np.arange(1, 6) / 10
    for variable in ("entropy", "entropy_from_cls"):
        axes = panel_of(draw_layers.draw_entropies(table), variable)
        np.testing.assert_allclose(np.asarray(line(axes, "baseline").get_ydata()), uniform)
    axes = panel_of(draw_layers.draw_offsets(table), "mass_self")
    np.testing.assert_allclose(np.asarray(line(axes, "baseline").get_ydata()), np.exp(-uniform))


def test_the_second_entropy_panel_is_left_out_without_cls() -> None:
    assert len(draw_layers.draw_entropies(head_table()).axes) == 2
    assert len(draw_layers.draw_entropies(head_table().drop_vars("entropy_from_cls")).axes) == 1


@pytest.mark.parametrize("relation", ["nsubj", "obj", "nsubj:pass"])
def test_heatmaps_show_both_directions_on_the_scale_of_all_shares(relation) -> None:
    table = head_table()
    figure = draw_score_heatmap(table, "relation_accuracy", relation)
    panels = heatmaps(figure)
    assert len(panels) == 2
    reported = table.sel(relation=relation)["reported_direction"].item()
    accuracy = table["relation_accuracy"].sel(relation=relation)
    for axes, direction in zip(panels, ("dependent_to_head", "head_to_dependent"), strict=True):
        values = accuracy.sel(direction=direction)
        np.testing.assert_array_equal(np.ma.getdata(mesh(axes).get_array()), values.values)
        assert mesh(axes).get_clim() == (0, 1)
        layer, head = (values.where(values == values.max(), drop=True)[dim].item() for dim in ("layer", "head"))
        first, *held_out, best = axes.get_title("left").splitlines()
        assert (first, best) == (direction.replace("_", " "), f"best on all texts: {layer}-{head} {values.max():.2f}")
        assert " ".join(held_out).startswith("held out: ") == (direction == reported)


@pytest.mark.parametrize("verdict", ["stands out", "does not stand out", "cannot decide"])
@pytest.mark.parametrize("attention_types", [False, True])
def test_only_a_reported_head_that_stands_out_is_outlined(verdict, attention_types) -> None:
    table = with_verdicts(head_table(rare=(), attention_types=attention_types), "stands out", verdict, "stands out")
    row = table.sel(relation="obj")
    figure = draw_score_heatmap(table, "relation_accuracy", "obj")
    attention_type = row["reported_attention_type"].item() if attention_types else ""
    beginning = f"{attention_type} · " * attention_types + row["reported_direction"].item().replace("_", " ")
    head = (int(row["reported_layer"]), int(row["reported_head"]))
    for axes in heatmaps(figure):
        here = verdict == "stands out" and axes.get_title("left").startswith(f"{beginning}\n")
        assert outlined(axes) == ([head] if here else [])
    assert sum(len(outlined(axes)) for axes in heatmaps(figure)) == (verdict == "stands out")
    titles = [joined(axes.get_title("left")) for axes in heatmaps(figure)]
    of_report = [title for title in titles if title.startswith(f"{beginning} held out: ")]
    assert [title for title in titles if f"· {verdict} best on all texts: " in title] == of_report
    assert len(of_report) == 1


def test_without_a_report_or_for_a_rare_relation_no_head_is_outlined() -> None:
    table = head_table()
    unreported = table.drop_vars([name for name in table.variables if str(name).startswith(("reported", "heldout"))])
    for shown, relation in ((table, "nsubj:pass"), (unreported, "nsubj")):
        figure = draw_score_heatmap(shown, "relation_accuracy", relation)
        assert not [outline for axes in heatmaps(figure) for outline in outlined(axes)]


def test_what_is_no_share_has_a_scale_of_its_own() -> None:
    table = head_table()
    table["relation_accuracy"] = 3 * table["relation_accuracy"]
    values = table["relation_accuracy"].sel(relation="obj")
    panels = heatmaps(draw_score_heatmap(table, "relation_accuracy", "obj"))
    assert [mesh(axes).get_clim() for axes in panels] == [(0, pytest.approx(float(values.max())))] * 2


def test_cells_lie_where_the_axes_say() -> None:
    table = head_table()
    table["relation_accuracy"] = table["relation_accuracy"] * 0 + table["layer"] * 0.1 + table["head"] * 0.01
    axes = heatmaps(draw_score_heatmap(table, "relation_accuracy", "obj"))[0]
    corners = np.asarray(mesh(axes).get_coordinates())
    np.testing.assert_allclose(corners[3, 5], (5.5, 3.5))  # the cell after it is layer 4, head 6
    assert np.ma.getdata(mesh(axes).get_array())[3, 5] == pytest.approx(0.46)
    assert axes.get_title("left").endswith("best on all texts: 5-7 0.57")
    assert axes.yaxis_inverted()


@pytest.mark.parametrize("rival", ["offset", "upos", "untrained"])
def test_the_title_has_count_offset_held_out_accuracy_and_strongest_rival(rival: str) -> None:
    table = head_table(rare=())
    table["lift_rival"] = ("relation", [rival] * 3, table["lift_rival"].attrs)
    table = with_verdicts(table, "", "does not stand out", "")
    row = table.sel(relation="obj")
    offset = row["offset_accuracy"].idxmax()
    figure = draw_score_heatmap(table, "relation_accuracy", "obj")
    direction = row["reported_direction"].item().replace("_", " ")
    (panel,) = [axes.get_title("left") for axes in heatmaps(figure) if axes.get_title("left").startswith(direction)]
    lines = f"{joined(figure.get_suptitle())} {joined(panel).partition(' best on all texts: ')[0]}"
    signed = f"{int(offset):+d}".replace("-", "−")
    chosen = f"{int(row['heldout_offset']):+d}".replace("-", "−")
    rule = f"nearest {row['heldout_upos_word_class'].item()} ({row['heldout_upos_side'].item()})"
    rivals = {
        "offset": f"offset {chosen} {float(row['heldout_offset_accuracy']):.2f}",
        "upos": f"{rule} {float(row['heldout_upos_accuracy']):.2f}",
        "untrained": f"untrained model {float(row['untrained_accuracy']):.2f}",
    }
    titles = {"dependent_to_head": "object → its verb", "head_to_dependent": "verb → its object"}
    assert lines == (
        f"{titles[row['reported_direction'].item()]} (obj) · 2,477 links "
        f"best fixed offset {signed}: {float(row['offset_accuracy'].max()):.2f} {direction} "
        f"held out: {int(row['reported_layer'])}-{int(row['reported_head'])} "
        f"from {row['reported_direction'].item().split('_')[0]}: {float(row['heldout_accuracy']):.2f} "
        f"[{float(row['heldout_lower']):.2f}, {float(row['heldout_upper']):.2f}] · {rivals[rival]} · does not stand out"
    )


def test_a_rare_relation_has_no_held_out_line() -> None:
    assert "held out" not in draw_score_heatmap(head_table(), "relation_accuracy", "nsubj:pass").get_suptitle()


def read_mark(table: xr.Dataset) -> tuple[float, list[str]]:
    """Return the value that is marked on the colour bar of subjects, and the texts next to the bar."""
    figure = draw_score_heatmap(table, "relation_accuracy", "nsubj")
    (bar,) = [axes for axes in figure.axes if axes.get_ylabel() == "accuracy (accuracy)"]
    value, _ = np.asarray(line(bar, "baseline").get_ydata(), dtype=float)
    return float(value), [text.get_text() for text in bar.texts]


def test_the_colour_bar_marks_the_strongest_rival_of_the_reported_head() -> None:
    table = head_table()
    row = table.sel(relation="nsubj")
    rival = f"heldout_{row['lift_rival'].item()}_accuracy".replace("heldout_untrained", "untrained")
    value, texts = read_mark(table)
    assert value == pytest.approx(float(row[rival]))
    assert "strongest\nrival" in texts


def test_without_a_report_the_colour_bar_marks_the_best_offset() -> None:
    table = head_table()
    names = [name for name in table.variables if str(name).startswith(("reported", "heldout"))]
    best = table["offset_accuracy"].sel(relation="nsubj")
    value, texts = read_mark(table.drop_vars(names))
    assert value == pytest.approx(float(best.max()))
    assert f"offset\n{int(best.idxmax('offset')):+d}".replace("-", "−") in texts


def test_heatmaps_of_stacks_have_the_layers_that_the_stack_has() -> None:
    table = head_table(attention_types=True)
    panels = heatmaps(draw_score_heatmap(table, "relation_accuracy", "nsubj"))
    assert len(panels) == 6
    names = [(attention_type, way) for way in ("dependent_to_head", "head_to_dependent") for attention_type in STACKS]
    for axes, (attention_type, direction) in zip(panels, names, strict=True):
        values = table["relation_accuracy"].sel(relation="nsubj", direction=direction, attention_type=attention_type)
        values = values.isel(layer=slice(0, STACKS[attention_type]))
        np.testing.assert_array_equal(np.ma.getdata(mesh(axes).get_array()), values.values)
        assert axes.get_title("left").startswith(f"{attention_type} · ")


def test_one_layer_one_head_and_missing_numbers_are_drawn() -> None:
    tiny = head_table(1, 1)
    assert mesh(heatmaps(draw_score_heatmap(tiny, "relation_accuracy", "obj"))[0]).get_array().shape == (1, 1)
    assert draw_layers.draw_special_tokens(tiny).axes
    table = head_table(attention_types=True)
    table["relation_accuracy"].loc[{"attention_type": "cross"}] = np.nan
    figure = draw_score_heatmap(table, "relation_accuracy", "obj")
    assert sum(axes.get_title("left").endswith("no value") for axes in figure.axes) == 2
    table["relation_accuracy"][:] = np.nan
    assert draw_score_heatmap(table.drop_vars("fold_offset"), "relation_accuracy", "obj").axes


def test_errors_say_what_is_missing() -> None:
    table = head_table()
    message = "the head table has no relation 'iobj'; it has nsubj, obj, nsubj:pass."
    with pytest.raises(TableError, match=f"^{re.escape(message)}$"):
        draw_score_heatmap(table, "relation_accuracy", "iobj")
    message = "the head table has no score relation_accuracy; it has none."
    with pytest.raises(TableError, match=f"^{re.escape(message)}$"):
        draw_score_heatmap(table.drop_vars("relation_accuracy"), "relation_accuracy", "obj")
    message = "the head table has none of entropy, entropy_from_cls; measure the surface statistics of the model first."
    with pytest.raises(TableError, match=f"^{re.escape(message)}$"):
        draw_layers.draw_entropies(table.drop_vars(["entropy", "entropy_from_cls"]))


def test_files_hold_text_and_are_the_same_each_time(tmp_path: Path) -> None:
    table = head_table(model="a $dollar$ model")
    kept = []
    for run in ("one", "two"):
        paths = figures.save(
            draw_score_heatmap(table, "relation_accuracy", "nsubj"), tmp_path / run, "relation nsubj:*"
        )
        assert [path.name for path in paths] == [f"relation_nsubj__.{suffix}" for suffix in ("png", "svg", "pdf")]
        kept.append([path.read_bytes() for path in paths])
        assert set((tmp_path / run).iterdir()) == set(paths)
    assert kept[0] == kept[1]
    png, svg, pdf = kept[0]
    assert png.startswith(b"\x89PNG")
    assert pdf.startswith(b"%PDF")
    assert b"/CreationDate" not in pdf
    # TrueType, with a table that says which letters its glyphs are: text that can be searched and copied.
    assert b"/Subtype /Type3" not in pdf
    assert pdf.count(b"/FontFile2") == pdf.count(b"/ToUnicode") > 0
    text = svg.decode()
    assert ">a $dollar$ model · ewt-test.conllu · 211 documents · outlined: the reported head" in text
    assert "<dc:date>" not in text


def test_a_name_cannot_leave_the_folder(tmp_path: Path) -> None:
    paths = figures.save(draw_layers.draw_entropies(head_table()), tmp_path / "inner", "../../outside")
    assert all(path.parent == tmp_path / "inner" for path in paths)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["inner"]


def test_a_disk_that_refuses_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(HeadscopeError, match=r"^.*entropy\.png could not be written \(.+\); free some space or .+\.$"):
        figures.save(draw_layers.draw_entropies(head_table()), tmp_path / "file", "entropy")


def test_figures_belong_to_nobody() -> None:
    import matplotlib.pyplot as plt

    before, figures_before = dict(plt.rcParams), plt.get_fignums()
    draw_layers.draw_special_tokens(head_table())
    draw_score_heatmap(head_table(), "relation_accuracy", "nsubj")
    assert plt.get_fignums() == figures_before
    assert dict(plt.rcParams) == before


def loaded_by(code: str, *modules: str) -> list[str]:
    """Which of these modules are loaded once `code` has run in a process of its own."""
    tail = f"import sys; print(*[name for name in {modules!r} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", f"{code}\n{tail}"], capture_output=True, text=True, check=True)
    return run.stdout.split()


@pytest.mark.full
def test_drawing_leaves_torch_unloaded() -> None:
    code = "import headscope.view, headscope.view.figures, headscope.view.page"
    assert loaded_by(code, "torch", "transformers", "headscope.reducers", "headscope.capture") == []
    assert loaded_by(code, "headscope.view.page", "matplotlib") == ["headscope.view.page", "matplotlib"]
    assert loaded_by("import headscope.view.page", "matplotlib", "seaborn") == []
