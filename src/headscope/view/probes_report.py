"""Probes as tidy data frames, and on the terminal."""

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd
import xarray as xr
from rich.console import Console
from rich.markup import escape

from headscope.analyse.ends import ENDS
from headscope.analyse.probes import ALL, WITH_ATTENTION, WITHOUT_ATTENTION, score_best_layer
from headscope.view.headings import describe_corpus, name_corpus, name_model
from headscope.view.lines import format_range, make_grid, print_findings, print_grid, print_more, print_reading, write
from headscope.view.wording import format_ends, format_interval

SHOWN = ("right-branching", WITHOUT_ATTENTION, "attention", WITH_ATTENTION)
"""The probes whose accuracy the terminal shows for single relations."""

FURTHER = {
    "control_accuracy": ("control %", 100),
    "probe_selectivity": ("selectivity", 100),
    "probe_code_length": ("bits per choice", 1),
    "probe_compression": ("compression", 1),
}
"""The heading and the factor of each number that the terminal shows for probes with a control task, by variable."""


def list_probes(table: xr.Dataset) -> pd.DataFrame:
    """Return the accuracy of each probe on each relation, as a data frame.

    Columns are ``probe``, ``relation``, ``choices``, ``accuracy`` with ``accuracy_lower`` and ``accuracy_upper``, and
    the gain of the probe over each baseline, such as ``gain_over_right-branching``, with its interval.
    """
    columns = {"choices": table["probe_count"]}
    columns |= {f"accuracy{end}": table[f"probe_accuracy{end}"] for end in ENDS}
    for name in map(str, table["baseline"].values if "baseline" in table.dims else ()):
        gains = {f"gain_over_{name}{end}": table[f"probe_gain{end}"].sel(baseline=name, drop=True) for end in ENDS}
        columns |= gains
    frame = xr.Dataset(columns).to_dataframe(dim_order=["probe", "relation"]).reset_index()
    return frame[["probe", "relation", *columns]]


def list_lengths(table: xr.Dataset) -> pd.DataFrame:
    """Return the accuracy of each probe on links of each length (in words), as a data frame."""
    columns = {"choices": table["probe_length_count"], "accuracy": table["probe_length_accuracy"]}
    frame = xr.Dataset(columns).to_dataframe(dim_order=["probe", "length"]).reset_index()
    return frame[["probe", "length", *columns]]


def describe_gain(table: xr.Dataset) -> str:
    """Return a sentence on the accuracy that probes gain from attention, beyond words and their distance."""
    of_all = {row["probe"]: row for row in _list_all(table).to_dict("records")}
    gain, *ends = _read_percent(of_all[WITH_ATTENTION], f"gain_over_{WITHOUT_ATTENTION}")
    surely = "adds" if ends[0] > 0 else "takes" if ends[1] < 0 else "does not surely add"
    with_attention, without = (100 * of_all[name]["accuracy"] for name in (WITH_ATTENTION, WITHOUT_ATTENTION))
    points = " ".join(filter(None, [f"{abs(gain):.1f} points", format_ends(*ends, digits=1, sign=True)]))
    return (
        f"Attention {surely} {points} to words and their distance: {with_attention:.1f} with attention, {without:.1f} "
        "without."
    )


def _list_all(table: xr.Dataset) -> pd.DataFrame:
    """Return the rows of `list_probes` for the relation `ALL`, which pools all choices."""
    return list_probes(table).query("relation == @ALL")


def print_probes(table: xr.Dataset, console: Console, *, whole: bool = False) -> None:
    """Print the gain from attention, and the accuracy of each probe; with `whole`, also controls and relations."""
    seeds = table.sizes["seed"]
    title = "UAS without punctuation" if table.attrs["links"] == "dependency" else f"{table.attrs['links']} links"
    write(
        console,
        f"\n[bold]{escape(name_model(table.attrs['model']))}[/], probes of all heads on "
        f"[bold]{escape(name_corpus(table.attrs['corpus']))}[/]{_name_test(table)}: {title}, "
        f"{int(table['probe_count'].sel(relation=ALL)):,} choices, {seeds} {'seed' if seeds == 1 else 'seeds'}",
    )
    print_reading(table, console)
    if sentence := describe_corpus(table):
        console.print(escape(sentence), style="yellow", highlight=False)
    print_findings(_list_findings(table), console)
    console.print()
    lines = make_grid("probe", "right %", "95 % interval", "seeds")
    for row in _list_all(table).to_dict("records"):
        by_seed = 100 * table["probe_accuracy_by_seed"].sel(probe=row["probe"]).values
        spread = "" if seeds == 1 else f"{by_seed.min():.1f} to {by_seed.max():.1f}"
        value, *ends = _read_percent(row, "accuracy")
        lines.add_row(row["probe"], f"{value:.1f}", format_range(*ends, digits=1, sign=""), spread)
    print_grid(lines, console)
    if whole:
        _print_controls(table, console)
        _print_relations(table, console)
    else:
        controls = "the control task" if "controlled" in table.dims else ""
        print_more(["each relation", controls], console)


def _list_findings(table: xr.Dataset) -> Iterator[str]:
    """Yield sentences on the gain from attention, and on the structural probe of the hidden states."""
    yield describe_gain(table)
    if "structural_uuas" in table:
        best, *share = score_best_layer(table)
        accuracy = format_interval(*(100 * each for each in share), digits=1)
        yield (
            f"Structural probe of the hidden states: UUAS {accuracy} on layer {best}, the best of "
            f"{table.sizes['hidden_layer'] - 1} and the embeddings on other texts."
        )


def _name_test(table: xr.Dataset) -> str:
    return f", tested on [bold]{escape(name_corpus(table.attrs['test']))}[/]" if table.attrs["test"] else ""


def _print_controls(table: xr.Dataset, console: Console) -> None:
    """Print the accuracy of probes on the control task, and their code lengths; nothing without a control."""
    if "controlled" not in table.dims:
        return
    lines = make_grid("probe", *(heading for variable, (heading, _) in FURTHER.items() if variable in table))
    for name in map(str, table["controlled"].values):
        row = table.sel(controlled=name)
        numbers = [
            f"{scale * float(row[variable]):.{1 if scale > 1 else 2}f}"
            for variable, (_, scale) in FURTHER.items()
            if variable in table
        ]
        lines.add_row(name, *numbers)
    console.print()
    print_grid(lines, console)


def _print_relations(table: xr.Dataset, console: Console) -> None:
    """Print the accuracy of the probes in `SHOWN`, relation by relation."""
    frame = list_probes(table).query("probe in @SHOWN and relation != @ALL")
    names = list(dict.fromkeys(frame["probe"]))
    lines = make_grid("relation", "choices", *names, wraps=names)
    for relation, rows in frame.groupby("relation", sort=False):
        accuracies = [f"{100 * value:.1f}" for value in rows["accuracy"]]
        lines.add_row(escape(str(relation)), f"{int(rows['choices'].iloc[0]):,}", *accuracies)
    console.print()
    print_grid(lines, console)


def _read_percent(row: Mapping[Any, Any], name: str) -> tuple[float, float, float]:
    value, lower, upper = (100 * float(row[f"{name}{end}"]) for end in ENDS)
    return value, lower, upper
