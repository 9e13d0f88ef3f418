#!/usr/bin/env bash
set -euo pipefail
source "$(dirname "$0")/setup.sh"

finding "On a processor that has AMX, scaled_dot_product_attention in bfloat16 fails with a RuntimeError where ATEN_CPU_CAPABILITY asks for less than AVX-512: it looks at the processor, and not at what was asked for. Short rows, and float16, work."
install torch==2.13.0 numpy
for capability in default avx2 avx512; do
    export ATEN_CPU_CAPABILITY="$capability"
    run <<'EOF'
import os

import torch

capability = os.environ["ATEN_CPU_CAPABILITY"]
assert torch.cpu.get_capabilities()["amx_tile"], "this processor has no AMX, and shows nothing"
for dtype, length in ((torch.bfloat16, 64), (torch.bfloat16, 7), (torch.float16, 64)):
    query = torch.randn(1, 5, length, 64).to(dtype)
    try:
        torch.nn.functional.scaled_dot_product_attention(query, query, query)
        outcome = "works"
    except RuntimeError as error:
        outcome = str(error)
    print(f"{capability:7} {dtype} {length:2} rows: {outcome}")
    fails = capability != "avx512" and (dtype, length) == (torch.bfloat16, 64)
    assert ("pack_vnni2 is only supported when avx512" in outcome) == fails, "it behaves otherwise"
EOF
done
