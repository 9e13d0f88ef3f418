"""What tuning changed, for every variable that head tables have in common, into a folder.

before, after (runs), control (runs) --compare, variable by variable--> comparisons --view--> figures, tables, page
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from headscope import heads
from headscope.analyse import Consistencies, compare, consistencies
from headscope.analyse.comparable import called
from headscope.analyse.scores import SCORES
from headscope.errors import HeadscopeError, TableError
from headscope.files import atomic_write
from headscope.jobs.folder import Job, Progress
from headscope.view.changes import change_heatmaps, layer_boxes, rich_scatter
from headscope.view.comparison import frames, markdown
from headscope.view.figures import save
from headscope.view.run_figures import paired_dots, pairs
from headscope.view.wording import checked, scored, spoken

DEFAULT = ("scope_precision", "scope_recall", *SCORES, "token_class_mass")
"""The variables that are compared unless others are named."""

FREQUENT = 12
"""Relations that are compared unless some are named, most frequent first."""

BY_HEAD = ("run", "layer", "head")
"""Dimensions that a comparison has itself; each attention type of an encoder-decoder is compared alone."""

Place = Mapping[str, str | int]


@dataclass(frozen=True)
class Entry:
    """A variable, and its place along the dimensions that it has beside those of heads and runs."""

    variable: str
    where: Place

    @property
    def name(self) -> str:
        """For files: ``token_class_mass-noun``."""
        return re.sub(r"[^\w.-]", "_", "-".join([self.variable, *map(str, self.where.values())]))

    @property
    def label(self) -> str:
        """For people: ``token_class_mass noun``."""
        return " ".join([self.variable, *map(str, self.where.values())])


@dataclass(frozen=True)
class Compared:
    """What `write_comparison` made.

    Attributes:
        comparisons: for each entry, what `headscope.compare` returns.
        agreements: of the model before and of each group, how alike the heads score on the other corpus, by entry.
        other: the other corpus; empty where there is none.
        left_out: what was not compared, and why, in sentences.
        folder: where everything is.
        files: what was written, relative to `folder`.
    """

    comparisons: tuple[xr.Dataset, ...]
    agreements: Mapping[str, Sequence[Consistencies]]
    other: str
    left_out: tuple[str, ...]
    folder: Path
    files: tuple[str, ...]


@dataclass(frozen=True)
class Tables:
    """The head tables of one corpus: before tuning, of the runs, and of the runs of the control."""

    before: xr.Dataset
    after: xr.Dataset
    control: xr.Dataset | None = None

    @classmethod
    def read(cls, before: str | Path, after: str | Path, control: str | Path | None) -> "Tables":
        """The tables of these files."""
        return cls(heads.read(before), heads.read(after), None if control is None else heads.read(control))

    @property
    def every(self) -> list[xr.Dataset]:
        """Those that there are."""
        return [table for table in (self.before, self.after, self.control) if table is not None]

    def have(self, entry: Entry) -> bool:
        """Whether each has a value of an entry, of some head."""
        return all(_has(table, entry) for table in self.every)


def write_comparison(
    before: str | Path,
    after: str | Path,
    control: str | Path | None = None,
    *,
    others: tuple[str | Path, str | Path, str | Path | None] | None = None,
    variables: Sequence[str] = (),
    out: str | Path = "headscope-compare",
    progress: Progress | None = None,
) -> Compared:
    """Compare head tables before and after tuning, and write comparisons, tables, figures and a page.

    Args:
        before: the file of the head table of the model before it was tuned.
        after: of the runs that were tuned.
        control: of the runs of the control.
        others: the same three on another corpus, for the consistency across corpora.
        variables: what to compare, as ``NAME`` or ``NAME:DIMENSION=PLACE,...``; the rest of a variable's places are
            all compared. Default: the scores that the tables have, and the attention to classes of tokens.
        out: the folder for ``comparison.md``, ``comparisons/``, ``figures/``, ``tables/`` and ``comparison.json``,
            which lists them. An older comparison in it is replaced; other files are left alone.
        progress: is told of the progress.

    Raises:
        HeadscopeError: in one sentence, what was wrong with a table, a variable or the folder.
    """
    progress = progress or (lambda stage, done, total: None)
    job = Job("the comparison", Path(out), "comparison.json", (), progress=progress)
    job.check()
    tables = Tables.read(before, after, control)
    entries, left_out = _entries(tables, variables)
    comparisons = []
    for done, entry in enumerate(entries):
        progress("comparing", done, len(entries))
        found = compare(tables.before, tables.after, tables.control, entry.variable, where=entry.where)
        comparisons.append(checked(found))
    agreements: dict[str, list[Consistencies]] = {}
    other = ""
    if others is not None:
        there = Tables.read(*others)
        other = str(there.before.attrs["corpus"])
        agreements, missing = _agreements(tables, there, entries, comparisons[0], progress)
        left_out += missing
    about = {
        "variables": [entry.label for entry in entries],
        "left_out": left_out,
        "task": comparisons[0].attrs["task"],
    }
    written = job.write(lambda fresh: _fill(fresh, entries, comparisons, agreements, other, progress), about)
    return Compared(tuple(comparisons), agreements, other, tuple(left_out), job.folder, written)


def _entries(tables: Tables, variables: Sequence[str]) -> tuple[list[Entry], list[str]]:
    """What to compare, and what not."""
    if variables:
        asked = [entry for one in variables for entry in _asked(tables.before, one)]
        return list({entry.name: entry for entry in asked}.values()), []
    entries, left_out = [], []
    for variable in DEFAULT:
        if variable not in tables.before:
            continue
        places, more = _usual(tables.before, variable)
        there = [entry for entry in (Entry(variable, place) for place in places) if _has(tables.before, entry)]
        both = [entry for entry in there if tables.have(entry)]
        entries += both
        if more:
            left_out.append(
                f"{more} rarer relations were not compared; name one as --variable {variable}:relation=NAME."
            )
        if lacking := len(there) - len(both):
            left_out.append(f"{lacking} of {variable} were not compared, because not every table has values of them.")
    if not entries:
        raise TableError(
            f"{called(tables.before, 'the table before')} and the tables after have no score in common; name a "
            "variable with --variable, such as --variable mass_sep."
        )
    return entries, left_out


def _usual(before: xr.Dataset, variable: str) -> tuple[list[Place], int]:
    """The places of a variable that are compared unless some are named, and how many relations are not among them."""
    if variable != "relation_accuracy":
        return _places(before, variable, {}), 0
    counts = before["relation_count"]
    order = [str(name) for name in counts.sortby(-counts)["relation"].values if counts.sel(relation=name) > 0]
    frequent = [
        place
        for relation in order[:FREQUENT]
        for place in _places(before, variable, {"relation": relation, "direction": _direction(before, relation)})
    ]
    return frequent, len(order) - len(frequent)


def _direction(before: xr.Dataset, relation: str) -> str:
    """That of the reported head of a relation; where none is reported, that of its best head."""
    if "reported_direction" in before and (told := str(before["reported_direction"].sel(relation=relation).item())):
        return told
    best = (
        before["relation_accuracy"]
        .sel(relation=relation)
        .max([dim for dim in (*BY_HEAD, "attention_type") if dim in before.dims])
    )
    return str(best["direction"].values[int(best.values.argmax())])


def _places(before: xr.Dataset, variable: str, where: Place) -> list[Place]:
    """Every place of a variable that agrees with `where`."""
    dims = [str(dim) for dim in before[variable].dims if dim not in BY_HEAD]
    along = [[where[dim]] if dim in where else before[dim].values.tolist() for dim in dims]
    return [dict(zip(dims, labels, strict=True)) for labels in product(*along)]


def _asked(before: xr.Dataset, asked: str) -> Iterator[Entry]:
    """What ``NAME:DIMENSION=PLACE,...`` names."""
    variable, _, told = asked.partition(":")
    name = called(before, "the table before")
    if variable not in before:
        raise TableError(f"--variable {asked}: {name} has no variable {variable!r}; it has {_by_head(before)}.")
    where: dict[str, str | int] = {}
    for part in filter(None, told.split(",")):
        dim, parted, label = part.partition("=")
        if not parted or dim not in before[variable].dims or dim in BY_HEAD:
            raise HeadscopeError(
                f"--variable {asked}: {part!r} is no place of {variable}; write NAME:DIMENSION=PLACE, such as "
                "token_class_mass:token_class=noun."
            )
        places = {str(place): place for place in before[dim].values.tolist()}
        if label not in places:
            raise TableError(f"--variable {asked}: {name} has no {dim} {label!r}; it has {', '.join(places)}.")
        where[dim] = places[label]
    if not {"layer", "head"} <= set(before[variable].dims):
        raise TableError(f"--variable {asked}: {variable} is not of each head; {name} has {_by_head(before)}.")
    for place in _places(before, variable, where):
        entry = Entry(variable, place)
        if place == where or _has(before, entry):
            yield entry


def _by_head(table: xr.Dataset) -> str:
    """The variables that are of each head, and no sums by fold or draw."""
    inner = {"fold", "permutation"}
    found = [
        name for name, one in table.data_vars.items() if {"layer", "head"} <= set(one.dims) and not inner & {*one.dims}
    ]
    return ", ".join(map(str, found))


def _has(table: xr.Dataset, entry: Entry) -> bool:
    """Whether a table has a value of an entry, of some head."""
    if entry.variable not in table or not all(
        dim in table.coords and label in table[dim].values for dim, label in entry.where.items()
    ):
        return False
    return bool(np.isfinite(table[entry.variable].sel(dict(entry.where)).values).any())


def _agreements(
    tables: Tables, others: Tables, entries: Sequence[Entry], first: xr.Dataset, progress: Progress
) -> tuple[dict[str, list[Consistencies]], list[str]]:
    """How alike the heads score on the other corpus, for the entries that it has too."""
    task = str(first.attrs["task"]) or "task"
    sides = {"before": (tables.before, others.before), task: (tables.after, others.after)}
    if tables.control is not None and others.control is not None:
        sides["control"] = (tables.control, others.control)
    shared = [entry for entry in entries if others.have(entry)]
    found: dict[str, list[Consistencies]] = {name: [] for name in sides}
    for done, entry in enumerate(shared):
        progress("comparing corpora", done, len(shared))
        for name, (one, other) in sides.items():
            here, there = (table.sel(dict(entry.where)) for table in (one, other))
            found[name].append(replace(consistencies(here, there, entry.variable), variable=entry.label))
    missing = len(entries) - len(shared)
    told = (
        f"{missing} of {len(entries)} were not compared across corpora, because the other corpus has no values of them."
    )
    return (found if shared else {}), [told] if missing else []


def _fill(
    folder: Path,
    entries: Sequence[Entry],
    comparisons: Sequence[xr.Dataset],
    agreements: Mapping[str, Sequence[Consistencies]],
    other: str,
    progress: Progress,
) -> None:
    figures: dict[str, str] = {}
    for done, (entry, comparison) in enumerate(zip(entries, comparisons, strict=True)):
        progress("drawing", done, len(entries))
        heads.write(comparison, folder / "comparisons" / f"{entry.name}.nc")
        for name, frame in frames(comparison).items():
            with atomic_write(folder / "tables" / f"{entry.name}-{name}.csv") as temporary:
                frame.to_csv(temporary, index=False, float_format="%.6g")
        drawn = {"changes": change_heatmaps, "layers": layer_boxes, "rich": rich_scatter}
        told = {"changes": "change of every head", "layers": "change of layers", "rich": "before, and change"}
        for what, draw in drawn.items():
            if what == "rich" and not scored(comparison):
                continue
            figures[f"{spoken(comparison)}: {told[what]}"] = _saved(draw(comparison), folder, f"{entry.name}-{what}")
    of_entries = {spoken(comparison): comparison for comparison in comparisons}
    for of, told_so in (("average", "mean of all heads"), ("best", "the head that is best before")):
        figure = paired_dots(pairs(of_entries, of), comparisons[0], f"{told_so}, before and after")
        figures[f"{told_so}, before and after"] = _saved(figure, folder, f"pairs-{of}")
    with atomic_write(folder / "comparison.md") as temporary:
        temporary.write_text(markdown(comparisons, agreements, figures, other), encoding="utf-8")


def _saved(figure: Figure, folder: Path, name: str) -> str:
    """The picture for the page, relative to it."""
    png = next(path for path in save(figure, folder / "figures", name) if path.suffix == ".png")
    return png.relative_to(folder).as_posix()
