"""Attention with its log-sum-exp, by the processor's kernel and by plain products, is what softmax says."""

import pytest
import torch

from headscope.capture.model.block_sizes import BlockSizes
from headscope.capture.rows import kernel

QUERIES, KEYS, HEADS, KEY_HEADS, SIZE, TEXTS = 13, 17, 6, 3, 5, 2


def asked(dtype: torch.dtype = torch.float32) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(11)
    shapes = [(TEXTS, HEADS, QUERIES, SIZE), (TEXTS, KEY_HEADS, KEYS, SIZE), (TEXTS, KEY_HEADS, KEYS, SIZE)]
    return tuple(torch.randn(shape, generator=generator).to(dtype) for shape in shapes)


def expected(query, key, values, scale, causal, mask) -> tuple[torch.Tensor, torch.Tensor]:
    key, values = (tensor.double().repeat_interleave(HEADS // KEY_HEADS, dim=1) for tensor in (key, values))
    scores = scale * query.double() @ key.transpose(-1, -2)
    if mask is not None:
        scores = scores + mask.double()
    if causal:
        scores = scores.masked_fill(torch.ones(QUERIES, KEYS, dtype=torch.bool).triu(1), -torch.inf)
    return scores.softmax(-1) @ values, scores.logsumexp(-1)


@pytest.mark.parametrize("masked", ["not", "padding", "rows"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("way", [kernel.attend, kernel.in_blocks])
def test_it_is_what_softmax_says(way, causal: bool, masked: str, monkeypatch) -> None:
    monkeypatch.setattr(
        BlockSizes, "measure", lambda device: BlockSizes(held=TEXTS * HEADS * KEYS * 3)
    )  # blocks of 3 rows
    mask = None
    if masked == "padding":
        mask = torch.zeros(TEXTS, 1, 1, KEYS)
        mask[1, ..., 11:] = torch.finfo(torch.float32).min
        mask = mask.expand(-1, 1, QUERIES, -1)
    elif masked == "rows" and not causal:
        mask = torch.randn(1, 1, QUERIES, KEYS, generator=torch.Generator().manual_seed(2))
    output, log_sum = way(*asked(), scale=0.7, causal=causal, mask=mask)
    wanted, wanted_sum = expected(*asked(), 0.7, causal, mask)
    torch.testing.assert_close(output.double(), wanted, atol=1e-5, rtol=0)
    torch.testing.assert_close(log_sum.double(), wanted_sum, atol=1e-5, rtol=0)


# The processor's kernel works with rounded exponentials here, so `FusedRows` does not take its sum from it.
@pytest.mark.parametrize(("way", "close"), [(kernel.attend, 1e-3), (kernel.in_blocks, 1e-5)])
def test_half_precision_keeps_its_sum_in_float32(way, close: float) -> None:
    output, log_sum = way(*asked(torch.bfloat16), scale=0.7, causal=True)
    wanted, wanted_sum = expected(*asked(torch.bfloat16), 0.7, True, None)
    assert (output.dtype, log_sum.dtype) == (torch.bfloat16, torch.float32)
    torch.testing.assert_close(output.double(), wanted, atol=0.02, rtol=0)
    torch.testing.assert_close(log_sum.double(), wanted_sum, atol=close, rtol=0)


def test_a_row_of_which_all_is_hidden_has_a_sum_of_nothing() -> None:
    """Far keys may all be padding; what they hold of the row must come out as nothing, and not as NaN."""
    mask = torch.full((TEXTS, 1, QUERIES, KEYS), torch.finfo(torch.float32).min)
    for way in (kernel.attend, kernel.in_blocks):
        output, log_sum = way(*asked(), scale=0.7, mask=mask)
        assert bool(output.isfinite().all())
        assert bool((log_sum.exp() == 0).all())
