"""A head table of several runs on the terminal."""

from collections.abc import Iterator

import xarray as xr
from rich.console import Console
from rich.markup import escape

from headscope.analyse import list_highest
from headscope.identity import PLACEBO_OF
from headscope.predictions import find_single_labels
from headscope.score import HEAD, read_scores
from headscope.view.headings import name_head
from headscope.view.lines import make_grid, print_findings, print_grid, print_more
from headscope.view.wording import describe_single_labels, format_spread, name_variable

SHOWN = 12
"""The number of rows of a score that are shown by default."""


def print_runs(table: xr.Dataset, console: Console, *, whole: bool = False) -> None:
    """Print the average and the best value of the heads by each score, as mean and standard deviation over the runs."""
    count = table.sizes["run"]
    if PLACEBO_OF in table.attrs:
        which = f"{count} placebo{'s' * (count > 1)} of its adapter: random ones that change as much"
    else:
        kind = "a control of " if table.attrs["control"] else ""
        which = f"{count} run{'s' * (count > 1)}, tuned on {kind}{escape(str(table.attrs['task']))}"
    console.print(which, soft_wrap=True)
    columns = ("score", "average head", "best head", "most often")
    grid = make_grid(*columns, left=("most often",), wraps=columns, apart=1)
    rows = [(label, *_over_runs(scores)) for label, scores in _list_scores(table, whole=whole)]
    for row in rows:
        grid.add_row(*map(escape, row))
    findings = (f"{label}: the best head has {best}, most often {head}." for label, _, best, head in rows if head)
    print_findings((*describe_single_labels(find_single_labels(table.attrs)), *findings), console)
    if grid.row_count:
        console.print("\nMean over runs ± standard deviation")
        print_grid(grid, console)
        hidden = sum(1 for _ in _list_scores(table, whole=True)) - len(rows)
        print_more([f"{hidden} more rows" if hidden else ""], console)
    for score in read_scores(table):
        if score.ascending:
            lowest = list_highest((-table[[score.variable]]).mean("run"), score.variable)
            heads = "   ".join(f"[bold]{name}[/] {-value:.3f}" for name, value in lowest)
            console.print(f"\n{score.title}: the heads with the lowest values\n{heads}")


def _list_scores(table: xr.Dataset, *, whole: bool) -> Iterator[tuple[str, xr.DataArray]]:
    """Yield the label and the values (by run and head) of each score, or of each of its rows.

    Variables with a target follow. Without `whole`, only the first `SHOWN` rows of a score are listed.
    """
    described = read_scores(table)
    scores = [s.variable for s in described if s.has_report or not (s.is_ratio or s.row_dimension(table))]
    targets = [str(name) for name, values in table.data_vars.items() if values.attrs.get("target")]
    for name in [name for name in (*scores, *targets) if table[name].notnull().any()]:
        label, values = name_variable(name.removesuffix("_accuracy")), table[name]
        rows = [str(dim) for dim in values.dims if dim not in ("run", *HEAD)]
        if not rows:
            yield label, values
        for dim in rows:
            for place in values[dim].values[: None if whole else SHOWN]:
                yield f"{label} {place}", values.sel({dim: place})


def _over_runs(scores: xr.DataArray) -> tuple[str, str, str]:
    heads = [dim for dim in HEAD if dim in scores.dims]
    flat = scores.stack(place=heads)
    if not flat.notnull().any():
        return "", "", ""
    best = flat.fillna(-1).argmax("place").values.tolist()
    most = max(dict.fromkeys(best), key=best.count)
    at = flat["place"][most]
    name = name_head(*(at[dim].item() for dim in ("layer", "head", "attention_type") if dim in heads))
    return (
        format_spread(flat.mean("place")),
        format_spread(flat.max("place")),
        f"{name} ({best.count(most)} of {len(best)})",
    )
