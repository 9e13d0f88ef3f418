"""The kernels for GPUs are compiled for three generations of them, where their numbers fit into the registers."""

import os
import re
import subprocess
import sys

import pytest

COMPILING = """
import subprocess, sys, tempfile
from pathlib import Path

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from headscope.capture.rows import second_pass, triton_kernels

capability, size, kind = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
dtype = {"*bf16": torch.bfloat16, "*fp16": torch.float16, "*fp32": torch.float32}[kind]
kernels = [(triton_kernels.add_up, {})]
for width, ahead in ((64, True), (32, False), (16, True)):
    more = second_pass.choose_more(27, 2, width, has_features=True, ahead=ahead)
    kernels.append((triton_kernels.answer, more))
for kernel, own in kernels:
    settings = second_pass.choose_settings(size, dtype, capability // 10, has_hidden=True) | own
    options = {name: settings.pop(name) for name in ("num_stages", "maxnreg")}
    tensors = "given_log_sums sizes averages entropies features".split()
    sums = "*fp32" if kernel is triton_kernels.add_up else "*fp64"
    kinds = dict.fromkeys(kernel.arg_names, "i32") | dict.fromkeys(tensors, "*fp32") | {
        "query": kind, "key": kind, "hidden": "*i8", "borders": "*i32", "scale": "fp32", "high": "*fp16",
        "low": "*fp16", "log_sums": sums,
    } | dict.fromkeys(settings, "constexpr")
    kinds = {name: each for name, each in kinds.items() if name in kernel.arg_names}
    # What Triton finds out of the arguments by itself: they can be divided by 16.
    whole = "query_text query_head query_row key_text key_head key_row width length first_column".split()
    round_ones = [n for n, name in enumerate(kernel.arg_names) if kinds[name][0] == "*" or name in whole]
    source = ASTSource(
        kernel, signature=kinds, constexprs=settings, attrs={(n,): [["tt.divisibility", 16]] for n in round_ones}
    )
    compiled = triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options)
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(compiled.asm["cubin"])
        file.flush()
        tool = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
        print(subprocess.run([tool, "--dump-resource-usage", file.name], capture_output=True, text=True).stdout)
    print("shared:", compiled.metadata.shared)
"""

ROOM = {80: 163 << 10, 89: 99 << 10, 90: 227 << 10}
"""The memory that a program may share, in bytes, by compute capability."""


@pytest.mark.full
@pytest.mark.parametrize(
    ("size", "kind"),
    [(64, "*bf16"), (64, "*fp16"), (128, "*bf16"), (256, "*bf16"), (64, "*fp32"), (128, "*fp32")],
)
@pytest.mark.parametrize("capability", [80, 89, 90])
def test_they_compile_for_gpus_and_keep_to_their_registers(capability: int, size: int, kind: str) -> None:
    """What does not fit lies on a stack in slow memory."""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    command = [sys.executable, "-c", COMPILING, str(capability), str(size), kind]
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    assert re.findall(r"STACK:(\d+)", printed) == ["0"] * 4, printed
    shared = [int(number) for number in re.findall(r"^shared: (\d+)", printed, re.MULTILINE)]
    assert len(shared) == 4
    assert max(shared) <= ROOM[capability]
