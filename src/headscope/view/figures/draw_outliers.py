"""The names of heads that are outliers in their layer, written next to their points if there is room."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.transforms import Bbox

from headscope.heads import head_name

FAR = 3.0
"""A value is far out if it lies beyond a quartile by more than this factor times the interquartile range (Tukey)."""

SEEN = 0.1
"""The smallest distance of a named outlier beyond the quartiles, as a share of the height of the panel."""

_GAP, _REACH = 3.5, 2.2
"""The distance between a point and its name, and the radius of a point, in typographic points."""

_SIDES = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1))
"""The directions from a point in which its name can be written, right and up, the best direction first."""


class Points(NamedTuple):
    """The values of heads (layer by head) that a panel shows, and the coordinates of the layers on its axis."""

    values: xr.DataArray
    places: np.ndarray


def measure_distances(values: xr.DataArray) -> xr.DataArray:
    """Return the distance of each head's value beyond the quartiles of its layer; 0 for heads that are not far out.

    A head is far out if it lies beyond a quartile by more than three times the distance between the quartiles (Tukey
    1977, Exploratory Data Analysis, section 2D).
    """
    heads = values.dropna("layer", how="all")
    lower, upper = (heads.quantile(share, "head", skipna=True) for share in (0.25, 0.75))
    beyond = (lower - heads).where(heads < lower, heads - upper)
    far = beyond.where(beyond > FAR * (upper - lower), 0.0).reindex(layer=values["layer"], fill_value=0.0)
    return far.transpose("layer", "head")


def name_outliers(axes: Axes, points: Sequence[Points]) -> None:
    """Write the names of far out heads next to their points; no name covers a point, a line or another name.

    The axes must have their final position and limits. The farthest head is named first; a head without room for its
    name stays unnamed.

    Args:
        axes: The axes that show the points.
        points: The points of each series.
    """
    low, high = axes.get_ylim()
    candidates = []
    for values, places in points:
        distances = measure_distances(values).values
        for layer, head in np.argwhere(distances > SEEN * (high - low)):
            name = head_name(int(values["layer"][layer]), int(values["head"][head]))
            candidates.append((-distances[layer, head], name, (places[layer], float(values[layer, head]))))
    occupied = _list_marks(axes)
    boxes: list[Bbox] = []
    for _, name, place in sorted(candidates):
        if (box := _name_point(axes, name, place, occupied, boxes)) is not None:
            boxes.append(box)


def _name_point(
    axes: Axes, name: str, place: tuple[float, float], occupied: np.ndarray, boxes: Sequence[Bbox]
) -> Bbox | None:
    """Write a name on the first free side of its point; return its box, or None if no side is free."""
    for right, up in _SIDES:
        gap = _GAP if 0 in (right, up) else 0.7 * _GAP
        look: dict[str, Any] = {
            "ha": ("right", "center", "left")[right + 1], "va": ("top", "center_baseline", "bottom")[up + 1],
            "fontsize": 6.5, "color": "0.15", "gid": "outlier", "annotation_clip": False,
        }  # fmt: skip
        text = axes.annotate(name, place, (right * gap, up * gap), textcoords="offset points", **look)
        text.set_in_layout(False)
        text.set_path_effects([patheffects.withStroke(linewidth=1.5, foreground="white")])
        box = text.get_window_extent()
        reach = box.padded(_REACH * axes.figure.dpi / 72)
        covers = ((occupied > reach.min) & (occupied < reach.max)).all(axis=1).any()
        inside = axes.bbox.x0 <= box.x0 and box.x1 <= axes.bbox.x1 and axes.bbox.y0 <= box.y0 and box.y1 <= axes.bbox.y1
        if inside and not covers and not any(box.overlaps(other) for other in boxes):
            return box
        text.remove()
    return None


def _list_marks(axes: Axes) -> np.ndarray:
    """Return the positions, in pixels, of all points and of many points along the lines, which names must not cover."""
    marks = [axes.transData.transform(np.asarray(points.get_offsets())) for points in axes.collections]
    for line in axes.lines:
        corners = axes.transData.transform(np.asarray(line.get_xydata(), dtype=float))
        steps = np.linspace(0, 1, 23)[:, None, None]
        marks.append((corners[:-1] + steps * np.diff(corners, axis=0)).reshape(-1, 2))
    return np.concatenate(marks) if marks else np.empty((0, 2))
