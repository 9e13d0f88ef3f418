"""The lesion map as a tidy data frame, and on the terminal."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
import xarray as xr
from rich.console import Console
from rich.markup import escape

from headscope.analyse.lesions import (
    BY_LAYER,
    MATCH,
    STATISTICS,
    SUFFERS,
    UNDECIDED,
    find_dissociations,
    find_suffering,
)
from headscope.analyse.metrics import read_metrics
from headscope.analyse.rank_test import count_needed_runs
from headscope.predictions import find_single_labels
from headscope.view.headings import name_row
from headscope.view.lines import (
    format_range,
    make_grid,
    mark_source,
    print_findings,
    print_grid,
    print_more,
    print_reading,
    write,
)
from headscope.view.wording import describe_single_labels, format_brief_p

COLUMNS = {end: end.removeprefix("_") or "change" for end in STATISTICS}
"""The columns of `list_lesions`, by the suffixes of the variables of the table."""

SHOWN = 10
"""The largest number of sets that a sentence names."""


def list_lesions(table: xr.Dataset) -> pd.DataFrame:
    """Return the change and the verdict for each set of heads, metric and subset, as a data frame.

    Columns are ``set``, ``heads``, ``metric``, ``subset``, ``examples``, ``whole`` (the metric of the whole model),
    ``change`` with ``lower`` and ``upper``, ``random`` (the mean change with random sets), ``excess`` with
    ``excess_lower`` and ``excess_upper``, ``p`` and ``verdict``: ``suffers``, ``cannot decide`` (too few other sets
    have the same number of heads) or empty.
    """
    heads, frames = list_members(table), []
    for metric in read_metrics(table):
        name = f"lesion_{metric['name']}"
        variables = {column: table[f"{name}{end}"] for end, column in COLUMNS.items()}
        variables |= {"examples": table["examples"], "whole": table[f"whole_{metric['name']}"]}
        variables["verdict"] = find_suffering(table, metric["name"])
        frame = xr.Dataset(variables).to_dataframe(dim_order=["set", "subset"]).reset_index()
        verdict = frame["verdict"].map({True: SUFFERS, False: ""})
        if metric["better"]:
            verdict[frame["p"].isna()] = UNDECIDED
        frames.append(frame.assign(metric=metric["name"], heads=frame["set"].map(heads), verdict=verdict))
    order = ["set", "heads", "metric", "subset", "examples", "whole", *COLUMNS.values(), "verdict"]
    return pd.concat(frames, ignore_index=True)[order]


def describe_random_sets(table: xr.Dataset) -> str:
    """Return a phrase on the random sets of a table: ``10 to 160 random sets of the same size in each layer``."""
    where = " in each layer" if table.attrs.get(MATCH, BY_LAYER) == BY_LAYER else ""
    numbers = sorted({int(table["set_random_sets"].min()), int(table["set_random_sets"].max())})
    return f"{' to '.join(map(str, numbers))} random sets of the same size{where}"


def list_members(table: xr.Dataset) -> dict[str, str]:
    """Return the names of the heads in each set, such as ``3-1, 4-2``, by the name of the set."""
    frame = table["set_member"].reset_coords(drop=True).to_dataframe().query("set_member > 0").reset_index()
    groups = frame.groupby("set", sort=False)
    return {str(name): ", ".join(map(name_row, rows.to_dict("records"))) for name, rows in groups}


def print_lesions(table: xr.Dataset, console: Console, *, whole: bool = False) -> None:
    """Print the harm when each set of heads is disabled; with `whole`, to every metric and phenomenon."""
    scored = [metric for metric in read_metrics(table) if metric["better"]]
    values = ", ".join(f"{each['title']} {float(table['whole_' + each['name']].values[0]):.3f}" for each in scored)
    write(
        console,
        f"\n{mark_source(table)}, {int(table['examples'].values[0]):,} {escape(table.attrs['content'])}: {values}",
    )
    print_reading(table, console)
    frame = list_lesions(table)
    undecided = frame[frame["verdict"] == UNDECIDED]["set"].unique().tolist()
    singles = describe_single_labels(find_single_labels(table.attrs))
    findings = _list_findings(table, frame[~frame["set"].isin(undecided)], scored)
    print_findings((*singles, *findings), console)
    if undecided:
        write(
            console,
            f"Cannot decide on {escape(', '.join(undecided[:SHOWN]))}: no more than "
            f"{int(table['set_others'].sel(set=undecided).max())} other sets have as many heads, and "
            f"{count_needed_runs(table.sizes['set'])} are needed.",
        )
    for metric in scored if whole else scored[:1]:
        chosen = frame[frame["metric"] == metric["name"]]
        _print_sets(chosen[chosen["subset"] == chosen["subset"].iloc[0]], metric, table, console)
        if whole:
            _print_harmed(chosen, metric, console)
    if whole:
        _print_dissociations(table, scored[-1], console)
    else:
        further = [f"the {metric['title']}" for metric in scored[1:]]
        print_more([*further, "each phenomenon that suffers", "double dissociations"], console)


def _list_findings(
    table: xr.Dataset, frame: pd.DataFrame, scored: Sequence[Mapping[str, Any]]
) -> Iterator[str]:  # fmt: skip
    """Yield sentences on the sets of heads that harm a metric on all examples or on a phenomenon, for each metric."""
    for metric in scored if len(frame) else ():
        chosen = frame[frame["metric"] == metric["name"]]
        of_all = chosen[chosen["subset"] == chosen["subset"].iloc[0]]
        harming = of_all[of_all["verdict"] == SUFFERS]["set"].tolist()
        count = f"{len(harming)} of {len(of_all)} sets" if harming else f"None of {len(of_all)} sets"
        names = f": {', '.join(harming[:SHOWN])}" if harming else ""
        yield f"{count} of heads harm{'' if len(harming) > 1 else 's'} the {metric['title']} beyond random sets{names}."
        parts = chosen[chosen["subset"].str.startswith("phenomenon ")]
        if len(parts):
            harmed = int((parts["verdict"] == SUFFERS).sum())
            yield f"Of {len(parts)} pairs of a set and a phenomenon, the {metric['title']} suffers in {harmed}."
    if dissociations := len(find_dissociations(table, scored[-1]["name"])):
        yield f"Double dissociations, in which two sets each harm what the other harms less: {dissociations}."


def _print_sets(frame: pd.DataFrame, metric: Mapping[str, Any], table: xr.Dataset, console: Console) -> None:
    """Print the change of a metric on all examples when each set of heads is disabled."""
    write(
        console,
        f"\n[bold]{len(frame)} sets of heads[/] disabled by {escape(table.attrs['how'])}, [bold]{metric['title']}[/] "
        f"of all examples, compared with {describe_random_sets(table)}",
    )
    columns = ("set", "change", "95 % interval", "random sets", "excess", "p", "verdict", "heads")
    lines = make_grid(*columns, left=("verdict", "heads"), wraps=("heads",), apart=1)
    for row in frame.to_dict("records"):
        lines.add_row(
            escape(row["set"]), f"{row['change']:+.3f}", format_range(row["lower"], row["upper"]),
            f"{row['random']:+.3f}", f"{row['excess']:+.3f}", format_brief_p(row["p"]), row["verdict"], row["heads"],
        )  # fmt: skip
    print_grid(lines, console)


def _print_harmed(frame: pd.DataFrame, metric: Mapping[str, Any], console: Console) -> None:
    """Print the phenomena that suffer from a set of heads, the smallest p first."""
    parts = frame[frame["subset"].str.startswith("phenomenon ")]
    if parts.empty:
        return
    harmed = parts[parts["verdict"] == SUFFERS].sort_values("p", kind="stable")
    write(
        console,
        f"\n{len(harmed)} of {len(parts)} phenomena and sets: the {metric['title']} suffers more than with any random "
        "set",
    )
    if harmed.empty:
        return
    lines = make_grid("set", "phenomenon", "whole", "change", "random sets", "p", left=("phenomenon",))
    for row in harmed.to_dict("records"):
        lines.add_row(
            escape(row["set"]), escape(row["subset"].partition(" ")[2]), f"{row['whole']:.3f}", f"{row['change']:+.3f}",
            f"{row['random']:+.3f}", format_brief_p(row["p"]),
        )  # fmt: skip
    print_grid(lines, console)


def _print_dissociations(table: xr.Dataset, metric: Mapping[str, Any], console: Console) -> None:
    """Print the double dissociations between sets and phenomena."""
    frame = find_dissociations(table, metric["name"])
    write(
        console,
        f"\n{len(frame)} double dissociations by {metric['title']}: each of two sets harms a phenomenon that the other "
        "harms less",
    )
    for row in frame.to_dict("records"):
        (own, other) = (row[column].partition(" ")[2] for column in ("subset", "subset_other"))
        write(
            console,
            f"  {row['set']} harms {own} more than {row['set_other']} does ({row['harm']:+.3f}), which harms {other} "
            f"more ({row['harm_other']:+.3f})",
            markup=False,
        )
