r"""The command `atlas`: measure, test and draw all that the annotation of a corpus allows, and write it to a folder.

model, corpus --measure--> sums --assess--> what is known without the untrained model --> examples, page with "not yet"
                               \--assess--> table --join--> with all else --> page, tables, figures
            untrained model --measure--/

The first page is there when the model is measured, and the last one takes its place. A second corpus is measured in the
same way, and the reported heads are scored there (`add_replication`). Through views the model is measured once more,
each into a table of its own (``heads-norm.nc``).
"""

import json
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from rich.console import Console
from rich.markup import escape

from headscope.analyse import add_behaviours, add_head_map, add_replication, assess
from headscope.analyse.head_map import DISTANCE, FEWEST_HEADS
from headscope.analyse.head_roles import LEFT_OUT, join_head_roles
from headscope.analyse.need import add_need, match_effects
from headscope.analyse.probes import add_probe_strengths
from headscope.analyse.report import await_untrained
from headscope.capture import untrained_model
from headscope.capture.model.model import Model
from headscope.commands.atlas.atlas_examples import make_examples
from headscope.commands.atlas.atlas_result import EXAMPLES, PAGE, AtlasResult, write_atlas_page
from headscope.commands.atlas.request import Atlas
from headscope.commands.folder import OutputFolder
from headscope.commands.head_roles import is_decoder, measure_head_roles, read_generated
from headscope.commands.inputs import find_head, make_plan, refuse_other_probes
from headscope.commands.output import open_folder
from headscope.commands.profile.request import NEEDLES, REPEATS
from headscope.commands.progress import Progress
from headscope.commands.recorded_request import record_request
from headscope.commands.replication import Replication, open_replication
from headscope.commands.sentences import print_written
from headscope.corpora import CorpusSummary, summarize
from headscope.corpora.corpus import name_documents
from headscope.corpora.document import Document
from headscope.corpora.selection import Selection
from headscope.errors import CorpusError, ModelError
from headscope.examples import write_examples
from headscope.reducers import REDUCERS
from headscope.reducers.reducer import Reducer
from headscope.reducers.support.permutations import with_permutations
from headscope.runner import Plan, list_reducers, resolve_reducers, try_views
from headscope.runner.provenance import identify_model
from headscope.view.headings import name_model
from headscope.view.need_report import list_needed_heads
from headscope.view.reports import read_reports
from headscope.view.roles_report import print_roles
from headscope.view.table_frames import make_frames
from headscope.view.table_report import print_table
from headscope.view.verdicts import describe_awaited

MAP_TOKENS = 128
"""The length in tokens to which documents are cut when all heads are compared with each other.

Clark et al. 2019, section 3, use the same length.
"""


def run(request: Atlas, progress: Progress) -> AtlasResult:
    """Measure the model on the corpus with its controls, and write tables, the page and the requested figures."""
    seed, permutations, views = request.seed, request.permutations, request.views
    documents, reducers = request.documents, list_reducers(request.reducers)
    disabled, probes = request.disabled, request.probes
    with open_folder(request, progress) as folder:
        progress("reading the corpus", 0, 0)
        summary = summarize(documents)
        own = {reducer.name for reducer in resolve_reducers(reducers, summary)} if reducers else set()
        supported = [name for name, reducer in REDUCERS.items() if reducer.supports(summary) and name not in own]
        sampled = [name for name in supported if REDUCERS[name].on_sample]
        named = [*(name for name in supported if name not in sampled), *reducers]
        resolved = resolve_reducers(named, summary)
        second = open_replication(request, named, resolved, progress)
        head = next((head for view in (None, *views) if (head := find_head(None, resolved, view))), None)
        whole, model = _load(request, head, progress)
        scoring = [with_permutations(reducer, 0) for reducer in resolved if reducer.reports_heads]
        if scoring:
            model.require_weights("the untrained model")
        if disabled is not None:
            disabled = match_effects(disabled, identify_model(model))
        plan = make_plan(request)
        refuse_other_probes(probes, model, plan)
        reading_attention = [reducer for reducer in resolved if reducer.scope != "gradient"]
        try_views(model, documents, reading_attention, plan, views)
        measure = partial(folder.measure, plan=plan)
        table = measure(
            "heads",
            model,
            documents,
            [with_permutations(reducer, permutations) for reducer in resolved],
            label=f"measuring {name_model(model.name)}",
            summary=summary,
        )
        inputs = {
            "model": model.name,
            "corpus": documents.name,
            "effects": "" if disabled is None else disabled.attrs["call"],
            "probe": "" if probes is None else probes.attrs["call"],
            "replicate": "" if second is None else second.documents.name,
        }
        attributes = record_request(request, **inputs) | {"seed": seed}
        first = await_untrained(assess(table)) if scoring else table
        texts = None
        if request.examples != 0:
            progress("choosing examples", 0, 0)
            texts = make_examples(
                model, documents, first, scoring, plan, size=request.examples, seed=seed, progress=progress
            )
        if scoring:
            _open_page(AtlasResult(first.assign_attrs(attributes), {}, texts, folder.out, ()), request, folder)
        has_roles = request.roles and is_decoder(whole)
        untrained = untrained_model(whole, seed=seed) if scoring or has_roles else None
        tables: dict[str, xr.Dataset] = {}
        if untrained is not None and scoring:
            below = untrained if model is whole else untrained.without_head()
            table, tables = _assess(table, model, below, documents, scoring, measure, second, summary)
        if disabled is not None:
            table = add_need(table, disabled)
        if probes is not None:
            table, tables["probe.nc"] = add_probe_strengths(table, probes), probes
        if request.map_documents and sampled:
            tables["head-distances.nc"] = _compare_heads(
                partial(folder.measure, "head-distances", model), documents, sampled, plan, request.map_documents, seed
            )
        distances = tables.get("head-distances.nc", table)
        if DISTANCE in distances and table.sizes["layer"] * table.sizes["head"] >= FEWEST_HEADS:
            table = add_behaviours(add_head_map(table, distances))
        for view in views:
            through = folder.measure(
                f"heads-{view}",
                model,
                documents,
                [with_permutations(reducer, permutations) for reducer in reading_attention],
                plan=replace(plan, view=view),
                label=f"measuring the view {view}",
                summary=summary,
            )
            tables[f"heads-{view}.nc"] = assess(through)
        if untrained is not None and has_roles:
            table = _add_roles(table, whole, untrained, request, folder)
        tables["heads.nc"] = table = table.assign_attrs(attributes)
        held = None if isinstance(request.model, str | Path) else whole
        result = AtlasResult(table, tables, texts, folder.out, (), held)
        if folder.kept:
            result = replace(result, files=folder.write(_list_files(result), _describe_run(table)))
        request.hand_over(result)
        if request.has_figures:
            from headscope.commands.atlas.atlas_figures import draw_page_figures  # it loads matplotlib

            drawings = draw_page_figures(folder, result, pdf=request.pdf)
            result = replace(result, files=tuple(sorted({*result.files, *drawings})))
    return result


def _open_page(result: AtlasResult, request: Atlas, folder: OutputFolder) -> None:
    """Write a first page and show it, unless the folder holds a complete atlas.

    A complete atlas stays as it is until the new one is finished.
    """
    if folder.kept and folder.listed <= {PAGE}:
        folder.write({PAGE: partial(write_atlas_page, result, {})}, _describe_run(result.table))
        request.hand_over(result)


def _load(request: Atlas, head: str | None, progress: Progress) -> tuple[Model, Model]:
    """Load the model; return it with its task head, and the part of it that is measured (can be the same object)."""
    progress("loading the model", 0, 0)
    if head is not None or not request.roles:
        model = request.load(progress, task=head)
        return model, model
    whole = request.load_with_head(request.model, of_decoder=True)
    # A loaded model has different hashes of its weights with the task head and without it.
    return whole, whole.without_head() if isinstance(request.model, str | Path) else request.load(progress)


def _assess(
    table: xr.Dataset, model: Model, untrained: Model, documents: Iterable[Document], scoring: Sequence[Reducer],
    measure: Callable[..., xr.Dataset], second: Replication | None, summary: CorpusSummary,
) -> tuple[xr.Dataset, dict[str, xr.Dataset]]:  # fmt: skip
    """Measure the untrained model; add intervals, p-values and the replication on a second corpus to the head table.

    Returns:
        The head table, and the tables of the untrained model and of the replication by file name.
    """
    label = "measuring the untrained model"
    control = measure("untrained", untrained, documents, scoring, label=label, summary=summary)
    table, tables = assess(table, control), {"untrained.nc": control}
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


def _add_roles(table: xr.Dataset, model: Model, untrained: Model, request: Atlas, folder: OutputFolder) -> xr.Dataset:
    """Add the roles of all heads of a decoder, measured on generated texts, or the reason why none can be measured.

    Texts of the corpus cannot show the main role, since a head that has nothing to look up in a text only rests.
    """
    plan = make_plan(request, max_tokens=None, cut=None, pair_tokens=None)
    corpora = read_generated(REPEATS, NEEDLES, request.seed)
    try:
        roles = measure_head_roles(model, untrained, folder, corpora, plan)
    except (CorpusError, ModelError) as error:
        return table.assign_attrs({LEFT_OUT: json.dumps({"any role": str(error)})})
    return join_head_roles(table, roles)


def _compare_heads(
    measure: Callable[..., xr.Dataset], documents: Iterable[Document], reducers: Sequence[str], plan: Plan, size: int,
    seed: int,
) -> xr.Dataset:  # fmt: skip
    """Measure slow reducers on a random sample of `size` documents, cut to `MAP_TOKENS` tokens."""
    chosen = Selection(sample=size, seed=seed).choose(documents)
    sample = [document for place, document in enumerate(documents) if chosen is None or place in chosen]
    table = measure(
        sample, list(reducers), plan=replace(plan, max_tokens=min(plan.max_tokens or MAP_TOKENS, MAP_TOKENS), cut=True),
        label="comparing the heads with one another", summary=summarize(sample),
    )  # fmt: skip
    return table.assign_attrs(
        corpus=name_documents(documents), part=f"{len(sample):,} documents at random, seed {seed}"
    )


def _list_files(result: AtlasResult) -> dict[str, Any]:
    """Return the contents of the files of the folder by name, without the figures."""
    table = result.table
    files: dict[str, Any] = {**result.tables}
    if result.examples is not None:
        files[EXAMPLES] = partial(write_examples, result.examples)
    files |= {f"tables/{name}.csv": frame for name, frame in make_frames(table).items()}
    if "need" in table:
        files["tables/need.csv"] = list_needed_heads(table, read_reports(table))
    return files | {PAGE: partial(write_atlas_page, result, {})}


def _describe_run(table: xr.Dataset) -> dict[str, Any]:
    """Return the attributes of the head table as plain values, with JSON parsed, for the manifest."""
    attrs = {str(key): value.item() if isinstance(value, np.generic) else value for key, value in table.attrs.items()}
    parsed = ("skipped", "replication_skipped", "tree_faults", "versions", "patterns", "scores")
    return attrs | {key: json.loads(attrs[key]) for key in parsed if key in attrs}


def show(request: Atlas, result: AtlasResult, console: Console) -> None:
    """Print the page to open and, for a complete atlas, also the findings."""
    assert result.folder is not None  # the terminal always names one
    if awaited := describe_awaited(result.table):
        console.print(f"\nOpen [bold]{escape(str(result.folder / PAGE))}[/]. {awaited}", soft_wrap=True)
        return
    print_table(result.table, console, whole=request.whole)
    if LEFT_OUT in result.table.attrs:
        print_roles(result.table, console)
    print_written("Open", result.folder / PAGE, len(result.files), console, figures=request.has_figures)
    folder = escape(shlex.quote(str(result.folder)))
    console.print(
        f"Texts of your own: headscope explore {folder}. Figures: headscope draw {folder}.",
        soft_wrap=True, highlight=False,
    )  # fmt: skip
