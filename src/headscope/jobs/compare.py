"""The comparison of head tables before and after fine-tuning, for all variables they share, written to a folder.

before, after (runs), control (runs) --compare each variable--> comparisons --view--> figures, tables, page
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from headscope import heads
from headscope.analyse import Consistencies, compare_variable, consistencies
from headscope.analyse.comparable import name_table
from headscope.errors import HeadscopeError, TableError
from headscope.files import MAX_NAME_BYTES, tell_apart, write_text
from headscope.jobs.arguments import check_other_tables
from headscope.jobs.folder import OutputFolder, write_csv
from headscope.jobs.progress import Progress, ignore_progress, shows_progress
from headscope.score import HEAD, Score, over_directions, read_scores
from headscope.view.comparison import render_markdown
from headscope.view.comparison_frames import make_frames
from headscope.view.figures import save
from headscope.view.figures.changes import draw_baseline_scatter, draw_change_heatmaps, draw_layer_boxes
from headscope.view.figures.runs import draw_pairs, pair_comparisons
from headscope.view.page import write_comparison_page
from headscope.view.wording import check_comparison, describe_comparison, is_of_score

FREQUENT = 12
"""Rows of a score that are compared unless some are named, most frequent first."""

BY_HEAD = ("run", "layer", "head")
"""Dimensions that a comparison has itself; each attention type of an encoder-decoder is compared alone."""

Place = Mapping[str, str | int]

TableSource = str | Path | xr.Dataset
"""A head table, or the file that holds it."""


@dataclass(frozen=True)
class Entry:
    """A variable to compare, and its place along the dimensions other than heads and runs."""

    variable: str
    where: Place

    @property
    def name(self) -> str:
        """The name in file names: ``token_class_mass-noun``; the end of one that is too long for them is hashed."""
        name = re.sub(r"[^\w.-]", "_", "-".join([self.variable, *map(str, self.where.values())]))
        if len(name.encode()) <= MAX_NAME_BYTES:
            return name
        digest = hashlib.sha256(self.label.encode()).hexdigest()[:16]
        beginning = name.encode()[: MAX_NAME_BYTES - len(digest) - 1].decode(errors="ignore")
        return f"{beginning}-{digest}"

    @property
    def label(self) -> str:
        """The name in texts: ``token_class_mass noun``."""
        return " ".join([self.variable, *map(str, self.where.values())])


@dataclass(frozen=True)
class ComparisonResult:
    """What `compare` computed and wrote.

    Attributes:
        comparisons: the result of `headscope.compare_variable` for each variable.
        agreements: for the model before tuning and for each group of runs, the rank agreement of the heads between the
            two corpora, variable by variable.
        other: name of the other corpus; empty if there is none.
        left_out: sentences that say what was not compared, and why.
        folder: the folder.
        files: all files, relative to `folder`.
    """

    comparisons: tuple[xr.Dataset, ...]
    agreements: Mapping[str, Sequence[Consistencies]]
    other: str
    left_out: tuple[str, ...]
    folder: Path
    files: tuple[str, ...]


@dataclass(frozen=True)
class Tables:
    """The head tables of one corpus: of the model before tuning, of the runs, and of the runs of the control."""

    before: xr.Dataset
    after: xr.Dataset
    control: xr.Dataset | None = None

    @classmethod
    def read(cls, before: TableSource, after: TableSource, control: TableSource | None) -> "Tables":
        """The tables, read where they are paths."""
        return cls(_read(before), _read(after), None if control is None else _read(control))

    def have(self, entry: Entry) -> bool:
        """True if every table has a value of the entry for some head."""
        tables = (self.before, self.after, self.control)
        return all(_has(table, entry) for table in tables if table is not None)


@shows_progress
def compare(
    before: TableSource,
    after: TableSource,
    control: TableSource | None = None,
    *,
    other_before: TableSource | None = None,
    other_after: TableSource | None = None,
    other_control: TableSource | None = None,
    variables: Sequence[str] = (),
    out: str | Path = "headscope-compare",
    progress: Progress | bool | None = None,
) -> ComparisonResult:
    """Compare head tables before and after tuning, and write comparisons, tables, figures and a page.

    Args:
        before: the head table of the model before it was tuned, or its file.
        after: that of the runs, on the same corpus.
        control: that of the runs on the task's control.
        other_before: the head table before tuning on another corpus, for the agreement between corpora.
        other_after: that of the runs, on the other corpus.
        other_control: that of the runs on the control, on the other corpus.
        variables: what to compare, as ``NAME`` or ``NAME:DIMENSION=PLACE,...``; without a place, all places are
            compared. Default: the scores that the tables have, and the attention to classes of tokens.
        out: the folder for ``comparison.md``, ``comparison.html``, ``comparisons/``, ``figures/``, ``tables/`` and
            ``comparison.json``, which lists them. An older comparison in it is replaced; other files are left alone.
        progress: True shows it, False does not; a function is called with the step, how much of it is done, and how
            much there is. Default: shown on a terminal and in a notebook.

    Raises:
        HeadscopeError: in one sentence, what was wrong with a table, a variable or the folder.
    """
    check_other_tables(control, other_before, other_after, other_control)
    progress = progress if callable(progress) else ignore_progress
    with OutputFolder("the comparison", Path(out), "comparison.json", (), progress=progress) as folder:
        tables = Tables.read(before, after, control)
        entries, left_out = _choose_entries(tables, variables)
        comparisons = []
        for done, entry in enumerate(entries):
            progress("comparing", done, len(entries))
            comparison = compare_variable(
                tables.before, tables.after, tables.control, entry.variable, where=entry.where
            )
            comparisons.append(check_comparison(comparison))
        agreements: dict[str, list[Consistencies]] = {}
        other = ""
        if other_before is not None and other_after is not None:
            others = Tables.read(other_before, other_after, other_control)
            other = str(others.before.attrs["corpus"])
            agreements, missing = _compare_corpora(tables, others, entries, comparisons[0], progress)
            left_out += missing
        labels = [entry.label for entry in entries]
        facts = {"variables": labels, "left_out": left_out, "task": comparisons[0].attrs["task"]}
        files = folder.write(
            lambda fresh: _fill(fresh, tables, entries, comparisons, agreements, other, progress), facts
        )
    return ComparisonResult(tuple(comparisons), agreements, other, tuple(left_out), folder.path, files)


def _read(table: TableSource) -> xr.Dataset:
    return table if isinstance(table, xr.Dataset) else heads.read_table(table)


def _choose_entries(tables: Tables, variables: Sequence[str]) -> tuple[list[Entry], list[str]]:
    """The entries to compare, and sentences about those that are left out."""
    if variables:
        named = [entry for text in variables for entry in _parse_entries(tables.before, text)]
        return list({(entry.variable, *entry.where.items()): entry for entry in named}.values()), []
    entries, left_out = [], []
    for score in read_scores(tables.before):
        variable = score.variable
        places, rarer = _usual(tables.before, score)
        present = [entry for entry in (Entry(variable, place) for place in places) if _has(tables.before, entry)]
        shared = [entry for entry in present if tables.have(entry)]
        entries += shared
        if rarer:
            example = f"--variable {variable}:{score.row_dimension(tables.before)}=NAME"
            left_out.append(f"{rarer} rarer {score.rows} were not compared; name one as {example}.")
        if lacking := len(present) - len(shared):
            left_out.append(f"{lacking} of {variable} were not compared, because not every table has values of them.")
    if not entries:
        raise TableError(
            f"{name_table(tables.before, 'the table before')} and the tables after have no score in common; name a "
            "variable with --variable, such as --variable mass_sep."
        )
    return entries, left_out


def _usual(before: xr.Dataset, score: Score) -> tuple[list[Place], int]:
    """The places of a score that are compared unless some are named, and how many rows are not among them.

    Of a score with directions each row is compared in the direction of its reported head.
    """
    dim = score.row_dimension(before)
    if not dim:
        return _places(before, score.variable, {}), 0
    values = before[score.variable]
    known = values.notnull().any([other for other in values.dims if other != dim])
    rows = [str(row) for row in before[dim].values[known.values]]
    frequent = sorted(sorted(rows, key=lambda row: -score.count(before, {dim: row}))[:FREQUENT], key=rows.index)
    places = []
    for row in frequent:
        direction = {"direction": _direction(before, score, {dim: row})} if "direction" in values.dims else {}
        places += _places(before, score.variable, {dim: row, **direction})
    return places, len(rows) - len(frequent)


def _direction(before: xr.Dataset, score: Score, place: Mapping[str, str]) -> str:
    """The direction of a row's reported head; if none is reported, that of its best head."""
    reported = f"{score.report_prefix}reported_direction"
    if reported in before and (direction := str(before[reported].sel(place).item())):
        return direction
    values = over_directions(before, score.variable).sel(place)
    best = values.max([dim for dim in HEAD if dim in values.dims and dim != "direction"])
    return str(best["direction"].values[int(best.values.argmax())])


def _places(before: xr.Dataset, variable: str, where: Place) -> list[Place]:
    """All places of a variable that agree with `where`."""
    dims = [str(dim) for dim in before[variable].dims if dim not in BY_HEAD]
    along = [[where[dim]] if dim in where else before[dim].values.tolist() for dim in dims]
    return [dict(zip(dims, labels, strict=True)) for labels in product(*along)]


def _parse_entries(before: xr.Dataset, text: str) -> list[Entry]:
    """The entries that ``NAME:DIMENSION=PLACE,...`` names; if none of them has a value, one, which is then refused."""
    variable, _, places = text.partition(":")
    name = name_table(before, "the table before")
    if variable not in before:
        known = _list_head_variables(before)
        raise TableError(f"--variable {text}: {name} has no variable {variable!r}; it has {known}.")
    where: dict[str, str | int] = {}
    for part in filter(None, places.split(",")):
        dim, separator, label = part.partition("=")
        if not separator or dim not in before[variable].dims or dim in BY_HEAD:
            example = "NAME:DIMENSION=PLACE, such as token_class_mass:token_class=noun"
            raise HeadscopeError(f"--variable {text}: {part!r} is no place of {variable}; write {example}.")
        labels = {str(place): place for place in before[dim].values.tolist()}
        if label not in labels:
            raise TableError(f"--variable {text}: {name} has no {dim} {label!r}; it has {', '.join(labels)}.")
        where[dim] = labels[label]
    if not {"layer", "head"} <= set(before[variable].dims):
        known = _list_head_variables(before)
        raise TableError(f"--variable {text}: {variable} is not of each head; {name} has {known}.")
    entries = [Entry(variable, place) for place in _places(before, variable, where)]
    return [entry for entry in entries if entry.where == where or _has(before, entry)] or entries[:1]


def _list_head_variables(table: xr.Dataset) -> str:
    """The names of the variables with a value for each head, without the sums by fold or permutation."""
    dims = {str(name): {*values.dims} for name, values in table.data_vars.items()}
    inner = {"fold", "permutation"}
    return ", ".join(name for name in dims if {"layer", "head"} <= dims[name] and not inner & dims[name])


def _has(table: xr.Dataset, entry: Entry) -> bool:
    """True if a table has a value of an entry for some head."""
    known = all(dim in table.coords and label in table[dim].values for dim, label in entry.where.items())
    if entry.variable not in table or not known:
        return False
    return bool(np.isfinite(table[entry.variable].sel(dict(entry.where)).values).any())


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
