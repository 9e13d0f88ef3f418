"""The grid of the page can be switched to views: with the keyboard, by an address, and with words that stay true."""

import html
import re

import pytest
import xarray as xr

from headscope.errors import TableError
from headscope.runner.completed_table import name_view
from headscope.view.page import render_page
from view.parsed import Browse, Page
from view.tables import head_table
from view.test_page import cells, labels_of

SWITCH = """
  const select = document.getElementById("view");
  select.focus();
  if (document.activeElement !== select) throw new Error("the switch takes no focus");
  select.selectedIndex = 1;
  select.dispatchEvent(new Event("change", { bubbles: true }));
  document.body.dataset.address = location.hash;
"""


def through_norms(table: xr.Dataset) -> xr.Dataset:
    """The same heads with half of each number."""
    halved = [name for name in table.data_vars if str(name).startswith(("mass_", "entropy", "mean_", "relation_acc"))]
    with xr.set_options(keep_attrs=True):
        return name_view(table.assign({name: table[name] * 0.5 for name in halved}), "norm")


def about(parsed: Page) -> tuple[str, str]:
    """What stands over the grid, and in the note below the profile."""
    ((_, over),), ((_, below),) = (parsed.find("p", id=name) for name in ("about", "profile-statistics-note"))
    return over, re.sub(r"\s+", " ", below)


@pytest.mark.parametrize("attention_types", [False, True])
def test_the_data_have_the_numbers_of_the_view(attention_types: bool) -> None:
    table = head_table(attention_types=attention_types)
    norms = through_norms(table)
    data = Page(render_page(table, figures={}, views={"norm": norms})).data()
    (view,) = data["views"]
    alone = Page(render_page(norms, figures={})).data()
    assert (view["name"], view["shares"], data["shares"]) == ("norm", "shares of what flows", "shares of attention")
    for part in ("statistics", "scores"):
        assert view[part] == alone[part] != data[part]
    assert "view" not in table.attrs


def test_the_page_opens_on_the_weights_and_switches(browse: Browse) -> None:
    table = head_table()
    page = render_page(table, figures={}, views={"norm": through_norms(table)})
    before, after = (browse(page, address="#variable=mass_cls&head=3-2", script=script) for script in ("", SWITCH))
    assert cells(before) == labels_of(table["mass_cls"], "share of attention")
    assert cells(after) == labels_of(table["mass_cls"] * 0.5, "share of what flows")
    assert after.find("body")[0][0]["data-address"] == "#variable=mass_cls&view=norm&head=3-2"
    assert "View" not in about(before)[0]
    assert about(after)[0].startswith("View “norm”: the norm of what flows from each token")
    assert "shares of attention, entropies in nats" in about(before)[1]
    assert "shares of what flows, entropies in nats" in about(after)[1]


def test_an_address_leads_to_a_view_and_a_score_of_it(browse: Browse) -> None:
    table = head_table()
    address = "#variable=relation%3Aobj&direction=head_to_dependent&view=norm&head=5-7"
    parsed = browse(render_page(table, figures={}, views={"norm": through_norms(table)}), address=address)
    values = table["relation_accuracy"].sel(relation="obj", direction="head_to_dependent")
    assert cells(parsed) == labels_of(values * 0.5, "accuracy")


def test_what_a_view_lacks_gives_way_to_the_first_that_it_has(browse: Browse) -> None:
    table = head_table()
    norms = through_norms(table.drop_vars("mass_cls"))
    page = render_page(table, figures={}, views={"norm": norms})
    parsed = browse(page, address="#variable=mass_cls&head=3-2", script=SWITCH)
    shown = parsed.find("body")[0][0]["data-address"]
    assert "view=norm" in (shown or "")
    assert "mass_cls" not in (shown or "")


def test_without_views_there_is_no_switch(browse: Browse) -> None:
    parsed = browse(render_page(head_table(), figures={}))
    (label,) = [attrs for attrs, text in parsed.find("label") if text.startswith("view ")]
    assert "hidden" in label
    assert "whichever view" not in render_page(head_table(), figures={})


def test_the_note_of_a_page_of_one_view_is_true_without_the_script() -> None:
    parsed = Page(render_page(through_norms(head_table()), figures={}))
    assert "shares of what flows, entropies in nats" in about(parsed)[1]


def test_the_reported_heads_are_said_to_be_of_the_weights() -> None:
    table = head_table()
    page = render_page(table, figures={}, views={"norm": through_norms(table)})
    assert html.escape("Of the weights, whichever view the grid shows. ") in page


def test_a_view_that_is_no_head_table_is_refused() -> None:
    with pytest.raises(TableError, match="has no coordinate 'layer'"):
        render_page(head_table(), figures={}, views={"norm": xr.Dataset()})
