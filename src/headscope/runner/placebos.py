"""The measurement of placebos of an adapter, in one head table with the dimension ``run``."""

import json
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import xarray as xr

from headscope.capture.model.model_names import OWN_HEAD
from headscope.capture.open.loading import Loadable, load
from headscope.capture.open.placebo import placebo_adapter
from headscope.capture.passes.stream import Plan
from headscope.corpora.corpus import read
from headscope.corpora.summary import CorpusSummary, summarize
from headscope.reducers import DEFAULT
from headscope.reducers.reducer import Reducer
from headscope.runner.in_turn import join_runs, measure_in_turn, resolve_without_permutations
from headscope.runner.local import Progress
from headscope.runner.resolve import list_reducers, needs_head


def measure_placebos(
    model: Loadable,
    placebos: int,
    corpus: str | Path | Iterable[Any],
    reducers: str | Reducer | Sequence[str | Reducer] = DEFAULT,
    *,
    plan: Plan | None = None,
    checkpoint: Path | None = None,
    resume: bool = False,
    progress: Progress | None = None,
    summary: CorpusSummary | None = None,
) -> xr.Dataset:
    """Measure every head on a corpus, with each of several random adapters in place of the adapter of a model.

    The arguments are those of `measure`, but `model` has an adapter, and `placebos` is the number of random adapters
    that are measured in its place (`headscope.placebo_adapter`, with the seeds from 0 on). Named reducers are measured
    without permutations. Each placebo has its own checkpoint, and progress counts all placebos together.

    Returns:
        A head table in which values of heads have the dimension ``run``, with the coordinates ``run`` (names) and
        ``seed``. Its attributes describe the model with the adapter, and ``placebo_of`` is the hash of the adapter.

    Raises:
        CorpusError: The corpus cannot be read or lacks what a reducer needs.
        ModelError: No placebo can be made of the adapter of the model.
    """
    reducers, documents = list_reducers(reducers), read(corpus)
    summary = summary or summarize(documents)
    resolved = resolve_without_permutations(reducers, summary)
    loaded = load(model, task=OWN_HEAD if needs_head(resolved, plan.view if plan else None) else None)
    models = {f"placebo-{seed}": partial(placebo_adapter, loaded, seed=seed) for seed in range(placebos)}
    measured = measure_in_turn(
        models, documents, resolved, summary=summary, plan=plan, checkpoint=checkpoint, resume=resume, progress=progress
    )
    tables = [*measured]
    runs = [
        {"name": name, "seed": seed, "weights_sha256": table.attrs["weights_sha256"]}
        for seed, (name, table) in enumerate(zip(models, tables, strict=True))
    ]
    call = (
        f"measure_placebos(model={loaded.name!r}, placebos={placebos}, "
        f"reducers={[reducer.name for reducer in resolved]}, plan={plan or Plan()})"
    )
    about = {"model": loaded.name, "weights_sha256": loaded.weights_sha256, "runs": json.dumps(runs), "call": call}
    return join_runs(tables, [*models], range(placebos)).assign_attrs(tables[-1].attrs | about)
