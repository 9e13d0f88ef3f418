"""Patterns of attention maps as tidy frames, and on the terminal."""

from collections.abc import Mapping

import pandas as pd
import xarray as xr
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from headscope.view.headings import name_corpus, name_model
from headscope.view.wording import format_ends


def list_patterns(table: xr.Dataset) -> pd.DataFrame:
    """A row for each head and pattern: ``attention_type``, ``run``, ``layer``, ``head``, ``pattern`` and ``share``.

    The first two are there where the table has several. ``maps`` is the number of maps of each head.
    """
    dims = [dim for dim in ("attention_type", "run", "layer", "head", "pattern") if dim in table["pattern_share"].dims]
    columns = {"share": table["pattern_share"], "maps": table["pattern_count"]}
    return xr.Dataset(columns).to_dataframe(dim_order=dims).reset_index()[[*dims, *columns]]


def list_validation(validation: Mapping[str, xr.DataArray]) -> pd.DataFrame:
    """A row for each way to divide the maps, label and predicted pattern, with the number of maps."""
    frames = [
        confusion.to_dataframe("maps").reset_index().assign(parts=parts) for parts, confusion in validation.items()
    ]
    return pd.concat(frames)[["parts", "label", "predicted", "maps"]]


def print_patterns(table: xr.Dataset, console: Console) -> None:
    """Print the share of each pattern in the maps of each layer, and of all."""
    frame = list_patterns(table)
    names = list(dict.fromkeys(frame["pattern"]))
    console.print(
        f"\n[bold]Patterns of attention maps[/bold]: {escape(name_model(table.attrs['model']))} on "
        f"{escape(name_corpus(table.attrs['corpus']))}, {int(table['pattern_count'])} maps a head",
        soft_wrap=True,
    )
    by_type = frame.groupby("attention_type", sort=False) if "attention_type" in frame else [("", frame)]
    for attention_type, of_type in by_type:
        shares = 100 * of_type.pivot_table(index="layer", columns="pattern", values="share")[names]
        rows = Table(box=None, header_style="bold")
        rows.add_column(f"{attention_type} layer".strip())
        for name in names:
            rows.add_column(f"{name} %", justify="right")
        for layer, *values in shares.itertuples():
            rows.add_row(str(layer), *(f"{value:.0f}" for value in values))
        rows.add_row("all", *(f"{value:.0f}" for value in shares.mean()), style="bold")
        console.print(rows)
    if "classifier_f1_by_maps" in table.attrs:
        ends = format_ends(*table.attrs["classifier_f1_by_maps_interval"], digits=2)
        console.print(
            f"The classifier was trained on your labels; on maps that it was not trained on its macro F1 is "
            f"{table.attrs['classifier_f1_by_maps']:.2f} {ends}.",
            soft_wrap=True,
        )
