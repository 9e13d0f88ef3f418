"""The page fits one screen: verdict, sentence, grid and tabs; the sentence in all heads."""

import json
import re
from dataclasses import replace

import numpy as np
import playwright.sync_api as playwright
import pytest

from headscope.corpora.written_text import WrittenText
from headscope.examples import CLEAR, FAILS, Example, pack
from headscope.view.glosses import gloss_row
from headscope.view.page import render_page
from headscope.view.page.numbers import _find_opening
from view.parsed import OpenPage
from view.screen import find_cut, find_faults, open_tab, settle
from view.tables import head_table, with_verdicts
from view.test_sentences import HEADS, ROW, TEXTS, draw, make_text, words_by_hand
from view.test_thumbnails import PIXEL

ADDRESS = f"#variable={ROW}&head=2-3&text=0"
EXAMPLES = (Example(ROW, CLEAR, 2, 2.0, 2.0), Example(ROW, FAILS, 0, 0.0, 1.0))
LAYERS = 5


def stage_words(page: playwright.Page) -> list[str]:
    return page.locator("#stage text:not(.count)").all_text_contents()


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (1280, 720)])
@pytest.mark.parametrize("heads", [(5, 7), (12, 12), (31, 37)])
def test_nothing_is_cut_and_the_page_does_not_scroll(
    open_page: OpenPage, width: int, height: int, heads: tuple[int, int]
) -> None:
    words = ("a", "rather", "long", "sentence", ",", "as", "somebody", "might", "write", "one", "on", "a", "Sunday")
    text = make_text("long", (*words, *words), ((3, 1, "obj"),), size=heads)
    table = head_table(*heads, relations=("nsubj", "obj", "det"))
    about = {"long_name": "a number with many digits", "units": "nats", "source": "somebody"}
    table["own"] = (table["entropy"] - 123).assign_attrs(about)
    page = open_page(render_page(table, figures={}, examples=pack([text], (), {})), address=ADDRESS)
    page.set_viewport_size({"width": width, "height": height})
    for variable in (ROW, "entropy", "own", "relation:nsubj"):
        page.locator("#variable").select_option(variable)
        settle(page)
        assert find_faults(page) == []
        assert [word for word in stage_words(page) if word != "…"][1:-1] == [*words, *words]


@pytest.mark.parametrize("count", [41, 53])
def test_a_long_sentence_has_flatter_arcs_before_it_scrolls(open_page: OpenPage, count: int) -> None:
    words = tuple(f"word{number}" for number in range(count))
    text = make_text("long", words, tuple((place, (7 * place) % count, "obj") for place in range(1, count)))
    page = open_page(draw(texts=[text]), address=f"#variable={ROW}&head=2-3&text=0")
    page.set_viewport_size({"width": 1280, "height": 720})
    settle(page)
    assert find_faults(page) == []


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (1280, 720)])
def test_a_page_that_awaits_the_untrained_model_says_so_on_one_screen(
    open_page: OpenPage, width: int, height: int
) -> None:
    table = with_verdicts(head_table(), "not yet", "does not stand out", "").assign_attrs(awaited="the untrained model")
    page = open_page(render_page(table, figures={}, examples=pack(TEXTS, (), {})), address="#variable=relation:nsubj")
    page.set_viewport_size({"width": width, "height": height})
    settle(page)
    assert find_faults(page) == []
    note = page.locator("#awaited")
    assert note.inner_text().startswith("The untrained model is still to be measured: a verdict that needs it is")
    assert note.bounding_box()["y"] + note.bounding_box()["height"] <= height
    page.keyboard.press("Home")
    settle(page)
    assert page.locator("#answer-badge").inner_text() == "not yet"
    assert page.locator("#answer-row").inner_text().startswith("Not yet. Head ")
    assert (
        "1 of 2 relations has a head that beats every rule and chance. Whether"
        in page.locator("#panel-answers").inner_text()
    )


def test_the_verdict_comes_first_with_bars_of_the_same_numbers(open_page: OpenPage) -> None:
    table = with_verdicts(head_table(), "does not stand out", "does not stand out", "")
    row = table.sel(relation="obj")
    head = f"{int(row['reported_layer'])}-{int(row['reported_head'])}"
    page = open_page(render_page(table, figures={}), address="#variable=entropy")
    page.locator("#search").fill("obj")
    page.keyboard.press("Enter")
    settle(page)
    assert page.locator("#answer-badge").inner_text() == "○ does not stand out"
    labels, values = (page.locator(f"#answer-bars > :nth-child(3n+{place})").all_inner_texts() for place in (1, 3))
    assert labels[0] == f"head {head}"
    assert labels[-1] == "untrained model"
    count = f"{int(row['heldout_count']):,}"
    assert values[0] == f"{100 * float(row['heldout_accuracy']):.0f}\u202f% of {count}"
    assert values[-1] == f"{100 * float(row['untrained_accuracy']):.0f}\u202f%"
    widths = page.locator("#answer-bars .value").evaluate_all("(bars) => bars.map((bar) => bar.style.width)")
    shares = [float(row["heldout_accuracy"]), float(row["untrained_accuracy"])]
    assert [float(widths[place].rstrip("%")) for place in (0, -1)] == pytest.approx([100 * x for x in shares], abs=0.06)


def test_arcs_lead_to_the_largest_other_weight_and_are_marked_right_or_wrong(open_page: OpenPage) -> None:
    page = open_page(draw(examples=EXAMPLES), address=ADDRESS)
    words, weights = TEXTS[0].words, words_by_hand(TEXTS[0], 2, 3)[1:-1, 1:-1]
    np.fill_diagonal(weights, -1)
    wanted = {
        f"{words[place]} → {words[int(row.argmax())]}": pytest.approx(100 * row.max(), abs=0.51)
        for place, row in enumerate(weights)
        if row.max() >= 0.1
    }
    arcs = dict(title.split(": ") for title in page.locator("#stage path title").all_text_contents())
    assert {arc: float(share.rstrip("\u202f%")) for arc, share in arcs.items()} == wanted
    right = int(weights[5].argmax()) == 3
    assert page.locator("#stage text.right, #stage text.wrong").all_text_contents() == ["cat"]
    assert page.locator("#stage text.right").count() == int(right)
    assert page.locator("#stage-about").inner_text().startswith(f"{int(right)} of 1 right in this sentence.")
    marks = page.locator("#chips button").all_inner_texts()
    assert [mark.split()[0] for mark in marks] == ["1", "2", "3"]
    assert page.locator('#chips [aria-pressed="true"]').inner_text().startswith("2")


def test_keys_lead_everywhere(open_page: OpenPage) -> None:
    page = open_page(draw(examples=EXAMPLES), address=ADDRESS)
    for key, part in (("ArrowDown", "head=3-3"), ("ArrowRight", "head=3-4"), ("2", "text=0"), ("1", "text=2")):
        page.keyboard.press(key)
        settle(page)
        assert part in page.url
    page.keyboard.press("]")
    settle(page)
    assert ROW not in page.url.replace("%3A", ":")
    page.keyboard.press("[")
    settle(page)
    assert ROW in page.url.replace("%3A", ":")
    page.keyboard.press("a")
    settle(page)
    assert page.locator("#all").is_visible()
    assert page.locator("#specimen").is_hidden()
    page.keyboard.press("Escape")
    settle(page)
    assert page.locator("#specimen").is_visible()
    page.keyboard.press("d")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.keyboard.press("p")
    assert page.locator("#more").is_hidden()
    page.keyboard.press("p")
    page.keyboard.press("?")
    assert page.locator("#key-list").is_visible()


def test_a_chosen_sentence_keeps_the_focus(open_page: OpenPage) -> None:
    page = open_page(draw(examples=EXAMPLES), address=ADDRESS)
    page.locator("#chips button").nth(2).focus()
    page.keyboard.press("Enter")
    settle(page)
    assert page.evaluate("document.activeElement.getAttribute('aria-pressed')") == "true"
    assert page.evaluate("document.activeElement.textContent")[0] == "3"


def test_the_sentence_in_all_heads_has_the_weights_of_its_tokens(open_page: OpenPage) -> None:
    page = open_page(draw(), address=f"{ADDRESS}&mode=all")
    weights = TEXTS[0].weights["encoder"]
    layers, heads, queries, keys = weights.shape
    box = page.locator("#all-picture").bounding_box()
    assert box is not None
    edge, gap = 26, 3
    width, height = (box["width"] - edge) / heads, (box["height"] - edge) / layers
    luminances, shares = [], []
    for layer, head, query, key in [(0, 0, 1, 2), (4, 6, 3, 0), (2, 3, 5, 5), (1, 5, 0, 7), (3, 1, 6, 1)]:
        x = edge + head * width + (key + 0.5) * (width - gap) / keys
        y = edge + layer * height + (query + 0.5) * (height - gap) / queries
        pixel = page.evaluate(PIXEL, ["all-picture", round(x), round(y)])
        luminances.append(sum(pixel[:3]))
        shares.append(int(weights[layer, head, query, key]))
    # The darker, the more: the order of the colours is that of the weights.
    order = np.argsort(shares, kind="stable")
    assert (np.diff(np.array(luminances)[order]) <= 0).all()
    assert len({*shares}) > 2
    page.locator("#all-picture").click(position={"x": edge + 4.5 * width, "y": edge + 1.5 * height})
    settle(page)
    assert "head=2-5" in page.url
    assert page.locator("#all").is_hidden()


def test_an_address_that_names_nothing_says_so(open_page: OpenPage) -> None:
    page = open_page(draw(), address="#variable=entropy&head=9-9")
    sentence = "There is no head 9-9: this model has 5 layers of 7 heads, counted from 1. Shown instead: "
    assert page.locator("#notice").inner_text().startswith(sentence)
    page.keyboard.press("ArrowDown")
    assert page.locator("#notice").inner_text() == ""
    page = open_page(draw(), address="#variable=relation:nothing&head=2-3")
    assert page.locator("#notice").inner_text() == "This page has no relation:nothing. Shown instead: relation:nsubj."


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("他们昨天没有来。", ("他们", "昨天", "没有", "来", "。")),
        ("لم يأتوا أمس.", ("لم", "يأتوا", "أمس", ".")),
        ("😀 <b>fett</b> 😀", ("😀", "<b>fett</b>", "😀")),
        ("Wort", ("Wort",)),
    ],
)
def test_other_scripts_are_whole(open_page: OpenPage, content: str, words: tuple[str, ...]) -> None:
    offsets, end = [], 0
    for word in words:
        start = content.index(word, end)
        offsets.append((start, end := start + len(word)))
    written = WrittenText(content, offsets)
    text = replace(make_text("script", words), content=written.content, offsets=written.offsets)
    page = open_page(draw([text]), address=f"#variable={ROW}&head=2-3&text=0")
    assert stage_words(page)[1:-1] == [*words]
    assert find_cut(page) == []
    places = page.locator("#stage .target").evaluate_all("(all) => all.map((each) => Number(each.getAttribute('x')))")
    ordered = sorted(places, reverse=content.startswith("لم"))
    assert places == ordered


@pytest.mark.full
def test_a_text_of_three_thousand_words_can_be_read(open_page: OpenPage) -> None:
    text = make_text("long", tuple(f"w{place}" for place in range(255)))
    page = open_page(draw([text]), address=ADDRESS)
    assert len(stage_words(page)) == 257
    page.locator('#stage [data-unit="3"]').click()
    settle(page)
    assert page.url.endswith("&word=3")


def test_tabs_can_be_reached_with_keys_and_are_in_the_address(open_page: OpenPage) -> None:
    page = open_page(draw(), address=ADDRESS)
    page.locator("#tab-answers").focus()
    page.keyboard.press("ArrowRight")
    settle(page)
    assert page.locator("#panel-sentence").is_visible()
    assert "tab=sentence" in page.url
    page.keyboard.press("End")
    settle(page)
    assert page.locator("#panel-source").is_visible()
    open_tab(page, "answers")
    assert "tab=" not in page.url


def test_a_sheet_of_paper_is_enough(open_page: OpenPage) -> None:
    page = open_page(draw(examples=EXAMPLES), address=ADDRESS)
    pdf = page.pdf(format="A4", landscape=True, print_background=True)
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) == 1


def test_all_names_of_heads_are_in_the_legend(open_page: OpenPage) -> None:
    names = ["", *(f"role {number}" for number in range(1, 8))]
    codes = np.arange(LAYERS * HEADS).reshape(LAYERS, HEADS) % 8
    about = {"long_name": "main role", "units": "label", "source": "somebody", "names": json.dumps(names)}
    table = head_table().assign(own_role=(("layer", "head"), codes, about | {"title": "main role"}))
    page = open_page(render_page(table, figures={}), address="#variable=own_role&head=2-3")
    assert {*page.locator("#legend b").all_inner_texts()} == {*names[1:]}
    assert find_faults(page) == []


def test_names_of_heads_have_colours_of_their_own_and_are_counted(open_page: OpenPage) -> None:
    table = head_table()
    codes = np.zeros((LAYERS, HEADS), dtype=int)
    codes[1, 2], codes[4, 4:] = 2, 1
    about = {"long_name": "main role", "units": "label", "source": "somebody", "names": '["", "rests", "looks back"]'}
    page = open_page(
        render_page(table.assign(own_role=(("layer", "head"), codes, about | {"title": "main role"})), figures={}),
        address="#variable=own_role&head=2-3",
    )
    titles = {button.get_attribute("title") for button in page.locator("#grid button").all()}
    assert {"2-3: looks back", "5-5: rests", "5-7: rests", "1-1: none"} <= titles
    assert page.locator("#legend b").all_inner_texts() == ["rests", "looks back"]
    assert page.locator("#legend").inner_text().endswith("rests 3 looks back 1")
    assert page.locator("#scale").is_hidden()
    assert page.locator("#answer-row").inner_text() == "main role: looks back, as 1 of 35 heads."
    colours = page.locator("#grid button").evaluate_all("(all) => all.map((each) => each.style.backgroundColor)")
    assert len({*colours}) == 3


def test_the_page_of_a_decoder_opens_on_the_rarer_roles() -> None:
    table = head_table()
    lift = np.full((LAYERS, HEADS, 2), 0.1)
    lift[0, 0, 0], lift[3, 1, 1] = 0.9, 0.7
    has, main = np.ones_like(lift), np.ones((LAYERS, HEADS), dtype=int)
    main[3, 1] = 2
    about = {"long_name": "a number", "units": "share", "source": "somebody"}
    names = about | {"names": '["none", "rests", "looks back"]'}
    table = table.assign_coords(role=["rests", "looks back"]).assign(
        head_role=(("layer", "head"), main, names),
        head_role_lift=(("layer", "head", "role"), lift, about),
        head_role_has=(("layer", "head", "role"), has, about),
    )
    assert _find_opening(table, []) == "variable=head_role&head=4-2"
    only = table.assign(head_role_has=table["head_role_has"].where(table["role"] == "rests", 0))
    assert _find_opening(only, []) == "variable=head_role&head=1-1"
    assert _find_opening(head_table(), []) == ""


def test_back_from_a_head_arcs_come_from_the_word_that_attends_most(open_page: OpenPage) -> None:
    page = open_page(draw(), address=f"{ADDRESS}&direction=head_to_dependent")
    words, weights = TEXTS[0].words, words_by_hand(TEXTS[0], 2, 3)[1:-1, 1:-1]
    np.fill_diagonal(weights, -1)
    wanted = {
        f"{words[int(column.argmax())]} → {words[place]}": pytest.approx(100 * column.max(), abs=0.51)
        for place, column in enumerate(weights.T)
        if column.max() >= 0.1
    }
    arcs = dict(title.split(": ") for title in page.locator("#stage path title").all_text_contents())
    assert {arc: float(share.rstrip("\u202f%")) for arc, share in arcs.items()} == wanted
    right = int(weights[:, 5].argmax()) == 3
    assert page.locator("#stage text.right, #stage text.wrong").all_text_contents() == ["cat"]
    assert page.locator("#stage text.right").count() == int(right)


def test_another_direction_is_not_what_the_verdict_is_of(open_page: OpenPage) -> None:
    table = with_verdicts(head_table(), "does not stand out", "does not stand out", "")
    row = table.sel(relation="obj")
    head, reported = f"{int(row['reported_layer'])}-{int(row['reported_head'])}", row["reported_direction"].item()
    (other,) = {*table["direction"].values.tolist()} - {reported}
    page = open_page(render_page(table, figures={}), address=f"#variable={ROW}&direction={reported}&head={head}")
    assert page.locator("#answer-badge").inner_text() == "○ does not stand out"
    assert page.locator("#scale .base").inner_text().startswith("Mark on the scale: strongest rule, held out: ")
    page.locator("#direction").select_option(other)
    settle(page)
    assert page.locator("#scale .base").inner_text().startswith("Mark on the scale: best fixed offset ")
    assert page.locator("#answer-badge").inner_text() == "not the reported direction"
    title = gloss_row(ROW, reported).title
    assert page.locator("p:has(> #answer-link)").inner_text() == f"The verdict is on head {head}: {title}."
    claim = gloss_row(ROW, other).state("SHARE", int(row["relation_count"])).partition("SHARE")[0]
    assert page.locator("#answer-row").inner_text().startswith(f"It {claim}")
    value = float(row["relation_accuracy"].sel(direction=other, layer=row["reported_layer"], head=row["reported_head"]))
    assert page.locator("#answer-bars > :nth-child(3)").inner_text() == f"{100 * value:.0f}\u202f%"


def test_the_way_back_closes_what_was_opened_since(open_page: OpenPage) -> None:
    page = open_page(draw(), address=f"{ADDRESS}&tab=sentence")
    page.keyboard.press("]")
    page.keyboard.press("a")
    settle(page)
    assert page.locator("#all").is_visible()
    page.go_back()
    settle(page)
    assert page.locator("#all").is_hidden()
    assert page.locator("#panel-sentence").is_visible()


def test_the_grid_can_be_of_the_half_that_scores_are_of(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headscope.view.page.numbers.score_held_out", lambda table, score: table[score.variable] / 2)
    table = head_table()
    page = open_page(render_page(table, figures={}), address=f"#variable={ROW}&direction=dependent_to_head&head=2-3")
    value = table["relation_accuracy"].sel(relation="obj", direction="dependent_to_head", layer=2, head=3).item()
    chosen = page.locator('#grid [aria-pressed="true"]')
    assert chosen.get_attribute("title") == f"2-3: {value:.3f}"
    page.locator("#half").select_option("held-out half")
    settle(page)
    assert "half=held-out" in page.url
    assert float(chosen.get_attribute("title").split(": ")[1]) == pytest.approx(value / 2, abs=6e-4)
    page.locator("#variable").select_option("entropy")
    assert page.locator("#half").is_hidden()
