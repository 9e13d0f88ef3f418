"""What is shown of a replication: the same lifts in the figure, on the page and on a terminal of 80 columns."""

import io

import pytest
import xarray as xr
from rich.console import Console

from analyse.tables import FOLDS
from analyse.test_replicate import elsewhere, planted
from headscope.analyse import add_replication, add_report
from headscope.errors import TableError
from headscope.view.figures.draw_replication import draw_replication, has_replication
from headscope.view.page import render_page
from headscope.view.reports import read_reports
from headscope.view.table_report import print_table
from headscope.view.verdicts import describe_replication


@pytest.fixture(scope="module")
def report() -> xr.Dataset:
    """One head that stands out."""
    table = add_report(planted(61, 7, 0.8, folds=FOLDS))
    verdict = table["reported_verdict"].copy(data=["stands out"])
    return table.assign(reported_verdict=verdict).assign_attrs(words=1511, tokens_unknown=0)


@pytest.mark.parametrize(
    ("texts", "share", "sentence"),
    [
        (29, 0.6, "1 of 1 heads that stand out here also do on other.conllu."),
        (29, 0.0, "0 of 1 heads that stand out here also do on other.conllu."),
        (13, 0.6, "0 of 1 heads that stand out here also do on other.conllu. There is too little to decide about 1."),
    ],
)
def test_the_terminal_and_the_page_say_how_many_survive(report, texts, share, sentence) -> None:
    table = add_replication(report, elsewhere(planted(texts, 5, share)))
    assert describe_replication(table, read_reports(table)) == sentence
    assert sentence in render_page(table, figures={})
    text = io.StringIO()
    print_table(table, Console(file=text, width=80), whole=True)
    assert sentence in " ".join(text.getvalue().split())
    assert max(map(len, text.getvalue().splitlines())) <= 80
    verdict = table["replication_verdict"].item()
    (line,) = (line for line in text.getvalue().splitlines() if line.rstrip().endswith(verdict) and "obj" in line)
    assert f" {share:+.3f}".replace("0.", ".", 1) in line


def test_no_head_that_stands_out_is_said_so(report) -> None:
    verdict = report["reported_verdict"].copy(data=["does not stand out"])
    table = add_replication(report.assign(reported_verdict=verdict), elsewhere(planted(29, 5, 0.6)))
    said = "No head stands out here, so there is none that could do so again on other.conllu."
    assert describe_replication(table, read_reports(table)) == said


def test_the_figure_has_both_lifts_of_each_row(report) -> None:
    table = add_replication(report, elsewhere(planted(29, 5, 0.6)))
    (axes,) = draw_replication(table).axes
    lines = {line.get_gid(): [] for line in axes.lines if line.get_gid()}
    for line in axes.lines:
        if line.get_gid():
            lines[line.get_gid()].append(list(line.get_xdata()))
    assert set(lines) == {"here obj", "there obj"}
    for place, name in (("here", "lift"), ("there", "replication_lift")):
        ends, value = lines[f"{place} obj"]
        assert ends == pytest.approx([table[f"{name}_{end}"].item() for end in ("lower", "upper")])
        assert value == pytest.approx([table[name].item()])


def test_a_table_without_a_replication_has_no_figure(report) -> None:
    assert not has_replication(report)
    with pytest.raises(TableError) as refused:
        draw_replication(report)
    assert str(refused.value) == (
        "the head table has no reported head with a lift on another corpus; measure with --replicate, or call "
        "add_replication first."
    )
    assert ">replicated<" not in render_page(report, figures={})
