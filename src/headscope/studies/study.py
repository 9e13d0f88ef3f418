"""A paper as data: its measurements, its claims, and their verdicts on other head tables.

`judge` needs neither weights nor network: it takes head tables and returns findings.
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
    "agrees": "the paper's corpus (and its model, where the value depends on it); the value is equal to the last digit",
    "differs": "the paper's corpus (and its model, where the value depends on it); the value is different",
    "holds": "another model or corpus; the claim's pattern holds here for all values within the intervals, and p < .05 "
    "where there is a test",
    "fails": "another model or corpus; the claim's pattern holds here for no value within the intervals, and p < .05 "
    "where there is a test",
    "unclear": "another model or corpus; the intervals hold both the pattern and its opposite, or p >= .05",
    "shown": "another model or corpus, or another number of runs; shown side by side, not judged",
    "not measured": "the note gives the reason",
}
"""The verdicts on a claim, and their meanings."""

SIGNIFICANT = 0.05
"""A p-value below this is significant; any other decides nothing, neither an effect nor that there is none."""


class NotMeasuredError(HeadscopeError):
    """A head table lacks what a claim needs; the message completes "not measured: ..."."""


@dataclass(frozen=True)
class Value:
    """A value, as a paper prints it or as a head table gives it.

    Attributes:
        number: NaN where a paper gives a direction and no number.
        detail: its head, offset, layers or runs, such as ``8-11``.
        lower, upper: the 95 % interval; NaN where there is none.
        p: the p-value of the number being 0; NaN where this is not tested.
        held_out: the value of the head (or offset) that was chosen on one half of the texts, scored on the other.
    """

    number: float
    detail: str = ""
    lower: float = math.nan
    upper: float = math.nan
    p: float = math.nan
    held_out: "Value | None" = None

    @property
    def ends(self) -> tuple[float, float]:
        """The interval; the number itself where there is none."""
        return (self.number, self.number) if math.isnan(self.lower) else (self.lower, self.upper)

    @property
    def best_known(self) -> "Value":
        """The held-out value where there is one: the head was not chosen on what it is scored on."""
        return self.held_out or self


Extractor = Callable[..., Value]
"""Takes the tables that a claim is about, in their order, and returns a value; raises `NotMeasuredError`."""


@dataclass(frozen=True)
class Pattern:
    """A relation that a claim states for any model: an effect, with its sign, is above one bound and below another.

    Attributes:
        says: the relation in words.
        above, below: bounds, or extractors that read them from the tables of the claim.
        effect: reads the effect if the claim's value is its p-value. Default: the claim's value is the effect.
    """

    says: str
    above: Extractor | float = -math.inf
    below: Extractor | float = math.inf
    effect: Extractor | None = None


@dataclass(frozen=True)
class Claim:
    """A value that a paper prints.

    Attributes:
        where: its place in the paper: ``table 1, det``.
        what: its description.
        on: the measurements of the study that it is read from.
        paper: the paper's value.
        read: reads the same value from head tables.
        unit: of both.
        digits: decimals that the paper prints.
        pattern: the relation that the claim states for any model, if any.
        model: the paper's model of this value, one of `Study.models`; empty where it follows from the corpus alone.
        note: what a reader must know to compare the two.
        significant: digits that the paper prints of a p-value, instead of decimals.
    """

    where: str
    what: str
    on: tuple[str, ...]
    paper: Value
    read: Extractor
    unit: str = "%"
    digits: int = 1
    pattern: Pattern | None = None
    model: str = ""
    note: str = ""
    significant: int = 0

    @property
    def tolerance(self) -> float:
        """Half a unit of the last digit that the paper prints."""
        if self.significant:
            return 0.5 * 10.0 ** (math.floor(math.log10(abs(self.paper.number))) - self.significant + 1)
        return 0.5 * 10.0**-self.digits


@dataclass(frozen=True)
class Measurement:
    """A head table that a study needs.

    Attributes:
        corpus: the path of the corpus in a folder of corpora, or its end.
        source: the name and origin of the corpus.
        reducers: the names of the reducers that are run on it.
        paper: the paper's own corpus.
        published: SHA-256 of the files that the paper measured, where they are public.
        having: take only documents with a span of this kind; the others add nothing to the scores.
        sample: the size of a random sample of documents; default: all.
        max_tokens: documents are cut to this length.
        of_task: in place of a corpus, take the texts of the test split of the tuning task.
        tuned: further reducers for the runs: those that also need the model before tuning.
        loss: a task head, and reducers of its loss, for weights that have it: table ``NAME_gradients``.
        disabled_by: in place of reducers, disable the heads of the runs so, on their task: table ``NAME_task`` alone.
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
    loss: tuple[str, ...] = ()
    disabled_by: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tuning:
    """The fine-tuning of a study. The control is the same task with arbitrary labels.

    The runs become the tables ``tuned_task`` and ``tuned_control``, with their scores on the task. A measurement
    ``story`` of the runs becomes the tables ``story_task`` and ``story_control``.

    Attributes:
        tasks: names of tasks (`headscope.learn.tasks`); the first is the default.
        corpora: the path of each task's corpus in a folder of corpora.
        measured: the measurements that are repeated for each run, or that need both models (`similarity`).
        epochs: of the paper.
        learning_rate: of the paper.
        paper: a description of the paper's own fine-tuning.
    """

    tasks: tuple[str, ...]
    corpora: Mapping[str, str]
    measured: tuple[str, ...]
    epochs: int
    learning_rate: float
    paper: str


@dataclass(frozen=True)
class Derived:
    """A table that is computed from other tables: `make` takes those that are named in `on`, in this order."""

    on: tuple[str, ...]
    make: Callable[..., xr.Dataset]


@dataclass(frozen=True)
class Recording:
    """The layout of head scores that were recorded elsewhere: an ``.npz`` for each model.

    Attributes:
        arrays: for each table, the name of its array: (if fine-tuned, run,) layer, head, score.
        needed: the tables that a comparison needs.
        variables: the names of the scores along the last axis.
        units, source: of the scores.
        task: the task that the runs were fine-tuned on.
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
    """A table in the layout of the paper.

    Attributes:
        title: its title.
        make: takes all tables by name, and returns a row for each setting. A column ``X sd`` is the standard
            deviation of column ``X``; ``X sig`` is the number of significant runs among those in the column ``runs``,
            ``X pos`` and ``X neg`` are the positive and the negative ones among them.
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
        models: hub ids of the models it has values for, by the paper's names; others are compared with the first.
        measurements: the head tables, by name.
        claims: the values that the paper prints.
        figures: the paper's figures: name -> tables, and the function that plots them.
        notes: what was mapped, corrected or left out.
        tuning: the fine-tuning, if there is any.
        derived: tables that are computed from measured tables, by name.
        printed: the paper's tables of the effects of fine-tuning, by name.
        misprints: of the paper, stated wherever its values are shown.
        recording: the layout of recorded scores, if the paper's are public.
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

    def paper_model(self, tables: Mapping[str, xr.Dataset]) -> str:
        """The paper's name of the model that some tables are compared with."""
        ours = {str(table.attrs["model"]) for table in tables.values()}
        same = [name for name, ids in self.models.items() if ours & set(ids)]
        return same[0] if same else next(iter(self.models))


@dataclass(frozen=True)
class Finding:
    """The verdict on a claim.

    Attributes:
        ours: the value measured here; None where it was not measured.
        same: the model and the corpora are those of the paper, so that the values must agree.
        why: the reason, where it was not measured.
    """

    claim: Claim
    ours: Value | None
    same: bool
    verdict: Verdict
    why: str = ""

    @property
    def difference(self) -> float:
        """Our value minus the paper's; NaN where either has no number."""
        return math.nan if self.ours is None else self.ours.number - self.claim.paper.number


RECORDED = "recorded"
"""The attribute of tables made from recorded scores that names their file."""

NOT_TUNED = "nothing was fine-tuned: give --seeds"


def derive(study: Study, tables: Mapping[str, xr.Dataset]) -> tuple[dict[str, xr.Dataset], dict[str, str]]:
    """The tables with the derived tables added, and the reasons why others cannot be derived."""
    tables, absent = dict(tables), {}
    for name, derived in study.derived.items():
        if name in tables or any(on not in tables for on in derived.on):
            continue
        try:
            tables[name] = derived.make(*(tables[on] for on in derived.on))
        except (NotMeasuredError, TableError) as error:
            absent[name] = str(error).rstrip(".")
    return tables, absent


def judge(
    study: Study, tables: Mapping[str, xr.Dataset], absent: Mapping[str, str] | None = None
) -> tuple[Finding, ...]:
    """The findings of a study on head tables: on each claim about the model that they are compared with, or about none.

    Values must be equal only where the model and the corpus are those of the paper: the model by its hub id, the
    corpus by its hash. Elsewhere they are shown side by side, and the claim's pattern is judged, on the held-out
    value where there is one. Recorded scores are the paper's own if their file is named after one of its models.
    A p-value has no sign: it agrees only if its effect is not significant in the direction opposite to the paper's.

    Args:
        study: the paper.
        tables: by the names of its measurements; some may be missing.
        absent: for missing tables, the reasons.
    """
    model = study.paper_model(tables)
    tables, reasons = derive(study, tables)
    reasons = {**(absent or {}), **reasons}
    return tuple(_judge_claim(claim, study, tables, reasons) for claim in study.claims if claim.model in ("", model))


def _judge_claim(claim: Claim, study: Study, tables: Mapping[str, xr.Dataset], absent: Mapping[str, str]) -> Finding:
    missing = [name for name in claim.on if name not in tables]
    if missing:
        return Finding(claim, None, False, "not measured", _explain_missing(study, missing, tables, absent))
    on = [tables[name] for name in claim.on]
    try:
        ours = _read_value(claim.read, on)
        same = all(_is_papers_own(claim, study, name, table) for name, table in zip(claim.on, on, strict=True))
        # 3 of 10 runs are not 3 of 7.
        same = same and ("runs" not in claim.unit or ours.detail == claim.paper.detail)
        if same and not math.isnan(claim.paper.number):
            close = abs(ours.number - claim.paper.number) <= claim.tolerance * (1 + 1e-9)
            return Finding(claim, ours, same, "agrees" if close and not _is_opposite(claim, ours, on) else "differs")
        return Finding(claim, ours, same, "shown" if claim.pattern is None else _check_pattern(claim.pattern, ours, on))
    except (NotMeasuredError, TableError) as error:
        return Finding(claim, None, False, "not measured", str(error))


def _explain_missing(
    study: Study, missing: Sequence[str], tables: Mapping[str, xr.Dataset], absent: Mapping[str, str]
) -> str:
    """The reasons why tables are missing; for a derived table, those of the tables that it is computed from."""
    sources = [on for name in missing if name in study.derived for on in study.derived[name].on if on not in tables]
    wanted = list(dict.fromkeys([*(name for name in missing if name not in study.derived or name in absent), *sources]))
    reasons = list(dict.fromkeys(absent[name] for name in wanted if name in absent))
    unknown = [name for name in wanted if name not in absent]
    before = [name for name, measurement in study.measurements.items() if not measurement.of_task]
    if study.tuning and not reasons and set(unknown) - set(before):
        return NOT_TUNED
    if unknown:
        reasons.append(f"there is no table of {' and '.join(unknown)}")
    return "; ".join(reasons)


def _read_value(read: Extractor, on: Sequence[xr.Dataset]) -> Value:
    value = read(*on)
    if math.isnan(value.number):
        raise NotMeasuredError("there is nothing of this kind in the corpus or the model")
    return value


def _is_papers_own(claim: Claim, study: Study, table_name: str, table: xr.Dataset) -> bool:
    """True for a table of the paper's own model and corpus; never for a user's fine-tuned runs, which have seeds."""
    model = table.attrs["model"]
    if claim.model and model not in study.models[claim.model]:
        return False
    if RECORDED in table.attrs:
        return any(model in ids for ids in study.models.values())
    return table_name in study.measurements and table.attrs["corpus_sha256"] in study.measurements[table_name].published


def _is_opposite(claim: Claim, ours: Value, on: Sequence[xr.Dataset]) -> bool:
    """True for a p-value of an effect that is significant in the direction opposite to the claim's."""
    pattern = claim.pattern
    return pattern is not None and pattern.effect is not None and _check_pattern(pattern, ours, on) == "fails"


def _check_pattern(pattern: Pattern, ours: Value, on: Sequence[xr.Dataset]) -> Verdict:
    effect = (_read_value(pattern.effect, on) if pattern.effect else ours).best_known
    if effect.p >= SIGNIFICANT:
        return "unclear"
    lower, upper = effect.ends
    floor, ceiling = (
        (_read_value(bound, on).best_known if callable(bound) else Value(bound)).ends
        for bound in (pattern.above, pattern.below)
    )
    if lower > floor[1] and upper < ceiling[0]:
        return "holds"
    return "fails" if upper <= floor[0] or lower >= ceiling[1] else "unclear"
