"""A comparison in words: a page (Markdown), a summary on the terminal, and data frames for CSV files."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd
import xarray as xr
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from headscope.analyse import Consistencies, rank_sum
from headscope.analyse.change_against_baseline import BIAS
from headscope.heads import DIMENSIONS, head_name
from headscope.view.reported import LEVEL
from headscope.view.wording import (
    against,
    called,
    checked,
    counted,
    factor,
    gain,
    groups_of,
    left_out,
    named,
    number,
    of_runs,
    outcome,
    probability,
    scored,
    sides,
    spoken,
    spread,
    too_few,
    unit,
)

MOST = 10
"""Heads on the page: those whose mean change is largest."""

UNCORRECTED = "no corrected τ where the tables have no sums by fold"

UNRANKED = "no τ where all heads score the same before, or all change by the same"

INDEPENDENT = "Kendall's p-values take heads as independent, which they are not."


def markdown(
    comparisons: Sequence[xr.Dataset],
    agreements: Mapping[str, Sequence[Consistencies]] | None = None,
    figures: Mapping[str, str] | None = None,
    other: str = "the other corpus",
) -> str:
    """A page that says what fine-tuning changed: averages and best heads, tests, layers, heads, and who gets richer.

    Args:
        comparisons: of one model on one corpus; one for each variable, as precision, recall and F1.
        agreements: of the model before and of the runs of each group, by what they are called: how alike their heads
            score on two corpora, for each variable.
        figures: by what they show, paths from where the page stands.
        other: the corpus that `agreements` are with.

    Raises:
        TableError: something is not a comparison.
    """
    first = checked(comparisons[0])
    runs = " and ".join(counted(first, group) for group in groups_of(first))
    told = list(dict.fromkeys(f"{one.attrs['heads']} heads{left_out(one)}" for one in comparisons))
    heads = (
        told[0]
        if len(told) == 1
        else "; ".join(f"{spoken(one)}: {one.attrs['heads']} heads{left_out(one)}" for one in comparisons)
    )
    lines = [
        f"# What fine-tuning on {called(first, 'task')} changes in the heads of {first.attrs['model']}",
        "",
        f"{first.attrs['corpus']}, {int(first.attrs['documents']):,} documents; {runs}; {heads}.",
    ]
    for what, path in (figures or {}).items():
        lines += ["", f"![{what}]({path})"]
    return "\n".join([*lines, "", *sections(comparisons, agreements, other)]) + "\n"


def sections(
    comparisons: Sequence[xr.Dataset],
    agreements: Mapping[str, Sequence[Consistencies]] | None = None,
    other: str = "the other corpus",
) -> list[str]:
    """The lines of `markdown` below its head, for a page that has a head of its own; the arguments are the same."""
    comparisons = [checked(comparison) for comparison in comparisons]
    lines = [*_scores(comparisons), *_tests(comparisons)]
    for heading, part in (("Layers", _layers), ("The heads that change most", _heads)):
        lines += [f"## {heading}", ""]
        for comparison in comparisons:
            lines += [f"### {spoken(comparison)} ({unit(comparison)})", ""] if len(comparisons) > 1 else []
            lines += [*part(comparison), ""]
    if scores := [comparison for comparison in comparisons if scored(comparison)]:
        lines += _rich(scores)
    if agreements:
        lines += _agreements(agreements, other)
    return lines[:-1]


def _scores(comparisons: Sequence[xr.Dataset]) -> Iterator[str]:
    """Table 3 of Zhao and Bethard 2020."""
    groups = groups_of(comparisons[0])
    after = [f"after {called(comparisons[0], group)}" for group in groups]
    change = [f"change, {called(comparisons[0], group)} [95 %]" for group in groups]
    yield from ("## Before and after", "")
    contrast = ["task less control [95 %]"] if "contrast" in comparisons[0] else []
    yield from _head(["", "head", "before", *after, *change, *contrast], right=2)
    for comparison in comparisons:
        scale = factor(comparison)
        for of, name in (("average", "average"), ("best", f"best before, {comparison.attrs['best_head']}")):
            by_group = [comparison.sel(group=group) for group in groups]
            ends = [spread(one[of], scale) for one in by_group]
            gains = [gain(one[f"{of}_change"], one[f"{of}_lower"], one[f"{of}_upper"], scale) for one in by_group]
            if contrast:
                less, lower, upper = (comparison[f"{of}_contrast{end}"] for end in ("", "_lower", "_upper"))
                gains.append(gain(less, lower, upper, scale))
            before = number(float(comparison[f"{of}_before"]), scale)
            yield _row(f"{spoken(comparison)} ({unit(comparison)})", name, before, *ends, *gains)
    yield ""
    yield (
        "After: mean ± standard deviation over runs (of these runs, ddof 0, as in the paper). In brackets: the 95 % "
        "interval over runs of the mean change, by Student's t, and of the difference of two, by Welch's. The head "
        "that is best before was chosen by that score, so chance alone lets it fall."
    )
    yield ""


def _tests(comparisons: Sequence[xr.Dataset]) -> Iterator[str]:
    """The exact tests of the average and of the best head, and what so few runs cannot show."""
    yield from ("## Tests", "")
    yield from _head(["", "head", "test", "runs", "p", "smallest p possible"], right=3)
    for comparison in comparisons:
        for of, name in (("average", "average"), ("best", f"best before, {comparison.attrs['best_head']}")):
            for test, runs, p, least in _test_rows(comparison, of):
                yield _row(spoken(comparison), name, test, runs, probability(p), probability(least))
    yield ""
    yield "All tests are exact and two-sided (Wilcoxon). With few runs they cannot give a small p, whatever changes."
    if len(comparisons) > 1:
        yield f"No p or q on this page is corrected for there being {len(comparisons)} variables."
    if few := too_few(comparisons[0]):
        yield few
    yield ""


def _test_rows(comparison: xr.Dataset, of: str) -> Iterator[tuple[str, str, float, float]]:
    """Each test of a mean or a head: what it is, of how many runs, its p and the smallest that there could be."""
    runs = [int(count) for count in comparison["runs"].values]
    task = called(comparison, "task")
    if "p_least" in comparison:
        least = float(comparison["p_least"])
        yield f"{task} against control, rank-sum", f"{runs[0]} + {runs[1]}", float(comparison[f"{of}_p"]), least
    if "pairs" in comparison and int(comparison["pairs"]):
        p, least = float(comparison[f"{of}_paired_p"]), float(comparison["paired_p_least"])
        pairs = of_runs(int(comparison["pairs"])).replace("run", "pair")
        yield f"{task} against control by seed, signed-rank", pairs, p, least
    for group, count in zip(groups_of(comparison), runs, strict=True):
        one = comparison.sel(group=group)
        p, least = float(one[f"{of}_before_p"]), float(one["before_p_least"])
        yield f"{called(comparison, group)} against before, signed-rank", str(count), p, least


def _layers(comparison: xr.Dataset) -> Iterator[str]:
    groups, scale = groups_of(comparison), factor(comparison)
    change = [f"change, {called(comparison, group)} [95 %]" for group in groups]
    yield from _head(["layer", "before", *change, "p", "q"], right=1)
    before = _before(comparison).mean("head")
    for layer in comparison["layer"].values:
        row = comparison.sel(layer=layer)
        gains = [
            gain(one["layer_change"].mean("run"), one["layer_lower"], one["layer_upper"], scale)
            for one in (row.sel(group=group) for group in groups)
        ]
        found = [probability(float(outcome(row, name, "layer_"))) for name in ("p", "q")]
        yield _row(str(layer), number(float(before.sel(layer=layer)), scale), *gains, *found)
    yield ""
    yield f"Means over the heads of a layer. p: {against(comparison)[1]}; q: corrected for all layers."


def _heads(comparison: xr.Dataset) -> Iterator[str]:
    groups, scale = groups_of(comparison), factor(comparison)
    change = [f"change, {called(comparison, group)} [95 %]" for group in groups]
    yield from _head(["head", "before", f"after {called(comparison, 'task')}", *change, "p", "q"], right=1)
    for layer, head, row in _changing_most(comparison, MOST):
        by_group = [row.sel(group=group) for group in groups]
        gains = [gain(one["change"], one["change_lower"], one["change_upper"], scale) for one in by_group]
        found = [probability(float(outcome(row, name))) for name in ("p", "q")]
        ends = spread(by_group[0]["after"], scale)
        yield _row(head_name(layer, head), number(float(row["before"]), scale), ends, *gains, *found)
    yield ""
    yield f"p: {against(comparison)[1]}; q: corrected for all heads. {too_few(comparison) or _standing(comparison)}"


def _standing(comparison: xr.Dataset) -> str:
    """How many heads have a small q, and on which side."""
    above, below = sides(comparison)
    told = f"{int((outcome(comparison, 'q') <= LEVEL).sum())} of {comparison.attrs['heads']} heads have q ≤ {LEVEL}"
    than = "with the control" if "control" in groups_of(comparison) else "before"
    return told + (f": {above} are higher than {than}, {below} lower." if above + below else ".")


def _rich(comparisons: Sequence[xr.Dataset]) -> Iterator[str]:
    """Table A4 of Zhao and Bethard 2020, and the same without the bias."""
    yield from ("## Do the rich get richer?", "")
    yield from _head(
        ["", "runs of", "τ as published", f"p < {LEVEL}", "of them above / below 0", "τ corrected"], right=2
    )
    for comparison in comparisons:
        for group in groups_of(comparison):
            one = comparison.sel(group=group)
            significant, runs = one["rich_p"] < LEVEL, int(one["runs"])
            signs = [int((significant & (sign * one["rich_tau"] > 0)).sum()) for sign in (1, -1)]
            counts = f"{int(significant.sum())}/{runs}", f"{signs[0]} / {signs[1]}"
            corrected = spread(one["rich_corrected"]) or "none"
            tau = spread(one["rich_tau"]) or "none"
            yield _row(spoken(comparison), called(comparison, group), tau, *counts, corrected)
    yield ""
    without = [f"There is {lacking}." for lacking in dict.fromkeys(filter(None, map(_lacking, comparisons)))]
    yield " ".join([BIAS, *without, INDEPENDENT])
    yield ""


def _lacking(comparison: xr.Dataset) -> str:
    """Which tau there is not, and where that is so."""
    if bool(comparison["rich_tau"].isnull().all()):
        return UNRANKED
    return UNCORRECTED if bool(comparison["rich_corrected"].isnull().all()) else ""


def _agreements(agreements: Mapping[str, Sequence[Consistencies]], other: str) -> Iterator[str]:
    """Table 4 of Zhao and Bethard 2020."""
    yield from (f"## Do the same heads score well on {other}?", "")
    yield from _head(["", "runs of", "τ between the corpora", f"p < {LEVEL}"], right=2)
    for place in range(max(map(len, agreements.values()))):
        for called_so, found in agreements.items():
            if place < len(found):
                one = found[place]
                taus = spread(xr.DataArray(np.array(one.taus))) or "none"
                yield _row(named(one.variable), called_so, taus, f"{one.significant}/{len(one.taus)}")
    yield ""
    told = [f"Kendall's τ between the scores of the heads on the two corpora. {INDEPENDENT}"]
    families = [name for name, found in agreements.items() if len(found[0].taus) > 1]
    if len(families) == 2:
        for one, two in zip(*(agreements[name] for name in families), strict=True):
            if p := probability(rank_sum(one.taus, two.taus)):
                told.append(f"{named(one.variable)}: {families[0]} against {families[1]}, rank-sum, p = {p}.")
    yield " ".join(told)
    yield ""


def _changing_most(comparison: xr.Dataset, count: int) -> Iterator[tuple[int, int, xr.Dataset]]:
    """The heads whose mean change with the task is largest, in either direction."""
    change = np.abs(comparison["change"].sel(group="task").transpose("layer", "head").values)
    order = np.argsort(-change, axis=None, kind="stable")[: min(count, int((change > 0).sum()))]
    for place in order:
        layer, head = (int(at) + 1 for at in np.unravel_index(place, change.shape))
        yield layer, head, comparison.sel(layer=layer, head=head)


def _head(columns: Sequence[str], *, right: int) -> Iterator[str]:
    """The first two lines of a table in Markdown; the first columns to the left, the others to the right."""
    yield _row(*columns)
    yield f"|{'|'.join(' --- ' if place < right else ' ---: ' for place in range(len(columns)))}|"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def summarise_comparison(comparison: xr.Dataset, console: Console) -> None:
    """What fine-tuning changed, in few lines: average and best head, layers, the heads that change most.

    Raises:
        TableError: it is no comparison.
    """
    groups, scale = groups_of(checked(comparison)), factor(comparison)
    told = f"{spoken(comparison)} before and after fine-tuning on {called(comparison, 'task')}"
    console.print(
        f"\n[bold]{escape(str(comparison.attrs['model']))}[/]: {escape(told)}", soft_wrap=True, highlight=False
    )
    runs = "; ".join(counted(comparison, group) for group in groups)
    console.print(
        f"{comparison.attrs['corpus']}: {comparison.attrs['heads']} heads{left_out(comparison)}; {runs}",
        highlight=False,
        markup=False,
    )
    console.print(f"In {unit(comparison)}; mean ± standard deviation over runs\n", highlight=False, markup=False)
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in ("head", "before", *(f"after {called(comparison, group)}" for group in groups), "p"):
        grid.add_column(escape(column), justify="left" if column == "head" else "right")
    for of, name in (("average", "average"), ("best", f"best, {comparison.attrs['best_head']}")):
        ends = [spread(comparison[of].sel(group=group), scale) for group in groups]
        p = probability(float(outcome(comparison, "p", f"{of}_")))
        grid.add_row(name, number(float(comparison[f"{of}_before"]), scale), *ends, p)
    console.print(grid)
    few = too_few(comparison)
    console.print(f"\np, q: {against(comparison)[1]}.", highlight=False, markup=False)
    if few:
        console.print(few, style="yellow", highlight=False, markup=False)
    else:
        layers = comparison["layer"].values[outcome(comparison, "q", "layer_").values <= LEVEL]
        console.print(f"Layers with q ≤ {LEVEL}: {', '.join(map(str, layers)) or 'none'}", highlight=False)
        standing = int((outcome(comparison, "q") <= LEVEL).sum())
        console.print(f"Heads with q ≤ {LEVEL}: {standing} of {comparison.attrs['heads']}", highlight=False)
    most = [
        f"{head_name(layer, head)} {number(float(row['change'].sel(group='task')), scale, sign=True)}"
        for layer, head, row in _changing_most(comparison, 4)
    ]
    console.print(f"Changing most: {'   '.join(most) or 'no head changes'}", highlight=False)
    if not scored(comparison):
        return
    taus = comparison.sel(group="task")
    corrected = spread(taus["rich_corrected"])
    published = f"τ {spread(taus['rich_tau'])} as published, which chance pulls down; "
    told = _lacking(taus)
    told = told if told == UNRANKED else published + (told or f"{corrected} corrected")
    console.print(f"Do the rich get richer? {told}", highlight=False)


def frames(comparison: xr.Dataset) -> dict[str, pd.DataFrame]:
    """A comparison as data frames by name: one row a head, a layer, or a run of a group.

    What there is of each group stands in a column for each, which ends in the group's name. The last frame,
    ``columns``, says what each column of the others is, in which unit, and which source defines it.
    """
    found, about = {}, []
    means = checked(comparison).assign(
        after=_mean(comparison["after"]),
        layer_before=_mean(_before(comparison), "head"),
        layer_change=_mean(comparison["layer_change"]),
    )
    for name, dims in {"heads": ("layer", "head"), "layers": ("layer",), "runs": ("group", "run")}.items():
        source = comparison if name == "runs" else means
        columns: dict[str, xr.DataArray] = {}
        for variable, values in source.data_vars.items():
            if set(values.dims) == set(dims):
                columns[str(variable)] = values
            elif set(values.dims) == {"group", *dims}:
                columns |= {f"{variable}_{group}": values.sel(group=group, drop=True) for group in groups_of(source)}
        frame = xr.Dataset(columns).to_dataframe(dim_order=list(dims)).dropna(how="all", subset=list(columns))
        found[name] = frame.reset_index()
        for column in map(str, found[name].columns):
            what = (
                columns[column].attrs if column in columns else {"long_name": DIMENSIONS.get(column, "seed of the run")}
            )
            about.append((name, column, *(what.get(key, "") for key in ("long_name", "units", "source"))))
    return found | {"columns": pd.DataFrame(about, columns=["table", "column", "what", "units", "source"])}


def _before(comparison: xr.Dataset) -> xr.DataArray:
    """The score before, of the heads that are compared."""
    return comparison["before"].where(comparison["change"].notnull().all("group"))


def _mean(values: xr.DataArray, dim: str = "run") -> xr.DataArray:
    """The mean, with what it is of."""
    name = f"{values.attrs['long_name']}, mean over {dim}s"
    return values.mean(dim).assign_attrs(values.attrs | {"long_name": name})
