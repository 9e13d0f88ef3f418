"""Guess the head: what is asked, what is hidden, and what is counted."""

import playwright.sync_api as playwright
import pytest

from headscope.examples import CLEAR, Example, pack
from headscope.view.glosses import gloss_row
from headscope.view.page import render_page
from view.parsed import OpenPage
from view.tables import DIRECTIONS, STACKS, head_table
from view.test_sentences import make_text

RELATIONS = ("nsubj", "obj", "det", "amod", "case", "nsubj:pass", "all")
LINKS = tuple((place, place + 1, name) for place, name in enumerate(RELATIONS[:6]))
TEXTS = [make_text(f"text {seed}", ("a", "b", "c", "d", "e", "f", "g"), LINKS, seed) for seed in range(3)]


def draw(relations: tuple[str, ...] = RELATIONS, attention_types: bool = False) -> str:
    table = head_table(relations=relations, rare=(), attention_types=attention_types)
    examples = [Example(f"relation:{name}", CLEAR, text, 1.0, 1.0) for name in relations for text in range(3)]
    types = tuple(STACKS) if attention_types else ("encoder",)
    texts = [make_text(text.id, text.words, text.links, seed, types) for seed, text in enumerate(TEXTS)]
    return render_page(table, figures={}, examples=pack(texts, examples, {}))


def options(page: playwright.Page) -> list[str]:
    return page.locator("#guess-options button").all_inner_texts()


@pytest.mark.parametrize("attention_types", [False, True])
def test_four_relations_are_offered_and_no_name_is_given_away(open_page: OpenPage, attention_types: bool) -> None:
    page = open_page(draw(attention_types=attention_types), address="#tab=guess")
    for _ in range(11):
        page.locator("#guess-next").click()
        page.locator("#guess-options button:enabled").nth(3).wait_for()
        titles = options(page)
        assert len({*titles}) == 4
        assert not {gloss_row("relation:all", direction).title for direction in DIRECTIONS} & {*titles}
        assert page.locator("#guess-sentences svg").count() == 3
        assert page.locator("#guess-sentences .gold").count() == 0
        assert page.locator("#guess-result").inner_text() == ""


def test_right_and_wrong_guesses_are_counted_beside_chance(open_page: OpenPage) -> None:
    table = head_table(relations=RELATIONS, rare=())
    page = open_page(draw(), address="#tab=guess")
    right = 0
    for turn in range(1, 8):
        page.locator("#guess-next").click()
        page.locator("#guess-options button:enabled").nth(3).wait_for()
        button = page.locator("#guess-options button").nth(turn % 4)
        chosen = button.inner_text()
        button.click()
        page.locator("#guess-sentences .gold").first.wait_for(state="attached")
        answer = page.locator("#guess-options button.right").inner_text()
        right += chosen == answer
        result = page.locator("#guess-result").inner_text()
        (row,) = (
            row
            for row in (table.sel(relation=relation) for relation in RELATIONS)
            if gloss_row(f"relation:{row['relation'].item()}", row["reported_direction"].item()).title == answer
        )
        assert f"Head {int(row['reported_layer'])}-{int(row['reported_head'])}: accuracy" in result
        assert result.startswith("Right." if chosen == answer else f"It is {answer}.")
        share = f"{100 * right / turn:.0f}\u202f%; by chance it would be 25\u202f%."
        counted = f"{right} of {turn} guesses are right, {share}"
        assert page.locator("#guess-share").inner_text() == counted
        assert page.locator("#guess-options button:enabled").count() == 0


def test_the_answer_can_be_opened(open_page: OpenPage) -> None:
    page = open_page(draw(), address="#tab=guess")
    page.locator("#guess-next").click()
    page.locator("#guess-options button").first.click()
    answer = page.locator("#guess-options button.right").inner_text()
    page.locator("#guess-result a").click()
    assert page.locator("#answer-name").inner_text().endswith(f": {answer}")


@pytest.mark.parametrize(("relations", "without_texts"), [(("nsubj", "obj", "nsubj:pass"), False), (RELATIONS, True)])
def test_where_there_is_too_little_to_choose_from_there_is_no_game(
    open_page: OpenPage, relations: tuple[str, ...], without_texts: bool
) -> None:
    text = render_page(head_table(relations=relations), figures={}) if without_texts else draw(relations)
    assert not open_page(text).locator("#guess").is_visible()
