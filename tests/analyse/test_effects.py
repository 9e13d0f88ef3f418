"""Paired effects, their p-values and placebos, beside scipy and statsmodels, and in worlds that we make."""

import numpy as np
import pytest
from scipy.stats import spearmanr, ttest_rel

from headscope.analyse.effects import (
    Effects,
    compare_with_placebos,
    compute_effects,
    correct_by_sign_flips,
    judge,
    rank_agreement,
)
from headscope.analyse.metrics import classification_metrics, name_cell, ratio_metric

MEAN = ratio_metric("mean", "mean", "units", 1, "value", "one")


def effects_of(whole: np.ndarray, disabled: np.ndarray, clusters: np.ndarray | None = None) -> Effects:
    """Effects on the mean of values: one text for each example unless there are clusters."""
    texts = np.arange(len(whole)) if clusters is None else clusters
    return compute_effects(
        MEAN,
        {"value": whole, "one": np.ones_like(whole)},
        {"value": disabled, "one": np.ones_like(disabled)},
        [str(text) for text in texts],
        np.ones(len(whole), dtype=bool),
    )


def test_the_effect_on_a_mean_is_a_paired_t_test() -> None:
    generator = np.random.default_rng(0)
    whole = generator.normal(0, 5, 53)
    disabled = whole + generator.normal(0.3, 1, (7, 53))
    effects = effects_of(whole, disabled)
    lower, upper = effects.interval()
    for unit in range(7):
        expected = ttest_rel(disabled[unit], whole).confidence_interval(0.95)
        assert effects.values[unit] == pytest.approx((disabled[unit] - whole).mean())
        assert (lower[unit], upper[unit]) == pytest.approx((expected.low, expected.high))


def test_examples_of_one_text_count_as_one() -> None:
    generator = np.random.default_rng(1)
    by_text = generator.normal(0, 1, (3, 19))
    once = effects_of(np.zeros(19), by_text)
    often = effects_of(np.zeros(19 * 5), by_text.repeat(5, axis=1), np.arange(19).repeat(5))
    assert often.error == pytest.approx(once.error)
    assert often.freedom == pytest.approx(once.freedom)


def test_a_subset_is_what_its_examples_alone_give() -> None:
    generator = np.random.default_rng(2)
    whole, disabled = generator.normal(0, 1, 31), generator.normal(0, 1, (5, 31))
    subset = np.arange(31) % 3 == 0
    values = {"value": whole, "one": np.ones(31)}
    units = {"value": disabled, "one": np.ones((5, 31))}
    part = compute_effects(MEAN, values, units, [*map(str, range(31))], subset)
    alone = effects_of(whole[subset], disabled[:, subset])
    np.testing.assert_allclose(part.values, alone.values)
    np.testing.assert_allclose(part.error, alone.error)


def simulate_labels(generator: np.random.Generator, texts: int, wrong: float) -> tuple[dict, dict, list[str]]:
    """Gold labels, predictions of the whole model, and of one from which more are wrong; texts of different length."""
    lengths = generator.integers(1, 8, texts)
    clusters = np.arange(texts).repeat(lengths)
    ease = generator.normal(0, 1, texts)[clusters]
    gold = (generator.random(len(clusters)) < 0.6).astype(int)
    right = 1 / (1 + np.exp(-(1.2 + ease)))
    predicted = [np.where(generator.random(len(clusters)) < right - less, gold, 1 - gold) for less in (0.0, wrong)]

    def cells(labels: np.ndarray) -> dict:
        return {name_cell(g, p): ((gold == g) & (labels == p)).astype(float) for g in range(2) for p in range(2)}

    units = {name: values[None] for name, values in cells(predicted[1]).items()}
    return cells(predicted[0]), units, [str(text) for text in clusters]


@pytest.mark.parametrize("name", ["f1", "matthews", "accuracy"])
def test_intervals_cover_the_effect_on_a_metric(name: str) -> None:
    """Paired, clustered intervals of 95 % of metrics that are no means: 93 to 97 % of 1,500 samples."""
    generator, metric = np.random.default_rng(7), classification_metrics(2, 1)[name]
    effects = []
    for _ in range(1500):
        whole, units, clusters = simulate_labels(generator, 60, 0.1)
        effect = compute_effects(metric, whole, units, clusters, np.ones(len(clusters), dtype=bool))
        effects.append((effect.values[0], *(end[0] for end in effect.interval())))
    values, lower, upper = np.array(effects).T
    truth = values.mean()
    assert 0.93 <= ((lower <= truth) & (truth <= upper)).mean() <= 0.97


def test_where_nothing_is_any_unit_is_called_sure_in_5_percent_of_samples() -> None:
    generator = np.random.default_rng(11)
    false = 0
    for sample in range(200):
        # Units that share most of their noise, on texts of which some are much noisier than others.
        noise = generator.normal(0, 1, (1, 41)) + 0.5 * generator.normal(0, 1, (13, 41))
        effects = effects_of(np.zeros(41), noise * generator.exponential(1, 41))
        false += bool(correct_by_sign_flips(effects, flips=199, seed=sample).min() <= 0.05)
    assert false <= 18  # 0.05 * 200 and 2.6 standard deviations


@pytest.mark.parametrize("spread", [0.0, 1.0, 2.0])
def test_texts_of_any_length_give_no_more_false_alarms(spread: float) -> None:
    """Each text changes by an effect of its own, as often up as down; a few texts have most of the examples."""
    generator, false = np.random.default_rng(29), 0
    for sample in range(200):
        lengths = np.maximum(1, np.exp(generator.normal(1, spread, 23))).astype(int)
        clusters = np.arange(23).repeat(lengths)
        changes = generator.normal(0, 1, (1, 23))[:, clusters]
        effects = effects_of(np.zeros(len(clusters)), changes, clusters)
        false += bool(correct_by_sign_flips(effects, flips=199, seed=sample).min() <= 0.05)
    assert false <= 18


def test_a_unit_with_an_effect_is_found_and_no_other() -> None:
    generator = np.random.default_rng(3)
    disabled = generator.normal(0, 1, (13, 101))
    disabled[4] += 0.6
    p = correct_by_sign_flips(effects_of(np.zeros(101), disabled))
    assert p[4] == 1 / 10_000
    assert np.delete(p, 4).min() > 0.05


def test_a_unit_that_changes_nothing_has_p_1() -> None:
    disabled = np.zeros((3, 17))
    disabled[1, 5] = 1.0
    assert correct_by_sign_flips(effects_of(np.zeros(17), disabled))[[0, 2]].tolist() == [1.0, 1.0]


def test_a_single_text_says_nothing() -> None:
    effects = effects_of(np.zeros(7), np.ones((2, 7)), np.zeros(7))
    assert np.isnan(effects.error).all()
    assert np.isnan(correct_by_sign_flips(effects)).all()


def make_placebos(generator: np.random.Generator, norms: np.ndarray, count: int) -> tuple[np.ndarray, list]:
    """Values of placebos, whose spread is proportional to the norm of what is changed."""
    values = [generator.normal(0, norm, count)[:, None] + generator.normal(0, 0.1, (count, 61)) for norm in norms]
    groups = [np.arange(unit * count, (unit + 1) * count) for unit in range(len(norms))]
    return np.concatenate(values), groups


def test_one_more_placebo_lies_in_the_interval_of_the_placebos() -> None:
    generator, inside, total = np.random.default_rng(13), 0, 0
    for _ in range(150):
        norms = generator.uniform(0.5, 3, 11)
        placebos, groups = make_placebos(generator, norms, 4)
        more = generator.normal(0, norms)[:, None] + generator.normal(0, 0.1, (11, 61))
        effects = effects_of(np.zeros(61), np.concatenate([more, placebos]))
        units, own = effects.select(np.arange(11)), effects.select(np.arange(11, 55))
        beside = compare_with_placebos(units, own, groups, ["layer"] * 11, norms)
        inside += int(((beside.lower <= units.values) & (units.values <= beside.upper)).sum())
        total += 11
    assert 0.93 <= inside / total <= 0.97


def test_a_unit_that_is_no_more_than_a_placebo_is_sure_in_5_percent_of_samples_of_all_units() -> None:
    generator, false = np.random.default_rng(17), 0
    for _ in range(200):
        norms = generator.uniform(0.5, 3, 11)
        placebos, groups = make_placebos(generator, norms, 4)
        more = generator.normal(0, norms)[:, None] + generator.normal(0, 0.1, (11, 61))
        effects = effects_of(np.zeros(61), np.concatenate([more, placebos]))
        beside = compare_with_placebos(
            effects.select(np.arange(11)), effects.select(np.arange(11, 55)), groups, ["layer"] * 11, norms
        )
        false += bool(beside.p.min() <= 0.05)
    assert false <= 18


def test_heads_that_change_nothing_do_not_narrow_the_interval_of_placebos() -> None:
    generator, inside = np.random.default_rng(31), 0
    for _ in range(300):
        norms = np.array([0.0] * 7 + [1.0] * 4)
        placebos, groups = make_placebos(generator, norms, 4)
        placebos[:28] = 0
        more = generator.normal(0, norms)[:, None] + np.zeros((11, 61))
        effects = effects_of(np.zeros(61), np.concatenate([more, placebos]))
        units, own = effects.select(np.arange(11)), effects.select(np.arange(11, 55))
        beside = compare_with_placebos(units, own, groups, ["layer"] * 11, norms)
        inside += int(((beside.lower <= units.values) & (units.values <= beside.upper))[7:].sum())
    assert 0.93 <= inside / 1200 <= 0.97


def test_a_unit_that_changes_all_examples_alike_is_beyond_placebos_that_change_nothing() -> None:
    effects = effects_of(np.zeros(30), np.concatenate([-np.ones((1, 30)), np.zeros((4, 30))]))
    beside = compare_with_placebos(
        effects.select(np.arange(1)), effects.select(np.arange(1, 5)), [np.arange(4)], ["layer"], np.ones(1)
    )
    assert beside.p.tolist() == [0.0]


def test_a_unit_beyond_its_placebos_is_found() -> None:
    generator, norms = np.random.default_rng(19), np.ones(11)
    placebos, groups = make_placebos(generator, norms, 4)
    units = generator.normal(0, 0.1, (11, 61))
    units[6] += 9
    effects = effects_of(np.zeros(61), np.concatenate([units, placebos]))
    beside = compare_with_placebos(
        effects.select(np.arange(11)), effects.select(np.arange(11, 55)), groups, ["layer"] * 11, norms
    )
    assert np.flatnonzero(beside.p <= 0.05).tolist() == [6]


def test_verdicts_need_both_tests_and_an_effect_that_can_be_seen() -> None:
    values = np.array([-0.2, 0.2, -0.2, -0.2, -0.0004, 0.2])
    p = np.array([0.01, 0.01, 0.2, 0.01, 0.01, np.nan])
    placebo_p = np.array([0.01, 0.01, 0.01, 0.3, 0.01, np.nan])
    placebos = np.array([0.01, -0.01, 0.0, 0.0, 0.0, np.nan])
    assert judge(1, values, p, placebos, placebo_p) == [
        "needed", "better without", "no effect seen", "no more than its placebos", "no effect seen", "not tested",
    ]  # fmt: skip
    assert judge(-1, values, p, placebos, placebo_p)[:2] == ["better without", "needed"]
    unknown = np.array([np.nan])
    assert judge(0, values[:1], unknown, placebos[:1], placebo_p[:1]) == ["matters"]
    assert judge(0, values[:1], unknown, unknown, unknown) == ["not tested"]
    # Without placebos nothing is called needed.
    assert judge(-1, values[1:2], p[1:2], unknown, unknown) == ["worse without"]
    assert judge(1, values[:1], unknown, placebos[:1], placebo_p[:1]) == ["not tested"]


@pytest.mark.parametrize(
    ("better", "value", "placebo", "verdict"),
    [
        (1, -0.2, -0.6, "no more than its placebos"),
        (-1, 0.2, 0.6, "no more than its placebos"),
        (0, 0.2, 0.6, "no effect seen"),
        (1, -0.2, 0.6, "needed"),
    ],
)
def test_a_unit_that_changes_less_than_its_placebos_is_not_needed(
    better: int, value: float, placebo: float, verdict: str
) -> None:
    """SmolLM2's layer 19: +.176 nats with uniform attention, and +.609 with its placebos; both tests are sure."""
    p = np.array([0.001 if better else np.nan])
    assert judge(better, np.array([value]), p, np.array([placebo]), np.array([0.001])) == [verdict]


def test_rank_agreement_is_that_of_scipy() -> None:
    values = np.random.default_rng(23).normal(0, 1, (3, 31))
    agreement = rank_agreement(values)
    assert agreement[0, 2] == pytest.approx(spearmanr(values[0], values[2]).statistic)
    np.testing.assert_allclose(agreement, agreement.T)


def test_a_way_that_changes_nothing_agrees_with_none() -> None:
    assert np.isnan(rank_agreement(np.stack([np.zeros(5), np.arange(5.0)]))[0, 1])
