"""Which GPUs get the kernel of `headscope.capture.rows.triton_sweep`: those where it compiles and is right."""

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import torch

from headscope.capture.model.block_sizes import BlockSizes
from headscope.capture.model.mask import Reach
from headscope.capture.rows.sweep import Swept, sweep
from headscope.capture.tokens.distance import Rulers

CLOSE = 1e-4
"""By how much the answers of the kernel may differ from those of plain products, in float32, on a few rows."""


@dataclass(frozen=True, eq=False)
class Kernels:
    """Which devices get the kernel, for which sizes of a head; each is tried once."""

    _tried: dict[tuple[torch.device, int], ModuleType | None] = field(default_factory=dict)

    def find(self, device: torch.device, size: int) -> ModuleType | None:
        """The module of the kernel for heads of this size; None for plain products."""
        if (device, size) not in self._tried:
            self._tried[device, size] = _try_kernel(device, size)
        return self._tried[device, size]


def _try_kernel(device: torch.device, size: int) -> ModuleType | None:
    if device.type != "cuda" or find_spec("triton") is None:
        return None
    from headscope.capture.rows import triton_sweep

    try:
        return triton_sweep if is_right(triton_sweep.sweep_by_triton, device, size) else None
    except triton_sweep.FAILURES:
        return None


def is_right(kernel: Callable[..., Swept], device: torch.device, size: int) -> bool:
    """True if the kernel gives the answers of plain products for heads of this size, with a window and padding."""
    generator = torch.Generator().manual_seed(1)
    query, key, value = (torch.randn(2, heads, 150, size, generator=generator).to(device) for heads in (4, 2, 2))
    hidden = torch.arange(150, device=device).expand(2, -1) >= torch.tensor([[150], [70]], device=device)
    how: dict[str, Any] = {
        "scale": size**-0.5, "reach": Reach(before=40, after=3, hidden=hidden), "first": 0, "edges": (1, 2, 17)
    }  # fmt: skip
    given, expected = (
        kernel(query, key, value, **how),
        sweep(query, key, value, **how, rulers=Rulers(), sizes=BlockSizes()),
    )
    real = ~hidden[:, None, :, None]
    answers = ((given.log_sum, expected.log_sum), (given.entropy, expected.entropy))
    pairs = [(ours[..., None], theirs[..., None]) for ours, theirs in answers]
    pairs += [(given.features, expected.features), (given.output, expected.output)]
    return all(bool((((ours - theirs).abs() <= CLOSE) | ~real).all()) for ours, theirs in pairs)
