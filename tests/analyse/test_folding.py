"""Rows that say the same are one: a row that pools others, of which the corpus has a single one."""

import io
import math
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from rich.console import Console

from headscope.analyse.folding import find_folded
from headscope.reducers import NegationScope
from headscope.score import read_scores
from headscope.view.page import render_page
from headscope.view.reports import read_reports
from headscope.view.table_report import print_table
from headscope.view.verdicts import describe_verdicts
from view.parsed import Page, codes_of_reported
from view.tables import head_table, with_verdicts

RELATIONS = ["nsubj", "compound:prt", "compound:*", "all"]


def table_with_pools(count: int = 0, value: float = 0.0) -> xr.Dataset:
    """A table in which ``compound:*`` has the links of ``compound:prt``, but for a count and a value of one head."""
    table = head_table(relations=RELATIONS, rare=())
    for name, values in table.data_vars.items():
        if "relation" in values.dims:
            table[name].loc[{"relation": "compound:*"}] = values.sel(relation="compound:prt").values
    table["relation_count"].loc[{"relation": "compound:*"}] += count
    table["relation_accuracy"].loc[{"relation": "compound:*", "layer": 3, "head": 2}] += value
    return with_verdicts(table, "does not stand out", "stands out", "stands out", "does not stand out")


def folded(table: xr.Dataset) -> dict[str, str]:
    (score,) = read_scores(table)
    return find_folded(table, score)


def test_a_pooled_row_with_the_same_links_and_scores_is_folded() -> None:
    assert folded(table_with_pools()) == {"compound:*": "compound:prt"}
    assert folded(table_with_pools(count=1)) == {}
    assert folded(table_with_pools(value=0.001)) == {}
    missing = table_with_pools()
    missing["relation_accuracy"].loc[{"relation": ["compound:prt", "compound:*"], "layer": 2}] = np.nan
    assert folded(missing) == {"compound:*": "compound:prt"}


def test_single_rows_are_never_folded_into_each_other() -> None:
    table = table_with_pools()
    same = table.assign_coords(relation=["nsubj", "compound:prt", "compound", "all"])
    assert folded(same) == {}


@pytest.mark.parametrize(
    ("relations", "standing", "sentence"),
    [
        (["obj"], 0, "The row obj has no head that beats all its rivals and chance."),
        (["obj"], 1, "The row obj has a head that beats all its rivals and chance."),
        (["nsubj", "obj", "det"], 0, "0 of 3 relations have a head that beats all its rivals and chance."),
        (["nsubj", "obj", "det"], 2, "2 of 3 relations have a head that beats all its rivals and chance."),
    ],
)
def test_the_first_sentence_is_english_for_any_number(relations: list[str], standing: int, sentence: str) -> None:
    verdicts = ["stands out"] * standing + ["does not stand out"] * (len(relations) - standing)
    table = with_verdicts(head_table(relations=relations, rare=()), *verdicts)
    assert describe_verdicts(read_reports(table)) == sentence


def test_a_score_of_one_row_is_called_by_its_title() -> None:
    (relations,) = read_reports(with_verdicts(head_table(rare=()), "stands out", "stands out", "does not stand out"))
    row = replace(relations.rows[2], name="scope, F1", key="scope", verdict="does not stand out")
    scope = replace(relations, score=NegationScope.scores[0], rows=(row,))
    assert describe_verdicts([relations, scope]) == (
        "2 of 3 relations have a head that beats all its rivals and chance; scope of negation has none."
    )
    undecided = replace(scope, rows=(replace(row, verdict="cannot decide", p=math.nan),))
    assert describe_verdicts([undecided]) == (
        "Scope of negation has no head that beats all its rivals and chance. "
        "There are too few texts to decide about scope of negation."
    )


def test_a_folded_row_is_shown_and_counted_once_and_both_places_say_so() -> None:
    table = table_with_pools().assign_attrs(words=1511, tokens_unknown=0)
    (report,) = read_reports(table)
    assert [row.name for row in report.rows] == RELATIONS
    assert [row.name for row in report.rows_with_heads] == ["nsubj", "compound:prt", "all"]
    assert describe_verdicts([report]) == "1 of 3 relations has a head that beats all its rivals and chance."
    parsed = Page(render_page(table, figures={}))
    assert codes_of_reported(parsed) == ["nsubj", "compound:prt = compound:*", "all"]
    sentence = "=: the row after it pools others, and has the same items here."
    assert sentence in " ".join(text for _, text in parsed.find("p"))
    text = io.StringIO()
    print_table(table, Console(file=text, width=99), whole=True)
    assert "\ncompound:prt = compound:* " in text.getvalue()
    assert sentence in " ".join(text.getvalue().split())
    assert "1 more row" not in text.getvalue()
