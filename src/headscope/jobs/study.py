"""A study: its corpora located and measured, its claims judged, and all of it written down.

study, model --locate--> corpora --measure--> head tables --analyse--> with intervals --judge--> findings --> sheet
       head tables --choose--> sets of heads --disable them--> tables of lesions ----------^
       model --tune--> runs of the task and its control --measure--> tables of them -------^
                       runs of the task --disable heads--> a table of effects -------------^
"""

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import xarray as xr

from headscope import heads
from headscope.analyse import assess
from headscope.analyse.lesions import MATCHES
from headscope.capture.loading import Loadable, load
from headscope.capture.loss import find_task
from headscope.capture.model import Model
from headscope.corpora import Corpus, read
from headscope.errors import ModelError, TableError
from headscope.files import write_text
from headscope.jobs.arguments import check_model, open_probes
from headscope.jobs.disable import measure_effects
from headscope.jobs.evaluations import EvaluationSource, find_evaluation
from headscope.jobs.folder import OutputFolder, write_csv
from headscope.jobs.inputs import make_plan, refuse_other_probes
from headscope.jobs.lesions import disable_sets
from headscope.jobs.progress import Progress, ignore_progress, shows_progress
from headscope.jobs.study_arguments import (
    PROBE_TABLE,
    check_lesions_of_study,
    check_probes_of_study,
    check_study,
)
from headscope.learn.folder import check_folder
from headscope.learn.task import Task
from headscope.learn.tune import tune
from headscope.reducers.support.permutations import with_permutations
from headscope.runner import Plan, resolve_reducers
from headscope.runs import CONTROL, Runs
from headscope.studies import STUDIES, sheet
from headscope.studies.findings import Finding, derive, judge
from headscope.studies.locate import Texts, locate, sample_texts, select_documents
from headscope.studies.study import Measurement, NotMeasuredError, Study
from headscope.studies.tuning import TuningOptions, plan_tuning, tabulate_scores
from headscope.view import figures


@dataclass(frozen=True)
class StudyResult:
    """What `study` computed and wrote.

    Attributes:
        study: the study.
        findings: the verdict on each claim.
        tables: the head tables, by the names of the study's measurements.
        folder: the folder.
        files: all files, relative to `folder`.
    """

    study: Study
    findings: tuple[Finding, ...]
    tables: Mapping[str, xr.Dataset]
    folder: Path
    files: tuple[str, ...]


@shows_progress
def study(
    name: str,
    model: Loadable = "minilm",
    data: str | Path = ".",
    out: str | Path = "headscope-study",
    *,
    corpora: Mapping[str, str | Path | Iterable[Any]] | None = None,
    device: str = "cpu",
    seed: int = 0,
    seeds: int | None = None,
    epochs: int | None = None,
    learning_rate: float | None = None,
    task: str = "",
    max_examples: int | None = None,
    select: str = "validation",
    runs: str | Path | None = None,
    probe: str | Path | xr.Dataset | None = None,
    limits: Mapping[str, int] | None = None,
    start: str | None = None,
    batch_tokens: int | None = None,
    trust_remote_code: bool = False,
    resume: bool = False,
    progress: Progress | bool | None = None,
) -> StudyResult:
    """Measure what a paper measured, and write its results and one's own side by side.

    Args:
        name: one of `STUDIES`.
        model: a hub id, a folder, a ``.gguf`` file, ``minilm`` or ``smollm2`` (`headscope.load`), or a loaded model of
            transformers, alone or as ``(model, tokenizer)``.
        data: the folder that holds the corpora.
        out: the folder for ``NAME.md``, ``NAME.csv``, a head table for each corpus and the figures.
        corpora: files, folders or texts in memory to measure instead of those in `data`, by the names of the study's
            measurements.
        device: where to run the model; a loaded model stays where it is.
        seed: random seed for sampling documents.
        seeds: number of fine-tuning runs on the study's task, and on its control. Default: no fine-tuning, and the
            claims about it are not measured.
        epochs: passes over the training examples. Default: those of the paper.
        learning_rate: at the first step. Default: that of the paper; a small model may need a larger one.
        task: the task to fine-tune on. Default: the first of the study.
        max_examples: train on a random sample of at most this many examples. Default: all of them.
        select: the split on which the best epoch is chosen: ``validation``, or ``test`` as in the papers.
        runs: a folder of runs on the study's task, with those on its control in ``control`` in it, as `headscope.tune`
            writes them; they are measured in place of new ones.
        probe: the folder that `headscope probe` wrote of the model, or its table, for the claims about probes. Default:
            none, and these claims are not measured.
        limits: by the names of the study's lesions, how many texts are taken at random, or of each paradigm the first
            pairs. Default: all, which takes days without a GPU.
        start: the token from which a causal model predicts the first one of a text, such as ``<|endoftext|>``.
            Default: what the tokenizer puts there.
        batch_tokens: tokens in a batch, padding included.
        trust_remote_code: run the Python code of the model's repository.
        resume: continue a killed run with the same arguments.
        progress: True shows it, False does not; a function is called with the step, how much of it is done, and how
            much there is. Default: shown on a terminal and in a notebook.

    Raises:
        HeadscopeError: there is no such study, a corpus is missing, or the model or the folder is refused.
    """
    check_study(name)
    check_model(model)
    check_probes_of_study(probe, name)
    check_lesions_of_study(name, corpora or {}, limits, start)
    probes = open_probes(probe)
    chosen, progress = STUDIES[name], progress if callable(progress) else ignore_progress
    data = Path(data).expanduser()
    given = {
        table: Path(corpus).expanduser() if isinstance(corpus, str | Path) else read(corpus)
        for table, corpus in (corpora or {}).items()
    }
    repeated = chosen.tuning.measured if chosen.tuning else ()
    of_runs = [f"{table}_{group}" for table in repeated for group in ("task", "control")]
    options = TuningOptions(
        seeds, epochs, learning_rate, task, max_examples, select, None if runs is None else Path(runs)
    )
    tuning = plan_tuning(name, chosen, options, data, given)
    of_loss = [f"{table}_gradients" for table, measurement in chosen.measurements.items() if measurement.loss]
    of_lesions = [f"{table}_{match}" for table in chosen.lesions for match in MATCHES]
    measured = (*chosen.measurements, *of_loss, *of_runs, *of_lesions)
    with OutputFolder("the study", Path(out), f"{name}.json", measured, resume, progress) as folder:
        runs_folder = folder.path / "runs" / (tuning.task.name if tuning else "")
        if tuning and not tuning.finished:
            check_folder(runs_folder, resume)
            check_folder(runs_folder / CONTROL, resume)
        paths = locate(chosen, data, given)
        examples = {
            table: find_evaluation(f"{lesions.task}{paths.pop(table)}", limit=(limits or {}).get(table), seed=seed)
            for table, lesions in chosen.lesions.items()
        }
        progress("loading the model", 0, 0)
        given_model = model
        model = load(model, device=device, trust_remote_code=trust_remote_code)
        refuse_other_probes(probes, model)
        measure = partial(_measure, folder, model, make_plan(None, None, None, batch_tokens), trust_remote_code)
        texts = _read_texts(chosen, paths, tuning.task if tuning else None, seed, progress)
        tables = {table: measure(table, chosen.measurements[table], of_table) for table, of_table in texts.items()}
        loading = partial(load, given_model, device=device, trust_remote_code=trust_remote_code)
        of_losses, absent = _measure_gradients(
            folder, chosen, loading, texts, make_plan(None, None, None, batch_tokens)
        )
        tables |= of_losses
        tuned_runs = dict(tuning.finished) if tuning else {}
        if tuning and not tuning.finished:
            tuned = tune(
                tuning.task, given_model, runs_folder, replace(tuning.settings, device=model.device.type),
                seeds=tuning.seeds, control=True, trust_remote_code=trust_remote_code, resume=resume, progress=progress,
            )  # fmt: skip
            tuned_runs = {"task": tuned.task} | ({"control": tuned.control} if tuned.control else {})
        tables |= _measure_runs(measure, chosen, model, texts, tuned_runs)
        for table, measurement in chosen.measurements.items():
            if tuning and measurement.disabled_by:
                effects = measure_effects(
                    model, tuning.task, folder.path / table, seed=seed, runs=tuned_runs["task"],
                    how=measurement.disabled_by, batch_tokens=batch_tokens, device=model.device.type,
                    trust_remote_code=trust_remote_code, resume=resume, progress=progress,
                )  # fmt: skip
                tables[f"{table}_task"] = _select_encoder(effects, model)
        without_sets, without = _measure_lesions(
            folder, chosen, loading, tables, examples, seed=seed, start=start, batch_tokens=batch_tokens
        )
        tables |= without_sets
        absent |= without
        call = (
            f"study({name!r}, model={model.name!r}, data={str(data)!r}, "
            f"corpora={ {table: str(corpus) for table, corpus in given.items()} }, batch_tokens={batch_tokens}, "
            f"seed={seed}{f', {options}' if tuning else ''}"
            f"{f', limits={limits}, start={start!r}' if chosen.lesions else ''})"
        )
        tables = {table: values.assign_attrs(call=call, seed=seed) for table, values in tables.items()}
        if probes is None:
            absent[PROBE_TABLE] = "there are no probes: train them with `headscope probe` and give --probe"
        else:
            tables[PROBE_TABLE] = probes
        tables, _ = derive(chosen, tables)
        findings = judge(chosen, tables, absent)
        result = StudyResult(chosen, findings, tables, folder.path, ())
        files = folder.write(
            lambda fresh: _fill(fresh, name, result, tuned_runs), _describe_run(chosen, tables, tuned_runs, call)
        )
    return replace(result, files=files)


def _read_texts(
    study: Study, paths: Mapping[str, Path | Corpus], task: Task | None, seed: int, progress: Progress
) -> dict[str, Texts]:
    """What is measured, by measurement: documents of a corpus, or texts of the task that is fine-tuned on."""
    texts = {}
    for table, measurement in study.measurements.items():
        if table in paths:
            progress(f"reading {paths[table]}", 0, 0)
            texts[table] = select_documents(measurement, paths[table], seed)
        elif task and measurement.reducers:
            texts[table] = sample_texts(task, seed, measurement.sample)
    return texts


def _measure_gradients(
    folder: OutputFolder, study: Study, loading: Callable[..., Model], texts: Mapping[str, Texts], plan: Plan
) -> tuple[dict[str, xr.Dataset], dict[str, str]]:
    """The gradients of losses by the attention of the model before tuning, and the reasons why others are missing."""
    tables, absent = {}, {}
    for table, measurement in study.measurements.items():
        if not measurement.loss:
            continue
        name, (head, *reducers) = f"{table}_gradients", measurement.loss
        try:
            model = loading(task=head)
        except ModelError as error:
            absent[name] = f"the weights have no head for {head}: {str(error).rstrip('.')}"
            continue
        if find_task(type(model.module).__name__) != head:
            absent[name] = f"the loaded model has no head for {head}, whose loss is needed"
            continue
        summary = texts[table].summary
        resolved = resolve_reducers(reducers, summary)
        measured = folder.measure(name, model, texts[table].documents, resolved, plan=plan, summary=summary)
        tables[name] = _select_encoder(measured, model)
    return tables, absent


def _measure_lesions(
    folder: OutputFolder, study: Study, loading: Callable[..., Model], tables: Mapping[str, xr.Dataset],
    examples: Mapping[str, EvaluationSource], **settings: Any,
) -> tuple[dict[str, xr.Dataset], dict[str, str]]:  # fmt: skip
    """What the model loses without sets of heads, and the reasons why other tables are missing."""
    measured, absent = {}, {}
    for name, lesions in study.lesions.items():
        for table, match in {f"{name}_{match}": match for match in MATCHES}.items():
            try:
                sets, model = lesions.choose(tables[lesions.on]), loading(task=examples[name].head)
                measured[table] = disable_sets(
                    folder, table, model, examples[name], sets, random=lesions.random, match=match, how="uniform",
                    **settings,
                )  # fmt: skip
            except (ModelError, NotMeasuredError) as error:
                absent[table] = str(error).rstrip(".")
    return measured, absent


def _measure_runs(
    measure: Callable[..., xr.Dataset], study: Study, model: Model, texts: Mapping[str, Texts], runs: Mapping[str, Runs]
) -> dict[str, xr.Dataset]:
    """The scores of the fine-tuned models, and the tables of their heads, by group."""
    tables = {f"tuned_{group}": tabulate_scores(of_group, model) for group, of_group in runs.items()}
    for table in study.tuning.measured if study.tuning else ():
        for group, of_group in runs.items():
            name = f"{table}_{group}"
            tables[name] = measure(name, study.measurements[table], texts[table], of_group)
    return tables


def _measure(
    folder: OutputFolder, model: Model, plan: Plan, trust_remote_code: bool,
    name: str, measurement: Measurement, texts: Texts, runs: Runs | None = None,
) -> xr.Dataset:  # fmt: skip
    """The table of a measurement; before fine-tuning with intervals and reported heads where it has scores."""
    if measurement.max_tokens is not None:
        plan = replace(plan, max_tokens=measurement.max_tokens, cut=True)
    # The papers have no p-values of heads, and permutations take longer than all the rest.
    names = measurement.reducers + (measurement.tuned if runs else ())
    reducers = [with_permutations(reducer, 0) for reducer in resolve_reducers(names, texts.summary)]
    table = folder.measure(
        name, model, texts.documents, reducers, plan=plan, summary=texts.summary, runs=runs,
        trust_remote_code=trust_remote_code,
    )  # fmt: skip
    if texts.part:
        table = table.assign_attrs(corpus=texts.corpus, corpus_sha256=texts.sha256, part=texts.part)
    table = _select_encoder(table, model)
    return table if runs else assess(table)


def _select_encoder(table: xr.Dataset, model: Model) -> xr.Dataset:
    """The part of a table that is about the encoder, if the model has several attention types: so are the papers."""
    if "attention_type" not in table.dims:
        return table
    # Another attention type may have more layers.
    return table.sel(attention_type="encoder", drop=True).isel(layer=slice(0, model.layers["encoder"]))


def _fill(folder: Path, name: str, result: StudyResult, runs: Mapping[str, Runs]) -> None:
    study, tables = result.study, result.tables
    for table, values in tables.items():
        if "layer" in values.dims:  # the scores of the models are in the folders of runs
            heads.write_table(values, folder / f"{table}.nc")
    shown = []
    for figure, (needed, draw) in study.figures.items():
        if any(table not in tables for table in needed):
            continue
        with suppress(TableError):  # what cannot be drawn was not measured, and the sheet says why
            figures.save(draw(*(tables[table] for table in needed)), folder / "figures", f"{name}-{figure}")
            shown.append(figure)
    printed = sheet.make_printed_tables(study, tables) if runs else {}
    for table, (_, frame) in printed.items():
        write_csv(frame, folder / f"{name}-{table}.csv")
    write_csv(sheet.tabulate_findings(result.findings), folder / f"{name}.csv")
    page = sheet.render_markdown(name, study, result.findings, tables, runs, list(printed.values()), shown)
    write_text(page, folder / f"{name}.md")


def _describe_run(
    study: Study, tables: Mapping[str, xr.Dataset], runs: Mapping[str, Runs], call: str
) -> dict[str, Any]:
    """The provenance that the tables share, the corpus of each, and the settings of the fine-tuning."""
    of_model = ("model", "revision", "weights_sha256", "tokenizer", "dtype", "device", "seed")
    of_corpus = ("corpus", "corpus_sha256", "documents", "words", "tokens", "skipped", "part")
    measured = {name: tables[name].attrs for name in study.measurements if name in tables}
    first = next(iter(measured.values()))
    corpora = {name: {key: attrs[key] for key in of_corpus if key in attrs} for name, attrs in measured.items()}
    for corpus in corpora.values():
        corpus["skipped"] = json.loads(corpus["skipped"])
    return {key: first[key] for key in of_model} | {
        "call": call, "versions": json.loads(first["versions"]), "corpora": corpora,
        "runs": {group: {"folder": str(of_group.folder), **of_group.settings} for group, of_group in runs.items()},
    }  # fmt: skip
