#!/usr/bin/env bash
set -euo pipefail
source "$(dirname "$0")/setup.sh"

finding "Triton's interpreter (TRITON_INTERPRET=1) adds and multiplies numbers in bfloat16 as if their bits were integers, and cuts them off where torch rounds; it raises no error. float16 and float32 are right."
install triton==3.7.1 torch==2.13.0 numpy==2.4.6
run <<'EOF'
import os

os.environ["TRITON_INTERPRET"] = "1"  # before Triton is imported

import torch
import triton
import triton.language as tl


@triton.jit
def add(first, second, output):
    place = tl.arange(0, 16)
    tl.store(output + place, tl.load(first + place) + tl.load(second + place))


@triton.jit
def multiply(first, second, output):
    place = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    tl.store(output + place, tl.dot(tl.load(first + place), tl.load(second + place)))


@triton.jit
def round_off(numbers, output):
    place = tl.arange(0, 16)
    tl.store(output + place, tl.load(numbers + place).to(tl.bfloat16))


def compare(output, expected):
    return float((output.double() - expected.double()).abs().max())


torch.manual_seed(0)
sums, products = {}, {}
for dtype in (torch.float32, torch.float16, torch.bfloat16):
    first, second = (torch.randint(-2, 3, (16, 16)).to(dtype) for _ in range(2))
    output = torch.zeros(16, dtype=dtype)
    add[(1,)](first, second, output)
    sums[dtype] = compare(output, first[0] + second[0])
    output = torch.zeros(16, 16)
    multiply[(1,)](first, second, output)
    products[dtype] = compare(output, first.float() @ second.float())
    print(f"{dtype!s:15} sums differ from torch's by {sums[dtype]:.3g}, tl.dot by {products[dtype]:.3g}")
number = 1 + 3 / 512  # in bfloat16 the next number after 1 is 1 + 4 / 512
output = torch.zeros(16, dtype=torch.bfloat16)
round_off[(1,)](torch.full((16,), number), output)
rounded = float(torch.tensor(number).bfloat16())
print(f"{number} in bfloat16: Triton's interpreter {float(output[0])}, torch {rounded}")

for dtype in (torch.float32, torch.float16):
    assert sums[dtype] == products[dtype] == 0, f"{dtype} is no longer right"
assert sums[torch.bfloat16] > 1, "sums in bfloat16 are right"
assert products[torch.bfloat16] > 1e6, "tl.dot in bfloat16 is right"
assert (float(output[0]), rounded) == (1, 1 + 1 / 128), "it rounds to bfloat16 as torch does"
EOF
