"""A comparison on the terminal: the verdicts, and the average head and the best head by each variable."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import xarray as xr
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from headscope.predictions import find_single_labels
from headscope.view.comparison_frames import read_means
from headscope.view.comparison_report import UNRANKED, describe_lacking, list_changing_most
from headscope.view.headings import name_corpus, name_model, name_row
from headscope.view.lines import make_grid, print_findings, print_grid, print_more
from headscope.view.reports import LEVEL
from headscope.view.wording import (
    check_comparison,
    count_digits,
    describe_comparison,
    describe_differences,
    describe_group,
    describe_left_out,
    describe_needed,
    describe_null,
    describe_single_labels,
    describe_spreads,
    describe_test,
    describe_too_few,
    describe_welch,
    format_number,
    format_p,
    format_ratio,
    format_spread,
    in_percent,
    is_of_score,
    list_groups,
    name_group,
    name_outcome,
    name_unit,
    select_outcome,
    select_standing,
)


def print_comparisons(
    comparisons: Sequence[xr.Dataset],
    console: Console,
    *,
    verdicts: Sequence[str] = (),
    whole: bool = False,
) -> None:
    """Print what fine-tuning changed: the verdicts, and the average head and the best head by each variable.

    Sentences with further `verdicts` come first. With `whole`, each variable also has its layers, its tests with their
    null hypotheses, and the heads that change most.

    Raises:
        TableError: `comparisons` has a table that is not a comparison.
    """
    comparisons = [in_percent(check_comparison(comparison)) for comparison in comparisons]
    first = comparisons[0]
    write = partial(console.print, highlight=False, markup=False, emoji=False)
    model, task = escape(name_model(first.attrs["model"])), escape(name_group(first, "task"))
    write("")
    console.print(f"[bold]{model}[/] before and after fine-tuning on {task}", soft_wrap=True, highlight=False)
    runs = "; ".join(describe_group(first, group) for group in list_groups(first))
    write(f"{name_corpus(first.attrs['corpus'])}: {first.attrs['heads']} heads{describe_left_out(first)}; {runs}")
    print_findings((*verdicts, *_list_findings(comparisons)), console)
    write(f"\nMean ± standard deviation over runs; p: {describe_test(first)[1]}")
    print_grid(_lay_out_means(comparisons), console)
    if not whole:
        print_more(["layers and tests", "the heads that change most", "change against baseline"], console)
        return
    for sentence in filter(None, (describe_null(first), describe_welch(first))):
        write(sentence)
    for comparison in comparisons:
        write(f"\n{describe_comparison(comparison)} ({name_unit(comparison)})", style="bold")
        for sentence in () if describe_too_few(comparison) else _list_significant(comparison):
            write(sentence)
        _print_changes(comparison, write)


def _list_findings(comparisons: Sequence[xr.Dataset]) -> Iterator[str]:
    """Yield sentences on single labels, too few runs, surely changed heads, and other differences of the models."""
    first = comparisons[0]
    yield from describe_single_labels(find_single_labels(first.attrs))
    if few := describe_too_few(first):
        yield few
    for comparison in () if few else comparisons:
        count, name = int(select_standing(comparison).sum()), describe_comparison(comparison)
        heads, tests = comparison.attrs["heads"], "q and Welch's q" if "welch_q" in comparison else "q"
        than = "by the task more than by its control" if "control" in list_groups(comparison) else "by fine-tuning"
        verb = "change" if count > 1 else "changes"
        yield f"{count or 'None'} of {heads} heads surely {verb} {than} in {name} ({tests} ≤ {LEVEL})."
    yield describe_differences(first)


def _lay_out_means(comparisons: Sequence[xr.Dataset]) -> Table:
    """Return a table with two rows for each variable: the average head, and the head that is best before."""
    first = comparisons[0]
    welch = ["Welch p", "ratio"] if "welch_p" in first else []
    after = [escape(f"after {name_group(first, group)}") for group in list_groups(first)]
    columns = ("variable", "head", "before", *after, "p", *welch)
    grid = make_grid(*columns, left=("head",), wraps=("variable", "head", *after), apart=1)
    for comparison in comparisons:
        digits, means = count_digits(comparison), read_means(comparison)
        unit = " %" if name_unit(comparison).startswith("%") else ""
        for which, name in (("average", "average"), ("best", f"best, {comparison.attrs['best_head']}")):
            ends = [format_spread(comparison[which].sel(group=group), digits) for group in list_groups(comparison)]
            outcomes = [format_p(means[name_outcome(comparison, "p", f"{which}_")])]
            if welch:
                outcomes += [format_p(means[f"{which}_welch_p"]), format_ratio(means[f"{which}_spread_ratio"])]
            label = escape(describe_comparison(comparison)) + unit
            grid.add_row(label, name, format_number(means[f"{which}_before"], digits), *ends, *outcomes)
    return grid


def _print_changes(comparison: xr.Dataset, write: Callable[[str], None]) -> None:
    """Print the heads that change most, and the correlation (tau) of the change with the score before."""
    digits = count_digits(comparison)
    most = list_changing_most(comparison, 4)
    changes = [f"{name_row(row)} {format_number(row['change_task'], digits, sign=True)}" for row in most]
    write(f"Changing most: {'   '.join(changes) or 'no head changes'}")
    if not is_of_score(comparison):
        return
    taus = comparison.sel(group="task")
    sentence = lacking = describe_lacking(taus)
    if lacking != UNRANKED:
        corrected = lacking or f"{format_spread(taus['baseline_tau_corrected'])} corrected"
        sentence = f"τ {format_spread(taus['baseline_tau'])} as published, which chance pulls down; {corrected}"
    write(f"Change against baseline (do the rich get richer?): {sentence}")


def _list_significant(comparison: xr.Dataset) -> Iterator[str]:
    """Yield sentences on the layers and heads with a small q, the number of heads it needs, and unequal spreads."""
    layers = [
        ", ".join(map(str, comparison["layer"].values[small.values])) or "none"
        for small in (select_outcome(comparison, "q", "layer_") <= LEVEL, select_standing(comparison, "layer_"))
    ]
    heads = [int(small.sum()) for small in (select_outcome(comparison, "q") <= LEVEL, select_standing(comparison))]
    with_welch = "welch_q" in comparison
    yield describe_needed(comparison)
    yield f"Layers with q ≤ {LEVEL}: {layers[0]}" + (f"; Welch's q too: {layers[1]}" if with_welch else "")
    counts = f"Heads with q ≤ {LEVEL}: {heads[0]} of {comparison.attrs['heads']}"
    yield counts + (f"; Welch's q too: {heads[1]}" if with_welch else "")
    if spreads := describe_spreads(comparison):
        yield spreads
