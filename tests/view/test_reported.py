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
from headscope.capture.model.model import Model
from headscope.corpora import summarize
from headscope.heads import head_name
from headscope.reducers.support.permutations import with_permutations
from headscope.runner import measure, resolve_reducers
from headscope.score import find_score, read_scores
from headscope.view.page import render_page
from headscope.view.reports import describe_regressions, read_reports
from headscope.view.table_report import print_table

PREFIXES = {
    "relation_accuracy": ("", "relation", "accuracy", "relation_count"),
    "antecedent_accuracy": ("antecedent_", "mention", "accuracy", "antecedent_count"),
    "scope_f1": ("scope_", None, "f1", "scope_count"),
    "aspect_accuracy": ("aspect_", "target", "accuracy", "aspect_count"),
    "role_weight": ("role_", None, "weight", "role_count"),
}
RIVALS = {
    "relation_accuracy": ["offset", "upos", "untrained"],
    "antecedent_accuracy": ["offset", "nearest", "head_match", "rules", "untrained"],
    "scope_f1": ["offset", "all", "window", "untrained"],
    "aspect_accuracy": ["offset", "blind", "untrained"],
    "role_weight": ["offset", "untrained"],
}
ENDS = ("", "_lower", "_upper")


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


@pytest.mark.full
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
                "lift": [of[f"{prefix}lift{end}"].item() for end in ENDS],
                "detectable": of[f"{prefix}lift_detectable"].item(),
                "strongest": of[f"{prefix}lift_rival"].item(),
                "clusters": of[f"{prefix}heldout_clusters"].item(),
                "verdict": of[f"{prefix}reported_verdict"].item(),
                "selection_frequency": of[f"{prefix}reported_selection_frequency"].item(),
                "count": of[count].item(),
                "scored": of[f"{prefix}heldout_count"].item(),
                "offset": np.nan_to_num(of[f"{prefix}heldout_offset"].item()),
                "layer": np.nan_to_num(of[f"{prefix}reported_layer"].item()),
                "head": np.nan_to_num(of[f"{prefix}reported_head"].item()),
            }
            if f"{prefix}reported_permuted" in of:
                wanted |= {"p": of[f"{prefix}verdict_p"].item(), "permuted": of[f"{prefix}reported_permuted"].item()}
            for field, value in wanted.items():
                np.testing.assert_array_equal(getattr(row, field), value, err_msg=f"{name} {field}")
            if dim:
                assert row.name == name
            rivals = {rival.name: rival for rival in row.rivals}
            assert list(rivals) == (RIVALS[variable] if row.layer > 0 else [])
            for rival in row.rivals:
                scored = f"{prefix}{'' if rival.name == 'untrained' else 'heldout_'}{rival.name}"
                ends = [of[f"{scored}_{end}"].item() for end in (score, "lower", "upper")]
                np.testing.assert_array_equal(rival.score, ends, err_msg=f"{name} {rival.name}")
                lift = [of[f"{prefix}lift_over_{rival.name}{end}"].item() for end in ENDS]
                np.testing.assert_array_equal(rival.lift, lift, err_msg=f"{name} {rival.name}")
            assert row.strongest_rival == rivals.get(row.strongest)


def test_no_aspects_or_roles_were_drawn(table) -> None:
    # Else the last test would not have seen rows without permutations.
    drawn = {report.score.title: any(row.permuted >= 0 for row in report.rows) for report in read_reports(table)}
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


@pytest.mark.parametrize(("verdict", "out"), [
    ("stands out", True), ("does not stand out", False), ("cannot decide", False), ("", False),
])  # fmt: skip
def test_a_head_stands_out_by_the_verdict_of_the_table(table, verdict: str, out: bool) -> None:
    # What the verdict follows from is tested in tests/analyse/test_verdicts.py.
    row = next(row for report in read_reports(table) for row in report.rows_with_heads)
    assert dataclasses.replace(row, verdict=verdict).stands_out is out


def test_rules_are_called_by_their_options(table) -> None:
    (report,) = [one for one in read_reports(table) if one.score.variable == "relation_accuracy"]
    for row in report.rows_with_heads:
        of = table.sel(relation=row.name)
        offset = f"{of['heldout_offset'].item():+.0f}".replace("-", "−")
        rule = f"nearest {of['heldout_upos_word_class'].item()} ({of['heldout_upos_side'].item()})"
        assert [rival.label for rival in row.rivals] == [f"offset {offset}", rule, "untrained model"]


def test_how_the_gold_was_permuted_is_said(table) -> None:
    said = {report.score.variable: report.permuted for report in read_reports(table)}
    assert said == {
        "relation_accuracy": "Permuted: the score after moving each gold link to another place in its text, keeping "
        "its length.",
        "antecedent_accuracy": "Permuted: the score after shifting the labels of the chains along the mentions of "
        "each text.",
        "scope_f1": "Permuted: the score after rotating each scope within its sentence.",
        "aspect_accuracy": "",
        "role_weight": "",
    }


def test_what_is_said_of_rivals_that_do_not_apply(table) -> None:
    lacking = [name for name in table.variables if "_upos" in str(name)]
    fewer = table.drop_vars(lacking)
    (report,) = [one for one in read_reports(fewer) if one.score.variable == "relation_accuracy"]
    sentence = "Not compared with the nearest word of a part of speech: the corpus has no parts of speech."
    assert report.comparison == sentence
    assert report.left_out == {"nearest word of a part of speech": "parts of speech"}
    assert {rival.name for row in report.rows_with_heads for rival in row.rivals} == {"offset", "untrained"}
    assert sentence in " ".join(re.sub(r"\x1b\[[\d;]*m", "", said_on_terminal(fewer)).split())
    assert not [one for one in read_reports(table) if one.left_out]


def said_on_terminal(table: xr.Dataset) -> str:
    text = io.StringIO()
    console = Console(file=text, width=99, force_terminal=True, color_system="standard")
    print_table(table, console, whole=True)
    return text.getvalue()


def test_terminal_and_page_show_the_same_rows_in_the_same_words(table) -> None:
    # A table in which some stand out and some do not.
    verdict = table["antecedent_reported_verdict"]
    table = table.assign(antecedent_reported_verdict=verdict.where(verdict == "", "stands out").astype(str))
    named = [row for report in read_reports(table) for row in report.rows_with_heads]
    standing = [row.label for report in read_reports(table) for row in report.rows_with_heads if row.stands_out]
    assert 0 < len(standing) < len(named)
    said, shown = said_on_terminal(table), render_page(table, figures={})
    # What is long goes on in a second line.
    green = [line for line in said.splitlines() if re.match(r"\x1b\[1;32m\S", line)]
    assert [re.split(r" *\x1b| {2,}", line.removeprefix("\x1b[1;32m"))[0] for line in green] == standing
    assert shown.count('<tr class="stands-out">') == len(standing)
    plain = " ".join(re.sub(r"\x1b\[[\d;]*m", "", said).split())
    for row in named:
        head = re.escape(head_name(row.layer, row.head) + row.mark)
        assert re.search(rf"{re.escape(row.label + row.pooled)} +{head} ", plain)
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
