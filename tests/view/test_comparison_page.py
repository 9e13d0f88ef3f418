"""The page of a comparison: two tables on one scale, their difference, and the heads that differ most."""

import json
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import headscope
from headscope.view.page import render_page, write_comparison_page
from view.parsed import OpenPage, Page
from view.screen import settle
from view.tables import head_table
from view.test_accessibility import violations
from view.test_page import HOSTILE, cells
from view.test_view_switch import through_norms

ENTROPY = "#variable=entropy&head=1-1"
MOVED = {"4-6": 1.7, "2-3": -1.3, "5-1": 0.9}
"""By how much the entropy of heads changes; all others change by less than 0.1."""


RUNS = ("seed-11", "it's 2", "3")
"""As folders of runs are called."""

SHARED = ("entropy_uniform", "relation_count", "offset_accuracy", "relation_offset")


def tune(table: xr.Dataset, seed: int) -> xr.Dataset:
    """A table of the same heads, of which three differ much."""
    change = 0.1 * np.random.default_rng(seed).uniform(-1, 1, table["entropy"].shape)
    tuned = table.copy(deep=True)
    tuned["entropy"] += change
    for name, by in MOVED.items():
        layer, head = map(int, name.split("-"))
        value = table["entropy"].sel(layer=layer, head=head).item() + by
        tuned["entropy"].loc[{"layer": layer, "head": head}] = value
    return tuned


@pytest.fixture
def before() -> xr.Dataset:
    table = head_table()
    table["entropy"] = table["entropy"] + 2
    return table


@pytest.fixture
def after(before: xr.Dataset) -> xr.Dataset:
    """Of three runs, as they are measured: the numbers of the heads by run, and no reported heads."""
    tables = [tune(before, seed) for seed in (1, 2, 3)]
    of_heads = [name for name, values in before.data_vars.items() if {"layer", "head"} <= {*values.dims}]
    runs = xr.concat([table[of_heads] for table in tables], "run", data_vars="all").assign_coords(run=[*RUNS])
    shared = [name for name in before.data_vars if name in SHARED]
    return runs.assign({name: before[name] for name in shared}).assign_attrs(before.attrs)


def compare(before: xr.Dataset, after: xr.Dataset, folder: Path, control: xr.Dataset | None = None) -> str:
    path = write_comparison_page(before, after, control, folder / "comparison.html")
    return path.read_text(encoding="utf-8")


def label(values: xr.DataArray) -> dict[str, float]:
    return {f"{at[0] + 1}-{at[1] + 1}": value for at, value in np.ndenumerate(values.transpose("layer", "head").values)}


def read_cells(page) -> dict[str, float]:
    return {name: float(text.split()[0]) for name, text in cells(Page(page.content())).items()}


def test_the_grid_shows_the_mean_over_runs_less_the_model_before(before, after, open_page: OpenPage, tmp_path) -> None:
    page = open_page(compare(before, after, tmp_path), address=ENTROPY)
    assert page.locator("#view").input_value() == "after"
    assert page.locator("#against").input_value() == "before"
    wanted = label(after["entropy"].mean("run") - before["entropy"])
    shown = read_cells(page)
    assert shown.keys() == wanted.keys()
    assert [shown[name] for name in wanted] == pytest.approx([*wanted.values()], abs=6e-4)
    ends = [page.locator(f"#scale .{end}").inner_text() for end in ("low", "high")]
    assert ends == ["−1.70", "1.70"]


def test_the_heads_that_differ_most_come_first_and_lead_to_themselves(
    before, after, open_page: OpenPage, tmp_path
) -> None:
    page = open_page(compare(before, after, tmp_path), address=ENTROPY)
    items = page.locator("#movers li").all_inner_texts()
    assert [item.split(":")[0] for item in items[:3]] == [*MOVED]
    for item, by in zip(items, MOVED.values(), strict=False):
        start, end = map(float, item.split(": ")[1].split(" to "))
        assert end - start == pytest.approx(by, abs=2e-3)
    page.locator("#movers a").nth(1).click()
    settle(page)
    assert page.locator("#profile-name").inner_text() == "Head 2-3"
    assert page.locator("#profile-statistics th").all_inner_texts()[3] == "before"
    row = page.locator("#profile-statistics tr:has(th:text-is('entropy')) td").all_inner_texts()
    value = before["entropy"].sel(layer=2, head=3).item()
    assert (float(row[0]), float(row[2])) == (pytest.approx(value - 1.3, abs=6e-3), pytest.approx(value, abs=6e-3))


def test_the_mean_over_runs_has_no_interval_and_each_run_has_its_own(before, after, tmp_path) -> None:
    data = Page(compare(before, after, tmp_path)).data()
    assert not [row for row in data["scores"] if "lower" in row]
    runs = [view for view in data["views"] if view["name"].startswith("after, run")]
    assert len(runs) == 3
    assert all("lower" in row and "upper" in row for view in runs for row in view["scores"] if row["ranked"])


def test_each_run_and_the_control_can_be_shown_on_the_scale_of_all(before, after, open_page, tmp_path) -> None:
    control = after.isel(run=[0]).copy(deep=True)
    control["entropy"] = control["entropy"] * 3
    page = open_page(compare(before, after, tmp_path, control), address=ENTROPY)
    page.locator("#against").select_option("")
    settle(page)
    assert page.locator("#movers").is_hidden()
    tops = set()
    shown = {
        "after": after["entropy"].mean("run"), "before": before["entropy"], "control": control["entropy"].mean("run"),
        **{f"after, run {run}": after["entropy"].sel(run=run) for run in RUNS},
    }  # fmt: skip
    assert page.locator("#view option").all_inner_texts() == ["after", "before", *[*shown][3:], "control"]
    for name, values in shown.items():
        page.locator("#view").select_option(name)
        settle(page)
        wanted, read = label(values), read_cells(page)
        assert [read[head] for head in wanted] == pytest.approx([*wanted.values()], abs=6e-4), name
        tops.add(page.locator("#scale .high").inner_text())
    assert tops == {f"{float(control['entropy'].max()):.2f}"}


def test_the_address_keeps_what_is_compared(before, after, open_page: OpenPage, tmp_path) -> None:
    text = compare(before, after, tmp_path)
    page = open_page(text, address=ENTROPY)
    page.locator("#against").select_option("after, run it's 2")
    settle(page)
    address = page.evaluate("location.hash")
    again = open_page(text, address=address)
    assert again.locator("#against").input_value() == "after, run it's 2"
    assert read_cells(again) == read_cells(page)
    page.locator("#view").select_option("after, run it's 2")
    settle(page)
    assert page.locator("#movers-about").inner_text() == "Choose another view to compare with."


@pytest.mark.parametrize("view", ["after", *(f"after, run {run}" for run in RUNS)])
def test_the_python_gives_the_difference(before, after, open_page, tmp_path, monkeypatch, view: str) -> None:
    for name, table in (("before", before), ("after", after)):
        headscope.write_table(table, tmp_path / f"{name}.nc")
    tables = [headscope.read_table(tmp_path / f"{name}.nc") for name in ("before", "after")]
    page = open_page(compare(*tables, tmp_path), address="#variable=entropy&head=4-6")
    page.locator("#view").select_option(view)
    settle(page)
    names: dict[str, object] = {"model": None}
    monkeypatch.setattr(headscope, "disable", lambda model, heads: nullcontext(), raising=False)
    exec(page.locator("#python").inner_text().replace("\ntable[", "\nnumber = table["), names)
    shown = json.loads(page.locator('#grid button[aria-pressed="true"]').get_attribute("title").split(": ")[1])
    assert float(names["number"]) == pytest.approx(shown, abs=5.1e-4) == pytest.approx(1.7, abs=1e-3)


def test_what_is_said_of_the_model_after_is_said_of_no_other(before, after, open_page: OpenPage, tmp_path) -> None:
    page = open_page(compare(before, after, tmp_path), address=f"{ENTROPY}&tab=numbers")
    assert page.locator("#profile-about").inner_text().startswith("Head 1-1 attends most to")
    page.locator("#view").select_option("before")
    settle(page)
    assert page.locator("#profile-about").inner_text() == ""
    assert page.locator("section:has(#sentences)").is_hidden()


def test_a_head_without_a_value_in_one_run_has_no_mean(before, after, open_page: OpenPage, tmp_path) -> None:
    after["entropy"].loc[{"layer": 4, "head": 6, "run": RUNS[0]}] = np.nan
    page = open_page(compare(before, after, tmp_path), address=ENTROPY)
    assert page.locator('#grid [data-layer="3"][data-head="5"]').get_attribute("title") == "4-6: no value"
    assert "Mean of 34 heads" in page.locator("#movers-about").inner_text()


def test_each_change_on_all_texts_has_its_verdict(open_page: OpenPage, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("headscope.view.page.numbers.score_held_out", lambda table, score: table[score.variable] / 2)
    before = head_table()
    values = before["relation_accuracy"]
    difference = xr.full_like(values, 0.01)
    difference.loc[{"layer": 4, "head": 6}], difference.loc[{"layer": 2, "head": 3}] = 0.3, -0.2
    after = before.assign(relation_accuracy=(values + difference).assign_attrs(values.attrs))
    words = xr.where(difference > 0.1, "higher", xr.where(difference < -0.1, "lower", "not shown to differ"))
    ends = {"difference_lower": difference - 0.05, "difference_upper": difference + 0.05, "verdict": words}
    path = tmp_path / "comparison.html"
    write_comparison_page(before, after, None, path, changes={"relation_accuracy": xr.Dataset(ends)})
    page = open_page(path.read_text(encoding="utf-8"), address="#variable=relation:obj")
    items = [item.split(", ", 1)[1] for item in page.locator("#movers li").all_inner_texts()]
    assert items == ["higher by 0.250 to 0.350 (95 %)", "lower by 0.150 to 0.250 (95 %)", *["not shown to differ"] * 6]
    assert "On these texts 1 higher and 1 lower for sure" in page.locator("#movers-about").inner_text()
    page.locator("#half").select_option("held-out half")
    settle(page)
    assert "for sure" not in page.locator("#movers-about").inner_text()
    assert "higher" not in "".join(page.locator("#movers li").all_inner_texts())


def test_missing_values_and_variables_are_said(before, after, open_page: OpenPage, tmp_path) -> None:
    before["entropy"].loc[{"layer": 4, "head": 6}] = np.nan
    page = open_page(compare(before.drop_vars("mass_sep"), after, tmp_path), address=ENTROPY)
    assert page.locator('#grid [data-layer="3"][data-head="5"]').get_attribute("title") == "4-6: no value"
    assert page.locator("#movers li").first.inner_text().startswith("2-3:")
    assert "Mean of 34 heads" in page.locator("#movers-about").inner_text()
    page.locator("#variable").select_option("mass_sep")
    settle(page)
    assert "before and after do not both have to [SEP] in one unit" in page.locator("#movers-about").inner_text()
    wanted = label(after["mass_sep"].mean("run"))
    assert [read_cells(page)[name] for name in wanted] == pytest.approx([*wanted.values()], abs=6e-4)


def test_views_without_a_unit_in_common_are_not_subtracted(open_page: OpenPage) -> None:
    table = head_table()
    page = open_page(
        render_page(table, figures={}, views={"norm": through_norms(table)}),
        address="#variable=mass_cls&head=1-1&against=norm",
    )
    wanted = label(table["mass_cls"])
    assert [read_cells(page)[name] for name in wanted] == pytest.approx([*wanted.values()], abs=6e-4)
    assert "in one unit" in page.locator("#movers-about").inner_text()


def test_a_page_of_one_table_compares_nothing(open_page: OpenPage) -> None:
    page = open_page(render_page(head_table(), figures={}))
    assert page.locator("#against").is_hidden()
    assert page.locator("#movers").is_hidden()


def test_matched_heads_are_in_the_profile(before, after, open_page: OpenPage, tmp_path) -> None:
    size = 35
    distances = np.random.default_rng(7).uniform(0.5, 0.7, (size, size))
    partner = np.random.default_rng(8).permutation(size)
    distances[np.arange(size), partner] = np.linspace(0.05, 0.4, size)
    dims = ("layer", "head", "layer_before", "head_before")
    values = distances.reshape(5, 7, 5, 7)
    attrs = {"long_name": "distance", "units": "nats", "source": "test"}
    coords = {"layer_before": range(1, 6), "head_before": range(1, 8)}
    after = after.assign_coords(coords).assign(
        js_distance_before=xr.Variable(("run", *dims), np.stack([values] * 3), attrs)
    )
    page = open_page(compare(before, after, tmp_path), address="#variable=entropy&head=3-2")
    at = partner[2 * 7 + 1]
    about = page.locator("#profile-about").inner_text()
    assert f"is matched with head {at // 7 + 1}-{at % 7 + 1}: {distances[15, at]:.2f} nats" in about
    assert f"the head of its own place is at {distances[15, 15]:.2f}" in about


def test_it_keeps_the_rules_of_axe_and_hostile_names_stay_text(before, after, open_page: OpenPage, tmp_path) -> None:
    before.attrs["model"] = after.attrs["model"] = HOSTILE
    page = open_page(compare(before, after, tmp_path), address=ENTROPY)
    assert violations(page) == []
    assert page.locator("h1").inner_text().endswith("after tuning, compared with the model before")
    assert "No head is reported: this table has scores" in page.locator("#reported-rows").inner_text()
