"""The attention of heads on one text: an array of xarray that is drawn with the words at its axes."""

from functools import wraps
from typing import Any

import xarray as xr
from xarray.core.utils import UncachedAccessor
from xarray.plot import plot
from xarray.plot.accessor import DataArrayPlotAccessor

from headscope.errors import TableError


class AttentionPlot(DataArrayPlotAccessor):
    """The accessor `AttentionMap.plot`, which draws heatmaps and has the other plots of xarray (``plot.hist()``)."""

    @wraps(plot, assigned=())
    def __call__(self: DataArrayPlotAccessor, **settings: Any) -> Any:
        """Draw a heatmap for each head, with the attending words at its left and the words attended to below it.

        Args:
            settings: ``ax``, your own axes for the map of a single head. By default, a new figure is made. An array
                that lacks one of the two dimensions takes the settings of xarray's own plot.

        Returns:
            The figure. For an array that lacks one of the two dimensions, the return value of xarray's own plot.

        Raises:
            TableError: `ax` was passed for several heads, no head has a value, a dimension is neither words nor heads,
                or a setting is unknown.
        """
        if not {"query", "key"} <= {*self._da.dims}:
            return DataArrayPlotAccessor.__call__(self, **settings)
        from headscope.view.figures.draw_attention import draw_attention

        if others := settings.keys() - {"ax"}:
            raise TableError(
                f"`plot` has no setting {min(others)!r} for attention from words to words; give `ax`, or nothing."
            )
        return draw_attention(self._da, **settings)


class AttentionMap(xr.DataArray):
    """Attention with the dimensions ``query`` and ``key``, whose coordinates are words or tokens.

    It is an `xarray.DataArray` with one difference: `plot` draws heatmaps with the words at the axes. An array that is
    selected or computed from it has the same type. If it lacks one of the two dimensions, xarray draws it.
    """

    __slots__ = ()

    plot = UncachedAccessor(AttentionPlot)
