"""The scores that Zhao and Bethard released, judged without any weights: their tables come out to the last digit."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from headscope import heads
from headscope.studies import STUDIES, judge

pytestmark = pytest.mark.data

MODELS = {"bert-base": "bert-base-uncased", "roberta-base": "roberta-base"}
SCORES = ("precision", "recall", "f1")


def recorded(folder: Path, name: str) -> dict[str, xr.Dataset]:
    """The head tables of the pretrained model; its corpus of stories is the authors' own file."""
    path = folder / "zhao_head_scores" / f"{name}.npz"
    story = hashlib.sha256((folder / "conandoyle_zhao" / "data_story.json").read_bytes()).hexdigest()
    tables = {}
    with np.load(path) as arrays:
        for corpus, sha256 in (("story", story), ("review", "not released")):
            scores = arrays[f"{corpus}_pretrained"]
            assert scores.shape == (12, 12, 3)
            variables = {
                f"scope_{score}": heads.variable(
                    scores[..., place], ("layer", "head"), name=score, units="share of words", source="their release"
                )
                for place, score in enumerate(SCORES)
            }
            tables[corpus] = xr.Dataset(
                variables,
                coords={"layer": np.arange(1, 13), "head": np.arange(1, 13)},
                attrs={
                    "model": MODELS[name], "weights_sha256": name, "corpus": corpus, "corpus_sha256": sha256,
                    "documents": 757, "tokens": 0, "skipped": "{}", "call": "released",
                },
            )  # fmt: skip
    return tables


@pytest.mark.parametrize("name", MODELS)
def test_every_claim_about_heads_agrees(data, name) -> None:
    found = judge(STUDIES["zhao2020"], recorded(data / "negation", name))
    of_heads = [one for one in found if one.claim.where.startswith("table") and one.claim.model]
    assert len(of_heads) == 6
    assert {one.verdict for one in of_heads} == {"agrees"}
    for one in of_heads:
        assert f"{one.ours.number:.1f}" == f"{one.claim.paper.number:.1f}"
        assert one.ours.of == one.claim.paper.of


@pytest.mark.parametrize("name", MODELS)
def test_the_consistencies_are_the_papers(data, name) -> None:
    # Their file of reviews was not released, so these are not held against each other; they agree all the same.
    found = judge(STUDIES["zhao2020"], recorded(data / "negation", name))
    taus = [one for one in found if one.claim.what.startswith("Kendall")]
    assert len(taus) == 3
    for one in taus:
        assert f"{one.ours.number:.3f}" == f"{one.claim.paper.number:.3f}"
        assert one.verdict == "holds"


def test_the_same_head_is_best_on_both_corpora(data) -> None:
    found = judge(STUDIES["zhao2020"], recorded(data / "negation", "bert-base"))
    (rank,) = [one for one in found if one.claim.what.startswith("rank")]
    assert (rank.ours.number, rank.ours.of, rank.verdict) == (1, "8-4", "holds")


def test_the_misprint_is_named(data) -> None:
    found = judge(STUDIES["zhao2020"], recorded(data / "negation", "roberta-base"))
    (named,) = [one for one in found if "misprint" in one.claim.note]
    assert (named.claim.what, named.ours.of, named.verdict) == ("P, best head", "9-12", "agrees")
    assert f"{named.ours.number:.1f}" == "82.9"


def test_what_was_not_released_is_not_measured(data) -> None:
    found = judge(STUDIES["zhao2020"], recorded(data / "negation", "bert-base"))
    missing = {one.claim.what: one.why for one in found if one.verdict == "not measured"}
    assert missing["P, all in scope"] == "the table has no scope_all_precision"
    assert missing["coefficient of the scope, best head"] == "the table has no scope_label_coefficient"
    assert len(missing) == 9 + 4
