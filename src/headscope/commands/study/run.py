"""A study: locate its corpora, measure them, judge the claims of the paper, and write the results.

study, model --locate--> corpora --measure--> head tables --analyse--> with intervals --judge--> findings --> sheet
       head tables --choose--> sets of heads --disable them--> tables of lesions ----------^
       model --tune--> runs of the task and its control --measure--> tables of them -------^
                       runs of the task --disable heads--> a table of effects -------------^
"""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import xarray as xr
from matplotlib.figure import Figure

from headscope.analyse import assess
from headscope.analyse.lesions import MATCHES
from headscope.capture.forward.loss import find_task
from headscope.capture.model.model import Model
from headscope.commands.disable.request import measure_effects
from headscope.commands.folder import OutputFolder
from headscope.commands.inputs import make_plan, refuse_other_probes
from headscope.commands.lesions.request import Lesions
from headscope.commands.lesions.run import disable_sets
from headscope.commands.output import open_folder
from headscope.commands.progress import Progress
from headscope.commands.recorded_request import record_request
from headscope.commands.study.request import PROBE_TABLE, Study
from headscope.commands.study.study_result import StudyResult
from headscope.errors import ModelError, TableError
from headscope.learn.runs_folder import check_folder
from headscope.learn.task import Task
from headscope.learn.tune import tune
from headscope.reducers.support.permutations import with_permutations
from headscope.runner import Plan, resolve_reducers
from headscope.runs import CONTROL, Runs
from headscope.studies import sheet
from headscope.studies.findings import derive, judge
from headscope.studies.locate import Texts, sample_texts, select_documents
from headscope.studies.study import Measurement, NotMeasuredError
from headscope.studies.study import Study as Paper
from headscope.studies.tuning import tabulate_scores


def run(request: Study, progress: Progress) -> StudyResult:
    """Measure what the study measures, judge its claims, and write the results to the folder."""
    chosen, tuning, probes = request.paper, request.tuning, request.probes
    with open_folder(request, progress) as folder:
        runs_folder = folder.path / "runs" / (tuning.task.name if tuning else "")
        if tuning and not tuning.finished:
            check_folder(runs_folder, request.resume)
            check_folder(runs_folder / CONTROL, request.resume)
        progress("loading the model", 0, 0)
        loading = partial(request.load_model, request.model)
        model = loading()
        plan = make_plan(request, text=chosen.text)
        refuse_other_probes(probes, model, plan)
        measure = partial(_measure, folder, model, plan, request.trust_remote_code)
        texts = _read_texts(request, tuning.task if tuning else None, progress)
        tables = {table: measure(table, chosen.measurements[table], of_table) for table, of_table in texts.items()}
        of_losses, absent = _measure_gradients(folder, chosen, loading, texts, plan)
        tables |= of_losses
        runs = dict(tuning.finished) if tuning else {}
        if tuning and not tuning.finished:
            tuned = tune(
                tuning.task,
                request.model,
                runs_folder,
                replace(tuning.settings, device=model.device.type),
                seeds=tuning.seeds,
                control=True,
                trust_remote_code=request.trust_remote_code,
                resume=request.resume,
                progress=progress,
            )
            runs = {"task": tuned.task} | ({"control": tuned.control} if tuned.control else {})
        tables |= _measure_runs(measure, chosen, model, texts, runs)
        for table, measurement in chosen.measurements.items():
            if tuning and measurement.disabled_by:
                effects = measure_effects(
                    model,
                    tuning.task,
                    folder.path / table,
                    seed=request.seed,
                    runs=runs["task"],
                    how=measurement.disabled_by,
                    batch_tokens=request.batch_tokens,
                    device=model.device.type,
                    trust_remote_code=request.trust_remote_code,
                    resume=request.resume,
                    figures=request.figures,
                    pdf=request.pdf,
                    progress=progress,
                )
                tables[f"{table}_task"] = _select_encoder(effects, model)
        without_sets, without = _measure_lesions(folder, request, loading, tables)
        tables |= without_sets
        absent |= without
        attributes = record_request(request, model=model.name)
        tables = {
            name: table.assign_attrs(attributes, seed=request.seed, measurement=name) for name, table in tables.items()
        }
        if probes is None:
            absent[PROBE_TABLE] = "there are no probes: train them with `headscope probe` and give --probe"
        else:
            tables[PROBE_TABLE] = probes
        tables, _ = derive(chosen, tables)
        findings = judge(chosen, tables, absent)
        printed = sheet.make_printed_tables(chosen, tables) if runs else {}
        name = request.name
        render = partial(sheet.render_markdown, name, chosen, findings, tables, runs, list(printed.values()))
        # Tables of scores have no layers; the scores are in the folders of runs.
        files: dict[str, Any] = {f"{table}.nc": values for table, values in tables.items() if "layer" in values.dims}
        files |= {f"{name}-{table}.csv": frame for table, (_, frame) in printed.items()}
        files[f"{name}.csv"] = sheet.tabulate_findings(findings)
        files[f"{name}.md"] = render([])
        about = _describe_run(chosen, tables, runs, attributes["call"])
        result = StudyResult(chosen, findings, tables, folder.out, folder.write(files, about))
        request.hand_over(result)
        figures = _draw(chosen, tables) if folder.kept and request.has_figures else {}
        pictures = {f"{name}-{figure}": picture for figure, picture in figures.items()}
        drawings = folder.draw(pictures, {f"{name}.md": render([*figures])}, pdf=request.pdf)
        return replace(result, files=tuple(sorted({*result.files, *drawings})))


def _read_texts(request: Study, task: Task | None, progress: Progress) -> dict[str, Texts]:
    """Read the texts of each measurement: documents of its corpus or, without a corpus, texts of the tuning task."""
    texts = {}
    for table, measurement in request.paper.measurements.items():
        if table in request.paths:
            progress(f"reading {request.paths[table]}", 0, 0)
            texts[table] = select_documents(measurement, request.paths[table], request.seed)
        elif task and measurement.reducers:
            texts[table] = sample_texts(task, request.seed, measurement.sample)
    return texts


def _measure_gradients(
    folder: OutputFolder, study: Paper, loading: Callable[..., Model], texts: Mapping[str, Texts], plan: Plan
) -> tuple[dict[str, xr.Dataset], dict[str, str]]:
    """Measure gradients of losses with respect to attention, before fine-tuning.

    Returns:
        The tables by name; and, for each table that cannot be measured, the reason.
    """
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
    folder: OutputFolder, request: Study, loading: Callable[..., Model], tables: Mapping[str, xr.Dataset]
) -> tuple[dict[str, xr.Dataset], dict[str, str]]:
    """Measure the model without the sets of heads of the study.

    Returns:
        The tables by name; and, for each table that cannot be measured, the reason.
    """
    measured, absent = {}, {}
    for name, lesions in request.paper.lesions.items():
        examples = request.evaluations[name]
        for match in MATCHES:
            table = f"{name}_{match}"
            try:
                disabling = Lesions(
                    request.model,
                    examples,
                    lesions.choose(tables[lesions.on]),
                    random=lesions.random,
                    match=match,
                    seed=request.seed,
                    start=request.start,
                    text=request.paper.text,
                    batch_tokens=request.batch_tokens,
                )
                measured[table] = disable_sets(folder, table, loading(task=examples.head), examples, disabling)
            except (ModelError, NotMeasuredError) as error:
                absent[table] = str(error).rstrip(".")
    return measured, absent


def _measure_runs(
    measure: Callable[..., xr.Dataset], study: Paper, model: Model, texts: Mapping[str, Texts], runs: Mapping[str, Runs]
) -> dict[str, xr.Dataset]:
    """Return the scores of the fine-tuned runs, and their head tables for the task and the control, by name."""
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
    """Measure a table of a study; for the model before fine-tuning, add intervals and reported heads."""
    if measurement.max_tokens is not None:
        plan = replace(plan, max_tokens=measurement.max_tokens, cut=True)
    # The papers have no p-values of heads, and permutations take most of the time.
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
    """Select the encoder in a table with several attention types, since the papers are about encoders."""
    if "attention_type" not in table.dims:
        return table
    # Another attention type may have more layers.
    return table.sel(attention_type="encoder", drop=True).isel(layer=slice(0, model.layers["encoder"]))


def _draw(study: Paper, tables: Mapping[str, xr.Dataset]) -> dict[str, Figure]:
    """Draw the figures of the paper whose tables were measured, and return them by name.

    A figure that cannot be drawn from its tables is left out.
    """
    figures = {}
    for figure, (needed, draw) in study.figures.items():
        if all(table in tables for table in needed):
            with suppress(TableError):
                figures[figure] = draw(*(tables[table] for table in needed))
    return figures


def _describe_run(
    study: Paper, tables: Mapping[str, xr.Dataset], runs: Mapping[str, Runs], call: str
) -> dict[str, Any]:
    """Return the provenance that all tables share, the corpus of each table, and the settings of the runs."""
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
