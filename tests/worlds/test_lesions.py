"""How often something is said to suffer without heads that are like random ones, and how often what does is named."""

import json
import random
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers as hf
from scipy.stats import binom

import headscope
import tiny
from headscope.analyse.lesions import choose_sets
from headscope.analyse.rank_test import Parts, count_needed_runs, draw_until_decided, rank_first_run
from headscope.capture.model.model import Model
from headscope.view.lesions_report import list_lesions
from worlds.lesion_worlds import PHENOMENA, SETS, WORLDS, judge


def test_draws_are_as_many_as_a_call_takes() -> None:
    assert [count_needed_runs(tests) for tests in (1, 3, 6, 7, 8)] == [20, 60, 120, 140, 160]
    for tests in range(1, 200):
        draws = count_needed_runs(tests)
        assert tests / (draws + 1) < 0.05 <= tests / draws + 1e-12


def test_an_early_end_is_after_a_stage_and_the_last_is_complete() -> None:
    """With no draw as bad all are made; with all as bad, or too few possible, only the first stage."""
    seen = []

    def draw(going, done, until):
        seen.append(([*going], done, until))
        return {each: np.array([[2.0, 0.0], *([[each * 3.0, 0.0]] * (until - 1)), [0.0, 1.0]]) for each in going}

    parts = Parts(np.full(2, 0.5), np.full(2, 2.0))
    p = draw_until_decided(draw, parts, [60, 60, 59], 10)
    assert seen == [([0, 1, 2], 0, 10), ([0], 10, 20), ([0], 20, 40), ([0], 40, 60)]
    assert p[0, 0] == 3 / 61
    assert p[1, 0] == 1
    assert np.isnan(p[2]).all()


def test_equal_harm_and_what_no_run_has_count_as_as_bad() -> None:
    parts = Parts(np.zeros(2), np.ones(2))
    harm = np.array([[1.0, np.nan], [1.0 + 1e-12, np.nan], [0.0, np.nan], [0.5, np.nan]])
    assert rank_first_run(harm, parts).tolist() == [0.5, 1.0]
    assert rank_first_run(harm[:1], parts).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("name", WORLDS)
def test_p_values_of_early_ends_hold(name: str) -> None:
    """A p-value of at most p has a probability of at most p, at whatever stage it ends."""
    generator, world = np.random.default_rng(7), WORLDS[name]
    p = []
    for _ in range(400):
        draws = world.begin(generator)
        harm = [draws(1)]

        def draw(going, done, until, harm=harm, draws=draws):
            harm.append(draws(until - done))
            return {0: np.concatenate(harm)}

        p.append(draw_until_decided(draw, world.parts, [20], 5).min())
    for level in (0.02, 0.05, 0.1, 0.3, 0.5):
        assert (np.array(p) <= level).sum() <= binom.ppf(0.9999, len(p), level)


def count_false(name: str, tables: int) -> tuple[int, float]:
    judged = [judge(WORLDS[name], seed) for seed in range(tables)]
    return sum(bool(each.suffers.any()) for each in judged), float(np.mean([each.runs.mean() for each in judged]))


@pytest.mark.parametrize("name", ["skewed", "30 x 9 heads"])
def test_few_tables_of_exchangeable_sets_say_suffers(name: str) -> None:
    tables = 150
    false, runs = count_false(name, tables)
    assert false <= binom.ppf(0.999, tables, 0.05)
    assert runs <= 22


@pytest.mark.full
@pytest.mark.parametrize("name", WORLDS)
def test_at_most_one_table_in_twenty_says_suffers(name: str) -> None:
    """Of as many tables as the gate has time for: `benchmarks/verdicts.py` has a thousand.

    A set runs fewer than 20 random sets on the average.
    """
    tables = 500
    false, runs = count_false(name, tables)
    assert false <= binom.ppf(0.99, tables, 0.05)
    assert runs < 20


def find(name: str, size: float, tables: int) -> tuple[float, float]:
    """How often a planted lesion of the first set is named, and how often something else is."""
    named, false = 0, 0
    for seed in range(tables):
        part = seed % PHENOMENA
        suffers = judge(WORLDS[name], seed + 10**6, [(0, part, size)]).suffers
        named += bool(suffers[0, part])
        suffers[0, part] = False
        false += bool(suffers.any())
    return named / tables, false / tables


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "powers"),
    [("normal", (0.28, 0.91, 1.0)), ("heavy", (0.03, 0.21, 0.47)), ("30 x 9 heads", (0.04, 0.15, 0.53))],
)
def test_power_is_as_stated(name: str, powers: tuple[float, float, float]) -> None:
    """Of lesions of 3, 5 and 7 standard deviations; and what is not planted is named no more often than without."""
    for size, power in zip((3, 5, 7), powers, strict=True):
        named, false = find(name, size, 400)
        assert abs(named - power) < 0.1
        assert false <= binom.ppf(0.999, 400, 0.05)


def test_a_lesion_of_seven_standard_deviations_is_named() -> None:
    named, _ = find("normal", 7, 20)
    assert named >= 0.9
    assert SETS == 8


@pytest.mark.full
@pytest.mark.parametrize("seed", range(2))
def test_nothing_suffers_without_the_heads_of_an_untrained_model(seed: int, tmp_path: Path) -> None:
    """The heads that lead relations, of a decoder with random weights; sentences and what they shuffle to."""
    torch.manual_seed(seed)
    body, tokenizer = tiny.make("gpt2")
    sizes = {"n_layer": 4, "n_head": 6, "n_embd": 48, "initializer_range": 0.3}
    config = hf.GPT2Config.from_dict(body.config.to_dict() | sizes)
    model = Model.from_module(hf.GPT2LMHeadModel(config).eval(), tokenizer, name="untrained")
    words, lines = random.Random(seed), []
    for number in range(64):
        good = words.choices(tiny.WHOLE, k=5)
        bad = words.sample(good, k=5)
        pair = {"sentence_good": " ".join(good), "sentence_bad": " ".join(bad), "linguistics_term": f"p{number % 8}"}
        lines.append(json.dumps(pair | {"UID": f"u{number % 16}", "pairID": str(number)}))
    (tmp_path / "pairs.jsonl").write_text("\n".join(lines))
    sets = choose_sets(headscope.measure(model, "grammar:150", "relations", permutations=0), 5, most=3)
    table = headscope.lesions(model, tmp_path / "pairs.jsonl", sets, progress=False)
    assert {f"phenomenon p{number}" for number in range(8)} <= {*table["subset"].values}
    assert "suffers" not in {*list_lesions(table)["verdict"]}
    assert int(table["set_random_sets"].min()) >= 10
