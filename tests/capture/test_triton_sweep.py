"""The kernel for GPUs, run by Triton's interpreter on the processor, gives the answers of softmax in float64."""

import os
import re
import subprocess
import sys
from itertools import pairwise
from types import ModuleType

import pytest
import torch
from triton.runtime.errors import OutOfResources

from fused_layers import in_float64, load, make_weights, observe, real
from headscope.capture.model.block_sizes import BlockSizes
from headscope.capture.model.mask import Reach
from headscope.capture.rows import gpu, triton_sweep
from headscope.capture.rows.fused import FusedRows
from headscope.capture.rows.sweep import sweep
from headscope.capture.tokens.distance import Rulers

EDGES = (1, 2, 5, 11)
CLOSE = {"atol": 1e-5, "rtol": 0}


@pytest.fixture(params=[16, 32])
def kernel(request, monkeypatch) -> ModuleType:
    """The kernel with short blocks, so that the short texts have several, and with its own."""
    for name in ("ROWS", "KEYS", "WIDTH"):
        monkeypatch.setattr(triton_sweep, name, request.param)
    monkeypatch.setattr("headscope.capture.rows.gpu._try_kernel", lambda device, size: triton_sweep)
    return triton_sweep


@pytest.mark.parametrize(
    ("kernel", "family", "documents"),
    [
        (16, "bert", 2),
        (16, "llama", 2),
        (16, "mistral", 2),
        (16, "modernbert", 2),
        (16, "bart", 1),
        (32, "llama", 2),
        pytest.param(16, "bart", 2, marks=pytest.mark.full),
    ],
    indirect=["kernel"],
)
def test_a_layer_gives_the_answers_of_float64(kernel: ModuleType, family: str, documents: int) -> None:
    """Its output, entropies, distances and averages, of columns that the layer before was asked for as well."""
    model, batch = load(family, documents=documents)
    generator = torch.Generator().manual_seed(3)
    columns = [torch.rand(len(batch.documents), batch.encoder.length, width, generator=generator) for width in (5, 17)]
    for fused in observe(model, batch, fused=True):
        assert isinstance(fused, FusedRows)
        weights, groups = make_weights(fused), fused.heads // fused.key.shape[1]
        output = weights @ fused.values().double().repeat_interleave(groups, 1)
        torch.testing.assert_close(real(fused, fused.output().double()), real(fused, output), **CLOSE)
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


@pytest.mark.parametrize("reach", [Reach(), Reach(after=0), Reach(before=7, after=0), Reach(before=5, after=3)])
def test_rising_and_falling_scores_keep_their_entropies(kernel: ModuleType, reach: Reach) -> None:
    """The peak of a row is met in the last block of keys, in the first, or somewhere between."""
    place = torch.arange(53.0)
    key = torch.stack([place / 3, -place / 3, 9 * (place * 2.4).sin()])[None, :, :, None]
    query = torch.ones(1, 6, 53, 1)
    query, key = (torch.nn.functional.pad(side, (0, 2)) for side in (query, key))
    swept = kernel.sweep_by_triton(query, key, key, scale=1.3, reach=reach, first=0, edges=(1, 3))
    scores = 1.3 * query.double() @ key.double().repeat_interleave(2, 1).transpose(-1, -2)
    apart = place.long() - place.long()[:, None]
    scores = scores.masked_fill(~reach.within(apart), -torch.inf)
    weights = scores.softmax(-1)
    torch.testing.assert_close(swept.entropy.double(), torch.special.entr(weights).sum(-1), **CLOSE)
    torch.testing.assert_close(swept.log_sum, scores.logsumexp(-1), **CLOSE)
    output, log_sum = kernel.attend_by_triton(query, key, key, scale=1.3, reach=reach)
    torch.testing.assert_close(output.double(), weights @ key.double().repeat_interleave(2, 1), atol=1e-4, rtol=0)
    torch.testing.assert_close(log_sum.double(), scores.logsumexp(-1), **CLOSE)


def test_where_all_is_hidden_nothing_is_nan(kernel: ModuleType) -> None:
    query, key = (torch.randn(2, heads, 19, 7, generator=torch.Generator().manual_seed(5)) for heads in (6, 3))
    hidden = torch.zeros(2, 19, dtype=torch.bool)
    hidden[1] = True
    swept = kernel.sweep_by_triton(query, key, key, scale=0.4, reach=Reach(hidden=hidden), first=0, edges=EDGES)
    for answer in (swept.log_sum, swept.entropy, swept.features, swept.output):
        assert bool(answer.isfinite().all())


def test_a_processor_gets_plain_products() -> None:
    assert gpu.Kernels().find(torch.device("cpu"), 17) is None


def test_a_gpu_gets_the_kernel_only_where_it_is_right() -> None:
    def answer(*given, **how):
        return sweep(*given, **how, rulers=Rulers(), sizes=BlockSizes())

    def answer_with_another_scale(*given, **how):
        return answer(*given, **how | {"scale": 1.001 * how["scale"]})

    def answer_without_a_window(*given, **how):
        return answer(*given, **how | {"reach": Reach(hidden=how["reach"].hidden)})

    processor = torch.device("cpu")
    for right in (triton_sweep.sweep_by_triton, answer):
        assert gpu.is_right(right, processor, 17)
    for wrong in (answer_with_another_scale, answer_without_a_window):
        assert not gpu.is_right(wrong, processor, 17)


@pytest.mark.parametrize("failure", [OutOfResources(1 << 18, 1 << 16, "shared memory"), RuntimeError("no C compiler")])
def test_where_it_cannot_run_plain_products_do(monkeypatch, failure: Exception) -> None:
    def fail(*given, **how):
        raise failure

    monkeypatch.setattr(gpu, "is_right", fail)
    kernels = gpu.Kernels()
    assert kernels.find(torch.device("cuda"), 17) is None


def test_a_mistake_of_ours_is_not_hidden(monkeypatch) -> None:
    def mistake(*given, **how):
        raise TypeError("an argument is missing")

    monkeypatch.setattr(gpu, "is_right", mistake)
    with pytest.raises(TypeError, match="an argument is missing"):
        gpu.Kernels().find(torch.device("cuda"), 17)


def test_the_kernel_reads_what_lies_otherwise_in_memory(kernel: ModuleType) -> None:
    """Queries and keys as models hand them over are views whose heads lie behind one another."""
    query, key = (torch.randn(2, 19, heads, 8, generator=torch.Generator().manual_seed(5)) for heads in (6, 3))
    how = {"scale": 0.4, "reach": Reach(after=0), "first": 0, "edges": EDGES}
    ours = kernel.sweep_by_triton(query.transpose(1, 2), key.transpose(1, 2), None, **how)
    theirs = sweep(query.transpose(1, 2), key.transpose(1, 2), None, **how, rulers=Rulers(), sizes=BlockSizes())
    torch.testing.assert_close(ours.features[..., :-1], theirs.features[..., :-1], **CLOSE)
    torch.testing.assert_close(ours.entropy, theirs.entropy, **CLOSE)


COMPILING = """
import subprocess, sys, tempfile
from pathlib import Path

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from headscope.capture.rows import triton_sweep

capability, size = map(int, sys.argv[1:])
settings = triton_sweep.choose_settings(size=size, width=size, buckets=27, has_hidden=True)
options = {name: settings.pop(name) for name in ("num_stages",)}
numbers = dict.fromkeys(triton_sweep._sweep.arg_names, "i32") | {"hidden": "*i8", "borders": "*i32", "scale": "fp32"}
tensors = "query key values averages peaks masses spreads features"
kinds = numbers | dict.fromkeys(tensors.split(), "*fp32") | dict.fromkeys(settings, "constexpr")
source = ASTSource(triton_sweep._sweep, signature=kinds, constexprs=settings)
compiled = triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options)
with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
    file.write(compiled.asm["cubin"])
    file.flush()
    tool = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
    print(subprocess.run([tool, "--dump-resource-usage", file.name], capture_output=True, text=True).stdout)
print("shared:", compiled.metadata.shared)
"""


@pytest.mark.full
@pytest.mark.parametrize("size", [64, 128])
@pytest.mark.parametrize("capability", [80, 90])
def test_it_compiles_for_gpus_and_keeps_to_their_registers(capability: int, size: int) -> None:
    """What does not fit lies on a stack in slow memory. No GPU has less than 64 KiB beside the registers."""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    command = [sys.executable, "-c", COMPILING, str(capability), str(size)]
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    assert re.search(r"STACK:(\d+)", printed)[1] == "0", printed
    assert int(re.search(r"^shared: (\d+)", printed, re.MULTILINE)[1]) <= 64 << 10
