"""The measurement of a folder of runs, in one head table with the dimension ``run``.

model --+                          +--> table of seed-1 --+
        +--measure, run after run--+--> table of seed-2 --+--> one table
runs  --+                          +--> ...             --+
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import xarray as xr

from headscope.capture.model.model import Model
from headscope.capture.model.model_names import OWN_HEAD
from headscope.capture.model.shape import Shape
from headscope.capture.open.loading import Loadable, load, read_identity
from headscope.capture.passes.stream import Plan
from headscope.corpora.corpus import read
from headscope.corpora.summary import CorpusSummary, summarize
from headscope.errors import HeadscopeError, ModelError
from headscope.first_guesses import explained
from headscope.predictions import ATTRIBUTE
from headscope.reducers import DEFAULT, REDUCERS
from headscope.reducers.reducer import Reducer
from headscope.runner.in_turn import join_runs, measure_in_turn, resolve_without_permutations
from headscope.runner.local import Progress, measure
from headscope.runner.resolve import list_reducers, needs_head
from headscope.runs import TEST, Run, Runs
from headscope.runs import read as read_runs

_READ_ALIKE = ("documents", "words", "tokens", "tokens_unknown", "skipped")
"""The attributes of tables about the corpus that must be the same for all runs."""


def measure_runs(
    model: Loadable,
    runs: Runs | str | Path,
    corpus: str | Path | Iterable[Any],
    reducers: str | Reducer | Sequence[str | Reducer] = DEFAULT,
    *,
    plan: Plan | None = None,
    checkpoint: Path | None = None,
    resume: bool = False,
    progress: Progress | None = None,
    summary: CorpusSummary | None = None,
    trust_remote_code: bool = False,
) -> xr.Dataset:
    """Measure every head of every run of a folder on a corpus.

    The arguments are those of `measure`, with these differences. `model` (as for `headscope.load`) is the model from
    which the runs were tuned: they are put on its device, and reducers that compare two models compare each run with
    it. `corpus` is as for `headscope.read`. `runs` is the folder of the runs, or the result of `headscope.runs.read`
    for it; `trust_remote_code` allows their Python code to run. Named reducers are measured without permutations. Each
    run has its own checkpoint, and progress counts all runs together (`measure_in_turn`).

    Returns:
        A head table in which values of heads have the dimension ``run``, with the coordinates ``run`` (names) and
        ``seed``. Values that depend only on the corpus do not have it.

    Raises:
        CorpusError: The corpus cannot be read or lacks what a reducer needs.
        ModelError: A run is damaged, is not a model of the same layers, heads and vocabulary, or reads the corpus as
            other tokens.
        HeadscopeError: The folder holds no runs, or the runs were tuned from another model.
    """
    model, reducers = load(model, trust_remote_code=trust_remote_code), list_reducers(reducers)
    runs = read_runs(runs)
    refuse_other_runs(model, runs, trust_remote_code=trust_remote_code)
    documents = read(corpus)
    summary = summary or summarize(documents)
    resolved = resolve_without_permutations(reducers, summary)
    head = OWN_HEAD if needs_head(resolved, plan.view if plan else None) else None

    def load_run(run: Run) -> Model:
        return load(
            runs.path(run), device=str(model.device), dtype=model.dtype_asked, trust_remote_code=trust_remote_code,
            task=head,
        )  # fmt: skip

    models = {run.name: partial(load_run, run) for run in runs.runs}
    tables: list[xr.Dataset] = []
    measured = measure_in_turn(
        models, documents, resolved, summary=summary, plan=plan, checkpoint=checkpoint, resume=resume,
        progress=progress, before=model,
    )  # fmt: skip
    for run, table in zip(runs.runs, measured, strict=True):
        if tables:
            _refuse_other_reading(runs, run, tables[0], table)
        tables.append(table)
    call = (
        f"measure_runs(model={model.name!r}, runs={str(runs.folder)!r}, "
        f"reducers={[reducer.name for reducer in resolved]}, plan={plan or Plan()})"
    )
    joined = join_runs(tables, [*models], [run.seed for run in runs.runs])
    return joined.assign_attrs(_about(model, runs, tables), call=call)


@explained
def measure_pair(
    before: Loadable,
    after: Loadable,
    corpus: str | Path | Iterable[Any],
    *,
    plan: Plan | None = None,
    checkpoint: Path | None = None,
    resume: bool = False,
    progress: Progress | None = None,
    summary: CorpusSummary | None = None,
) -> xr.Dataset:
    """Measure how alike each head is in two models of one shape, by the reducers that compare a head with itself.

    >>> table = headscope.measure_pair("minilm", headscope.untrained_model("minilm"), ["The dog sees the old house."])
    >>> table["similarity"]  # 1 where a head attends as before

    The arguments are those of `measure`; `after` was tuned from `before`. Both are as for `headscope.load`, and
    `corpus` is as for `headscope.read`. Documents of more than 512 tokens are left out and counted.

    Returns:
        A head table of the model after. Its cosine is 1 where nothing has changed.

    Raises:
        ModelError: The models differ in layers, heads or vocabulary, or turn a document into different tokens.
    """
    comparing = [name for name, reducer in REDUCERS.items() if reducer.models == 2 and not reducer.on_sample]
    return measure(
        load(after), read(corpus), comparing, plan=plan, checkpoint=checkpoint, resume=resume, progress=progress,
        summary=summary, before=load(before),
    )  # fmt: skip


def refuse_other_runs(model: Model, runs: Runs, *, trust_remote_code: bool) -> None:
    """Raise an error if runs are damaged or were not tuned from this model, before any of them is measured.

    Raises:
        HeadscopeError: The folder holds no runs, or the runs were tuned from another model.
        ModelError: A run is damaged, or is not a model of the same layers, heads and vocabulary.
    """
    if not runs.runs:
        raise HeadscopeError(f"{runs.folder} lists no finished run; let `headscope tune` finish one.")
    if runs.weights_sha256 != model.weights_sha256:
        raise HeadscopeError(
            f"the runs of {runs.folder} were tuned from {runs.model!r} with the weights {runs.weights_sha256[:12]}, "
            f"and {model.name!r} has {model.weights_sha256[:12]}; give the model that they were tuned from."
        )
    twice = [name for name, times in Counter(run.name for run in runs.runs).items() if times > 1]
    if twice:
        raise HeadscopeError(f"{runs.folder} lists the run {twice[0]} twice; take one out of the list.")
    expected = Shape.from_config(model.module.config, model.tokenizer)  # as `read_identity` reads the shape of a run
    for run in runs.runs:
        try:
            shape, digest = read_identity(runs.path(run), trust_remote_code=trust_remote_code)
        except ModelError as error:
            raise ModelError(f"the run {run.name} is not whole: {error}") from error
        if difference := expected.difference(shape):
            raise ModelError(
                f"{model.name!r} and the run {run.name} of {runs.folder} differ in {difference}; give the model that "
                "the runs were tuned from."
            )
        if digest != run.weights_sha256:
            raise ModelError(
                f"the weights of the run {run.name} of {runs.folder} are not those in its list "
                f"({digest[:12]} and not {run.weights_sha256[:12]}); copy its folder again, or tune it again."
            )


def _refuse_other_reading(runs: Runs, run: Run, first: xr.Dataset, table: xr.Dataset) -> None:
    for name in _READ_ALIKE:
        if first.attrs[name] != table.attrs[name]:
            raise ModelError(
                f"the run {run.name} of {runs.folder} reads the corpus otherwise than {runs.runs[0].name} does "
                f"({name}: {table.attrs[name]} and {first.attrs[name]}); give all runs one tokenizer."
            )


def _about(model: Model, runs: Runs, tables: Sequence[xr.Dataset]) -> dict[str, object]:
    """Return the attributes of the table of all runs: its origin, the model, and the identity of each run."""
    about = {name: value for name, value in tables[0].attrs.items() if not str(name).startswith("before")}
    paths: Counter[str] = Counter()
    for table in tables:
        paths.update(json.loads(table.attrs["paths"]))
    return {
        **about,
        **identify_runs(model, runs),
        "paths": json.dumps(paths, sort_keys=True),
        "created": tables[-1].attrs["created"],
    }


def identify_runs(model: Model, runs: Runs) -> dict[str, object]:
    """Return the attributes of a table of runs that identify the runs and the model from which they were tuned."""
    each = [
        {"name": run.name, "seed": run.seed, "weights_sha256": run.weights_sha256, "best_epoch": run.best_epoch}
        | ({ATTRIBUTE: run.predicted[TEST]} if TEST in run.predicted else {})
        for run in runs.runs
    ]
    return {
        "model": model.name,
        "revision": model.revision,
        "weights_sha256": model.weights_sha256,
        "runs": json.dumps(each),
        "task": runs.task,
        "control": int(runs.control),
        **({"tuned_on_text": runs.settings["text"]} if "text" in runs.settings else {}),
    }
