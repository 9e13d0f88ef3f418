"""The sentences about rows and heads, beside loops over the table: nothing stands in them but its numbers."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from headscope.analyse.report import UNDECIDED
from headscope.view.answers import describe_heads, describe_row
from headscope.view.glosses import GLOSSES, explain_relation
from headscope.view.reports import read_reports
from view.tables import head_table, with_verdicts

VERDICTS = ("stands out", "does not stand out", "")


def shares_of(
    table: xr.Dataset, attention_type: str, layer: int, head: int
) -> tuple[dict[str, float], dict[str, float]]:
    """By target, the share of a head and the mean of all heads, loop by loop."""
    own, means = {}, {}
    for values in table.data_vars.values():
        if target := values.attrs.get("target"):
            place = {"layer": layer, "head": head} | ({"attention_type": attention_type} if attention_type else {})
            own[target] = float(values.sel(place))
            present = [value for value in values.values.ravel().tolist() if value == value]
            means[target] = sum(present) / len(present)
    return own, means


@pytest.mark.parametrize("attention_types", [False, True])
def test_a_head_is_said_to_attend_most_to_what_a_loop_gives(attention_types: bool) -> None:
    table = head_table(attention_types=attention_types)
    sentences = describe_heads(table, [], pd.DataFrame())
    assert len(sentences) == 35 * (3 if attention_types else 1)
    differs = 0
    for place, sentence in sentences.items():
        own, means = shares_of(table, *place)
        if all(np.isnan(share) for share in own.values()):
            assert sentence == ""
            continue
        most, more = max(own, key=own.__getitem__), max(own, key=lambda target: own[target] - means[target])
        name = f"Head {place[1]}-{place[2]}"
        share, mean = f"{own[most]:.0%}", f"{means[most]:.0%}"
        first = f"{name} attends most to {most}: {share} of its attention, {mean} in the mean of all heads."
        second = f" More than other heads it attends to {more}: {own[more]:.0%}, {means[more]:.0%} in the mean."
        special = more != most and own[more] - means[more] >= 0.05
        assert sentence == first + (second if special else "")
        differs += special
    assert differs > 0


def test_a_head_is_said_to_be_reported_for_the_rows_of_which_it_is() -> None:
    table = with_verdicts(head_table(), *VERDICTS)
    sentences = describe_heads(table, read_reports(table), pd.DataFrame())
    ends = {"nsubj": "It stands out for nsubj.", "obj": "It is the best head of obj, but does not stand out."}
    reported = {
        ("", int(row["reported_layer"]), int(row["reported_head"])): ends[name]
        for name in ends
        for row in [table.sel(relation=name)]
    }
    assert len(reported) == 2
    for place, sentence in sentences.items():
        assert sentence.endswith(reported.get(place, "It is the best head of no row."))


def test_too_few_texts_are_said_to_be_too_few() -> None:
    table = with_verdicts(head_table(), UNDECIDED, "does not stand out", "")
    (report,) = read_reports(table)
    assert describe_row(report, report.rows[0])[-1] == "There are too few texts to decide whether it stands out."
    row = table.sel(relation="nsubj")
    sentence = describe_heads(table, [report], pd.DataFrame())[
        "", int(row["reported_layer"]), int(row["reported_head"])
    ]
    assert sentence.endswith("It is the best head of nsubj, with too few texts to decide.")


def test_a_row_is_described_by_its_held_out_score_its_rivals_and_its_verdict() -> None:
    table = with_verdicts(head_table(), *VERDICTS)
    (report,) = read_reports(table)
    verdicts = ("It stands out: it beats all its rivals and chance.", "It does not stand out.")
    for reported, verdict in zip(report.rows_with_heads, verdicts, strict=True):
        row = table.sel(relation=reported.name)
        best, lift, *controls, last = describe_row(report, reported)
        value, lower, upper = (float(row[f"heldout_{end}"]) for end in ("accuracy", "lower", "upper"))
        assert (
            f"accuracy {value:.2f} [{lower:.2f}, {upper:.2f}] on {int(row['heldout_count']):,} held-out links" in best
        )
        rival = row["lift_rival"].item()
        score = row["untrained_accuracy"] if rival == "untrained" else row[f"heldout_{rival}_accuracy"]
        assert f"({float(score):.2f}), is {float(row['lift']):+.2f} [".replace("-", "−") in lift
        assert f"With the gold permuted it has {float(row['reported_permuted']):.2f}." in controls
        assert last == verdict


def test_names_of_relations_are_written_out() -> None:
    assert explain_relation("obj") == "direct object"
    assert explain_relation("nsubj:pass") == explain_relation("nsubj:*") == "nominal subject"
    assert explain_relation("all") == explain_relation("object") == ""
    assert len(GLOSSES) == 37, "Universal Dependencies, version 2"
