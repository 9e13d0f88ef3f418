"""Permuted gold: where it goes, what heads get right there, and a score beside it."""

import re
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
import torch
import xarray as xr
from statsmodels.stats.multitest import multipletests
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import laws
import tiny
import witnesses
from headscope.analyse import add_significance
from headscope.analyse.significance import false_discoveries
from headscope.capture.model.model import Model
from headscope.capture.rows.dense import DenseRows
from headscope.capture.tokens.align import Alignment
from headscope.capture.tokens.batch import collate
from headscope.corpora import Document, Link, Span, summarize
from headscope.errors import HeadscopeError
from headscope.reducers.coreference import MENTIONS, Coreference
from headscope.reducers.negation_scope import NegationScope
from headscope.reducers.relations import Relations
from headscope.reducers.support.permutations import Permutations, Permuted, PermutedItems, with_permutations
from headscope.reducers.support.ratios import score_table
from headscope.reducers.surface import Surface
from headscope.runner import Plan, measure, resolve_reducers
from headscope.score import Score

DOCUMENTS = [*tiny.documents(11), tiny.tokenless_document()]
PERMUTATIONS = 19
PERMUTED = Permutations(PERMUTATIONS)
ONE = Document("one", ("word",))


def test_an_item_goes_to_each_of_its_places_as_often() -> None:
    for places, row in zip((2, 3, 7), Permutations(9973).choose(ONE, [2, 3, 7]), strict=True):
        counts = np.bincount(row, minlength=places)
        assert len(counts) == places
        assert scipy.stats.chisquare(counts).pvalue > 0.001


def test_choices_follow_from_the_name_of_the_document_and_the_seed_alone() -> None:
    choices = PERMUTED.choose(ONE, [101, 103])
    np.testing.assert_array_equal(choices, PERMUTED.choose(Document("one", ("other", "words")), [101, 103]))
    assert not (choices == PERMUTED.choose(Document("two", ("word",)), [101, 103])).all()
    assert not (choices == Permutations(PERMUTATIONS, seed=1).choose(ONE, [101, 103])).all()


@pytest.mark.parametrize("items", [0, 1, 131])
def test_hits_are_counted_by_label_as_a_loop_counts_them(items: int) -> None:
    permutations, labels, heads = 7, 5, 3
    random = np.random.default_rng(items)
    # No item has the third label.
    label = random.choice([0, 1, 3, 4], items)
    places, hits = random.integers(0, 11, (items, permutations)), random.random((11 if items else 0, heads)) < 0.5
    expected = np.zeros((labels, permutations, heads), dtype=np.int64)
    for item in range(items):
        for permutation in range(permutations):
            expected[label[item], permutation] += hits[places[item, permutation]]
    permuted = PermutedItems.group(places, label, labels, torch.device("cpu"))
    np.testing.assert_array_equal(permuted.count_hits(torch.from_numpy(hits)).numpy(), expected)


def test_fewer_than_no_permutations_are_refused() -> None:
    sentence = "-1 permutations were asked for; ask for 0 (no p-values) or more, such as 999."
    with pytest.raises(HeadscopeError, match=f"^{re.escape(sentence)}$"):
        Permutations(-1)


@pytest.mark.parametrize(("rows", "count"), [(1, 999), (49, 999), (50, 1000), (83, 1660), (251, 5000), (997, 5000)])
def test_as_many_permutations_as_one_row_of_many_needs(rows: int, count: int) -> None:
    assert Permutations.for_rows(rows).count == count
    alone = np.ones(rows)
    alone[0] = 1 / (count + 1)
    assert (false_discoveries(alone)[0] < 0.05) == (rows <= 250)


def test_relations_have_as_many_permutations_as_their_rows_need() -> None:
    links = tuple(Link(0, 1, f"label{number}") for number in range(61))
    relations = Relations.for_corpus(summarize([Document("many", ("two", "words"), links)]))
    assert len(relations.rows) == 62
    assert relations.permutations == Permutations(1240)
    assert with_permutations(relations, None) == relations
    assert with_permutations(relations, 7).permutations == Permutations(7)


def test_only_what_knows_gold_is_given_permutations() -> None:
    assert with_permutations(Surface(), 3) == Surface()
    assert with_permutations(NegationScope(), 3) == NegationScope(permutations=Permutations(3))


def test_without_permutations_there_are_no_p_values() -> None:
    module, tokenizer = tiny.make("bert")
    names = ["relations", "coreference", "scope"]
    reducers = [with_permutations(reducer, 0) for reducer in resolve_reducers(names, summarize(DOCUMENTS))]
    table = measure(Model.from_module(module, tokenizer, name="bert"), DOCUMENTS, reducers)
    assert not [name for name in table if str(name).endswith(("_p", "_z", "_permuted"))]


@pytest.mark.parametrize("family", ["bert", "mistral", "bart"])
@pytest.mark.parametrize("plan", [Plan(), Plan(batch_tokens=1, rows=3)], ids=["batched", "alone, 3 rows"])
def test_hits_in_each_permutation_are_those_of_loops(family: str, plan: Plan) -> None:
    module, tokenizer = tiny.make(family)
    model = Model.from_module(module, tokenizer, name=family)
    relations = Relations.for_corpus(summarize(DOCUMENTS))
    reducers = [with_permutations(reducer, PERMUTATIONS) for reducer in (relations, Coreference(), NegationScope())]
    sums = laws.add_up(model, DOCUMENTS, reducers, plan)
    seen: dict[str, list[witnesses.Seen]] = {}
    for document in DOCUMENTS:
        for attention_type, maps in witnesses.see(module, tokenizer, document).items():
            seen.setdefault(attention_type, []).append(maps)
    for attention_type, layers in model.attention_layers.items():
        of_relations, of_mentions, of_scopes = (
            sums.collect_layers(name, attention_type, layers)[permuted]
            for name, permuted in (
                ("relations", "permuted"),
                ("coreference", "antecedent_permuted"),
                ("scope", "scope_permuted"),
            )
        )
        links = [hits for maps in seen[attention_type] for hits in witnesses.permuted_relations(maps, PERMUTED.choose)]
        for row, (_, label) in enumerate(relations.links):
            expected = sum(hits.astype(int) for name, hits in links if name == label)
            np.testing.assert_array_equal(of_relations[..., row, :], np.moveaxis(expected, 0, -1), err_msg=label)
        mentions = [
            mention
            for maps in seen[attention_type]
            for mention in witnesses.permuted_coreference(maps, PERMUTED.choose)
        ]
        scored_mentions = sums.select_counts("coreference", attention_type)["antecedent_permuted_count"]
        tags = {"pronoun": ["PRON"], "proper": ["PROPN"], "nominal": ["NOUN", "VERB"]}
        for row, name in enumerate(MENTIONS):
            there = [(scored, hits) for tag, scored, hits in mentions if name == "all" or tag in tags[name]]
            np.testing.assert_array_equal(scored_mentions[row], sum(scored.astype(int) for scored, _ in there))
            expected = sum(hits.astype(int) for _, hits in there)
            np.testing.assert_array_equal(of_mentions[..., row, :], np.moveaxis(expected, 0, -1), err_msg=name)
        expected = sum(witnesses.permuted_scope(maps, PERMUTED.choose) for maps in seen[attention_type])
        np.testing.assert_array_equal(of_scopes, np.moveaxis(expected, 0, -1))
        assert all(hits.any() for hits in (of_relations, of_mentions, of_scopes))


def test_each_attention_type_has_a_best_head_in_each_permutation() -> None:
    model = Model.from_module(*tiny.make("bart"), name="bart")
    table = measure(model, DOCUMENTS, [with_permutations(Relations.for_corpus(summarize(DOCUMENTS)), PERMUTATIONS)])
    best = table["relation_z_permuted"]
    assert best.sizes["attention_type"] == 3
    assert best.notnull().all()
    assert not best.sel(attention_type="encoder").equals(best.sel(attention_type="cross"))


def test_scores_beside_permutations_as_loops_have_it() -> None:
    random = np.random.default_rng(59)
    score, permuted = random.integers(0, 23, (2, 3, 5)), random.integers(0, 11, (2, 3, 7, 13))
    permuted[0, 1] = 4  # a head that finds the same in every permutation
    score[0, 1] = (8, 8, 4, 4, 8)
    pooled = [[0], [1, 2], [3], [4], [5, 6]]
    ours = Permuted.compare(score, permuted, pooled)
    for row, pool in enumerate(pooled):
        best = [-np.inf] * 13
        for layer, head in np.ndindex(2, 3):
            values = [sum(int(permuted[layer, head, part, k]) for part in pool) for k in range(13)]
            everything = [*values, int(score[layer, head, row])]
            mean, deviation = np.mean(everything), np.std(everything)
            z = [(value - mean) / max(deviation, 1.0) for value in everything]
            best = [max(pair) for pair in zip(best, z, strict=False)]
            assert ours.mean[layer, head, row] == pytest.approx(np.mean(values))
            assert ours.z[layer, head, row] == pytest.approx(z[-1])
            assert ours.p[layer, head, row] == np.mean([value >= everything[-1] for value in everything])
        np.testing.assert_allclose(ours.best[row], best)


def test_heads_that_find_next_to_nothing_do_not_hide_one_that_finds_much() -> None:
    random, permutations = np.random.default_rng(83), 199
    rare = np.exp(random.uniform(np.log(0.001), np.log(3), 211))
    scores = random.poisson(rare[:, None], (211, permutations + 1))
    scores[0] = random.binomial(50, 0.1, permutations + 1)
    scores[0, 0] = 20
    ours = Permuted.compare(scores[None, :, :1], scores[None, :, None, 1:], [[0]])
    assert ours.z.max() == ours.z[0, 0, 0] > ours.best.max()


def shares(hits: list[int], permuted: list[list[int]], count: list[list[int]], *, items: int = 10) -> xr.Dataset:
    """The table of a layer of one head, with two rows of so many items, and the hits and items of permutations."""
    score = Score("own_accuracy", "Own", "a share", numerator=("right",), denominator=("all",))
    by_fold = {"right": np.array(hits).reshape(1, 1, 2, 1), "all": np.full((2, 1), items)}
    by_fold |= {"own_permuted": np.array(permuted)[None, None], "own_permuted_count": np.array(count)}
    return score_table(score, by_fold, {"class": ["one", "other"]}).isel(layer=0, head=0)


def test_where_the_items_vary_shares_are_compared() -> None:
    table = shares([6, 3], [[3, 2, 8, 3], [1, 1, 1, 1]], [[5, 4, 16, 4], [2, 5, 4, 10]])
    np.testing.assert_allclose(table["own_permuted"], [(0.6 + 0.5 + 0.5 + 0.75) / 4, (0.5 + 0.2 + 0.25 + 0.1) / 4])
    assert table["own_p"].values.tolist() == [3 / 5, 2 / 5]
    fewer = shares([6, 3], [[3, 2, 8, 3], [1, 1, 1, 1]], [[10] * 4] * 2)
    assert fewer["own_p"].values.tolist() == [2 / 5, 1 / 5]


def test_a_permutation_without_items_counts_as_one_that_is_as_good() -> None:
    table = shares([6, 3], [[0, 0, 0, 0], [0, 0, 0, 0]], [[0, 9, 9, 0], [9, 9, 9, 9]])
    assert table["own_p"].values.tolist() == [3 / 5, 1 / 5]
    np.testing.assert_allclose(table["own_permuted"], [0.3, 0])


def test_a_row_without_items_has_no_p_value() -> None:
    spans = tuple(Span(word, word + 1, "1", "mention") for word in (0, 2, 3))
    tagged = (Span(2, 3, "PRON", "upos"), Span(3, 4, "PRON", "upos"))
    document = Document("pronouns", ("Rex", "saw", "him", "her"), spans=spans + tagged)
    model = Model.from_module(*tiny.make("bert"), name="bert")
    table = add_significance(measure(model, [document], [with_permutations(Coreference(), PERMUTATIONS)]))
    there = table["antecedent_count"] > 0
    assert dict(zip(MENTIONS, there.values.tolist(), strict=True)) == {
        "all": True, "pronoun": True, "proper": False, "nominal": False
    }  # fmt: skip
    for name in ("permuted", "z", "p", "z_permuted", "p_corrected", "q", "best_p", "best_q"):
        values = table[f"antecedent_{name}"]
        assert (values.notnull() == there).all(), name
    theirs = multipletests(table["antecedent_best_p"].values[:2], method="fdr_bh")[1]
    np.testing.assert_allclose(table["antecedent_best_q"].values[:2], theirs)


def test_scores_of_one_table_may_have_different_numbers_of_permutations() -> None:
    model = Model.from_module(*tiny.make("bert"), name="bert")
    reducers = [Coreference(permutations=Permutations(17)), NegationScope(permutations=Permutations(29))]
    together = add_significance(measure(model, DOCUMENTS, reducers))
    assert together.sizes["permutation"] == 29
    assert (together["antecedent_z_permuted"].notnull().sum("permutation") == 17).all()
    for reducer in reducers:
        alone = add_significance(measure(model, DOCUMENTS, [reducer]))
        shared = [name for name in alone.data_vars if "permutation" not in alone[name].dims]
        xr.testing.assert_identical(together[shared].drop_attrs(deep=False), alone[shared].drop_attrs(deep=False))


class Largest(TorchDispatchMode):
    """How many numbers the largest tensor holds that is made."""

    def __init__(self) -> None:
        """Begin with none."""
        super().__init__()
        self.numbers = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        """Compute as ever, and look at the result."""
        result = func(*args, **(kwargs or {}))
        sizes = [leaf.numel() for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)]
        self.numbers = max([self.numbers, *sizes])
        return result


@pytest.mark.parametrize("name", ["relations", "coreference", "scope"])
def test_permutations_of_a_long_text_need_no_more_memory_than_those_of_a_short_one(name: str) -> None:
    permutations, heads, words = 997, 5, 17
    long = [document for document in DOCUMENTS * 61 if len(document.words) == words]
    documents = [replace(document, id=str(number)) for number, document in enumerate(long)]
    reducer = with_permutations(resolve_reducers([name], summarize(documents))[0], permutations)
    model = Model.from_module(*tiny.make("bert"), name="bert")
    batch = collate(model, Alignment.for_model(model).align(documents)[0])
    facts = reducer.prepare(batch, "encoder")
    tokens = batch.encoder.length
    weights = torch.rand(len(documents), heads, tokens, tokens)
    everything, allowed = slice(0, tokens), torch.full((len(documents), tokens), float(tokens))
    attention = DenseRows(1, "encoder", everything, batch, weights, everything, allowed)
    with Largest() as largest:
        reducer.observe(facts, attention)
    assert largest.numbers <= 64 * permutations * heads * 2, largest.numbers
