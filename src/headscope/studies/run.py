"""One study, run: its corpora found and measured, its claims judged, and all of it written down.

study, model --locate--> corpora --measure--> head tables --analyse--> with intervals --judge--> findings --> sheet
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import xarray as xr

from headscope import heads
from headscope._job import Job, Stage
from headscope.analyse import analysed
from headscope.capture import load
from headscope.capture.model import Model
from headscope.disk import replacing
from headscope.errors import HeadscopeError, TableError
from headscope.measure.run import Plan, resolve
from headscope.measure.shuffle import with_draws
from headscope.studies import STUDIES, sheet
from headscope.studies.locate import chosen, locate
from headscope.studies.study import Finding, Study, judge
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
    trust_remote_code: bool = False,
    resume: bool = False,
    report: Stage | None = None,
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
        trust_remote_code: run the Python that a hub repository brings.
        resume: go on where a killed run with the same arguments stopped.
        report: is told of the progress.

    Raises:
        HeadscopeError: there is no such study, a corpus is missing, or the model or the folder is refused.
    """
    if name not in STUDIES:
        raise HeadscopeError(f"there is no study {name!r}; there are {', '.join(STUDIES)}.")
    of, report = STUDIES[name], report or (lambda stage, done, total: None)
    job = Job("the study", Path(out), f"{name}.json", tuple(of.measurements), resume, report)
    job.check()
    paths = locate(of, Path(data).expanduser(), corpora or {})
    report("loading the model", 0, 0)
    subject = model if isinstance(model, Model) else load(model, device=device, trust_remote_code=trust_remote_code)
    given = {of_table: str(path) for of_table, path in (corpora or {}).items()}
    call = f"study({name!r}, model={subject.name!r}, data={str(data)!r}, corpora={given}, plan={plan}, seed={seed})"
    tables = {}
    for table, path in paths.items():
        measured = _measured(job, of, table, path, subject, plan or Plan(), seed)
        tables[table] = measured.assign_attrs(call=call, seed=seed)
    findings = judge(of, tables)
    written = job.write(lambda fresh: _fill(fresh, name, of, findings, tables), _about(tables, call))
    return Studied(findings, tables, job.folder, written)


def _measured(job: Job, of: Study, name: str, path: Path, model: Model, plan: Plan, seed: int) -> xr.Dataset:
    """One of the tables, with intervals and reported heads where it has scores."""
    wanted = of.measurements[name]
    job.report(f"reading {path}", 0, 0)
    corpus, documents, found, which = chosen(wanted, path, seed)
    if wanted.max_tokens is not None:
        plan = replace(plan, max_tokens=wanted.max_tokens, cut=True)
    # The papers have no p-values of heads, and draws take longer than all the rest.
    reducers = [with_draws(one, 0) for one in resolve(wanted.reducers, found)]
    table = job.measure(name, model, documents, reducers, called=f"measuring {name}", plan=plan, found=found)
    if which:
        table = table.assign_attrs(corpus=corpus.name, corpus_sha256=corpus.sha256, part=which)
    if "stack" in table.dims:
        # The papers are about encoders. Another stack may have more layers.
        table = table.sel(stack="encoder", drop=True)
        table = table.isel(layer=slice(0, model.layers["encoder"]))
    return analysed(table)


def _fill(folder: Path, name: str, of: Study, findings: tuple[Finding, ...], tables: Mapping[str, xr.Dataset]) -> None:
    for table, values in tables.items():
        heads.write(values, folder / f"{table}.nc")
    for figure, (on, draw) in of.figures.items():
        if any(table not in tables for table in on):
            continue
        with suppress(TableError):  # what cannot be drawn was not measured, and the sheet says why
            figures.save(draw(*(tables[table] for table in on)), folder / "figures", f"{name}-{figure}")
    with replacing(folder / f"{name}.csv") as temporary:
        sheet.frame(findings).to_csv(temporary, index=False, float_format="%.6g")
    with replacing(folder / f"{name}.md") as temporary:
        temporary.write_text(sheet.markdown(name, of, findings, tables), encoding="utf-8")


def _about(tables: Mapping[str, xr.Dataset], call: str) -> dict[str, Any]:
    """What the tables have in common, and the corpus of each."""
    of_model = ("model", "revision", "weights_sha256", "tokenizer", "dtype", "device", "seed")
    of_corpus = ("corpus", "corpus_sha256", "documents", "words", "tokens", "skipped", "part")
    first = next(iter(tables.values())).attrs
    corpora = {name: {key: t.attrs[key] for key in of_corpus if key in t.attrs} for name, t in tables.items()}
    for about in corpora.values():
        about["skipped"] = json.loads(about["skipped"])
    return {key: first[key] for key in of_model} | {
        "call": call, "versions": json.loads(first["versions"]), "corpora": corpora
    }  # fmt: skip
