"""Scores against counts by hand and closed forms."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import pearsonr

import toys
from headscope.learn.scoring import NAMES, scores

GIVEN = np.array([1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0])
SAID = np.array([1, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0])  # 3 hits, 1 false, 2 missed, 5 rightly not


def test_tagging_is_scored_by_the_positive_label() -> None:
    found = scores(toys.tagging(), SAID, GIVEN)
    assert found == {"precision": 3 / 4, "recall": 3 / 5, "f1": pytest.approx(2 / 3), "accuracy": 8 / 11}
    of_other = scores(toys.tagging(positive="0"), SAID, GIVEN)
    assert of_other["precision"] == pytest.approx(5 / 7)
    assert scores(toys.tagging(positive="", metric="accuracy"), SAID, GIVEN) == {"accuracy": 8 / 11}


def test_classification_is_scored_by_matthews_correlation_too() -> None:
    task = toys.classification(labels=("no", "yes"), positive="yes")
    found = scores(task, SAID, GIVEN)
    assert found["matthews"] == pytest.approx((3 * 5 - 1 * 2) / math.sqrt(4 * 5 * 6 * 7))
    assert list(found) == [name for name in NAMES if name != "pearson"]
    assert list(scores(replace(task, positive=""), SAID, GIVEN)) == ["accuracy", "matthews"]


def test_regression_is_scored_by_pearsons_correlation() -> None:
    draw = np.random.default_rng(3)
    given = draw.normal(size=13)
    said = given + draw.normal(size=13)
    assert scores(toys.regression(), said, given) == {"pearson": pytest.approx(pearsonr(said, given).statistic)}


def test_what_is_not_defined_is_zero() -> None:
    none = np.zeros_like(GIVEN)
    assert scores(toys.tagging(), none, GIVEN) == {"precision": 0, "recall": 0, "f1": 0, "accuracy": 6 / 11}
    assert scores(toys.classification(labels=("no", "yes")), none, GIVEN)["matthews"] == 0
    assert scores(toys.regression(), np.ones(11), GIVEN.astype(float)) == {"pearson": 0.0}
