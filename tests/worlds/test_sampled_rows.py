"""Verdicts on heads of which a sample of the query rows was measured: those that know nothing hardly ever stand out."""

import pytest
from scipy.stats import binom

from worlds.sampled_rows import WORLDS, list_stars, tabulate
from worlds.shares import LEVEL


def count_stars(title: str, worlds: int) -> list[int]:
    """In how many worlds any row stands out, under each heading."""
    tables = [tabulate(seed, WORLDS[title]) for seed in range(worlds)]
    return [sum(bool(list_stars(table)) for table in heading) for heading in zip(*tables, strict=True)]


@pytest.mark.full
@pytest.mark.parametrize("title", WORLDS)
def test_of_sampled_rows_a_head_that_knows_nothing_hardly_ever_stands_out(title: str) -> None:
    assert max(count_stars(title, 4)) <= binom.ppf(0.99, 4, LEVEL)


def test_a_head_that_prefers_the_token_before_stands_out_and_no_other_row_does() -> None:
    nearby, again = tabulate(3, ["near"], planted=0.05)
    assert list_stars(nearby) == ["previous token"]
    assert list_stars(again) == []
