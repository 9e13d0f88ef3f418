"""Several models of one shape, measured in turn: each has a table and a checkpoint, and all share the progress.

models --load, measure, free, one after the other--> tables --`join_runs`--> one table with the dimension ``run``
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import xarray as xr

from headscope.capture.model.model import Model
from headscope.capture.passes.stream import Plan
from headscope.corpora.document import Document
from headscope.corpora.summary import CorpusSummary
from headscope.reducers.reducer import Reducer
from headscope.reducers.support.permutations import with_permutations
from headscope.runner.completed_table import side_by_side
from headscope.runner.local import Progress, measure
from headscope.runner.resolve import resolve_reducers


def resolve_without_permutations(reducers: Sequence[str | Reducer], summary: CorpusSummary) -> list[Reducer]:
    """Return the reducers for a corpus; those that are given by name have no permutations."""
    resolved = zip(reducers, resolve_reducers(reducers, summary), strict=True)
    return [with_permutations(reducer, 0) if isinstance(given, str) else reducer for given, reducer in resolved]


def measure_in_turn(
    models: Mapping[str, Callable[[], Model]],
    documents: Iterable[Document],
    reducers: Sequence[Reducer],
    *,
    summary: CorpusSummary,
    plan: Plan | None = None,
    checkpoint: Path | None = None,
    resume: bool = False,
    progress: Progress | None = None,
    before: Model | None = None,
) -> Iterator[xr.Dataset]:
    """Yield the head table of each model, measured as by `measure`.

    Args:
        models: Functions that load the models, by the names of their runs; each is called when its turn comes.
        documents: As in `measure`.
        reducers: The reducers for this corpus.
        summary: As in `measure`.
        plan: As in `measure`.
        checkpoint: The file next to which each model has its own checkpoint (`name_checkpoint`).
        resume: As in `measure`.
        progress: Is called with the number of words that are done and of all words, for all models together.
        before: As in `measure`.
    """
    for index, (name, load_model) in enumerate(models.items()):

        def show_progress(done: int, total: int, index: int = index) -> None:
            if progress is not None:
                progress(index * total + done, len(models) * total)

        # The model is not assigned to a variable, so that it is freed before the next one is loaded.
        table = measure(
            load_model(), documents, reducers, plan=plan, summary=summary, before=before,
            checkpoint=checkpoint and name_checkpoint(checkpoint, name), resume=resume, progress=show_progress,
        )  # fmt: skip
        show_progress(summary.words, summary.words)
        yield table


def name_checkpoint(checkpoint: Path, name: str) -> Path:
    """Return the file in which `measure_in_turn` keeps the sums of a run, next to `checkpoint`."""
    return checkpoint.with_name(f"{checkpoint.stem}.{name}{checkpoint.suffix}")


def join_runs(tables: Sequence[xr.Dataset], names: Sequence[str], seeds: Sequence[int]) -> xr.Dataset:
    """Join the tables of runs along the dimension ``run``, without attributes of the whole."""
    joined = side_by_side(tables, "run", names).assign_coords(seed=("run", [*seeds]))
    return joined.drop_attrs(deep=False)
