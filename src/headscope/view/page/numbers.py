"""The numbers of a page as plain lists, from a head table: data for ``scripts/numbers.js``."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pandas as pd
import xarray as xr

from headscope import heads
from headscope.analyse.head_roles import ROLE
from headscope.analyse.need import NEEDED
from headscope.analyse.report import score_held_out
from headscope.heads import head_name
from headscope.layers import read_without_attention
from headscope.score import HEAD, Score, read_scores
from headscope.view.answers import describe_heads
from headscope.view.glosses import TERMS, gloss_distance, gloss_row, gloss_statistic
from headscope.view.headings import describe_view, name_row
from headscope.view.offsets import best_offset
from headscope.view.page.average_maps import describe_maps
from headscope.view.page.head_map_data import describe_map
from headscope.view.page.nested import list_by_head, round_number
from headscope.view.page.reported_heads import format_address
from headscope.view.page.row_data import describe_rows
from headscope.view.reports import Report, format_measure, row_key
from headscope.view.verdicts import choose_opening

MOST_LABELS = 64
"""The largest number of labels in the further dimension of a variable; a variable with more labels is left out."""


@dataclass(frozen=True)
class PageView:
    """A head table that the grid of a page can show.

    Attributes:
        name: The name by which a reader chooses the view.
        table: A head table.
        python: A Python expression that reads the table.
        changes: The tested differences of scores from another view (`headscope.view.difference.compare_tables`), by
            variable.
    """

    name: str
    table: xr.Dataset
    python: str
    changes: Mapping[str, xr.Dataset] = field(default_factory=dict)


def describe_numbers(
    views: Sequence[PageView],
    reports: Sequence[Report],
    needed: pd.DataFrame,
    distances: xr.Dataset | None,
    against: str = "",
) -> dict[str, Any]:
    """Return the data of a page: the variables of its views with names, units and baselines, and the reported rows.

    Args:
        views: The views of the page. The page outside of the grid describes the first view.
        reports: The reports of the first view.
        needed: The heads of the first view with their effects (`headscope.view.need_report.list_needed_heads`).
        distances: A table with ``js_distance``, for the neighbours of each head.
        against: The name of the view with which the first view is compared when the page opens.
    """
    table = views[0].table
    return {
        "layers": table.sizes["layer"],
        "heads": table.sizes["head"],
        "without_attention": read_without_attention(table),
        "attention_types": _labels(table, "attention_type"),
        "directions": _labels(table, "direction"),
        "opening": _find_opening(table, reports),
        **_numbers(views[0]),
        "against": against,
        "views": [{"shows": describe_view(view.table), **_numbers(view)} for view in views[1:]],
        "rows": list(describe_rows(reports)),
        "terms": TERMS,
        "about": _describe_heads(table, reports, needed),
        "needed": [name_row(head) for head in needed.to_dict("records") if head["need"] == NEEDED],
        "map": describe_map(table, distances),
    }


def _find_opening(table: xr.Dataset, reports: Sequence[Report]) -> str:
    """Return the address that the page shows first: the roles of heads or, without roles, a reported row.

    With roles, the address selects the head with the largest lift in a role other than the most frequent role. It is
    empty if there are neither roles nor reported rows.
    """
    if ROLE in table:
        lift = table[f"{ROLE}_lift"].where(table[f"{ROLE}_has"] == 1).transpose("layer", "head", "role")
        codes, counts = np.unique(table[ROLE].values, return_counts=True)
        commonest = int(codes[counts.argmax()])
        rare = lift.isel(role=[role for role in range(lift.sizes["role"]) if role != commonest - 1]).max("role")
        chosen = rare if rare.notnull().any() else lift.max("role")
        place = np.unravel_index(int(chosen.fillna(-np.inf).values.argmax()), chosen.shape)
        return urlencode({"variable": ROLE, "head": head_name(int(place[0]) + 1, int(place[1]) + 1)})
    opening = choose_opening(reports)
    return format_address(opening) if opening else ""


def _numbers(view: PageView) -> dict[str, Any]:
    """Return the data of one view: its name, statistics, scores and maps."""
    return {
        "name": view.name,
        "python": view.python,
        "shares": name_shares(view.table),
        "statistics": list(_statistics(view.table)),
        "scores": list(_score_rows(view.table, view.changes)),
        "maps": describe_maps(view.table),
    }


def name_shares(table: xr.Dataset) -> str:
    """Return the unit of the weights of a table in the plural, such as ``shares of attention``."""
    return heads.get_share(table).replace("share", "shares", 1)


def _labels(table: xr.Dataset | xr.DataArray, dim: str) -> list[str]:
    return [str(label) for label in table[dim].values] if dim in table.dims else []


def _score_rows(table: xr.Dataset, changes: Mapping[str, xr.Dataset]) -> Iterator[dict[str, Any]]:
    """Yield the data of the rows of all scores; scores by which heads are reported come first."""
    scores = sorted(read_scores(table), key=lambda score: not score.has_report)
    titles = [score.title for score in scores]
    for score in scores:
        row = score.row_dimension(table)
        if {*table[score.variable].dims} <= {*HEAD, row}:
            alone = score.title if titles.count(score.title) == 1 else format_measure(score)
            yield from _rows_of_score(table, score, alone, changes.get(score.variable))


def _rows_of_score(table: xr.Dataset, score: Score, alone: str, change: xr.Dataset | None) -> Iterator[dict[str, Any]]:
    """Yield the data of each row of a score: names, count, baseline, values and intervals by direction.

    Args:
        table: A head table.
        score: A score of the table.
        alone: The name that is shown if the score has no rows.
        change: The tested difference from the same score of another view; None if it was not tested.
    """
    values = table[score.variable]
    layers, held_out = table.get(f"{score.report_prefix}reported_layer"), score_held_out(table, score)
    for place in score.places(table):
        row, key = values.sel(place), row_key(score, place)
        if not row.notnull().any():
            continue
        best = best_offset(table, score, place) if score.has_report else None
        baseline, what = _baseline_of_score(table, score, place)
        variables = {end: f"{score.variable}_{end}" for end in ("lower", "upper")}
        ends = {end: list_by_head(table[v].sel(place), "direction") for end, v in variables.items() if v in table}
        label = score.label.format(*place.values() or [score.title])
        has_head = layers is not None and bool(layers.sel(place) > 0)
        yield {
            "key": key,
            "select": {"variable": score.variable, "place": dict(place)},
            "name": " ".join(place.values()) or alone,
            "label": label if score.has_report else gloss_statistic(key, label),
            "plain": {
                way: gloss_row(key, way, label, score.items)._asdict() for way in _labels(row, "direction") or [""]
            },
            "title": score.title,
            "about": ": ".join(filter(None, (" ".join(place.values()), score.title, score.definition))),
            "note": _count_role(table, place) if score.variable == f"{ROLE}_score" else "",
            "measure": format_measure(score) if score.is_ratio else str(values.attrs["units"]),
            "source": str(values.attrs["source"]),
            "ranked": score.has_report,
            "attends": score.attends,
            "directed": "direction" in values.dims,
            "count": score.count(table, place) or None,
            "offset": best and best.offset,
            "offset_value": best and round_number(best.value),
            "control": what,
            "control_value": baseline,
            "values": list_by_head(row, "direction"),
            "held_out": list_by_head(held_out.sel(place), "direction") if has_head and held_out is not None else None,
            **ends,
            **({} if change is None else {"change": _describe_change(change.sel(place))}),
        }


def _describe_change(change: xr.Dataset) -> dict[str, Any]:
    """Return the verdict on the change of each head, as an index into a list of words, and its interval."""
    words, codes = np.unique(change["verdict"].values.astype(str), return_inverse=True)
    verdicts = change["verdict"].copy(data=codes.reshape(change["verdict"].shape))
    numbers = {"verdict": verdicts, "lower": change["difference_lower"], "upper": change["difference_upper"]}
    return {"words": words.tolist()} | {name: list_by_head(each, "direction") for name, each in numbers.items()}


def _count_role(table: xr.Dataset, place: Mapping[str, str]) -> str:
    """Return a sentence with the number of heads that have a role; even the best head of a role may not have it."""
    has, least = (table[f"{ROLE}_{name}"].sel(place) for name in ("has", "from"))
    count = int((has == 1).sum())
    heads = f"{count} head{'s have' if count > 1 else ' has'}" if count else "no head has"
    return f"From {100 * float(least):.0f} % on a head has this role, if it beats all rivals: {heads} it."


def _baseline_of_score(table: xr.Dataset, score: Score, place: Mapping[str, str]) -> tuple[float | None, str]:
    """Return the baseline of a row and its name; None and an empty name if the score has no single baseline."""
    if score.control not in table or table[score.control].sel(place).ndim:
        return None, ""
    return round_number(float(table[score.control].sel(place))), score.baselines[score.control]


def _statistics(table: xr.Dataset) -> Iterator[dict[str, Any]]:
    """Yield the data of each variable with a number for each head: first variables with a title, then others."""
    known = {name for score in read_scores(table) for name in _name_variables(score)}
    titled = [name for name in table.data_vars if table.variables[name].attrs.get("title")]
    others = [name for name in table.data_vars if name not in known and name not in titled]
    for name in titled:
        if _has_numbers(table[name]):
            yield _statistic(table, str(name), table[name], {})
    for name in others:
        for place in _list_places(table, table[name]):
            yield _statistic(table, str(name), table[name].sel(place), place)


def _name_variables(score: Score) -> set[str]:
    """Return the names of the variable of a score and of the ends of its interval."""
    return {score.variable, f"{score.variable}_lower", f"{score.variable}_upper"}


def _has_numbers(values: xr.DataArray) -> bool:
    return values.dtype.kind in "fiub" and bool(values.notnull().any())


def _list_places(table: xr.Dataset, values: xr.DataArray) -> list[dict[str, Any]]:
    """Return the labels at which a variable has one number for each head, by dimension: ``{"distance": 4}``.

    A variable without a further dimension has a single, empty place. Variables with folds, runs, directions or rows of
    scores have no place. Labels for which every head has 0 or no value are left out.
    """
    rows = {score.row_dimension(table) for score in read_scores(table)} | {"direction", "fold", "run"}
    further = [dim for dim in values.dims if dim not in ("attention_type", "layer", "head")]
    if not {"layer", "head"} <= {*values.dims} or not _has_numbers(values) or rows & {*further}:
        return []
    if not further:
        return [{}]
    dim = further[0]
    if len(further) > 1 or values.sizes[dim] > MOST_LABELS:
        return []
    labels = values[dim].values.tolist()
    return [{str(dim): label} for label in labels if bool(values.sel({dim: label}).fillna(0).any())]


def _statistic(table: xr.Dataset, name: str, values: xr.DataArray, place: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data of a variable of heads: its description, a baseline for each attention type, and its numbers.

    Args:
        table: A head table.
        name: The name of the variable.
        values: The values of the heads.
        place: The label of the further dimension from which the values are taken; empty without one.
    """
    attrs = values.attrs
    baseline, note = _baseline(table, values)
    about, names = str(attrs["long_name"]), json.loads(attrs.get("names", "[]"))
    texts = attrs.get("texts", "mean over all texts" if attrs.get("title") and not names else "")
    where = [f"{dim.replace('_', ' ')} {label}" for dim, label in place.items()]
    described = ", ".join(filter(None, (f"{about[:1].upper()}{about[1:]}", texts, *where)))
    return {
        "name": ":".join([name, *map(str, place.values())]),
        "select": {"variable": name, "place": dict(place)},
        "label": str(attrs.get("title") or ": ".join([name.replace("_", " "), *map(str, place.values())])),
        "plain": _name_plainly(table, name, place),
        "listed": bool(attrs.get("title")),
        "about": f"{described}. {note}".strip(),
        "source": str(attrs["source"]),
        "units": str(attrs["units"]),
        "names": names,
        "baseline": baseline,
        "diverging": attrs.get("scale") == "diverging" or float(values.min()) < 0,
        "values": list_by_head(values),
    }


def _name_plainly(table: xr.Dataset, name: str, place: Mapping[str, Any]) -> str:
    """Return the plain name of a statistic of heads; an empty string if it has no plain name."""
    match place:
        case {"distance": distance}:
            return gloss_distance(distance, table["distance"].values.tolist())
    return gloss_statistic(":".join([name, *map(str, place.values())]), "")


def _baseline(table: xr.Dataset, values: xr.DataArray) -> tuple[list[float | None], str]:
    """Return the baseline (uniform attention) for each attention type, and a sentence about it; empty without one."""
    name = values.attrs.get("baseline", "")
    if name not in table:
        return [], ""
    dims = [dim for dim in ("layer", "head") if dim in table[name].dims]
    uniform = [float(value) for value in np.atleast_1d(table[name].mean(dims).values)]
    if values.attrs["units"] == table[name].attrs["units"]:
        note = "Baseline: uniform attention; a head far below it looks at few tokens."
        return [round_number(value) for value in uniform], note
    # A decoder cannot look ahead: under uniform attention, the next token gets nothing either.
    highest = np.atleast_1d(values.max(["layer", "head"]).values)
    note = "Baseline: what one token gets under uniform attention (e to the minus the uniform entropy)."
    return [
        round_number(math.exp(-value)) if top > 0 else None for value, top in zip(uniform, highest, strict=True)
    ], note


def _describe_heads(table: xr.Dataset, reports: Sequence[Report], needed: pd.DataFrame) -> list[list[list[str]]]:
    """Return the sentences about each head, as nested lists by attention type, layer and head."""
    sentences = describe_heads(table, reports, needed)
    layers, in_layer = table["layer"].values.tolist(), table["head"].values.tolist()
    return [
        [[sentences[attention_type, layer, head] for head in in_layer] for layer in layers]
        for attention_type in _labels(table, "attention_type") or [""]
    ]
