"""The command `measure`: a head table of any reducers, for a model or for the runs that were tuned from it.

model, corpus --measure--> head table --analyse--> with intervals and reported heads --> file

On a second corpus, the heads that were chosen on the first are scored (`add_replication`).
"""

from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import xarray as xr
from rich.console import Console
from rich.markup import escape

from headscope import heads
from headscope.analyse import add_replication, assess
from headscope.capture.model.model_names import find_base
from headscope.capture.open.adapters import name_base
from headscope.commands.folder import reserve_file
from headscope.commands.inputs import find_head, make_plan
from headscope.commands.measure.engine import RAY
from headscope.commands.measure.request import Measure, Measured, Measuring, TypedMeasure
from headscope.commands.progress import Progress
from headscope.commands.recorded_request import record_request
from headscope.commands.replication import open_replication
from headscope.corpora import CorpusSummary, summarize
from headscope.errors import HeadscopeError
from headscope.reducers.reducer import Reducer
from headscope.reducers.support.permutations import with_permutations
from headscope.runner import (
    ShardSums,
    list_reducers,
    measure,
    measure_placebos,
    measure_runs,
    refuse_sample,
    refuse_view,
    resolve_reducers,
)
from headscope.runs import Runs
from headscope.view.headings import name_model
from headscope.view.table_report import print_paths, print_table


def run(request: Measure, progress: Progress) -> xr.Dataset:
    """Measure the heads of a model, or of runs, and write the table if a file is named."""
    with nullcontext() if request.out is None else reserve_file(Path(request.out)) as sums:
        progress("reading the corpus", 0, 0)
        summary = summarize(request.documents)
        reducers = choose_reducers(request, summary, request.tuned, placebos=request.placebos is not None)
        if request.engine == RAY:
            table = _measure_on_ray(request, reducers, summary, sums, progress)
        else:
            table = _measure_here(request, reducers, summary, sums, progress)
        names = {"corpus": request.documents.name, "replicate": str(table.attrs.get("replication_corpus", ""))}
        names |= {"model": str(table.attrs["model"]), "runs": str(request.tuned.folder) if request.tuned else ""}
        # Keep the runner's call: it has the plan, from which another model is measured in the same way.
        table = table.assign_attrs(request=record_request(request, **names)["request"])
        if request.out is not None:
            heads.write_table(table, request.out)
    return table


def _measure_here(
    request: Measure, reducers: Sequence[Reducer], summary: CorpusSummary, sums: Path | None, progress: Progress
) -> xr.Dataset:
    """Measure the head table in this process.

    Args:
        request: The request.
        reducers: The resolved reducers.
        summary: The summary of the corpus.
        sums: The file in which sums are kept for resuming; None keeps no sums.
        progress: A function that is called as the work advances.
    """
    documents, runs, plan = request.documents, request.tuned, make_plan(request)
    named = list_reducers(request.reducers)
    second = open_replication(request, named, reducers, progress)
    model = request.load(progress, task=find_head(request.task, reducers, request.view) if runs is None else None)

    def make_settings(step: str, summary: CorpusSummary, checkpoint: Path | None) -> dict[str, Any]:
        shown = partial(progress, step)
        return {
            "plan": plan, "summary": summary, "checkpoint": checkpoint, "resume": request.resume, "progress": shown,
        }  # fmt: skip

    if request.placebos is not None:
        settings = make_settings(f"measuring {request.placebos} placebos of {name_model(model.name)}", summary, sums)
        table = assess(measure_placebos(model, request.placebos, documents, reducers, **settings))
    elif runs is None:
        settings = make_settings(f"measuring {name_model(model.name)}", summary, sums)
        table = assess(measure(model, documents, reducers, **settings))
    else:
        step = f"measuring {len(runs.runs)} runs of {'the control of ' if runs.control else ''}{runs.task}"
        settings = make_settings(step, summary, sums) | {"trust_remote_code": request.trust_remote_code}
        table = assess(measure_runs(model, runs, documents, reducers, **settings))
    if second is None:
        return table
    checkpoint = sums and sums.with_stem(f"{sums.stem}.replication")
    settings = make_settings(f"replicating on {second.name}", second.summary, checkpoint)
    return add_replication(table, measure(model, second.documents, second.reducers, **settings))


def _measure_on_ray(
    request: Measure, reducers: Sequence[Reducer], summary: CorpusSummary, sums: Path | None, progress: Progress
) -> xr.Dataset:
    """Measure the head table on the workers of a Ray cluster.

    The sums for resuming are kept in the file `sums`; None keeps no sums.
    """
    # Ray is an extra, and takes seconds to import.
    from headscope.runner import ray

    progress("starting the workers", 0, 0)
    model = str(request.model)
    work = ray.Work.describe(
        model,
        request.documents,
        reducers,
        plan=make_plan(request),
        summary=summary,
        device=request.device,
        dtype=request.dtype,
        trust_remote_code=request.trust_remote_code,
        task=find_head(request.task, reducers, request.view),
    )
    step = partial(progress, f"measuring {name_model(model)}")
    with TemporaryDirectory() as folder:
        sums = sums or Path(folder) / "sums.npz"
        table = ray.measure(
            work, sums, workers=request.workers, resume=request.resume, progress=step,
            waiting=lambda missing: progress(f"waiting for {missing}", 0, 0),
        )  # fmt: skip
        return assess(table)


def choose_reducers(
    request: Measuring, summary: CorpusSummary, runs: Runs | None, *, placebos: bool = False
) -> list[Reducer]:
    """Resolve the named reducers for this corpus, with the requested number of permutations.

    Runs and placebos get no permutations unless the request asks for some.

    Raises:
        HeadscopeError: A reducer compares a model with the model it was tuned from, and there is no such model; or a
            reducer cannot be measured through the view or on a sample of queries.
    """
    compares = runs is not None or _is_adapter(request.model)
    named = list_reducers(request.reducers)
    chosen = []
    for name, reducer in zip(named, resolve_reducers(named, summary), strict=True):
        if not compares and reducer.models == 2:
            raise HeadscopeError(
                f"the reducer `{reducer.name}` compares a model with what it was tuned from; add `runs`, or give "
                "the folder of an adapter."
            )
        skipped = request.permutations is None and (runs is not None or placebos) and isinstance(name, str)
        chosen.append(with_permutations(reducer, 0 if skipped else request.permutations))
    refuse_view(chosen, request.view)
    refuse_sample(chosen, make_plan(request))
    return chosen


def _is_adapter(model: object) -> bool:
    """Return True for a model with an adapter, which can be compared with the model without the adapter.

    Raises:
        ModelError: The folder of an adapter does not name the model that it was trained for.
    """
    if isinstance(model, str | Path):
        return bool(find_base(str(model)))
    return bool(getattr(model, "adapter_of", "") or name_base(model))


def show(request: TypedMeasure, result: Measured, console: Console) -> None:
    """Print the table, or the counts of a shard, and the name of the file."""
    path = escape(str(request.file))
    if isinstance(result, ShardSums):
        counts, shard = result.counts, result.shard
        console.print(
            f"Shard {shard}: {counts['documents']:,} documents, {counts['words']:,} words, {counts['tokens']:,} "
            f"tokens.\n\nWrote {path}. When all {shard.count} are written, join them with `headscope merge`.",
            soft_wrap=True,
        )
        return
    print_table(result, console, whole=request.whole)
    if request.explain:
        print_paths(result, console)
    console.print(f"\nWrote {path}.", soft_wrap=True)
