"""Effects of disabling heads, layers and key/value heads, as a tidy data frame and on the terminal."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from rich.console import Console
from rich.markup import escape

from headscope.analyse.effect_table import NOUNS, PREFIXES, STATISTICS
from headscope.analyse.effects import judge
from headscope.analyse.ends import ENDS
from headscope.analyse.metrics import read_metrics
from headscope.analyse.run_effects import COUNTED, name_count, summarize_effects
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
from headscope.view.wording import describe_single_labels, format_brief_p, format_number

SHOWN = 5
"""The number of heads, of layers, of key/value heads and of pairs that the terminal shows."""

BRIEF = {"no effect seen": "", "no more than its placebos": "as placebos"}
"""Shorter texts for some verdicts, for the last column on the terminal."""

HEADINGS = {"head": "head", "layer": "layer", "group": "key/value", "pair": "pair"}

COLUMNS = {end: end.removeprefix("_") or "effect" for end in STATISTICS}
"""The columns of `list_effects`, by the suffixes of the variables of the table."""

DIRECT = {
    f"{name}{end}": (name, end) for name in ("direct_effect", "direct_effect_live", "self_repair") for end in ENDS
}
"""The columns of direct effects by name, each with the first and the last part of the name of its variable."""


def get_whole(table: xr.Dataset, metric: Mapping[str, Any]) -> float:
    """Return a metric of the whole model on all examples."""
    return float(table[f"whole_{metric['name']}"].values[0])


def list_effects(table: xr.Dataset) -> pd.DataFrame:
    """Return the effect and the verdict for each unit, way to disable it, metric and subset, as a data frame.

    A unit is a head, a layer, a key/value head (``group``) or a pair of heads.

    Columns are ``unit``, ``kind`` (head, layer, group or pair), ``how``, ``metric``, ``subset``, ``whole`` (the metric
    of the whole model), ``effect`` with ``lower`` and ``upper``, ``p_corrected``, ``placebo`` with ``placebo_lower``
    and ``placebo_upper``, ``placebo_p_corrected``, ``removed_norm`` and ``verdict``. If direct effects were measured,
    ``direct_effect``, ``direct_effect_live`` and ``self_repair`` follow, each with its interval. A table of runs has a
    row for each ``run``. Its summary (`headscope.analyse.summarize_effects`) has the numbers of runs ``needed_in``,
    ``worse_without_in``, ``better_without_in`` and ``matters_in``.
    """
    frames = [frame for metric in read_metrics(table) for kind in PREFIXES for frame in _frame(table, metric, kind)]
    return pd.concat(frames, ignore_index=True)


def _frame(table: xr.Dataset, metric: Mapping[str, Any], kind: str) -> Iterator[pd.DataFrame]:
    name = f"{PREFIXES[kind]}effect_{metric['name']}"
    if name not in table:
        return
    values = table[name]
    runs = [dim for dim in values.dims if dim == "run"]
    units = [dim for dim in values.dims if dim not in ("run", "how", "subset")]
    variables = {COLUMNS[end]: table[f"{name}{end}"] for end in STATISTICS if f"{name}{end}" in table}
    direct = {
        column: table[variable]
        for column, (begin, end) in DIRECT.items()
        if (variable := f"{PREFIXES[kind]}{begin}_{metric['name']}{end}") in table
    }
    variables |= {"removed_norm": table[f"{PREFIXES[kind]}removed_norm"], "whole": table[f"whole_{metric['name']}"]}
    variables |= direct
    counts = {verdict: name_count(verdict).removeprefix("_") for verdict in COUNTED if _is_summary(table)}
    variables |= {column: table[f"{name}_{column}"] for column in counts.values() if f"{name}_{column}" in table}
    stacked = xr.Dataset(variables).broadcast_like(values).stack(place=[*runs, "how", "subset", *units])
    frame = stacked.to_dataframe()[[*variables]].reset_index()
    frame = frame[frame["effect"].notna()].reset_index(drop=True)
    missing = np.full(len(frame), np.nan)
    for column in (*COLUMNS.values(), *counts.values()):
        if column not in frame:
            frame[column] = missing
    frame["unit"] = [_name_unit(kind, place) for place in frame[units].to_dict("records")]
    frame["verdict"] = judge(
        metric["better"],
        *(frame[column].to_numpy() for column in ("effect", "p_corrected", "placebo", "placebo_p_corrected")),
    )
    if counts:
        frame["verdict"] = [
            _describe_verdict(row, counts, table) for row in frame[[*counts.values(), "verdict"]].to_dict("records")
        ]
    order = [*runs, "unit", "kind", "how", "metric", "subset", "whole", *COLUMNS.values(), *counts.values()]
    order += ["removed_norm", "verdict", *direct]
    yield frame.assign(kind=kind, metric=metric["name"])[order]


def _is_summary(table: xr.Dataset) -> bool:
    """Return True if a table has the means over several runs in place of the runs."""
    return "runs" in table.attrs and "run" not in table.dims


def count_runs(table: xr.Dataset) -> int:
    """Return the number of runs of a table of effects or of its summary; 0 for a table of one model."""
    return len(json.loads(table.attrs["runs"])) if "runs" in table.attrs else 0


def _describe_verdict(row: Mapping[Any, Any], counts: Mapping[str, str], table: xr.Dataset) -> str:
    """Return the verdict on a mean over runs; if it is not sure, the number of runs with each sure verdict."""
    of_runs = [
        f"{verdict} in {int(row[column])} of {count_runs(table)} runs"
        for verdict, column in counts.items()
        if row[column] > 0
    ]
    return row["verdict"] if row["verdict"] in COUNTED or not of_runs else ", ".join(of_runs)


def _name_unit(kind: str, place: Mapping[Any, Any]) -> str:
    """Return the name of a head, layer, key/value head or pair, such as ``3-1``, ``3`` or ``3-kv1``."""
    if kind == "pair":
        return str(place["pair"])
    if kind == "head":
        return name_row(place)
    group = f"-kv{place['key_value_head']}" if kind == "group" else ""
    return f"{place.get('attention_type', '')} {place['layer']}{group}".strip()


def print_effects(table: xr.Dataset, console: Console, *, whole: bool = False) -> None:
    """Print the heads (and layers, key/value heads, pairs) that are needed, and the largest effects on a metric.

    The metric is the first one of the table. For runs, the means over runs are printed. With `whole`, all effects are
    printed, also on the last metric, followed by rank agreement, self-repair and first-order estimates.
    """
    if "run" in table.dims:
        table = summarize_effects(table)
    runs = f", means over {count_runs(table)} runs" if _is_summary(table) else ""
    scored = [metric for metric in read_metrics(table) if metric["better"]]
    shown = [scored[0], *scored[1:][-1:]]
    how, *others = map(str, table["how"].values)
    effects = list_effects(table).query("subset == 'all'")
    frame = effects[effects["how"] == how]
    values = ", ".join(f"{each['title']} {get_whole(table, each):.3f}" for each in scored)
    size = _describe_size(table)
    write(console, f"\n{mark_source(table)}, {size}{runs}: {values}")
    print_reading(table, console)
    parts = [
        (chosen, kind, metric)
        for kind in NOUNS
        for metric in shown
        if len(chosen := frame[(frame["kind"] == kind) & (frame["metric"] == metric["name"])])
    ]
    first = [part for part in parts if part[2] is shown[0]]
    by_others = (
        f"By {other}: {_describe_kind(chosen, kind, metric)}"
        for other in others
        for _, kind, metric in first
        if len(chosen := effects.query("how == @other and kind == @kind and metric == @metric['name']"))
    )
    of_first = (_describe_kind(*part) for part in first)
    of_further = (_describe_kind(*part) for part in parts if part[2] is not shown[0])
    singles = describe_single_labels(find_single_labels(table.attrs))
    print_findings((*singles, *of_first, *by_others, *of_further), console)
    for chosen, kind, metric in parts if whole else first:
        _print_kind(chosen, kind, how, metric, console, whole=whole)
    if not whole:
        hidden = sum(max(0, len(chosen) - SHOWN) for chosen, *_ in first)
        further = [f"the {metric['title']}" for metric in shown[1:]]
        print_more([f"{hidden} more units" if hidden else "", *further, "notes"], console)
        return
    for metric in shown:
        _print_agreement(table, metric, console)
        _print_self_repair(table, metric, how, console)
        _print_estimates(table, metric, how, console)


def _describe_size(table: xr.Dataset) -> str:
    """Return a phrase with the number of evaluated examples and of the texts they come from."""
    examples, texts = int(table["examples"][0]), int(table["texts"][0])
    content = escape(table.attrs["content"])
    if content == "texts":
        return f"{examples:,} texts" if examples == texts else f"{examples:,} documents from {texts:,} texts"
    return f"{examples:,} {content} from {texts:,} texts"


def _describe_kind(frame: pd.DataFrame, kind: str, metric: Mapping[str, Any]) -> str:
    """Return a sentence on the units that a metric needs, or that make it worse; without any, on the largest change."""
    needed, worse = (_list_units(frame, verdict) for verdict in ("needed", "worse without"))
    plural = _pluralize(kind, len(frame))
    if needed:
        verb = "is" if len(needed) == 1 else "are"
        return f"{len(needed)} of {len(frame)} {plural} {verb} needed for the {metric['title']}: {_join(needed)}."
    if worse:
        verb = "makes" if len(worse) == 1 else "make"
        what = f"{verb} the {metric['title']} worse when disabled, which was not compared with placebos"
        return f"{len(worse)} of {len(frame)} {plural} {what}: {_join(worse)}."
    most = frame.iloc[int(frame["effect"].abs().argmax())]
    change = f"the largest change is {format_number(most['effect'], sign=True)}, without {most['unit']}"
    return f"None of {len(frame)} {plural} is shown to be needed for the {metric['title']}; {change}."


def _list_units(frame: pd.DataFrame, verdict: str) -> list[str]:
    """Return the units with a verdict; in a summary of runs, also the units that have it in every run."""
    says_so = frame["verdict"].str.fullmatch(rf"{verdict}(?: in (\d+) of \1 runs)?")
    return [str(unit) for unit in frame["unit"][says_so]]


def _join(units: Sequence[str]) -> str:
    """Return the first `SHOWN` units, separated by commas, and the number of further units."""
    return ", ".join(units[:SHOWN]) + (f" and {len(units) - SHOWN} more" if len(units) > SHOWN else "")


def _pluralize(kind: str, count: int) -> str:
    if kind == "pair":
        return "pair of heads" if count == 1 else "pairs of heads"
    return f"{NOUNS[kind]}{'s' * (count != 1)}"


def _print_kind(
    frame: pd.DataFrame, kind: str, how: str, metric: Mapping[str, Any], console: Console, *, whole: bool
) -> None:  # fmt: skip
    """Print the units of one kind, such as heads, the largest change of the metric first."""
    verdicts = frame["verdict"].value_counts()
    counts = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
    shown = f"; the {SHOWN} with the largest change" if len(frame) > SHOWN and not whole else ""
    heading = f"[bold]{len(frame)} {_pluralize(kind, len(frame))}[/] disabled by {how}, [bold]{metric['title']}[/]"
    write(console, f"\n{heading}: {counts}{shown}")
    columns = (HEADINGS[kind], "change", "95 % interval", "p", "placebos", "p", "verdict")
    lines = make_grid(*columns, left=("verdict",), wraps=("verdict",))
    largest = frame.reindex(frame["effect"].abs().sort_values(ascending=False, kind="stable").index)
    for row in (largest if whole else largest.head(SHOWN)).to_dict("records"):
        lines.add_row(
            row["unit"], f"{row['effect']:+.3f}", format_range(row["lower"], row["upper"]),
            format_brief_p(row["p_corrected"]), format_range(row["placebo_lower"], row["placebo_upper"]),
            format_brief_p(row["placebo_p_corrected"]), BRIEF.get(row["verdict"], row["verdict"]),
        )  # fmt: skip
    print_grid(lines, console)


def _print_agreement(table: xr.Dataset, metric: Mapping[str, Any], console: Console) -> None:
    """Print the rank correlations between the effects of heads by different ways to disable them."""
    name = f"rank_agreement_{metric['name']}"
    if name not in table or not bool(table[name].notnull().any()):
        return
    ways = [str(how) for how in table["how"].values]
    pairs = [
        f"{first} and {second} {float(table[name].sel(how=first, how_other=second)):.2f}"
        for place, first in enumerate(ways)
        for second in ways[place + 1 :]
    ]
    write(console, f"\nRank agreement of the heads by {metric['title']} (Spearman): {', '.join(pairs)}")


def _print_self_repair(table: xr.Dataset, metric: Mapping[str, Any], how: str, console: Console) -> None:
    """Print, for each layer, the share of its heads' direct effects that is missing from their total effects."""
    name = f"self_repair_by_layer_{metric['name']}"
    if name not in table:
        return
    write(
        console,
        f"\nSelf-repair of the {metric['title']}: the share of the direct effects of all heads of a layer that the "
        "layers above and the final norm undo; below 0 they add to them.",
    )
    rows = [table[f"{name}{end}"].sel(how=how).isel(subset=0) for end in ENDS]
    known = [layer for layer in table["layer"].values if not np.isnan(float(rows[0].sel(layer=layer)))]
    lines = make_grid("layer", "self-repair", "95 % interval")
    for layer in known:
        share, lower, upper = (float(row.sel(layer=layer)) for row in rows)
        lines.add_row(str(layer), f"{share:+.2f}", format_range(lower, upper, digits=2))
    if known:
        print_grid(lines, console)
    else:
        write(console, "No layer has a direct effect that is surely other than 0.")


def _print_estimates(table: xr.Dataset, metric: Mapping[str, Any], how: str, console: Console) -> None:
    """Print how well first-order estimates agree with measured effects, if some heads were only estimated."""
    name = f"first_order_agreement_{metric['name']}"
    if name not in table or not bool(table[f"effect_{metric['name']}"].isnull().any()):
        return
    error = f"first_order_error_{metric['name']}"
    agreement, largest = (float(table[each].sel(how=how).values[0]) for each in (name, error))
    write(
        console,
        "\nThe other heads were not run; of them effects.nc has first-order estimates. On heads that were chosen at "
        f"random, estimates and effects on the {metric['title']} have a rank correlation of {agreement:.2f}, and "
        f"differ by {largest:.3f} at most.",
    )
