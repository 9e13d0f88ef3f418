"""What a study reads from probes: table 3 of Clark et al., where attention adds to words and where it does not."""

import pytest

from headscope.studies import STUDIES
from headscope.studies.findings import Finding, judge
from headscope.studies.probe_extractors import best_structural_probe, probe_accuracy, probe_gain
from headscope.studies.study import NotMeasuredError
from probe_tables import CHOICES, FOLDS, SHARES, make_probes

SUMS = CHOICES * FOLDS


def judge_table_3(shares: dict[str, float], **attrs: str) -> dict[str, Finding]:
    findings = judge(STUDIES["clark2019"], {"probe": make_probes(shares, **attrs)})
    return {finding.claim.what: finding for finding in findings if finding.claim.where == "table 3"}


def test_accuracies_are_in_percent_with_their_interval() -> None:
    value = probe_accuracy("attention")(make_probes())
    assert value.number == pytest.approx(55, abs=3)
    assert value.lower < value.number < value.upper
    assert value.detail == "seeds: 3"


def test_a_gain_is_paired() -> None:
    value = probe_gain("attention-and-words", "words-and-distances")(make_probes())
    assert value.lower < value.number < value.upper
    assert value.number == pytest.approx(10, abs=4)


def test_the_best_layer_is_named() -> None:
    value = best_structural_probe()(make_probes())
    assert (value.number, value.detail) == (pytest.approx(100 * 25 / 31), "layer 2")


def test_table_3_holds_where_it_does() -> None:
    findings = judge_table_3(SHARES)
    assert len(findings) == 7
    judged = {what: finding.verdict for what, finding in findings.items() if finding.claim.pattern}
    assert set(judged.values()) == {"holds"}
    assert judged.keys() == {
        "Random Init Attn + GloVe", "Attn", "Attn + GloVe", "Attn + GloVe less Distances + GloVe"
    }  # fmt: skip


def test_where_attention_adds_nothing_no_claim_holds() -> None:
    alike = dict.fromkeys(SHARES, 0.5)
    verdicts = {finding.verdict for finding in judge_table_3(alike).values() if finding.claim.pattern}
    assert "holds" not in verdicts
    worse = SHARES | {"attention-and-words": 0.5, "attention": 0.2, "untrained-attention-and-words": 0.7}
    findings = judge_table_3(worse)
    for what in ("Random Init Attn + GloVe", "Attn", "Attn + GloVe less Distances + GloVe"):
        assert findings[what].verdict == "fails"


def test_what_was_not_trained_is_not_measured() -> None:
    findings = judge_table_3({name: share for name, share in SHARES.items() if "untrained" not in name} | {
        "untrained-attention-and-words": 0.25})  # fmt: skip
    assert findings["Attn"].verdict == "holds"
    roles = judge_table_3(SHARES, links="role")
    assert {finding.verdict for finding in roles.values()} == {"not measured"}
    assert "the probes find role links" in roles["Attn"].why
    table = make_probes().drop_sel(probe="attention")
    with pytest.raises(NotMeasuredError, match="there is no probe attention"):
        probe_accuracy("attention")(table)
    with pytest.raises(NotMeasuredError, match="without the structural probe"):
        best_structural_probe()(make_probes().drop_vars("structural_uuas"))
