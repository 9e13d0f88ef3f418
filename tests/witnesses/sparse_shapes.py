"""How much attention sparse shapes keep, cell by cell (after Jiang et al. 2024, section 3)."""

from collections.abc import Iterable, Sequence

import numpy as np

from witnesses.seen import Seen

Cell = tuple[int, int]


def sparse_shapes(seen: Sequence[Seen], budget: float, *, causal: bool) -> np.ndarray:
    """Per head the mean over texts of what each shape keeps: A-shape, vertical-slash, block-sparse, any cells."""
    total = np.zeros((*seen[0].weights.shape[:2], 4))
    for text in seen:
        for head in np.ndindex(total.shape[:2]):
            total[head] += keep(text.weights[head].astype(np.float64), budget, causal=causal)
    return total / len(seen)


def keep(weights: np.ndarray, budget: float, *, causal: bool) -> np.ndarray:
    """What each shape keeps of a map."""
    queries, keys = weights.shape
    visible = {(i, j) for i in range(queries) for j in range(keys) if not causal or j <= i}
    cells = max(1, int(budget * len(visible)))
    kept = [
        max(add_up(weights, shape) for shape in shapes if len(shape) <= cells)
        for shapes in (
            a_shapes(visible, keys, causal=causal),
            vertical_slashes(weights, visible, cells),
            block_sparse(weights, visible, cells),
        )
    ]
    largest = sorted((weights[cell] for cell in visible), reverse=True)[:cells]
    return np.array([*kept, sum(largest)]) / queries


def add_up(weights: np.ndarray, shape: Iterable[Cell]) -> float:
    return float(sum(weights[cell] for cell in shape))


def a_shapes(visible: set[Cell], keys: int, *, causal: bool) -> list[set[Cell]]:
    """All with 0, 1, 2, 4 ... first keys and any window; of each query itself and those before, or on both sides."""
    first = [0, *(2**power for power in range(keys.bit_length()))]
    return [
        {(i, j) for i, j in visible if j < sink or ((i - j >= 0 if causal else True) and abs(i - j) < window)}
        for sink in first
        for window in range(keys + 1)
    ]


def vertical_slashes(weights: np.ndarray, visible: set[Cell], cells: int) -> list[set[Cell]]:
    """Columns within each quarter of the cells, then diagonals within what is left, the densest first."""
    shapes = []
    for quarter in range(5):
        columns = fill(weights, group(visible, lambda cell: cell[1]), quarter / 4 * cells)
        diagonals = group(visible, lambda cell: cell[1] - cell[0])
        shapes.append(columns | fill(weights, diagonals, cells - len(columns)))
    return shapes


def block_sparse(weights: np.ndarray, visible: set[Cell], cells: int) -> list[set[Cell]]:
    """The densest square blocks."""
    side = 1
    while side < 64 and 2 * side <= max(weights.shape) // 16:
        side *= 2
    return [fill(weights, group(visible, lambda cell: (cell[0] // side, cell[1] // side)), cells)]


def group(visible: set[Cell], part) -> list[set[Cell]]:
    """The cells of each part of the map, in order."""
    parts: dict = {}
    for cell in sorted(visible):
        parts.setdefault(part(cell), set()).add(cell)
    return [parts[key] for key in sorted(parts)]


def fill(weights: np.ndarray, parts: list[set[Cell]], cells: float) -> set[Cell]:
    """The densest parts, until the next would have too many cells."""
    chosen: set[Cell] = set()
    for part in sorted(parts, key=lambda part: -add_up(weights, part) / len(part)):
        if len(chosen) + len(part) > cells:
            break
        chosen |= part
    return chosen
