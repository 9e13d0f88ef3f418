"""The ranks of the heads of a list among all heads of a model, by the score of the list."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

from headscope.capture.model.shape import Shape
from headscope.commands.check.chosen_reducers import choose_reducers
from headscope.commands.check.listed_scores import ListedRow, check_exists, list_rows, name_list
from headscope.commands.check.recorded_call import RecordedCall
from headscope.commands.check.request import Check
from headscope.commands.inputs import find_head, make_plan
from headscope.commands.progress import Progress
from headscope.commands.recorded_request import record_request
from headscope.commands.tables import name_source
from headscope.corpora import summarize
from headscope.errors import TableError, list_some
from headscope.headlists import HeadEntry, ListedModel
from headscope.headlists.head_list import GROUP
from headscope.headlists.ranks import RankedRow, group_entries, rank_heads
from headscope.heads import KEY_VALUE_HEADS, KEY_VALUE_HEADS_BY_LAYER
from headscope.runner import list_reducers, measure
from headscope.score import read_scores
from headscope.view.headings import name_model

ROW = "row"
"""The dimension of the table of ranks: each entry is a head of the list in one row of the list."""


def rank_list(request: Check, progress: Progress) -> xr.Dataset:
    """Rank the heads of a list among all heads of a model.

    Returns:
        A dataset with the listed value, the measured value and the rank of each head of the list.

    Raises:
        HeadscopeError: The model lacks a head of the list, or a row of the list cannot be measured.
    """
    head_list, name = request.head_list, name_list(request.heads)
    table = request.measured
    if table is None:
        table = _measure(request, progress)
    else:
        if "run" in table.dims:
            raise TableError(
                f"{name_source(table)} holds {table.sizes['run']} runs; rank the heads of a list in the table of one "
                "model."
            )
        check_exists(head_list, _read_sizes(table), name)
    rows = list_rows(head_list)
    ranks = [rank_heads(row.entries, _list_measured(table, row, head_list.unit), request.top) for row in rows]
    about = {key: str(table.attrs[key]) for key in ("model", "weights_sha256", "corpus", "corpus_sha256")}
    about |= {"list": name, "unit": head_list.unit}
    names = {"new": about["model"], "heads": name, "corpus": about["corpus"]}
    given = {key: value for key, value in names.items() if not isinstance(getattr(request, key), str | None)}
    return _make_table(rows, ranks).assign_attrs(about | record_request(request, **given))


def _measure(request: Check, progress: Progress) -> xr.Dataset:
    """Measure the head table of the model, with the scores that the list contains."""
    assert not isinstance(request.new, xr.Dataset)
    name, documents = name_list(request.heads), request.list_corpus
    summary = summarize(documents)
    variables = {row.variable for row in list_rows(request.head_list)}
    own = list_reducers(request.reducers)
    reducers = choose_reducers(variables, RecordedCall(documents.name), own, summary, name)
    progress("loading the model", 0, 0)
    model = request.load_model(request.new, task=find_head(None, reducers))
    check_exists(request.head_list, _list_sizes(model.shape), name)
    label = f"measuring {name_model(model.name)}"
    return measure(
        model, documents, reducers, plan=make_plan(request), summary=summary,
        progress=lambda done, total: progress(label, done, total),
    )  # fmt: skip


def _list_sizes(shape: Shape) -> Mapping[str, ListedModel]:
    return {
        kind: ListedModel(layers=layers, heads=shape.heads[kind], key_value_heads=shape.key_value_heads.get(kind))
        for kind, layers in shape.layers.items()
    }


def _read_sizes(table: xr.Dataset) -> Mapping[str, ListedModel]:
    kinds = [str(kind) for kind in table["attention_type"].values] if "attention_type" in table.dims else [""]
    heads = table.sizes["head"]
    shared = None if KEY_VALUE_HEADS_BY_LAYER in table.attrs else int(table.attrs.get(KEY_VALUE_HEADS, heads))
    return dict.fromkeys(kinds, ListedModel(layers=table.sizes["layer"], heads=heads, key_value_heads=shared))


def _list_measured(table: xr.Dataset, row: ListedRow, unit: str) -> Sequence[HeadEntry]:
    """Return all heads with their measured scores, turned so that the highest score is the best.

    If the unit of the list is `GROUP`, these are key/value heads.
    """
    entries = _list_values(table, row)
    if row.is_turned:
        entries = [replace(entry, value=1 - entry.value) for entry in entries if entry.value is not None]
    if unit != GROUP:
        return entries
    if KEY_VALUE_HEADS_BY_LAYER in table.attrs:
        raise TableError(
            f"the layers of {table.attrs['model']} have different numbers of key/value heads, and a list of these "
            "cannot say so; give a list of query heads."
        )
    shared = table.attrs.get(KEY_VALUE_HEADS)
    return entries if shared is None else group_entries(entries, table.sizes["head"] // int(shared))


def _list_values(table: xr.Dataset, row: ListedRow) -> list[HeadEntry]:
    """Return all heads with their values in one row of a table, in the direction and the attention type of the list."""
    variable, _, label = row.key.partition(":")
    first = row.entries[0]
    score = next((score for score in read_scores(table) if score.variable == variable), None)
    if score is None or variable not in table:
        raise TableError(
            f"{name_source(table)} has no {variable}, by which the heads of the list are ranked; measure it."
        )
    selection = {"direction": first.direction, "attention_type": first.attention_type}
    if dim := score.row_dimension(table):
        selection[dim] = label
    values = table[variable]
    for dim in [str(dim) for dim in values.dims if dim not in ("layer", "head")]:
        labels = values[dim].values.astype(str).tolist()
        if selection.get(dim) not in labels:
            raise TableError(
                f"{name_source(table)} has no {dim} {selection.get(dim, '')!r} of {variable}, by which the heads of "
                f"the list are ranked; name a corpus that has it as `corpus`, or a list for one of {list_some(labels)}."
            )
        values = values.isel({dim: labels.index(selection[dim])})
    return [
        HeadEntry(int(layer), int(head), float(value), score=variable)
        for layer, of_layer in zip(table["layer"].values, values.transpose("layer", "head").values, strict=True)
        for head, value in zip(table["head"].values, of_layer, strict=True)
        if np.isfinite(value)
    ]


def _make_table(rows: Sequence[ListedRow], ranks: Sequence[RankedRow]) -> xr.Dataset:
    """Return the ranks as a dataset with the dimension `ROW`, with an entry for each head of the list."""
    columns: dict[str, list[Any]] = {}
    for row, of_row in zip(rows, ranks, strict=True):
        for head in of_row.heads:
            record = {
                "listed_row": head.entry.key, "measured_row": row.title, "name": head.entry.place,
                "attention_type": head.entry.attention_type, "direction": head.entry.direction,
                "layer": head.entry.layer, "head": head.entry.head, "listed_value": _fill(head.entry.value),
                "measured_value": _fill(head.value), "rank": _fill(head.rank), "compared": head.best,
                "heads": of_row.measured, "compared_heads": of_row.compared, "shared_heads": of_row.shared,
                "heads_by_chance": of_row.by_chance,
            }  # fmt: skip
            for column, value in record.items():
                columns.setdefault(column, []).append(value)
    return xr.Dataset({column: (ROW, np.asarray(values)) for column, values in columns.items()})


def _fill(value: float | None) -> float:
    return float("nan") if value is None else float(value)
