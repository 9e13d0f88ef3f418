"""The comparison of head tables before and after fine-tuning, for all variables they share, written to a folder.

before, after (runs), control (runs) --compare each variable--> comparisons --view--> figures, tables, page
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import xarray as xr
from matplotlib.figure import Figure

from headscope import heads
from headscope.analyse import Consistencies, compare_variable, consistencies
from headscope.analyse.comparable import name_table
from headscope.commands.compare.entries import Entry, Tables, choose_entries
from headscope.commands.compare.request import Compare
from headscope.commands.folder import write_csv
from headscope.commands.output import open_folder
from headscope.commands.progress import Progress
from headscope.commands.recorded import REQUEST, record_request
from headscope.files import tell_apart, write_text
from headscope.view.comparison import render_markdown
from headscope.view.comparison_frames import make_frames
from headscope.view.figures import save
from headscope.view.figures.changes import draw_baseline_scatter, draw_change_heatmaps, draw_layer_boxes
from headscope.view.figures.runs import draw_pairs, pair_comparisons
from headscope.view.page import write_comparison_page
from headscope.view.wording import check_comparison, describe_comparison, is_of_score


@dataclass(frozen=True)
class ComparisonResult:
    """What `compare` computed and wrote.

    Attributes:
        comparisons: the result of `headscope.compare_variable` for each variable.
        agreements: for the model before tuning and for each group of runs, the rank agreement of the heads between the
            two corpora, variable by variable.
        other: name of the other corpus; empty if there is none.
        left_out: sentences that say what was not compared, and why.
        folder: the folder that was written; None if there is none.
        files: all files, relative to `folder`.
    """

    comparisons: tuple[xr.Dataset, ...]
    agreements: Mapping[str, Sequence[Consistencies]]
    other: str
    left_out: tuple[str, ...]
    folder: Path | None = None
    files: tuple[str, ...] = ()


def run(request: Compare, progress: Progress) -> ComparisonResult:
    """Compare each variable, and the corpora if there are two, and write the folder."""
    tables, others = request.tables, request.others
    with open_folder(request, progress) as folder:
        entries, left_out = choose_entries(tables, request.variables)
        recorded = _record(request)
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
        labels = [entry.label for entry in entries]
        facts = {"variables": labels, "left_out": left_out, "task": comparisons[0].attrs["task"]}
        files = folder.write(
            lambda fresh: _fill(fresh, tables, entries, comparisons, agreements, other, progress), facts
        )
    path = folder.path if folder.kept else None
    return ComparisonResult(tuple(comparisons), agreements, other, tuple(left_out), path, files)


def _record(request: Compare) -> dict[str, str]:
    """The request, as an attribute; a comparison has a call of its own, with the place of its variable."""
    names = {name: name_table(value, name) for name, value in vars(request).items() if isinstance(value, xr.Dataset)}
    return {REQUEST: record_request(request, **names)[REQUEST]}


def _compare_corpora(
    tables: Tables, others: Tables, entries: Sequence[Entry], first: xr.Dataset, progress: Progress
) -> tuple[dict[str, list[Consistencies]], list[str]]:
    """The rank agreement of the heads between two corpora, for the entries that both have."""
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


def _fill(
    folder: Path,
    tables: Tables,
    entries: Sequence[Entry],
    comparisons: Sequence[xr.Dataset],
    agreements: Mapping[str, Sequence[Consistencies]],
    other: str,
    progress: Progress,
) -> None:
    figures: dict[str, str] = {}
    stems = tell_apart(entry.name for entry in entries)
    for done, (stem, comparison) in enumerate(zip(stems, comparisons, strict=True)):
        progress("drawing", done, len(stems))
        heads.write_table(comparison, folder / "comparisons" / f"{stem}.nc")
        for name, frame in make_frames(comparison).items():
            write_csv(frame, folder / "tables" / f"{stem}-{name}.csv")
        plots = [
            ("changes", "change of every head", draw_change_heatmaps),
            ("layers", "change of layers", draw_layer_boxes),
        ]
        if is_of_score(comparison):
            plots.append(("baseline", "before, and change", draw_baseline_scatter))
        for name, title, draw in plots:
            figure = draw(comparison)
            figures[f"{describe_comparison(comparison)}: {title}"] = _save(figure, folder, f"{stem}-{name}")
    by_title = {describe_comparison(comparison): comparison for comparison in comparisons}
    for which, title in (("average", "mean of all heads"), ("best", "the head that is best before")):
        figure = draw_pairs(pair_comparisons(by_title, which), comparisons[0], f"{title}, before and after")
        figures[f"{title}, before and after"] = _save(figure, folder, f"pairs-{which}")
    write_text(render_markdown(comparisons, agreements, figures, other), folder / "comparison.md")
    write_comparison_page(tables.before, tables.after, tables.control, folder / "comparison.html")


def _save(figure: Figure, folder: Path, name: str) -> str:
    """Save a figure, and return the path of its picture relative to the page."""
    png = next(path for path in save(figure, folder / "figures", name) if path.suffix == ".png")
    return png.relative_to(folder).as_posix()
