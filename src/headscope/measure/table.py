"""Sums -> head table; tables of several stacks or runs -> one."""

import json
from collections.abc import Sequence

import numpy as np
import pandas as pd
import xarray as xr

from headscope.capture.model import Model
from headscope.measure.reducer import Reducer
from headscope.measure.totals import Totals


def tabulate(done: Totals, model: Model, reducers: Sequence[Reducer]) -> xr.Dataset:
    """The head table of sums, with what was counted and what was skipped."""
    stacks = []
    for stack, layers in model.layers.items():
        of_stack = []
        for reducer in reducers:
            values = reducer.result(
                done.of_layers(type(reducer).name, stack, layers), done.counts(type(reducer).name, stack)
            )
            of_stack.append(
                values.assign_coords(
                    layer=np.arange(1, values.sizes["layer"] + 1), head=np.arange(1, values.sizes["head"] + 1)
                )
            )
        stacks.append(xr.merge(of_stack, join="exact", compat="no_conflicts"))
    table = stacks[0] if len(stacks) == 1 else side_by_side(stacks, pd.Index(model.layers, name="stack"))
    seen = done.of_run("seen")
    return table.assign_attrs(
        documents=seen["documents"],
        words=seen["words"],
        tokens=seen["tokens"],
        tokens_unknown=seen["unknown"],
        skipped=json.dumps(done.of_run("skipped"), sort_keys=True),
    )


def side_by_side(tables: Sequence[xr.Dataset], along: pd.Index) -> xr.Dataset:
    """Tables of several stacks or runs as one; NaN where one has fewer layers or heads than another."""
    # A draw is of heads too: it holds the best of them.
    by_head = [name for name, values in tables[0].data_vars.items() if {"layer", "draw"} & set(values.dims)]
    # What is counted without attention (links, offsets) is the same in every one.
    together = xr.concat([table[by_head] for table in tables], along, join="outer")
    return together.merge(tables[0].drop_vars(by_head), join="left")
