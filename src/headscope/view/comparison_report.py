"""A comparison in words: a page (Markdown) and a summary on the terminal."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import zip_longest

import numpy as np
import xarray as xr
from rich.console import Console
from rich.markup import escape

from headscope.analyse import Consistencies, rank_sum
from headscope.analyse.change_against_baseline import BIAS
from headscope.heads import head_name
from headscope.view.headings import name_corpus, name_model
from headscope.view.lines import make_grid
from headscope.view.reports import LEVEL
from headscope.view.wording import (
    check_comparison,
    count_digits,
    count_sides,
    describe_comparison,
    describe_differences,
    describe_group,
    describe_left_out,
    describe_needed,
    describe_null,
    describe_spreads,
    describe_test,
    describe_too_few,
    describe_welch,
    format_interval,
    format_number,
    format_p,
    format_ratio,
    format_runs,
    format_spread,
    in_percent,
    is_of_score,
    list_groups,
    name_group,
    name_unit,
    name_variable,
    select_before,
    select_outcome,
    select_standing,
)

MOST = 10
"""Heads on the page: those whose mean change is largest."""

UNCORRECTED = "no corrected τ where the tables have no sums by fold"

UNRANKED = "no τ where all heads score the same before, or all change by the same"

INDEPENDENT = "Kendall's p-values take heads as independent, which they are not."


def render_markdown(
    comparisons: Sequence[xr.Dataset],
    agreements: Mapping[str, Sequence[Consistencies]] | None = None,
    figures: Mapping[str, str] | None = None,
    other: str = "the other corpus",
) -> str:
    """A page about what fine-tuning changed: averages and best heads, tests, layers, heads, change against baseline.

    Args:
        comparisons: of one model on one corpus; one for each variable, as precision, recall and F1.
        agreements: of the model before and of the runs of each group, by what they are called: how alike their heads
            score on two corpora, for each variable.
        figures: by what they show, paths from where the page stands.
        other: the corpus that `agreements` are with.

    Raises:
        TableError: something is not a comparison.
    """
    first = check_comparison(comparisons[0])
    runs = " and ".join(describe_group(first, group) for group in list_groups(first))
    counts = [f"{part.attrs['heads']} heads{describe_left_out(part)}" for part in comparisons]
    heads = counts[0]
    if len(set(counts)) > 1:
        named = zip(map(describe_comparison, comparisons), counts, strict=True)
        heads = "; ".join(f"{name}: {count}" for name, count in named)
    lines = [
        f"# What fine-tuning on {name_group(first, 'task')} changes in the heads of {name_model(first.attrs['model'])}",
        "",
        f"{name_corpus(first.attrs['corpus'])}, {int(first.attrs['documents']):,} documents; {runs}; {heads}.",
    ]
    for what, path in (figures or {}).items():
        lines += ["", f"![{what}]({path})"]
    return "\n".join([*lines, "", *list_sections(comparisons, agreements, other)]) + "\n"


def list_sections(
    comparisons: Sequence[xr.Dataset],
    agreements: Mapping[str, Sequence[Consistencies]] | None = None,
    other: str = "the other corpus",
) -> list[str]:
    """The lines of `render_markdown` below its head, for a page that has a head of its own."""
    comparisons = [in_percent(check_comparison(comparison)) for comparison in comparisons]
    differences = describe_differences(comparisons[0])
    lines = [*([f"**{differences}**", ""] if differences else []), *_scores(comparisons), *_tests(comparisons)]
    for heading, part in (("Layers", _layers), ("The heads that change most", _heads)):
        lines += [f"## {heading}", ""]
        for comparison in comparisons:
            if len(comparisons) > 1:
                lines += [f"### {describe_comparison(comparison)} ({name_unit(comparison)})", ""]
            lines += [*part(comparison), ""]
    if scores := [comparison for comparison in comparisons if is_of_score(comparison)]:
        lines += _change_against_baseline(scores)
    if agreements:
        lines += _agreements(agreements, other)
    return lines[:-1]


def _scores(comparisons: Sequence[xr.Dataset]) -> Iterator[str]:
    """Table 3 of Zhao and Bethard 2020."""
    groups = list_groups(comparisons[0])
    after = [f"after {name_group(comparisons[0], group)}" for group in groups]
    yield from ("## Before and after", "")
    contrast = ["task less control [95 %]", "ratio of spreads"] if "contrast" in comparisons[0] else []
    yield from _head(["", "head", "before", *after, *_name_gains(comparisons[0]), *contrast], right=2)
    for comparison in comparisons:
        digits = count_digits(comparison)
        for which, name in _name_means(comparison):
            ends = [format_spread(comparison[which].sel(group=group), digits) for group in groups]
            gains = _format_gains(comparison, f"{which}_change", which)
            if contrast:
                less, lower, upper = (float(comparison[f"{which}_contrast{end}"]) for end in ("", "_lower", "_upper"))
                ratio = format_ratio(float(comparison[f"{which}_spread_ratio"]))
                gains += [format_interval(less, lower, upper, digits=digits, sign=True), ratio]
            before = format_number(float(comparison[f"{which}_before"]), digits)
            yield _row(f"{describe_comparison(comparison)} ({name_unit(comparison)})", name, before, *ends, *gains)
    yield ""
    yield (
        "After: mean ± standard deviation over runs (of these runs, ddof 0, as in the paper). In brackets: the 95 % "
        "interval over runs of the mean change, by Student's t, and of the difference of two, by Welch's. The head "
        "that is best before was chosen by that score, so chance alone lets it fall."
    )
    yield ""


def _name_means(comparison: xr.Dataset) -> tuple[tuple[str, str], tuple[str, str]]:
    """How the variables of the mean over heads and of the best head begin, with their names on the page."""
    return ("average", "average"), ("best", f"best before, {comparison.attrs['best_head']}")


def _tests(comparisons: Sequence[xr.Dataset]) -> Iterator[str]:
    """The tests of the average and of the best head, their nulls, and what so few runs cannot show."""
    yield from ("## Tests", "")
    yield from _head(["", "head", "test", "runs", "p", "smallest p possible"], right=3)
    for comparison in comparisons:
        for which, name in _name_means(comparison):
            for test, runs, p, least in _test_rows(comparison, which):
                yield _row(describe_comparison(comparison), name, test, runs, format_p(p), format_p(least))
    yield ""
    exact = "The tests by ranks are exact" if "welch_p" in comparisons[0] else "All tests are exact"
    yield f"{exact} and two-sided (Wilcoxon). With few runs they cannot give a small p, whatever changes."
    yield from filter(None, (describe_null(comparisons[0]), describe_welch(comparisons[0])))
    if len(comparisons) > 1:
        yield f"No p or q on this page is corrected for there being {len(comparisons)} variables."
    if few := describe_too_few(comparisons[0]):
        yield few
    yield ""


def _test_rows(comparison: xr.Dataset, which: str) -> Iterator[tuple[str, str, float, float]]:
    """Each test of a mean or a head: what it is, of how many runs, its p and the smallest that there could be."""
    runs = [int(count) for count in comparison["runs"].values]
    task = name_group(comparison, "task")
    if "p_least" in comparison:
        least = float(comparison["p_least"])
        yield f"{task} against control, rank-sum", f"{runs[0]} + {runs[1]}", float(comparison[f"{which}_p"]), least
        if not math.isnan(p := float(comparison[f"{which}_welch_p"])):
            yield f"{task} against control, Welch", f"{runs[0]} + {runs[1]}", p, math.nan
    if "pairs" in comparison and int(comparison["pairs"]):
        p, least = float(comparison[f"{which}_paired_p"]), float(comparison["paired_p_least"])
        pairs = format_runs(int(comparison["pairs"])).replace("run", "pair")
        yield f"{task} against control by seed, signed-rank", pairs, p, least
    for group, count in zip(list_groups(comparison), runs, strict=True):
        side = comparison.sel(group=group)
        p, least = float(side[f"{which}_before_p"]), float(side["before_p_least"])
        yield f"{name_group(comparison, group)} against before, signed-rank", str(count), p, least


def _layers(comparison: xr.Dataset) -> Iterator[str]:
    yield from _head(["layer", "before", *_name_gains(comparison), *_name_outcomes(comparison)], right=1)
    before = select_before(comparison).mean("head")
    for layer in comparison["layer"].values:
        row = comparison.sel(layer=layer)
        start = format_number(float(before.sel(layer=layer)), count_digits(row))
        gains = _format_gains(row, "layer_change", "layer")
        yield _row(str(layer), start, *gains, *_format_outcomes(row, "layer_"))
    yield ""
    yield f"Means over the heads of a layer. p: {describe_test(comparison)[1]}; q: corrected for all layers."


def _name_gains(comparison: xr.Dataset) -> list[str]:
    """The headings of `_format_gains`."""
    return [f"change, {name_group(comparison, group)} [95 %]" for group in list_groups(comparison)]


def _format_gains(row: xr.Dataset, change: str, stem: str) -> list[str]:
    """The mean change of each group with its interval, whose ends are called after a stem."""
    mean = row[change].mean("run") if "run" in row[change].dims else row[change]
    gains = []
    for group in list_groups(row):
        value, lower, upper = (
            float(each.sel(group=group)) for each in (mean, row[f"{stem}_lower"], row[f"{stem}_upper"])
        )
        gains.append(format_interval(value, lower, upper, digits=count_digits(row), sign=True))
    return gains


def _name_outcomes(comparison: xr.Dataset) -> list[str]:
    """The headings of `_format_outcomes`."""
    return ["p", "q", *(["Welch p", "Welch q", "ratio of spreads"] if "welch_q" in comparison else [])]


def _format_outcomes(row: xr.Dataset, prefix: str = "") -> list[str]:
    """The p-values and false discovery rates of a head or a layer and, with a control, the ratio of its spreads."""
    cells = [format_p(float(select_outcome(row, name, prefix))) for name in ("p", "q")]
    if "welch_q" in row:
        cells += [format_p(float(row[f"{prefix}{name}"])) for name in ("welch_p", "welch_q")]
        cells.append(format_ratio(float(row[f"{prefix}spread_ratio"])))
    return cells


def _heads(comparison: xr.Dataset) -> Iterator[str]:
    digits, after = count_digits(comparison), f"after {name_group(comparison, 'task')}"
    yield from _head(["head", "before", after, *_name_gains(comparison), *_name_outcomes(comparison)], right=1)
    for layer, head, row in _changing_most(comparison, MOST):
        start, end = format_number(float(row["before"]), digits), format_spread(row["after"].sel(group="task"), digits)
        gains = _format_gains(row, "change", "change")
        yield _row(head_name(layer, head), start, end, *gains, *_format_outcomes(row))
    yield ""
    note = describe_too_few(comparison) or f"{describe_needed(comparison)} {_count_standing(comparison)}"
    yield f"p: {describe_test(comparison)[1]}; q: corrected for all heads. {note}"
    if spreads := describe_spreads(comparison):
        yield spreads


def _count_standing(comparison: xr.Dataset) -> str:
    """The number of heads with a small q and, where their means may be said to differ, on which side they are."""
    above, below = count_sides(comparison)
    count, standing = int((select_outcome(comparison, "q") <= LEVEL).sum()), int(select_standing(comparison).sum())
    sentence = f"{count} of {comparison.attrs['heads']} heads have q ≤ {LEVEL}"
    if "welch_q" in comparison and count:
        sentence += f", {standing} of them also Welch's q ≤ {LEVEL}"
    than = "with the control" if "control" in list_groups(comparison) else "before"
    return sentence + (f": {above} are higher than {than}, {below} lower." if above + below else ".")


def _change_against_baseline(comparisons: Sequence[xr.Dataset]) -> Iterator[str]:
    """Table A4 of Zhao and Bethard 2020, and the same without the bias."""
    yield from ("## Change against baseline (do the rich get richer?)", "")
    columns = ["", "runs of", "τ as published", f"p < {LEVEL}", "of them above / below 0", "τ corrected"]
    yield from _head(columns, right=2)
    for comparison in comparisons:
        for group in list_groups(comparison):
            side = comparison.sel(group=group)
            significant, runs = side["baseline_p"] < LEVEL, int(side["runs"])
            signs = [int((significant & (sign * side["baseline_tau"] > 0)).sum()) for sign in (1, -1)]
            counts = f"{int(significant.sum())}/{runs}", f"{signs[0]} / {signs[1]}"
            corrected = format_spread(side["baseline_tau_corrected"]) or "none"
            tau = format_spread(side["baseline_tau"]) or "none"
            yield _row(describe_comparison(comparison), name_group(comparison, group), tau, *counts, corrected)
    yield ""
    without = [f"There is {lacking}." for lacking in dict.fromkeys(filter(None, map(_lacking, comparisons)))]
    yield " ".join([BIAS, *without, INDEPENDENT])
    yield ""


def _lacking(comparison: xr.Dataset) -> str:
    """The tau that is missing, and where that is so."""
    if bool(comparison["baseline_tau"].isnull().all()):
        return UNRANKED
    return UNCORRECTED if bool(comparison["baseline_tau_corrected"].isnull().all()) else ""


def _agreements(agreements: Mapping[str, Sequence[Consistencies]], other: str) -> Iterator[str]:
    """Table 4 of Zhao and Bethard 2020."""
    yield from (f"## Do the same heads score well on {other}?", "")
    yield from _head(["", "runs of", "τ between the corpora", f"p < {LEVEL}"], right=2)
    for row in zip_longest(*agreements.values()):
        for side, result in zip(agreements, row, strict=True):
            if result is not None:
                taus = format_spread(result.taus) or "none"
                yield _row(name_variable(result.variable), side, taus, f"{result.significant}/{len(result.taus)}")
    yield ""
    sentences = [f"Kendall's τ between the scores of the heads on the two corpora. {INDEPENDENT}"]
    with_runs = [name for name, results in agreements.items() if len(results[0].taus) > 1]
    if len(with_runs) == 2:
        for first, second in zip(*(agreements[name] for name in with_runs), strict=True):
            if p := format_p(rank_sum(first.taus, second.taus)):
                variable = name_variable(first.variable)
                sentences.append(f"{variable}: {with_runs[0]} against {with_runs[1]}, rank-sum, p = {p}.")
    yield " ".join(sentences)
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


def _list_significant(comparison: xr.Dataset) -> Iterator[str]:
    """How many heads a small q needs, which layers and how many heads have one, and where spreads are unequal."""
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


def print_comparison(comparison: xr.Dataset, console: Console) -> None:
    """Print what fine-tuning changed, in few lines: average and best head, layers, the heads that change most.

    Raises:
        TableError: it is no comparison.
    """
    comparison = in_percent(check_comparison(comparison))
    groups, digits = list_groups(comparison), count_digits(comparison)
    write = partial(console.print, highlight=False, markup=False, emoji=False)
    model = f"\n[bold]{escape(name_model(comparison.attrs['model']))}[/]: "
    heading = f"{describe_comparison(comparison)} before and after fine-tuning on {name_group(comparison, 'task')}"
    console.print(model + escape(heading), soft_wrap=True, highlight=False)
    runs = "; ".join(describe_group(comparison, group) for group in groups)
    corpus = name_corpus(comparison.attrs["corpus"])
    write(f"{corpus}: {comparison.attrs['heads']} heads{describe_left_out(comparison)}; {runs}")
    if differences := describe_differences(comparison):
        write(differences, style="bold")
    write(f"In {name_unit(comparison)}; mean ± standard deviation over runs\n")
    welch = ["Welch p", "ratio"] if "welch_p" in comparison else []
    after = [escape(f"after {name_group(comparison, group)}") for group in groups]
    grid = make_grid("head", "before", *after, "p", *welch, wraps=after)
    for which, name in (("average", "average"), ("best", f"best, {comparison.attrs['best_head']}")):
        ends = [format_spread(comparison[which].sel(group=group), digits) for group in groups]
        outcomes = [format_p(float(select_outcome(comparison, "p", f"{which}_")))]
        if welch:
            welch_p, ratio = (float(comparison[f"{which}_{end}"]) for end in ("welch_p", "spread_ratio"))
            outcomes += [format_p(welch_p), format_ratio(ratio)]
        grid.add_row(name, format_number(float(comparison[f"{which}_before"]), digits), *ends, *outcomes)
    console.print(grid)
    write(f"\np, q: {describe_test(comparison)[1]}.")
    for sentence in filter(None, (describe_null(comparison), describe_welch(comparison))):
        write(sentence)
    if few := describe_too_few(comparison):
        write(few, style="yellow")
    else:
        for sentence in _list_significant(comparison):
            write(sentence)
    most = [
        f"{head_name(layer, head)} {format_number(float(row['change'].sel(group='task')), digits, sign=True)}"
        for layer, head, row in _changing_most(comparison, 4)
    ]
    write(f"Changing most: {'   '.join(most) or 'no head changes'}")
    if not is_of_score(comparison):
        return
    taus = comparison.sel(group="task")
    sentence = lacking = _lacking(taus)
    if lacking != UNRANKED:
        corrected = lacking or f"{format_spread(taus['baseline_tau_corrected'])} corrected"
        sentence = f"τ {format_spread(taus['baseline_tau'])} as published, which chance pulls down; {corrected}"
    write(f"Change against baseline (do the rich get richer?): {sentence}")
