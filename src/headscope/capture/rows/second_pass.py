"""A second pass over queries and keys, for GPUs, in Triton, which comes with torch for GPUs.

The first pass is the model's own fused kernel, which returns its output and the log-sum-exp of each row's scores
(`headscope.capture.forward.own_kernel`). With it, a weight is ``exp2(score - log-sum-exp)``. So one more pass computes
entropies, distances and averages of columns, without a running maximum and without rescaling; no weight is written to
memory. If the model's own kernel has not computed the log-sum-exp, another kernel does.

All answers are divided by the sum of the weights, so the log-sum-exp need not be exact.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from subprocess import CalledProcessError
from typing import Any

import torch
import triton
from jaxtyping import Float, Int
from torch import Tensor
from triton.errors import TritonError

from headscope.capture.model.mask import Reach
from headscope.capture.rows.kernel import ALIGNED
from headscope.capture.rows.sweep import LOWEST, NATS, Swept
from headscope.capture.rows.triton_kernels import add_up, answer
from headscope.capture.tokens.distance import FAR, Rulers

FAILURES = (TritonError, RuntimeError, OSError, CalledProcessError)
"""The errors if the kernel cannot run: the GPU is unknown or has too little memory, or a compiler is missing."""

ROWS, KEYS = 64, 64
"""The most rows and keys of a block.

Wider heads, float32 and older GPUs have smaller blocks, so that all numbers of a program fit into its registers.
"""

WIDTH = 64
"""The most columns that a Triton program averages; more columns go to other programs, which compute weights again."""

SMALLEST, LONGEST = 16, 128
"""The smallest side of a product, and the longest block of keys; both are powers of 2."""

REGISTERS = 168
"""The registers of a thread, if three programs of four warps run on a multiprocessor at a time."""

RAISED = 14
"""The power of 2 by which weights are scaled up in float16, so that small weights keep their digits."""


Settings = dict[str, Any]
"""Constants of a kernel, and options of its compiler."""


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns in the form in which the pass multiplies them: ``size * (high + low)``.

    Attributes:
        widths: The number of columns of each tensor, in order.
        high: The scaled columns, rounded to float16, shared by all heads or separate for each key head. They are 0
            after the last key.
        low: The error of that rounding; None if it is 0 everywhere.
        size: The scale of each column, a power of 2, so that scaled numbers are at most 1.
    """

    widths: tuple[int, ...]
    high: Float[Tensor, "batch column_head column key"]
    low: Float[Tensor, "batch column_head column key"] | None
    size: Float[Tensor, "batch column_head column 1"]

    def split(self, averages: Float[Tensor, "batch head query column"]) -> tuple[Float[Tensor, "*rows _"], ...]:
        """Return the averages of the columns of each tensor that the columns came from, without padded columns."""
        parts: tuple[Tensor, ...] = torch.split(averages[..., : sum(self.widths)], [*self.widths], dim=-1)
        return parts


def lay_columns(tensors: Sequence[Float[Tensor, "batch _ key _"]]) -> Columns:
    """Join the columns of several tensors for the kernel, separate for each head or shared by all heads."""
    heads = max(each.shape[1] for each in tensors)
    widths = tuple(each.shape[-1] for each in tensors)
    together = torch.cat([each.float().expand(-1, heads, -1, -1) for each in tensors], dim=-1).mT
    # Padding to whole blocks allows reading without a mask.
    together = torch.nn.functional.pad(together, (0, -together.shape[-1] % LONGEST, 0, -sum(widths) % ALIGNED))
    exponent = together.abs().amax(-1, keepdim=True).frexp().exponent
    size = torch.ldexp(torch.ones_like(exponent, dtype=torch.float32), exponent)
    scaled = together / size
    high = scaled.half()
    low = (scaled - high).half()
    return Columns(widths, high, low if bool(low.any()) else None, size)


def sweep_by_triton(
    query: Float[Tensor, "batch head query size"],
    key: Float[Tensor, "batch key_head key size"],
    columns: Columns | None = None,
    *,
    scale: float,
    reach: Reach,
    first: int,
    edges: tuple[int, ...],
    rulers: Rulers,
    log_sum: Float[Tensor, "batch head query"] | None = None,
) -> Swept:
    """Compute entropies, distances and averages of columns for all rows.

    Args:
        query: The queries, in float16, bfloat16 or float32.
        key: The keys, in the same type.
        columns: The columns to average.
        scale: The factor of the products of queries and keys.
        reach: The keys that a row sees.
        first: The distance from the first query to the first key.
        edges: The distances at which a bucket begins.
        rulers: The rulers of the batch.
        log_sum: The log-sum-exp of each row's scores, perhaps rounded; None to compute it first.

    Returns:
        The answers, without an output. ``averages`` has one tensor for each tensor that `columns` was made of.
    """
    rows = _Rows.lay(query, key, scale, reach)
    log_sum = rows.add_up() if log_sum is None else log_sum.contiguous()
    numbers, buckets = torch.empty_like(log_sum), 2 * len(edges) + 1
    swept = Swept(
        torch.empty_like(log_sum, dtype=torch.float64), numbers, numbers.new_empty(*numbers.shape, buckets + 1),
        numbers.new_empty(*numbers.shape, 0), (),
    )  # fmt: skip
    borders = rulers.lay_borders(edges, log_sum.device)
    averages = rows.answer(log_sum, columns, slice(0, WIDTH), swept, first, borders)
    if columns is None:
        return swept
    rows.answer(log_sum, columns, slice(WIDTH, None), averages=averages)
    return replace(swept, averages=columns.split(averages))


def attend_by_triton(
    query: Float[Tensor, "batch head query size"],
    key: Float[Tensor, "batch key_head key size"],
    columns: Columns,
    *,
    scale: float,
    reach: Reach,
    log_sum: Float[Tensor, "batch head query"] | None = None,
) -> tuple[Float[Tensor, "batch head query column"], Float[Tensor, "batch head query"]]:
    """Return the averages of columns, and the log-sum-exp; the arguments are as in `sweep_by_triton`."""
    rows = _Rows.lay(query, key, scale, reach)
    log_sum = rows.add_up() if log_sum is None else log_sum.float().contiguous()
    averages = rows.answer(log_sum, columns, slice(0, None))
    return averages[..., : sum(columns.widths)], log_sum


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows and keys in the form that both kernels take.

    Attributes:
        query, key: The queries and keys; the numbers of a vector are next to each other in memory.
        covered: 1 for hidden keys; any tensor if no key is hidden.
        numbers: The number of heads, of heads for each key head, of queries, and of keys.
        reach: The scale of the scores as exponents of 2, and the numbers of keys that a row sees before and after its
            own position.
        settings: The settings from `choose_settings`.
    """

    query: Float[Tensor, "batch head query size"]
    key: Float[Tensor, "batch key_head key size"]
    covered: Tensor
    numbers: tuple[int, int, int, int]
    reach: tuple[float, int, int]
    settings: Settings

    @classmethod
    def lay(cls, query: Tensor, key: Tensor, scale: float, reach: Reach) -> "_Rows":
        """Prepare rows and keys of any layout in memory for the kernels."""
        (_, heads, queries, size), (key_heads, keys) = query.shape, key.shape[1:3]
        query, key = (side if side.stride(-1) == 1 else side.contiguous() for side in (query, key))
        before, after = (FAR if side is None else side for side in (reach.before, reach.after))
        hidden = reach.hidden
        settings = choose_settings(size, query.dtype, _find_capability(query.device), has_hidden=hidden is not None)
        covered = query if hidden is None else hidden.to(torch.int8).contiguous()
        return cls(
            query, key, covered, (heads, heads // key_heads, queries, keys), (scale / NATS, before, after), settings
        )

    def add_up(self) -> Float[Tensor, "batch head query"]:
        """Compute the log-sum-exp of each row's scores."""
        log_sum = self.query.new_empty(self.query.shape[:3], dtype=torch.float32)
        # Triton launches on the current GPU.
        with torch.cuda.device(self.query.get_device()):
            add_up[(self._blocks,)](
                self.query, self.key, self.covered, log_sum, *self._strides, *self.numbers, *self.reach,
                **self.settings,
            )  # fmt: skip
        return log_sum

    def answer(
        self,
        log_sum: Float[Tensor, "batch head query"],
        columns: Columns | None,
        some: slice,
        swept: Swept | None = None,
        first: int = 0,
        borders: Int[Tensor, " border"] | None = None,
        averages: Float[Tensor, "batch head query column"] | None = None,
    ) -> Float[Tensor, "batch head query column"]:
        """Write the averages of the columns `some` to a tensor for all columns, and return that tensor.

        If `swept` is given, the other statistics are written to it.
        """
        width, length = (0, 0) if columns is None else columns.high.shape[-2:]
        if averages is None:
            averages = log_sum.new_empty(*log_sum.shape, width)
        programs = triton.cdiv(len(range(width)[some]), WIDTH)
        if swept is not None:
            programs = max(1, programs)
            answers = (swept.log_sum, swept.entropy, swept.features)
        else:
            answers = (log_sum,) * 3
        buckets = 1 if borders is None else len(borders) - 1
        ahead = min(self.reach[2], self.numbers[3] - 1) + first > 0
        high, low, sizes = (log_sum,) * 3 if columns is None else (columns.high, columns.low, columns.size)
        parts = 0 if columns is None else 1 if low is None else 2
        if programs:
            with torch.cuda.device(self.query.get_device()):
                answer[self._blocks, programs](
                    self.query, self.key, self.covered, log_sum, high, high if low is None else low, sizes,
                    log_sum if borders is None else borders,
                    averages, *answers, *self._strides, *self.numbers[:2], high.shape[1], *self.numbers[2:],
                    width, length, some.start, *self.reach, first,
                    **self.settings | choose_more(buckets, parts, width, has_features=swept is not None, ahead=ahead),
                )  # fmt: skip
        return averages

    @property
    def _blocks(self) -> int:
        return -(-self.numbers[2] // int(self.settings["rows_block"])) * self.numbers[0] * len(self.query)

    @property
    def _strides(self) -> tuple[int, ...]:
        return (*self.query.stride()[:3], *self.key.stride()[:3])


def _find_capability(device: torch.device) -> int:
    """Return the generation of a GPU (its major compute capability); 9, the newest known one, for other devices."""
    return torch.cuda.get_device_capability(device)[0] if device.type == "cuda" else 9


def choose_settings(size: int, dtype: torch.dtype, capability: int, *, has_hidden: bool) -> Settings:
    """Return the constants of both kernels for heads of this width and type."""
    new = capability >= 9
    is_small = new and size <= 128 and dtype.itemsize == 2
    if dtype == torch.float32:
        rows, keys = (ROWS, KEYS // 2) if new and size <= 64 else (ROWS // 2, KEYS // 4)
    else:
        rows, keys = ROWS if new else ROWS // 2, KEYS if size <= (128 if new else 64) else KEYS // 2
    return {
        "size": size, "size_padded": _pad(size), "has_hidden": has_hidden, "lowest": LOWEST, "nats": NATS,
        "rows_block": max(SMALLEST, rows), "keys_block": max(SMALLEST, keys),
        # The number of blocks of keys in a program's memory: while it works on one, the next are fetched.
        "num_stages": 3 if is_small or size * dtype.itemsize <= 128 else 2,
        "maxnreg": REGISTERS if is_small else None,
    }  # fmt: skip


def choose_more(buckets: int, parts: int, width: int, *, has_features: bool, ahead: bool) -> Settings:
    """Return the constants that only the second pass has.

    Args:
        buckets: The number of buckets of distance.
        parts: The number of tensors of columns: 0 without columns, 1 if columns are exact in float16, or else 2.
        width: The number of columns.
        has_features: True to compute entropies and distances.
        ahead: False if no row sees a key after itself. Then the buckets after the middle one are empty, and need no
            registers.
    """
    columns = min(WIDTH, _pad(width))
    constants: Settings = {
        "buckets": buckets, "buckets_padded": _pad(buckets if ahead else buckets // 2 + 1), "parts": parts,
        "has_features": has_features, "raised": RAISED, "width_block": columns,
    }  # fmt: skip
    # If the numbers do not fit into this many registers, the limit makes the program slower.
    return constants if columns <= (16 if ahead else 32) else constants | {"maxnreg": None}


def _pad(length: int) -> int:
    """Round the length of a side of a block up to a power of 2, and to `SMALLEST` at least."""
    return max(SMALLEST, 1 << (length - 1).bit_length())
