"""The page: its data are the table's, nothing in it reaches out, and its script draws every head."""

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from headscope.errors import HeadscopeError, TableError
from headscope.view.page import render_page, write_page
from view.parsed import Browse, Page, rows_of_reported
from view.tables import STACKS, head_table, with_mentions, with_verdicts

POLICY = (
    "default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; img-src data:; base-uri 'none'; "
    "form-action 'none'"
)
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>&lt;\"'"


def same(values: Any, wanted: xr.DataArray, *dims: str) -> None:
    """Equal to six digits, and null where the table has no number."""
    if "attention_type" not in wanted.dims:
        wanted = wanted.expand_dims("attention_type")
    read = np.array(values, dtype=float)
    np.testing.assert_allclose(read, wanted.transpose(*dims, "attention_type", "layer", "head").values, rtol=1e-5)


@pytest.mark.parametrize("attention_types", [False, True])
def test_the_data_are_the_tables_numbers(attention_types) -> None:
    table = head_table(attention_types=attention_types)
    data = Page(render_page(table, figures={})).data()
    assert (data["layers"], data["heads"]) == (5, 7)
    assert data["attention_types"] == (list(STACKS) if attention_types else [])
    assert [one["name"] for one in data["statistics"]] == [
        name for name in table.data_vars if str(name).startswith(("mass_", "entropy", "mean_"))
    ]
    for one in data["statistics"]:
        same(one["values"], table[one["name"]])
    for score in data["scores"]:
        row = table.sel(relation=score["name"])
        for key, name in (("values", ""), ("lower", "_lower"), ("upper", "_upper")):
            same(score[key], row[f"relation_accuracy{name}"], "direction")
        assert score["key"] == f"relation:{score['name']}"
        assert score["count"] == int(row["relation_count"])
        assert score["offset"] == int(row["offset_accuracy"].idxmax())
        assert score["offset_value"] == pytest.approx(float(row["offset_accuracy"].max()), rel=1e-5)
    assert [score["name"] for score in data["scores"]] == table["relation"].values.tolist()


def test_baselines_are_uniform_attention() -> None:
    table = head_table()
    table["mass_next"] = table["mass_next"] * 0  # a decoder that cannot look ahead
    surface = {one["name"]: one["baseline"] for one in Page(render_page(table, figures={})).data()["statistics"]}
    assert surface["mass_previous"] == [pytest.approx(1 / 31, rel=1e-5)]
    assert surface["mass_next"] == [None]
    assert surface["entropy"] == [pytest.approx(np.log(31), rel=1e-5)]
    assert surface["mass_sep"] == []


def test_missing_numbers_are_null_and_missing_variables_are_left_out() -> None:
    table = head_table()
    table["mass_cls"] = table["mass_cls"] * np.nan
    table["entropy"].loc[{"layer": 2, "head": 3}] = np.nan
    surface = {one["name"]: one["values"][0] for one in Page(render_page(table, figures={})).data()["statistics"]}
    assert "mass_cls" not in surface
    assert surface["entropy"][1][2] is None
    assert sum(value is None for row in surface["entropy"] for value in row) == 1


def test_names_cannot_break_out() -> None:
    table = head_table(relations=("nsubj", HOSTILE, "obj"), rare=(), model=HOSTILE)
    table.attrs["corpus"] = table.attrs["split"] = HOSTILE
    table.attrs["skipped"] = json.dumps({HOSTILE: 3})
    parsed = Page(render_page(table, figures={HOSTILE: "<svg/>"}))
    assert [attrs.get("id") for attrs, _ in parsed.find("script")] == ["atlas-data", None]
    assert parsed.data()["scores"][1]["name"] == HOSTILE
    assert parsed.find("h1")[0][1] == HOSTILE.rsplit("/", 1)[1], "a model is called by the end of its path"
    assert parsed.find("h1")[0][1] in parsed.find("title")[0][1]
    assert HOSTILE in [row[0] for row in rows_of_reported(parsed)]
    assert all(attrs["src"].startswith("data:") for attrs, _ in parsed.find("img"))
    assert not [name for _, attrs, _ in parsed.elements for name in attrs if name.startswith("on")]


def test_nothing_is_loaded_from_elsewhere() -> None:
    table = head_table()
    pictures = {"Entropies": "<svg onload='fetch(\"https://example.org\")'><script>alert(1)</script></svg>"}
    text = render_page(table, figures=pictures)
    parsed = Page(text)
    ((policy, _),) = parsed.find("meta", **{"http-equiv": "Content-Security-Policy"})
    inline = {"style": parsed.find("style")[0][1], "script": parsed.find("script")[1][1]}
    digests = {tag: hashlib.sha256(content.encode()).digest() for tag, content in inline.items()}
    assert policy["content"] == POLICY.format(**{tag: base64.b64encode(d).decode() for tag, d in digests.items()})
    for _, attrs, _ in parsed.elements:
        for name in ("src", "href", "xlink:href", "data", "action", "srcset"):
            assert (attrs.get(name) or "data:").startswith(("data:", "#"))
    assert not re.search(r"https?:", text)
    assert not re.search(r"@import|url\(", text)
    ((image, _),) = parsed.find("img")
    kept = base64.b64decode((image["src"] or "").removeprefix("data:image/svg+xml;base64,")).decode()
    assert kept == pictures["Entropies"]
    assert image["alt"] == "Entropies"


def test_the_page_says_where_its_numbers_come_from() -> None:
    parsed = Page(render_page(head_table(), figures={}))
    provenance = {"ab" * 32, "cd" * 32, "headscope atlas tiny/bert ewt-test.conllu -o out", "0a1b2c3d"}
    assert provenance <= {text for _, text in parsed.find("td")}
    counts = "211 documents, 25,093 tokens; 5 layers of 7 heads. Skipped: 17 (longer than 128 tokens)."
    assert counts in [text for _, text in parsed.find("p")]


def test_a_table_with_surface_numbers_alone_has_a_page() -> None:
    table = head_table()
    table = table[[name for name in table.data_vars if str(name).startswith(("mass", "entropy"))]]
    parsed = Page(render_page(table, figures={}))
    assert parsed.data()["scores"] == []
    assert rows_of_reported(parsed) == []
    ((_, section),) = parsed.find("section", **{"aria-labelledby": "reported"})
    assert "No head is reported: the corpus has no links, spans or labels" in section
    assert "No head is reported" not in render_page(head_table(), figures={})


def test_a_model_of_one_layer_has_a_page(open_page) -> None:
    page = open_page(render_page(head_table(1), figures={}), address="#tab=numbers")
    assert page.locator("#grid button").count() == 7
    page.locator("#grid button").nth(4).click()
    assert page.locator("#profile-name").inner_text() == "Head 1-5"


def test_headers_have_a_scope_and_labels_a_target() -> None:
    parsed = Page(render_page(head_table(), figures={}))
    assert all(attrs.get("scope") in ("row", "col", "rowgroup") for attrs, _ in parsed.find("th"))
    ids = [attrs["id"] for _, attrs, _ in parsed.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    named = [attrs["aria-labelledby"] for _, attrs, _ in parsed.elements if "aria-labelledby" in attrs]
    assert set(named) <= set(ids)


def test_the_page_is_the_same_each_time_and_is_written_whole(tmp_path: Path) -> None:
    table = head_table()
    path = write_page(table, tmp_path / "out" / "atlas.html", figures={"One": "<svg/>"})
    assert path.read_text(encoding="utf-8") == render_page(table, figures={"One": "<svg/>"})
    assert [one.name for one in path.parent.iterdir()] == ["atlas.html"]


def test_errors_are_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(HeadscopeError, match=r"^.*atlas\.html could not be written \(.+\); free some space or .+\.$"):
        write_page(head_table(), tmp_path / "file" / "atlas.html")
    table = head_table()
    del table.attrs["model"]
    message = "the head table does not say where it came from: it lacks model."
    with pytest.raises(TableError, match=f"^{re.escape(message)}$"):
        render_page(table, figures={})


# What follows runs the page's script in a browser that has no network.


def cells(parsed: Page, **attributes: str) -> dict[str, str]:
    """The label of each button of the grid, by the head's name."""
    found = [attrs["aria-label"] or "" for attrs, _ in parsed.find("button", **attributes) if "data-layer" in attrs]
    return {label.split()[1].rstrip(":"): label.split(": ", 1)[1] for label in found}


def pressed(parsed: Page) -> list[str]:
    return list(cells(parsed, **{"aria-pressed": "true"}))


def labels_of(values: xr.DataArray, unit: str) -> dict[str, str]:
    """The labels that `cells` should have; the page holds six digits and shows three."""
    every = np.ndenumerate(values.transpose("layer", "head").values)
    return {f"{at[0] + 1}-{at[1] + 1}": f"{float(f'{value:.6g}'):.3f} {unit}" for at, value in every}


def test_the_grid_has_every_head_and_starts_with_the_most_frequent_relation(browse: Browse) -> None:
    # Where nothing is reported; else see test_grid_and_table.py.
    table = head_table(rare=("nsubj", "obj", "nsubj:pass"))
    parsed = browse(render_page(table, figures={"Entropies": "<svg xmlns='http://www.w3.org/2000/svg'/>"}))
    values = table["relation_accuracy"].sel(relation="nsubj", direction="dependent_to_head")
    assert cells(parsed) == labels_of(values, "accuracy")
    best = values.argmax(["layer", "head"])
    assert pressed(parsed) == [f"{int(best['layer']) + 1}-{int(best['head']) + 1}"]
    assert list(cells(parsed, tabindex="0")) == pressed(parsed)


def test_a_script_that_is_not_the_pages_does_not_run(browse: Browse, complaints: list[str]) -> None:
    planted = "<script>document.body.id = 'planted'</script></main>"
    text = render_page(head_table(), figures={}).replace("</main>", planted)
    assert "id" not in browse(text).find("body")[0][0]
    (complaint,) = complaints
    assert "inline script violates" in complaint
    complaints.clear()


def test_the_address_chooses_variable_direction_and_head(browse: Browse) -> None:
    table = head_table()
    text = render_page(table, figures={})
    parsed = browse(text, address="#variable=entropy&head=3-2")
    assert cells(parsed) == labels_of(table["entropy"], "nats")
    assert pressed(parsed) == ["3-2"]
    assert parsed.find("h3", id="profile-name")[0][1] == "Head 3-2"
    profile = [text for _, text in parsed.find("td")]
    for name in ("mass_self", "mass_sep_from_other", "entropy"):
        assert f"{float(table[name].sel(layer=3, head=2)):.2f}" in profile
    parsed = browse(text, address="#variable=relation:nsubj:pass&direction=head_to_dependent&head=99-1")
    values = table["relation_accuracy"].sel(relation="nsubj:pass", direction="head_to_dependent")
    assert cells(parsed) == labels_of(values, "accuracy")


def test_choosing_redraws_and_is_kept_in_the_address(browse: Browse) -> None:
    table = head_table()
    script = """
      const select = document.getElementById("variable");
      select.value = "mass_sep";
      select.dispatchEvent(new Event("change"));
      document.querySelector('#grid button[data-layer="1"][data-head="4"]').click();
      document.body.dataset.address = location.hash;
    """
    parsed = browse(render_page(table, figures={}), script=script)
    assert cells(parsed) == labels_of(table["mass_sep"], "share of attention")
    assert pressed(parsed) == ["2-5"]
    assert parsed.find("body")[0][0]["data-address"] == "#variable=mass_sep&head=2-5"


def test_arrow_keys_move_between_heads_and_show_their_profile(browse: Browse) -> None:
    script = """
      document.querySelector('#grid button[data-layer="1"][data-head="4"]').focus();
      for (const key of ["ArrowDown", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowUp", "ArrowUp", "ArrowUp"])
        document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    """
    parsed = browse(render_page(head_table(), figures={}), script=script)
    assert parsed.find("h3", id="profile-name")[0][1] == "Head 1-7"
    assert list(cells(parsed, tabindex="0")) == ["1-7"]


def test_the_profile_lists_relations_by_their_gain_over_the_best_offset(browse: Browse) -> None:
    table = head_table()
    parsed = browse(render_page(table, figures={}), address="#head=4-6")
    row = table.sel(layer=4, head=6)
    gain = (row["relation_accuracy_lower"] - table["offset_accuracy"].max("offset")).stack(
        pair=("relation", "direction")
    )
    wanted = [gain["pair"].values[place] for place in np.argsort(-gain.values)]
    ((_, text),) = parsed.find("table", id="profile-scores")
    places = []
    for relation, direction in wanted:
        one = row.sel(relation=relation, direction=direction)
        interval = f"[{float(one['relation_accuracy_lower']):.2f}, {float(one['relation_accuracy_upper']):.2f}]"
        words = f"{direction.replace('_', ' ')}{float(one['relation_accuracy']):.2f} {interval}"
        places.append(text.index(f"{relation}{words}{int(table['relation_count'].sel(relation=relation)):,}"))
    assert places == sorted(places)
    assert len(places) == 6


def test_stacks_can_be_chosen_and_missing_layers_say_so(browse: Browse) -> None:
    table = head_table(attention_types=True)
    parsed = browse(render_page(table, figures={}), address="#variable=mass_cls&attention_type=decoder")
    values = labels_of(table["mass_cls"].sel(attention_type="decoder"), "share of attention")
    shown = cells(parsed)
    assert len(shown) == 35
    for head, label in shown.items():
        assert label == (values[head] if int(head[0]) <= 3 else "no value")


def test_hostile_names_stay_text_when_the_script_shows_them(browse: Browse) -> None:
    table = head_table(relations=(HOSTILE, "obj", "nsubj"), rare=(), model=HOSTILE)
    table = with_verdicts(table, *["does not stand out"] * 3)
    parsed = browse(render_page(table, figures={}))
    assert not parsed.find("img")
    assert HOSTILE in parsed.find("p", id="about")[0][1]
    assert HOSTILE in [text for _, text in parsed.find("option")]


def test_a_page_without_numbers_still_opens(browse: Browse) -> None:
    table = head_table()
    parsed = browse(render_page(table.drop_vars(list(table.data_vars)), figures={}))
    assert "hidden" in parsed.find("section", **{"aria-labelledby": "heads"})[0][0]


@pytest.mark.parametrize(("layers", "heads"), [(5, 7), (12, 12), (31, 37)])
def test_nothing_sticks_out_of_a_telephone_or_jumps(browse: Browse, layers: int, heads: int) -> None:
    relations = ["nsubj", "acl:relcl", "nsubj:pass", "obj", "compound:prt"]
    table = head_table(layers, heads, relations, model="a_rather_long_model_name_" * 3)
    table = with_mentions(table)
    wide = "<svg xmlns='http://www.w3.org/2000/svg' width='2000' height='90'/>"
    script = """
      const root = document.documentElement;
      const heights = new Set();
      for (const button of [...document.querySelectorAll("#grid button")].slice(0, 40)) {
        button.focus();
        heights.add(root.scrollHeight);
      }
      const sticks = root.scrollWidth - root.clientWidth;
      document.body.dataset.seen = JSON.stringify({ sticks, heights: heights.size });
    """
    parsed = browse(render_page(table, figures={"Wide": wide}), script=script, width=390)
    assert json.loads(parsed.find("body")[0][0]["data-seen"] or "") == {"sticks": 0, "heights": 1}
