"""Sums -> head table; tables of several attention types or runs -> one."""

import datetime
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from headscope.capture.forward.verify import refuse_not_finite
from headscope.capture.model.shape import Shape
from headscope.capture.passes.views import VIEWS
from headscope.capture.tokens.align import TOO_LONG, TRANSLATION_TOO_LONG
from headscope.corpora.summary import CorpusSummary
from headscope.errors import CorpusError, HeadscopeError, first_line
from headscope.heads import SHARE
from headscope.layers import place_layers
from headscope.reducers.reducer import Reducer
from headscope.runner.checkpoint import RunSums
from headscope.runner.row_sample import find_result
from headscope.score import ATTRIBUTE, Score, write_scores
from headscope.text_forms import GIVEN

NOT_FINITE = "documents for which the model's outputs are not finite"
"""The reason for leaving out a document: attention weights that are NaN or infinite would count as misses."""

MOST_NOT_FINITE = 0.1
"""The largest share of documents left out for `NOT_FINITE`; if the share is larger, the model is refused."""


def complete_table(
    done: RunSums,
    summary: CorpusSummary,
    shape: Shape,
    reducers: Sequence[Reducer],
    identity: Mapping[str, Any],
    view: str | None,
) -> xr.Dataset:
    """Make the head table of the sums over a whole corpus, with attributes on its origin and time.

    Raises:
        CorpusError: No document could be measured.
        ModelError: The model's outputs are not finite for too many documents.
    """
    # Documents that the readers skipped are known before the model runs, so they are not part of saved sums.
    total = done + RunSums({("skipped", reason): np.asarray(n) for reason, n in summary.skipped.items() if n})
    _refuse_not_finite(identity["about"]["model"], total)
    if not total.select_run("seen").get("documents"):
        skipped = total.select_run("skipped")
        reasons = ", ".join(f"{count} {reason}" for reason, count in skipped.items()) or "all were left out"
        too_long = any(reason.startswith((TOO_LONG, TRANSLATION_TOO_LONG)) for reason in skipped)
        advice = (
            "shorter documents or a model that takes longer ones" if too_long else "other documents, or another model"
        )
        raise CorpusError(f"none of the {summary.documents} documents could be measured ({reasons}); give {advice}.")
    paths = json.dumps(total.select_run("path"))
    created = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    names, model = [reducer.name for reducer in reducers], identity["about"]["model"]
    call = f"measure(model={model!r}, reducers={names}, plan={identity['plan']})"
    about = identity["about"] | summary.attributes | {"call": call, "paths": paths, "created": created}
    seen = total.select_run("seen")
    about |= {"text": GIVEN} if seen.get("given") == seen["documents"] else {}
    return name_view(tabulate(total, shape, reducers), view).assign_attrs(about)


def _refuse_not_finite(model: str, done: RunSums) -> None:
    left_out, measured = done.select_run("skipped").get(NOT_FINITE, 0), done.select_run("seen").get("documents", 0)
    if left_out > MOST_NOT_FINITE * (left_out + measured):
        raise refuse_not_finite(model, f"for {left_out} of {left_out + measured} documents")


def tabulate(done: RunSums, shape: Shape, reducers: Sequence[Reducer]) -> xr.Dataset:
    """Make a head table from sums, with the counts of documents, words and tokens as attributes."""
    attention_types = []
    for attention_type, numbers in shape.attention_layers.items():
        reduced = []
        for reducer in reducers:
            sums = done.collect_layers(reducer.name, attention_type, numbers)
            values = find_result(reducer, sums, done.select_counts(reducer.name, attention_type))
            values = values.assign_coords(head=np.arange(1, values.sizes["head"] + 1))
            reduced.append(place_layers(values, numbers, shape.layers[attention_type]))
        try:
            attention_types.append(xr.merge(_align_permutations(reduced), join="exact", compat="no_conflicts"))
        except (xr.MergeError, ValueError) as error:
            raise HeadscopeError(
                f"the results of the reducers {', '.join(reducer.name for reducer in reducers)} do not go into one "
                f"table ({first_line(error)}); give the variables and dimensions of your own reducer other names."
            ) from error
    table = (
        attention_types[0]
        if len(attention_types) == 1
        else side_by_side(attention_types, "attention_type", list(shape.layers))
    )
    seen = done.select_run("seen")
    scores = [score for reducer in reducers for score in reducer.scores]
    return _name_rows(table, scores).assign_attrs(
        documents=seen["documents"],
        documents_repeated=seen["repeated"],
        documents_without_text=seen.get("without_text", 0),
        words=seen["words"],
        units=seen["units"],
        tokens=seen["tokens"],
        tokens_unknown=seen["unknown"],
        skipped=json.dumps(done.select_run("skipped"), sort_keys=True),
        **{ATTRIBUTE: write_scores(scores)},
    )


def name_view(table: xr.Dataset, view: str | None) -> xr.Dataset:
    """Return the table with the name, unit and settings of its view as attributes; unchanged if `view` is None."""
    if view is None:
        return table
    shown = VIEWS[view]
    shares = [name for name, values in table.data_vars.items() if values.attrs["units"] == SHARE]
    units = {name: table[name].assign_attrs(units=shown.share) for name in shares}
    settings = {f"view_{name}": value for name, value in shown.settings.items()}
    return table.assign(units).assign_attrs(view=view, view_shows=shown.shows, view_units=shown.share, **settings)


def _name_rows(table: xr.Dataset, scores: Sequence[Score]) -> xr.Dataset:
    """Return the table with text labels for rows that a user's own reducer has numbered."""
    dims = {score.row_dimension(table) for score in scores if score.variable in table} - {""}
    return table.assign_coords({dim: table[dim].astype(str) for dim in dims if table[dim].dtype.kind in "iuf"})


def _align_permutations(tables: Sequence[xr.Dataset]) -> list[xr.Dataset]:
    """Return the tables padded with NaN to the same number of permutations: the largest number of any table."""
    most = max(table.sizes.get("permutation", 0) for table in tables)
    return [
        table.pad(permutation=(0, most - table.sizes["permutation"]), keep_attrs=True)
        if "permutation" in table.dims
        else table
        for table in tables
    ]


def side_by_side(tables: Sequence[xr.Dataset], dim: str, labels: Sequence[str]) -> xr.Dataset:
    """Join tables of several attention types or runs along a new dimension; missing layers and heads are NaN."""
    # Not a pandas index: where pyarrow is installed, its text is of a type that arrays cannot hold.
    along = xr.Variable(dim, np.array(labels))
    # Values by permutation belong to heads too: they hold the best head.
    by_head = [name for name, values in tables[0].data_vars.items() if {"layer", "permutation"} & set(values.dims)]
    # Counts that need no attention (links, offsets) are the same in every table.
    together = xr.concat([table[by_head] for table in tables], along, join="outer")
    return together.merge(tables[0].drop_vars(by_head), join="left")
