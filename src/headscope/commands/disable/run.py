"""The effect of disabling each head, layer and key/value head of a model on a task, written to a folder.

model, task --prepare--> Evaluation --measure_units--> head table --view--> files

Of runs, each gives a table; these are joined, and their summary is written beside them (`analyse.run_effects`).
"""

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

import xarray as xr
from rich.console import Console

from headscope.analyse.run_effects import join_effects, summarize_effects
from headscope.capture.model.model import Model
from headscope.capture.passes.stream import BATCH_TOKENS
from headscope.commands.disable.request import Disable
from headscope.commands.output import open_folder
from headscope.commands.progress import Progress
from headscope.commands.sentences import print_place
from headscope.commands.unit_effects import TABLE, measure_units
from headscope.errors import ModelError
from headscope.intervene.ablation import list_units
from headscope.predictions import ATTRIBUTE
from headscope.runner.several_runs import identify_runs, refuse_other_runs
from headscope.runs import Run, Runs
from headscope.view.effects_report import list_effects, print_effects
from headscope.view.figures.draw_effects import draw_effects


def run(request: Disable, progress: Progress) -> xr.Dataset:
    """Measure the effect of disabling units of the model, or of each of its runs; write the results to the folder."""
    source, runs = request.source, request.tuned
    settings: dict[str, Any] = {"start": request.start, "text": request.text}
    settings |= {"batch_tokens": request.batch_tokens or BATCH_TOKENS}
    settings |= {} if request.max_tokens is None else {"max_tokens": request.max_tokens}
    with open_folder(request, progress) as folder:

        def measure(loaded: Model, run: Run | None = None) -> xr.Dataset:
            units = list_units(loaded, request.names)
            evaluation = source.prepare(loaded, **settings)
            # With one seed, the placebos of all runs would have the same random error, and so would their mean.
            seed, name = (request.seed + run.seed, run.name) if run else (request.seed, "")
            return measure_units(folder, loaded, evaluation, units, request, seed=seed, run=name)

        if runs is None:
            model = request.load(progress, task=source.head)
            table = measure(model)
        else:
            model = request.load(progress)
            refuse_other_runs(model, runs, trust_remote_code=request.trust_remote_code)
            loading = partial(request.load_model, task=source.head)
            table = _join([measure(loading(runs.path(run)), run) for run in runs.runs], model, runs)
        summary = {} if runs is None else {"summary.csv": list_effects(summarize_effects(table))}
        names = {"model": model.name, "task": source.name} | ({"runs": str(runs.folder)} if runs else {})
        rows = {f"{TABLE}.csv": list_effects(table), **summary}
        return folder.finish(request, names, {TABLE: table}, rows, partial(draw_effects, table))


def _join(tables: Sequence[xr.Dataset], model: Model, runs: Runs) -> xr.Dataset:
    """Join the tables of the runs of a model into one table with the dimension `run`.

    Raises:
        ModelError: A run reads the examples as other tokens or labels than the first run.
    """
    for run, table in zip(runs.runs, tables, strict=True):
        if table.attrs["corpus_sha256"] != tables[0].attrs["corpus_sha256"]:
            raise ModelError(
                f"the run {run.name} of {runs.folder} reads the examples otherwise than {runs.runs[0].name} does, in "
                "other tokens or labels; give all runs one tokenizer and one order of labels."
            )
    together = join_effects(tables, [run.name for run in runs.runs], [run.seed for run in runs.runs])
    about = identify_runs(model, runs)
    # Record predictions on these examples only; `headscope tune` scored the runs on other examples too.
    entries = [
        {**entry, **({ATTRIBUTE: json.loads(table.attrs[ATTRIBUTE])} if ATTRIBUTE in table.attrs else {})}
        for entry, table in zip(json.loads(str(about["runs"])), tables, strict=True)
    ]
    of_all = {name: value for name, value in together.attrs.items() if name != ATTRIBUTE}
    return together.drop_attrs(deep=False).assign_attrs(of_all | about, runs=json.dumps(entries))


def show(request: Disable, table: xr.Dataset, console: Console) -> None:
    """Print the largest effects, and the file with all effects."""
    print_effects(table, console, whole=request.whole)
    print_place("all effects", request.out, "effects.csv", console)
