"""What is annotated in the sentence of the page and what the best rule does, drawn below its words."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from headscope.examples import Item, Judged, Text, pack
from headscope.reducers.negation_scope import F1
from headscope.score import write_scores
from headscope.view.page import render_page
from headscope.view.reports import read_reports
from view.parsed import OpenPage
from view.tables import head_table, with_mentions
from view.test_sentences import HEADS, LAYERS, ROW, TEXTS, make_text

WORDS = ("Mary", "did", "not", "see", "her", "old", "dog", "because", "she", "slept")
MENTIONS = ((0, 1, "1", "mention"), (4, 5, "1", "mention"), (4, 7, "2", "mention"), (8, 9, "1", "mention"))
NEGATION = ((2, 3, "1", "cue"), (0, 2, "1", "scope"), (3, 7, "1", "scope"))


def judge(text: Text, items: tuple[Item, ...], picks: dict[str, tuple[tuple[int, int], ...]]) -> Text:
    counts, right = np.full(len(items), 3, np.uint8), np.zeros((LAYERS, HEADS, len(items)), np.uint8)
    return replace(text, items=items, judged={"encoder": Judged(counts, right)}, picks=picks)


@pytest.mark.parametrize("is_right", [True, False])
def test_what_the_best_rule_picks_is_drawn_below_the_sentence_and_counted(open_page: OpenPage, is_right: bool) -> None:
    table = head_table(relations=("nsubj", "obj", "det"), rare=())
    (report,) = read_reports(table)
    (row,) = [row for row in report.rows if row.key == ROW]
    items = tuple(Item(source, (target,), (ROW,)) for source, target, _ in TEXTS[2].links)
    (first, second), end = ((item.source, item.targets[0]) for item in items), row.direction == "head_to_dependent"
    pairs = [pair[::-1] if end else pair for pair in (first, second)]
    pairs[1] = pairs[1] if is_right else (pairs[1][0], 0)
    text = judge(TEXTS[2], items, {ROW: tuple(pairs)})
    html = render_page(table, figures={}, examples=pack([text], (), {}))
    page = open_page(html, address=f"#variable={ROW}&direction={row.direction}&head=2-3&text=0")
    assert page.locator("#stage path.rule").count() == 2
    rule = row.best_rule
    assert rule is not None
    said = f"Brown, below: the rule “{rule.plain}”, right for {1 + is_right} of 2."
    assert said in page.locator("#stage-about").inner_text()
    (other,) = {*table["direction"].values.tolist()} - {row.direction}
    page.locator("#direction").select_option(other)
    page.locator('#stage[aria-busy="false"]').wait_for()
    assert page.locator("#stage path.rule").count() == 0


def test_mentions_of_one_chain_have_one_number_and_colour_and_a_lonely_one_has_none(open_page: OpenPage) -> None:
    page = open_stage(open_page, with_mentions(head_table()), MENTIONS, "antecedent:pronoun")
    bars = page.locator("#stage rect.span")
    assert bars.count() == 3
    assert page.locator("#stage text.count").all_text_contents() == ["1", "1", "1"]
    assert len({*bars.evaluate_all("(all) => all.map((each) => each.style.fill)")}) == 1
    assert spans_words(page) == [["Mary"], ["her"], ["she"]]
    assert "bars: mentions" in page.locator("#stage-about").inner_text()
    others = open_stage(open_page, head_table(), MENTIONS, ROW)
    assert others.locator("#stage rect.span").count() == 0


def test_a_negation_and_the_words_that_it_negates_are_marked(open_page: OpenPage) -> None:
    table = head_table()
    values = table["entropy"].drop_attrs() / 9
    about = {"long_name": "F1", "units": "F1", "source": "somebody"}
    scored = table.assign(scope_f1=values.assign_attrs(about)).assign_attrs(scores=write_scores([F1]))
    page = open_stage(open_page, scored, NEGATION, "scope")
    assert page.locator("#stage rect.cue").count() == 1
    marked = [word for words in spans_words(page) for word in words]  # a bar for each line
    assert marked == ["see", "her", "old", "dog", "Mary", "did", "not"]
    assert "the negation, black" in page.locator("#stage-about").inner_text()


def open_stage(open_page: OpenPage, table: xr.Dataset, spans: tuple[tuple[int, int, str, str], ...], key: str):
    text = replace(make_text("spans", WORDS), spans=spans)
    html = render_page(table, figures={}, examples=pack([text], (), {}))
    return open_page(html, address=f"#variable={key}&head=2-3&text=0")


def spans_words(page) -> list[list[str]]:
    """The words above each bar."""
    return page.evaluate(
        """() => [...document.querySelectorAll("#stage rect.span")].map((bar) => {
          const box = bar.getBoundingClientRect();
          return [...document.querySelectorAll("#stage text:not(.count)")].filter((text) => {
            const word = text.getBoundingClientRect(), middle = (word.left + word.right) / 2;
            return middle > box.left && middle < box.right && word.top < box.top && word.bottom > box.top - 4;
          }).map((text) => text.textContent);
        })"""
    )
