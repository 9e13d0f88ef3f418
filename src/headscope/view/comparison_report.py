"""A comparison in words: a page in Markdown."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import pandas as pd
import xarray as xr

from headscope.analyse import Consistencies, rank_sum
from headscope.analyse.change_against_baseline import BIAS
from headscope.analyse.ends import ENDS
from headscope.predictions import find_single_labels
from headscope.view.comparison_frames import make_frames, read_means
from headscope.view.difference_report import list_sure
from headscope.view.headings import name_corpus, name_model, name_row
from headscope.view.placebo_report import list_placebo_section
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
    describe_single_labels,
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
    name_outcome,
    name_unit,
    name_variable,
    select_outcome,
    select_standing,
)

MOST = 10
"""The number of heads that the page lists, the largest mean change first."""

UNCORRECTED = "no corrected τ where the tables have no sums by fold"

UNRANKED = "no τ where all heads score the same before, or all change by the same"

INDEPENDENT = "Kendall's p-values take heads as independent, which they are not."


def render_markdown(
    comparisons: Sequence[xr.Dataset],
    agreements: Mapping[str, Sequence[Consistencies]] | None = None,
    figures: Mapping[str, str] | None = None,
    other: str = "the other corpus",
    differences: pd.DataFrame | None = None,
    placebo: xr.Dataset | None = None,
) -> str:
    """Return a page (Markdown) about what fine-tuning changed in the heads of a model.

    Its sections are: averages and best heads, tests, surely different scores, layers, heads, change against baseline,
    and agreement between corpora.

    Args:
        comparisons: Comparisons of one model on one corpus, one for each variable, such as precision, recall and F1.
        agreements: The consistency of the scores of heads on two corpora, for each variable, by the name of the model
            before or of a group of runs.
        figures: The path of each figure, relative to the page, by its caption.
        other: The name of the second corpus of `agreements`.
        differences: For a single run, the data frame of `headscope.difference`.
        placebo: The test of the changes by an adapter against the changes by placebos, if there are placebos.

    Raises:
        TableError: `comparisons` has a table that is not a comparison.
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
    if placebo is not None:
        lines += ["", *list_placebo_section(placebo)][:-1]
    return "\n".join([*lines, "", *list_sections(comparisons, agreements, other, differences)]) + "\n"


def list_sections(
    comparisons: Sequence[xr.Dataset],
    agreements: Mapping[str, Sequence[Consistencies]] | None = None,
    other: str = "the other corpus",
    differences: pd.DataFrame | None = None,
) -> list[str]:
    """Return the lines of `render_markdown` below its heading, for a page with another heading."""
    comparisons = [in_percent(check_comparison(comparison)) for comparison in comparisons]
    first = comparisons[0]
    warnings = [describe_differences(first), *describe_single_labels(find_single_labels(first.attrs))]
    lines = [line for sentence in filter(None, warnings) for line in (f"**{sentence}**", "")]
    lines += [*_scores(comparisons), *_tests(comparisons)]
    lines += [] if differences is None else list_sure(differences)
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
    """Yield the section with the scores before and after, as in table 3 of Zhao and Bethard 2020."""
    groups = list_groups(comparisons[0])
    after = [f"after {name_group(comparisons[0], group)}" for group in groups]
    yield from ("## Before and after", "")
    contrast = ["task less control [95 %]", "ratio of spreads"] if "contrast" in comparisons[0] else []
    yield from _head(["", "head", "before", *after, *_name_gains(comparisons[0]), *contrast], right=2)
    for comparison in comparisons:
        digits, means = count_digits(comparison), read_means(comparison)
        for which, name in _name_means(comparison):
            ends = [format_spread(comparison[which].sel(group=group), digits) for group in groups]
            gains = _format_gains(comparison, means, f"{which}_")
            if contrast:
                less = (means[f"{which}_contrast{end}"] for end in ENDS)
                ratio = format_ratio(means[f"{which}_spread_ratio"])
                gains += [format_interval(*less, digits=digits, sign=True), ratio]
            before = format_number(means[f"{which}_before"], digits)
            yield _row(f"{describe_comparison(comparison)} ({name_unit(comparison)})", name, before, *ends, *gains)
    yield ""
    yield (
        "After: mean ± standard deviation over runs (of these runs, ddof 0, as in the paper). In brackets: the 95 % "
        "interval over runs of the mean change, by Student's t, and of the difference of two, by Welch's. The head "
        "that is best before was chosen by that score, so chance alone lets it fall."
    )
    yield ""


def _name_means(comparison: xr.Dataset) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return, for the mean over heads and for the best head, the prefix of its variables and its name on the page."""
    return ("average", "average"), ("best", f"best before, {comparison.attrs['best_head']}")


def _tests(comparisons: Sequence[xr.Dataset]) -> Iterator[str]:
    """Yield the section with the tests of the average and the best head, their null hypotheses, and too few runs."""
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
    """Yield each test of the average or the best head: its name, its number of runs, its p, and the smallest p."""
    task, means = name_group(comparison, "task"), read_means(comparison)
    if "p_least" in means:
        runs = f"{means['runs_task']:.0f} + {means['runs_control']:.0f}"
        yield f"{task} against control, rank-sum", runs, means[f"{which}_p"], means["p_least"]
        if not math.isnan(p := means[f"{which}_welch_p"]):
            yield f"{task} against control, Welch", runs, p, math.nan
    if means.get("pairs"):
        pairs = format_runs(int(means["pairs"])).replace("run", "pair")
        test = f"{task} against control by seed, signed-rank"
        yield test, pairs, means[f"{which}_paired_p"], means["paired_p_least"]
    for group in list_groups(comparison):
        test, runs = f"{name_group(comparison, group)} against before, signed-rank", f"{means[f'runs_{group}']:.0f}"
        yield test, runs, means[f"{which}_before_p_{group}"], means[f"before_p_least_{group}"]


def _layers(comparison: xr.Dataset) -> Iterator[str]:
    yield from _head(["layer", "before", *_name_gains(comparison), *_name_outcomes(comparison)], right=1)
    for row in make_frames(comparison)["layers"].to_dict("records"):
        start = format_number(row["layer_before"], count_digits(comparison))
        cells = [*_format_gains(comparison, row, "layer_"), *_format_outcomes(comparison, row, "layer_")]
        yield _row(str(row["layer"]), start, *cells)
    yield ""
    yield f"Means over the heads of a layer. p: {describe_test(comparison)[1]}; q: corrected for all layers."


def _name_gains(comparison: xr.Dataset) -> list[str]:
    """Return the column headings of `_format_gains`."""
    return [f"change, {name_group(comparison, group)} [95 %]" for group in list_groups(comparison)]


def _format_gains(comparison: xr.Dataset, row: Mapping[Any, float], prefix: str = "") -> list[str]:
    """Return the mean change of each group with its interval, as text."""
    names = [f"{prefix}change", *(f"{prefix or 'change_'}{end}" for end in ("lower", "upper"))]
    return [
        format_interval(*(row[f"{name}_{group}"] for name in names), digits=count_digits(comparison), sign=True)
        for group in list_groups(comparison)
    ]


def _name_outcomes(comparison: xr.Dataset) -> list[str]:
    """Return the column headings of `_format_outcomes`."""
    return ["p", "q", *(["Welch p", "Welch q", "ratio of spreads"] if "welch_q" in comparison else [])]


def _format_outcomes(comparison: xr.Dataset, row: Mapping[Any, float], prefix: str = "") -> list[str]:
    """Return p and q of a head or a layer as text; with a control, also Welch's p and q and the ratio of spreads."""
    names = [name_outcome(comparison, name, prefix) for name in ("p", "q")]
    if "welch_q" not in comparison:
        return [format_p(row[name]) for name in names]
    names += [f"{prefix}welch_p", f"{prefix}welch_q"]
    return [*(format_p(row[name]) for name in names), format_ratio(row[f"{prefix}spread_ratio"])]


def _heads(comparison: xr.Dataset) -> Iterator[str]:
    digits, after = count_digits(comparison), f"after {name_group(comparison, 'task')}"
    yield from _head(["head", "before", after, *_name_gains(comparison), *_name_outcomes(comparison)], right=1)
    for row in list_changing_most(comparison, MOST):
        place = {"layer": row["layer"], "head": row["head"], "group": "task"}
        start, end = format_number(row["before"], digits), format_spread(comparison["after"].sel(place), digits)
        yield _row(name_row(row), start, end, *_format_gains(comparison, row), *_format_outcomes(comparison, row))
    yield ""
    note = describe_too_few(comparison) or f"{describe_needed(comparison)} {_count_standing(comparison)}"
    yield f"p: {describe_test(comparison)[1]}; q: corrected for all heads. {note}"
    if spreads := describe_spreads(comparison):
        yield spreads


def _count_standing(comparison: xr.Dataset) -> str:
    """Return a sentence with the number of heads with a small q, and the numbers above and below the reference."""
    above, below = count_sides(comparison)
    count, standing = int((select_outcome(comparison, "q") <= LEVEL).sum()), int(select_standing(comparison).sum())
    sentence = f"{count} of {comparison.attrs['heads']} heads have q ≤ {LEVEL}"
    if "welch_q" in comparison and count:
        sentence += f", {standing} of them also Welch's q ≤ {LEVEL}"
    than = "with the control" if "control" in list_groups(comparison) else "before"
    return sentence + (f": {above} are higher than {than}, {below} lower." if above + below else ".")


def _change_against_baseline(comparisons: Sequence[xr.Dataset]) -> Iterator[str]:
    """Yield the section on change against baseline: tau as in table A4 of Zhao and Bethard 2020, and corrected."""
    yield from ("## Change against baseline (do the rich get richer?)", "")
    columns = ["", "runs of", "τ as published", f"p < {LEVEL}", "of them above / below 0", "τ corrected"]
    yield from _head(columns, right=2)
    for comparison in comparisons:
        for group, runs in make_frames(comparison)["runs"].groupby("group", sort=False):
            significant = runs["baseline_p"] < LEVEL
            signs = [int((significant & (sign * runs["baseline_tau"] > 0)).sum()) for sign in (1, -1)]
            counts = f"{int(significant.sum())}/{len(runs)}", f"{signs[0]} / {signs[1]}"
            tau, corrected = (format_spread(runs[f"baseline_tau{which}"]) or "none" for which in ("", "_corrected"))
            yield _row(describe_comparison(comparison), name_group(comparison, str(group)), tau, *counts, corrected)
    yield ""
    without = [f"There is {lacking}." for lacking in dict.fromkeys(filter(None, map(describe_lacking, comparisons)))]
    yield " ".join([BIAS, *without, INDEPENDENT])
    yield ""


def describe_lacking(comparison: xr.Dataset) -> str:
    """Return a phrase on the missing tau and the reason; an empty string if no tau is missing."""
    if bool(comparison["baseline_tau"].isnull().all()):
        return UNRANKED
    return UNCORRECTED if bool(comparison["baseline_tau_corrected"].isnull().all()) else ""


def _agreements(agreements: Mapping[str, Sequence[Consistencies]], other: str) -> Iterator[str]:
    """Yield the section on agreement between two corpora, as in table 4 of Zhao and Bethard 2020."""
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


def list_changing_most(comparison: xr.Dataset, count: int) -> list[dict[Any, Any]]:
    """Return the rows of the `count` heads that change most by the task, up or down; unchanged heads are left out."""
    heads = make_frames(comparison)["heads"]
    most = heads["change_task"].abs().sort_values(ascending=False, kind="stable")
    return heads.loc[most[most > 0].head(count).index].to_dict("records")


def _head(columns: Sequence[str], *, right: int) -> Iterator[str]:
    """Yield the first two lines of a table in Markdown; the first `right` columns align left, the others right."""
    yield _row(*columns)
    yield f"|{'|'.join(' --- ' if place < right else ' ---: ' for place in range(len(columns)))}|"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
