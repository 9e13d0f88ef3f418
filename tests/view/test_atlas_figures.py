"""Which figures an atlas has: of the reported rows, or of all that have values."""

import numpy as np

from headscope.score import find_score
from headscope.view.figures import draw_atlas
from view.tables import head_table


def test_rows_without_a_head_have_a_heatmap_only_if_all_are_asked_for() -> None:
    table = head_table()
    score = find_score(table, "relation_accuracy")
    titles = {every: list(draw_atlas.list_score_figures(table, score, every=every)) for every in (False, True)}
    heatmaps = [f"{score.title}: {row}" for row in ("nsubj", "obj", "nsubj:pass")]
    assert [title for title in titles[False] if title in heatmaps] == heatmaps[:2]
    assert [title for title in titles[True] if title in heatmaps] == heatmaps
    assert [title.removeprefix(f"{score.title}: ") for title in titles[False][:1]] == [
        "reported heads beside their rivals"
    ]
    # All else is drawn with both.
    assert titles[True][: -len(heatmaps)] == titles[False][:-2]


def test_a_row_without_values_is_not_drawn_even_then() -> None:
    table = head_table()
    score = find_score(table, "relation_accuracy")
    table["relation_accuracy"] = table["relation_accuracy"].where(table["relation"] != "obj", np.nan)
    assert f"{score.title}: obj" not in draw_atlas.list_score_figures(table, score, every=True)


def test_rows_that_one_file_would_have_are_told_apart() -> None:
    rows = ["a:b", "a/b", "A_b"]
    names = [name for name, _ in draw_atlas.list_figures(head_table(relations=rows, rare=())).values()]
    assert names[-3:] == ["relation-a_b", "relation-a_b-2", "relation-A_b-3"]


def test_the_most_frequent_rows_come_first_and_the_others_with_all(monkeypatch) -> None:
    monkeypatch.setattr(draw_atlas, "FREQUENT", 1)
    table = head_table()
    names = {
        every: [name for name, _ in draw_atlas.list_figures(table, every=every).values()] for every in (False, True)
    }
    rows = ["relation-nsubj", "relation-obj", "relation-nsubj_pass"]
    assert [name for name in names[False] if name in rows] == rows[:1]
    assert [name for name in names[True] if name in rows] == rows
