"""A paper as data: what it measured, what it claims, and how its claims stand on head tables of one's own.

`judge` needs neither weights nor network: head tables go in, findings come out.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from headscope.errors import HeadscopeError, TableError

Verdict = Literal["agrees", "differs", "holds", "fails", "unclear", "shown", "not measured"]
VERDICTS: Mapping[Verdict, str] = {
    "agrees": "the corpus is the paper's, and so is the model where it matters; the same figure, to the last digit",
    "differs": "the corpus is the paper's, and so is the model where it matters; another figure",
    "holds": "another model or corpus; what the claim says of any model holds here, beyond what intervals there are",
    "fails": "another model or corpus; it does not hold here, beyond what intervals there are",
    "unclear": "another model or corpus; the intervals overlap",
    "shown": "another model or corpus, or another number of runs that are counted; side by side, not judged",
    "not measured": "for the reason in the last column",
}
"""How a claim stands: the verdicts, and what each means."""


class NotMeasuredError(HeadscopeError):
    """A head table that lacks what a claim is about; the message completes "not measured: ..."."""


@dataclass(frozen=True)
class Value:
    """A figure, as a paper prints it or as a head table gives it.

    Attributes:
        number: NaN where a paper gives a direction and no number.
        of: the head, offset or layers that it is of, such as ``8-11``.
        lower, upper: the 95 % interval; NaN where there is none.
        held_out: the same of the head (or offset) that was chosen on one half of the texts, scored on the other.
    """

    number: float
    of: str = ""
    lower: float = math.nan
    upper: float = math.nan
    held_out: "Value | None" = None

    @property
    def ends(self) -> tuple[float, float]:
        """The interval; the number itself where there is none."""
        return (self.number, self.number) if math.isnan(self.lower) else (self.lower, self.upper)

    @property
    def best_known(self) -> "Value":
        """The held-out value where there is one: the head was not chosen on what it is scored on."""
        return self.held_out or self


Read = Callable[..., Value]
"""Takes the tables that a claim is about, in their order, and returns a figure; raises `NotMeasuredError`."""


@dataclass(frozen=True)
class Pattern:
    """What a claim says of any model, whatever its figure: above one thing and below another.

    Attributes:
        says: in words.
        above, below: bounds, or what is read from the tables of the claim.
    """

    says: str
    above: Read | float = -math.inf
    below: Read | float = math.inf


@dataclass(frozen=True)
class Claim:
    """A figure that a paper prints.

    Attributes:
        where: in the paper: ``table 1, det``.
        what: the figure is.
        on: the measurements of the study that it is read from.
        paper: what the paper prints.
        read: gives the same from head tables.
        unit: of both.
        digits: decimals that the paper prints.
        pattern: what the claim says of any model, if anything.
        model: whose figure it is, one of `Study.models`; empty where it follows from the corpus alone.
        note: what a reader must know to compare the two.
        significant: digits that the paper prints of a p-value, instead of decimals.
    """

    where: str
    what: str
    on: tuple[str, ...]
    paper: Value
    read: Read
    unit: str = "%"
    digits: int = 1
    pattern: Pattern | None = None
    model: str = ""
    note: str = ""
    significant: int = 0

    @property
    def tolerance(self) -> float:
        """Half of the last digit that the paper prints."""
        if self.significant:
            return 0.5 * 10.0 ** (math.floor(math.log10(abs(self.paper.number))) - self.significant + 1)
        return 0.5 * 10.0**-self.digits


@dataclass(frozen=True)
class Measurement:
    """A head table that a study needs.

    Attributes:
        corpus: where the corpus lies in a folder of corpora; the end of the path suffices.
        source: what it is and where it comes from.
        reducers: what is measured on it.
        paper: what the paper measured.
        published: SHA-256 of the very files that the paper measured, where they are public.
        having: only documents that have a span of this kind; the others add nothing to the scores.
        sample: so many documents, drawn at random; by default all.
        max_tokens: documents are cut to this.
        of_task: in place of a corpus, the texts of the test split of the task that is fine-tuned on.
        tuned: what is measured of the runs beside `reducers`: what needs the model before as well.
    """

    corpus: str
    source: str
    reducers: tuple[str, ...]
    paper: str
    published: tuple[str, ...] = ()
    having: str = ""
    sample: int | None = None
    max_tokens: int | None = None
    of_task: bool = False
    tuned: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tuning:
    """What a study fine-tunes on. The control is the same task with arbitrary labels.

    The runs become the tables ``tuned_task`` and ``tuned_control``, with their scores at the task; what is measured of
    them, ``story_task`` and ``story_control`` where the measurement is ``story``.

    Attributes:
        tasks: names of tasks (`headscope.learn.tasks`); the first is the one that is taken if none is asked for.
        corpora: where the corpus of each lies in a folder of corpora.
        measured: the measurements that are made again of each run, or that need both models (`similarity`).
        epochs: of the paper.
        learning_rate: of the paper.
        paper: what the paper fine-tuned.
    """

    tasks: tuple[str, ...]
    corpora: Mapping[str, str]
    measured: tuple[str, ...]
    epochs: int
    learning_rate: float
    paper: str


@dataclass(frozen=True)
class Derived:
    """A table that follows from others.

    Attributes:
        on: the names of those.
        make: takes them in this order.
    """

    on: tuple[str, ...]
    make: Callable[..., xr.Dataset]


@dataclass(frozen=True)
class Recording:
    """How scores of heads that were recorded elsewhere are laid out: an ``.npz`` for each model.

    Attributes:
        arrays: the name of the array that a table is made of, by the table's name. Axes: layer, head, score; before
            them the runs, of a model that was fine-tuned.
        needed: tables without which there is nothing to compare.
        variables: what the last axis holds.
        units: of the scores.
        source: of the scores.
        task: what the runs of the task were fine-tuned on.
        notes: what a reader of these scores must know.
    """

    arrays: Mapping[str, str]
    needed: tuple[str, ...]
    variables: tuple[str, ...]
    units: str
    source: str
    task: str
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Printed:
    """A table as the paper lays it out.

    Attributes:
        title: what it is.
        make: takes all tables that there are, by name; a row a setting. Where a column is called ``X sd``, it is the
            deviation of column ``X``; ``X sig`` counts runs, of those in the column ``runs``, and ``X pos`` and
            ``X neg`` those of them upwards and downwards.
        digits: decimals.
        significant: digits of p-values, instead of decimals.
    """

    title: str
    make: Callable[[Mapping[str, xr.Dataset]], pd.DataFrame]
    digits: int = 1
    significant: int = 0


@dataclass(frozen=True)
class Study:
    """One paper.

    Attributes:
        title: authors, year and title.
        models: by the paper's names, the hub ids of the models that it has figures for; the first is the one that
            a model of another name is shown beside.
        measurements: the head tables, by name.
        claims: the figures.
        figures: the paper's pictures: name -> tables, and what permutations them.
        notes: what was mapped, mended or left out.
        tuning: what is fine-tuned, if anything.
        derived: tables that follow from those that are measured, by name.
        printed: the paper's tables of what fine-tuning changes, by name.
        misprints: of the paper, named wherever its figures are shown.
        recording: how recorded scores are laid out, if the paper's are.
    """

    title: str
    models: Mapping[str, tuple[str, ...]]
    measurements: Mapping[str, Measurement]
    claims: Sequence[Claim]
    figures: Mapping[str, tuple[tuple[str, ...], Callable[..., Figure]]]
    notes: Sequence[str] = ()
    tuning: Tuning | None = None
    derived: Mapping[str, Derived] = field(default_factory=dict)
    printed: Mapping[str, Printed] = field(default_factory=dict)
    misprints: Sequence[str] = ()
    recording: Recording | None = None

    def beside(self, tables: Mapping[str, xr.Dataset]) -> str:
        """The paper's name of the model whose figures stand beside those of some tables."""
        ours = {str(table.attrs["model"]) for table in tables.values()}
        same = [name for name, ids in self.models.items() if ours & set(ids)]
        return same[0] if same else next(iter(self.models))


@dataclass(frozen=True)
class Finding:
    """How a claim stands.

    Attributes:
        claim: the claim.
        ours: the figure of one's own; none where it was not measured.
        same: the model and the corpora are those of the paper, so that figures must agree.
        verdict: how it stands.
        why: why it was not measured.
    """

    claim: Claim
    ours: Value | None
    same: bool
    verdict: Verdict
    why: str = ""

    @property
    def difference(self) -> float:
        """Ours less the paper's; NaN where either has no number."""
        return math.nan if self.ours is None else self.ours.number - self.claim.paper.number


RECORDED = "recorded"
"""The attribute of tables that were made of recorded scores: the file."""

NOT_TUNED = "nothing was fine-tuned: give --seeds"


def derive(study: Study, tables: Mapping[str, xr.Dataset]) -> tuple[dict[str, xr.Dataset], dict[str, str]]:
    """The tables, with those that follow from them; and why others do not."""
    made, why = dict(tables), {}
    for name, one in study.derived.items():
        if name in made or any(on not in made for on in one.on):
            continue
        try:
            table = one.make(*(made[on] for on in one.on))
        except (NotMeasuredError, TableError) as error:
            why[name] = str(error).rstrip(".")
            continue
        made[name] = table
    return made, why


def judge(
    study: Study, tables: Mapping[str, xr.Dataset], absent: Mapping[str, str] | None = None
) -> tuple[Finding, ...]:
    """How the claims of a study stand on head tables.

    Figures are held against each other only where the model and the corpus are those of the paper: the
    model by its hub id, the corpus by its hash. Elsewhere they are shown side by side, and what is judged is
    the claim's pattern, on the held-out figure where there is one. Recorded scores are the paper's where their file
    is named after one of its models.

    Args:
        study: the paper.
        tables: by the names of its measurements; some may be missing.
        absent: why tables are missing.

    Returns:
        A finding for each claim about the model whose figures stand beside these tables, or about no model.
    """
    whose = study.beside(tables)
    made, why = derive(study, tables)
    why = {**dict(absent or {}), **why}
    return tuple(_judged(claim, study, made, why) for claim in study.claims if claim.model in ("", whose))


def _judged(claim: Claim, study: Study, tables: Mapping[str, xr.Dataset], absent: Mapping[str, str]) -> Finding:
    missing = [name for name in claim.on if name not in tables]
    if missing:
        return Finding(claim, None, False, "not measured", _why(study, missing, tables, absent))
    on = [tables[name] for name in claim.on]
    try:
        ours = _read(claim.read, on)
        same = all(_same(claim, study, name, table) for name, table in zip(claim.on, on, strict=True))
        # 3 of 10 runs are not 3 of 7.
        same = same and ("runs" not in claim.unit or ours.of == claim.paper.of)
        if same and not math.isnan(claim.paper.number):
            close = abs(ours.number - claim.paper.number) <= claim.tolerance * (1 + 1e-9)
            return Finding(claim, ours, same, "agrees" if close else "differs")
        return Finding(claim, ours, same, "shown" if claim.pattern is None else _holds(claim.pattern, ours, on))
    except (NotMeasuredError, TableError) as error:
        return Finding(claim, None, False, "not measured", str(error))


def _why(study: Study, missing: Sequence[str], tables: Mapping[str, xr.Dataset], absent: Mapping[str, str]) -> str:
    """Why tables are missing: of a derived one, why those are that it follows from."""
    sources = [on for name in missing if name in study.derived for on in study.derived[name].on if on not in tables]
    wanted = list(dict.fromkeys([*(name for name in missing if name not in study.derived or name in absent), *sources]))
    told = list(dict.fromkeys(absent[name] for name in wanted if name in absent))
    unknown = [name for name in wanted if name not in absent]
    if study.tuning and not told and any(_is_tuned(study, name) for name in unknown):
        return NOT_TUNED
    if unknown:
        told.append(f"there is no table of {' and '.join(unknown)}")
    return "; ".join(told)


def _is_tuned(study: Study, name: str) -> bool:
    return name not in study.measurements or study.measurements[name].of_task


def _read(read: Read, on: Sequence[xr.Dataset]) -> Value:
    value = read(*on)
    if math.isnan(value.number):
        raise NotMeasuredError("there is nothing of this kind in the corpus or the model")
    return value


def _same(claim: Claim, study: Study, name: str, table: xr.Dataset) -> bool:
    """Whether a table is the paper's own. What a user fine-tunes never is: its figures depend on the seeds."""
    published = study.measurements[name].published if name in study.measurements else ()
    corpus = RECORDED in table.attrs or table.attrs["corpus_sha256"] in published
    return corpus and (not claim.model or table.attrs["model"] in study.models[claim.model])


def _holds(pattern: Pattern, ours: Value, on: Sequence[xr.Dataset]) -> Verdict:
    value = ours.best_known.ends
    floor, ceiling = (
        (_read(bound, on).best_known if callable(bound) else Value(bound)).ends
        for bound in (pattern.above, pattern.below)
    )
    if value[0] > floor[1] and value[1] < ceiling[0]:
        return "holds"
    return "fails" if value[1] <= floor[0] or value[0] >= ceiling[1] else "unclear"
