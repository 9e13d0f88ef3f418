"""The grid and the table of reported heads are one: the page opens on a reported head, and a row shows its own."""

import json
import re
from urllib.parse import parse_qs

import numpy as np
import pytest
import xarray as xr

from headscope.heads import variable
from headscope.reducers.negation_scope import F1
from headscope.score import Score, write_scores
from headscope.view.page import render_page
from view.parsed import Browse, OpenPage, Page
from view.tables import head_table, with_mentions, with_verdicts
from view.test_page import cells, labels_of, pressed

CLICK = """
  const root = document.documentElement;
  const row = [...document.querySelectorAll(".sortable tbody tr")].find((tr) => tr.cells[0].dataset.code === "ROW");
  row.scrollIntoView();
  // What lies in the middle of the cell of the score, as a mouse would meet it.
  const box = row.cells[3].getBoundingClientRect();
  document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2).click();
  document.body.dataset.address = location.hash;
  document.body.dataset.top = document.getElementById("heads").getBoundingClientRect().top;
"""


def reported(table: xr.Dataset, relation: str) -> tuple[xr.DataArray, str]:
    """The values of a relation in the direction of its reported head, and that head."""
    row = table.sel(relation=relation)
    values = row["relation_accuracy"].sel(direction=row["reported_direction"].item())
    return values, f"{int(row['reported_layer'])}-{int(row['reported_head'])}"


def turned(table: xr.Dataset, **directions: str) -> xr.Dataset:
    """A table in which the heads of some relations are reported in these directions."""
    every = table["reported_direction"].astype(object).copy()
    for relation, direction in directions.items():
        every.loc[{"relation": relation}] = direction
    return table.assign(reported_direction=every.astype(str))


@pytest.mark.parametrize(
    ("verdicts", "opened"),
    [
        (("does not stand out", "does not stand out", ""), "nsubj"),
        (("does not stand out", "stands out", ""), "obj"),
        (("stands out", "stands out", ""), "obj"),
    ],
)
def test_the_page_opens_on_what_stands_out_by_the_largest_lift(browse: Browse, verdicts, opened) -> None:
    table = turned(head_table(), nsubj="head_to_dependent", obj="head_to_dependent")
    table["lift"].loc[{"relation": ["nsubj", "obj"]}] = [0.13, 0.17]
    table = with_verdicts(table, *verdicts)
    values, head = reported(table, opened)
    parsed = browse(render_page(table, figures={}))
    assert cells(parsed) == labels_of(values, "accuracy")
    assert pressed(parsed) == [head]
    (current,) = [text for attrs, text in parsed.find("tr") if "aria-current" in attrs]
    assert opened in current
    # An address leads elsewhere.
    assert pressed(browse(render_page(table, figures={}), address="#variable=entropy&head=5-7")) == ["5-7"]


@pytest.mark.parametrize("width", [1280, 390])
def test_a_click_on_a_row_shows_its_score_direction_and_head(browse: Browse, width: int) -> None:
    table = turned(with_verdicts(head_table(), "stands out", "does not stand out", ""), obj="head_to_dependent")
    values, head = reported(table, "obj")
    parsed = browse(render_page(table, figures={}), script=CLICK.replace("ROW", "obj"), width=width)
    assert cells(parsed) == labels_of(values, "accuracy")
    assert pressed(parsed) == [head]
    body = parsed.find("body")[0][0]
    assert body["data-address"] == f"#variable=relation%3Aobj&direction=head_to_dependent&head={head}"
    assert abs(float(body["data-top"] or "nan")) < 900  # the grid is in sight
    (current,) = [text for attrs, text in parsed.find("tr") if "aria-current" in attrs]
    assert current.startswith("verb → its object obj")


def test_the_way_back_leads_to_what_the_grid_showed_before(open_page: OpenPage) -> None:
    table = with_verdicts(head_table(), "stands out", "does not stand out", "")
    page = open_page(render_page(table, figures={}))
    page.evaluate(f"() => {{ {CLICK.replace('ROW', 'obj')} }}")
    assert pressed(Page(page.content())) == [reported(table, "obj")[1]]
    page.go_back()
    assert pressed(Page(page.content())) == [reported(table, "nsubj")[1]]


def test_a_row_without_a_head_shows_its_score_and_the_best_head(browse: Browse) -> None:
    table = head_table()
    script = 'document.querySelector("details.rare a").click();'
    parsed = browse(
        render_page(table, figures={}), script=script, address="#variable=relation:obj&direction=head_to_dependent"
    )
    best = table["relation_accuracy"].sel(relation="nsubj:pass")
    values = best.sel(direction="head_to_dependent")  # its link names no direction, so that stays as it is
    assert cells(parsed) == labels_of(values, "accuracy")
    place = values.argmax(["layer", "head"])
    assert pressed(parsed) == [f"{int(place['layer']) + 1}-{int(place['head']) + 1}"]


def test_every_reported_row_has_a_link_to_its_head() -> None:
    table = with_mentions(head_table(rare=(), attention_types=False))
    parsed = Page(render_page(table, figures={}))
    shown = {score["key"] for score in parsed.data()["scores"]}
    addresses = [parse_qs((attrs["href"] or "#")[1:]) for attrs, _ in parsed.find("a") if "variable=" in str(attrs)]
    assert len(addresses) == 6
    assert {address["variable"][0] for address in addresses} <= shown
    for address, relation in zip(addresses, table["relation"].values, strict=False):
        row = table.sel(relation=relation)
        assert address["head"] == [f"{int(row['reported_layer'])}-{int(row['reported_head'])}"]
        assert address["direction"] == [row["reported_direction"].item()]


def with_other_scores(table: xr.Dataset) -> xr.Dataset:
    """A table with a score that has no intervals, and a description of attention with a baseline."""
    random = np.random.default_rng(3)
    classes = ["NOUN", "VERB"]
    scores = [
        F1,
        Score("scope_recall", "Scope of negation", numerator=("a",), denominator=("b",), reported=False),
        Score("mass_class", "Attention to classes", baselines={"share": "share of tokens"}, control="share"),
    ]
    about = {"name": "a number", "source": "Nobody 2026"}
    new = {
        "scope_f1": variable(random.random((5, 7)), ("layer", "head"), units="F1", **about),
        "scope_recall": variable(random.random((5, 7)), ("layer", "head"), units="recall", **about),
        "mass_class": variable(random.random((5, 7, 2)), ("layer", "head", "class"), units="share", **about),
        "share": variable(np.array([0.31, 0.13]), ("class",), units="share", **about),
    }
    described = json.loads(table.attrs["scores"]) + json.loads(write_scores(scores))
    return table.assign(new).assign_coords({"class": classes}).assign_attrs(scores=json.dumps(described))


@pytest.mark.parametrize(
    ("key", "unit"), [("scope", "F1"), ("scope_recall", "recall"), ("mass_class:VERB", "share"), ("entropy", "nats")]
)
def test_every_score_can_colour_the_grid(browse: Browse, key: str, unit: str) -> None:
    table = with_other_scores(head_table())
    name, _, row = key.partition(":")
    values = table[{"scope": "scope_f1"}.get(name, name)]
    values = values.sel({"class": row}) if row else values
    parsed = browse(render_page(table, figures={}), address=f"#variable={key}")
    assert cells(parsed) == labels_of(values, unit)
    # What it is of is said.
    assert "all texts" in parsed.find("p", id="about")[0][1].lower()
    if row:
        assert parsed.find("span", **{"class": "base"})[0][1].endswith("share of tokens: 0.13.")
    ((_, ranked),) = parsed.find("table", id="profile-scores")
    assert "mass" not in ranked
    options = [attrs["value"] for attrs, _ in parsed.find("option") if attrs.get("value") == key]
    assert options == [key]


def test_the_heading_of_the_table_stays_in_sight(browse: Browse) -> None:
    relations = [f"r{number}" for number in range(61)]
    table = head_table(relations=relations, rare=())
    script = """
      const box = document.querySelector(".long");
      box.scrollTop = box.scrollHeight;
      const heading = document.querySelector(".sortable thead th").getBoundingClientRect();
      const last = document.querySelector(".sortable tbody tr:last-child").getBoundingClientRect();
      document.body.dataset.seen = JSON.stringify({
        below: heading.top - box.getBoundingClientRect().top, apart: last.top - heading.bottom,
      });
    """
    parsed = browse(render_page(table, figures={}), script=script)
    seen = json.loads(parsed.find("body")[0][0]["data-seen"] or "")
    assert abs(seen["below"]) < 2
    assert seen["apart"] > 100


def test_there_are_tabs_for_the_parts_that_there_are(open_page: OpenPage) -> None:
    text = render_page(head_table(), figures={"One": "<svg xmlns='http://www.w3.org/2000/svg'/>"})
    tabs = open_page(text).locator('[role="tab"] >> visible=true')
    assert tabs.all_inner_texts() == ["Answers", "Figures", "Numbers", "Export", "Where from"]
    parsed = Page(text)
    ids = {attrs.get("id") for _, attrs, _ in parsed.elements}
    assert {(attrs["href"] or "")[1:] for attrs, _ in parsed.find("a") if "=" not in str(attrs["href"])} <= ids
    bare = open_page(render_page(head_table()[["entropy"]], figures={})).locator('[role="tab"] >> visible=true')
    assert bare.all_inner_texts() == ["Answers", "Figures", "Numbers", "Export", "Where from"]


@pytest.mark.parametrize(("path", "causal"), [("decoder 1 fused", True), ("encoder 1 fused", False)])
def test_a_causal_model_is_said_to_count_each_link_in_one_direction(path: str, causal: bool) -> None:
    table = head_table().assign_attrs(paths=json.dumps({path: 211}))
    notes = [text for _, text in Page(render_page(table, figures={})).find("p")]
    sentence = (
        "This model is causal: a word sees only itself and the words before it. Each direction is scored on the links "
        "whose other end is earlier, and each link counts in one of the two directions."
    )
    assert (sentence in notes) is causal
    assert not [note for note in Page(render_page(head_table(), figures={})).find("p") if "causal" in note[1]]
    several = Page(render_page(head_table(attention_types=True), figures={}))
    assert [text for _, text in several.find("p") if text.startswith("In the decoder a word sees only itself")]


def test_a_corpus_is_called_by_its_name_and_its_folders_stand_where_it_comes_from() -> None:
    table = head_table().assign_attrs(corpus="/home/someone/very/deep/ewt-test.conllu")
    parsed = Page(render_page(table, figures={}))
    (heading,) = [text for attrs, text in parsed.find("p") if attrs.get("class") == "lead"]
    assert heading == "on ewt-test.conllu"
    assert "/home/someone/very/deep/ewt-test.conllu" in [text for _, text in parsed.find("td")]
    assert len(re.findall("/home/someone", render_page(table, figures={}))) == 1
