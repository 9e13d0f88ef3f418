"""The report of a table: for each row of each score the head that was chosen, beside its baselines.

The terminal and the page show the same rows in the same words; both come from here.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from headscope.analyse import top_heads
from headscope.analyse.report import at_reported
from headscope.heads import head_name
from headscope.score import Score, read_scores

LEVEL = 0.05
"""Of the false discovery rate up to which a head stands out."""

Q = "permutation p-value, corrected for the number of heads and rows."


class Interval(NamedTuple):
    """A score and the ends of its 95 % interval; NaN where there are none."""

    value: float
    lower: float
    upper: float


class Part(NamedTuple):
    """The items of one length (or other part of the breakdown): their number, and the score of a head on them."""

    length: int
    items: int
    value: float


@dataclass(frozen=True)
class Reported:
    """One row: a head with its score on the half on which it was not chosen, and with its baselines.

    What was not measured is NaN.

    Attributes:
        name, label: of the row, under the title of its score and without it.
        attends: the word whose attention is looked at.
        count: its items in the whole corpus.
        attention_type, layer, head: of the model; layer and head are 0 where the items are too few to report one.
        score, scored: its score, and the number of items on which it was scored.
        offset, at_offset: the best fixed offset in words, and its score.
        untrained: the score of the best head of an untrained model.
        control: the score of the baseline that knows no gold, on all documents.
        permuted: the mean score of the head over the permutations of the gold, on all documents.
        q: the permutation p-value, corrected for the number of heads and rows.
        detectable: the smallest gain over the offset that this sample could detect.
        selection_frequency: the share of random halves that choose this head.
        parts: the score of the head on the items of each length, on all documents.
    """

    name: str
    label: str
    attends: str
    count: int
    attention_type: str
    layer: int
    head: int
    score: Interval
    scored: int
    offset: int
    at_offset: Interval
    untrained: Interval
    control: float
    permuted: float
    q: float
    detectable: float
    selection_frequency: float
    parts: tuple[Part, ...]

    @property
    def where(self) -> str:
        """The name of the head, after that of its attention type if there are several."""
        return f"{self.attention_type} {head_name(self.layer, self.head)}".strip()

    @property
    def stands_out(self) -> bool:
        """True where the head beats its baselines beyond their intervals and its own, and chance."""
        baselines = [self.at_offset.upper, self.untrained.upper, self.control]
        known = [baseline for baseline in baselines if not math.isnan(baseline)]
        compared = bool(known) or not math.isnan(self.q)
        return compared and all(self.score.lower > baseline for baseline in (0.0, *known)) and not self.q >= LEVEL


@dataclass(frozen=True)
class Report:
    """All rows of one score.

    Attributes:
        score: by which heads are chosen.
        source: the paper that defines it.
        rows: the most frequent relations first.
        baselines: other scores to compare with, on all documents: by what they are, those of the rows.
        remark: what the regression of the score shows; empty where it has none.
    """

    score: Score
    source: str
    rows: tuple[Reported, ...]
    baselines: Mapping[str, Mapping[str, float]]
    remark: str

    @property
    def rows_with_heads(self) -> tuple[Reported, ...]:
        """The rows for which there is a head."""
        return tuple(row for row in self.rows if row.layer > 0)

    @property
    def comparison(self) -> str:
        """The baselines in a sentence; empty where there are none."""
        parts = [
            f"{what}: {', '.join(f'{name} {value:.2f}'.strip() for name, value in values.items())}"
            for what, values in self.baselines.items()
        ]
        return f"To compare, on all documents: {'; '.join(parts)}." if parts else ""

    @property
    def permuted(self) -> str:
        """A sentence about how the gold was permuted; empty where there were no permutations."""
        if not self.score.permuted or all(math.isnan(row.permuted) for row in self.rows):
            return ""
        return f"Permuted: {self.score.permuted}."


def read_reports(table: xr.Dataset) -> list[Report]:
    """The reports of a table, by score."""
    scores = [score for score in read_scores(table) if score.has_report]
    return [_report(table, score) for score in scores if f"{score.report_prefix}reported_layer" in table]


def describe_choice(untrained: bool) -> str:
    """A sentence about how heads are chosen and scored."""
    baselines = "best fixed offset (in words)" + (" and the best head of the untrained model" if untrained else "")
    return f"Each head was chosen on one half of the documents and scored on the other, like the {baselines}."


def describe_standing(permuted: bool) -> str:
    """The condition under which a head stands out (`Reported.stands_out`)."""
    return f"the interval lies above those of all baselines{f', and q is below {LEVEL}' if permuted else ''}."


def describe_regressions(table: xr.Dataset) -> list[str]:
    """The regression of each score that has one, of the head with the best score (Zhao and Bethard 2020, 4.2)."""
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
    ((name, _),) = top_heads(table, score.variable, 1)
    return (
        f"{attention[0].upper()}{attention[1:]}, in {name} (the head with the best {format_measure(score)}): "
        f"{label:+.3f} if {gold}, {distance:+.4f} for each word of distance; R² {explained:.2f}. In "
        f"{int(larger.sum())} of {int(table[score.variable].count())} heads it is larger {gold} (false "
        f"discovery rate below {LEVEL})."
    )


def format_measure(score: Score) -> str:
    """The measure of a score in words: ``accuracy``, ``F1``."""
    return score.measure.upper() if score.measure[-1:].isdigit() else score.measure


def _report(table: xr.Dataset, score: Score) -> Report:
    places = score.places(table)
    rows = tuple(_row(table, score, place) for place in places)
    baselines = {}
    for variable, what in score.baselines.items():
        if variable in table:
            values = _baseline(table[variable], rows, places)
            baselines[what] = {name: value for name, value in values if not math.isnan(value)}
    present = {what: values for what, values in baselines.items() if values}
    source = str(table[score.variable].attrs["source"])
    return Report(score, source, rows, present, _describe_regression(table, score))


def _row(table: xr.Dataset, score: Score, place: Mapping[str, str]) -> Reported:
    def read(name: str, otherwise: Any) -> Any:
        variable = score.report_prefix + name
        return table[variable].sel(place).item() if variable in table else otherwise

    def value(name: str) -> float:
        return float(read(name, math.nan))

    def whole(name: str) -> int:
        return int(np.nan_to_num(value(name)))

    def interval(name: str) -> Interval:
        return Interval(value(f"{name}_{score.measure}"), value(f"{name}_lower"), value(f"{name}_upper"))

    label = score.label.format(*place.values() or [score.title])
    direction = read("reported_direction", "").partition("_to_")[0]
    return Reported(
        name=next(iter(map(str, place.values())), label),
        label=label,
        attends=direction or score.attends,
        count=score.count(table, place),
        attention_type=read("reported_attention_type", ""),
        layer=whole("reported_layer"),
        head=whole("reported_head"),
        score=interval("heldout"),
        scored=whole("heldout_count"),
        offset=whole("heldout_offset"),
        at_offset=interval("heldout_offset"),
        untrained=interval("untrained"),
        control=float(table[score.control].sel(place)) if score.control in table else math.nan,
        permuted=value("reported_permuted"),
        q=value("reported_q"),
        detectable=value("heldout_detectable"),
        selection_frequency=value("reported_selection_frequency"),
        parts=tuple(_parts(table, score, place)),
    )


def _parts(table: xr.Dataset, score: Score, place: Mapping[str, str]) -> Iterator[Part]:
    variable, dim = f"{score.breakdown}_{score.measure}", score.breakdown
    if not dim or variable not in table or int(table[f"{score.report_prefix}reported_layer"].sel(place)) == 0:
        return
    values = at_reported(table, variable, score.report_prefix).sel(place)
    counts = table[f"{dim}_count"].sel(place)
    for length, count, value in zip(table[dim].values, counts.values, values.values, strict=True):
        if count > 0:
            yield Part(int(length), int(count), float(value))


def _baseline(
    values: xr.DataArray, rows: tuple[Reported, ...], places: list[dict[str, str]]
) -> Iterator[tuple[str, float]]:
    """The baseline of each row that has a head; if it differs from head to head, that of the row's head."""
    for row, place in zip(rows, places, strict=True):
        if row.layer > 0:
            head = {"attention_type": row.attention_type, "layer": row.layer, "head": row.head}
            where = place | {dim: head[dim] for dim in head if dim in values.dims}
            yield row.name if place else "", float(values.sel(where))
