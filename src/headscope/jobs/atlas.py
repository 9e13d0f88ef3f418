r"""The atlas: everything that a corpus's annotation allows, measured, tested, drawn and written to a folder.

model, corpus --measure--> head table --analyse--> with intervals and reported heads
             \-> untrained model --measure--> control --/         \--view--> figures, page, tables

A second corpus is measured in the same way, and the reported heads are scored there (`add_replication`). Through views
the model is measured once more, each into a table of its own (``heads-norm.nc``).
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from headscope import heads
from headscope.analyse import add_behaviours, add_head_map, add_replication, assess
from headscope.analyse.head_map import DISTANCE, FEWEST_HEADS
from headscope.analyse.need import add_need, match_effects
from headscope.analyse.probes import add_probe_strengths
from headscope.capture import untrained_model
from headscope.capture.loading import Loadable, load
from headscope.capture.model import Model
from headscope.capture.views import VIEWS
from headscope.corpora import CorpusSummary, read, summarize
from headscope.corpora.corpus import name_documents
from headscope.corpora.document import Document
from headscope.corpora.selection import Selection
from headscope.examples import write_examples
from headscope.jobs.arguments import (
    check_figures,
    check_map_documents,
    check_model,
    check_reducers,
    check_views,
    open_effects,
    open_probes,
)
from headscope.jobs.examples import check_examples, make_examples
from headscope.jobs.folder import OutputFolder, write_csv
from headscope.jobs.inputs import find_head, make_plan, refuse_other_probes
from headscope.jobs.progress import Progress, ignore_progress, shows_progress
from headscope.jobs.replication import Replication, open_replication
from headscope.reducers import REDUCERS
from headscope.reducers.reducer import Reducer, needs_sample, reports_heads
from headscope.reducers.support.permutations import with_permutations
from headscope.runner import Plan, list_reducers, resolve_reducers, try_views
from headscope.runner.provenance import identify_model
from headscope.view.figures import save
from headscope.view.figures.atlas import Drawing, list_figures
from headscope.view.figures.probes import list_probe_figures
from headscope.view.frames import make_frames
from headscope.view.headings import name_model
from headscope.view.need import list_needed_heads, make_need_frame
from headscope.view.notebook import frame_page
from headscope.view.page import write_page
from headscope.view.reports import read_reports

TABLES = (
    "heads",
    "untrained",
    "replication",
    "untrained-replication",
    "head-distances",
    *(f"heads-{view}" for view in VIEWS),
)
"""The head tables that an atlas measures; those of a replication and of views only if they are asked for."""

MAP_TOKENS = 128
"""Documents are cut to this length where all heads are compared with one another (Clark et al. 2019, section 3)."""


@dataclass(frozen=True)
class AtlasResult:
    """The table that `atlas` wrote as ``heads.nc``, and all its files, relative to their folder."""

    table: xr.Dataset
    folder: Path
    files: tuple[str, ...]

    def _repr_html_(self) -> str:
        """Show the page in a notebook."""
        page = (self.folder / "atlas.html").read_text(encoding="utf-8")
        return frame_page(page, f"Head atlas of {name_model(self.table.attrs['model'])}")


@shows_progress
def atlas(
    model: Loadable = "minilm",
    corpus: str | Path | Iterable[Any] = "grammar:300",
    out: str | Path = "headscope-atlas",
    *,
    format: str | None = None,
    patterns: str | Path | None = None,
    hops: int = 1,
    limit: int | None = None,
    sample: int | None = None,
    device: str = "cpu",
    seed: int = 0,
    max_tokens: int | None = None,
    cut: bool | None = None,
    pair_tokens: int | None = None,
    batch_tokens: int | None = None,
    reducers: str | Reducer | Sequence[str | Reducer] = (),
    replicate: str | Path | Iterable[Any] | None = None,
    permutations: int | None = None,
    views: str | Sequence[str] = (),
    effects: str | Path | xr.Dataset | None = None,
    probe: str | Path | xr.Dataset | None = None,
    map_documents: int = 100,
    examples: int = 50,
    figures: str = "reported",
    pdf: bool = False,
    trust_remote_code: bool = False,
    resume: bool = False,
    show: Callable[[xr.Dataset], None] | None = None,
    progress: Progress | bool | None = None,
) -> AtlasResult:
    """Measure every head of a model on a corpus, with controls, and write tables, figures and a page.

    Args:
        model: a hub id, a folder, a ``.gguf`` file, ``minilm`` or ``smollm2`` (`headscope.load`), or a loaded model of
            transformers, alone or as ``(model, tokenizer)``.
        corpus: a file or folder, ``grammar``, or texts in memory: strings, lists of words, a dataset, Docs of spaCy or
            documents (`headscope.read`).
        out: the folder for ``heads.nc``, ``untrained.nc``, ``head-distances.nc``, ``examples.nc``, ``figures/``,
            ``tables/``, ``manifest.json`` and ``atlas.html``; with `replicate` also ``replication.nc`` and
            ``untrained-replication.nc``, and for each of `views` a table such as ``heads-norm.nc``. An older atlas in
            it is replaced once the new one is complete; other files are left alone.
        format: format of the corpus. Detected automatically if omitted.
        patterns: a JSON file of spaCy patterns; their matches are added to the corpus as links.
        hops: of a treebank, add the most frequent paths of up to 2 or 3 dependencies as links. Default: 1, none.
        limit: measure the first so many documents. Default: all.
        sample: measure so many documents at random, in their order; all of a corpus that has no more. Default: all.
        device: where to run the model; a loaded model stays where it is.
        seed: random seed of the untrained model and of the sample.
        max_tokens: longest text in tokens. Default: the limit of the model.
        cut: cut longer texts; otherwise they are skipped. Default: cut if the corpus has coreference.
        pair_tokens: cut pairs of paragraphs to this many tokens. Default: 128.
        batch_tokens: tokens in a batch, padding included.
        reducers: what to measure too: names of reducers that an atlas does not have by default, such as
            ``"map_patterns"``, and your own, as ``module:Reducer`` or objects. One of yours with the name of a built-in
            reducer takes its place.
        replicate: another corpus, on which the heads that are chosen on the first are scored again, with `format`,
            `patterns`, `hops`, `limit` and `sample` of the first. Default: none.
        permutations: number of permutations for the p-values; 0 skips them. Default: as many as the number of rows
            needs, 999 at least (`headscope.reducers.support.permutations.Permutations.for_rows`). On `replicate`
            there are none, since nothing is chosen there.
        views: what else is measured in place of the weights, one or several of `headscope.capture.views.VIEWS`: each
            as `headscope.measure` does it with ``view``, but for the reducers that read gradients. The grid of the page
            can be switched to them. Default: none.
        effects: what disabling the heads of this model changes, to stand beside what they mark in the table, on the
            page and in ``tables/need.csv``; the folder that `headscope disable` wrote, or its table. Of runs, those of
            the run that is `model` are taken. Default: none.
        probe: probes of this model, whose figures and weights of heads are to stand on the page; the folder that
            `headscope probe` wrote, or its table, which is written to ``probe.nc`` too. Default: none.
        map_documents: random documents, cut to 128 tokens, on which all heads are compared with one another for a map
            and clusters of heads (`headscope.add_head_map`); the distances are in ``head-distances.nc``. 0 for no map.
        examples: texts of the corpus that stand on the page with the attention of all heads, and in ``examples.nc``:
            those on which the reported heads do best and worst. 0 for none.
        figures: heatmaps of the most frequent rows with a ``reported`` head, or of ``all`` rows; the other figures are
            drawn with both. ``none`` draws no figure.
        pdf: write the figures as PDF too, beside PNG and SVG.
        trust_remote_code: run the Python code of the model's repository.
        resume: continue a killed run with the same arguments.
        show: called with the table once it is measured, before the figures are drawn and the files written.
        progress: True shows it, False does not; a function is called with the step, how much of it is done, and how
            much there is. Default: shown on a terminal and in a notebook.

    Raises:
        HeadscopeError: in one sentence, what was wrong with the model, the corpus or the folder.
    """
    progress = progress if callable(progress) else ignore_progress
    check_figures(figures)
    check_map_documents(map_documents)
    check_examples(examples)
    views = [views] if isinstance(views, str) else [*views]
    check_views(views)
    reducers = list_reducers(reducers)
    check_reducers(reducers)
    check_model(model)
    disabled, probes = open_effects(effects), open_probes(probe)
    reading = partial(read, format=format, patterns=patterns, hops=hops, limit=limit, sample=sample, seed=seed)
    with OutputFolder("the atlas", Path(out), "manifest.json", TABLES, resume, progress) as folder:
        documents = reading(corpus)
        progress("reading the corpus", 0, 0)
        summary = summarize(documents)
        own = {reducer.name for reducer in resolve_reducers(reducers, summary)} if reducers else set()
        supported = [name for name, reducer in REDUCERS.items() if reducer.supports(summary) and name not in own]
        sampled = [name for name in supported if needs_sample(REDUCERS[name])]
        named = [*(name for name in supported if name not in sampled), *reducers]
        resolved = resolve_reducers(named, summary)
        second = open_replication(replicate, documents, named, resolved, reading=reading, progress=progress)
        progress("loading the model", 0, 0)
        head = next((head for view in (None, *views) if (head := find_head(None, resolved, view))), None)
        model = load(model, device=device, trust_remote_code=trust_remote_code, task=head)
        if any(map(reports_heads, resolved)):
            model.require_weights("the untrained model")
        if disabled is not None:
            disabled = match_effects(disabled, identify_model(model))
        refuse_other_probes(probes, model)
        plan = make_plan(max_tokens, cut, pair_tokens, batch_tokens)
        reading_attention = [reducer for reducer in resolved if reducer.scope != "gradient"]
        try_views(model, documents, reading_attention, plan, views)
        measure = partial(folder.measure, plan=plan)
        table = measure(
            "heads", model, documents, [with_permutations(reducer, permutations) for reducer in resolved],
            label=f"measuring {name_model(model.name)}", summary=summary,
        )  # fmt: skip
        table, tables = _assess(table, model, seed, documents, resolved, measure, second, summary)
        if disabled is not None:
            table = add_need(table, disabled)
        if probes is not None:
            table, tables["probe.nc"] = add_probe_strengths(table, probes), probes
        if map_documents and sampled:
            tables["head-distances.nc"] = _compare_heads(
                partial(folder.measure, "head-distances", model), documents, sampled, plan, map_documents, seed
            )
        distances = tables.get("head-distances.nc", table)
        if DISTANCE in distances and table.sizes["layer"] * table.sizes["head"] >= FEWEST_HEADS:
            table = add_behaviours(add_head_map(table, distances))
        through = {
            view: assess(
                folder.measure(
                    f"heads-{view}", model, documents,
                    [with_permutations(reducer, permutations) for reducer in reading_attention],
                    plan=replace(plan, view=view), label=f"measuring the view {view}", summary=summary,
                )
            )
            for view in views
        }  # fmt: skip
        tables |= {f"heads-{view}.nc": shown for view, shown in through.items()}
        texts = None
        if examples:
            progress("choosing examples", 0, 0)
            scoring = [with_permutations(reducer, 0) for reducer in resolved if reports_heads(reducer)]
            texts = make_examples(model, documents, table, scoring, plan, size=examples, seed=seed, progress=progress)
        arguments = {
            "model": model.name, "corpus": documents.name, "format": format, "patterns": patterns and str(patterns),
            "hops": hops, "limit": limit, "sample": sample, "seed": seed, "max_tokens": max_tokens, "cut": cut,
            "pair_tokens": pair_tokens, "batch_tokens": batch_tokens,
            "reducers": [str(reducer) for reducer in reducers],
            "replicate": second and second.documents.name, "permutations": permutations, "views": views,
            "effects": disabled and disabled.attrs["call"],
            "probe": probes and probes.attrs["call"], "map_documents": map_documents,
            "examples": examples, "figures": figures, "pdf": pdf,
        }  # fmt: skip
        call = f"atlas({', '.join(f'{name}={value!r}' for name, value in arguments.items())})"
        tables["heads.nc"] = table = table.assign_attrs(seed=seed, call=call)
        if show is not None:
            show(table)
        files = folder.write(
            lambda fresh: _fill(fresh, table, tables, texts, through, figures, pdf, progress), _describe_run(table)
        )
    return AtlasResult(table, folder.path, files)


def _assess(
    table: xr.Dataset, model: Model, seed: int, documents: Iterable[Document], reducers: Sequence[Reducer],
    measure: Callable[..., xr.Dataset], second: Replication | None, summary: CorpusSummary,
) -> tuple[xr.Dataset, dict[str, xr.Dataset]]:  # fmt: skip
    """The table with its uncertainty, replicated where there is a second corpus; and what else was measured, by file.

    A corpus without annotation has no scores, so that nothing is to be assessed.
    """
    scoring = [with_permutations(reducer, 0) for reducer in reducers if reports_heads(reducer)]
    if not scoring:
        return table, {}
    untrained, tables = untrained_model(model, seed=seed), {}
    tables["untrained.nc"] = measure(
        "untrained", untrained, documents, scoring, label="measuring the untrained model", summary=summary
    )
    table = assess(table, tables["untrained.nc"])
    if second is not None:
        steps = {
            "replication": (model, f"replicating on {second.name}"),
            "untrained-replication": (untrained, f"replicating the untrained model on {second.name}"),
        }
        replicated = [
            measure(name, subject, second.documents, second.reducers, label=label, summary=second.summary)
            for name, (subject, label) in steps.items()
        ]
        tables |= {f"{name}.nc": content for name, content in zip(steps, replicated, strict=True)}
        table = add_replication(table, *replicated)
    return table, tables


def _compare_heads(
    measure: Callable[..., xr.Dataset], documents: Iterable[Document], reducers: Sequence[str], plan: Plan, size: int,
    seed: int,
) -> xr.Dataset:  # fmt: skip
    """The table of reducers that take long, on random documents of a corpus, cut to `MAP_TOKENS`."""
    chosen = Selection(sample=size, seed=seed).choose(documents)
    sample = [document for place, document in enumerate(documents) if chosen is None or place in chosen]
    table = measure(
        sample, list(reducers), plan=replace(plan, max_tokens=min(plan.max_tokens or MAP_TOKENS, MAP_TOKENS), cut=True),
        label="comparing the heads with one another", summary=summarize(sample),
    )  # fmt: skip
    return table.assign_attrs(
        corpus=name_documents(documents), part=f"{len(sample):,} documents at random, seed {seed}"
    )


def _fill(
    folder: Path, table: xr.Dataset, tables: Mapping[str, xr.Dataset], examples: xr.Dataset | None,
    views: Mapping[str, xr.Dataset], figures: str, pdf: bool, progress: Progress,
) -> None:  # fmt: skip
    for name, content in tables.items():
        heads.write_table(content, folder / name)
    if examples is not None:
        write_examples(examples, folder / "examples.nc")
    for name, frame in make_frames(table).items():
        write_csv(frame, folder / "tables" / f"{name}.csv")
    if "need" in table:
        write_csv(make_need_frame(table, list_needed_heads(table, read_reports(table))), folder / "tables" / "need.csv")
    listed = {} if figures == "none" else list_figures(table, every=figures == "all")
    probes = tables.get("probe.nc")
    if probes is not None and listed:
        listed |= list_probe_figures(probes)
    pictures = _draw(listed, folder / "figures", pdf, progress)
    write_page(
        table, folder / "atlas.html", figures=pictures, views=views, probes=probes, examples=examples,
        distances=tables.get("head-distances.nc"),
    )  # fmt: skip


def _draw(listed: Mapping[str, tuple[str, Drawing]], folder: Path, pdf: bool, progress: Progress) -> dict[str, str]:
    """The figures, as files and, for the page, as SVG text by title."""
    texts: dict[str, str] = {}
    step = f"drawing {len(listed)} figures"
    for done, (title, (name, draw)) in enumerate(listed.items()):
        progress(step, done, len(listed))
        svg = next(path for path in save(draw(), folder, name, pdf=pdf) if path.suffix == ".svg")
        texts[title] = svg.read_text(encoding="utf-8")
    return texts


def _describe_run(table: xr.Dataset) -> dict[str, Any]:
    """The provenance of the table, for the manifest."""
    attrs = {str(key): value.item() if isinstance(value, np.generic) else value for key, value in table.attrs.items()}
    parsed = ("skipped", "replication_skipped", "versions", "patterns", "scores")
    return attrs | {key: json.loads(attrs[key]) for key in parsed if key in attrs}
