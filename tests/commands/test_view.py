"""`headscope measure --view`: all that a reader sees says which view it is, and nothing compares two of them."""

import html
import re
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import headscope
import tiny
import tuned
from analyse.run_tables import scope_table
from headscope import heads
from headscope.analyse import add_regression
from headscope.errors import HeadscopeError, TableError
from headscope.view.figures.draw_layers import draw_special_tokens
from headscope.view.figures.style import CAPTION
from headscope.view.page import render_page
from headscope.view.table_frames import make_frames

SHOWS = (
    "View “norm”: the norm of what flows from each token (its value after the output projection, times its weight), "
    "as a share of the sum of these norms over all tokens (Kobayashi et al. 2020, section 3)."
)


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return tiny.save(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def table(model) -> xr.Dataset:
    documents = tiny.documents_with_roles(11)
    return headscope.measure(str(model), documents, ["surface", "relations", "scope"], view="norm", progress=False)


def test_the_command_and_the_function_measure_the_same(run, model, tmp_path) -> None:
    out = tmp_path / "heads.nc"
    code, said, _ = run("measure", model, "grammar:23", "-r", "surface", "--view", "norm", "-o", out)
    assert code == 0
    assert SHOWS in re.sub(r"\s+", " ", said)
    assert "(mean share of what flows, all texts)" in said
    read = heads.read_table(out)
    assert read.attrs["view"] == "norm"
    assert "view='norm'" in read.attrs["call"]
    expected = headscope.measure(str(model), "grammar:23", "surface", view="norm", progress=False)
    xr.testing.assert_equal(read, expected)
    weights = headscope.measure(str(model), "grammar:23", "surface", progress=False)
    assert abs(weights["mass_cls"] - expected["mass_cls"]).max() > 0.001


def test_a_view_that_there_is_not_is_refused_before_the_model_is_loaded(run, tmp_path) -> None:
    sentence = (
        "{} is 'norms' (did you mean norm?); give norm, gradient, gradient-x-attention, rollout, rollout-without-sink "
        "or value-zeroing."
    )
    command = ("measure", tmp_path, "grammar:7", "-r", "surface", "--view", "norms", "-o", tmp_path / "heads.nc")
    code, _, complaint = run(*command)
    assert (code, complaint.splitlines()) == (2, [f"headscope: {sentence.format('--view')}"])
    with pytest.raises(HeadscopeError) as refused:
        headscope.measure("./no-model", "grammar:7", "surface", view="norms")
    assert str(refused.value) == sentence.format("`view`")


def test_a_model_that_a_view_cannot_measure_is_refused_in_a_sentence(run, tmp_path) -> None:
    folder = tiny.save(tmp_path / "mpnet", "mpnet")
    code, _, complaint = run("measure", folder, "grammar:7", "-r", "surface", "--view", "norm", "-o", tmp_path / "h.nc")
    assert code == 2
    assert complaint.splitlines()[-1] == (
        f"headscope: what the heads of '{folder}' (MPNetModel) add cannot be seen, since it does not use "
        "transformers' attention interface; leave out --view to measure its weights."
    )


def test_page_figure_and_data_frames_say_which_view_it_is(table) -> None:
    assert html.escape(SHOWS, quote=False) in render_page(table, figures={})
    weights = table.copy()
    weights.attrs = {name: value for name, value in table.attrs.items() if not name.startswith("view")}
    assert "View “" not in render_page(weights, figures={})
    figure = draw_special_tokens(table)
    (caption,) = [text.get_text() for text in figure.findobj(lambda artist: artist.get_gid() == CAPTION)]
    assert "view norm" in caption
    assert {axes.get_ylabel() for axes in figure.axes} == {"mean share of what flows"}
    units = make_frames(table)["columns"].set_index(["table", "column"])["units"]
    assert units["heads", "mass_cls"] == "share of what flows"


def test_a_regression_of_what_flows_has_its_unit(table) -> None:
    regressed = add_regression(table)
    for name in ("scope_intercept", "scope_label_coefficient"):
        assert regressed[name].attrs["units"] == "share of what flows"
    assert regressed["scope_distance_coefficient"].attrs["units"] == "share of what flows by word"


def test_runs_are_seen_through_the_loss_of_their_task(tmp_path) -> None:
    runs = tuned.make_runs(tmp_path, seeds=(3, 7), task="classification")
    table = headscope.measure(runs.model, "grammar:23", "surface", runs=runs.folder, view="gradient", progress=False)
    assert (table.attrs["loss"], table.attrs["view"]) == ("classification", "gradient")
    second = headscope.measure(str(runs.path(runs.runs[1])), "grammar:23", "surface", view="gradient", progress=False)
    np.testing.assert_array_equal(table["mass_cls"].isel(run=1), second["mass_cls"])


def test_two_views_are_not_compared() -> None:
    counts = np.arange(2 * 3 * 5).reshape(2, 3, 5) % 7
    before, after = (
        scope_table(counts, counts + 2, np.full(5, 11), weights_sha256=digest * 64, **view)
        for digest, view in (("1", {}), ("2", {"view": "norm"}))
    )
    sentence = "the table after is of the view `norm` and the table before of the weights; measure both with the same "
    with pytest.raises(TableError) as refused:
        headscope.analyse.compare_variable(before, after, None, "scope_f1")
    assert str(refused.value) == f"{sentence}--view."
    headscope.analyse.compare_variable(before.assign_attrs(view="norm"), after, None, "scope_f1")
