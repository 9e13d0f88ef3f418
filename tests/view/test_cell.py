"""What a cell of a notebook shows of an atlas: its page, as large as a notebook bears."""

import html
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from headscope.commands.atlas.atlas_result import AtlasResult
from headscope.examples import pack, unpack
from headscope.view import notebook
from headscope.view.notebook import LIMIT, Cell
from headscope.view.page import measure_texts, write_page
from view.tables import head_table
from view.test_sentences import make_text

LIVE = "is this page with the model behind it: type texts of your own there."
WORDS = ("dogs", "see", "cats", "and", "owls")


def make_atlas(texts: int, words: int, **attrs: str) -> AtlasResult:
    """An atlas with texts whose attention is noise, which cannot be packed; every third is twice as long."""
    random = np.random.default_rng(7)
    long = [make_text(f"t{place}", WORDS * (words * (2 if place % 3 == 0 else 1))) for place in range(texts)]
    noisy = [
        replace(text, weights={k: random.integers(0, 100, each.shape, np.uint8) for k, each in text.weights.items()})
        for text in long
    ]  # fmt: skip
    table = head_table()
    return AtlasResult(table.assign_attrs(attrs), {}, pack(noisy, (), {}), None, ())


def read_page(content: str) -> str:
    (page,) = re.findall(r"srcdoc='([^']*)'", content)
    return html.unescape(page)


def list_texts(content: str) -> list[str]:
    """The names of the texts in a page."""
    shown = re.search(r'id="sentences-data">(.*?)</script>', read_page(content))
    return [] if shown is None else [text["id"] for text in json.loads(shown[1])["texts"]]


def read_notes(content: str) -> str:
    return re.sub("<[^>]*>", "", content.rpartition("<p>")[2])


def test_a_small_page_is_shown_whole_and_says_where_the_model_is() -> None:
    atlas = make_atlas(3, 1)
    cell = atlas.show()
    assert read_page(cell.content) == atlas.render()
    assert cell._repr_html_() == atlas._repr_html_()
    assert read_notes(cell._repr_html_()) == f"headscope.explore(atlas).widget() {LIVE}"


def test_of_a_large_page_the_cell_has_as_many_texts_as_fit() -> None:
    atlas = make_atlas(31, 7)
    whole = len(atlas.show(whole=True).content.encode())
    assert whole > 1.5 * LIMIT
    cell = atlas.show()
    assert len(cell._repr_html_().encode()) <= LIMIT + 1000
    kept = list_texts(cell.content)
    assert 3 <= len(kept) < 31
    # The shortest ones, in their order; one more would not fit.
    sizes = measure_texts(atlas.examples)
    names = [text.id for text in unpack(atlas.examples)[0]]
    assert kept == [name for name in names if name in kept]
    others = [sizes[names.index(name)] for name in names if name not in kept]
    assert max(sizes[names.index(name)] for name in kept) <= min(others)
    assert len(cell.content.encode()) + 1.2 * min(others) > LIMIT
    assert read_notes(cell._repr_html_()) == (
        f"Without figures and {31 - len(kept)} of 31 texts, so that the notebook stays small. .show(whole=True) shows "
        f"all of it: {whole / 1e6:.1f} MB. headscope.explore(atlas).widget() {LIVE}"
    )
    assert list_texts(atlas.show(whole=True).content) == names


def test_figures_are_left_out_first(tmp_path: Path) -> None:
    atlas = make_atlas(3, 1)
    figures = {"A figure": f"<svg><!--{'x' * LIMIT}--></svg>"}
    write_page(atlas.table, tmp_path / "atlas.html", figures=figures, examples=atlas.examples)
    written = replace(atlas, folder=tmp_path)
    cell = written.show()
    assert read_page(cell.content) == atlas.render()
    assert cell.notes[0] == (
        "Without figures, so that the notebook stays small. `.show(whole=True)` shows all of it, as "
        f"{tmp_path / 'atlas.html'} does: {len(written.show(whole=True).content) / 1e6:.1f} MB."
    )
    assert cell.notes[1] == f'`headscope.explore("{tmp_path}").widget()` {LIVE}'
    assert "A figure" in read_page(written.show(whole=True).content)


@pytest.mark.parametrize(("limit", "shown"), [(0, "<table>"), (1, "<iframe")])
def test_a_page_that_is_too_large_without_texts_is_named(
    limit: int, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    atlas = make_atlas(5, 1)
    bare = len(replace(atlas, examples=None).show().content.encode())
    monkeypatch.setattr(notebook, "LIMIT", limit and bare)
    cell = atlas.show()
    assert cell.content.startswith(shown)
    assert list_texts(cell.content) == [] if limit else "tiny/bert" in cell.content
    without = (
        "Without figures and texts, so that the notebook stays small."
        if limit
        else "The page is too large for a notebook."
    )
    assert cell.notes[0].startswith(f"{without} `.show(whole=True)` shows all of it: ")


def test_notes_are_text() -> None:
    cell = Cell("a", "<i></i>", ("`<b>` & so on.",))
    assert cell._repr_html_() == "<i></i><p><code>&lt;b&gt;</code> &amp; so on.</p>"
    assert repr(cell) == "Cell('a', 7 bytes)"
