"""The sentences about rows and heads, beside loops over the table: nothing stands in them but its numbers."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from headscope.analyse.report import UNDECIDED
from headscope.view.answers import answer_row, describe_heads, describe_row
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


NAMES = {
    "nsubj": {"dependent_to_head": "subject → its verb", "head_to_dependent": "verb → its subject"},
    "obj": {"dependent_to_head": "object → its verb", "head_to_dependent": "verb → its object"},
}


def test_a_head_is_said_to_be_reported_for_the_rows_of_which_it_is() -> None:
    table = with_verdicts(head_table(), *VERDICTS)
    sentences = describe_heads(table, read_reports(table), pd.DataFrame())
    ends = {"nsubj": "It stands out for {}.", "obj": "It was chosen for {}, but does not stand out."}
    reported = {
        ("", int(row["reported_layer"]), int(row["reported_head"])): end.format(f"{title} ({name})")
        for name, end in ends.items()
        for row in [table.sel(relation=name)]
        for title in [NAMES[name][row["reported_direction"].item()]]
    }
    assert len(reported) == 2
    for place, sentence in sentences.items():
        assert sentence.endswith(reported.get(place, "It was chosen for no row."))


def test_too_few_texts_are_said_to_be_too_few() -> None:
    table = with_verdicts(head_table(), UNDECIDED, "does not stand out", "")
    (report,) = read_reports(table)
    row = table.sel(relation="nsubj")
    sentence = describe_heads(table, [report], pd.DataFrame())[
        "", int(row["reported_layer"]), int(row["reported_head"])
    ]
    title = NAMES["nsubj"][row["reported_direction"].item()]
    assert sentence.endswith(f"It was chosen for {title} (nsubj); whether it stands out cannot be decided.")


def test_a_row_is_described_by_its_held_out_score_and_its_rivals() -> None:
    table = with_verdicts(head_table(), *VERDICTS)
    (report,) = read_reports(table)
    for reported, lead in zip(report.rows_with_heads, ("Yes. ", "No"), strict=True):
        row = table.sel(relation=reported.name)
        answer, best, lift, *controls = describe_row(report, reported)
        assert answer.startswith(lead)
        value, lower, upper = (float(row[f"heldout_{end}"]) for end in ("accuracy", "lower", "upper"))
        assert (
            f"accuracy {value:.2f} [{lower:.2f}, {upper:.2f}] on {int(row['heldout_count']):,} held-out links" in best
        )
        rival = row["lift_rival"].item()
        score = row["untrained_accuracy"] if rival == "untrained" else row[f"heldout_{rival}_accuracy"]
        assert f"({float(score):.2f}), is {float(row['lift']):+.2f} [".replace("-", "−") in lift
        assert f"With the annotation permuted it has {float(row['reported_permuted']):.2f}." in controls


RULE = "the rule 'the nearest verb before the word'"
CLAIM = "finds the verb for 69 % of 184 objects"


@pytest.mark.parametrize(
    ("verdict", "lifts", "clusters", "sentence"),
    [
        ("stands out", {"upos": (0.05, 0.2)}, 32,
         f"Yes. Head 3-1 {CLAIM}; {RULE} 94 %, the same model with random weights 20 %."),
        ("does not stand out", {"upos": (-0.35, -0.17)}, 32,
         f"No. The rule 'the nearest verb before the word' finds 94 %; head 3-1 {CLAIM}."),
        ("does not stand out", {"upos": (-0.1, 0.17)}, 32,
         f"No difference. Head 3-1 {CLAIM}, {RULE} 94 %: the gap is within the noise."),
        ("does not stand out", {"upos": (0.05, 0.17)}, 32,
         f"No difference. Head 3-1 {CLAIM}, by chance 12 %: it may be chance."),
        # Beaten by another than the rival that was the strongest on the half on which heads are chosen.
        ("does not stand out", {"upos": (0.05, 0.17), "offset": (-0.2, -0.1)}, 32,
         f"No. The rule 'the word before' finds 61 %; head 3-1 {CLAIM}."),
        ("cannot decide", {"upos": (-0.1, 0.17)}, 14,
         f"Cannot say. Head 3-1 {CLAIM}, {RULE} 94 %: too few texts to tell (14 groups of texts; 20 are needed)."),
        ("cannot decide", {"upos": (-0.1, 0.17)}, 32,
         f"Cannot say. Head 3-1 {CLAIM}, {RULE} 94 %: too few permutations to tell."),
        ("not yet", {"upos": (0.05, 0.2)}, 32,
         f"Not yet. Head 3-1 {CLAIM}, {RULE} 94 %; the untrained model is still to be measured."),
        ("", {"upos": (-0.1, 0.17)}, 32, f"Head 3-1 {CLAIM}."),
    ],
)  # fmt: skip
def test_an_answer_begins_with_the_verdict(
    verdict: str, lifts: dict[str, tuple[float, float]], clusters: int, sentence: str
) -> None:
    values: dict[str, float | str] = {
        "reported_layer": 3, "reported_head": 1, "reported_direction": "dependent_to_head", "heldout_accuracy": 0.69,
        "heldout_count": 184, "heldout_clusters": clusters, "heldout_upos_accuracy": 0.94, "heldout_upos_side": "left",
        "heldout_upos_word_class": "VERB", "heldout_offset_accuracy": 0.61, "heldout_offset": -1, "lift_rival": "upos",
        "untrained_accuracy": 0.2, "reported_permuted": 0.12, "reported_verdict": verdict,
        "verdict_p": np.nan if clusters < 20 else 0.06,
    }  # fmt: skip
    for rival in ("upos", "offset", "untrained"):
        lower, upper = lifts.get(rival, (0.05, 0.2))
        values |= {
            f"lift_over_{rival}": (lower + upper) / 2, f"lift_over_{rival}_lower": lower,
            f"lift_over_{rival}_upper": upper,
        }  # fmt: skip
    table = head_table()
    table = table.assign(
        {
            name: (
                "relation",
                [
                    value if row == "obj" else old
                    for row, old in zip(table["relation"].values, table[name].values, strict=True)
                ],
                table[name].attrs,
            )
            for name, value in values.items()
        }
    )
    (report,) = read_reports(table)
    (row,) = (row for row in report.rows if row.name == "obj")
    assert answer_row(row) == sentence


def test_a_head_that_rests_on_the_first_token_is_not_said_to_be_of_no_use() -> None:
    table = with_verdicts(head_table(), *VERDICTS)
    table["mass_first"] = table["mass_first"].clip(max=0.4).where((table["layer"] != 2) | (table["head"] != 3), 0.5)
    reports = read_reports(table)
    rests = "It rests on these texts, which do not show what it does where it has something to do."
    assert not [text for text in describe_heads(table, reports, pd.DataFrame()).values() if rests in text]
    decoder = describe_heads(table.assign_attrs(paths='{"decoder 1 fused": 7}'), reports, pd.DataFrame())
    assert [place for place, text in decoder.items() if rests in text] == [("", 2, 3)]
    assert "It was chosen for no row." not in decoder["", 2, 3]
    assert "It was chosen for no row." in decoder["", 1, 1] + decoder["", 1, 2] + decoder["", 1, 4]
