"""What a table reports: for each thing that is looked for the head that was chosen, beside its controls.

The terminal and the page show the same rows in the same words; both come from here.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import xarray as xr

from headscope.analyse import top_heads
from headscope.analyse.report import at_reported
from headscope.analyse.scores import SCORES, Score, scores_of
from headscope.heads import head_name

LEVEL = 0.05
"""Of the false discovery rate up to which a head stands out."""

PERMUTED = "the head's score where the gold stands elsewhere, links at the same length."
Q = (
    "how likely a head of so many is to score as much there (corrected for all heads; false discovery rate over the "
    "rows)."
)


class Interval(NamedTuple):
    """A score and the ends of its 95 % interval; NaN where there are none."""

    value: float
    lower: float
    upper: float


class Length(NamedTuple):
    """Links of one length: from the source to the target in words, how many, and the share that a head gets right."""

    length: int
    links: int
    accuracy: float


@dataclass(frozen=True)
class Hypothesis:
    """Something that heads are scored on, and how one speaks of it.

    Attributes:
        title: what heads are scored on.
        things: what its rows are, in the plural.
        score: what the score of a head is.
        label: of a row where the title does not stand above it; ``{}`` is the row's own name.
        attends: the word whose attention is looked at, where the table has no direction.
        permuted: what happens in a permutation, where it is not that links move.
        baselines: variables that hold what is scored without a head, or by it elsewhere, and what they are.
        blind: of these, what knows no gold, and so is a control.
    """

    title: str
    things: str
    score: str
    label: str = "{}"
    attends: str = ""
    permuted: str = ""
    baselines: Mapping[str, str] = field(default_factory=dict)
    blind: str = ""


HYPOTHESES: Mapping[str, Hypothesis] = {
    "relation_accuracy": Hypothesis(
        "Relations between words", "relations",
        "the share of links for which, of all other words, the one at one end attends most to the one at the other end",
    ),
    "antecedent_accuracy": Hypothesis(
        "Antecedents of mentions", "classes of mentions",
        "the share of mentions whose head word attends, of all other words, most to that of an antecedent",
        label="coref: {}", attends="mention", permuted="the antecedents of each mention go round its earlier mentions",
        baselines={
            "antecedent_nearest": "nearest earlier mention",
            "antecedent_head_match": "nearest with the same head word",
            "antecedent_rules": "rules that know the mentions",
        },
    ),
    "scope_f1": Hypothesis(
        "Scope of negation", "scopes of negation",
        "the F1 of the words that attend, of all other words, most to the cue, said to be its scope",
        label="scope, F1", attends="word", permuted="each scope goes round its sentence",
        baselines={"scope_all_f1": "all words of the sentence"},
        blind="scope_all_f1",
    ),
    "aspect_accuracy": Hypothesis(
        "Aspects in question", "targets",
        "the share of pairs of question and review in which the words that name the aspect attend, of all other words, "
        "most to the target",
        attends="question", baselines={"aspect_chance": "pointing blindly"}, blind="aspect_chance",
    ),
    "role_weight": Hypothesis(
        "Semantic roles", "weights of roles",
        "the largest weight between a predicate and what fills a role of it, as a mean over links",
        label="roles, weight", attends="either", baselines={"role_weight_anywhere": "this head, any two words"},
    ),
}  # fmt: skip
"""By the name of the score in the table."""


@dataclass(frozen=True)
class Reported:
    """One row: a head and, on the half on which it was not chosen, its score and those of its controls.

    What was not measured is NaN.

    Attributes:
        name, label: of what is looked for, under the title of the hypothesis and without it.
        attends: the word whose attention is looked at.
        count: how many there are in the whole corpus.
        attention type, layer, head: of the model; layer and head are 0 where too few are there to report one.
        score, scored: its score, and on how many.
        offset, at_offset: the best fixed offset in words, and its score.
        untrained: the score of the best head of an untrained model.
        blind: what scores without a head, on all documents.
        permuted: the score of the head where the gold stands elsewhere, on all documents.
        q: how likely a head of so many is to score as much there: a false discovery rate over the rows.
        detectable: the smallest rise above the offset that so many would show.
        wins: the share of random halves that choose this head.
        lengths: how well the head does on links of each length that there is, on all documents.
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
    blind: float
    permuted: float
    q: float
    detectable: float
    selection_frequency: float
    lengths: tuple[Length, ...]

    @property
    def where(self) -> str:
        """The name of the head, after that of its attention type if there are several."""
        return f"{self.attention_type} {head_name(self.layer, self.head)}".strip()

    @property
    def stands_out(self) -> bool:
        """Whether the head beats its controls beyond their intervals and its own, and chance."""
        above = [math.isnan(control) or self.score.lower > control for control in (self.untrained.upper, self.blind)]
        return self.score.lower > self.at_offset.upper and all(above) and not self.q >= LEVEL


@dataclass(frozen=True)
class Report:
    """All rows of one hypothesis.

    Attributes:
        hypothesis: what heads are scored on.
        source: the paper that defines the score.
        rows: what is looked for; the most frequent relations first.
        baselines: what else there is to compare with, on all documents: by what it is, the scores of rows.
        remark: what else there is to say.
    """

    hypothesis: Hypothesis
    source: str
    rows: tuple[Reported, ...]
    baselines: Mapping[str, Mapping[str, float]]
    remark: str

    @property
    def named(self) -> tuple[Reported, ...]:
        """The rows for which there is a head."""
        return tuple(row for row in self.rows if row.layer > 0)

    @property
    def comparison(self) -> str:
        """The baselines in a sentence; empty where there are none."""
        parts = []
        for what, scores in self.baselines.items():
            shares = [f"{name} {score:.2f}".strip() for name, score in scores.items()]
            parts.append(f"{what}: {', '.join(shares)}")
        return f"To compare, on all documents: {'; '.join(parts)}." if parts else ""


def reports(table: xr.Dataset) -> list[Report]:
    """What a table reports, by hypothesis."""
    scores = scores_of(table) if any(score in table for score in SCORES) else []
    return [_report(table, score) for score in scores if f"{score.prefix}reported_layer" in table]


def chosen(untrained: bool) -> str:
    """How heads are chosen and scored."""
    return (
        "The head for each relation: chosen on one half of the documents, scored on the other, like the best fixed "
        "offset (in words)" + (" and the best head of an untrained model." if untrained else ".")
    )


def rule(permuted: bool) -> str:
    """When a head stands out (`Reported.stands_out`)."""
    also = f", and q, if it has one, is below {LEVEL}" if permuted else ""
    return f"its interval lies above those of the controls{also}."


def regression(table: xr.Dataset) -> str:
    """What the attention of the head with the best F1 to a negation's cue depends on (Zhao and Bethard 2020, 4.2)."""
    if "scope_label_coefficient" not in table or not table["scope_label_coefficient"].notnull().any():
        return ""
    where = table["scope_f1"].argmax(...)
    label, distance, explained = (
        float(table[f"scope_{name}"].isel(where)) for name in ("label_coefficient", "distance_coefficient", "r_squared")
    )
    more = (table["scope_label_coefficient"] > 0) & (table["scope_label_q"] < LEVEL)
    ((name, _),) = top_heads(table, "scope_f1", 1)
    return (
        f"Attention of a word to the cue of a negation, in {name} (of the best F1): {label:+.3f} if in the scope, "
        f"{distance:+.4f} for each word of distance; R² {explained:.2f}. The scope adds to it in {int(more.sum())} of "
        f"{int(table['scope_f1'].count())} heads (false discovery rate below {LEVEL})."
    )


def _report(table: xr.Dataset, score: Score) -> Report:
    hypothesis = HYPOTHESES[score.variable]
    dims = table[f"{score.prefix}reported_layer"].dims
    places = [{str(dims[0]): name} for name in table[dims[0]].values] if dims else [{}]
    rows = tuple(_row(table, score, place) for place in places)
    baselines = {}
    for variable, what in hypothesis.baselines.items():
        if variable in table:
            found = _baseline(table[variable], rows, places)
            baselines[what] = {name: value for name, value in found if not math.isnan(value)}
    present = {what: scores for what, scores in baselines.items() if scores}
    remark = regression(table) if score.variable == "scope_f1" else ""
    return Report(hypothesis, str(table[score.variable].attrs["source"]), rows, present, remark)


def _row(table: xr.Dataset, score: Score, place: Mapping[str, str]) -> Reported:
    def value(name: str) -> float:
        return float(table[score.prefix + name].sel(place)) if score.prefix + name in table else math.nan

    def text(name: str) -> str:
        return str(table[score.prefix + name].sel(place).item()) if score.prefix + name in table else ""

    def whole(name: str) -> int:
        number = value(name)
        return 0 if math.isnan(number) else int(number)

    def interval(name: str) -> Interval:
        return Interval(value(f"{name}_{score.name}"), value(f"{name}_lower"), value(f"{name}_upper"))

    hypothesis = HYPOTHESES[score.variable]
    label = hypothesis.label.format(*place.values())
    direction = text("reported_direction").partition("_to_")[0]
    return Reported(
        name=next(iter(map(str, place.values())), label),
        label=label,
        attends=direction or hypothesis.attends,
        count=_count(table, score, place),
        attention_type=text("reported_attention_type"),
        layer=whole("reported_layer"),
        head=whole("reported_head"),
        score=interval("heldout"),
        scored=whole("heldout_count"),
        offset=whole("heldout_offset"),
        at_offset=interval("heldout_offset"),
        untrained=interval("untrained"),
        blind=float(table[hypothesis.blind].sel(place)) if hypothesis.blind in table else math.nan,
        permuted=value("reported_permuted"),
        q=value("reported_q"),
        detectable=value("heldout_detectable"),
        selection_frequency=value("reported_selection_frequency"),
        lengths=tuple(_lengths(table, place)) if score.variable == "relation_accuracy" else (),
    )


def _count(table: xr.Dataset, score: Score, place: Mapping[str, str]) -> int:
    name = f"{score.drawn}_count"
    return int(table[name].sel(place)) if name in table else 0


def _lengths(table: xr.Dataset, place: Mapping[str, str]) -> Iterator[Length]:
    if "length_accuracy" not in table or int(table["reported_layer"].sel(place)) == 0:
        return
    accuracy, count = at_reported(table, "length_accuracy").sel(place), table["length_count"].sel(place)
    for length in table["length"].values:
        if count.sel(length=length) > 0:
            yield Length(int(length), int(count.sel(length=length)), float(accuracy.sel(length=length)))


def _baseline(
    values: xr.DataArray, rows: tuple[Reported, ...], places: list[dict[str, str]]
) -> Iterator[tuple[str, float]]:
    """The baseline of each row that has a head; one that differs from head to head is that of the row's."""
    for row, place in zip(rows, places, strict=True):
        if row.layer > 0:
            head = {"attention_type": row.attention_type, "layer": row.layer, "head": row.head}
            where = place | {dim: head[dim] for dim in head if dim in values.dims}
            yield row.name if place else "", float(values.sel(where))
