"""How claims stand on head tables: agreement only with the same model and corpus, patterns elsewhere."""

import math

import numpy as np
import pytest
import xarray as xr

from headscope.studies.findings import VERDICTS, judge
from headscope.studies.sheet import count_verdicts
from headscope.studies.study import RECORDED, Claim, Measurement, NotMeasuredError, Pattern, Study, Value

OURS = "ab" * 32


def table(number: float = 31.0, model: str = "someone/theirs", corpus: str = OURS) -> xr.Dataset:
    return xr.Dataset({"x": ((), np.asarray(number))}, attrs={"model": model, "corpus_sha256": corpus})


def x(table: xr.Dataset) -> Value:
    return Value(float(table["x"]))


def claim(number: float = 31.0, **changes) -> Claim:
    return Claim(**{"where": "table 1", "what": "x", "on": ("one",), "paper": Value(number), "read": x} | changes)


def study(*claims: Claim) -> Study:
    measurement = Measurement("corpus.conllu", "from them", ("relations",), "theirs", published=(OURS,))
    return Study(
        "They 2019", {"Theirs": ("someone/theirs",), "Large": ("someone/large",)}, {"one": measurement}, claims, {}
    )


def verdict(judged: Claim, on: xr.Dataset) -> str:
    (finding,) = judge(study(judged), {"one": on})
    return finding.verdict


@pytest.mark.parametrize(
    ("ours", "expected"),
    [(31.0, "agrees"), (31.05, "agrees"), (30.95, "agrees"), (31.051, "differs"), (30.949, "differs")],
)
def test_the_same_figure_is_the_same_to_the_last_printed_digit(ours, expected) -> None:
    assert verdict(claim(model="Theirs"), table(ours)) == expected


def test_counts_of_verdicts_are_read_aloud_without_a_stumble() -> None:
    findings = judge(study(claim(), claim(), claim(32.0)), {"one": table()})
    assert [finding.verdict for finding in findings] == ["agrees", "agrees", "differs"]
    assert count_verdicts(findings) == "2 agree, 1 differs"


@pytest.mark.parametrize(("digits", "expected"), [(0, "agrees"), (1, "differs")])
def test_the_digits_are_the_papers(digits, expected) -> None:
    assert verdict(claim(digits=digits), table(31.4)) == expected


def test_figures_are_held_against_each_other_only_with_the_papers_model_and_corpus() -> None:
    assert verdict(claim(model="Theirs"), table(model="someone/other")) == "shown"
    assert verdict(claim(model="Theirs"), table(corpus="cd" * 32)) == "shown"
    assert verdict(claim(model="Theirs"), table()) == "agrees"


def test_what_follows_from_the_corpus_needs_no_model() -> None:
    assert verdict(claim(), table(model="someone/other")) == "agrees"
    assert verdict(claim(), table(corpus="cd" * 32)) == "shown"


def test_claims_are_about_the_model_that_the_paper_has_or_its_first() -> None:
    claims = claim(model="Theirs"), claim(model="Large"), claim()
    for model, expected in (("someone/theirs", "Theirs"), ("someone/large", "Large"), ("any/other", "Theirs")):
        findings = judge(study(*claims), {"one": table(model=model)})
        assert [finding.claim.model for finding in findings] == [expected, ""]


@pytest.mark.parametrize(
    ("ours", "interval", "bounds", "expected"),
    [
        (31.0, None, {"above": 29.0}, "holds"),
        (31.0, None, {"above": 31.0}, "fails"),
        (31.0, (29.5, 37.0), {"above": 29.0}, "holds"),
        (31.0, (23.0, 37.0), {"above": 29.0}, "unclear"),
        (31.0, (23.0, 37.0), {"above": 37.0}, "fails"),
        (31.0, (23.0, 37.0), {"above": 19.0, "below": 41.0}, "holds"),
        (31.0, (23.0, 37.0), {"below": 31.0}, "unclear"),
        (31.0, (23.0, 37.0), {"below": 23.0}, "fails"),
        (31.0, (23.0, 37.0), {"above": lambda on: Value(11.0, "", 7.0, 13.0)}, "holds"),
        (31.0, (23.0, 37.0), {"above": lambda on: Value(11.0, "", 7.0, 29.0)}, "unclear"),
        (31.0, (23.0, 37.0), {"above": lambda on: Value(43.0, "", 41.0, 47.0)}, "fails"),
    ],
)
def test_a_pattern_holds_or_fails_beyond_the_intervals(ours, interval, bounds, expected) -> None:
    ends = interval or (math.nan, math.nan)
    stated = claim(read=lambda on: Value(ours, "", *ends), model="Theirs", pattern=Pattern("is so", **bounds))
    assert verdict(stated, table(model="any/other")) == expected


def test_a_pattern_is_judged_on_what_was_held_out() -> None:
    chosen = Value(31.0, "1-1", 29.0, 37.0, held_out=Value(11.0, "1-1", 7.0, 13.0))
    stated = claim(read=lambda on: chosen, pattern=Pattern("above 19", above=19.0), model="Theirs")
    (finding,) = judge(study(stated), {"one": table(model="any/other")})
    assert finding.verdict == "fails"
    assert finding.ours == chosen
    assert finding.difference == 0


@pytest.mark.parametrize(
    ("effect", "p", "expected"),
    [
        (+0.7, 0.049, "holds"),
        (-0.7, 0.049, "fails"),
        (+0.7, 0.05, "unclear"),
        (-0.7, 0.05, "unclear"),
        (+0.7, 0.97, "unclear"),
    ],
)
def test_a_p_value_is_evidence_for_an_effect_with_a_sign(effect, p, expected) -> None:
    stated = claim(
        read=lambda on: Value(p), unit="p", significant=2, model="Theirs",
        pattern=Pattern("more", above=0.0, effect=lambda on: Value(effect, p=p)),
    )  # fmt: skip
    assert verdict(stated, table(model="any/other")) == expected
    tested = claim(
        read=lambda on: Value(effect, "", effect - 0.1, effect + 0.1, p),
        pattern=Pattern("more", above=0.0),
        model="Theirs",
    )
    assert verdict(tested, table(model="any/other")) == expected


@pytest.mark.parametrize(("effect", "expected"), [(+0.7, "agrees"), (-0.7, "differs")])
def test_the_papers_p_value_of_the_opposite_effect_is_not_the_papers(effect, expected) -> None:
    pattern = Pattern("more", above=0.0, effect=lambda on: Value(effect, p=0.013))
    stated = claim(0.013, read=lambda on: Value(0.013), unit="p", significant=2, model="Theirs", pattern=pattern)
    assert verdict(stated, table()) == expected


@pytest.mark.parametrize(("p", "expected"), [(0.31, "unclear"), (0.013, "fails")])
def test_that_there_is_no_difference_is_never_shown(p, expected) -> None:
    none = Pattern("no difference", above=0.0, below=0.0, effect=lambda on: Value(0.7, p=p))
    stated = claim(read=lambda on: Value(p), unit="p", significant=2, model="Theirs", pattern=none)
    assert verdict(stated, table(model="any/other")) == expected


@pytest.mark.parametrize("model", ["someone/theirs", "any/other"])
def test_recorded_scores_are_the_papers_own_only_under_the_name_of_its_model(model) -> None:
    recorded = table(model=model, corpus="not known").assign_attrs({RECORDED: "theirs.npz"})
    for stated in (claim(model="Theirs"), claim()):
        (finding,) = judge(study(stated), {"one": recorded})
        assert finding.same == (model == "someone/theirs")


def test_a_claim_without_a_number_is_judged_by_its_pattern_even_on_the_papers_own() -> None:
    stated = claim(paper=Value(math.nan, "most"), pattern=Pattern("most", above=50.0))
    assert verdict(stated, table()) == "fails"
    assert verdict(stated, table(53.0)) == "holds"


def test_what_a_table_lacks_is_not_measured_and_says_why() -> None:
    def lacking(on: xr.Dataset) -> Value:
        raise NotMeasuredError("the table has no y")

    findings = judge(
        study(claim(read=lacking), claim(read=lambda on: Value(math.nan)), claim(on=("one", "two"))), {"one": table()}
    )
    assert {finding.verdict for finding in findings} == {"not measured"}
    assert [finding.why for finding in findings] == [
        "the table has no y",
        "no head has a value: the corpus or the model has nothing to measure",
        "there is no table of two",
    ]
    assert all(finding.ours is None and math.isnan(finding.difference) for finding in findings)


def test_a_control_that_was_not_measured_leaves_the_claim_unmeasured() -> None:
    stated = claim(pattern=Pattern("above it", above=lambda on: Value(math.nan)), model="Theirs")
    assert verdict(stated, table(model="any/other")) == "not measured"


def test_every_verdict_has_a_meaning() -> None:
    assert set(VERDICTS) == {"agrees", "differs", "holds", "fails", "unclear", "shown", "not measured"}
