"""The attention of heads on one text: an array of xarray that is drawn with the words at its axes."""

from functools import wraps
from typing import Any

import xarray as xr
from xarray.core.utils import UncachedAccessor
from xarray.plot import plot
from xarray.plot.accessor import DataArrayPlotAccessor

from headscope.errors import TableError


class AttentionPlot(DataArrayPlotAccessor):
    """Draw heatmaps: what `AttentionMap.plot` is, with the other ways of xarray, such as ``plot.hist()``."""

    @wraps(plot, assigned=())
    def __call__(self: DataArrayPlotAccessor, **settings: Any) -> Any:
        """Draw a heatmap for each head, with the words that attend at its left and those attended to below it.

        Args:
            settings: ``ax``, axes of your own for the map of a single head. By default a figure is made. An array that
                has lost one of the two dimensions takes what xarray takes.

        Returns:
            The figure; of an array without both dimensions what xarray returns.

        Raises:
            TableError: `ax` was given for several heads, no head has a value, or there is a dimension of something
                else than words and heads, or a setting that is none.
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

    It is an `xarray.DataArray` in every way but one: `plot` draws heatmaps with the words at the axes. What is chosen
    from it, or computed with it, is such an array too; without both dimensions it is drawn as xarray draws it.
    """

    __slots__ = ()

    plot = UncachedAccessor(AttentionPlot)
