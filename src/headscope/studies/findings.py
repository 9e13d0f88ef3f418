"""The verdicts on the claims of a paper.

`judge` needs neither weights nor network: it takes head tables and returns findings.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import xarray as xr

from headscope.errors import TableError
from headscope.studies.study import RECORDED, SIGNIFICANT, Claim, Extractor, NotMeasuredError, Pattern, Study, Value

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

NOT_TUNED = "nothing was fine-tuned: give --seeds"


@dataclass(frozen=True)
class Finding:
    """The verdict on a claim.

    Attributes:
        claim: the claim.
        ours: the value measured here; None if it was not measured.
        same: true if the model and the corpora are the paper's own, so that the values must agree.
        verdict: the verdict.
        why: the reason why it was not measured; empty if it was.
    """

    claim: Claim
    ours: Value | None
    same: bool
    verdict: Verdict
    why: str = ""

    @property
    def difference(self) -> float:
        """Our value minus the paper's; NaN if either has no number."""
        return math.nan if self.ours is None else self.ours.number - self.claim.paper.number


def derive(study: Study, tables: Mapping[str, xr.Dataset]) -> tuple[dict[str, xr.Dataset], dict[str, str]]:
    """Return the tables together with the derived tables, and the reason for each derivation that failed."""
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
    """Return the findings of a study on head tables, for each claim about the model of the tables or about no model.

    Values must be equal only if the model and the corpus are the paper's own: the model by its hub id, the corpus by
    its hash. Otherwise they are shown side by side, and the claim's pattern is judged, on the held-out value if there
    is one. Recorded scores are the paper's own if their file is named after one of its models. A p-value has no sign:
    it agrees only if its effect is not significant in the direction opposite to the paper's.

    Args:
        study: the paper.
        tables: the tables by the names of their measurements; some may be missing.
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
        # 3 of 10 runs differ from 3 of 7.
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
    """Return the reasons why tables are missing; for a derived table, the reasons of its source tables."""
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
        raise NotMeasuredError("no head has a value: the corpus or the model has nothing to measure")
    return value


def _is_papers_own(claim: Claim, study: Study, table_name: str, table: xr.Dataset) -> bool:
    """Return whether a table is of the paper's own model and corpus; false for runs of a user, whose seeds differ."""
    model = table.attrs["model"]
    if claim.model and model not in study.models[claim.model]:
        return False
    if RECORDED in table.attrs:
        return any(model in ids for ids in study.models.values())
    return table_name in study.measurements and table.attrs["corpus_sha256"] in study.measurements[table_name].published


def _is_opposite(claim: Claim, ours: Value, on: Sequence[xr.Dataset]) -> bool:
    """Return whether a p-value is of an effect that is significant in the direction opposite to the claim's."""
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
