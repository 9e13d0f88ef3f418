"""The content effect: exact where it was made up, and absent where heads know only places and lengths."""

import numpy as np
import pytest
from scipy import stats

import witnesses
from headscope.analyse.ledger import MeasuredPrompts, find_selected, rank_readers, tabulate_ledger, tabulate_tokens
from headscope.corpora.prompts import name_parts

PROMPTS, SLOTS, LAYERS, HEADS = 13, 3, 2, 5
PARTS = SLOTS + 4


def make_up(seed: int, *, prompts: int = PROMPTS, content: float = 0.0, longer: float = 0.0) -> MeasuredPrompts:
    """Heads that attend to slots in some proportion, to documents by their length, and to nothing else of them.

    Half of the heads share the attention by place and the others by length. A share `content` of it goes to the
    document with the answer in the head 1-2.
    """
    draw = np.random.default_rng(seed)
    gold = draw.integers(SLOTS, size=prompts)
    lengths = draw.integers(20, 60, (prompts, SLOTS)).astype(float)
    lengths[np.arange(prompts), gold] += longer
    shares = np.zeros((prompts, SLOTS, LAYERS, HEADS, PARTS))
    places = draw.dirichlet(np.ones(SLOTS), (LAYERS, HEADS))
    for prompt in range(prompts):
        for order in range(SLOTS):
            standing = (np.arange(SLOTS) + order) % SLOTS
            by_length = lengths[prompt, standing] / lengths[prompt].sum()
            total = draw.beta(3, 5, (LAYERS, HEADS, 1))
            by_place = np.where(np.arange(HEADS)[None, :, None] % 2, places, by_length)
            noise = draw.dirichlet(np.full(SLOTS, 7.0), (LAYERS, HEADS))
            at_gold = standing == gold[prompt]
            mixed = 0.7 * by_place + 0.3 * noise
            mixed[0, 1] = (1 - content) * mixed[0, 1] + content * at_gold
            shares[prompt, order, ..., 1 : 1 + SLOTS] = total * mixed
    return MeasuredPrompts(shares, np.full((prompts, PARTS), 1 / PARTS), lengths, gold + 1)


def test_masses_are_means_over_prompts_with_the_interval_of_the_t_test() -> None:
    measured = make_up(3)
    table = tabulate_ledger(measured)
    values = measured.shares[:, 0, 1, 3, 2]
    test = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    place = {"layer": 2, "head": 4, "part": "document 2"}
    assert float(table["ledger_mass"].sel(place)) == pytest.approx(values.mean())
    assert float(table["ledger_mass_lower"].sel(place)) == pytest.approx(max(0, test.low))
    assert float(table["ledger_mass_upper"].sel(place)) == pytest.approx(test.high)
    by_slot = measured.shares[:, :, 1, 3, 2].mean()
    assert float(table["ledger_by_slot"].sel(layer=2, head=4, slot=2)) == pytest.approx(by_slot)
    assert list(table["part"].values) == name_parts(SLOTS)


def test_the_content_effect_is_that_of_a_naive_loop_and_its_p_value_that_of_the_t_test() -> None:
    measured = make_up(5, content=0.2)
    table = tabulate_ledger(measured)
    effects = np.stack(
        [
            witnesses.content_effect([*measured.shares[prompt, ..., 1 : 1 + SLOTS]], measured.gold[prompt])
            for prompt in range(PROMPTS)
        ]
    )
    np.testing.assert_allclose(table["ledger_content"], effects.mean(0), atol=1e-12)
    np.testing.assert_allclose(table["ledger_gold"] - table["ledger_other"], effects.mean(0), atol=1e-12)
    interval = stats.ttest_1samp(effects, 0).confidence_interval(0.95)
    np.testing.assert_allclose(table["ledger_content_lower"], interval.low)
    np.testing.assert_allclose(table["ledger_content_upper"], interval.high)
    alone = stats.ttest_1samp(effects, 0, alternative="greater").pvalue
    assert (table["ledger_content_p"] >= alone - 1e-12).all()
    length = np.zeros_like(effects)
    for prompt in range(PROMPTS):
        count, gold = measured.lengths[prompt] / measured.lengths[prompt].sum(), measured.gold[prompt] - 1
        total = measured.shares[prompt, ..., 1 : 1 + SLOTS].sum(-1).mean(0)
        length[prompt] = total * (count[gold] - np.delete(count, gold).mean())
    np.testing.assert_allclose(table["ledger_content_length"], length.mean(0), atol=1e-12)
    beyond = stats.ttest_1samp(effects - length, 0, alternative="greater").pvalue
    np.testing.assert_allclose(table["ledger_content_p"], np.maximum(alone, beyond))


def test_a_head_that_reads_the_answer_is_selected_and_ranked_first() -> None:
    table = tabulate_ledger(make_up(7, content=0.5))
    selected = find_selected(table)
    assert bool(selected.sel(layer=1, head=2))
    assert int(selected.sum()) == 1
    assert rank_readers(table)[0] == (1, 2)
    assert len({*rank_readers(table)}) == LAYERS * HEADS


@pytest.mark.parametrize("longer", [0.0, 25.0, -15.0])
def test_heads_that_know_places_and_lengths_are_seldom_taken_for_readers(longer: float) -> None:
    """Also where the document with the answer is always longer than the others, or shorter."""
    worlds = [tabulate_ledger(make_up(seed, longer=longer)) for seed in range(60)]
    p = np.stack([world["ledger_content_p"] for world in worlds])
    # Of 600 p-values 30 are expected below 0.05, and 47 or more in one of 1,000 samples.
    assert (p < 0.05).sum() <= 47
    if longer > 0:
        by_length = np.stack([world["ledger_content_lower"][:, ::2] for world in worlds])
        assert (by_length > 0).mean() > 0.9  # without the comparison with lengths they would pass for readers


def test_without_gold_there_is_no_content_effect_and_with_one_prompt_no_interval() -> None:
    measured = make_up(11)
    unknown = MeasuredPrompts(measured.shares, measured.uniform, measured.lengths, np.zeros(PROMPTS, dtype=int))
    table = tabulate_ledger(unknown)
    assert not [name for name in table if "content" in str(name) or "gold" in str(name)]
    most = table["ledger_by_slot"].sum("slot").stack(place=("layer", "head"))
    assert rank_readers(table)[0] == most["place"].values[int(most.argmax("place"))]
    some = np.where(np.arange(PROMPTS) < 7, measured.gold, 0)
    partly = tabulate_ledger(MeasuredPrompts(measured.shares, measured.uniform, measured.lengths, some))
    alone = MeasuredPrompts(measured.shares[:7], measured.uniform[:7], measured.lengths[:7], measured.gold[:7])
    np.testing.assert_allclose(partly["ledger_content"], tabulate_ledger(alone)["ledger_content"])
    first = MeasuredPrompts(measured.shares[:1], measured.uniform[:1], measured.lengths[:1], measured.gold[:1])
    assert bool(tabulate_ledger(first)["ledger_mass_lower"].isnull().all())


def test_the_tokens_have_a_row_for_all_heads_and_for_some() -> None:
    shares = np.random.default_rng(13).dirichlet(np.ones(PARTS), (2, LAYERS, HEADS))
    texts = [("p", ["a", "b"], shares), ("q", ["c"], shares[:1])]
    frame = tabulate_tokens(texts, name_parts(SLOTS), (4, 7), [(7, 3)])  # of a model of which these have attention
    assert frame["head"].tolist() == ["all", "all", "7-3", "7-3", "all", "7-3"]
    assert frame["token"].tolist() == ["a", "b", "a", "b", "c", "c"]
    row = frame[(frame["prompt"] == "p") & (frame["number"] == 2) & (frame["head"] == "7-3")].iloc[0]
    np.testing.assert_allclose([row[part] for part in name_parts(SLOTS)], shares[1, 1, 2])
    first = frame[(frame["prompt"] == "p") & (frame["number"] == 1) & (frame["head"] == "all")].iloc[0]
    assert first["question"] == pytest.approx(shares[0, :, :, 1 + SLOTS].mean())
