"""The texts on the page, in a browser: words, weights, gold links, and what their words may hold."""

import re
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from headscope.corpora.written_text import join_words
from headscope.examples import CLEAR, FAILS, READS, STEPS, Example, Item, Judged, Side, Text, pack
from headscope.view.page import render_page
from view.parsed import Browse, OpenPage, Page
from view.screen import settle
from view.tables import STACKS, head_table

LAYERS, HEADS = 5, 7
HOSTILE = ("</script><script>alert(1)</script>", "<img src=x onerror=alert(2)>", "שלום", "🙂", "x" * 300, "\x00\x1b")
ROW = "relation:obj"
TITLES = {"dependent_to_head": "object → its verb", "head_to_dependent": "verb → its object"}


def make_text(
    name: str, words: tuple[str, ...], links: tuple[tuple[int, int, str], ...] = (), seed: int = 0,
    types: tuple[str, ...] = ("encoder",), size: tuple[int, int] | None = None,
) -> Text:  # fmt: skip
    """A text of which every word has two tokens, between [CLS] and [SEP], with random attention."""
    draw = np.random.default_rng(seed)
    read = Side(
        ("[CLS]", *(piece for word in words for piece in (word, "##s")), "[SEP]"),
        (-1, *(place for place in range(len(words)) for _ in range(2)), -1),
    )
    sides = {"encoder": read, "decoder": Side(("<s>", *read.tokens), (-1, *read.token_words))}
    weights = {}
    for kind in types:
        queries, keys = (len(sides[side].tokens) for side in READS[kind])
        shares = draw.dirichlet(np.full(keys, 0.1), (*(size or (STACKS[kind], HEADS)), queries))
        weights[kind] = np.rint(shares * STEPS).astype(np.uint8)
    written = join_words(words)
    return Text(name, words, written.content, written.offsets, None, sides, links, (), weights)


TEXTS = [
    make_text("first", ("the", "old", "dog", "sees", "a", "cat"), ((2, 3, "nsubj"), (5, 3, "obj"), (0, 2, "det"))),
    make_text("second", ("cats", "walk"), seed=1),
    make_text("third", ("dogs", "see", "cats", "now"), ((2, 1, "obj"), (3, 1, "obj")), seed=2),
]


def draw(texts: list[Text] = TEXTS, examples: tuple[Example, ...] = (), attention_types: bool = False) -> str:
    if attention_types:
        texts = [make_text(text.id, text.words, text.links, 7, tuple(STACKS)) for text in texts]
    table = head_table(attention_types=attention_types, relations=("nsubj", "obj", "det"))
    return render_page(table, figures={}, examples=pack(texts, examples, {}))


def words_by_hand(text: Text, layer: int, head: int, kind: str = "encoder") -> np.ndarray:
    """Attention between special tokens and words, loop by loop."""
    first = {"encoder": 0, "decoder": 1}  # the decoder begins with a token more
    sides = [
        [*([place] for place in range(first[side] + 1)),
         *([start, start + 1] for start in range(first[side] + 1, first[side] + 2 * len(text.words), 2)),
         [first[side] + 2 * len(text.words) + 1]]
        for side in READS[kind]
    ]  # fmt: skip
    weights = text.weights[kind][layer - 1, head - 1].astype(int)
    by_word = np.zeros([len(side) for side in sides])
    for row, queries in enumerate(sides[0]):
        for column, keys in enumerate(sides[1]):
            by_word[row, column] = sum(weights[q, k] for q in queries for k in keys) / len(queries) / STEPS
    return by_word


def rows(page: Page) -> list[tuple[str, str, str]]:
    """The table of the text that is shown: word, what it attends to, gold."""
    (table,) = [
        place for place, (tag, attributes, _) in enumerate(page.elements) if attributes.get("id") == "sentence-table"
    ]
    cells: list[list[str]] = []
    for tag, attributes, text in page.elements[table + 1 :]:
        if tag == "table":
            break
        if tag == "tr":
            cells.append([])
        elif tag in ("th", "td") and attributes.get("scope") != "col":
            cells[-1].append("".join(text))
    return [(row[0], row[1], row[2]) for row in cells if len(row) == 3]


def text_of(page: Page, name: str) -> str:
    return next("".join(text) for _, attributes, text in page.elements if attributes.get("id") == name)


def classes(page: Page, tag: str) -> list[str]:
    return [attributes.get("class") or "" for attributes, _ in page.find(tag) if "data-from" in attributes]


def test_the_words_attend_as_much_as_by_hand(browse: Browse) -> None:
    page = browse(draw(), address="#variable=relation:obj&head=2-3&text=0")
    by_word = words_by_hand(TEXTS[0], 2, 3)
    names = ["[CLS]", *TEXTS[0].words, "[SEP]"]
    assert [row[0] for row in rows(page)] == names
    for (_, attends, _), weights in zip(rows(page), by_word, strict=True):
        shown = re.findall(r"(\S+) (\d+)\u202f%", attends)
        best = np.sort(weights)[::-1][:3]
        assert [int(percent) for _, percent in shown] == pytest.approx(
            [100 * weight for weight in best if weight >= 0.01], abs=0.51
        )
        for name, percent in shown:
            assert 100 * weights[names.index(name)] == pytest.approx(int(percent), abs=0.51)
    assert classes(page, "line").count("weight") == (by_word >= 0.03).sum()


@pytest.mark.parametrize("direction", ["dependent_to_head", "head_to_dependent"])
def test_gold_links_are_right_as_the_score_counts_them(browse: Browse, direction: str) -> None:
    heads = [(layer, head) for layer in range(1, LAYERS + 1) for head in range(1, HEADS + 1)]
    outcomes = set()
    for layer, head in (heads[0], heads[13], heads[29]):
        page = browse(draw(), address=f"#variable={ROW}&direction={direction}&head={layer}-{head}&text=2")
        by_word = words_by_hand(TEXTS[2], layer, head)[1:-1, 1:-1]
        right = 0
        for source, target, _ in TEXTS[2].links:
            # The score's: the word that the dependent attends to most, or the word that attends most to it.
            weights = by_word[source] if direction == "dependent_to_head" else by_word[:, source]
            others = [weight for word, weight in enumerate(weights) if word != source]
            right += weights[target] == max(others) > 0
        about = text_of(page, "sentence-about")
        links = f"Dashed: annotated links of “{TITLES[direction]}”"
        assert f"{links}; head {layer}-{head} gets {right} of 2 right. An older version wrote" in about
        assert sum("gold" in name for name in classes(page, "line")) == 2
        assert sum("gold right" in name for name in classes(page, "line")) == right
        outcomes.add(right)
    assert len(outcomes) > 1


@pytest.mark.parametrize("direction", ["dependent_to_head", "head_to_dependent"])
def test_items_are_right_as_they_were_judged_and_not_as_the_weights_look(browse: Browse, direction: str) -> None:
    items = tuple(Item(source, (target,), (ROW,)) for source, target, _ in TEXTS[2].links)
    right = np.random.default_rng(11).integers(0, 4, (LAYERS, HEADS, len(items))).astype(np.uint8)
    bit = {"dependent_to_head": 1, "head_to_dependent": 2}[direction]
    text = replace(TEXTS[2], items=items, judged={"encoder": Judged(np.array([3, 1], dtype=np.uint8), right)})
    html = draw([text])
    for layer, head in ((1, 1), (2, 5), (5, 7)):
        page = browse(html, address=f"#variable={ROW}&direction={direction}&head={layer}-{head}&text=0")
        counting = 2 if bit == 1 else 1
        wanted = sum(bool(number & bit) for number in right[layer - 1, head - 1, :counting])
        about = text_of(page, "sentence-about")
        links = f"Dashed: annotated links of “{TITLES[direction]}”"
        assert about.endswith(f"{links}; head {layer}-{head} gets {wanted} of {counting} right.")
        assert sum("gold right" in name for name in classes(page, "line")) == wanted


def test_of_a_decoder_links_that_point_ahead_do_not_count(browse: Browse) -> None:
    links = ((2, 1, "obj"), (3, 1, "obj"), (0, 1, "obj"))
    text = make_text("causal", TEXTS[2].words, links, types=("decoder",))
    start = Side(text.sides["decoder"].tokens[1:], text.sides["decoder"].token_words[1:])
    weights = {"decoder": text.weights["decoder"][..., 1:, 1:]}
    text = replace(text, sides={"encoder": start, "decoder": start}, weights=weights)
    table = head_table(relations=("nsubj", "obj", "det"))
    html = render_page(table, figures={}, examples=pack([text], (), {}))
    for direction, count in (("dependent_to_head", 2), ("head_to_dependent", 1)):
        page = browse(html, address=f"#variable={ROW}&direction={direction}&head=2-3&text=0")
        assert re.search(rf"head 2-3 gets \d of {count} right", text_of(page, "sentence-about"))
        assert sum("gold" in name for name in classes(page, "line")) == count


def test_a_row_opens_its_clear_example_and_lists_its_failures(browse: Browse) -> None:
    examples = (Example(ROW, FAILS, 0, 0.0, 1.0), Example(ROW, CLEAR, 2, 2.0, 2.0))
    page = browse(draw(examples=examples), address=f"#variable={ROW}&head=2-3")
    assert [row[0] for row in rows(page)][1:-1] == list(TEXTS[2].words)
    title = TITLES["dependent_to_head"]
    groups = [str(attributes["label"]) for attributes, _ in page.find("optgroup")]
    assert [group for group in groups if title in group] == [
        f"{title}: the reported head does well", f"{title}: it does badly",
    ]  # fmt: skip
    other = browse(draw(examples=examples), address=f"#variable={ROW}&head=2-3&text=1")
    assert [row[0] for row in rows(other)][1:-1] == list(TEXTS[1].words)


def test_tokens_and_matrices_can_be_linked_to(browse: Browse) -> None:
    page = browse(draw(), address=f"#variable={ROW}&head=2-3&text=1&level=tokens&picture=matrix")
    assert [row[0] for row in rows(page)] == list(TEXTS[1].sides["encoder"].tokens)
    weights = TEXTS[1].weights["encoder"][1, 2]
    assert classes(page, "rect").count("cell") == (weights >= 1).sum()


def test_words_show_as_text_and_run_nothing(browse: Browse) -> None:
    text = make_text("hostile", HOSTILE)
    page = browse(draw([text]), address=f"#variable={ROW}&head=2-3&level=tokens")
    shown = [row[0] for row in rows(page)]
    assert shown[1] == HOSTILE[0]
    assert shown[3] == HOSTILE[1]
    assert shown[9] == HOSTILE[4]
    assert not page.find("img")
    labels = ["".join(text) for attributes, text in page.find("text") if "data-from" in attributes]
    assert all(len(label) < 330 for label in labels)


def test_arrow_keys_choose_the_word_that_attends(open_page: OpenPage) -> None:
    page = open_page(draw(), address=f"#variable={ROW}&head=2-3&text=0&tab=sentence")
    page.locator("#sentence-picture").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowUp", "ArrowDown"):
        page.keyboard.press(key)
    page = Page(page.content())
    word, attends, _ = rows(page)[1]
    assert text_of(page, "sentence-pointed") == f"{word} \u2192 " + (attends or "nothing above 1\u202f%")


def test_of_a_long_text_the_largest_weights_are_drawn_and_the_rest_is_said(browse: Browse) -> None:
    text = make_text("long", tuple(f"word{number}" for number in range(255)))
    page = browse(draw([text]), address=f"#variable={ROW}&head=2-3&level=tokens")
    assert len(rows(page)) == 512
    assert classes(page, "line").count("weight") == 400
    held = np.sort(text.weights["encoder"][1, 2].ravel().astype(int))[::-1][:400].sum() / STEPS / 512
    assert f"the 400 largest; they hold {100 * held:.0f}\u202f% of the attention." in text_of(page, "sentence-about")


@pytest.mark.parametrize("kind", [*STACKS])
def test_each_attention_type_has_its_own_words(open_page: OpenPage, kind: str) -> None:
    opened = open_page(
        draw(attention_types=True), address=f"#variable={ROW}&head=2-3&attention_type={kind}&text=2&picture=matrix"
    )
    text = make_text("third", TEXTS[2].words, TEXTS[2].links, 7, tuple(STACKS))
    by_word = words_by_hand(text, 2, 3, kind)
    page = Page(opened.content())
    starts = ["<s>"] if READS[kind][0] == "decoder" else []
    assert [row[0] for row in rows(page)] == [*starts, "[CLS]", *text.words, "[SEP]"]
    assert classes(page, "rect").count("cell") == (by_word >= 0.01).sum()
    first = 1 + len(starts)
    words = by_word[first:-1, -len(text.words) - 1 : -1]
    links = [(source, target) for source, target, label in text.links if label == "obj"]
    others = [[weight for word, weight in enumerate(words[source]) if word != source] for source, _ in links]
    right = sum(words[link] == max(other) > 0 for link, other in zip(links, others, strict=True))
    assert f"head 2-3 gets {right} of {len(links)} right" in text_of(page, "sentence-about")
    opened.evaluate("location.hash += '&picture=arcs'")
    settle(opened)
    arcs = opened.locator("#sentence-picture path.weight title").all_text_contents()
    wanted = []
    for word, row in enumerate(words):
        best = max((other for other in range(len(row)) if other != word), key=lambda other: row[other])
        if row[best] >= 0.03:
            wanted.append(f"{text.words[word]} \u2192 {text.words[best]}: {100 * row[best]:.0f}\u202f%")
    assert [arc.split(":")[0] for arc in arcs[::-1]] == [arc.split(":")[0] for arc in wanted]


def test_a_head_that_an_attention_type_lacks_is_said_to_be_missing(browse: Browse) -> None:
    page = browse(draw(attention_types=True), address=f"#variable={ROW}&head=5-3&attention_type=cross&text=0")
    assert text_of(page, "sentence-about") == "cross attention has no head 5-3."


def test_the_lines_of_several_heads_stand_beside_one_another(open_page: OpenPage) -> None:
    page = open_page(draw(), address=f"#variable={ROW}&head=2-3&text=0&tab=sentence")
    page.locator("#beside-add").click()
    page.locator('#grid button[data-layer="3"][data-head="5"]').click()
    settle(page)
    assert "beside=2-3" in page.url
    first, second = (words_by_hand(TEXTS[0], layer, head) for layer, head in ((4, 6), (2, 3)))
    weights = page.locator("#sentence-picture .weight")
    beside = page.locator("#sentence-picture .weight.beside-1")
    assert beside.count() == (second >= 0.03).sum()
    assert weights.count() - beside.count() == (first >= 0.03).sum()
    assert beside.locator("title").first.text_content().startswith("head 2-3, ")
    assert "of heads 4-6, 2-3." in page.locator("#sentence-about").inner_text()
    page.locator("#beside-heads button").click()
    settle(page)
    assert weights.count() == (first >= 0.03).sum()
    assert "beside" not in page.url


def test_a_page_without_texts_says_so_where_they_would_stand(open_page: OpenPage) -> None:
    page = open_page(render_page(head_table(), figures={}))
    assert page.locator("#sentence-absent").inner_text().startswith("This page has no texts. headscope atlas puts 50")
    for name in ("#sentence-parts", "#sentences-data", "#tab-sentence", "#tab-guess"):
        assert not page.locator(name).is_visible()
    assert "Sentence" not in page.locator("#tablist").inner_text()


def test_the_statistics_of_a_head_need_no_links(browse: Browse) -> None:
    page = browse(draw(), address="#variable=entropy&head=2-3&text=0")
    assert "gold" not in text_of(page, "sentence-about")
    assert not any("gold" in name for name in classes(page, "line"))


def test_damaged_examples_are_refused() -> None:
    dataset: xr.Dataset = pack(TEXTS, (), {}).isel(encoder_cell=slice(1, None))
    with pytest.raises(Exception, match="the examples are damaged"):
        render_page(head_table(), figures={}, examples=dataset)
