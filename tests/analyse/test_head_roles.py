"""Roles of heads: planted heads have theirs, and heads that know nothing, shuffled worlds and noise have none."""

import json
from collections.abc import Sequence

import numpy as np
import pytest
import xarray as xr
from scipy import stats

import causal_heads
from causal_heads import Scores, attend_evenly, like_tokens, look_at_place, look_back, look_nearby
from family_maps import make
from headscope.analyse.head_roles import (
    NONE,
    PROFILE,
    ROLE,
    find_head_roles,
    join_head_roles,
    name_main_roles,
    read_left_out,
)
from headscope.corpora import Document, read, summarize
from headscope.errors import TableError
from headscope.heads import variable
from headscope.reducers import REDUCERS
from headscope.score import Rival, Score, read_scores, write_scores

SHOWING = ("induction", "nearby_tokens", "sinks")
"""Reducers that need no output of a head."""


def match(shift: int, order: np.random.Generator | None = None) -> Scores:
    """To the token so far behind the last earlier place of the same token, or of what stands there in another order."""

    def attend(ids: Sequence[int]) -> np.ndarray:
        ids = list(ids) if order is None else order.permutation(ids).tolist()
        scores = np.zeros((len(ids), len(ids)))
        for place, token in enumerate(ids):
            earlier = [other for other in range(place) if ids[other] == token]
            if earlier and earlier[-1] + shift < place:
                scores[place, earlier[-1] + shift] = 9
        return scores

    return attend


def documents(seed: int = 0) -> list[Document]:
    return [each for each in read(f"repeats:60:{seed}") if len(each.words) < 120]


def profile(heads: Sequence[Scores], texts: Sequence[Document]) -> xr.Dataset:
    """The roles of made-up heads, beside heads that attend almost evenly."""
    measured = []
    for name in SHOWING:
        reducer = REDUCERS[name].for_corpus(summarize(texts))
        measured.append(
            tuple(
                causal_heads.build(reducer, make("gpt2"), side, texts)
                for side in (heads, [attend_evenly, look_nearby(50), like_tokens])
            )
        )
    return find_head_roles(measured, {})


def test_planted_heads_have_their_roles_and_ignorant_ones_none() -> None:
    planted = {
        "induction": match(1), "duplicate": match(0), "previous token": look_back(1), "sink": look_at_place(0),
    }  # fmt: skip
    ignorant = [attend_evenly, look_back(2), look_back(9), look_nearby(3), like_tokens, match(2), look_at_place(5)]
    table = profile([*planted.values(), *ignorant], documents())
    assert name_main_roles(table).values.tolist() == [[*planted, *[NONE] * len(ignorant)]]
    for place, role in enumerate(planted):
        head = table.isel(layer=0, head=place)
        assert [name for name in table["role"].values if head[f"{ROLE}_has"].sel(role=name) == 1] == [role]
        score, lower, upper = (float(head[f"{ROLE}_score{end}"].sel(role=role)) for end in ("", "_lower", "_upper"))
        assert lower <= score <= upper
        assert score > 0.9
        assert float(head[f"{ROLE}_lift"].sel(role=role)) == pytest.approx(
            score - float(head[f"{ROLE}_rival"].sel(role=role))
        )
    assert table[f"{ROLE}_count"].sel(role="sink") == len(documents())


def test_in_shuffled_worlds_no_head_matches() -> None:
    """The heads of another order of the same tokens look as far and at as many of them."""
    for seed in range(2):
        order = np.random.default_rng(seed)
        table = profile([match(1, order), match(0, order), match(2, order)], documents(seed))
        assert name_main_roles(table).values.tolist() == [[NONE] * 3]


def test_of_two_roles_the_one_that_is_no_rest_is_the_main_one() -> None:
    def rest_or_match(ids: Sequence[int]) -> np.ndarray:
        scores = match(1)(ids)
        scores[:, 0] += 8
        return scores

    table = profile([rest_or_match, look_at_place(0)], documents())
    has = table[f"{ROLE}_has"].isel(layer=0, head=0)
    assert has.sel(role=["induction", "sink"]).values.tolist() == [1, 1]
    assert name_main_roles(table).values.tolist() == [["induction", "sink"]]


# ------------------------------------------------------------------------------------------------ tables of chance

ITEMS, FOLDS, LAYERS, HEADS = 11, 64, 5, 53
SCORE = Score(
    "gaze_mass", "Gaze", numerator=("fold_gaze",), denominator=("fold_all",),
    rivals=(Rival("rule", "a rule", ("fold_rule",), ("fold_all",)),), roles={"": "gazing"}, role_from=0.3,
)  # fmt: skip


def world(random: np.random.Generator, heads: np.ndarray, rule: float, folds: int = FOLDS) -> xr.Dataset:
    """A table in which each head, and a rule, is right with some probability in each fold."""
    dims = ("layer", "head", "fold")
    sums = {
        "fold_gaze": (dims, random.binomial(ITEMS, np.broadcast_to(heads[..., None], (*heads.shape, folds)))),
        "fold_all": (("fold",), np.full(folds, ITEMS)),
        "fold_rule": (("fold",), random.binomial(ITEMS, rule, folds)),
    }
    table = xr.Dataset(
        {
            name: variable(np.asarray(values, float), on, name=name, units="items", source="-")
            for name, (on, values) in sums.items()
        }
    )
    shares = table["fold_gaze"].sum("fold") / (ITEMS * folds)
    table["gaze_mass"] = variable(shares.values, dims[:2], name="share", units="share of attention", source="-")
    places = {"layer": np.arange(1, heads.shape[0] + 1), "head": np.arange(1, heads.shape[1] + 1)}
    return table.assign_coords(places).assign_attrs(scores=write_scores([SCORE]))


def test_what_a_head_has_to_beat_is_what_plain_loops_say() -> None:
    random = np.random.default_rng(5)
    table = world(random, random.uniform(0.2, 0.7, (3, 7)), 0.4)
    untrained = world(random, np.full((3, 7), 0.35), 0.4)
    roles = find_head_roles([(table, untrained)], {})
    numerators = {"rule": table["fold_rule"].values}
    best = untrained["gaze_mass"].values.argmax()
    numerators["untrained"] = untrained["fold_gaze"].values.reshape(-1, FOLDS)[best]
    p, passes = np.empty((3, 7)), np.empty((3, 7), bool)
    for layer, head in np.ndindex(3, 7):
        own = table["fold_gaze"].values[layer, head]
        # All folds are equally large, so that the lift is the mean of paired differences.
        tests = [stats.ttest_1samp((own - other) / ITEMS, 0, alternative="greater") for other in numerators.values()]
        p[layer, head] = max(test.pvalue for test in tests)
        lower = min(
            stats.ttest_1samp((own - other) / ITEMS, 0).confidence_interval().low for other in numerators.values()
        )
        passes[layer, head] = own.sum() / (ITEMS * FOLDS) >= 0.3 and lower > 0
    q = stats.false_discovery_control(p.ravel()).reshape(p.shape)
    np.testing.assert_allclose(roles[f"{ROLE}_q"].sel(role="gazing").values, q, rtol=1e-6)
    has = roles[f"{ROLE}_has"].sel(role="gazing").values
    np.testing.assert_array_equal(has == 1, passes & (q < 0.05))
    assert 0 < has.sum() < has.size


@pytest.mark.parametrize("chance", [0.05, 0.31, 0.6])
def test_heads_that_are_as_good_as_a_rule_have_no_role(chance: float) -> None:
    """Of 265 heads, in 20 worlds each: no more than one world may have a head with a role."""
    random, wrong, worlds = np.random.default_rng(7), 0, 20
    for _ in range(worlds):
        table, untrained = (world(random, np.full((LAYERS, HEADS), chance), chance) for _ in range(2))
        wrong += bool((name_main_roles(find_head_roles([(table, untrained)], {})) != NONE).any())
    assert wrong <= worlds / 20


def test_a_head_as_good_as_an_untrained_one_has_no_role() -> None:
    random = np.random.default_rng(11)
    table, untrained = (world(random, np.full((LAYERS, HEADS), 0.8), 0.1) for _ in range(2))
    roles = find_head_roles([(table, untrained)], {})
    assert not (name_main_roles(roles) != NONE).any()
    assert float(roles[f"{ROLE}_untrained"].sel(role="gazing")) == pytest.approx(float(untrained["gaze_mass"].max()))


def test_of_few_texts_nothing_is_decided() -> None:
    random = np.random.default_rng(3)
    sides = [world(random, np.full((2, 3), share), 0.1, folds=19) for share in (0.9, 0.1)]
    roles = find_head_roles([(sides[0], sides[1])], {})
    assert roles[f"{ROLE}_has"].isnull().all()
    assert (name_main_roles(roles) == NONE).all()


def test_roles_join_a_table_of_other_texts() -> None:
    random = np.random.default_rng(3)
    sides = [world(random, np.full((2, 3), share), 0.1) for share in (0.9, 0.1)]
    roles = find_head_roles([(sides[0], sides[1])], {"copying": "it has no logits."})
    roles = roles.assign_attrs(roles_corpus="repeats")
    table = join_head_roles(world(random, np.full((2, 3), 0.5), 0.1), roles)
    assert [score.variable for score in read_scores(table)] == ["gaze_mass", PROFILE.variable]
    assert (name_main_roles(table) == "gazing").all()
    assert read_left_out(table) == {"copying": "it has no logits."}
    assert table[f"{ROLE}_units"].sel(role="gazing") == "share of attention"


def test_tables_without_roles_are_refused() -> None:
    table = world(np.random.default_rng(3), np.full((2, 3), 0.5), 0.1).assign_attrs(scores=json.dumps([]))
    with pytest.raises(TableError) as refused:
        find_head_roles([(table, table)], {})
    assert str(refused.value) == "no score of the tables says of which role of a head it is; measure one that does."
