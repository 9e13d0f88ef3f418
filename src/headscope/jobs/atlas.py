r"""The main job: measure everything that a corpus's annotation allows, and write it all down.

model, corpus --measure--> head table --analyse--> with intervals and reported heads
             \-> untrained model --measure--> control --/         \--view--> figures, page, tables
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from headscope import heads
from headscope.analyse import analysed
from headscope.capture import load, untrained_model
from headscope.corpora import read, summarize
from headscope.files import atomic_write
from headscope.jobs.folder import Job, Progress
from headscope.reducers import REDUCERS
from headscope.reducers.support.permutations import PERMUTATIONS, with_permutations
from headscope.runner import Plan, resolve_reducers
from headscope.view import figures, heatmaps
from headscope.view.frames import frames
from headscope.view.lengths import accuracy_by_length
from headscope.view.page import write_page

FREQUENT = 12
"""Relations that get a heatmap on the page, most frequent first."""

DESCRIPTIONS = ("surface", "classes")
"""Reducers that say where attention goes; all others have a score that a head can be chosen by."""


@dataclass(frozen=True)
class Atlas:
    """What `atlas` made.

    Attributes:
        table: the head table of ``heads.nc``.
        folder: where everything is.
        files: what was written, relative to `folder`.
    """

    table: xr.Dataset
    folder: Path
    files: tuple[str, ...]


def atlas(
    model: str | Path = "minilm",
    corpus: str | Path = "grammar",
    out: str | Path = "headscope-atlas",
    *,
    format: str | None = None,
    patterns: str | Path | None = None,
    plan: Plan | None = None,
    device: str = "cpu",
    seed: int = 0,
    permutations: int = PERMUTATIONS,
    trust_remote_code: bool = False,
    resume: bool = False,
    progress: Progress | None = None,
) -> Atlas:
    """Measure every head of a model on a corpus, with controls, and write tables, figures and a page.

    Args:
        model: what `headscope.load` takes.
        corpus: what `headscope.read` takes.
        out: the folder for ``heads.nc``, ``untrained.nc``, ``figures/``, ``tables/``, ``manifest.json`` and
            ``atlas.html``. An older atlas in it is replaced when all of the new one is there; other
            files are left alone.
        format: of the corpus, if it is not to be told from the content.
        patterns: a file of spaCy's patterns, which add links to the corpus.
        plan: how to batch.
        device: where to run the model.
        seed: of the random weights of the untrained model.
        permutations: how often the gold is moved for p-values (`headscope.reducers.support.permutations`); 0 for none.
        trust_remote_code: run the Python that a hub repository brings.
        resume: go on where a killed run with the same arguments stopped.
        progress: is told of the progress.

    Raises:
        HeadscopeError: in one sentence, what was wrong with the model, the corpus or the folder.
    """
    progress = progress or (lambda stage, done, total: None)
    job = Job("the atlas", Path(out), "manifest.json", ("heads", "untrained"), resume, progress)
    job.check()
    documents = read(corpus, format=format, patterns=patterns)
    progress("reading the corpus", 0, 0)
    summary = summarize(documents)
    progress("loading the model", 0, 0)
    subject = load(model, device=device, trust_remote_code=trust_remote_code)
    reducers = resolve_reducers([name for name, reducer in REDUCERS.items() if reducer.supports(summary)], summary)
    table = job.measure(
        "heads", subject, documents, [with_permutations(one, permutations) for one in reducers],
        called=f"measuring {subject.name}", plan=plan, summary=summary,
    )  # fmt: skip
    tables = {}
    hypotheses = [with_permutations(one, 0) for one in reducers if type(one).name not in DESCRIPTIONS]
    if hypotheses:
        random = untrained_model(subject, seed=seed)
        untrained = job.measure(
            "untrained",
            random,
            documents,
            hypotheses,
            called="measuring its untrained model",
            plan=plan,
            summary=summary,
        )
        tables["untrained.nc"] = untrained
        table = analysed(table, untrained)
    arguments = {
        "model": str(model),
        "corpus": str(corpus),
        "format": format,
        "patterns": patterns and str(patterns),
        "plan": plan or Plan(),
        "seed": seed,
        "draws": permutations,
    }
    table = table.assign_attrs(seed=seed, call=f"atlas({', '.join(f'{k}={v!r}' for k, v in arguments.items())})")
    tables["heads.nc"] = table
    written = job.write(lambda fresh: _fill(fresh, table, tables), _about(table))
    return Atlas(table, job.folder, written)


def _fill(folder: Path, table: xr.Dataset, tables: Mapping[str, xr.Dataset]) -> None:
    for name, one in tables.items():
        heads.write(one, folder / name)
    drawn = _draw(table, folder / "figures")
    for name, frame in frames(table).items():
        with atomic_write(folder / "tables" / f"{name}.csv") as temporary:
            frame.to_csv(temporary, index=False, float_format="%.6g")
    write_page(table, folder / "atlas.html", figures=drawn)


def _draw(table: xr.Dataset, folder: Path) -> dict[str, str]:
    """All figures as files; those for the page as SVG text by title."""
    pictures = {
        "Attention to special tokens": ("special-tokens", figures.special_tokens(table)),
        "Attention to the token itself and its neighbours": ("offsets", figures.offsets(table)),
        "Entropy of attention": ("entropies", figures.entropies(table)),
        "Distance of attention": ("distances", figures.distances(table)),
    }
    if "antecedent_accuracy" in table and int(table["antecedent_count"].max()) > 0:
        pictures["Antecedents of mentions"] = ("antecedents", heatmaps.antecedent_heads(table))
    if "scope_f1" in table:
        pictures["Scope of negation"] = ("scope", heatmaps.scope_heads(table))
    if "aspect_accuracy" in table and int(table["aspect_count"].max()) > 0:
        pictures["Aspects in question"] = ("aspects", heatmaps.aspect_heads(table))
    if "token_class_mass" in table and int(table["token_class_count"].max()) > 0:
        pictures["Attention to classes of tokens"] = ("token-classes", heatmaps.token_class_heads(table))
    if "role_weight" in table and int(table["role_count"]) > 0:
        pictures["Semantic roles"] = ("roles", heatmaps.role_heads(table))
    if frequent := _frequent(table):
        pictures["Accuracy by length of link"] = ("lengths", accuracy_by_length(table))
    for relation in frequent:
        pictures[f"Relation {relation}"] = (f"relation-{relation}", heatmaps.relation_heads(table, relation))
    drawn = {}
    for title, (name, figure) in pictures.items():
        svg = next(path for path in figures.save(figure, folder, name) if path.suffix == ".svg")
        drawn[title] = svg.read_text(encoding="utf-8")
    return drawn


def _frequent(table: xr.Dataset) -> list[str]:
    if "reported_layer" not in table:
        return []
    return [str(r) for r in table["relation"].values[table["reported_layer"].values > 0]][:FREQUENT]


def _about(table: xr.Dataset) -> dict[str, Any]:
    about = {str(key): value.item() if isinstance(value, np.generic) else value for key, value in table.attrs.items()}
    return about | {key: json.loads(about[key]) for key in ("skipped", "versions", "patterns") if key in about}
