"""The figures of a ledger show its numbers, and dots are filled where a head is surely a reader."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from matplotlib.figure import Figure

from headscope.analyse.ledger import MeasuredPrompts, find_selected, rank_readers, tabulate_ledger, tabulate_tokens
from headscope.view.figures.draw_ledger import draw_ledger

PROMPTS, SLOTS, LAYERS, HEADS, TOKENS = 11, 3, 2, 5, 7
PARTS = SLOTS + 4


@pytest.fixture(scope="module")
def table() -> xr.Dataset:
    """Heads whose shares are random, of which 2-3 gives the document with the answer half of its attention."""
    draw = np.random.default_rng(3)
    shares = draw.dirichlet(np.ones(PARTS), (PROMPTS, SLOTS, LAYERS, HEADS))
    gold = draw.integers(SLOTS, size=PROMPTS)
    for prompt in range(PROMPTS):
        for order in range(SLOTS):
            shares[prompt, order, 1, 2] /= 2
            shares[prompt, order, 1, 2, 1 + (gold[prompt] - order) % SLOTS] += 0.5
    measured = MeasuredPrompts(shares, np.full((PROMPTS, PARTS), 1 / PARTS), np.full((PROMPTS, SLOTS), 41.0), gold + 1)
    about = {"model": "mine", "corpus": "prompts.jsonl", "documents": PROMPTS}
    return tabulate_ledger(measured).assign_attrs(about)


@pytest.fixture(scope="module")
def tokens(table: xr.Dataset) -> pd.DataFrame:
    shares = np.random.default_rng(5).dirichlet(np.ones(PARTS), (TOKENS, LAYERS, HEADS))
    texts = [("first", [*"abcdefg"], shares), ("second", [*"hi"], shares[:2])]
    parts = [str(part) for part in table["part"].values]
    return tabulate_tokens(texts, parts, range(1, LAYERS + 1), rank_readers(table)[:3])


@pytest.fixture(scope="module")
def figures(table: xr.Dataset, tokens: pd.DataFrame) -> dict[str, Figure]:
    return draw_ledger(table, tokens)


def test_each_bar_is_the_share_of_a_part(table: xr.Dataset, figures: dict[str, Figure]) -> None:
    axes = figures["ledger-heads"].axes[0]
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names[:3] == ["uniform attention", "all heads", "2-3"]
    assert len(names) == 2 + LAYERS * HEADS
    widths = {bars.get_label(): [bar.get_width() for bar in bars] for bars in axes.containers}
    assert {*widths} == {*table["part"].values}
    for part, of_part in widths.items():
        mass = table["ledger_mass"].sel(part=part)
        expected = [float(table["ledger_mass_uniform"].sel(part=part)), float(mass.mean())]
        expected += [float(mass.sel(layer=layer, head=head)) for layer, head in rank_readers(table)]
        np.testing.assert_allclose(of_part, expected)
    np.testing.assert_allclose(np.sum([*widths.values()], axis=0), 1)


def test_a_dot_is_filled_where_the_content_effect_is_sure(table: xr.Dataset, figures: dict[str, Figure]) -> None:
    dots = {line.get_gid(): line for line in figures["ledger-heads"].axes[1].lines if line.get_gid()}
    assert len(dots) == LAYERS * HEADS
    for layer, head in rank_readers(table):
        dot, place = dots[f"content {layer}-{head}"], {"layer": layer, "head": head}
        assert dot.get_xdata()[0] == pytest.approx(float(table["ledger_content"].sel(place)))
        assert (dot.get_markerfacecolor() == "black") == bool(find_selected(table).sel(place))
    assert dots["content 2-3"].get_markerfacecolor() == "black"
    assert {dot.get_markerfacecolor() for dot in dots.values()} == {"black", "white"}


def test_without_answers_there_are_bars_alone(table: xr.Dataset, tokens: pd.DataFrame) -> None:
    known = [name for name in table if not str(name).startswith(("ledger_content", "ledger_gold", "ledger_other"))]
    assert len(draw_ledger(table[known], tokens)["ledger-heads"].axes) == 1


def test_each_token_of_the_first_prompt_has_a_column(tokens: pd.DataFrame, figures: dict[str, Figure]) -> None:
    panels = figures["ledger-tokens"].axes
    assert [axes.get_title(loc="left") for axes in panels[:2]] == ["all heads", "head 2-3"]
    assert [label.get_text() for label in panels[-1].get_xticklabels()] == [*"abcdefg"]
    frame = tokens[(tokens["prompt"] == "first") & (tokens["head"] == "2-3")]
    for bars in panels[1].containers:
        np.testing.assert_allclose([bar.get_height() for bar in bars], frame[bars.get_label()])
    assert "first" in figures["ledger-tokens"].get_suptitle()
