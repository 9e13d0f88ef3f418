"""The search of the page: what it leads to, by keyboard and by mouse, and the answer that it shows."""

import playwright.sync_api as playwright
import pytest
import xarray as xr

from headscope.examples import CLEAR, FAILS, Example
from headscope.view.glosses import TERMS
from headscope.view.page import render_page
from view.parsed import OpenPage
from view.screen import settle
from view.tables import head_table, with_verdicts
from view.test_sentences import ROW, TEXTS, draw, make_text


def results(page: playwright.Page) -> list[str]:
    return page.locator("#search-results li strong").all_inner_texts()


def address(page: playwright.Page) -> str:
    return page.evaluate("decodeURIComponent(location.hash)")


def say_choice(row: xr.Dataset) -> str:
    """How a head of a table is chosen."""
    share = float(row["reported_selection_frequency"])
    return "is best" if share >= 0.5 else f"was chosen, as in {share:.0%} of random halves of the texts"


TITLES = {
    "nsubj": ("subject → its verb", "verb → its subject"),
    "obj": ("object → its verb", "verb → its object"),
}


def list_titles(table: xr.Dataset) -> dict[str, str]:
    """The plain names of the rows in the direction in which each is reported."""
    directions = table["direction"].values.tolist()
    return {
        name: ways[directions.index(table["reported_direction"].sel(relation=name).item())]
        for name, ways in TITLES.items()
        if name in table["relation"]
    }


def look_for(page: playwright.Page, query: str) -> None:
    page.locator("#search").fill(query)
    page.keyboard.press("Enter")
    settle(page)


@pytest.mark.parametrize(
    ("query", "first"),
    [("obj", "{obj}"), ("OBJ ", "{obj}"), ("object", "{obj}"), ("objects", "{obj}"), ("subject", "{nsubj}"),
     ("attention to [CLS]", "attention to [CLS]"), ("to [CLS]", "attention to [CLS]"), ("L2H1", "Head 3-2"),
     ("mass_sep", "attention to [SEP]"), ("previous token", "attention to the token before"), ("3-2", "Head 3-2"),
     ("l2h1", "Head 3-2")],
)  # fmt: skip
def test_a_name_a_gloss_a_variable_or_a_head_is_found(open_page: OpenPage, query: str, first: str) -> None:
    table = head_table()
    page = open_page(render_page(table, figures={}))
    page.locator("#search").fill(query)
    assert results(page)[0] == first.format(**list_titles(table))


def test_the_best_heads_stand_below_the_answer(open_page: OpenPage) -> None:
    table = head_table()
    page = open_page(
        render_page(table, figures={}),
        address="#variable=relation:obj&direction=head_to_dependent&head=2-3&tab=numbers",
    )
    values = (
        table["relation_accuracy"].sel(relation="obj", direction="head_to_dependent").stack(place=("layer", "head"))
    )
    best = values.sortby(values, ascending=False)[:5]
    heads = [f"{layer}-{head}" for layer, head in best["place"].values]
    listed = ", ".join(f"{head} {value:.2f}" for head, value in zip(heads, best.values, strict=True))
    assert (
        page.locator("#answer-best").inner_text()
        == f"Best heads for “verb → its object” on all texts (accuracy): {listed}."
    )
    page.locator("#answer-best a").nth(1).click()
    settle(page)
    assert page.locator("#answer-name").inner_text() == f"Head {heads[1]}: verb → its object"


def test_heads_that_changed_most_are_a_list_of_their_own(open_page: OpenPage) -> None:
    other = head_table(seed=3)
    page = open_page(render_page(head_table(), figures={}, views={"norm": other}), address="#variable=entropy&head=2-3")
    look_for(page, "changed most")
    assert "against=norm" in page.url
    assert page.locator("#movers").is_visible()
    page.locator("#search").fill("needed heads")
    assert results(page) == []


def test_enter_leads_to_the_held_out_head_and_its_answer(open_page: OpenPage) -> None:
    table = head_table()
    page = open_page(render_page(table, figures={}), address="#variable=entropy&head=5-7")
    look_for(page, "obj")
    row = table.sel(relation="obj")
    head = f"{int(row['reported_layer'])}-{int(row['reported_head'])}"
    direction = row["reported_direction"].item()
    assert address(page) == f"#variable=relation:obj&direction={direction}&head={head}"
    assert page.locator("#answer-name").inner_text() == f"Head {head}: {list_titles(table)['obj']}"
    answer = page.locator("#answer-row").inner_text()
    value, lower, upper = (float(row[f"heldout_{name}"]) for name in ("accuracy", "lower", "upper"))
    score = f"accuracy {value:.2f} [{lower:.2f}, {upper:.2f}]"
    items = f"{int(row['heldout_count']):,} held-out links, from the {direction.split('_to_')[0]}."
    assert answer.startswith(("Yes. ", "No. ", "No difference. ", "Cannot say. "))
    details = page.locator("#answer-details").text_content()
    assert f"For obj, head {head} {say_choice(row)}: {score} on {items}" in details
    assert page.locator("#search").input_value() == ""
    assert not page.locator("#search-panel").is_visible()
    page.go_back()
    assert address(page) == "#variable=entropy&head=5-7"


def test_arrow_keys_choose_and_escape_closes(open_page: OpenPage) -> None:
    page = open_page(render_page(head_table(), figures={}))
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "search"
    names = results(page)
    page.keyboard.press("ArrowUp")
    assert page.locator('#search-results [aria-selected="true"] strong').inner_text() == names[-1]
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    selected = page.locator('#search-results [aria-selected="true"]')
    assert selected.locator("strong").inner_text() == names[1]
    assert page.locator("#search").get_attribute("aria-activedescendant") == selected.get_attribute("id")
    page.keyboard.type("entropy")
    page.keyboard.press("Escape")
    assert page.locator("#search").input_value() == ""
    assert not page.locator("#search-panel").is_visible()
    assert page.locator("#search").get_attribute("aria-expanded") == "false"


@pytest.mark.parametrize(("typed", "name"), [("lift", "lift"), ("held out", "held out"), ("does not", "does not")])
def test_a_word_of_the_page_is_explained(open_page: OpenPage, typed: str, name: str) -> None:
    page = open_page(render_page(head_table(), figures={}))
    page.locator("#search").fill(typed)
    entry = page.locator("#search-results li", has_text=f"What is \u201c{name}\u201d?")
    assert TERMS[name.replace(" ", "_") if name == "does not" else name] in entry.inner_text()


def test_a_click_leads_there_too(open_page: OpenPage) -> None:
    page = open_page(render_page(head_table(), figures={}))
    page.locator("#search").fill("entropy")
    page.locator("#search-results li").first.click()
    settle(page)
    assert address(page).startswith("#variable=entropy&head=")


def test_what_stands_out_comes_first_and_nothing_is_said_to_be_nothing(open_page: OpenPage) -> None:
    table = with_verdicts(head_table(), "does not stand out", "stands out", "")
    page = open_page(render_page(table, figures={}))
    page.locator("#search").focus()
    assert results(page)[0] == list_titles(table)["obj"]
    page.locator("#search").fill("<img src=x>")
    assert results(page) == []
    assert page.locator("#search-count").inner_text() == "Nothing here is called “<img src=x>”."
    page.keyboard.press("Enter")
    assert page.locator("#search-panel").is_visible()


def test_another_head_than_the_reported_one_is_shown_as_such(open_page: OpenPage) -> None:
    table = head_table()
    row = table.sel(relation="obj")
    reported = f"{int(row['reported_layer'])}-{int(row['reported_head'])}"
    page = open_page(render_page(table, figures={}), address="#variable=relation:obj&head=5-7")
    assert reported != "5-7"
    values = row["relation_accuracy"].sel(direction=table["direction"].values[0])
    place = int((values > values[4, 6]).sum()) + 1
    above = f"rank {place} of 35 heads" if place > 1 else "the largest of 35 heads"
    answer = page.locator("#answer-row").inner_text()
    own, mean = (f"{100 * float(value):.0f}\u202f%" for value in (values[4, 6], values.mean()))
    count = f"{int(row['relation_count']):,}"
    assert answer.startswith(
        f"It finds the verb for {own} of {count} objects, {above}; mean {mean}; strongest rule, held out: "
    )
    assert page.locator("#answer-badge").inner_text() == "not the reported head"
    page.locator("#answer-link").click()
    settle(page)
    assert f"head={reported}" in address(page)
    assert f"For obj, head {reported} {say_choice(row)}: " in page.locator("#answer-details").text_content()
    assert not page.locator("#answer-link").is_visible()


def test_the_answer_shows_examples_and_failures_and_opens_them(open_page: OpenPage) -> None:
    examples = (Example(ROW, CLEAR, 2, 2.0, 2.0), Example(ROW, FAILS, 0, 0.0, 1.0))
    page = open_page(draw(examples=examples), address=f"#variable={ROW}&head=2-3&tab=examples")
    titles = page.locator("#answer-examples h3").all_inner_texts()
    assert titles == ["Where the reported head does well", "Where it does badly"]
    pictures = page.locator("#answer-examples svg")
    assert [each.get_attribute("aria-label") for each in pictures.all()] == [" ".join(TEXTS[t].words) for t in (2, 0)]
    assert pictures.first.locator("path.gold").count() == 2
    page.get_by_role("button", name="show above").nth(1).click()
    settle(page)
    assert address(page).endswith("&text=0&tab=examples")


def test_an_example_is_scrolled_to_the_word_that_is_to_be_right(open_page: OpenPage) -> None:
    words = tuple(f"word{place}" for place in range(97))
    text = make_text("long", words, ((89, 90, "obj"),))
    page = open_page(
        draw([text], (Example(ROW, CLEAR, 0, 1.0, 1.0),)), address=f"#variable={ROW}&head=2-3&tab=examples"
    )
    picture, word = (
        page.locator(f"#answer-examples {part}").bounding_box() for part in (".sentence", "text.from >> nth=90")
    )
    assert picture is not None
    assert word is not None
    assert picture["x"] < word["x"] < picture["x"] + picture["width"]


def test_a_variable_without_examples_has_none(open_page: OpenPage) -> None:
    page = open_page(draw(examples=(Example(ROW, CLEAR, 2, 2.0, 2.0),)), address="#variable=entropy&head=2-3")
    assert page.locator("#answer-examples svg").count() == 0
    assert not page.locator("#answer-note").is_visible()
