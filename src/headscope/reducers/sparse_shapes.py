"""The share of attention that a head keeps if only a few cells of its map are computed, in one of three shapes.

After the classes of heads in Jiang et al. 2024, MInference, section 3: A-shape, vertical-slash and block-sparse. They
search a shape for each head by the cost of a kernel. Here every shape has the same number of cells, and nothing is
labelled or trained.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
import xarray as xr
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor
from torch.nn.functional import pad

from headscope.capture.model.block_sizes import BlockSizes
from headscope.capture.rows.attention import Attention
from headscope.capture.tokens.batch import Batch
from headscope.errors import HeadscopeError
from headscope.heads import SHARE, describe
from headscope.reducers.reducer import Reducer, Sums
from headscope.reducers.support.folds import FoldAssignment, total_by_fold
from headscope.reducers.support.maps import Maps
from headscope.reducers.support.ratios import score_table
from headscope.score import Score

MINFERENCE = "Jiang et al. 2024, section 3"

SHAPES = ("a_shape", "vertical_slash", "block_sparse")
KEPT = (*SHAPES, "any_cells")
"""The shapes, and ``any_cells``: the largest cells anywhere in a map, which keep at least as much as any shape."""

BLOCK = 64
"""The largest number of rows and columns of a block; it is at most a sixteenth of the text, as a power of 2."""

MARGIN = 0.01
"""The share of attention by which shapes may differ and still tie; the first of the tied shapes is the best.

An A-shape consists of columns and diagonals too, and would hardly ever be better than all of these.
"""

SPLITS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""The shares of the budget that columns may take; diagonals take the remaining budget."""

MASS = Score(
    "sparse_mass",
    "Attention that sparse shapes keep",
    "the share of attention on the cells of a shape that has a twentieth of the map",
    numerator=("fold_sparse_mass",), denominator=("fold_sparse",),
    items="documents", rows="shapes", attends="each token",
    baselines={"sparse_uniform": "uniform attention"}, reported=False,
)  # fmt: skip
BEST = Score(
    "sparse_best_share",
    "The sparse shape that keeps most",
    "the share of documents on which the shape keeps most of the head's attention, or within .01 of that",
    numerator=("fold_sparse_best",), denominator=("fold_sparse",),
    items="documents", rows="shapes", attends="each token", prefix="sparse_best_",
)  # fmt: skip


@dataclass(frozen=True)
class SparseShapes(Reducer):
    """How much of its attention a head keeps in a twentieth of its map, if those cells have one of three shapes.

    ``a_shape`` has the first tokens and the tokens nearest to the query, ``vertical_slash`` has whole columns and
    diagonals, and ``block_sparse`` has square blocks; ``any_cells`` has the largest cells, which no shape can exceed.
    The cells are chosen by the attention in the map itself. Cells, columns, diagonals and blocks are taken in the order
    of their mean attention per visible cell, until the next would exceed the budget. The budget can be divided
    between first and nearest tokens (0, 1, 2, 4 ... first tokens), and between columns and diagonals (by quarters); the
    best division counts. The order of tokens alone decides which cells are visible: in a decoder, keys that are not
    after the query. If a shape keeps at most .01 less than the best shape and is listed before it, it counts as the
    best, since an A-shape consists of columns and diagonals too.

    Attributes:
        budget: The share of the visible cells that is kept.
        fold_assignment: The assignment of documents to folds; sums are kept by fold.

    Raises:
        HeadscopeError: The budget is not a share above 0.
    """

    budget: float = 0.05
    fold_assignment: FoldAssignment = field(default_factory=FoldAssignment)

    name = "sparse_shapes"
    scope = "layer"
    max_tokens = 4096
    scores = (MASS, BEST)
    by_name = True

    def __post_init__(self) -> None:
        """Raise an error if the budget is not a share above 0."""
        if not 0 < self.budget <= 1:
            raise HeadscopeError(f"a budget of {self.budget} is no share of a map; give one above 0, such as 0.05.")

    def prepare(self, batch: Batch, attention_type: str) -> Maps:
        """Return, for each document, the cells of its attention map that a query can see, and the fold."""
        queries, keys = batch.queries(attention_type).real, batch.keys(attention_type).real
        sizes = list(zip(queries.sum(1).tolist(), keys.sum(1).tolist(), strict=True))
        causal = attention_type == "decoder"
        shapes = {
            size: _Cells.of_map(*size, causal=causal, budget=self.budget, device=keys.device) for size in set(sizes)
        }
        return Maps.of_batch(batch, attention_type, [shapes[size] for size in sizes], self.fold_assignment)

    def count(self, facts: Maps) -> Sums:
        """Count the documents of each fold, and sum the share of uniform attention that each shape keeps."""
        even = ((cells, cells.visible / cells.visible.sum(1, keepdim=True)) for cells in facts.known)
        return {
            "fold_sparse": facts.count(),
            "uniform": torch.stack([_keep(weights[None], cells)[0] for cells, weights in even]).sum(0),
        }

    def observe(self, facts: Maps, attention: Attention) -> Sums:
        """Sum by fold the share of attention that each shape keeps, and count the documents where the shape is best."""
        mass = torch.stack([_keep(real, cells) for real, cells in facts.cut(attention.weights())])
        is_best = mass[..., : len(SHAPES)] >= mass[..., : len(SHAPES)].amax(-1, keepdim=True) - MARGIN
        best = (is_best & (is_best.cumsum(-1) == 1)).long()
        return {
            "fold_sparse_mass": total_by_fold(mass, facts.folds).movedim(0, -1),
            "fold_sparse_best": total_by_fold(best, facts.folds).movedim(0, -1),
        }

    def result(self, sums: Mapping[str, np.ndarray], counts: Mapping[str, np.ndarray]) -> xr.Dataset:
        """Return the share of attention in each shape, also of uniform attention, and how often a shape is best."""
        by_fold, unit = {**sums, **counts}, self.fold_assignment.unit
        table = score_table(MASS, by_fold, {"kept": list(KEPT)}, source=MINFERENCE, units=SHARE, fold_unit=unit)
        table["fold_sparse_mass"].attrs["units"] = "sum of weights"
        best = score_table(BEST, by_fold, {"shape": list(SHAPES)}, source=MINFERENCE, fold_unit=unit)
        uniform = counts["uniform"] / counts["fold_sparse"].sum()
        what = f"what uniform attention keeps in {self.budget:.0%} of the map"
        table = table.merge(best).assign(describe({"sparse_uniform": (uniform, ("kept",), what, SHARE)}, MINFERENCE))
        return table.assign_attrs(sparse_budget=self.budget)


@dataclass(frozen=True, eq=False)
class _Cells:
    """The cells of all maps of one size; they do not depend on the weights.

    Attributes:
        visible: 1 for the cells that a query may see, 0 elsewhere.
        count: The number of cells that may be kept.
        diagonal: The number of the diagonal of each cell.
        windows: The A-shapes with at most `count` cells. For each query, an A-shape has the number of first keys that
            are kept, and the start and the end of the window after them.
    """

    visible: Float64[Tensor, "query key"]
    count: int
    diagonal: Int[Tensor, "query key"]
    windows: tuple[tuple[Tensor, Tensor, Tensor], ...]

    @classmethod
    def of_map(cls, queries: int, keys: int, *, causal: bool, budget: float, device: torch.device) -> "_Cells":
        """Return the cells of maps with these numbers of queries and keys, for a budget."""
        visible = torch.ones(queries, keys, dtype=torch.double, device=device)
        visible = visible.tril() if causal else visible
        count = max(1, int(budget * float(visible.sum())))
        rows, seen = torch.arange(queries, device=device), visible.sum(1).long()
        diagonal = torch.arange(keys, device=device) - rows[:, None] + queries - 1
        windows = []
        for sink in (0, *(2**power for power in range(keys.bit_length()))):
            fewest, most = 0, keys + 1
            while most - fewest > 1:
                window = (fewest + most) // 2
                fits = _count(_find_a_shape(sink, window, rows, seen, causal=causal)) <= count
                fewest, most = (window, most) if fits else (fewest, window)
            shape = _find_a_shape(sink, fewest, rows, seen, causal=causal)
            if _count(shape) <= count:
                windows.append(shape)
        return cls(visible, count, diagonal, tuple(windows))


def _find_a_shape(
    sink: int, window: int, rows: Int[Tensor, " query"], seen: Int[Tensor, " query"], *, causal: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Return for each query the number of first keys that are kept, and the start and end of the window after them."""
    first = seen.clamp_max(sink)
    end = rows + 1 if causal else rows + window
    end = torch.maximum(torch.minimum(end, seen), first) if window else first
    return first, torch.minimum(torch.maximum(rows - window + 1, first), end), end


def _count(shape: tuple[Tensor, Tensor, Tensor]) -> int:
    """Count the cells of an A-shape."""
    first, start, end = shape
    return int((first + end - start).sum())


def _keep(weights: Float[Tensor, "head query key"], cells: _Cells) -> Float64[Tensor, "head kept"]:
    """Return the share of each head's attention that each of `KEPT` keeps."""
    held = max(1, BlockSizes.measure(weights.device).held // weights[0].numel())
    parts = [weights[start : start + held] for start in range(0, len(weights), held)]
    return torch.cat([_keep_at_once(part.double(), cells) for part in parts])


def _keep_at_once(weights: Float64[Tensor, "head query key"], cells: _Cells) -> Float64[Tensor, "head kept"]:
    largest = weights.flatten(1).topk(cells.count, sorted=False).values.sum(1)
    kept = [shape(weights, cells) for shape in (_keep_a_shape, _keep_vertical_slash, _keep_blocks)]
    return torch.stack([*kept, largest], dim=1) / weights.shape[1]


def _keep_a_shape(weights: Float64[Tensor, "head query key"], cells: _Cells) -> Float64[Tensor, " head"]:
    """Return for each head the attention in the best A-shape of `cells.windows`."""
    up_to, rows = pad(weights.cumsum(-1), (1, 0)), torch.arange(weights.shape[1], device=weights.device)
    best = weights.new_zeros(len(weights))
    for first, start, end in cells.windows:
        mass = up_to[:, rows, first] + up_to[:, rows, end] - up_to[:, rows, start]
        best = torch.maximum(best, mass.sum(1))
    return best


def _keep_vertical_slash(weights: Float64[Tensor, "head query key"], cells: _Cells) -> Float64[Tensor, " head"]:
    """Return for each head the attention in whole columns and diagonals, with the best division of `SPLITS`."""
    diagonals, place = sum(cells.visible.shape) - 1, cells.diagonal.flatten()
    by_diagonal = weights.new_zeros(len(weights), diagonals).index_add_(1, place, weights.flatten(1))
    height = cells.visible.sum(0)
    length = height.new_zeros(diagonals).index_add_(0, place, cells.visible.flatten())
    best = weights.new_zeros(len(weights))
    for split in SPLITS:
        columns = _choose(weights.sum(1), height, height.new_full((len(weights),), split * cells.count))
        slashes = _choose(by_diagonal, length, cells.count - columns.double() @ height)
        kept = columns[:, None] | slashes[:, cells.diagonal]
        best = torch.maximum(best, (weights * kept).sum((1, 2)))
    return best


def _keep_blocks(weights: Float64[Tensor, "head query key"], cells: _Cells) -> Float64[Tensor, " head"]:
    """Return for each head the attention in the square blocks with the most attention per cell."""
    side = min(BLOCK, 1 << max(0, (max(cells.visible.shape) // 16).bit_length() - 1))
    by_block, size = _add_up_blocks(weights, side), _add_up_blocks(cells.visible[None], side)[0]
    chosen = _choose(by_block, size, size.new_full((len(weights),), float(cells.count)))
    return (by_block * chosen).sum(1)


def _add_up_blocks(maps: Float64[Tensor, "map query key"], side: int) -> Float64[Tensor, "map block"]:
    """Return the sum of the cells in each square block of `side` rows and columns, for each map."""
    queries, keys = (-size % side for size in maps.shape[1:])
    padded = pad(maps, (0, keys, 0, queries))
    blocks = padded.view(len(maps), padded.shape[1] // side, side, padded.shape[2] // side, side)
    return blocks.sum((2, 4)).flatten(1)


def _choose(
    mass: Float64[Tensor, "head part"], size: Float64[Tensor, " part"], count: Float64[Tensor, " head"]
) -> Bool[Tensor, "head part"]:
    """Choose for each head the parts of a map with the most attention per cell, with at most `count` cells in all."""
    order = torch.where(size > 0, mass / size.clamp_min(1), -1.0).argsort(dim=-1, descending=True, stable=True)
    ordered = size[order]
    fits = (ordered.cumsum(-1) <= count[:, None]) & (ordered > 0)
    return torch.zeros_like(fits).scatter_(1, order, fits.cummin(-1).values)
