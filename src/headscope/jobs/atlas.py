r"""The atlas: everything that a corpus's annotation allows, measured, tested, drawn and written to a folder.

model, corpus --measure--> head table --analyse--> with intervals and reported heads
             \-> untrained model --measure--> control --/         \--view--> figures, page, tables
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from headscope import heads
from headscope.analyse import assess
from headscope.capture import untrained_model
from headscope.capture.model import Model
from headscope.corpora import summarize
from headscope.corpora.document import Document
from headscope.jobs.folder import OutputFolder, Progress, write_csv
from headscope.jobs.inputs import load_model, make_plan, read_documents
from headscope.reducers import REDUCERS
from headscope.reducers.reducer import Reducer, declared_scores
from headscope.reducers.support.permutations import with_permutations
from headscope.runner import resolve_reducers
from headscope.view.figures import save
from headscope.view.figures.atlas import draw_atlas
from headscope.view.frames import make_frames
from headscope.view.page import write_page


@dataclass(frozen=True)
class AtlasResult:
    """The table that `atlas` wrote as ``heads.nc``, and all its files, relative to their folder."""

    table: xr.Dataset
    folder: Path
    files: tuple[str, ...]


def atlas(
    model: str | Path | Model = "minilm",
    corpus: str | Path | Iterable[Document] = "grammar",
    out: str | Path = "headscope-atlas",
    *,
    format: str | None = None,
    patterns: str | Path | None = None,
    device: str = "cpu",
    seed: int = 0,
    max_tokens: int | None = None,
    cut: bool | None = None,
    pair_tokens: int | None = None,
    batch_tokens: int | None = None,
    reducers: Sequence[str | Reducer] = (),
    permutations: int | None = None,
    trust_remote_code: bool = False,
    resume: bool = False,
    progress: Progress | None = None,
) -> AtlasResult:
    """Measure every head of a model on a corpus, with controls, and write tables, figures and a page.

    Args:
        model: a hub id, a folder, ``minilm``, or a loaded model.
        corpus: a file or folder, ``grammar``, or any documents.
        out: the folder for ``heads.nc``, ``untrained.nc``, ``figures/``, ``tables/``, ``manifest.json`` and
            ``atlas.html``. An older atlas in it is replaced once the new one is complete; other files are left alone.
        format: format of the corpus. Detected automatically if omitted.
        patterns: a JSON file of spaCy patterns; their matches are added to the corpus as links.
        device: where to run the model; a loaded model stays where it is.
        seed: random seed of the untrained model.
        max_tokens: longest text in tokens. Default: the limit of the model.
        cut: cut longer texts; otherwise they are skipped. Default: cut if the corpus has coreference.
        pair_tokens: cut pairs of paragraphs to this many tokens. Default: 128.
        batch_tokens: tokens in a batch, padding included.
        reducers: your own reducers to measure too, as ``module:Reducer`` or objects.
        permutations: number of permutations for the p-values; 0 skips them. Default: as many as the number of rows
            needs, 999 at least (`headscope.reducers.support.permutations.Permutations.for_rows`).
        trust_remote_code: run the Python code of the model's repository.
        resume: continue a killed run with the same arguments.
        progress: called as the work advances.

    Raises:
        HeadscopeError: in one sentence, what was wrong with the model, the corpus or the folder.
    """
    progress = progress or (lambda step, done, total: None)
    folder = OutputFolder("the atlas", Path(out), "manifest.json", ("heads", "untrained"), resume, progress)
    folder.check()
    documents = read_documents(corpus, format, patterns)
    progress("reading the corpus", 0, 0)
    summary = summarize(documents)
    progress("loading the model", 0, 0)
    model = load_model(model, device, trust_remote_code)
    supported = [name for name, reducer in REDUCERS.items() if reducer.supports(summary)]
    resolved = resolve_reducers([*supported, *reducers], summary)
    plan = make_plan(max_tokens, cut, pair_tokens, batch_tokens)
    table = folder.measure(
        "heads", model, documents, [with_permutations(reducer, permutations) for reducer in resolved],
        label=f"measuring {model.name}", plan=plan, summary=summary,
    )  # fmt: skip
    tables = {}
    scoring = [reducer for reducer in resolved if any(score.has_report for score in declared_scores(reducer))]
    if scoring:
        tables["untrained.nc"] = folder.measure(
            "untrained", untrained_model(model, seed=seed), documents,
            [with_permutations(reducer, 0) for reducer in scoring],
            label="measuring the untrained model", plan=plan, summary=summary,
        )  # fmt: skip
        table = assess(table, tables["untrained.nc"])
    arguments = {
        "model": model.name, "corpus": table.attrs["corpus"], "format": format, "patterns": patterns and str(patterns),
        "seed": seed, "max_tokens": max_tokens, "cut": cut, "pair_tokens": pair_tokens, "batch_tokens": batch_tokens,
        "reducers": [str(reducer) for reducer in reducers], "permutations": permutations,
    }  # fmt: skip
    call = f"atlas({', '.join(f'{name}={value!r}' for name, value in arguments.items())})"
    tables["heads.nc"] = table = table.assign_attrs(seed=seed, call=call)
    files = folder.write(lambda fresh: _fill(fresh, table, tables), _describe_run(table))
    return AtlasResult(table, folder.path, files)


def _fill(folder: Path, table: xr.Dataset, tables: Mapping[str, xr.Dataset]) -> None:
    for name, content in tables.items():
        heads.write_table(content, folder / name)
    pictures = _draw(table, folder / "figures")
    for name, frame in make_frames(table).items():
        write_csv(frame, folder / "tables" / f"{name}.csv")
    write_page(table, folder / "atlas.html", figures=pictures)


def _draw(table: xr.Dataset, folder: Path) -> dict[str, str]:
    """The figures, as files and, for the page, as SVG text by title."""
    texts = {}
    for title, (name, figure) in draw_atlas(table).items():
        svg = next(path for path in save(figure, folder, name) if path.suffix == ".svg")
        texts[title] = svg.read_text(encoding="utf-8")
    return texts


def _describe_run(table: xr.Dataset) -> dict[str, Any]:
    """The provenance of the table, for the manifest."""
    attrs = {str(key): value.item() if isinstance(value, np.generic) else value for key, value in table.attrs.items()}
    parsed = ("skipped", "versions", "patterns", "scores")
    return attrs | {key: json.loads(attrs[key]) for key in parsed if key in attrs}
