"""Chooses the GPUs that use the kernel of `headscope.capture.rows.second_pass`: it must give right results there."""

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from headscope.capture.model.block_sizes import BlockSizes
from headscope.capture.model.mask import Reach
from headscope.capture.rows.sweep import Swept, sweep
from headscope.capture.tokens.distance import EDGES, Rulers

CLOSE = 1e-4
"""The largest difference allowed between the kernel and plain products, in float32, on a few rows."""


@dataclass(frozen=True, eq=False)
class Kernels:
    """The kernels that measure attention without the matrix on GPUs, by device, width of a head and numerical type.

    Each kernel is tested once; None replaces a kernel that does not work.
    """

    _tried: dict[tuple[torch.device, int, torch.dtype], ModuleType | None] = field(default_factory=dict)

    def find(self, query: Float[Tensor, "batch head query size"]) -> ModuleType | None:
        """Return the module of the kernel for queries of this device, width and type; None if it does not work."""
        kind = (query.device, query.shape[-1], query.dtype)
        if kind not in self._tried:
            self._tried[kind] = _try_kernel(*kind)
        return self._tried[kind]


def _try_kernel(device: torch.device, size: int, dtype: torch.dtype) -> ModuleType | None:
    if device.type != "cuda" or find_spec("triton") is None:
        return None
    from headscope.capture.rows import second_pass

    try:
        return (
            second_pass if is_right(second_pass.lay_columns, second_pass.sweep_by_triton, device, size, dtype) else None
        )
    except second_pass.FAILURES:
        return None


def is_right(
    lay: Callable[..., Any], answer: Callable[..., Swept], device: torch.device, size: int, dtype: torch.dtype
) -> bool:
    """Return whether a kernel gives the same statistics as plain products, on random rows with a window and padding.

    Args:
        lay: Lays out columns for `answer`.
        answer: The kernel.
        device: The GPU.
        size: The width of the heads.
        dtype: The type of the numbers.
    """
    generator = torch.Generator().manual_seed(1)
    query, key, value = (torch.randn(2, heads, 150, size, generator=generator).to(device, dtype) for heads in (4, 2, 2))
    hidden = torch.arange(150, device=device).expand(2, -1) >= torch.tensor([[150], [70]], device=device)
    how: dict[str, Any] = {
        "scale": size**-0.5, "reach": Reach(before=40, after=3, hidden=hidden), "first": 0, "edges": EDGES,
        "rulers": Rulers(),
    }  # fmt: skip
    given = answer(query, key, lay([value]), **how)
    expected = sweep(query.float(), key.float(), value.float(), **how, sizes=BlockSizes())
    real = ~hidden[:, None, :, None]
    answers = ((given.log_sum, expected.log_sum), (given.entropy, expected.entropy))
    pairs = [(ours[..., None], theirs[..., None]) for ours, theirs in answers]
    pairs += [(given.features, expected.features), (given.averages[0], expected.output)]
    return all(bool((((ours - theirs).abs() <= CLOSE) | ~real).all()) for ours, theirs in pairs)
