"""What must hold of every reducer, whatever it measures: how a corpus is cut up does not change the table."""

from collections.abc import Collection, Sequence
from functools import reduce
from itertools import pairwise
from operator import add

import numpy as np
import xarray as xr
from hypothesis import strategies as st

from headscope.capture.model.model import Model
from headscope.corpora.document import Document
from headscope.reducers.reducer import Reducer
from headscope.runner import Plan
from headscope.runner.accumulate import accumulate
from headscope.runner.checkpoint import RunSums
from headscope.runner.completed_table import tabulate
from headscope.runner.local import open_stream

PLANS = st.builds(
    Plan,
    batch_tokens=st.sampled_from([1, 13, 47, 101, 4096]),
    rows=st.sampled_from([None, 1, 3, 7]),
    fused=st.sampled_from([None, True]),
)
"""Any batch size (and so any padding), any block of rows, with or without the matrix."""


def add_up(
    model: Model,
    documents: Sequence[Document],
    reducers: Sequence[Reducer],
    plan: Plan,
    *,
    before: Model | None = None,
) -> RunSums:
    """The sums over some documents; none for none."""
    done = RunSums({})
    for sums in accumulate(open_stream(model, documents, reducers, plan, before=before), reducers):
        done = RunSums.from_tensors(sums)
    return done


def add_up_parts(
    model: Model,
    documents: Sequence[Document],
    cuts: Collection[int],
    reducers: Sequence[Reducer],
    plan: Plan,
    *,
    before: Model | None = None,
) -> list[RunSums]:
    """The sums over each part of some documents, which are cut before those of these numbers."""
    edges = [0, *sorted(cuts), len(documents)]
    return [add_up(model, documents[start:end], reducers, plan, before=before) for start, end in pairwise(edges)]


def merge(sums: Sequence[RunSums]) -> RunSums:
    return reduce(add, sums, RunSums({}))


def add_up_alone(
    model: Model,
    documents: Sequence[Document],
    reducers: Sequence[Reducer],
    plan: Plan | None = None,
    *,
    before: Model | None = None,
) -> RunSums:
    """The sums of one document after the other, each alone and unpadded: what any other way must give."""
    return merge(add_up_parts(model, documents, range(1, len(documents)), reducers, plan or Plan(), before=before))


def tabulate_alone(
    model: Model,
    documents: Sequence[Document],
    reducers: Sequence[Reducer],
    plan: Plan | None = None,
    *,
    before: Model | None = None,
) -> xr.Dataset:
    """The table of one document after the other."""
    return tabulate_sums(add_up_alone(model, documents, reducers, plan, before=before), model, reducers)


def tabulate_sums(done: RunSums, model: Model, reducers: Sequence[Reducer]) -> xr.Dataset:
    return tabulate(done, model.shape, reducers)


def assert_same(table: xr.Dataset, other: xr.Dataset) -> None:
    """Equal counts to the last one; equal means to what float32 attention allows."""
    assert set(table.data_vars) == set(other.data_vars)
    for name, values in table.data_vars.items():
        if values.dtype.kind == "i":
            xr.testing.assert_equal(values, other[name])
        else:
            # A distance in tokens, or a sum over words or links, is as exact as float32 makes so large a number.
            relative = {"tokens": 1e-6, "sum of weights": 1e-5, "sum of products": 1e-5}.get(values.attrs["units"], 0)
            np.testing.assert_allclose(values, other[name], atol=2e-6, rtol=relative, err_msg=str(name))
    assert table.attrs == other.attrs
