"""The rules of axe-core on pages of several kinds, light and dark, wide and narrow."""

from importlib import resources

import pytest

from headscope.view.page import render_page
from view.parsed import OpenPage
from view.tables import head_table, with_verdicts
from view.test_head_map import show, tabulate
from view.test_sentences import ROW, draw

AXE = (resources.files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
VERDICTS = ("stands out", "does not stand out", "")
PAGES = {
    "sentences": (lambda: draw(), f"#variable={ROW}&head=2-3&text=0"),
    "arcs": (lambda: draw(), f"#variable={ROW}&head=2-3&text=0&picture=arcs"),
    "matrix": (lambda: draw(), f"#variable={ROW}&head=2-3&text=0&picture=matrix"),
    "attention types": (lambda: draw(attention_types=True), f"#variable={ROW}&head=2-3&attention_type=cross"),
    "figures": (lambda: render_page(with_verdicts(head_table(), *VERDICTS), figures={"A": "<svg/>"}), ""),
    "map": (lambda: show(tabulate("bert")), "#variable=entropy&head=2-3"),
    "statistics": (lambda: render_page(head_table()[["entropy"]], figures={}), ""),
}


@pytest.mark.parametrize("name", [*PAGES])
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_a_page_breaks_no_rule_of_axe(open_page: OpenPage, name: str, width: int, dark: bool) -> None:
    make, address = PAGES[name]
    page = open_page(make(), address=address, width=width, dark=dark)
    assert violations(page) == []
    page.locator("#search").focus()
    assert violations(page) == []


@pytest.mark.parametrize("dark", [False, True])
def test_the_words_of_the_sentence_and_the_cells_can_be_read_on_their_ground(open_page: OpenPage, dark: bool) -> None:
    # axe looks at no text in pictures.
    page = open_page(draw(), address=f"#variable={ROW}&head=2-3&text=0&word=2", dark=dark)
    words, cells = page.evaluate(
        """() => {
          const read = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).map(Number);
          const ground = read(getComputedStyle(document.getElementById("specimen")).backgroundColor);
          const mix = ({ fill, opacity }) => read(fill).map((part, at) => part * opacity + ground[at] * (1 - opacity));
          const find = (query) => [...document.querySelectorAll(query)].map((node) => getComputedStyle(node));
          const list = (query, pair) => find(query).map(pair);
          return [
            list("#stage text", (style) => [mix(style), ground]),
            list("#grid button", (style) => [read(style.color), read(style.backgroundColor)]),
          ];
        }"""
    )
    assert len(words) > 8
    for pair in (*words, *cells):
        low, high = sorted(map(luminance, pair))
        assert (high + 0.05) / (low + 0.05) >= 4.5


def luminance(parts: list[float]) -> float:
    """Relative luminance (WCAG 2.2)."""
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in (part / 255 for part in parts)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def violations(page) -> list[str]:
    """Each broken rule with the elements that break it."""
    page.evaluate(AXE)
    found = page.evaluate("async () => (await axe.run()).violations")
    return [f"{each['id']}: {[node['html'][:200] for node in each['nodes'][:3]]}" for each in found]
