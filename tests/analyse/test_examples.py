"""Which texts are examples: a naive loop over links, planted texts, and the limit on their number."""

import numpy as np
import pytest

from analyse.tables import RELATIONS, Text, head_table, texts, with_other_hits
from headscope.analyse import add_report
from headscope.analyse.chosen_examples import Scored, choose_examples, score_reported
from headscope.corpora.document import Document
from headscope.examples import CLEAR, FAILS


@pytest.mark.parametrize("seed", [37, 41])
def test_scores_of_texts_are_what_a_loop_over_their_links_gives(seed: int) -> None:
    draw = np.random.default_rng(seed)
    corpus = texts(draw)
    table = add_report(head_table(corpus, RELATIONS), head_table(with_other_hits(corpus, draw), RELATIONS), minimum=1)
    apart = [Text(fold, text.links) for fold, text in enumerate(corpus[:13])]
    documents = [Document(f"text {place}", ("word",) * (place + 1)) for place in range(13)]
    scored = score_reported(table, head_table(apart, RELATIONS), documents)
    directions = [str(direction) for direction in table["direction"].values]
    for place, (text, scores) in enumerate(zip(apart, scored, strict=True)):
        naive = {}
        for name in RELATIONS:
            row, links = table.sel(relation=name), text.links[name]
            if not len(links.hits) or not row["reported_layer"] > 0:
                continue
            layer, head = int(row["reported_layer"]) - 1, int(row["reported_head"]) - 1
            direction = directions.index(str(row["reported_direction"].values))
            right = float(sum(bool(hit[layer, head, direction]) for hit in links.hits))
            naive[f"relation:{name}"] = Scored(f"text {place}", right, float(len(links.hits)), place + 1)
        assert scores == naive


def one(text: str, right: float, count: float, words: int = 7, row: str = "relation:obj") -> dict[str, Scored]:
    return {row: Scored(text, float(right), float(count), words)}


def names(chosen: list) -> list[tuple[str, str]]:
    return [(each.kind, each.scored.text) for each in chosen]


def test_the_clearest_has_most_right_of_most_and_is_short() -> None:
    texts = [one("few", 1, 1), one("long", 3, 3, 17), one("short", 3, 3), one("half", 3, 6), one("none", 0, 3)]
    chosen = choose_examples(texts, ["relation:obj"], 100, each=5)
    assert names(chosen) == [
        (CLEAR, "short"), (FAILS, "none"), (CLEAR, "long"), (FAILS, "half"), (CLEAR, "few"), (CLEAR, "half"),
    ]  # fmt: skip


def test_where_all_is_right_nothing_fails_and_where_nothing_is_right_nothing_is_clear() -> None:
    assert names(choose_examples([one("all", 2, 2)], ["relation:obj"], 7)) == [(CLEAR, "all")]
    assert names(choose_examples([one("none", 0, 2)], ["relation:obj"], 7)) == [(FAILS, "none")]


def test_there_are_no_more_texts_than_asked_for_and_rows_come_in_turn() -> None:
    rows = [f"relation:{number}" for number in range(5)]
    texts = [one(f"{row} {number}", number, 10, row=row) for row in rows for number in range(11)]
    chosen = choose_examples(texts, rows, 7)
    assert len({each.scored.text for each in chosen}) == 7
    assert [each.row for each in chosen] == [rows[0], rows[0], rows[1], rows[1], rows[2], rows[2], rows[3]]
    assert choose_examples(texts, ["relation:other"], 7) == []


def test_texts_of_other_rows_fill_up_a_row() -> None:
    texts = [one("a", 3, 3) | one("a", 1, 1, row="relation:det"), one("b", 2, 2) | one("b", 2, 3, row="relation:det")]
    texts += [one("c", 4, 4, row="relation:det"), one("d", 1, 1, row="relation:det")]
    chosen = choose_examples(texts, ["relation:obj", "relation:det"], 3)
    assert {each.scored.text for each in chosen} == {"a", "b", "c"}
    of_obj, of_det = (names([each for each in chosen if each.row == f"relation:{row}"]) for row in ("obj", "det"))
    assert of_obj == [(CLEAR, "a"), (CLEAR, "b")]
    assert of_det == [(CLEAR, "c"), (FAILS, "b"), (CLEAR, "a")]


def test_a_text_that_is_there_already_is_an_example_of_further_rows() -> None:
    both = one("both", 3, 3) | one("both", 2, 2, row="relation:det")
    chosen = choose_examples([both], ["relation:obj", "relation:det"], 1)
    assert [each.row for each in chosen] == ["relation:obj", "relation:det"]
