"""Whether the same heads score well on two corpora, run by run: scipy, the paper, refusals."""

import numpy as np
import pytest
import xarray as xr
from scipy.stats import kendalltau

from analyse.run_tables import released, simulate
from headscope.analyse import Consistencies, consistencies, rank_sum
from headscope.errors import TableError

SEEDS = [2, 3, 5, 7, 11, 13, 17]


def runs(seed: int) -> xr.Dataset:
    """Runs whose heads find different shares of the scopes of a corpus."""
    draw = np.random.default_rng(seed)
    return simulate(draw, draw.beta(2, 6, (len(SEEDS), 3, 5)), seeds=SEEDS)


def reviews(table: xr.Dataset) -> xr.Dataset:
    return table.assign_attrs(corpus="reviews", corpus_sha256="ee" * 32)


def test_runs_are_compared_on_two_corpora_one_by_one() -> None:
    one, other = runs(1), reviews(runs(2))
    found = consistencies(one, other, "scope_recall")
    assert found.runs == tuple(f"seed-{seed}" for seed in SEEDS)
    for run in range(len(SEEDS)):
        tau, p = kendalltau(*(table["scope_recall"].values[run].ravel() for table in (one, other)))
        assert (found.taus[run], found.ps[run]) == pytest.approx((tau, p))
    assert (found.heads, found.sd) == (15, pytest.approx(np.std(found.taus)))


def test_consistency_of_runs_reads_as_a_line() -> None:
    assert str(Consistencies("scope_f1", 72, ("a", "b"), (0.25, 0.75), (0.2, 0.01))) == (
        "scope_f1: tau 0.500 ± 0.250 over 72 heads, mean and deviation of 2 runs, 1 with p < 0.05"
    )
    assert str(Consistencies("scope_f1", 72, ("",), (0.25,), (0.2,))) == (
        "scope_f1: tau 0.250 over 72 heads, p = 0.2 if heads were independent, which they are not"
    )


def test_other_runs_on_the_other_corpus_are_refused() -> None:
    after = runs(1)
    with pytest.raises(TableError) as refused:
        consistencies(after.isel(run=[0, 1]), reviews(after.isel(run=[1, 0])))
    assert str(refused.value) == (
        "the first table is of seed-2, seed-3 and the second table of seed-3, seed-2; measure the same runs, in the "
        "same order, on both corpora."
    )
    other = reviews(after)
    other.attrs["runs"] = other.attrs["runs"].replace("0500", "ffff")
    with pytest.raises(TableError) as refused:
        consistencies(after, other)
    assert str(refused.value) == (
        "the weights of the run seed-5 in the first table are not those in the second table; measure the same runs on "
        "both corpora."
    )


@pytest.mark.data
def test_the_released_scores_give_table_4_and_its_test(data) -> None:
    groups = {
        name: consistencies(*released(data, "bert-base", f"story_{name}", f"review_{name}"))
        for name in ("pretrained", "control", "neg")
    }
    told = {name: (f"{one.mean:.3f}", f"{one.sd:.3f}", one.significant) for name, one in groups.items()}
    assert told == {
        "pretrained": ("0.415", "0.000", 1),
        "control": ("0.409", "0.026", 10),
        "neg": ("0.516", "0.020", 10),
    }
    assert f"{rank_sum(groups['neg'].taus, groups['control'].taus):.3e}" == "1.083e-05"
