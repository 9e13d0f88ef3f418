"""The second pass goes over keys in blocks, of which some lie in one bucket of distance and others cross a border.

Each answer is that of softmax in float64, wherever windows, borders and the last key lie in a block.
"""

from itertools import pairwise

import pytest
import torch

from headscope.capture.model.mask import Reach
from headscope.capture.rows import second_pass
from headscope.capture.tokens.distance import Rulers


def in_full(*cases: object) -> list:
    """Return cases of the long tier."""
    return [pytest.param(case, marks=pytest.mark.full) for case in cases]


BLOCK = 16
CAUSAL, BOTH = Reach(after=0), Reach()
FEW, MANY = (1, 2, 5, 11), (1, 2, 4, 8, 16, 32, 64, 128, 256)


def measure(query: torch.Tensor, key: torch.Tensor, columns: torch.Tensor, **how) -> None:
    """Assert that all answers are those of float64."""
    reach, first, edges = how["reach"], how["first"], how["edges"]
    scores = how["scale"] * query.double() @ key.double().mT
    apart = torch.arange(key.shape[2]) - torch.arange(query.shape[2])[:, None]
    seen = reach.within(apart)
    if reach.hidden is not None:
        seen = seen & ~reach.hidden[:, None, None]
    scores = scores.masked_fill(~seen, -torch.inf)
    weights, log_sum = scores.softmax(-1), scores.logsumexp(-1)
    away = apart + first
    borders = [-(1 << 30), *(1 - edge for edge in reversed(edges)), *edges, 1 << 30]
    masses = [(weights * ((away >= lower) & (away < upper))).sum(-1) for lower, upper in pairwise(borders)]
    swept = second_pass.sweep_by_triton(
        query, key, second_pass.lay_columns([columns]), **how, log_sum=log_sum.float(), rulers=Rulers()
    )
    assert (swept.entropy - torch.special.entr(weights).sum(-1)).abs().max() < 1e-5
    torch.testing.assert_close(swept.log_sum, log_sum, atol=1e-5, rtol=5e-7)
    assert (swept.features[..., :-1] - torch.stack(masses, -1)).abs().max() < 1e-5
    assert swept.features[..., :-1].min() >= 0
    mean = (weights * away.abs()).sum(-1)
    assert ((swept.features[..., -1] - mean).abs() / away.abs().max()).max() < 1e-5
    assert (swept.averages[0] - weights @ columns.double()).abs().max() < 1e-5


def make(queries: int, keys: int, *, size: int = 8) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(queries + keys)
    query = torch.randn(1, 1, queries, size, generator=generator).half()
    key = torch.randn(1, 1, keys, size, generator=generator).half()
    return query, key, (torch.rand(1, 1, keys, 5, generator=generator) > 0.5).float()


@pytest.fixture(autouse=True)
def _short_blocks(monkeypatch) -> None:
    for name in ("ROWS", "KEYS", "WIDTH"):
        monkeypatch.setattr(second_pass, name, BLOCK)


@pytest.mark.parametrize("edges", [MANY, (103,), *in_full(FEW, (1,), (13,), (102,), (104,))])
@pytest.mark.parametrize("reach", [CAUSAL, BOTH], ids=str)
def test_far_blocks_and_near_ones_lie_in_their_buckets(reach: Reach, edges: tuple[int, ...]) -> None:
    """Borders within the text, at its end, and behind it."""
    query, key, columns = make(103, 103)
    measure(query, key, columns, scale=0.4, reach=reach, first=0, edges=edges)


@pytest.mark.parametrize("edges", [FEW, *in_full(MANY)])
@pytest.mark.parametrize(
    "reach",
    [
        Reach(before=0, after=0),
        Reach(before=5, after=0),
        Reach(before=15, after=0),
        Reach(before=16, after=0),
        Reach(before=60, after=0),
        Reach(before=40, after=25),
        Reach(before=3),
        Reach(before=200, after=17),
    ],
    ids=str,
)
def test_windows_end_anywhere_in_a_block(reach: Reach, edges: tuple[int, ...]) -> None:
    query, key, columns = make(96, 96)
    measure(query, key, columns, scale=0.4, reach=reach, first=0, edges=edges)


@pytest.mark.parametrize("edges", [FEW, *in_full(MANY)])
@pytest.mark.parametrize(
    ("queries", "keys", "first", "reach"),
    [
        (7, 103, 0, BOTH),
        (103, 7, 0, BOTH),
        (33, 80, -47, Reach(after=47)),
        (33, 80, -47, Reach(before=20, after=47)),
        (33, 80, 9, BOTH),
        (33, 80, 200, BOTH),
        (33, 80, -200, BOTH),
    ],
)
def test_queries_and_keys_begin_apart(
    queries: int, keys: int, first: int, reach: Reach, edges: tuple[int, ...]
) -> None:
    """As in cross-attention, and where the first keys are in a cache."""
    query, key, columns = make(queries, keys)
    measure(query, key, columns, scale=0.4, reach=reach, first=first, edges=edges)


@pytest.mark.parametrize("reach", [CAUSAL, BOTH, Reach(before=30, after=20)], ids=str)
def test_padding_is_hidden_in_every_block(reach: Reach) -> None:
    hidden = (torch.arange(90) % 7 == 3) | (torch.arange(90) >= 83)
    query, key, columns = make(83, 90)
    reach = Reach(reach.before, reach.after, hidden=hidden[None])
    measure(query, key, columns, scale=0.4, reach=reach, first=0, edges=FEW)


@pytest.mark.parametrize("scale", [0.0, 0.05, 3.0, 30.0, -2.0])
def test_even_rows_and_peaked_ones_are_as_exact(scale: float) -> None:
    """A row may attend to one key alone, whose weight is 1."""
    query, key, columns = make(70, 70)
    measure(query, key, columns, scale=scale, reach=CAUSAL, first=0, edges=FEW)


@pytest.mark.full
@pytest.mark.parametrize(("keys", "scale"), [(32_768, 2.0), (131_000, 0.0), (131_000, 0.2)])
def test_long_rows_are_as_exact_as_short_ones(monkeypatch, keys: int, scale: float) -> None:
    """Sums of thousands of blocks, of the last rows of a causal text; of even weights all are rounded the same way."""
    for name in ("ROWS", "KEYS", "WIDTH"):
        monkeypatch.setattr(second_pass, name, 64)
    query, key, columns = make(5, keys)
    first = 5 - keys
    edges = tuple(2**power for power in range(13))
    measure(query, key, columns, scale=scale, reach=Reach(after=-first), first=first, edges=edges)
