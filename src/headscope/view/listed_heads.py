"""The list of heads (`HeadList`) of a table: its reported heads, or all heads of a row."""

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

import xarray as xr

from headscope.errors import TableError
from headscope.headlists import HeadEntry, HeadList, ListedModel
from headscope.heads import KEY_VALUE_HEADS
from headscope.score import Score
from headscope.view.headings import describe_edits
from headscope.view.reports import Interval, Report, Reported, read_reports

TOP = 5
"""The number of further heads of a row after the reported head."""

_CHOICE = "The first head of each row was chosen on one half of the documents and scored on the other (`heldout`)."
_OTHERS = "The further heads are the best on all documents, on which they are scored too. Intervals are of 95 %."


def list_heads(table: xr.Dataset, top: int = TOP) -> HeadList:
    """Return the reported head of each row of each score, followed by the `top` best further heads of the row.

    Further heads are ranked by their score on all documents. Rows without a reported head are left out, and so are rows
    that are folded into another row.

    Raises:
        TableError: the table is a table of runs, or has no reported heads.
    """
    entries: list[HeadEntry] = []
    for report, row in _list_rows(table):
        entries += [_list_reported(report.score, row), *_list_best(table, report.score, row)[:top]]
    return make_head_list(table, entries, f"{_CHOICE} {_OTHERS} {table.attrs.get('split', '')}".strip())


def list_all_heads(table: xr.Dataset, row: str | None) -> HeadList:
    """Return all heads of one row, scored on all documents in the direction of its reported head, layer by layer.

    Args:
        table: A table with reported heads.
        row: The name of the row, as in `HeadList.select`.

    Raises:
        TableError: the table is a table of runs, has no reported heads, or has no such row.
    """
    rows = _list_rows(table)
    reported = [_list_reported(report.score, each) for report, each in rows]
    (chosen,) = HeadList(tuple(reported)).select(row).entries
    report, of_row = rows[reported.index(chosen)]
    every = _list_best(table, report.score, of_row, with_reported=True)
    entries = sorted(every, key=lambda entry: (entry.layer, entry.head))
    return make_head_list(table, entries, "All heads of a row, each scored on all documents. Intervals are of 95 %.")


def _list_rows(table: xr.Dataset) -> list[tuple[Report, Reported]]:
    if "run" in table.dims:
        raise TableError(
            f"the head table holds {table.sizes['run']} runs, which have no heads in common; export that of one model."
        )
    rows = [(report, row) for report in read_reports(table) for row in report.rows_with_heads]
    if not rows:
        raise TableError(
            "the head table has no reported heads, so there is nothing to list; measure a statistic by which heads are "
            "chosen (`headscope list reducers`), on more texts."
        )
    return rows


def _list_reported(score: Score, row: Reported) -> HeadEntry:
    rival = row.strongest_rival
    return HeadEntry(
        row.layer, row.head, **_name_ends(row.score), count=row.scored, heldout=True, verdict=row.verdict,
        rival=rival.label if rival else "", rival_value=_known(rival.score.value) if rival else None,
        **_name_row(score, row),
    )  # fmt: skip


def _list_best(
    table: xr.Dataset, score: Score, row: Reported, *, with_reported: bool = False
) -> list[HeadEntry]:  # fmt: skip
    """Return the heads with a value on all documents, the best first, in the direction and attention type of the row.

    The reported head is among them only with `with_reported`.
    """
    dim = score.row_dimension(table)
    place = {dim: row.name} if dim else {}
    where = place | {name: label for name in ("direction", "attention_type") if (label := getattr(row, name))}
    variables = {"value": score.variable} | {end: f"{score.variable}_{end}" for end in ("lower", "upper")}
    values = {end: table[name] for end, name in variables.items() if name in table}
    chosen = xr.Dataset(
        {end: v.sel({d: where[d] for d in v.dims if d in where}, drop=True) for end, v in values.items()}
    )
    frame = chosen.to_dataframe(dim_order=["layer", "head"]).reindex(columns=[*variables]).reset_index()
    best = frame.dropna(subset="value").sort_values("value", ascending=False, kind="stable")
    return [
        HeadEntry(
            each["layer"], each["head"], **_name_ends(Interval(*(each[end] for end in variables))),
            count=score.count(table, place) or None, **_name_row(score, row),
        )
        for each in best.to_dict("records")
        if with_reported or (each["layer"], each["head"]) != (row.layer, row.head)
    ]  # fmt: skip


def _name_row(score: Score, row: Reported) -> Mapping[str, Any]:
    name = row.key.partition(":")[2]
    return {
        "score": score.variable, "row": name, "title": row.label or score.title, "direction": row.direction,
        "attention_type": row.attention_type,
    }  # fmt: skip


def _name_ends(interval: Interval) -> Mapping[str, Any]:
    return {name: _known(value) for name, value in zip(("value", "lower", "upper"), interval, strict=True)}


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def make_head_list(table: xr.Dataset, entries: Iterable[HeadEntry], method: str) -> HeadList:
    """Return entries as a list of heads that names the model and the corpus of their table, and the method."""
    about = table.attrs
    versions = json.loads(about.get("versions", "{}"))
    shared = about.get(KEY_VALUE_HEADS)
    model = ListedModel(
        str(about["model"]), str(about["weights_sha256"]), table.sizes["layer"], table.sizes["head"],
        None if shared is None else int(shared),
    )  # fmt: skip
    return HeadList(
        tuple(entries), model, corpus=str(about["corpus"]), corpus_sha256=str(about["corpus_sha256"]),
        headscope=str(versions.get("headscope", "")), created=str(about.get("created", "")),
        method=f"{describe_edits(table)} {method}".strip(),
    )  # fmt: skip
