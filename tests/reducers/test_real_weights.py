"""Real weights on a real treebank: what Clark's own released functions give, worked out apart from headscope.

The reference figures come from the functions of clarkkev/attention-analysis on the eager attention of MiniLM, words
averaged as the paper says, over all 2,001 sentences of the development set of UD English EWT.
"""

from pathlib import Path

import pytest
import xarray as xr

import headscope
from headscope.runner import Plan, measure

pytestmark = [pytest.mark.data, pytest.mark.demo, pytest.mark.full]

FIGURES = {  # relation: (head, accuracy dependent to head, links)
    "obj": ((3, 1), 0.740, 1_211),
    "det": ((3, 9), 0.808, 1_817),
    "amod": ((3, 9), 0.790, 1_326),
    "case": ((3, 9), 0.674, 2_015),
    "nsubj": ((3, 9), 0.575, 1_958),
}


@pytest.fixture(scope="module")
def table(data: Path) -> xr.Dataset:
    """The words with a space before each: others have found the same figures so."""
    corpus = headscope.read(data / "ud" / "UD_English-EWT" / "en_ewt-ud-dev.conllu")
    measured = measure("minilm", corpus, ["surface", "relations"], plan=Plan(text="spaced"))
    return headscope.analyse.add_report(headscope.analyse.add_intervals(measured))


def test_nothing_is_left_out(table) -> None:
    assert table.attrs["documents"] == 2_001
    assert table.attrs["words"] == 25_147
    assert table.attrs["skipped"] == "{}"
    assert table.attrs["weights_sha256"] == "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


@pytest.mark.parametrize("relation", FIGURES)
def test_the_best_head_of_a_relation(table, relation) -> None:
    (layer, head), accuracy, links = FIGURES[relation]
    row = table.sel(relation=relation)
    best = row["relation_accuracy"].argmax(...)
    assert (best["layer"] + 1, best["head"] + 1) == (layer, head)
    assert row["direction"].values[best["direction"]] == "dependent_to_head"
    assert row["relation_accuracy"].max().item() == pytest.approx(accuracy, abs=0.005)
    assert row["relation_count"] == links


@pytest.mark.parametrize("relation", FIGURES)
def test_both_halves_of_the_documents_choose_that_head(table, relation) -> None:
    row = table.sel(relation=relation)
    assert (row["reported_layer"], row["reported_head"]) == FIGURES[relation][0]
    assert row["reported_again"] == 1
    assert row["heldout_lower"] < FIGURES[relation][1] < row["heldout_upper"]


def test_head_1_3_looks_at_the_previous_token(table) -> None:
    (name, share), (_, second) = headscope.analyse.list_highest(table, "mass_previous", 2)
    assert name == "1-3"
    assert share > 0.98
    assert second < 0.5
