"""What the statistics say where there is nothing to say: every head at chance, over and over.

11 layers of 13 heads attend at random, in two directions: 286 chance predictors, as many as there are for BERT-base.
"""

from functools import cache

import numpy as np
import pytest
import torch
import xarray as xr

import tiny
from headscope.analyse import add_report, add_significance
from headscope.capture.model.model import Model
from headscope.capture.rows.dense import DenseRows
from headscope.capture.tokens.align import Alignment
from headscope.capture.tokens.batch import collate
from headscope.corpora import Document, summarize
from headscope.reducers.relations import Relations
from headscope.reducers.support.permutations import Permutations
from headscope.runner.checkpoint import RunSums
from headscope.score import write_scores

pytestmark = pytest.mark.full

LAYERS, HEADS, DOCUMENTS, PERMUTATIONS, SEEDS = 11, 13, 61, 99, 31
LABELS = ("amod", "case", "det", "nsubj", "nsubj:pass", "obj", "obl")
PLANTED = (7, 5)


@cache
def worlds() -> tuple[Document, ...]:
    """The documents of all worlds."""
    return tuple(tiny.documents(DOCUMENTS * (SEEDS + 1)))


@cache
def table(seed: int, planted: float = 0.0) -> xr.Dataset:
    """Heads that attend at random on a corpus of random trees; one may look at the gold heads, to such a degree."""
    # Other documents in each world: that all heads like long words, where some links of a corpus go, is chance once.
    documents = [*worlds()[DOCUMENTS * seed : DOCUMENTS * (seed + 1)]]
    model = Model.from_module(*tiny.make("bert"), name="bert")
    batch = collate(model, Alignment.for_model(model).align(documents)[0])
    relations = Relations.for_corpus(summarize(documents))
    relations = Relations(relations.links, permutations=Permutations(PERMUTATIONS, seed=seed))
    random = torch.Generator().manual_seed(seed)
    tokens = batch.encoder.length
    everything, allowed = slice(0, tokens), torch.full((DOCUMENTS, tokens), float(tokens))
    links = relations.prepare(batch, "encoder")
    sums = {("relations", "encoder", "-", name): value for name, value in relations.count(links).items()}
    for layer in range(1, LAYERS + 1):
        weights = torch.rand(DOCUMENTS, HEADS, tokens, tokens, generator=random)
        if planted and layer == PLANTED[0]:
            for index, document in enumerate(batch.documents):
                word = batch.encoder.word[index]
                for link in document.links:
                    if torch.rand((), generator=random) < planted:
                        weights[index, PLANTED[1] - 1, word == link.source] += 9.0 * (word == link.target)
        weights = (weights * batch.encoder.real[:, None, None]).softmax(-1)
        attention = DenseRows(layer, "encoder", everything, batch, weights, everything, allowed)
        hits = relations.observe(links, attention)
        sums |= {("relations", "encoder", str(layer), name): value for name, value in hits.items()}
    done = RunSums.from_tensors(sums)
    stacked = done.collect_layers("relations", "encoder", range(1, LAYERS + 1))
    counts = done.select_counts("relations", "encoder")
    values = relations.result(stacked, counts).assign_attrs(scores=write_scores(relations.scores))
    return values.assign_coords(layer=np.arange(1, LAYERS + 1), head=np.arange(1, HEADS + 1))


@cache
def at_chance() -> xr.Dataset:
    """Seven relations in each of 31 worlds, with all that is told of them."""
    every = [add_report(add_significance(table(seed)), minimum=1) for seed in range(SEEDS)]
    return xr.concat([world.sel(relation=list(LABELS)) for world in every], "world")


def within(share: float, level: float, tests: int) -> bool:
    """Whether so many tests reject no more often than they may, three standard errors allowed."""
    return share <= level + 3 * np.sqrt(level * (1 - level) / tests)


@pytest.mark.parametrize("level", [0.05, 0.2])
def test_corrected_p_values_reject_at_most_at_their_level(level: float) -> None:
    values = at_chance()
    rejected = (values["best_p"] <= level).mean().item()
    assert within(rejected, level, SEEDS * len(LABELS))
    assert rejected > 0  # a test that never rejects would pass as well
    # No head of a relation has a smaller one.
    over = ("layer", "head", "direction")
    np.testing.assert_array_equal(values["relation_p_corrected"].min(over), values["best_p"])


def test_p_values_of_single_heads_are_level_and_say_nothing_of_the_best_of_many() -> None:
    values = at_chance()
    share = (values["relation_p"] <= 0.05).mean().item()
    assert 0.02 < share <= 0.055
    best = values["relation_p"].min(("layer", "head", "direction"))
    assert (best <= 0.05).mean() > 0.9


def test_false_discovery_rates_reject_in_few_worlds() -> None:
    values = at_chance()
    for rate in ("best_q", "verdict_p"):
        anything = (values[rate] <= 0.1).any("relation").mean().item()
        assert within(anything, 0.1, SEEDS)


def test_the_best_of_286_shows_a_lift_and_held_out_there_is_none() -> None:
    values = at_chance()
    over = ("layer", "head", "direction")
    chance = values["relation_accuracy"].mean(over)
    lift = (values["relation_accuracy"].max(over) - chance).mean().item()
    assert lift > 0.1
    held_out = (values["heldout_accuracy"] - chance).mean(("relation", "world")).item()
    spread = values["heldout_accuracy"].std(("relation", "world")).item() / np.sqrt(SEEDS * len(LABELS))
    assert abs(held_out) < 4 * spread < lift / 4
    permuted = (values["reported_permuted"] - chance).mean().item()
    assert abs(permuted) < lift / 4


def test_a_head_that_looks_at_the_gold_is_found_and_no_other() -> None:
    values = add_significance(table(SEEDS, planted=0.7)).sel(relation="all")
    assert values["best_p"] == 1 / (PERMUTATIONS + 1)
    sure = (values["relation_p_corrected"].sel(direction="dependent_to_head") == values["best_p"]).values
    assert np.argwhere(sure).tolist() == [[PLANTED[0] - 1, PLANTED[1] - 1]]
