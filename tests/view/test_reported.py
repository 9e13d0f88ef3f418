"""What is reported: the rows are the table's numbers, and the terminal and the page show the same."""

import dataclasses
import io
import re

import numpy as np
import pytest
import xarray as xr
from rich.console import Console

import tiny
from headscope.analyse import assess
from headscope.analyse.report import add_report
from headscope.capture.model import Model
from headscope.corpora import summarize
from headscope.heads import head_name
from headscope.reducers.support.permutations import with_permutations
from headscope.runner import measure, resolve_reducers
from headscope.score import find_score, read_scores
from headscope.view.page import render_page
from headscope.view.reports import Interval, Reported, describe_regressions, read_reports
from headscope.view.terminal import print_table

PREFIXES = {
    "relation_accuracy": ("", "relation", "accuracy", "relation_count"),
    "antecedent_accuracy": ("antecedent_", "mention", "accuracy", "antecedent_count"),
    "scope_f1": ("scope_", None, "f1", "scope_count"),
    "aspect_accuracy": ("aspect_", "target", "accuracy", "aspect_count"),
    "role_weight": ("role_", None, "weight", "role_count"),
}


@pytest.fixture(scope="module")
def table() -> xr.Dataset:
    """All that a table can report, on documents so few that nearly everything but chance is missing."""
    module, tokenizer = tiny.make("bert")
    documents = tiny.documents_with_roles(23)
    reducers = resolve_reducers(
        ["surface", "relations", "coreference", "scope", "aspects", "roles"], summarize(documents)
    )
    subject = Model.from_module(module, tokenizer, name="bert")
    found = measure(subject, documents, [with_permutations(one, 19) for one in reducers])
    return add_report(assess(found), found, minimum=5)


def test_the_table_describes_each_score(table) -> None:
    assert {score.variable for score in read_scores(table) if score.has_report} == set(PREFIXES)


def test_rows_are_the_tables_numbers(table) -> None:
    found = {report.score.title: report for report in read_reports(table)}
    assert len(found) == 5
    for variable, (prefix, dim, score, count) in PREFIXES.items():
        report = found[find_score(table, variable).title]
        assert report.source == table[variable].attrs["source"]
        names = table[dim].values.tolist() if dim else [""]
        assert len(report.rows) == len(names)
        for name, row in zip(names, report.rows, strict=True):
            of = table.sel({dim: name} if dim else {})
            wanted = {
                "score": [of[f"{prefix}heldout_{end}"].item() for end in (score, "lower", "upper")],
                "at_offset": [of[f"{prefix}heldout_offset_{end}"].item() for end in (score, "lower", "upper")],
                "untrained": [of[f"{prefix}untrained_{end}"].item() for end in (score, "lower", "upper")],
                "detectable": of[f"{prefix}heldout_detectable"].item(),
                "selection_frequency": of[f"{prefix}reported_selection_frequency"].item(),
                "count": of[count].item(),
                "scored": of[f"{prefix}heldout_count"].item(),
                "offset": of[f"{prefix}heldout_offset"].item(),
                "layer": of[f"{prefix}reported_layer"].item(),
                "head": of[f"{prefix}reported_head"].item(),
            }
            if f"{prefix}reported_q" in of:
                wanted |= {"q": of[f"{prefix}reported_q"].item(), "permuted": of[f"{prefix}reported_permuted"].item()}
            for field, value in wanted.items():
                np.testing.assert_array_equal(getattr(row, field), value, err_msg=f"{name} {field}")
            if dim:
                assert row.name == name


def test_no_aspects_or_roles_were_drawn(table) -> None:
    # Else the last test would not have seen rows without permutations.
    drawn = {report.score.title: any(row.q >= 0 for row in report.rows) for report in read_reports(table)}
    assert list(drawn.values()) == [True, True, True, False, False]


def test_the_accuracies_by_length_are_parts_of_the_accuracy(table) -> None:
    (report,) = [one for one in read_reports(table) if one.score.title == "Relations between words"]
    assert len(report.rows_with_heads) > 3
    for row in report.rows_with_heads:
        chosen = {dim: table[f"reported_{dim}"].sel(relation=row.name).item() for dim in ("layer", "head", "direction")}
        right = sum(one.items * one.value for one in row.parts)
        assert sum(one.items for one in row.parts) == row.count
        whole = table["relation_accuracy"].sel(relation=row.name, **chosen).item()
        assert right / row.count == pytest.approx(whole)
        assert len({one.length for one in row.parts}) == len(row.parts) > 1
    assert not [row for row in report.rows if row.layer == 0 and row.parts]


@pytest.mark.parametrize(("changed", "out"), [
    ({}, True),
    ({"at_offset": Interval(0.3, 0.2, 0.5)}, False),
    ({"untrained": Interval(0.3, 0.2, 0.5)}, False),
    ({"untrained": Interval(np.nan, np.nan, np.nan)}, True),
    ({"control": 0.5}, False),
    ({"control": 0.49}, True),
    ({"q": 0.05}, False),
    ({"q": np.nan}, True),
    ({"score": Interval(np.nan, np.nan, np.nan)}, False),
])  # fmt: skip
def test_a_head_stands_out_if_it_beats_its_controls_and_chance(changed, out) -> None:
    row = Reported(
        "nsubj", "nsubj", "dependent", 211, "", 3, 5, Interval(0.6, 0.5, 0.7), 103, -2, Interval(0.4, 0.3, 0.45),
        Interval(0.1, 0.0, 0.2), np.nan, 0.2, 0.049, 0.1, 0.9, (),
    )  # fmt: skip
    assert dataclasses.replace(row, **changed).stands_out is out


def said_on_terminal(table: xr.Dataset) -> str:
    text = io.StringIO()
    print_table(table, Console(file=text, width=150, force_terminal=True, color_system="standard"))
    return text.getvalue()


def test_terminal_and_page_show_the_same_rows_in_the_same_words(table) -> None:
    # A table in which some stand out and some do not.
    named = [row for report in read_reports(table) for row in report.rows_with_heads]
    lower, q = table["antecedent_heldout_lower"], table["antecedent_reported_q"]
    table = table.assign(antecedent_heldout_lower=lower + 0.9, antecedent_reported_q=q * 0)
    standing = [row.label for report in read_reports(table) for row in report.rows_with_heads if row.stands_out]
    assert 0 < len(standing) < len(named)
    said, shown = said_on_terminal(table), render_page(table, figures={})
    green = [line for line in said.splitlines() if line.startswith("\x1b[1;32m")]
    assert [re.split(r" *\x1b| {2,}", line.removeprefix("\x1b[1;32m"))[0] for line in green] == standing
    assert shown.count('<tr class="stands-out">') == len(standing)
    plain = " ".join(re.sub(r"\x1b\[[\d;]*m", "", said).split())
    for row in named:
        assert re.search(rf"{re.escape(row.label)} +{head_name(row.layer, row.head)} ", plain)
    (sentence,) = describe_regressions(table)
    assert sentence in plain
    assert sentence in shown
    for report in read_reports(table):
        assert report.comparison in plain
        assert report.comparison.replace("'", "&#x27;") in shown


def test_what_compares_without_a_head_is_the_tables(table) -> None:
    found = {report.score.title: report for report in read_reports(table)}
    assert found["Scope of negation"].baselines == {"all words of the sentence": {"": table["scope_all_f1"].item()}}
    assert found["Scope of negation"].comparison == (
        f"To compare, on all documents: all words of the sentence: {table['scope_all_f1'].item():.2f}."
    )
    mentions = found["Antecedents of mentions"]
    for variable, what in mentions.score.baselines.items():
        names = [row.name for row in mentions.rows_with_heads]
        assert mentions.baselines[what] == {name: table[variable].sel(mention=name).item() for name in names}
    (roles,) = found["Semantic roles"].rows_with_heads
    anywhere = table["role_weight_anywhere"].sel(layer=roles.layer, head=roles.head).item()
    assert found["Semantic roles"].baselines == {"this head, any two words": {"": anywhere}}


def test_a_table_without_scores_reports_nothing(table) -> None:
    surface = table[[name for name in table.data_vars if str(name).startswith("mass_")]]
    assert read_reports(surface) == []
    assert describe_regressions(surface) == []
