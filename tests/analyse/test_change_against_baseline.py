"""Do the rich get richer: the published tau, the corrected one by a naive loop, and what each shows of nothing."""

import numpy as np
import pytest
import xarray as xr
from scipy.stats import kendalltau

from analyse.run_tables import simulate
from headscope.analyse import change_against_baseline
from headscope.analyse import compare_variable as compare
from headscope.errors import TableError

WORLDS, LAYERS, HEADS, FOLDS = 53, 7, 11, 13


@pytest.fixture
def _few_halves(monkeypatch) -> None:
    """Enough where many worlds are drawn."""
    monkeypatch.setattr(change_against_baseline, "HALVES", 3)


def taus(before: xr.Dataset, after: xr.Dataset, variable: str = "scope_recall") -> tuple[float, float]:
    """The published tau and the corrected one, of a single run."""
    found = change_against_baseline.correlate_change(before, {"task": after}, variable, before[variable].notnull())
    return float(found["baseline_tau"].values[0, 0]), float(found["baseline_tau_corrected"].values[0, 0])


def worlds(shares_after, seed: int) -> np.ndarray:
    """Both taus in many worlds, in which `shares_after(shares, draw)` is how many words the heads then find."""
    draw, made = np.random.default_rng(seed), []
    for _ in range(WORLDS):
        shares = draw.beta(2, 30, (LAYERS, HEADS))
        now = np.clip(shares_after(shares, draw), 0.001, 0.999)
        made.append(taus(simulate(draw, shares, FOLDS), simulate(draw, now[None], FOLDS, seeds=[1])))
    return np.array(made)


def spread(values: np.ndarray) -> float:
    """The standard error of the mean."""
    return float(values.std(ddof=1) / np.sqrt(len(values)))


# ------------------------------------------------------------- what it is


@pytest.mark.parametrize("variable", ["scope_precision", "scope_recall", "scope_f1"])
def test_the_taus_are_those_of_a_loop(variable: str) -> None:
    draw = np.random.default_rng(5)
    shares = draw.beta(2, 6, (3, 5))
    before, after = simulate(draw, shares), simulate(draw, np.stack([shares**1.5, shares**0.8]), seeds=[2, 3])
    found = compare(before, after, variable=variable).sel(group="task")

    def score(table: xr.Dataset, folds: np.ndarray) -> np.ndarray:
        found, said = (table[f"fold_{name}"][..., folds].values.sum(-1) for name in ("scope_said_hits", "scope_said"))
        gold = table["fold_scope"].values[folds].sum()
        of = {"scope_precision": (found, said), "scope_recall": (found, gold), "scope_f1": (2 * found, said + gold)}
        right, every = of[variable]
        return (right / every).ravel()

    for run in range(2):
        one = after.isel(run=run)
        change = one[variable] - before[variable]
        tau, p = kendalltau(before[variable].values.ravel(), change.values.ravel())
        assert (float(found["baseline_tau"][run]), float(found["baseline_p"][run])) == pytest.approx((tau, p))
        halves, corrected = np.random.default_rng(0), []
        for _ in range(change_against_baseline.HALVES):
            order = halves.permutation(13)
            parts = (order[:6], order[6:])
            for base, rest in (parts, parts[::-1]):
                corrected.append(kendalltau(score(before, base), score(one, rest) - score(before, rest)).statistic)
        assert float(found["baseline_tau_corrected"][run]) == pytest.approx(np.mean(corrected))


def test_texts_without_scopes_do_not_matter() -> None:
    draw = np.random.default_rng(7)
    shares = draw.beta(2, 6, (3, 5))
    before, after = simulate(draw, shares), simulate(draw, shares[None] ** 0.9, seeds=[2])
    wider = [
        table.pad(fold=(0, 4), mode="constant", constant_values=0).assign_attrs(table.attrs)
        for table in (before, after)
    ]
    assert taus(*wider) == pytest.approx(taus(before, after))


def test_one_text_has_no_halves() -> None:
    draw = np.random.default_rng(7)
    shares = draw.beta(2, 6, (3, 5))
    published, corrected = taus(simulate(draw, shares, 1), simulate(draw, shares[None], 1, seeds=[2]))
    assert np.isfinite(published)
    assert np.isnan(corrected)


def test_it_says_how_the_published_tau_is_biased_and_why_there_is_no_other() -> None:
    draw = np.random.default_rng(7)
    shares = draw.beta(2, 6, (3, 5))
    before, after = simulate(draw, shares), simulate(draw, shares[None], seeds=[2])
    assert compare(before, after)["baseline_tau_corrected"].attrs["note"] == change_against_baseline.BIAS
    without = after.drop_vars("fold_scope_said")
    found = compare(before, without)
    assert found["baseline_tau_corrected"].isnull().all()
    assert found["baseline_tau_corrected"].attrs["note"] == (
        f"{change_against_baseline.BIAS} There is no corrected tau: scope_f1 is not a ratio of sums "
        "by fold that all tables have."
    )


# ------------------------------------------------------- what it shows of nothing


@pytest.mark.usefixtures("_few_halves")
def test_of_chance_alone_the_published_tau_is_a_half_and_the_corrected_one_nothing() -> None:
    draw, flat = np.random.default_rng(11), np.full((LAYERS, HEADS), 0.4)
    made = [taus(simulate(draw, flat, FOLDS), simulate(draw, flat[None], FOLDS, seeds=[1])) for _ in range(WORLDS)]
    published, corrected = np.array(made).T
    assert published.mean() == pytest.approx(-0.5, abs=0.02)
    assert abs(corrected.mean()) < 3 * spread(corrected)
    assert spread(corrected) < 0.01


@pytest.mark.usefixtures("_few_halves")
def test_where_nothing_changes_the_published_tau_sees_the_rich_get_poorer() -> None:
    published, corrected = worlds(lambda shares, draw: shares, 13).T
    assert published.mean() < -10 * spread(published)
    assert abs(corrected.mean()) < 3 * spread(corrected)


@pytest.mark.usefixtures("_few_halves")
def test_where_changes_are_blind_the_corrected_tau_is_centred_on_nothing() -> None:
    published, corrected = worlds(lambda shares, draw: shares + draw.normal(0.05, 0.01, shares.shape), 17).T
    assert published.mean() < -5 * spread(published)
    assert abs(corrected.mean()) < 3 * spread(corrected)


@pytest.mark.usefixtures("_few_halves")
@pytest.mark.parametrize(("factor", "sign"), [(1.3, 1), (0.7, -1)], ids=["richer", "poorer"])
def test_where_the_rich_get_richer_or_poorer_the_corrected_tau_says_so(factor: float, sign: int) -> None:
    _, corrected = worlds(lambda shares, draw: factor * shares, 19).T
    assert sign * corrected.mean() > 10 * spread(corrected)


# ------------------------------------------------------------- what it is not of


def draw_tables() -> tuple[xr.Dataset, xr.Dataset]:
    """Tables before and after a tuning that changes nothing."""
    draw = np.random.default_rng(7)
    shares = draw.beta(2, 6, (3, 5))
    return simulate(draw, shares, FOLDS), simulate(draw, shares[None], FOLDS, seeds=[2])


def test_tables_whose_texts_lie_in_other_folds_are_refused() -> None:
    """The halves would be of other texts; the same words in all, of which seven went from a fold to the next."""
    moved = np.zeros(FOLDS, dtype=int)
    moved[:2] = -7, 7
    before, after = draw_tables()
    assert compare(before, after, variable="scope_f1")["baseline_tau_corrected"].notnull().all()
    with pytest.raises(TableError) as refused:
        compare(before, after.assign(fold_scope=after["fold_scope"] + moved), variable="scope_f1")
    assert str(refused.value) == (
        "the documents of the table after are in other folds than those of the table before, as versions of headscope "
        "assign them differently; measure both with one version."
    )


def test_tables_whose_maps_were_labelled_by_other_classifiers_are_refused() -> None:
    before, after = draw_tables()
    before, other = (
        table.assign_attrs(pattern_classifier=f"headscope, SHA-256 {code}")
        for table, code in ((before, "3f"), (after, "5b"))
    )
    compare(before, after, variable="scope_f1")
    with pytest.raises(TableError) as refused:
        compare(before, other, variable="scope_f1")
    assert str(refused.value) == (
        "the maps of the table after were labelled by another classifier (headscope, SHA-256 5b) than those of the "
        "table before (headscope, SHA-256 3f); measure both with one."
    )


def test_tables_that_count_other_documents_are_refused() -> None:
    """As two versions did, of which one has the first token of a decoder's text in no class."""
    before, after = draw_tables()
    before, same, other = (
        table.assign(token_class_count=("token_class", count, {"units": "documents"}))
        for table, count in ((before, [97, 31]), (after, [97, 31]), (after, [89, 31]))
    )
    compare(before, same, variable="scope_f1")
    with pytest.raises(TableError) as refused:
        compare(before, other, variable="scope_f1")
    assert str(refused.value) == (
        "the table after counts other documents in token_class_count than the table before, since another version of "
        "headscope measured it; measure both with one version."
    )
