"""The reported heads and their rivals: the marks are the numbers and the verdicts of the table."""

import re

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.legend import Legend
from matplotlib.lines import Line2D

from headscope.errors import TableError
from headscope.view.figures.draw_reported import draw_reported_heads
from headscope.view.figures.intervals import PALE
from headscope.view.reports import read_reports
from headscope.view.verdicts import describe_verdicts
from view.tables import head_table, with_mentions, with_verdicts

VERDICTS = ("stands out", "does not stand out", "cannot decide")


@pytest.fixture(scope="module")
def table():
    return with_verdicts(head_table(rare=()), *VERDICTS)


def marks(axes: Axes, name: str) -> list[Line2D]:
    return [line for line in axes.lines if line.get_gid() == name]


def test_every_row_has_its_score_its_interval_and_its_rivals(table) -> None:
    (axes,) = draw_reported_heads(table).axes
    for place, name in enumerate(table["relation"].values):
        row = table.sel(relation=name)
        (dot,), (line,) = marks(axes, f"score {name}"), marks(axes, f"interval {name}")
        assert (dot.get_xdata()[0], dot.get_ydata()[0]) == (row["heldout_accuracy"].item(), place)
        assert list(line.get_xdata()) == [row["heldout_lower"].item(), row["heldout_upper"].item()]
        (untrained,), (permuted,) = marks(axes, f"untrained model {name}"), marks(axes, f"permuted score {name}")
        assert untrained.get_xdata()[0] == row["untrained_accuracy"].item()
        assert permuted.get_xdata()[0] == row["reported_permuted"].item()
        strongest = {line.get_xdata()[0] for line in marks(axes, f"strongest rival {name}")}
        others = {line.get_xdata()[0] for line in marks(axes, f"rival {name}")}
        rules = {rival: row[f"heldout_{rival}_accuracy"].item() for rival in ("offset", "upos")}
        assert strongest == {score for rival, score in rules.items() if rival == row["lift_rival"].item()}
        assert strongest | others == set(rules.values())
    counts = [text.get_text() for text in axes.texts if text.get_gid() == "count"]
    assert counts == [f"{count:,}" for count in table["heldout_count"].values]


def test_the_marks_are_those_of_the_verdicts(table) -> None:
    figure = draw_reported_heads(table)
    (axes,) = figure.axes
    dots = [marks(axes, f"score {name}")[0] for name in table["relation"].values]
    blue, white = to_rgba("#0072B2"), to_rgba("white")
    assert [to_rgba(dot.get_markerfacecolor()) for dot in dots] == [blue, white, white]
    assert [dot.get_alpha() for dot in dots] == [1, 1, PALE]
    (report,) = read_reports(table)
    names = [f"{row.plain.title} ({row.name}) · {row.where}{row.mark}" for row in report.rows]
    assert [label.get_text() for label in axes.get_yticklabels()] == names
    assert [name[-1] for name in names] == ["*", names[1][-1], "?"]
    assert " ".join(figure.get_suptitle().split()) == f"{report.score.title}: {describe_verdicts([report])}"
    (legend,) = figure.findobj(Legend)
    shown = dict(zip((text.get_text() for text in legend.get_texts()), legend.get_lines(), strict=True))
    assert list(shown)[:3] == list(VERDICTS)
    for dot, verdict in zip(dots, VERDICTS, strict=True):
        assert shown[verdict].get_markerfacecolor() == dot.get_markerfacecolor()
        assert shown[verdict].get_alpha() == dot.get_alpha()


def test_a_verdict_that_no_row_has_is_not_in_the_legend(table) -> None:
    figure = draw_reported_heads(with_verdicts(table, *(["does not stand out"] * 3)))
    (legend,) = figure.findobj(Legend)
    assert not {"stands out", "cannot decide"} & {text.get_text() for text in legend.get_texts()}


def test_all_scores_have_the_axis_from_0_to_1_and_nothing_covers_another(table) -> None:
    two = with_mentions(table)
    for variable in ("relation_accuracy", "antecedent_accuracy"):
        figure = draw_reported_heads(two, variable)
        (axes,) = figure.axes
        assert axes.get_xlim() == pytest.approx((-0.01, 1.01))
        figure.draw_without_rendering()
        (legend,) = figure.findobj(Legend)
        boxes = [axes.get_tightbbox(), legend.get_window_extent(), *(text.get_window_extent() for text in figure.texts)]
        for place, box in enumerate(boxes):
            assert figure.bbox.padded(1).contains(*box.min)
            assert figure.bbox.padded(1).contains(*box.max)
            assert not any(box.overlaps(other) for other in boxes[place + 1 :])


def test_rows_beyond_forty_are_counted() -> None:
    (axes,) = draw_reported_heads(head_table(relations=[f"relation {number}" for number in range(43)], rare=())).axes
    assert len(axes.get_yticks()) == 40
    assert axes.figure.figure.get_supxlabel().endswith(" · 3 more rows in the table")


def test_without_reported_heads_there_is_no_figure(table) -> None:
    message = "the head table has no reported head for relation_accuracy; choose heads by add_report first."
    for without in (head_table(rare=("nsubj", "obj", "nsubj:pass")), table.drop_vars("reported_layer")):
        with pytest.raises(TableError, match=f"^{re.escape(message)}$"):
            draw_reported_heads(without)
    assert np.isfinite(table["reported_layer"]).all()
