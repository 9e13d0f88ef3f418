"""One study, run: its corpora found and measured, its claims judged, and all of it written down.

study, model --locate--> corpora --measure--> head tables --analyse--> with intervals --judge--> findings --> sheet
       model --tune--> runs of the task and its control --measure--> tables of them -------^
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import xarray as xr

from headscope import heads
from headscope.analyse import analysed
from headscope.capture import load
from headscope.capture.model import Model
from headscope.corpora import CorpusSummary, summarize
from headscope.corpora.document import Document
from headscope.errors import HeadscopeError, TableError
from headscope.files import atomic_write
from headscope.jobs.folder import Job, Progress
from headscope.learn.task import Task
from headscope.reducers.support.permutations import with_permutations
from headscope.runner import Plan, resolve_reducers
from headscope.runs import Runs
from headscope.studies import STUDIES, sheet
from headscope.studies.locate import chosen, locate, texts_of
from headscope.studies.sheet import printed
from headscope.studies.study import Finding, Measurement, Study, derive, judge
from headscope.studies.tuning import Asked, check_runs, families, scores, task_of, tuned
from headscope.view import figures


@dataclass(frozen=True)
class Studied:
    """What `study` made.

    Attributes:
        findings: how the claims stand.
        tables: the head tables, by the names of the study's measurements.
        folder: where everything is.
        files: what was written, relative to `folder`.
    """

    findings: tuple[Finding, ...]
    tables: Mapping[str, xr.Dataset]
    folder: Path
    files: tuple[str, ...]


def study(
    name: str,
    model: str | Path | Model = "minilm",
    data: str | Path = ".",
    out: str | Path = "headscope-study",
    *,
    corpora: Mapping[str, Path] | None = None,
    plan: Plan | None = None,
    device: str = "cpu",
    seed: int = 0,
    seeds: int | None = None,
    epochs: int | None = None,
    learning_rate: float | None = None,
    task: str = "",
    most: int | None = None,
    select: str = "validation",
    trust_remote_code: bool = False,
    resume: bool = False,
    progress: Progress | None = None,
) -> Studied:
    """Measure what a paper measured, and write its figures and one's own side by side.

    Args:
        name: of `STUDIES`.
        model: a loaded model, or what `headscope.load` takes.
        data: the folder that holds the corpora.
        out: the folder for ``NAME.md``, ``NAME.csv``, a head table for each corpus and the figures.
        corpora: files or folders to measure in place of those in `data`, by the names of the study's measurements.
        plan: how to batch; what the study says of the length of texts goes before it.
        device: where to run the model.
        seed: of a sample of documents.
        seeds: fine-tune on the study's task and on its control, so many runs each; by default nothing is fine-tuned,
            and what the paper says of that is not measured.
        epochs: of each run; by default those of the paper.
        learning_rate: at the first step; by default that of the paper, which a small model may need to be larger.
        task: which of the study's tasks; by default the first.
        most: training examples, drawn at random; by default all.
        select: the split on which the epoch that is kept is chosen: ``validation``, or ``test`` as in the papers.
        trust_remote_code: run the Python that a hub repository brings.
        resume: go on where a killed run with the same arguments stopped.
        progress: is told of the progress.

    Raises:
        HeadscopeError: there is no such study, a corpus is missing, or the model or the folder is refused.
    """
    if name not in STUDIES:
        raise HeadscopeError(f"there is no study {name!r}; there are {', '.join(STUDIES)}.")
    of, progress = STUDIES[name], progress or (lambda stage, done, total: None)
    measured = [f"{one}_{group}" for one in (of.tuning.measured if of.tuning else ()) for group in ("task", "control")]
    job = Job("the study", Path(out), f"{name}.json", (*of.measurements, *measured), resume, progress)
    job.check()
    data = Path(data).expanduser()
    asked = _asked(seeds, epochs, learning_rate, task, most, select)
    learnt = task_of(name, of, asked, data, corpora or {}) if asked else None
    if learnt:
        check_runs(job, learnt)
    paths = locate(of, data, corpora or {})
    progress("loading the model", 0, 0)
    subject = model if isinstance(model, Model) else load(model, device=device, trust_remote_code=trust_remote_code)
    given = {of_table: str(path) for of_table, path in (corpora or {}).items()}
    call = f"study({name!r}, model={subject.name!r}, data={str(data)!r}, corpora={given}, plan={plan}, seed={seed}" + (
        f", {asked})" if asked else ")"
    )
    sources = {
        table: _source(of.measurements[table], path, subject, plan or Plan(), seed, progress)
        for table, path in paths.items()
    }
    if learnt:
        sources |= {
            table: _texts(one, learnt, subject, plan or Plan(), seed)
            for table, one in of.measurements.items()
            if one.of_task
        }
    tables = {table: _measured(job, table, source) for table, source in sources.items()}
    runs: dict[str, Runs] = {}
    if asked and learnt and of.tuning:
        runs = families(tuned(job, of.tuning, learnt, asked, subject, trust_remote_code))
        for group, each in runs.items():
            tables[f"tuned_{group}"] = scores(each, subject)
            for table in of.tuning.measured:
                tables[f"{table}_{group}"] = _measured(job, f"{table}_{group}", sources[table], each)
    tables = {table: values.assign_attrs(call=call, seed=seed) for table, values in tables.items()}
    tables, _ = derive(of, tables)
    findings = judge(of, tables)
    written = job.write(lambda fresh: _fill(fresh, name, of, findings, tables, runs), _about(of, tables, runs, call))
    return Studied(findings, tables, job.folder, written)


@dataclass(frozen=True)
class _Source:
    """What is measured, and of which corpus: its name and hash, and which part of it."""

    wanted: Measurement
    corpus: str
    sha256: str
    documents: Iterable[Document]
    summary: CorpusSummary
    which: str
    model: Model
    plan: Plan


def _asked(
    seeds: int | None, epochs: int | None, learning_rate: float | None, task: str, most: int | None, select: str
) -> Asked | None:
    """How to fine-tune, if at all."""
    if seeds is not None:
        return Asked(seeds, epochs, learning_rate, task, most, select)
    if epochs is not None or learning_rate is not None or task or most is not None:
        raise HeadscopeError("nothing is fine-tuned without seeds; give --seeds, the number of runs, as well.")
    return None


def _source(wanted: Measurement, path: Path, model: Model, plan: Plan, seed: int, progress: Progress) -> _Source:
    progress(f"reading {path}", 0, 0)
    corpus, documents, summary, which = chosen(wanted, path, seed)
    if wanted.max_tokens is not None:
        plan = replace(plan, max_tokens=wanted.max_tokens, cut=True)
    return _Source(wanted, corpus.name, corpus.sha256, documents, summary, which, model, plan)


def _texts(wanted: Measurement, task: Task, model: Model, plan: Plan, seed: int) -> _Source:
    documents, which = texts_of(task, seed, wanted.sample)
    sha256 = hashlib.sha256(repr(sorted(task.source.items())).encode()).hexdigest()
    return _Source(wanted, task.name, sha256, documents, summarize(documents), which, model, plan)


def _measured(job: Job, name: str, source: _Source, runs: Runs | None = None) -> xr.Dataset:
    """One of the tables; before fine-tuning with intervals and reported heads where it has scores."""
    model, documents, plan, summary = source.model, source.documents, source.plan, source.summary
    # The papers have no p-values of heads, and permutations take longer than all the rest.
    wanted = source.wanted.reducers + (source.wanted.tuned if runs else ())
    reducers = [with_permutations(one, 0) for one in resolve_reducers(wanted, summary)]
    if runs is None:
        table = job.measure(name, model, documents, reducers, called=f"measuring {name}", plan=plan, summary=summary)
    else:
        table = job.measure_runs(name, model, runs, documents, reducers, plan=plan, summary=summary)
    if source.which:
        table = table.assign_attrs(corpus=source.corpus, corpus_sha256=source.sha256, part=source.which)
    if "attention_type" in table.dims:
        # The papers are about encoders. Another attention type may have more layers.
        table = table.sel(attention_type="encoder", drop=True)
        table = table.isel(layer=slice(0, model.layers["encoder"]))
    return table if runs else analysed(table)


def _fill(
    folder: Path,
    name: str,
    of: Study,
    findings: tuple[Finding, ...],
    tables: Mapping[str, xr.Dataset],
    runs: Mapping[str, Runs],
) -> None:
    for table, values in tables.items():
        if "layer" in values.dims:  # the scores of the models are in the folders of runs
            heads.write(values, folder / f"{table}.nc")
    drawn = []
    for figure, (on, draw) in of.figures.items():
        if any(table not in tables for table in on):
            continue
        with suppress(TableError):  # what cannot be drawn was not measured, and the sheet says why
            figures.save(draw(*(tables[table] for table in on)), folder / "figures", f"{name}-{figure}")
            drawn.append(figure)
    laid_out = printed(of, tables) if runs else {}
    for table, (_, made) in laid_out.items():
        with atomic_write(folder / f"{name}-{table}.csv") as temporary:
            made.to_csv(temporary, index=False, float_format="%.6g")
    with atomic_write(folder / f"{name}.csv") as temporary:
        sheet.frame(findings).to_csv(temporary, index=False, float_format="%.6g")
    with atomic_write(folder / f"{name}.md") as temporary:
        page = sheet.markdown(name, of, findings, tables, runs, list(laid_out.values()), drawn)
        temporary.write_text(page, encoding="utf-8")


def _about(of: Study, tables: Mapping[str, xr.Dataset], runs: Mapping[str, Runs], call: str) -> dict[str, Any]:
    """What the tables have in common, the corpus of each, and how the runs were tuned."""
    of_model = ("model", "revision", "weights_sha256", "tokenizer", "dtype", "device", "seed")
    of_corpus = ("corpus", "corpus_sha256", "documents", "words", "tokens", "skipped", "part")
    measured = {name: tables[name].attrs for name in of.measurements if name in tables}
    first = next(iter(measured.values()))
    corpora = {name: {key: attrs[key] for key in of_corpus if key in attrs} for name, attrs in measured.items()}
    for about in corpora.values():
        about["skipped"] = json.loads(about["skipped"])
    return {key: first[key] for key in of_model} | {
        "call": call, "versions": json.loads(first["versions"]), "corpora": corpora,
        "runs": {group: {"folder": str(one.folder), **one.settings} for group, one in runs.items()},
    }  # fmt: skip
