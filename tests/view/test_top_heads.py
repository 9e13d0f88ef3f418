"""The best heads of a relation: ranked on one half of the texts, scored on the other, as naive loops do it."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import headscope
from analyse import run_tables
from analyse.tables import (
    DIRECTIONS,
    RELATIONS,
    Links,
    Text,
    head_table,
    interval_of,
    stacked,
    texts,
)
from headscope.analyse import add_report, assess
from headscope.analyse.report import DOES_NOT, NOT_YET, STANDS_OUT, UNDECIDED, await_untrained
from headscope.errors import TableError
from view import tables


def halves(made: list[Text], name: str) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Which links of each half each head finds, and the document of each link of the second half."""
    parts = [
        np.concatenate([text.links[name].hits for text in made if text.fold % 2 == half]).astype(float)
        for half in (0, 1)
    ]
    clusters = [str(text.fold) for text in made if text.fold % 2 for _ in text.links[name].hits]
    return parts[0], parts[1], clusters


def rank_naively(even: np.ndarray) -> list[tuple[int, int, int]]:
    """Each head in its better direction, the one that finds most links first; of equals the first."""
    better = []
    for layer, head in np.ndindex(even.shape[1:3]):
        right = [int(even[:, layer, head, direction].sum()) for direction in range(len(DIRECTIONS))]
        better.append((layer, head, right.index(max(right)), max(right)))
    return [each[:3] for each in sorted(better, key=lambda each: -each[3])]


@pytest.mark.parametrize("seed", [41, 53])
def test_heads_are_ranked_on_one_half_and_scored_on_the_other(seed: int) -> None:
    draw = np.random.default_rng(seed)
    made = texts(draw)
    table = assess(head_table(made, RELATIONS))
    even, odd, clusters = halves(made, "nsubj")
    frame = headscope.top_heads(table, "nsubj", n=7)
    assert [*frame.index] == [1, 2, 3, 4, 5, 6, 7]
    assert frame.index.name == "rank"
    ranked = rank_naively(even)[:7]
    for (layer, head, direction), (_, row) in zip(ranked, frame.iterrows(), strict=True):
        assert (row["layer"], row["head"], row["direction"]) == (layer + 1, head + 1, DIRECTIONS[direction])
        hits = odd[:, layer, head, direction]
        assert row["heldout_accuracy"] == pytest.approx(hits.mean())
        ends = interval_of([*hits.astype(bool)], clusters)
        assert (row["heldout_lower"], row["heldout_upper"]) == pytest.approx(ends, abs=2e-3)
        assert row["heldout_count"] == len(hits)
        both = np.concatenate([even, odd])[:, layer, head, direction]
        assert row["relation_accuracy"] == pytest.approx(both.mean())
        assert row["lift"] == pytest.approx(row["heldout_accuracy"] - row["rival_accuracy"])
    assert frame["verdict_p"].isnull().all()  # too few texts to decide
    reported = table.sel(relation="nsubj")
    names = ["heldout_accuracy", "heldout_lower", "heldout_upper", "heldout_count", "lift", "lift_lower", "lift_upper"]
    for name in names:
        assert frame.loc[1, name] == reported[name].item()
    assert frame.loc[1, "verdict"] == reported["reported_verdict"].item()
    assert {"untrained_accuracy"}.isdisjoint(frame.columns)


@pytest.mark.full
def test_all_heads_are_ranked_and_no_more() -> None:
    table = assess(head_table(texts(np.random.default_rng(41)), RELATIONS))
    frame = headscope.top_heads(table, "nsubj", n=100)
    assert len(frame) == 3 * 5
    assert not frame.duplicated(["layer", "head"]).any()


PLANTED = {(1, 2): 0.9, (3, 4): 0.8, (2, 1): 0.7, (1, 5): 0.3}
"""The share of links that some heads find from head to dependent; all others find 0.2, and no rule finds any."""


def plant(shares: dict[tuple[int, int], float], relations: int = 7, seed: int = 11) -> list[Text]:
    """60 documents with ten links of each relation, of which the first is what heads were planted for."""
    draw = np.random.default_rng(seed)
    share = np.full((3, 5, len(DIRECTIONS)), 0.2)
    for (layer, head), planted in shares.items():
        share[layer - 1, head - 1, 1] = planted
    chance = np.full_like(share, 0.2)
    names = RELATIONS[:relations]
    near = [1, 2, -1, 17, 17, 17, 17, 17, 17, -3]  # the best offset finds one in ten
    return [
        Text(number, {name: Links(draw.random((10, 3, 5, 2)) < (chance if row else share), near)
                      for row, name in enumerate(names)})
        for number in range(60)
    ]  # fmt: skip


def test_heads_that_were_planted_stand_out_in_their_order() -> None:
    table = assess(head_table(plant(PLANTED), RELATIONS))
    frame = headscope.top_heads(table, "nsubj", n=6)
    assert [*zip(frame["layer"], frame["head"], strict=True)][:4] == [*PLANTED]
    assert (frame["direction"][:4] == "head_to_dependent").all()
    assert [*frame["heldout_accuracy"][:4]] == pytest.approx([*PLANTED.values()], abs=0.09)
    assert [*frame["verdict"][:3]] == [STANDS_OUT] * 3
    assert (np.diff(frame["verdict_p"]) >= 0).all()
    lift = frame["heldout_accuracy"] - 0.1
    np.testing.assert_allclose(frame["lift"], lift, atol=1e-9)
    assert frame["lift_rival"].str.startswith("offset ").all()


def test_behind_a_head_that_does_not_stand_out_none_does() -> None:
    """The order of tests is fixed by the other half, so that a later head needs all before it."""
    made = plant({(1, 2): 0.9, (2, 1): 0.8})
    # The second head finds its links in the half on which heads are ranked alone.
    for text in made:
        if text.fold % 2:
            hits = text.links["nsubj"].hits
            hits[:, 0, 2, 1] = False
        else:
            text.links["nsubj"].hits[:, 0, 2, 1] = True
    frame = headscope.top_heads(assess(head_table(made, RELATIONS)), "nsubj", n=3)
    assert [*zip(frame["layer"], frame["head"], strict=True)] == [(1, 3), (1, 2), (2, 1)]
    assert [*frame["verdict"]] == [DOES_NOT] * 3
    assert [*frame["heldout_accuracy"]] == pytest.approx([0, 0.9, 0.8], abs=0.09)


def test_the_p_value_of_a_later_head_is_corrected_for_the_rows() -> None:
    made = plant({(1, 2): 0.9, (2, 1): 0.235}, seed=17)
    alone = [Text(text.fold, {"nsubj": text.links["nsubj"]}) for text in made]
    tables_of = (head_table(alone, RELATIONS[:1]), head_table(made, RELATIONS))
    frames = [headscope.top_heads(assess(table), "nsubj", n=6) for table in tables_of]
    assert [*frames[0]["layer"]] == [*frames[1]["layer"]]
    first, second = (frame["verdict_p"].to_numpy() for frame in frames)
    assert ((first > 0) & (first < 1)).sum() > 1
    np.testing.assert_allclose(second[1:], np.minimum(7 * first[1:], 1).clip(second[0]), rtol=1e-6)


def test_heads_are_held_against_the_best_untrained_one() -> None:
    draw = np.random.default_rng(5)
    made = plant(PLANTED)
    other = [
        Text(t.fold, {n: Links(draw.random(x.hits.shape) < 0.75, x.distance) for n, x in t.links.items()}) for t in made
    ]
    table = assess(head_table(made, RELATIONS), head_table(other, RELATIONS))
    frame = headscope.top_heads(table, "nsubj", n=4)
    row = table.sel(relation="nsubj")
    assert (frame["untrained_accuracy"] == row["untrained_accuracy"].item()).all()
    assert frame.loc[1, "lift_rival"] == "untrained model"
    assert [*frame["verdict"]] == [STANDS_OUT, DOES_NOT, DOES_NOT, DOES_NOT]
    # Beyond the rules alone the second would stand out.
    assert headscope.top_heads(assess(head_table(made, RELATIONS)), "nsubj", n=2).loc[2, "verdict"] == STANDS_OUT
    waiting = await_untrained(assess(head_table(made, RELATIONS)))
    assert [*headscope.top_heads(waiting, "nsubj", n=2)["verdict"]] == [NOT_YET, NOT_YET]


def test_of_few_texts_nothing_is_decided_and_of_few_links_nothing_reported() -> None:
    made = texts(np.random.default_rng(41))
    table = assess(head_table(made, RELATIONS))
    assert {*headscope.top_heads(table, "nsubj")["verdict"]} == {UNDECIDED}
    rare = assess(head_table(made[:5], RELATIONS))
    frame = headscope.top_heads(rare, "amod")
    assert len(frame) == 0
    assert [*frame.columns] == [*headscope.top_heads(table, "nsubj").columns]


def test_attention_types_are_told_apart() -> None:
    made = texts(np.random.default_rng(13))
    wrong = [Text(t.fold, {n: Links(~x.hits[:, :2], x.distance, x.rules) for n, x in t.links.items()}) for t in made]
    table = assess(stacked({"encoder": head_table(made, RELATIONS), "decoder": head_table(wrong, RELATIONS)}))
    frame = headscope.top_heads(table, "nsubj", n=7)
    assert {*frame["attention_type"]} == {"encoder", "decoder"}
    assert not frame.duplicated(["attention_type", "layer", "head"]).any()
    assert frame.loc[1, "attention_type"] == table.sel(relation="nsubj")["reported_attention_type"].item()


def test_a_score_without_rows_has_its_own_name() -> None:
    draw = np.random.default_rng(19)
    table = add_report(run_tables.simulate(draw, draw.beta(2, 6, (3, 5)), folds=64))
    frame = headscope.top_heads(table, "scope", n=3)
    pd.testing.assert_frame_equal(frame, headscope.top_heads(table, "scope_f1", n=3))
    assert frame.loc[1, "heldout_f1"] == table["scope_heldout_f1"].item()
    assert "direction" not in frame.columns


def test_a_variable_of_heads_is_ranked_by_its_values() -> None:
    table = tables.head_table()
    frame = headscope.top_heads(table, "mass_cls", n=3)
    values = table["mass_cls"].to_series().sort_values(ascending=False)[:3]
    assert [*zip(frame["layer"], frame["head"], strict=True)] == [*values.index]
    assert [*frame["mass_cls"]] == [*values]
    assert [*frame.index] == [1, 2, 3]


def test_a_table_that_was_not_assessed_is() -> None:
    made = plant(PLANTED)
    raw = head_table(made, RELATIONS)
    pd.testing.assert_frame_equal(headscope.top_heads(raw, "obj"), headscope.top_heads(assess(raw), "obj"))


BAD = {
    "a relation": (
        "objj",
        "has no relation, score or variable of heads 'objj' (did you mean obj?); it has nsubj, obj,",
    ),
    "a score": ("relations", "'relations' has a value for each of its rows; name one of these: nsubj, obj, det, amod"),
    "a variable": ("relation_accuracy", "'relation_accuracy' has a value for each of its rows; name one of these:"),
    "a number": (5, "has no relation, score or variable of heads 5; it has nsubj, obj,"),
    "nothing": (None, "has no relation, score or variable of heads None; it has"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_has_no_heads_is_refused_with_what_comes_near(name: str) -> None:
    table = head_table(texts(np.random.default_rng(7)), RELATIONS)
    wrong, sentence = BAD[name]
    with pytest.raises(TableError, match=re.escape(sentence)):
        headscope.top_heads(table, wrong)


@pytest.mark.parametrize("n", [0, -1, True, 2.5, "3", None])
def test_a_number_of_heads_is_whole(n) -> None:
    with pytest.raises(TableError, match=r" heads were asked for; ask for 1 or more\.$"):
        headscope.top_heads(tables.head_table(), "mass_cls", n=n)


def test_what_is_no_table_of_one_model_is_refused() -> None:
    with pytest.raises(TableError, match=r"^a head table was wanted, and str came; headscope\.read_table reads one\.$"):
        headscope.top_heads("heads.nc", "obj")
    draw = np.random.default_rng(3)
    runs = run_tables.simulate(draw, draw.beta(2, 6, (2, 3, 5)), seeds=[1, 2])
    with pytest.raises(TableError, match=r"^the head table holds 2 runs, which have no heads in common; choose one,"):
        headscope.top_heads(runs, "scope")
    assert len(headscope.top_heads(runs.isel(run=0), "scope", n=2)) == 2


def test_a_row_of_several_scores_needs_the_name_of_one() -> None:
    table = tables.with_mentions(tables.head_table())
    table = table.assign_coords(mention=["nsubj", "pronoun", "proper"])
    with pytest.raises(
        TableError, match=r"^'nsubj' is a row of several scores; name one of antecedent:nsubj, relation:"
    ):
        headscope.top_heads(table, "nsubj")


@pytest.mark.full
def test_behind_a_head_that_stands_out_chance_does_so_once_in_twenty_tables() -> None:
    """The first head is planted; the second finds as much as the best rule."""
    worlds, false, first = 80, 0, 0
    for seed in range(worlds):
        draw = np.random.default_rng(seed)
        share = np.full((2, 3, len(DIRECTIONS)), 0.2)
        share[1, 2, 0] = 0.9
        made = [
            Text(
                number,
                {"nsubj": Links(draw.random((10, *share.shape)) < share, draw.choice([1, 17], 10, p=(0.2, 0.8)))},
            )
            for number in range(60)
        ]
        frame = headscope.top_heads(add_report(head_table(made, RELATIONS[:1])), "nsubj", n=2)
        first += frame.loc[1, "verdict"] == STANDS_OUT
        false += frame.loc[2, "verdict"] == STANDS_OUT
    assert first == worlds
    assert false <= binom.ppf(0.999, worlds, 0.05)
