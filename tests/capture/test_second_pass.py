"""The second pass for GPUs, run by Triton's interpreter on the processor, gives the answers of softmax in float64.

The interpreter multiplies bfloat16 wrongly, so half precision is float16 here; `tests/gpu` has bfloat16.
"""

from itertools import pairwise
from types import ModuleType

import pytest
import torch
from triton.runtime.errors import OutOfResources

from fused_layers import in_float64, load, make_weights, observe, real
from headscope.capture.model.block_sizes import BlockSizes
from headscope.capture.model.mask import Reach
from headscope.capture.rows import gpu, second_pass
from headscope.capture.rows.fused import FusedRows
from headscope.capture.rows.sweep import Swept, sweep
from headscope.capture.tokens.distance import Rulers

EDGES = (1, 2, 5, 11)
CLOSE = {"atol": 1e-5, "rtol": 0}
HALF, WHOLE = torch.float16, torch.float32


@pytest.fixture(params=[16, 32])
def kernel(request, monkeypatch) -> ModuleType:
    """The kernel with short blocks, so that the short texts have several."""
    for name in ("ROWS", "KEYS", "WIDTH"):
        monkeypatch.setattr(second_pass, name, request.param)
    monkeypatch.setattr("headscope.capture.rows.gpu._try_kernel", lambda device, size, dtype: second_pass)
    return second_pass


@pytest.mark.parametrize(
    ("kernel", "family", "documents", "dtype"),
    [
        (16, "llama", 2, HALF),
        (16, "mistral", 2, HALF),
        (16, "modernbert", 2, HALF),
        (16, "bart", 1, HALF),
        (32, "llama", 2, HALF),
        (16, "llama", 2, WHOLE),
        (16, "modernbert", 2, WHOLE),
        pytest.param(16, "bert", 2, HALF, marks=pytest.mark.full),
        pytest.param(16, "bart", 2, HALF, marks=pytest.mark.full),
        pytest.param(16, "mistral", 2, WHOLE, marks=pytest.mark.full),
    ],
    indirect=["kernel"],
)
def test_a_layer_gives_the_answers_of_float64(
    kernel: ModuleType, family: str, documents: int, dtype: torch.dtype
) -> None:
    """Its entropies, distances and averages, of columns that the layer before was asked for as well."""
    model, batch = load(family, documents=documents, dtype=dtype)
    generator = torch.Generator().manual_seed(3)
    columns = [torch.rand(len(batch.documents), batch.encoder.length, width, generator=generator) for width in (5, 17)]
    for fused in observe(model, batch, fused=True):
        assert isinstance(fused, FusedRows)
        assert fused.attended is not None
        weights, groups = make_weights(fused), fused.heads // fused.key.shape[1]
        values = fused.values().double().repeat_interleave(groups, 1)
        average = fused.average_by_head(fused.values()).double()
        torch.testing.assert_close(real(fused, average), real(fused, weights @ values), **CLOSE)
        # Torch's own output: on a processor its kernel is right to five digits, or as its type is rounded.
        rounded = {"atol": max(CLOSE["atol"], 4 * torch.finfo(dtype).eps), "rtol": 0}
        torch.testing.assert_close(real(fused, fused.output().double()), real(fused, weights @ values), **rounded)
        assert (real(fused, fused.entropy()[..., None])[..., 0] - in_float64(fused)[1]).abs().max() < 1e-5
        if fused.keys.length == batch.encoder.length:
            for asked in columns:
                average = weights @ asked[:, None].double()
                torch.testing.assert_close(real(fused, fused.average(asked).double()), real(fused, average), **CLOSE)
        away = fused.keys.position[:, None] - fused.queries.position[:, :, None]
        masses, mean = fused.distances(EDGES)
        borders = [-1000, *(1 - edge for edge in reversed(EDGES)), *EDGES, 1000]
        for bucket, (lower, upper) in enumerate(pairwise(borders)):
            held = (weights * ((away >= lower) & (away < upper))[:, None]).sum(-1, keepdim=True)
            torch.testing.assert_close(
                real(fused, masses[..., bucket : bucket + 1].double()), real(fused, held), **CLOSE
            )
        apart = (weights * away.abs()[:, None]).sum(-1, keepdim=True)
        torch.testing.assert_close(real(fused, mean.double()[..., None]) / 30, real(fused, apart) / 30, **CLOSE)
        sums = torch.logsumexp(weights.log() + fused.log_sum[..., None], -1)
        torch.testing.assert_close(real(fused, fused.log_sum[..., None]), real(fused, sums[..., None]), **CLOSE)


@pytest.mark.parametrize("given", [None, 7.0, *(pytest.param(each, marks=pytest.mark.full) for each in (0.0, -0.3))])
@pytest.mark.parametrize("reach", [Reach(), Reach(after=0), Reach(before=7, after=0), Reach(before=5, after=3)])
def test_rising_and_falling_scores_keep_their_entropies(kernel: ModuleType, reach: Reach, given: float | None) -> None:
    """The peak of a row is met in the last block of keys, in the first, or somewhere between.

    A log-sum-exp that is off by `given` changes nothing.
    """
    place = torch.arange(53.0)
    key = torch.stack([place / 3, -place / 3, 9 * (place * 2.4).sin()])[None, :, :, None]
    query = torch.ones(1, 6, 53, 1)
    query, key = (torch.nn.functional.pad(side, (0, 2)) for side in (query, key))
    scores = 1.3 * query.double() @ key.double().repeat_interleave(2, 1).transpose(-1, -2)
    apart = place.long() - place.long()[:, None]
    scores = scores.masked_fill(~reach.within(apart), -torch.inf)
    weights, sums = scores.softmax(-1), scores.logsumexp(-1)
    how = {"scale": 1.3, "reach": reach, "log_sum": None if given is None else (sums + given).float()}
    swept = kernel.sweep_by_triton(query, key, first=0, edges=(1, 3), rulers=Rulers(), **how)
    torch.testing.assert_close(swept.entropy.double(), torch.special.entr(weights).sum(-1), **CLOSE)
    torch.testing.assert_close(swept.log_sum, sums, **CLOSE)
    output, log_sum = kernel.attend_by_triton(query, key, kernel.lay_columns([key]), **how)
    torch.testing.assert_close(output.double(), weights @ key.double().repeat_interleave(2, 1), atol=2e-5, rtol=0)
    torch.testing.assert_close(log_sum.double(), sums + (given or 0), **CLOSE)


@pytest.mark.parametrize("spread", [1e-6, 1.0, 1e5])
def test_columns_of_any_size_are_averaged_to_six_digits(spread: float) -> None:
    """Of many small weights too, which have few digits in float16: 3,000 keys with a weight each of 1 / 3,000."""
    query, key = torch.zeros(1, 2, 3, 8, dtype=HALF), torch.zeros(1, 1, 3000, 8, dtype=HALF)
    columns = spread * torch.rand(1, 3000, 20, generator=torch.Generator().manual_seed(2))
    for part, parts in ((columns, 2), ((columns > spread / 2).float(), 1)):
        laid = second_pass.lay_columns([part[:, None]])
        assert (laid.low is None) == (parts == 1)
        average, _ = second_pass.attend_by_triton(query, key, laid, scale=1.0, reach=Reach())
        expected = part.double().mean(1, keepdim=True).expand(2, 3, -1)[None]
        torch.testing.assert_close(average.double(), expected, atol=1e-6 * float(part.max()), rtol=0)


def test_columns_that_are_laid_out_are_what_they_were() -> None:
    values = torch.randn(2, 3, 5, 4) * torch.tensor([1e-20, 1.0, 1e20, 0.0])
    laid = second_pass.lay_columns([values, torch.ones(2, 1, 5, 1)])
    together = laid.size * (laid.high.double() + laid.low.double())
    wanted = torch.cat([values, torch.ones(2, 3, 5, 1)], -1).double()
    size = wanted.abs().amax(2, keepdim=True).clamp_min(1e-30)
    assert ((together.mT[..., :5, :5] - wanted) / size).abs().max() < 1e-6
    assert not together[..., 5:].any()
    assert laid.widths == (4, 1)


@pytest.mark.parametrize("dtype", [HALF, WHOLE])
def test_where_all_is_hidden_nothing_is_nan(kernel: ModuleType, dtype: torch.dtype) -> None:
    query, key = (
        torch.randn(2, heads, 19, 7, generator=torch.Generator().manual_seed(5)).to(dtype) for heads in (6, 3)
    )
    hidden = torch.zeros(2, 19, dtype=torch.bool)
    hidden[1] = True
    columns = kernel.lay_columns([key])
    for log_sum in (None, torch.full((2, 6, 19), 1e30)):
        swept = kernel.sweep_by_triton(
            query, key, columns, scale=0.4, reach=Reach(hidden=hidden), first=0, edges=EDGES, rulers=Rulers(),
            log_sum=log_sum,
        )  # fmt: skip
        for answer in (swept.log_sum, swept.entropy, swept.features, *swept.averages):
            assert bool(answer.isfinite().all())


def test_a_processor_gets_plain_products() -> None:
    assert gpu.Kernels().find(torch.zeros(1, 1, 1, 17)) is None


@pytest.mark.parametrize("dtype", [HALF, WHOLE])
def test_a_gpu_gets_the_kernel_only_where_it_is_right(dtype: torch.dtype) -> None:
    def answer(query, key, columns, **how) -> Swept:
        swept = sweep(query.float(), key.float(), columns[0].float(), **how, sizes=BlockSizes())
        return Swept(swept.log_sum, swept.entropy, swept.features, swept.output, (swept.output,))

    def answer_with_another_scale(*given, **how) -> Swept:
        return answer(*given, **how | {"scale": 1.001 * how["scale"]})

    def answer_without_a_window(*given, **how) -> Swept:
        return answer(*given, **how | {"reach": Reach(hidden=how["reach"].hidden)})

    processor = torch.device("cpu")
    assert gpu.is_right(second_pass.lay_columns, second_pass.sweep_by_triton, processor, 17, dtype)
    assert gpu.is_right(list, answer, processor, 17, dtype)
    for wrong in (answer_with_another_scale, answer_without_a_window):
        assert not gpu.is_right(list, wrong, processor, 17, dtype)


@pytest.mark.parametrize("failure", [OutOfResources(1 << 18, 1 << 16, "shared memory"), RuntimeError("no C compiler")])
def test_where_it_cannot_run_plain_products_do(monkeypatch, failure: Exception) -> None:
    def fail(*given, **how):
        raise failure

    monkeypatch.setattr(gpu, "is_right", fail)
    assert gpu._try_kernel(torch.device("cuda"), 17, HALF) is None


def test_a_mistake_of_ours_is_not_hidden(monkeypatch) -> None:
    def mistake(*given, **how):
        raise TypeError("an argument is missing")

    monkeypatch.setattr(gpu, "is_right", mistake)
    with pytest.raises(TypeError, match="an argument is missing"):
        gpu._try_kernel(torch.device("cuda"), 17, HALF)


def test_the_kernel_reads_what_lies_otherwise_in_memory(kernel: ModuleType) -> None:
    """Queries and keys as models hand them over are views whose heads lie behind one another."""
    query, key = (torch.randn(2, 19, heads, 8, generator=torch.Generator().manual_seed(5)) for heads in (6, 3))
    how = {"scale": 0.4, "reach": Reach(after=0), "first": 0, "edges": EDGES, "rulers": Rulers()}
    theirs = sweep(query.transpose(1, 2), key.transpose(1, 2), None, **how, sizes=BlockSizes())
    pairs = (
        (query.transpose(1, 2), key.transpose(1, 2)),
        (query.permute(0, 2, 3, 1).contiguous().mT, key.permute(0, 2, 3, 1).contiguous().mT),
    )
    for sides in pairs:
        ours = kernel.sweep_by_triton(*sides, **how)
        torch.testing.assert_close(ours.features[..., :-1], theirs.features[..., :-1], **CLOSE)
        torch.testing.assert_close(ours.entropy, theirs.entropy, **CLOSE)
