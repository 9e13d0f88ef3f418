"""Links that bring their own wrong answers, as choices: against loops, planted heads, permutations, a report."""

import random

import numpy as np
import pytest
import torch
import xarray as xr

import headscope
import laws
import planted
import rivals
import tiny
import witnesses
from headscope.analyse.report import DOES_NOT, STANDS_OUT
from headscope.capture.model.model import Model
from headscope.capture.tokens.words import Words
from headscope.corpora import Document, Link, summarize
from headscope.reducers import Relations, Rule
from headscope.reducers.support.candidates import TIE, Choices, lay_out_candidates
from headscope.reducers.support.directions import find_scored
from headscope.reducers.support.folds import Bins
from headscope.reducers.support.permutations import Permutations, PermutedItems, with_permutations
from headscope.runner import Plan, measure
from headscope.view.page import render_page
from headscope.view.reports import read_reports
from headscope.view.table_frames import make_frames

DOCUMENTS = rivals.add_rivals([*tiny.documents(11), tiny.tokenless_document()])
PERMUTED = Permutations(19)
PLANS = pytest.mark.parametrize("plan", [Plan(), Plan(batch_tokens=1, rows=3)], ids=["batched", "alone, 3 rows"])


def see(family: str) -> tuple[Model, dict[str, list[witnesses.Seen]]]:
    """A tiny model, and what the witness saw of it in each attention type."""
    module, tokenizer = tiny.make(family)
    seen: dict[str, list[witnesses.Seen]] = {}
    for document in DOCUMENTS:
        for attention_type, maps in witnesses.see(module, tokenizer, document).items():
            seen.setdefault(attention_type, []).append(maps)
    return Model.from_module(module, tokenizer, name=family), seen


@pytest.mark.parametrize("family", ["bert", "mistral", "bart", "t5"])
@PLANS
def test_choices_are_those_of_loops(family: str, plan: Plan) -> None:
    model, seen = see(family)
    table = measure(model, DOCUMENTS, ["relations"], plan=plan)
    for attention_type, maps in seen.items():
        ours = table.sel(attention_type=attention_type) if "attention_type" in table.dims else table
        ours = ours.dropna("layer", how="all", subset=["candidate_accuracy"])
        expected = witnesses.candidates(maps)
        assert {"all", "punct", "nsubj:*"} <= set(expected) <= set(ours["relation"].values)
        for name, choices in expected.items():
            row = ours.sel(relation=name)
            accuracy = row["candidate_accuracy"].sel(direction=list(witnesses.DIRECTIONS))
            np.testing.assert_allclose(accuracy.transpose("layer", "head", "direction").values, choices.accuracy)
            for way, direction in enumerate(witnesses.DIRECTIONS):
                in_direction = row.sel(direction=direction)
                assert in_direction["candidate_count"] == choices.counts[way]
                for rival, values in (("chance", choices.chance), ("nearest", choices.nearest)):
                    total = in_direction[f"fold_candidate_{rival}"].sum().item()
                    assert total == pytest.approx(choices.total_of(values)[way])
    others = sorted({*table["relation"].values} - {*expected})
    assert (table["candidate_count"].sel(relation=others) == 0).all()
    if family == "mistral":  # a choice between a candidate before the source and one behind it counts in no direction
        all_of_them = expected["all"]
        assert 0 < all_of_them.counts.sum() < len(all_of_them.hits)


@pytest.mark.parametrize("family", ["bert", "mistral", "bart"])
@PLANS
def test_hits_in_each_permutation_are_those_of_loops(family: str, plan: Plan) -> None:
    model, seen = see(family)
    relations = Relations.for_corpus(summarize(DOCUMENTS))
    sums = laws.add_up(model, DOCUMENTS, [with_permutations(relations, PERMUTED.count)], plan)
    for attention_type, layers in model.attention_layers.items():
        ours = sums.collect_layers("relations", attention_type, layers)["candidate_permuted"]
        theirs = [
            hits for maps in seen[attention_type] for hits in witnesses.permuted_candidates(maps, PERMUTED.choose)
        ]
        for row, (_, label) in enumerate(relations.links):
            expected = sum(hits.astype(int) for name, hits in theirs if name == label)
            np.testing.assert_array_equal(ours[..., row, :], np.moveaxis(expected, 0, -1), err_msg=label)
        assert ours.any()


def words() -> Words:
    """Attention between the five words of two texts, of three heads."""
    weights = torch.zeros(2, 3, 5, 5)
    weights[0, 0, 1, 3], weights[0, 0, 1, 4], weights[0, 0, 1, 0] = 0.2, 0.1, 0.6  # to the target, and more elsewhere
    weights[0, 1, 1, 3], weights[0, 1, 1, 4] = 0.25, 0.25
    weights[1, 2, 4, 2], weights[1, 2, 1, 4] = 0.1, 0.9
    weights[1, 0, 1, 4], weights[1, 0, 0, 4] = 0.5, 0.4
    return Words(weights)


def choices(*links: Link) -> Choices:
    """Choices of one text each."""
    number = torch.arange(len(links))
    candidates = torch.from_numpy(lay_out_candidates(links))
    no_places = np.zeros((len(links), 0), dtype=np.int64)
    permuted = PermutedItems.group(no_places, np.zeros(len(links), dtype=np.int64), 1, number.device)
    source = torch.tensor([link.source for link in links])
    scored = find_scored(source, candidates, is_causal=False)
    return Choices(number, number, source, candidates, scored, permuted, Bins(number, number, len(links)))


def test_ties_and_heads_that_see_no_candidate_choose_none() -> None:
    chosen = choices(Link(1, 3, "x", rivals=(4,)), Link(4, 2, "x", rivals=(0, 1))).choose(words())
    from_source, to_source = chosen.movedim(-1, 0).tolist()
    assert from_source == [[0, TIE, TIE], [TIE, TIE, 0]]
    assert to_source == [[TIE, TIE, TIE], [2, TIE, 2]]


def test_a_guess_and_the_nearest_candidate_share_what_they_cannot_decide() -> None:
    near = choices(
        Link(5, 3, "x", rivals=(7,)), Link(5, 4, "x", rivals=(7, 0)), Link(5, 0, "x", rivals=(9,)),
        Link(5, 3, "x", rivals=(7, 2, 0)),
    )  # fmt: skip
    assert near.take_nearest()[:, 0].tolist() == [0.5, 1, 0, 0.5]
    assert near.guess()[:, 0].tolist() == [1 / 2, 1 / 3, 1 / 2, 1 / 4]


def test_without_rivals_nothing_is_added() -> None:
    table = measure(Model.from_module(*tiny.make("bert")), tiny.documents(5), ["relations"])
    assert not [name for name in table.data_vars if "candidate" in str(name)]


# ------------------------------------------------------------------ planted


def knows(query: torch.Tensor, key: torch.Tensor) -> None:
    """From *sees* to the dog and from *likes* to the cat."""
    for place, pair in enumerate((("sees", "dog"), ("likes", "cat"))):
        for matrix, word in zip((query, key), pair, strict=True):
            matrix[place, planted.SIZE + planted.WORDS.index(word)] = 1


def prefers(query: torch.Tensor, key: torch.Tensor) -> None:
    """From either to the dog."""
    query[0, [planted.SIZE + planted.WORDS.index(word) for word in ("sees", "likes")]] = 1
    key[0, planted.SIZE + planted.WORDS.index("dog")] = 1


KNOWS, PREFERS, BOTH = (2, 3), (1, 2), (3, 5)
RULES = {KNOWS: knows, PREFERS: prefers, BOTH: planted.from_to("verb", "noun")}


def pairs(count: int = 401) -> list[Document]:
    """Texts of a dog, a cat and one of two verbs, in any order and anywhere; the verb decides which noun is meant."""
    documents = []
    for number in range(count):
        rng = random.Random(f"pairs {number}")
        verb, target, rival = rng.sample(range(11), 3)
        likes = rng.random() < 0.5
        words = ["now"] * 11
        words[verb], words[target], words[rival] = ("likes", "cat", "dog") if likes else ("sees", "dog", "cat")
        link = Link(verb, target, "likes" if likes else "sees", "pair", rivals=(rival,))
        documents.append(Document(f"pairs-{number}", tuple(words), (link,)))
    return documents


def find_meant(document: Document) -> list[int | None]:
    """The noun that the verb means: all there is to know."""
    meant = {"sees": "dog", "likes": "cat"}
    return [document.words.index(meant[word]) if word in meant else None for word in document.words]


@pytest.fixture(scope="module")
def table() -> xr.Dataset:
    measured = measure(planted.plant(RULES), pairs(), ["surface", with_permutations(relations(), 499)])
    return headscope.analyse.assess(measured)


def relations(*rules: Rule) -> Relations:
    return Relations.for_corpus(summarize(pairs()), rules)


def test_the_head_that_chooses_right_is_reported_and_stands_out(table) -> None:
    row = table.sel(relation="pair all")
    named = [row[f"candidate_reported_{part}"].item() for part in ("layer", "head", "direction")]
    assert named == [*KNOWS, "dependent_to_head"]
    assert row["candidate_heldout_accuracy"] == 1
    assert row["candidate_heldout_chance_accuracy"] == 0.5
    assert 0.4 < row["candidate_heldout_nearest_accuracy"] < 0.6
    assert row["candidate_lift_lower"] > 0.3
    assert row["candidate_verdict_p"] < 0.01
    assert row["candidate_reported_permuted"].item() == pytest.approx(0.5, abs=0.02)
    assert row["candidate_reported_verdict"] == STANDS_OUT


def test_heads_that_know_both_nouns_but_not_which_are_no_better_than_a_guess(table) -> None:
    heads = table.sel(direction="dependent_to_head", relation="pair all")
    (layer, head), (both_layer, both_head) = PREFERS, BOTH
    prefers, both = heads.sel(layer=layer, head=head), heads.sel(layer=both_layer, head=both_head)
    assert 0.4 < prefers["candidate_accuracy"] < 0.6
    assert prefers["candidate_p"] > 0.05
    assert both["candidate_accuracy"] < 0.6
    assert both["candidate_p"] > 0.05
    # Among all words either would stand out.
    assert prefers["relation_p"] < 0.01 > both["relation_p"]
    assert table["candidate_accuracy"].sel(relation="pair sees", layer=layer, head=head).max() == 1


def test_a_rule_that_knows_as_much_leaves_nothing_to_the_head() -> None:
    known = with_permutations(relations(Rule("what is meant", find_meant)), 199)
    row = headscope.analyse.assess(measure(planted.plant(RULES), pairs(), [known])).sel(relation="pair all")
    for prefix in ("", "candidate_"):
        assert row[f"{prefix}heldout_accuracy"] == 1 == row[f"{prefix}heldout_rule_accuracy"]
        assert (row[f"{prefix}lift_rival"], row[f"{prefix}heldout_rule"]) == ("rule", "what is meant")
        assert row[f"{prefix}heldout_rule_end"] == "source"
        assert row[f"{prefix}reported_verdict"] == DOES_NOT


def test_the_page_and_the_csv_files_have_choices_as_they_have_links(table) -> None:
    report = {report.score.variable: report for report in read_reports(table)}["candidate_accuracy"]
    (row, *_) = report.rows
    assert (row.name, row.where, row.verdict) == ("pair all", "2-3", STANDS_OUT)
    assert {rival.label for rival in row.rivals} == {"guessing among the candidates", "nearest candidate"}
    assert "Choices among candidates" in render_page(table, figures={})
    frames = make_frames(table)
    assert {"candidate_accuracy", "relation_accuracy"} & {*frames["candidate-heads"]} == {"candidate_accuracy"}
    assert {"candidate_accuracy", "relation_accuracy"} & {*frames["relation-heads"]} == {"relation_accuracy"}
    assert not [name for name in frames["relation"] if name.startswith("candidate")]
    assert not {"reported_layer", "offset_accuracy"} & {*frames["candidate"]}
    assert frames["candidate"]["candidate_count"].tolist() == [401, *table["relation_count"].values[1:]]


def test_a_row_without_choices_has_no_p_value(table) -> None:
    mixed = [*pairs(31), *planted.documents(31)]
    reducer = with_permutations(Relations.for_corpus(summarize(mixed)), 19)
    row = headscope.analyse.assess(measure(planted.plant(RULES), mixed, [reducer])).sel(relation="obj")
    assert row["candidate_count"] == 0
    assert row["candidate_reported_layer"].isnull()
    for name in ("candidate_accuracy", "candidate_p", "candidate_z", "candidate_q", "candidate_best_p"):
        assert row[name].isnull().all(), name
    assert row["relation_p"].notnull().all()
