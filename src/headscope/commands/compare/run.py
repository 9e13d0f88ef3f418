"""The comparison of head tables before and after fine-tuning, for all variables that they share, written to a folder.

before, after (runs), control (runs) --compare each variable--> comparisons --view--> figures, tables, page
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from rich.console import Console

from headscope.analyse import Consistencies, compare_variable, consistencies
from headscope.analyse.comparable import name_table, runs_of, split_runs
from headscope.analyse.placebos import compare_with_placebos
from headscope.commands.compare.entries import Entry, Tables, choose_entries
from headscope.commands.compare.request import Compare
from headscope.commands.output import FIGURES, open_folder
from headscope.commands.progress import Progress
from headscope.commands.record import spell
from headscope.commands.recorded_request import REQUEST, record_request
from headscope.commands.sentences import print_written
from headscope.errors import TableError
from headscope.files import tell_apart
from headscope.results import Facts, Result
from headscope.view.comparison_frames import make_frames
from headscope.view.comparison_report import render_markdown
from headscope.view.comparison_summary import print_comparisons
from headscope.view.difference import can_pair, compare_tables, make_frame
from headscope.view.difference_report import summarize_sure
from headscope.view.figures.draw_changes import draw_baseline_scatter, draw_change_heatmaps, draw_layer_boxes
from headscope.view.figures.draw_runs import draw_pairs, pair_comparisons
from headscope.view.page import write_comparison_page
from headscope.view.placebo_report import make_placebo_frame
from headscope.view.wording import check_comparison, describe_comparison, is_of_score


@dataclass(frozen=True, repr=False)
class ComparisonResult(Result):
    """The results of `compare`, and the names of the files that it wrote.

    Attributes:
        comparisons: The result of `headscope.analyse.compare_variable` for each variable.
        agreements: The rank agreement of heads between the two corpora, variable by variable, for the model before
            tuning and for each group of runs.
        placebo: A row for each change of a head by an adapter, the largest change first: the score, its row, the head,
            the values before and after, the size of the change, how often a placebo changes any head as much (``p``),
            and the verdict. Its ``attrs`` have a sentence (``verdict``), the largest change of each placebo
            (``largest``) and the method (`headscope.analyse.placebos`). None without placebos.
        other: The name of the other corpus; empty if there is none.
        differences: For a single run, the scores compared text by text, as from `headscope.difference`; None for
            several runs, and if the texts cannot be paired.
        left_out: Sentences that name what was not compared, and why.
        folder: The folder; None if nothing was written.
        files: The names of all files, relative to the folder.
    """

    comparisons: tuple[xr.Dataset, ...]
    agreements: Mapping[str, Sequence[Consistencies]]
    other: str
    differences: pd.DataFrame | None
    left_out: tuple[str, ...]
    folder: Path | None = None
    files: tuple[str, ...] = ()
    placebo: pd.DataFrame | None = None

    @property
    def facts(self) -> Facts:
        """The compared variables, the other corpus, what was left out, and the files."""
        variables = tuple(describe_comparison(comparison) for comparison in self.comparisons)
        about = {"variables": variables, "other": self.other, "left_out": self.left_out}
        return {**about, "folder": self.folder, "files": self.files}


def run(request: Compare, progress: Progress) -> ComparisonResult:
    """Compare each variable, and both corpora if a second is given, and write the results to the folder."""
    tables, others = request.tables, request.others
    with open_folder(request, progress) as folder:
        entries, left_out = choose_entries(tables, request.variables)
        recorded = _record(request)
        placebo = _compare_with_placebos(request, entries)
        comparisons = []
        for done, entry in enumerate(entries):
            progress("comparing", done, len(entries))
            comparison = compare_variable(
                tables.before, tables.after, tables.control, entry.variable, where=entry.where
            )
            comparisons.append(check_comparison(comparison).assign_attrs(recorded))
        agreements: dict[str, list[Consistencies]] = {}
        other = ""
        if others is not None:
            other = str(others.before.attrs["corpus"])
            agreements, missing = _compare_corpora(tables, others, entries, comparisons[0], progress)
            left_out += missing
        changes, differences, unpaired = _pair(tables, entries)
        left_out += unpaired
        labels = [entry.label for entry in entries]
        facts = {"variables": labels, "left_out": left_out, "task": comparisons[0].attrs["task"]}
        stems = dict(zip(tell_apart(entry.name for entry in entries), comparisons, strict=True))
        figures = _list_figures(stems) if request.has_figures else {}
        pictures = {title: f"{FIGURES}/{name}.png" for title, (name, _) in figures.items()}
        files = _list_files(stems) | {
            "comparison.md": render_markdown(comparisons, agreements, pictures, other, differences, placebo),
            "comparison.html": partial(
                write_comparison_page, tables.before, tables.after, tables.control, changes=changes
            ),
        }
        frame = None if placebo is None else make_placebo_frame(placebo)
        files |= {} if differences is None else {"differences.csv": differences}
        files |= {} if frame is None else {"tables/placebo.csv": frame}
        written = folder.write(files, facts)
        result = ComparisonResult(
            tuple(comparisons), agreements, other, differences, tuple(left_out), folder.out, written, frame
        )
        request.hand_over(result)
        drawings = folder.draw(dict(figures.values()), pdf=request.pdf)
    return replace(result, files=tuple(sorted({*written, *drawings})))


def _compare_with_placebos(request: Compare, entries: Sequence[Entry]) -> xr.Dataset | None:
    """Compare the changes by an adapter with the changes by placebos; None without placebos.

    This compares all rows of each score, unless the request names variables.
    """
    if not request.placebos:
        return None
    whole: dict[str, Mapping[str, str | int]] = {entry.variable: {} for entry in entries}
    values = [(entry.variable, entry.where) for entry in entries] if request.variables else [*whole.items()]
    return compare_with_placebos(request.tables.before, request.tables.after, request.placebos, values)


def _record(request: Compare) -> dict[str, str]:
    """Return the request as an attribute of a table, without its call: each comparison records a call of its own."""
    names = {name: name_table(value, name) for name, value in vars(request).items() if isinstance(value, xr.Dataset)}
    names |= {"placebo": "placebo"} if isinstance(request.placebo, list) else {}
    return {REQUEST: record_request(request, **names)[REQUEST]}


def _pair(tables: Tables, entries: Sequence[Entry]) -> tuple[dict[str, xr.Dataset], pd.DataFrame | None, list[str]]:
    """Compare the scores of each head before and after on the same texts, for a single model after.

    Returns:
        The differences by variable, the differences as a frame, and sentences about what was not judged. For several
        runs, and if no score can be paired, they are empty, None and empty.
    """
    after, *others = split_runs(tables.after)
    if others:
        return {}, None, []
    if runs := runs_of(after):  # the table of a run has the hash of the model before tuning
        after = after.assign_attrs(weights_sha256=str(runs[0].get("weights_sha256", "")))
    variables = dict.fromkeys(entry.variable for entry in entries)
    paired = [variable for variable in variables if can_pair(tables.before, after, variable)]
    if not paired:
        return {}, None, []
    try:
        changes = compare_tables(tables.before, after, paired)
    except TableError as error:
        return {}, None, [f"no head was judged text by text: {error}"]
    return changes, make_frame(changes, tables.before, after), []


def _compare_corpora(
    tables: Tables, others: Tables, entries: Sequence[Entry], first: xr.Dataset, progress: Progress
) -> tuple[dict[str, list[Consistencies]], list[str]]:
    """Compare the ranks of heads between two corpora, for the entries that both corpora have.

    Returns:
        The agreements, by side (``before``, the task, ``control``); and a sentence if entries were left out.
    """
    task = str(first.attrs["task"]) or "task"
    sides = {"before": (tables.before, others.before), task: (tables.after, others.after)}
    if tables.control is not None and others.control is not None:
        sides["control"] = (tables.control, others.control)
    shared = [entry for entry in entries if others.have(entry)]
    agreements: dict[str, list[Consistencies]] = {name: [] for name in sides}
    for done, entry in enumerate(shared):
        progress("comparing corpora", done, len(shared))
        for name, pair in sides.items():
            here, there = (table.sel(dict(entry.where)) for table in pair)
            agreements[name].append(replace(consistencies(here, there, entry.variable), variable=entry.label))
    sentences = []
    if missing := len(entries) - len(shared):
        reason = "because the other corpus has no values of them"
        sentences.append(f"{missing} of {len(entries)} were not compared across corpora, {reason}.")
    return (agreements if shared else {}), sentences


def _list_files(comparisons: Mapping[str, xr.Dataset]) -> dict[str, Any]:
    """Return the tables and CSV files of each comparison, by file name."""
    files: dict[str, Any] = {f"comparisons/{stem}.nc": comparison for stem, comparison in comparisons.items()}
    for stem, comparison in comparisons.items():
        files |= {f"tables/{stem}-{name}.csv": frame for name, frame in make_frames(comparison).items()}
    return files


def _list_figures(comparisons: Mapping[str, xr.Dataset]) -> dict[str, tuple[str, Callable[[], Figure]]]:
    """Map the title of each figure to its file name and to the function that draws it."""
    figures: dict[str, tuple[str, Callable[[], Figure]]] = {}
    for stem, comparison in comparisons.items():
        plots = [
            ("changes", "change of every head", draw_change_heatmaps),
            ("layers", "change of layers", draw_layer_boxes),
        ]
        if is_of_score(comparison):
            plots.append(("baseline", "before, and change", draw_baseline_scatter))
        for name, title, draw in plots:
            figures[f"{describe_comparison(comparison)}: {title}"] = f"{stem}-{name}", partial(draw, comparison)
    by_title = {describe_comparison(comparison): comparison for comparison in comparisons.values()}
    first = next(iter(comparisons.values()))
    for which, heads in (("average", "mean of all heads"), ("best", "the head that is best before")):
        title = f"{heads}, before and after"
        figures[title] = f"pairs-{which}", partial(draw_pairs, pair_comparisons(by_title, which), first, title)
    return figures


def show(request: Compare, result: ComparisonResult, console: Console) -> None:
    """Print each comparison, the agreement between corpora, the parts that were left out, and the file to read."""
    verdicts = [] if result.placebo is None else [str(result.placebo.attrs["verdict"])]
    verdicts += [] if result.differences is None else [summarize_sure(result.differences)]
    print_comparisons(result.comparisons, console, verdicts=verdicts, whole=request.whole)
    for name, agreements in result.agreements.items():
        for agreement in agreements:
            console.print(f"On {result.other}, {name}: {agreement}", soft_wrap=True, markup=False, highlight=False)
    for sentence in result.left_out:
        line = spell(sentence, type(request))
        console.print(line, soft_wrap=True, markup=False, highlight=False, style="yellow")
    if result.folder is not None:
        print_written("Read", result.folder / "comparison.md", len(result.files), console, figures=request.has_figures)
