"""What disabling each head, layer and key/value head of a model changes on a task, written to a folder.

model, task --prepare--> Evaluation --measure_units--> head table --view--> files

Of runs, each gives a table; these are joined, and their summary is written beside them (`analyse.run_effects`).
"""

import datetime
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import xarray as xr

from headscope.analyse.run_effects import join_effects, summarize_effects
from headscope.capture.loading import Loadable, load
from headscope.capture.model import Model
from headscope.capture.stream import BATCH_TOKENS
from headscope.errors import ModelError
from headscope.heads import write_table
from headscope.intervene.ablation import list_units
from headscope.intervene.head_names import list_names
from headscope.jobs.arguments import check_disabling, check_model, open_runs
from headscope.jobs.effects import PAIRS, TABLE, Disabling, measure_units
from headscope.jobs.evaluations import EvaluationSource, find_evaluation
from headscope.jobs.folder import OutputFolder, write_csv
from headscope.jobs.progress import Progress, ignore_progress, shows_progress
from headscope.learn.task import TEST
from headscope.runner.runs import identify_runs, refuse_other_runs
from headscope.runs import Run, Runs
from headscope.view.effects import list_effects
from headscope.view.figures import save
from headscope.view.figures.effects import draw_effects

MANIFEST = "effects.json"
"""The manifest of the folder."""

SUMMARY = "summary"
"""The name of the CSV file of the means over runs."""


@shows_progress
def measure_effects(
    model: Loadable,
    task: Any,
    out: str | Path = "headscope-effects",
    *,
    data: str | Path = ".",
    split: str = TEST,
    paradigms: Sequence[str] = (),
    limit: int | None = None,
    seed: int = 0,
    runs: str | Path | Runs | None = None,
    heads: str | Sequence[str] = (),
    layers: str | int | Sequence[str | int] = (),
    how: str | Sequence[str] = (),
    placebos: int = 4,
    top: int | None = None,
    pairs: int = 0,
    direct: bool = False,
    start: str | None = None,
    max_tokens: int | None = None,
    batch_tokens: int | None = None,
    device: str = "cpu",
    trust_remote_code: bool = False,
    resume: bool = False,
    progress: Progress | bool | None = None,
) -> xr.Dataset:
    """Evaluate a model with each head, each layer and each key/value head disabled: a head table and figures.

    Args:
        model: a hub id, a folder (such as that of a run of `headscope.tune`), a ``.gguf`` file, ``smollm2``, or a
            loaded model of transformers with its task head, alone or as ``(model, tokenizer)``; with `runs`, the model
            that they were tuned from.
        task: a task of `headscope.tune`, by name or as `headscope.read_task` gave it, or a folder of its TSV files;
            minimal pairs, as ``blimp`` or their file or folder; texts whose last word is predicted, as ``last-word:``
            and their path; or texts, as `headscope.read` takes them, for which the loss of the language model is
            measured.
        out: the folder for ``effects.nc``, ``effects.csv``, ``figures/`` and ``effects.json``, which lists them; of
            runs also for ``summary.csv``.
        data: the file or folder that holds the corpus of a named task, or the folder ``blimp``.
        split: of the task, whose examples are taken.
        paradigms: of minimal pairs. Default: all.
        limit: take so many examples of the task at random, the first so many texts, or the first so many pairs of
            each paradigm. Default: all.
        seed: random seed of the sample, of placebos and of texts for ``resample``.
        runs: a folder of runs that were tuned on the task from the model: heads are disabled in each of them instead of
            the model, and the table has the dimension ``run``. Default: none.
        heads: heads such as ``8-10``, or key/value heads such as ``3-kv1``, to be disabled one by one. Default: all,
            unless `layers` are named.
        layers: layers such as ``3``, to be disabled one by one. Default: all, unless `heads` are named.
        how: what takes the place of their output, one or several of ``uniform``, ``zero``, ``mean`` (over the texts of
            the task) and ``resample`` (of another text of the task). Placebos are those of the first. Default:
            ``uniform``.
        placebos: evaluations with placebos for each head, and twice as many for each layer; 2 or more, or 0 for none.
            Each takes as long as the head or layer itself.
        top: run so many heads alone, those with the largest first-order estimates, and as many more that are chosen at
            random, on which the estimates are checked. Default: run all heads.
        pairs: also disable each pair of so many heads, those with the largest effects, to see how they interact.
        direct: also measure what reaches the output directly, with the final norm scaled as it was and anew, and the
            share of it that the layers above undo (self-repair). Models with an additive residual stream have direct
            effects: most decoders do.
        start: the token from which a causal model predicts the first one of a text, such as ``<|endoftext|>``.
            Default: what the tokenizer puts there.
        max_tokens: cut longer examples to this many tokens. Default: the limit of the model.
        batch_tokens: tokens in a batch, padding included. Default: 2048.
        device: where to run the model; a loaded model stays where it is.
        trust_remote_code: run the Python code of the model's repository.
        resume: continue a killed run with the same arguments.
        progress: True shows it, False does not; a function is called with the step, how much of it is done, and how
            much there is. Default: shown on a terminal and in a notebook.

    Returns:
        The head table that is in ``effects.nc``. Of one of runs, `headscope.summarize_effects` gives the means.

    Raises:
        HeadscopeError: in one sentence, what was wrong with the model, the task, an argument or the folder.
    """
    ways = ([how] if isinstance(how, str) else [*how]) or ["uniform"]
    runs = open_runs(runs, None)
    check_disabling(ways, placebos, top, pairs, max_tokens, runs)
    check_model(model)
    named_heads, named_layers = list_names(heads), list_names(layers, of_layers=True)
    progress = progress if callable(progress) else ignore_progress
    with OutputFolder("the effects", Path(out), MANIFEST, (TABLE, PAIRS), resume=resume, progress=progress) as folder:
        source = task if isinstance(task, EvaluationSource) else None
        if source is None:
            progress("reading the task", 0, 0)
            source = find_evaluation(task, data, split=split, paradigms=paradigms, limit=limit, seed=seed)
        if runs is not None:
            source.check_runs(runs)
        settings: dict[str, Any] = {"start": start, "batch_tokens": batch_tokens or BATCH_TOKENS}
        settings |= {} if max_tokens is None else {"max_tokens": max_tokens}
        disabling = Disabling(ways, placebos, top, pairs, direct)

        def measure(loaded: Model, run: Run | None = None) -> xr.Dataset:
            units = list_units(loaded, [*named_heads, *named_layers])
            evaluation = source.prepare(loaded, **settings)
            if run is None:
                return measure_units(folder, loaded, evaluation, units, disabling, seed=seed)
            # Placebos of runs with one seed would err alike, and so would their mean.
            return measure_units(folder, loaded, evaluation, units, disabling, seed=seed + run.seed, run=run.name)

        progress("loading the model", 0, 0)
        if runs is None:
            model = load(model, device=device, trust_remote_code=trust_remote_code, task=source.head)
            table = measure(model)
        else:
            model = load(model, device=device, trust_remote_code=trust_remote_code)
            refuse_other_runs(model, runs, trust_remote_code=trust_remote_code)
            loading = partial(load, device=device, trust_remote_code=trust_remote_code, task=source.head)
            table = _join([measure(loading(runs.path(run)), run) for run in runs.runs], model, runs)
        arguments = {
            "model": model.name, "task": source.name, "split": split, "paradigms": [*paradigms], "limit": limit,
            "heads": named_heads, "layers": named_layers, "how": ways, "placebos": placebos, "top": top, "pairs": pairs,
            "direct": direct, "start": start, "max_tokens": max_tokens, "seed": seed, "runs": runs and str(runs.folder),
        }  # fmt: skip
        call = f"measure_effects({', '.join(f'{name}={value!r}' for name, value in arguments.items())})"
        created = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        table = table.assign_attrs({"call": call, "created": created})
        folder.write(lambda fresh: _fill(fresh, table), {"task": source.name, "model": model.name, "how": ways})
    return table


def _join(tables: Sequence[xr.Dataset], model: Model, runs: Runs) -> xr.Dataset:
    """The tables of runs as one."""
    for run, table in zip(runs.runs, tables, strict=True):
        if table.attrs["corpus_sha256"] != tables[0].attrs["corpus_sha256"]:
            raise ModelError(
                f"the run {run.name} of {runs.folder} reads the examples otherwise than {runs.runs[0].name} does, in "
                "other tokens or labels; give all runs one tokenizer and one order of labels."
            )
    together = join_effects(tables, [run.name for run in runs.runs], [run.seed for run in runs.runs])
    return together.assign_attrs(identify_runs(model, runs))


def _fill(fresh: Path, table: xr.Dataset) -> None:
    """Write all files of the folder."""
    write_table(table, fresh / f"{TABLE}.nc")
    write_csv(list_effects(table), fresh / f"{TABLE}.csv")
    if "run" in table.dims:
        write_csv(list_effects(summarize_effects(table)), fresh / f"{SUMMARY}.csv")
    for name, figure in draw_effects(table).items():
        save(figure, fresh / "figures", name, pdf=False)
