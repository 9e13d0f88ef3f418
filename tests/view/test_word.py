"""A word through all heads: where each of them sends it, and who looks at it there."""

import numpy as np
import pytest

from view.parsed import OpenPage
from view.screen import settle
from view.test_one_screen import ADDRESS, LAYERS
from view.test_sentences import HEADS, TEXTS, draw, words_by_hand


def test_a_word_shows_where_every_head_sends_it(open_page: OpenPage) -> None:
    page = open_page(draw(), address=ADDRESS)
    before = page.locator("#grid button").first.get_attribute("title")
    unit = 3
    page.locator(f'#stage [data-unit="{unit}"]').hover()
    settle(page)
    labels = ["[CLS]", *TEXTS[0].words, "[SEP]"]
    for layer in range(1, LAYERS + 1):
        for head in range(1, HEADS + 1):
            weights = words_by_hand(TEXTS[0], layer, head)[unit]
            button = page.locator(f'#grid button[data-layer="{layer - 1}"][data-head="{head - 1}"]')
            said, _, share = button.get_attribute("title").rpartition(", ")
            assert said == f"{layer}-{head}: {labels[unit]} → {labels[int(weights.argmax())]}"
            assert float(share.rstrip("\u202f%")) == pytest.approx(100 * weights.max(), abs=0.51)
    counts = page.locator("#stage text.count").all_text_contents()
    firsts = [
        int(words_by_hand(TEXTS[0], layer, head)[unit].argmax())
        for layer in range(1, LAYERS + 1)
        for head in range(1, HEADS + 1)
    ]
    assert sorted(map(int, counts)) == sorted(n for n in np.bincount(firsts).tolist() if n > 1)
    page.mouse.move(2, 2)
    settle(page)
    assert page.locator("#grid button").first.get_attribute("title") == before


def test_a_word_shows_who_looks_at_it_in_every_head(open_page: OpenPage) -> None:
    page = open_page(draw(), address=f"{ADDRESS}&word=3")
    page.get_by_role("button", name="Who looks at it").click()
    settle(page)
    assert page.url.endswith("&word=3&way=in")
    unit, labels = 3, ["[CLS]", *TEXTS[0].words, "[SEP]"]
    others = [place for place in range(1, len(labels) - 1) if place != unit]
    strongest = []
    for layer in range(1, LAYERS + 1):
        for head in range(1, HEADS + 1):
            column = words_by_hand(TEXTS[0], layer, head)[others, unit]
            button = page.locator(f'#grid button[data-layer="{layer - 1}"][data-head="{head - 1}"]')
            title = button.get_attribute("title")
            if column.max() < 0.1:
                assert title == f"{layer}-{head}: no other word gives “{labels[unit]}” 10\u202f%"
                continue
            strongest.append(others[int(column.argmax())])
            described, _, share = title.rpartition(", ")
            assert described == f"{layer}-{head}: {labels[strongest[-1]]} → {labels[unit]}"
            assert float(share.rstrip("\u202f%")) == pytest.approx(100 * column.max(), abs=0.51)
    assert 0 < len(strongest) < LAYERS * HEADS
    listed = page.locator("#legend").inner_text().partition("share. ")[2].split()
    assert sum(int(word) for word in listed if word.isdigit()) == len(strongest)
    counts = page.locator("#stage text.count").all_text_contents()
    assert sorted(map(int, counts)) == sorted(n for n in np.bincount(strongest).tolist() if n > 1)
    without = f"In {LAYERS * HEADS - len(strongest)} of {LAYERS * HEADS} heads no other word gives it 10\u202f%"
    assert without in page.locator("#stage-about").inner_text()
    page.keyboard.press("w")
    settle(page)
    assert page.url.endswith("&word=3")
    assert f"{labels[unit]} →" in page.locator("#grid button").first.get_attribute("title")


def test_a_click_pins_a_word_in_the_address_and_escape_lets_go(open_page: OpenPage) -> None:
    page = open_page(draw(), address=ADDRESS)
    page.locator('#stage [data-unit="2"]').click()
    settle(page)
    assert page.url.endswith("&word=2")
    page.keyboard.press(".")
    settle(page)
    assert page.url.endswith("&word=3")
    assert "“dog” through all 35 heads" in page.locator("#stage-about").inner_text()
    page.keyboard.press("Escape")
    settle(page)
    assert "word=" not in page.url
    # The first choice of a head is the strongest, and it changes with the sentence.
    page = open_page(draw(), address=f"{ADDRESS}&word=2")
    page.keyboard.press("2")
    settle(page)
    assert "word=" not in page.url
