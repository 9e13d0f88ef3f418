"""Attention sinks: naive loops over the maps of the model itself, and worlds of heads."""

import numpy as np
import pytest

import tiny
import witnesses
from causal_heads import Scores, attend_evenly, build, like_tokens, look_at_place, look_back, look_nearby
from family_maps import make, see_all
from headscope.corpora import Document, read, summarize
from headscope.reducers import REDUCERS, Sinks
from headscope.reducers.sinks import SHORTEST, SINKS, THRESHOLD
from headscope.runner import Plan, measure

DOCUMENTS = [document for document in tiny.documents(31) if len(document.words) > 6]
IGNORANT = [attend_evenly, like_tokens, look_back(1), look_back(3), look_nearby(3.0)]
"""Heads that attend evenly, to liked tokens, and at a distance."""


@pytest.mark.parametrize("family", tiny.FAMILIES)
@pytest.mark.parametrize("plan", [Plan(), Plan(batch_tokens=1), Plan(fused=True)], ids=["batched", "single", "fused"])
def test_shares_equal_naive_loops(family: str, plan: Plan) -> None:
    seen = see_all(family, tuple(DOCUMENTS))
    table = measure(make(family), DOCUMENTS, ["sinks"], plan=plan)
    for attention_type, maps in seen.items():
        ours = table
        if "attention_type" in table.dims:
            ours = table.sel(attention_type=attention_type).isel(layer=slice(0, len(maps[0].weights)))
        rows = witnesses.sinks(maps, causal=attention_type == "decoder", with_decoder="decoder" in seen)
        assert list(rows) == list(SINKS)
        assert rows["first token"][-1] > 3
        for name, (share, beside, uniform, mass, count) in rows.items():
            row = ours.sel(sink=name)
            assert int(row["sink_count"]) == count
            np.testing.assert_allclose(row["sink_share"].transpose("layer", "head"), share, err_msg=name)
            np.testing.assert_allclose(row["sink_mass"].transpose("layer", "head"), mass, atol=1e-6, err_msg=name)
            sums = row["fold_sink_beside"].sum("fold").transpose("layer", "head") / (count or np.nan)
            np.testing.assert_allclose(sums, beside, err_msg=name)
            sums = row["fold_sink_uniform"].sum("fold").transpose("layer", "head") / (count or np.nan)
            np.testing.assert_allclose(sums, np.broadcast_to(uniform, sums.shape), err_msg=name)


def judge(heads: list[Scores], documents: list[Document]) -> dict[str, tuple[str, float]]:
    """Of each token that may be a sink the verdict and the reported head."""
    model = make("gpt2")
    table = build(Sinks.for_corpus(summarize(documents)), model, heads, documents)
    values = zip(table["sink_reported_verdict"].values, table["sink_reported_head"].values, strict=True)
    return {name: (str(verdict), head) for name, (verdict, head) in zip(SINKS, values, strict=True)}


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    """Random tokens, 20 to 64 of them."""
    halves = [document.truncate(len(document.words) // 2) for document in read("repeats:150:3")]
    return [document for document in halves if len(document.words) >= 20]


def test_no_head_has_a_sink_that_attends_elsewhere(documents: list[Document]) -> None:
    assert {verdict for verdict, _ in judge(IGNORANT, documents).values()} <= {"does not stand out", ""}


@pytest.mark.parametrize("strength", [9, 4])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_sink_is_found_at_its_token_alone(documents: list[Document], place: int, strength: float) -> None:
    verdicts = judge([*IGNORANT, look_at_place(place, strength)], documents)
    assert {name: head for name, (verdict, head) in verdicts.items() if verdict == "stands out"} == {
        SINKS[place]: len(IGNORANT) + 1
    }


def test_in_short_texts_uniform_attention_would_pass_for_a_sink() -> None:
    """That is why a text counts from 16 tokens on: the mean of 1/i is above 0.3 up to the ninth."""
    means = np.cumsum(1 / np.arange(1, 31)) / np.arange(1, 31)
    assert (means > THRESHOLD).sum() == 9 < SHORTEST
    assert not REDUCERS["sinks"].supports(summarize(DOCUMENTS))
