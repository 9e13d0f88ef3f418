"""Which figures an atlas has: of each score, and a heatmap of each row with a reported head."""

from headscope.score import find_score
from headscope.view.figures import draw_atlas
from view.tables import head_table


def test_each_row_with_a_reported_head_has_a_heatmap_most_frequent_first() -> None:
    table = head_table()
    score = find_score(table, "relation_accuracy")
    titles = [title.removeprefix(f"{score.title}: ") for title in draw_atlas.list_score_figures(table, score)]
    assert titles[0] == "reported heads and their rivals"
    assert titles[-2:] == ["nsubj", "obj"]
    assert "nsubj:pass" not in titles


def test_rows_that_one_file_would_have_are_told_apart() -> None:
    rows = ["a:b", "a/b", "A_b"]
    names = [name for name, _ in draw_atlas.list_figures(head_table(relations=rows, rare=())).values()]
    assert names[-3:] == ["relation-a_b", "relation-a_b-2", "relation-A_b-3"]
