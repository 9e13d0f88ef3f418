"""The report of a table: the chosen head for each row of each score, next to its rivals.

The terminal and the page show the same rows in the same words; both come from here.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from headscope.analyse import list_highest
from headscope.analyse.folding import find_folded
from headscope.analyse.report import STANDS_OUT, UNDECIDED
from headscope.analyse.rivals import UNTRAINED
from headscope.score import Rival, Score, read_scores
from headscope.view.glosses import RowName, gloss_row, gloss_rule
from headscope.view.headings import name_head
from headscope.view.lengths import Part, list_parts
from headscope.view.offsets import format_offset

LEVEL = 0.05
"""The level of significance for p-values and false discovery rates."""


class Interval(NamedTuple):
    """A number, such as a score, and the ends of its 95 % interval; missing ends are NaN."""

    value: float
    lower: float
    upper: float


class RivalScore(NamedTuple):
    """A rival of a reported head, with its score and the lift of the head over it.

    Attributes:
        name: The name of the rival.
        label: The rule that was chosen.
        score: The score of the rival on the items of the head.
        lift: The score of the head less the score of the rival.
        options: The options that were chosen, by dimension.
        plain: The rule in plain words.
    """

    name: str
    label: str
    score: Interval
    lift: Interval
    options: Mapping[str, str]
    plain: str


class Replicated(NamedTuple):
    """A reported head on another corpus: its score, the numbers of items and folds, its lift, and the verdict."""

    score: Interval
    scored: int
    clusters: int
    lift: Interval
    rival: str
    verdict: str


@dataclass(frozen=True)
class Reported:
    """A row of a score with its reported head: the held-out score of the head, its rivals, and its verdict.

    Values that were not measured are NaN.

    Attributes:
        name, label: The name of the row: `name` is used under the title of the score, `label` without the title.
        plain: The name of the row in plain words.
        key: The key of the row among the rows of all scores.
        folded: The names of pooled rows that have the same items here; this row is shown in their place.
        folded_into: The name of the row that is shown in place of this row; empty if this row is shown.
        direction: The direction in which the score was taken; empty for a score without directions.
        attends: The word whose attention is measured.
        count: The number of items in the whole corpus.
        attention_type, layer, head: The head; layer and head are 0 if the items are too few to report one.
        score, scored: The score of the head, and the number of items on which it was scored.
        clusters: The number of folds with whole texts (or documents) that these items come from.
        lift: The score of the head less the score of the strongest rival.
        strongest: The name of the strongest rival; empty if there is none.
        detectable: The smallest lift that this sample would find in four of five cases.
        rivals: The rules, and the untrained model, that the head is compared with.
        offset: The best fixed offset in words; 0 if there is none.
        permuted: The mean score of the head over the permutations of the gold, on all documents.
        p: The p-value of the verdict, corrected for the rows.
        verdict: `STANDS_OUT`, `DOES_NOT`, `UNDECIDED` or `NOT_YET`; empty without a head.
        selection_frequency: The share of random halves that choose this head.
        parts: The score of the head on the items of each length, on all documents.
        replication: The head on another corpus; None without a head or without another corpus.
    """

    name: str
    label: str
    plain: RowName
    key: str
    folded: tuple[str, ...]
    folded_into: str
    direction: str
    attends: str
    count: int
    attention_type: str
    layer: int
    head: int
    score: Interval
    scored: int
    clusters: int
    lift: Interval
    strongest: str
    detectable: float
    rivals: tuple[RivalScore, ...]
    offset: int
    permuted: float
    p: float
    verdict: str
    selection_frequency: float
    parts: tuple[Part, ...]
    replication: Replicated | None = None

    @property
    def where(self) -> str:
        """The name of the head, preceded by its attention type if the model has several."""
        return name_head(self.layer, self.head, self.attention_type)

    @property
    def caption(self) -> str:
        """The plain name of the row, followed by its code if the two differ."""
        return self.label if self.plain.title == self.label else f"{self.plain.title} ({self.label})"

    @property
    def pooled(self) -> str:
        """The names in `folded`, as they are printed after the name of this row; empty if there are none."""
        return "".join(f" = {name}" for name in self.folded)

    @property
    def mark(self) -> str:
        """The character after the name of the head: ``*`` if it stands out, ``?`` if that is undecided, else empty."""
        return {STANDS_OUT: "*", UNDECIDED: "?"}.get(self.verdict, "")

    @property
    def stands_out(self) -> bool:
        """True if the head surely beats every rival and chance."""
        return self.verdict == STANDS_OUT

    @property
    def best_rule(self) -> RivalScore | None:
        """The rival with the highest score that is not the untrained model; None if there is none."""
        rules = [rival for rival in self.rivals if rival.name != UNTRAINED]
        return max(rules, key=lambda rule: rule.score.value, default=None)

    @property
    def strongest_rival(self) -> RivalScore | None:
        """The rival that the lift is measured over; None if there is none."""
        return next((rival for rival in self.rivals if rival.name == self.strongest), None)


@dataclass(frozen=True)
class Report:
    """The rows of one score, with their baselines.

    Attributes:
        score: The score by which heads are chosen.
        source: The paper that defines the score.
        rows: The rows, the most frequent relations first.
        baselines: Other scores to compare with, on all documents: the values of the rows, by the name of the baseline.
        left_out: The annotation that the corpus lacks for each rival that does not apply, by the title of the rival.
        remark: A sentence with the result of the regression of the score; empty without a regression.
    """

    score: Score
    source: str
    rows: tuple[Reported, ...]
    baselines: Mapping[str, Mapping[str, float]]
    left_out: Mapping[str, str]
    remark: str

    @property
    def shown_rows(self) -> tuple[Reported, ...]:
        """The rows that are not folded into another row."""
        return tuple(row for row in self.rows if not row.folded_into)

    @property
    def rows_with_heads(self) -> tuple[Reported, ...]:
        """The shown rows that have a head."""
        return tuple(row for row in self.shown_rows if row.layer > 0)

    @property
    def rare_rows(self) -> tuple[Reported, ...]:
        """The shown rows with too few items to report a head."""
        return tuple(row for row in self.shown_rows if row.layer == 0)

    @property
    def comparison(self) -> str:
        """Sentences with the baselines, and with the rivals that do not apply; empty if there are none."""
        parts = [
            f"{what}: {', '.join(f'{name} {value:.2f}'.strip() for name, value in values.items())}"
            for what, values in self.baselines.items()
        ]
        sentences = [f"To compare, on all documents: {'; '.join(parts)}."] if parts else []
        sentences += [
            f"Not compared with the {what}: the corpus has no {lacks}." for what, lacks in self.left_out.items()
        ]
        return " ".join(sentences)

    @property
    def permuted(self) -> str:
        """A sentence about how the gold was permuted; empty if there were no permutations."""
        if not self.score.permuted or all(math.isnan(row.permuted) for row in self.rows):
            return ""
        return f"Permuted: {self.score.permuted}."


_UNTRAINED = Rival(UNTRAINED, "best head of the untrained model", (), (), label="untrained model")


def read_reports(table: xr.Dataset) -> list[Report]:
    """Return the report of each score by which heads were chosen."""
    return [report for score in read_scores(table) if (report := read_report(table, score))]


def read_report(table: xr.Dataset, score: Score) -> Report | None:
    """Return the report of a score, or None if no head was chosen by it."""
    has_report = score.has_report and f"{score.report_prefix}reported_layer" in table
    return _report(table, score) if has_report else None


def list_rows(reports: Sequence[Report]) -> list[Reported]:
    """Return the rows of all reports that are shown and have a head."""
    return [row for report in reports for row in report.rows_with_heads]


def group_by_head(reports: Sequence[Report]) -> dict[tuple[str, int, int], list[Reported]]:
    """Return the rows that each head is reported for, by attention type (empty if only one), layer and head."""
    rows: dict[tuple[str, int, int], list[Reported]] = {}
    for row in list_rows(reports):
        rows.setdefault((row.attention_type, row.layer, row.head), []).append(row)
    return rows


def find_place(row: Mapping[Any, Any]) -> tuple[str, int, int]:
    """Return the attention type, layer and head in a row of a data frame: the key that `group_by_head` uses."""
    return row.get("attention_type", ""), row["layer"], row["head"]


def describe_regressions(table: xr.Dataset) -> list[str]:
    """Return a sentence on each score with a regression, for its best head (Zhao and Bethard 2020, 4.2)."""
    return list(filter(None, (_describe_regression(table, score) for score in read_scores(table))))


def _describe_regression(table: xr.Dataset, score: Score) -> str:
    coefficients = f"{score.stem}_label_coefficient"
    if not score.regression or coefficients not in table or not table[coefficients].notnull().any():
        return ""
    attention, gold = score.regression
    where = table[score.variable].argmax(...)
    names = ("label_coefficient", "distance_coefficient", "r_squared")
    label, distance, explained = (float(table[f"{score.stem}_{name}"].isel(where)) for name in names)
    larger = (table[coefficients] > 0) & (table[f"{score.stem}_label_q"] < LEVEL)
    ((name, _),) = list_highest(table, score.variable, 1)
    return (
        f"{attention[0].upper()}{attention[1:]}, in {name} (the head with the best {format_measure(score)}): "
        f"{label:+.3f} if {gold}, {distance:+.4f} for each word of distance; R² {explained:.2f}. In "
        f"{int(larger.sum())} of {int(table[score.variable].count())} heads it is larger {gold} (false "
        f"discovery rate below {LEVEL})."
    )


def format_measure(score: Score) -> str:
    """Return the measure of a score in words: ``accuracy``, ``F1``."""
    return score.measure.upper() if score.measure[-1:].isdigit() else score.measure


def _report(table: xr.Dataset, score: Score) -> Report:
    places, dim = score.places(table), score.row_dimension(table)
    # Single numbers are read a hundred times as fast from arrays as from a table.
    of_rows = (dim,) if dim else ()
    columns = {str(name): np.atleast_1d(v.values) for name, v in table.variables.items() if v.dims == of_rows}
    parts = list_parts(table, score)
    folded = find_folded(table, score)
    rows = tuple(
        _row(score, place, score.count(table, place), columns, parts, number, folded)
        for number, place in enumerate(places)
    )
    baselines = {}
    for variable, what in score.baselines.items():
        if variable in table:
            values = _baseline(table[variable], rows, places)
            baselines[what] = {name: value for name, value in values if not math.isnan(value)}
    present = {what: values for what, values in baselines.items() if values}
    source = str(table[score.variable].attrs["source"])
    left_out = {rival.title: rival.needs for rival in score.rivals if rival.needs and not rival.applies(table)}
    return Report(score, source, rows, present, left_out, _describe_regression(table, score))


def _row(
    score: Score, place: Mapping[str, str], count: int, columns: Mapping[str, np.ndarray],
    parts: Sequence[tuple[Part, ...]], number: int, folded: Mapping[str, str],
) -> Reported:  # fmt: skip
    """Return row `number` of a score; `columns` has the variables with a value for each row."""

    def read(name: str, otherwise: Any) -> Any:
        column = columns.get(score.report_prefix + name)
        return otherwise if column is None else column[number : number + 1].item()

    def value(name: str) -> float:
        return float(read(name, math.nan))

    def whole(name: str) -> int:
        return int(np.nan_to_num(value(name)))

    def interval(name: str) -> Interval:
        return Interval(value(f"{name}_{score.measure}"), value(f"{name}_lower"), value(f"{name}_upper"))

    def lift(name: str) -> Interval:
        return Interval(value(name), value(f"{name}_lower"), value(f"{name}_upper"))

    def rivals() -> Iterator[RivalScore]:
        for rival in (*score.rivals, _UNTRAINED):
            name = rival.name if rival is _UNTRAINED else f"heldout_{rival.name}"
            if math.isnan(lift(f"lift_over_{rival.name}").value):
                continue
            options = {dim: read(name if dim == rival.name else f"{name}_{dim}", "") for dim in rival.options}
            chosen = {dim: _format_option(option) for dim, option in options.items()}
            # Only an offset, which counts words, gets a sign.
            label = rival.describe({dim: format_offset(int(o)) if dim == "offset" else o for dim, o in chosen.items()})
            plain = gloss_rule(rival.name, label, chosen, direction)
            yield RivalScore(rival.name, label, interval(name), lift(f"lift_over_{rival.name}"), chosen, plain)

    def replication() -> Replicated | None:
        if not (verdict := read("replication_verdict", "")):
            return None
        titles = {rival.name: rival.title for rival in (*score.rivals, _UNTRAINED)}
        return Replicated(
            score=interval("replication"),
            scored=whole("replication_count"),
            clusters=whole("replication_clusters"),
            lift=lift("replication_lift"),
            rival=titles.get(read("replication_rival", ""), ""),
            verdict=verdict,
        )

    label = score.label.format(*place.values() or [score.title])
    name, direction = next(iter(map(str, place.values())), label), read("reported_direction", "")
    return Reported(
        name=name,
        label=label,
        plain=gloss_row(row_key(score, place), direction, label, score.items),
        key=row_key(score, place),
        folded=tuple(pooled for pooled, single in folded.items() if single == name),
        folded_into=folded.get(name, ""),
        direction=direction,
        attends=direction.partition("_to_")[0] or score.attends,
        count=count,
        attention_type=read("reported_attention_type", ""),
        layer=whole("reported_layer"),
        head=whole("reported_head"),
        score=interval("heldout"),
        scored=whole("heldout_count"),
        clusters=whole("heldout_clusters"),
        lift=lift("lift"),
        strongest=read("lift_rival", ""),
        detectable=value("lift_detectable"),
        rivals=tuple(rivals()),
        offset=whole("heldout_offset"),
        permuted=value("reported_permuted"),
        p=value("verdict_p"),
        verdict=read("reported_verdict", ""),
        selection_frequency=value("reported_selection_frequency"),
        parts=parts[number] if parts else (),
        replication=replication(),
    )


def row_key(score: Score, place: Mapping[str, str]) -> str:
    """Return the key of a row among all scores: ``relation:obj``, or ``scope_recall`` for a score without a report."""
    return ":".join((score.stem if score.has_report else score.variable, *place.values()))


def _format_option(option: Any) -> str:
    """Return the label of an option, with whole numbers as integers."""
    return str(int(option)) if isinstance(option, float) and option.is_integer() else str(option)


def _baseline(
    values: xr.DataArray, rows: tuple[Reported, ...], places: list[dict[str, str]]
) -> Iterator[tuple[str, float]]:
    """Yield the name of each row with a head, and the value of a baseline (for this head, if it differs by head)."""
    for row, place in zip(rows, places, strict=True):
        if row.layer > 0:
            head = {"attention_type": row.attention_type, "layer": row.layer, "head": row.head}
            where = place | {dim: head[dim] for dim in head if dim in values.dims}
            yield row.name if place else "", float(values.sel(where))
