"""All heads that stand out: on simulated sums, with the chance that heads that know nothing have."""

import numpy as np
import pytest
import xarray as xr

from headscope.analyse import add_intervals, shortlist_heads
from headscope.errors import TableError
from headscope.heads import check, read_table, write_table
from headscope.score import Rival, Score, write_scores

FOLDS, ITEMS = 64, 11
SCORE = Score(
    "found_accuracy", "Found", numerator=("fold_found",), denominator=("fold_item",),
    rivals=(Rival("index", "the same number", ("fold_item_index",), ("fold_item",), ("shift",), "shifted by {shift}"),),
    items="words", rows="steps",
)  # fmt: skip


def simulate(seed: int, shares: np.ndarray, rival: float = 0.3, folds: int = FOLDS) -> xr.Dataset:
    """A table of one row of these heads, each right about so many items, beside a rule with three options."""
    rng = np.random.default_rng(seed)
    items = np.zeros((1, FOLDS), dtype=int)
    items[:, :folds] = ITEMS
    sums = {
        "fold_found": (("layer", "head", "decoder_step", "fold"), rng.binomial(items, shares[..., None, None])),
        "fold_item": (("decoder_step", "fold"), items),
        "fold_item_index": (
            ("decoder_step", "fold", "shift"), rng.binomial(items[..., None], np.array([rival / 2, rival, rival / 3]))
        ),
    }  # fmt: skip
    about = {"long_name": "words", "units": "words", "source": "made up"}
    table = xr.Dataset({name: (dims, values, about) for name, (dims, values) in sums.items()})
    score = (table["fold_found"].sum("fold") / table["fold_item"].sum("fold")).assign_attrs(about)
    names = ("model", "weights_sha256", "corpus", "corpus_sha256", "call")
    layers, heads = shares.shape
    return table.assign(found_accuracy=score).assign_coords(
        layer=range(1, layers + 1), head=range(1, heads + 1), decoder_step=["reading"], shift=[-1, 0, 1]
    ).assign_attrs(
        scores=write_scores([SCORE]), documents=1, tokens=1, skipped="{}", **dict.fromkeys(names, "made up")
    )  # fmt: skip


def test_heads_that_beat_the_best_rule_are_found_and_no_others(tmp_path) -> None:
    shares = np.full((3, 7), 0.2)
    shares[1, 2], shares[2, 4], shares[0, 0] = 0.9, 0.5, 0.3
    table = shortlist_heads(add_intervals(simulate(3, shares)))
    stands_out = table["found_shortlist_stands_out"].squeeze("decoder_step").transpose("layer", "head").values
    expected = np.zeros((3, 7))
    expected[1, 2] = expected[2, 4] = 1
    np.testing.assert_array_equal(stands_out, expected)
    best = table.sel(layer=2, head=3, decoder_step="reading")
    odd = best.isel(fold=slice(1, None, 2))
    share = float(odd["fold_found"].sum() / odd["fold_item"].sum())
    rule = float(odd["fold_item_index"].sel(shift=0).sum() / odd["fold_item"].sum())
    assert float(best["found_shortlist_accuracy"]) == pytest.approx(share)
    assert float(best["found_shortlist_lift"]) == pytest.approx(share - rule)
    assert best["found_shortlist_lower"] < share < best["found_shortlist_upper"]
    assert best["found_shortlist_lift_lower"] < share - rule < best["found_shortlist_lift_upper"]
    assert str(best["found_shortlist_rival"].item()) == "index"
    # Only heads that beat the rule where they are chosen are tested.
    even = table.isel(fold=slice(0, None, 2))
    beats = even["fold_found"].sum("fold") > even["fold_item_index"].sel(shift=0).sum("fold")
    np.testing.assert_array_equal(beats, table["found_shortlist_q"].notnull().transpose(*beats.dims))
    write_table(check(table), tmp_path / "heads.nc")
    xr.testing.assert_equal(read_table(tmp_path / "heads.nc"), table)


@pytest.mark.full
def test_heads_as_good_as_the_rule_rarely_stand_out() -> None:
    worlds = [
        bool((shortlist_heads(simulate(seed, np.full((5, 7), 0.3)))["found_shortlist_stands_out"] == 1).any())
        for seed in range(100)
    ]
    assert sum(worlds) <= 10  # 5 are expected at most, and more than 10 in one of a hundred cases


def test_the_best_head_of_an_untrained_model_is_a_rival() -> None:
    table, untrained = simulate(1, np.full((2, 3), 0.6)), simulate(2, np.full((2, 3), 0.6))
    assert (shortlist_heads(table)["found_shortlist_stands_out"] == 1).all()
    both = shortlist_heads(table, untrained)
    assert not (both["found_shortlist_stands_out"] == 1).any()
    assert both["found_shortlist_rival"].values.tolist() == ["untrained"]


def test_p_values_of_permutations_have_to_be_small_too() -> None:
    table = simulate(1, np.full((2, 3), 0.6))
    p = table["found_accuracy"].copy(data=np.where(np.arange(6).reshape(2, 3, 1) < 3, 0.01, 0.5))
    stands_out = shortlist_heads(table.assign(found_p_corrected=p))["found_shortlist_stands_out"]
    assert stands_out.transpose("layer", "head", ...).values.tolist() == [[[1]] * 3, [[0]] * 3]


def test_of_few_texts_nothing_is_decided_and_without_rivals_it_is_refused() -> None:
    table = simulate(1, np.full((2, 3), 0.6), folds=30)
    assert shortlist_heads(table)["found_shortlist_stands_out"].isnull().all()
    with pytest.raises(TableError, match=r"^the head table has no score with rivals, which heads could beat; give an"):
        shortlist_heads(table.drop_vars("fold_item_index"))
