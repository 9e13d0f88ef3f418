"""The page of an atlas in a browser: its size, the time until it is drawn, and that of a click.

``python benchmarks/page.py [ATLAS ...]`` opens pages of generated tables (24 layers of 16 heads, 32 of 32, each with as
many texts as an atlas has of such a model, and a text of 512 tokens) and those of atlases that are there already, in
Chromium without a network. Medians of `REPEATS` rounds, in milliseconds, from the click to the second frame after it.
"""

import statistics
import sys
import tempfile
from pathlib import Path

import numpy as np
import xarray as xr
from playwright.sync_api import Page, sync_playwright

from headscope.corpora.written_text import join_words
from headscope.examples import CLEAR, STEPS, Example, Side, Text, pack
from headscope.view.page import write_page

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from view.tables import head_table

REPEATS = 7
RELATIONS = [f"relation{number}" for number in range(45)]
CLICKS = {
    "head": "#grid button[tabindex='-1']",
    "reported row": "#reported-rows tbody tr:nth-child(5) a",
    "export as SVG": "#export-grid-svg",
    "head of the map": "#map-picture .head:nth-of-type(5)",
}
WORD = "#stage .text text:nth-child(3)"
"""A word of the sentence, at which a reader points."""

CHOICES = {"variable": "entropy", "level": "tokens", "picture": "matrix"}
SHOW = """async (selector) => {
  document.querySelector(selector)?.scrollIntoView({ block: "center" });
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  await new Promise((done) => requestIdleCallback(done));
}"""
"""Bring what is clicked into sight, as a reader does: what is out of sight is drawn later."""

TIME = """async (act) => {
  const start = performance.now();
  eval(act);
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  while (document.querySelector('[aria-busy="true"]')) await new Promise((done) => setTimeout(done, 1));
  return performance.now() - start;
}"""

SCROLL = """async () => {
  const box = document.getElementById("sentence-picture"), gaps = [];
  document.getElementById("sentences").scrollIntoView();
  let before = await new Promise(requestAnimationFrame);
  for (let frame = 0; frame < 90; frame++) {
    box.scrollTop += 60;
    const now = await new Promise(requestAnimationFrame);
    gaps.push(now - before);
    before = now;
  }
  return gaps.sort((a, b) => a - b)[Math.floor(0.95 * gaps.length)];
}"""
"""The time between two frames that 95 % do not exceed, while the sentence scrolls."""

FIRST = """new Promise((done) => new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (entry.name === "first-contentful-paint") done(entry.startTime);
}).observe({ type: "paint", buffered: true }))"""


def make_table(layers: int, heads: int) -> xr.Dataset:
    """A table of random numbers, with intervals, as an atlas has them."""
    table = head_table(layers, heads, RELATIONS, rare=())
    accuracy = table["relation_accuracy"]
    ends = {"lower": accuracy - 0.03, "upper": accuracy + 0.03}
    table = table.assign(
        {f"relation_accuracy_{end}": values.assign_attrs(accuracy.attrs) for end, values in ends.items()}
    )
    random, about = np.random.default_rng(1), {"long_name": "random", "units": "share of attention", "source": "random"}
    of_heads = ("layer", "head")
    maps = random.dirichlet(np.full(16, 0.3), (layers, heads, 16))
    places = {
        name: (of_heads, random.normal(size=(layers, heads)), about) for name in ("head_map_x", "head_map_y", "cluster")
    }
    return table.assign(
        average_map=((*of_heads, "query_bin", "key_bin"), maps, about),
        **places, head_map_stress=((), 0.2, about), head_map_documents=((), 100, about),
    ).assign_coords(query_bin=range(1, 17), key_bin=range(1, 17))  # fmt: skip


def make_distances(layers: int, heads: int) -> xr.Dataset:
    """Random distances between heads."""
    dims = ("layer", "head", "layer_other", "head_other")
    values = np.random.default_rng(2).random((layers, heads, layers, heads))
    return xr.Dataset({"js_distance": (dims, values)})


def make_texts(layers: int, heads: int, tokens: int, count: int) -> xr.Dataset:
    """Random texts; the attention of a head is as sharp as a real one is."""
    random = np.random.default_rng(0)
    texts = []
    for number in range(count):
        logits = random.gumbel(size=(layers, heads, tokens, tokens)).astype(np.float32) * 2
        weights = np.exp(logits - logits.max(-1, keepdims=True))
        weights = np.rint(weights / weights.sum(-1, keepdims=True) * STEPS).astype(np.uint8)
        words = tuple(f"word{place}" for place in range(tokens))
        written = join_words(words)
        side = Side(words, tuple(range(tokens)))
        links = tuple((place, max(0, place - 2), RELATIONS[place % 45]) for place in range(1, tokens))
        content, offsets, attention = written.content, written.offsets, {"encoder": weights}
        texts.append(Text(f"text {number}", words, content, offsets, None, {"encoder": side}, links, (), attention))
    examples = [Example(f"relation:{name}", CLEAR, place % count, 1, 1) for place, name in enumerate(RELATIONS)]
    return pack(texts, examples, {})


def measure_page(path: Path, open_page: Page) -> dict[str, float]:
    """Milliseconds until the page is drawn, and of each click and choice."""
    times: dict[str, list[float]] = {}
    for _ in range(REPEATS):
        open_page.goto("about:blank")
        open_page.goto(path.as_uri())
        open_page.locator('[aria-busy="true"]').first.wait_for(state="detached")
        times.setdefault("first drawing", []).append(open_page.evaluate(FIRST))
        times.setdefault("all drawn", []).append(
            open_page.evaluate("performance.getEntriesByName('built')[0].startTime")
        )
        for name, selector in CLICKS.items():
            open_page.evaluate(SHOW, selector)
            act = f"document.querySelector({selector!r})?.dispatchEvent(new MouseEvent('click', {{ bubbles: true }}))"
            times.setdefault(name, []).append(open_page.evaluate(TIME, act))
        point = f"document.querySelector({WORD!r}).dispatchEvent(new MouseEvent('mouseover', {{ bubbles: true }}))"
        times.setdefault("word that is pointed at", []).append(open_page.evaluate(TIME, point))
        for control, value in CHOICES.items():
            open_page.evaluate(SHOW, f"#{control}")
            choose = f"document.getElementById('{control}')"
            act = f"{choose}.value = '{value}'; {choose}.dispatchEvent(new Event('change'))"
            times.setdefault(f"{control}: {value}", []).append(open_page.evaluate(TIME, act))
        times.setdefault("frame of a scrolling matrix", []).append(open_page.evaluate(SCROLL))
        open_page.evaluate("location.hash = '#picture=lines'")
        times.setdefault("frame of scrolling lines", []).append(open_page.evaluate(SCROLL))
    return {name: statistics.median(values) for name, values in times.items()}


def main(atlases: list[Path]) -> None:
    """Print the size and the times of each page."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        pages = {str(atlas): (atlas / "atlas.html").resolve() for atlas in atlases}
        shapes = {"24 x 16": (24, 16, 25, 24), "32 x 32": (32, 32, 16, 24), "512 tokens": (2, 12, 512, 1)}
        for name, (layers, heads, tokens, count) in shapes.items():
            examples = make_texts(layers, heads, tokens, count)
            pages[name] = write_page(
                make_table(layers, heads), Path(folder) / f"{name}.html", examples=examples,
                distances=make_distances(layers, heads),
            )  # fmt: skip
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        for name, path in pages.items():
            window = browser.new_context(offline=True, bypass_csp=True).new_page()
            print(f"{name}: {path.stat().st_size / 1e6:.2f} MB")
            for what, milliseconds in measure_page(path, window).items():
                print(f"  {what}: {milliseconds:.0f} ms")
        browser.close()


if __name__ == "__main__":
    main([Path(each) for each in sys.argv[1:]])
