"""The results of an atlas. No torch here."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True)
class AtlasResult:
    """The results of `headscope.atlas`.

    Attributes:
        table: the head table, which is in ``heads.nc``.
        tables: further head tables, by their files.
        examples: texts with the attention of all heads.
        folder: the folder; None if nothing was written.
        files: all files, relative to `folder`.
    """

    table: "xr.Dataset"
    tables: "Mapping[str, xr.Dataset]"
    examples: "xr.Dataset | None"
    folder: Path | None
    files: tuple[str, ...]

    def render(self) -> str:
        """Return the page, as HTML; if nothing was written, without the figures."""
        from headscope.view.page import render_page

        if self.folder is not None:
            return (self.folder / "atlas.html").read_text(encoding="utf-8")
        return render_page(
            self.table,
            figures={},
            views=self.views,
            probes=self.tables.get("probe.nc"),
            examples=self.examples,
            distances=self.tables.get("head-distances.nc"),
        )

    @property
    def views(self) -> "Mapping[str, xr.Dataset]":
        """The tables that were measured through views, by the names of these."""
        names = {name: name.removesuffix(".nc").removeprefix("heads-") for name in self.tables}
        return {view: self.tables[name] for name, view in names.items() if name.startswith("heads-")}

    def _repr_html_(self) -> str:
        """Show the page in a notebook."""
        from headscope.view.headings import name_model
        from headscope.view.notebook import frame_page

        return frame_page(self.render(), f"Head atlas of {name_model(self.table.attrs['model'])}")
