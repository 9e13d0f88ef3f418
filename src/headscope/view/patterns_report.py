"""Patterns of attention maps as tidy data frames, and on the terminal."""

from collections.abc import Iterator, Mapping

import pandas as pd
import xarray as xr
from rich.console import Console
from rich.markup import escape

from headscope.view.headings import name_corpus, name_model, name_row
from headscope.view.lines import make_grid, print_findings, print_grid, print_more, write
from headscope.view.wording import format_ends


def list_patterns(table: xr.Dataset) -> pd.DataFrame:
    """Return the share of each pattern in the maps of each head, as a data frame.

    Columns are ``attention_type`` and ``run`` (if the table has several), ``layer``, ``head``, ``pattern``, ``share``
    and ``maps``, the number of maps of each head.
    """
    dims = [dim for dim in ("attention_type", "run", "layer", "head", "pattern") if dim in table["pattern_share"].dims]
    columns = {"share": table["pattern_share"], "maps": table["pattern_count"]}
    return xr.Dataset(columns).to_dataframe(dim_order=dims).reset_index()[[*dims, *columns]]


def list_validation(validation: Mapping[str, xr.DataArray]) -> pd.DataFrame:
    """Return the number of maps by label and predicted pattern, for each way to split the maps, as a data frame."""
    frames = [
        confusion.to_dataframe("maps").reset_index().assign(parts=parts) for parts, confusion in validation.items()
    ]
    return pd.concat(frames)[["parts", "label", "predicted", "maps"]]


def print_patterns(table: xr.Dataset, console: Console, *, whole: bool = False) -> None:
    """Print the share of each pattern in the maps of each layer and of all layers; with `whole`, also of each head."""
    frame = list_patterns(table)
    short = int(table["pattern_left_out"])
    names = list(dict.fromkeys(frame["pattern"]))
    write(
        console,
        f"\n[bold]Patterns of attention maps[/bold]: {escape(name_model(table.attrs['model']))} on "
        f"{escape(name_corpus(table.attrs['corpus']))}, {int(table['pattern_count'])} maps a head"
        + (f"; {table['pattern_left_out'].attrs['long_name']}: {short}" if short else ""),
    )
    print_findings(_list_findings(table, frame), console)
    by_type = frame.groupby("attention_type", sort=False) if "attention_type" in frame else [("", frame)]
    for attention_type, of_type in by_type:
        shares = 100 * of_type.pivot_table(index="layer", columns="pattern", values="share")[names]
        rows = make_grid(f"{attention_type} layer".strip(), *(f"{name} %" for name in names), wraps=names)
        for layer, *values in shares.itertuples():
            rows.add_row(str(layer), *(f"{value:.0f}" for value in values))
        rows.add_row("all", *(f"{value:.0f}" for value in shares.mean()), style="bold")
        console.print()
        print_grid(rows, console)
    if not whole:
        print_more(["each head"], console)
        return
    heads = 100 * frame.assign(name=[name_row(row) for row in frame.to_dict("records")]).pivot_table(
        index="name", columns="pattern", values="share", sort=False
    )
    rows = make_grid("head", *(f"{name} %" for name in names), wraps=names)
    for head, *values in heads[names].itertuples():
        rows.add_row(head, *(f"{value:.0f}" for value in values))
    console.print()
    print_grid(rows, console)


def _list_findings(table: xr.Dataset, frame: pd.DataFrame) -> Iterator[str]:
    """Yield sentences on the share of each pattern, the head whose maps are most alike, and the classifier."""
    shares = frame.groupby("pattern", sort=False)["share"].mean().sort_values(ascending=False, kind="stable")
    parts = [f"{100 * share:.0f} % {name}" for name, share in shares.items()]
    yield f"Of all maps {', '.join(parts)}."
    most = frame.to_dict("records")[int(frame["share"].argmax())]
    yield f"Most alike are the maps of head {name_row(most)}: {100 * most['share']:.0f} % {most['pattern']}."
    if "classifier_f1_by_maps" in table.attrs:
        ends = format_ends(*table.attrs["classifier_f1_by_maps_interval"], digits=2)
        yield (
            "The classifier was trained on your labels; on maps that it was not trained on its macro F1 is "
            f"{table.attrs['classifier_f1_by_maps']:.2f} {ends}."
        )
