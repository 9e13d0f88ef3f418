"""An atlas in a notebook: the whole page in a frame, which follows its own links and saves its files."""

import html
import io
import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from IPython.core.formatters import DisplayFormatter
from PIL import Image

from headscope.commands.atlas.atlas_result import AtlasResult
from headscope.corpora.written_text import join_words
from headscope.errors import HeadscopeError
from headscope.examples import pack
from headscope.view.figures.draw_heatmaps import draw_score_heatmap
from headscope.view.notebook import frame_page, make_widget
from headscope.view.page import Live, describe_text, render_page, write_page
from view.parsed import OpenPage
from view.screen import open_tab, settle
from view.tables import head_table
from view.test_sentences import ROW, draw, make_text


def show(open_page: OpenPage, text: str):
    page = open_page(f"<!doctype html><h1>Notebook</h1>{frame_page(text, 'Head atlas')}")
    frame = page.frames[1]
    frame.locator("#answer-name").wait_for()
    return page, frame


def test_an_atlas_shows_its_page(tmp_path: Path) -> None:
    table = head_table()
    page = write_page(table, tmp_path / "atlas.html")
    shown = AtlasResult(table, {}, None, tmp_path, ("atlas.html",))._repr_html_()
    assert shown.startswith("<iframe title='Head atlas of tiny/bert' sandbox='allow-scripts allow-downloads'")
    (content,) = re.findall(r"srcdoc='([^']*)'", shown)
    assert html.unescape(content) == page.read_text(encoding="utf-8")


def test_a_figure_is_shown_where_it_is_the_value_of_a_cell() -> None:
    """IPython asks for `_repr_png_`, and its own way of showing figures knows those of pyplot alone."""
    figure = draw_score_heatmap(head_table(), row="obj")
    shown, _ = DisplayFormatter().format(figure)
    with Image.open(io.BytesIO(shown["image/png"])) as picture:
        assert picture.size == pytest.approx(figure.get_size_inches() * 100, abs=1)
        assert len(picture.convert("RGB").getcolors(maxcolors=1 << 20) or []) > 100


OBJECTS = (": object → its verb", ": verb → its object")
ARTICLES = (": article → its noun", ": noun → its article")


def test_the_page_works_in_a_frame(open_page: OpenPage) -> None:
    page, frame = show(open_page, draw())
    address = page.url
    frame.locator("#search").fill("obj")
    frame.locator("#search").press("Enter")
    settle(page)
    assert frame.locator("#answer-name").text_content().endswith(OBJECTS)
    open_tab(frame, "sentence")
    frame.locator("#text").select_option("2")
    frame.locator("#sentence-picture svg text").first.wait_for()
    frame.locator(".summary a").first.evaluate("(link) => link.click()")
    assert frame.locator("#reported").is_visible(), "the frame still has the page"
    frame.locator("#reported-rows tbody a").nth(2).click()
    assert frame.locator("#answer-name").text_content().endswith(ARTICLES)
    open_tab(frame, "export")
    with page.expect_download() as download:
        frame.locator("#export-grid-csv").click()
    assert download.value.suggested_filename.endswith(".csv")
    assert page.url == address


@pytest.mark.parametrize("hostile", ["'><script>alert(1)</script>", "&#39;><img src=x onerror=alert(1)>"])
def test_no_name_gets_out_of_the_frame(open_page: OpenPage, hostile: str) -> None:
    text = render_page(head_table(relations=("nsubj", hostile, "nsubj:pass"), model=hostile), figures={})
    page = open_page(f"<!doctype html>{frame_page(text, hostile)}")
    assert page.locator("script, img").count() == 0
    assert page.locator("iframe").get_attribute("title") == hostile
    page.frames[1].locator("#variable").select_option(f"relation:{hostile}")
    assert page.frames[1].locator("#answer-name").inner_text().endswith(f": {hostile}")


def test_the_row_of_the_answer_can_be_followed(open_page: OpenPage) -> None:
    page, frame = show(open_page, draw())
    frame.locator("#variable").select_option(ROW)
    frame.locator("#grid button").nth(3).click()
    frame.locator("#answer-link").click()
    settle(page)
    assert frame.locator("#answer-row").inner_text().startswith(("Yes", "No", "Cannot say"))


HOST = """<!doctype html><div id="cell"></div>"""
START = """async ([script, values]) => {
    const listeners = new Set();
    window.model = {
        get: (name) => values[name],
        on: (_, listener) => listeners.add(listener),
        off: (_, listener) => listeners.delete(listener),
        send: async (content) => {
            for (const reply of await deliver(content)) listeners.forEach((listener) => listener(reply));
        },
    };
    const { default: widget } = await import("data:text/javascript;base64," + btoa(script));
    window.drop = widget.render({ model, el: document.getElementById("cell") });
    window.listeners = listeners;
}"""


def answer_for_test(name: str, question: Any) -> Any:
    """A text for some words, and a refusal for none."""
    if name != "attention" or not question["text"].strip():
        raise HeadscopeError("the text is empty; type some words.")
    words = tuple(question["text"].split())
    return {"text": describe_text(make_text("typed", words)), "note": f"{len(words)} words."}


def test_a_page_in_a_widget_asks_the_kernel(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    live = render_page(head_table(relations=("nsubj", "obj", "det")), figures={}, live=Live("", 512))
    widget = make_widget(live, "Head atlas", answer_for_test)
    sent: list[Any] = []
    monkeypatch.setattr(widget, "send", sent.append)

    def deliver(content: Any) -> list[Any]:
        sent.clear()
        widget._handle_custom_msg(content, [])
        return json.loads(json.dumps(sent))

    page = open_page(HOST)
    page.expose_function("deliver", deliver)
    page.evaluate(START, [widget._esm, {"page": widget.page, "title": widget.title, "height": widget.height}])
    frame = page.frames[1]
    frame.locator("#live-text").fill("the dog sees")
    frame.locator("#live-text").press("Enter")
    frame.locator("#live-note", has_text="3 words.").wait_for()
    words = frame.locator("#sentence-table tbody th")
    words.last.wait_for(state="attached")  # the table is drawn after the note
    assert words.all_text_contents() == ["[CLS]", "the", "dog", "sees", "[SEP]"]
    frame.locator("#live-text").fill(" ")
    frame.locator("#live-text").press("Enter")
    frame.locator("#live-note", has_text="the text is empty; type some words.").wait_for()
    sent.clear()  # what another frame posts is no question of the page
    page.evaluate("postMessage({ id: '1', name: 'attention', question: { text: 'a' } }, '*')")
    settle(page)
    assert sent == []
    page.evaluate("drop()")
    assert page.evaluate("listeners.size") == 0


HOLD = """([script, values]) => {
    const listeners = new Set();
    window.questions = [];
    window.reply = (answer) => listeners.forEach((listener) => listener({ id: questions.at(-1).id, answer }));
    const model = {
        get: (name) => values[name], on: (_, listener) => listeners.add(listener), off: () => {},
        send: (content) => questions.push(content),
    };
    return import("data:text/javascript;base64," + btoa(script)).then(({ default: widget }) => {
        widget.render({ model, el: document.getElementById("cell") });
    });
}"""
"""Keeps questions back until the test replies."""


def test_an_answer_is_of_what_was_asked_whatever_the_reader_does_meanwhile(open_page: OpenPage) -> None:
    words = ("a", "dog", "sees", "cats")
    texts = [replace(make_text("pair", words), boundary=2), make_text("other", ("dogs", "walk"))]
    table = head_table(relations=("nsubj", "obj", "det"))
    live = render_page(table, figures={}, examples=pack(texts, (), {}), live=Live("", 512))
    page = open_page(HOST)
    widget = make_widget(live, "Head atlas", answer_for_test)
    page.evaluate(HOLD, [widget._esm, {"page": live, "title": "", "height": 900}])
    frame = page.frames[1]
    open_tab(frame, "sentence")
    frame.locator("#text").select_option("0")
    frame.locator("#grid button").nth(9).click()
    open_tab(frame, "what-if")
    written = join_words(words)
    asked = {
        "words": [*words], "content": written.content, "offsets": [[*each] for each in written.offsets], "boundary": 2,
        "random_tokens": [], "messages": [], "begun": False, "tokens": 10,
    }  # fmt: skip

    frame.locator("#what-if-add", has_text="2-3").click()
    frame.locator("#what-if-run").click()
    frame.locator("#grid button").nth(3).click()
    frame.locator("#what-if-add", has_text="1-4").click()
    page.wait_for_function("questions.length === 1")
    assert page.evaluate("questions[0].question") == {**asked, "heads": ["2-3"], "how": "zero"}
    answer = {
        "measure": "loss", "note": "The text was cut.", "whole": 1, "without": 2, "placebos": [1, 1.5],
        "outcome": "", "likely": [],
    }  # fmt: skip
    page.evaluate("(answer) => reply(answer)", answer)
    frame.locator("#what-if-value", has_text="Without 2-3. The text was cut. Loss: 1.000; without").wait_for()

    open_tab(frame, "sentence")
    frame.locator("#neurons-from").select_option("4")
    frame.locator("#neurons-run").click()
    frame.locator("#grid button").nth(5).click()
    page.wait_for_function("questions.length === 2")
    assert page.evaluate("questions[1].question") == {
        **asked, "attention_type": "", "head": "1-4", "from": 4, "to": 1,
    }  # fmt: skip
    neurons = {"query": [1, 2], "key": [3, 4], "products": [3, 8], "score": 11, "weight": 0.5}
    page.evaluate("(answer) => reply(answer)", neurons)
    frame.locator("#neurons-value", has_text="Head 1-4, ##s \u2192 a: score 11.00").wait_for()

    frame.locator("#neurons-run").click()
    page.wait_for_function("questions.length === 3")
    frame.locator("#text").select_option("1")
    page.evaluate("(answer) => reply(answer)", neurons)
    frame.locator("#neurons[aria-busy]").wait_for(state="detached")
    assert frame.locator("#neurons-value").text_content() == ""


@pytest.mark.parametrize("content", [None, {}, {"id": 1, "name": "attention", "question": {}}, {"id": "1"}, [1]])
def test_what_is_no_question_gets_no_answer(content: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    widget = make_widget("", "", answer_for_test)
    sent: list[Any] = []
    monkeypatch.setattr(widget, "send", sent.append)
    widget._handle_custom_msg(content, [])
    assert sent == []


def test_without_anywidget_there_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anywidget", None)
    with pytest.raises(HeadscopeError) as refused:
        make_widget("", "", answer_for_test)
    assert str(refused.value) == (
        'the page as a widget needs anywidget, which is not installed; run pip install "headscope[notebook]".'
    )
