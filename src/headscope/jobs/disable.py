"""What disabling each head, layer and key/value head of a model changes on a task, written to a folder.

model, task --prepare--> Evaluation --measure_outcomes--> outcomes --tabulate_effects--> head table --view--> files

Of runs, each gives a table; these are joined, and their summary is written beside them (`analyse.run_effects`).
"""

import datetime
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from headscope.analyse.direct_effects import tabulate_direct_effects
from headscope.analyse.effect_table import PATHS, TOTAL, Ablated, Measured, Place, tabulate_effects
from headscope.analyse.effects import compute_effects
from headscope.analyse.run_effects import join_effects, summarize_effects
from headscope.capture.blocks import Layer
from headscope.capture.interface import Capture
from headscope.capture.loading import Loadable, load
from headscope.capture.model import Model
from headscope.capture.projection import Projection, find_projections
from headscope.capture.residual import ResidualStream, find_residual_stream
from headscope.capture.stream import BATCH_TOKENS
from headscope.errors import HeadscopeError, ModelError
from headscope.heads import write_table
from headscope.intervene.ablation import (
    GROUP,
    HEAD,
    LAYER,
    PAIR,
    Ablation,
    Unit,
    list_ablations,
    list_heads,
    list_units,
    pair_units,
)
from headscope.intervene.edit import capture_model, collate_sample
from headscope.intervene.effect import Outcomes, measure_outcomes
from headscope.intervene.estimate import estimate_changes
from headscope.intervene.evaluation import ALL, Evaluation
from headscope.intervene.selection import count_groups, list_names
from headscope.intervene.ways import Ways, prepare_ways
from headscope.jobs.arguments import check_disabling, check_model, open_runs
from headscope.jobs.evaluations import EvaluationSource, find_evaluation
from headscope.jobs.folder import OutputFolder, write_csv
from headscope.jobs.progress import Progress, ignore_progress, shows_progress
from headscope.learn.task import TEST
from headscope.runner.checkpoint import resume as resume_sums
from headscope.runner.checkpoint import save as save_sums
from headscope.runner.local import SAVE_EVERY
from headscope.runner.provenance import identify_model, list_versions
from headscope.runner.runs import identify_runs, refuse_other_runs
from headscope.runs import Run, Runs
from headscope.view.effects import list_effects
from headscope.view.figures import save
from headscope.view.figures.effects import draw_effects
from headscope.view.headings import name_model

MANIFEST, TABLE = "effects.json", "effects"
"""The manifest of the folder, and the name of the head table in it."""

SUMMARY = "summary"
"""The name of the CSV file of the means over runs."""

PAIRS = "pairs"
"""The name under which what was measured of pairs of heads is kept for resuming."""


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
            minimal pairs, as ``blimp`` or their file or folder; or texts, as `headscope.read` takes them, for which
            the loss of the language model is measured.
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

        def measure(loaded: Model, run: Run | None = None) -> xr.Dataset:
            units = list_units(loaded, [*list_names(heads or ()), *list_names(layers or ())])
            evaluation = source.prepare(loaded, **settings)
            if pairs and sum(unit.kind == HEAD for unit in units) < 2:
                raise HeadscopeError(
                    "pairs are made of two heads, and fewer are disabled; name more heads, or no pairs."
                )
            # Placebos of runs with one seed would err alike, and so would their mean.
            own_seed = seed if run is None else seed + run.seed
            capture = capture_model(loaded)
            projections = _find_projections(capture, needed=bool(placebos or direct))
            stream = find_residual_stream(capture, collate_sample(loaded), projections) if direct else None
            measuring = _Measuring(
                folder, capture, evaluation, ways, placebos, own_seed, projections, stream, run
            )  # fmt: skip
            table = measuring.measure(units, top=top, pairs=pairs)
            return table.assign_attrs(_identify(loaded, evaluation) | {"content": evaluation.content})

        progress("loading the model", 0, 0)
        if runs is None:
            model = load(model, device=device, trust_remote_code=trust_remote_code, task=source.head)
            table = measure(model)
        else:
            model = load(model, device=device, trust_remote_code=trust_remote_code)
            refuse_other_runs(model, runs, trust_remote_code=trust_remote_code)
            loading = partial(load, device=device, trust_remote_code=trust_remote_code, task=source.head)
            table = _join([measure(loading(runs.path(run)), run) for run in runs.runs], model, runs)
        call = (
            f"measure_effects(model={model.name!r}, task={source.name!r}, how={ways}, placebos={placebos}, top={top}, "
            f"pairs={pairs}, direct={direct}, seed={seed}{f', runs={str(runs.folder)!r}' if runs else ''})"
        )
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


@dataclass(frozen=True, eq=False)
class _Measuring:
    """The measuring of one table; what is measured is kept in the folder meanwhile."""

    folder: OutputFolder
    capture: Capture
    evaluation: Evaluation
    how: Sequence[str]
    placebos: int
    seed: int
    projections: Mapping[Layer, Projection]
    stream: ResidualStream | None
    run: Run | None = None

    def measure(self, units: Sequence[Unit], *, top: int | None, pairs: int) -> xr.Dataset:
        """The table, without the attributes that say where it comes from."""
        model = self.capture.model
        self.folder.progress("preparing what takes the place of heads", 0, 0)
        ways = prepare_ways(self.capture, self.evaluation, self.how, seed=self.seed)
        every_head = list_heads(model)
        estimates = self._estimate(every_head, ways)
        units, sample = self._choose(units, estimates[self.how[0]], top)
        paths = PATHS if self.stream else (TOTAL,)
        ablations = list_ablations(units, self.how, {self.how[0]: self.placebos}, paths)
        outcomes = self._evaluate(TABLE, ablations, ways)
        if pairs:
            largest = self._rank(ablations, outcomes)[:pairs]
            together = list_ablations(pair_units(largest), self.how, {})
            outcomes = outcomes.join(self._evaluate(PAIRS, together, ways))
            ablations = [*ablations, *together]
        gather, changes = self.evaluation.gather, np.concatenate([estimates[how] for how in self.how])
        measured = Measured(
            metrics=self.evaluation.metrics, whole=gather(outcomes.whole), disabled=gather(outcomes.disabled),
            ablations=[Ablated(_place(each.unit), each.how, each.placebo, each.path) for each in ablations],
            norms=outcomes.norms, clusters=self.evaluation.clusters, subsets=self.evaluation.subsets,
            sizes=_count(model), attention_types=[*model.layers], smooth=self.evaluation.smooth,
            estimated=[Ablated(_place(unit), how) for how in self.how for unit in every_head],
            estimates=gather(_add_change(outcomes.whole, changes)),
            sample=sample,
        )  # fmt: skip
        table, direct = tabulate_effects(measured), tabulate_direct_effects(measured)
        return table.assign_coords(direct.coords).assign(direct.data_vars)

    def _estimate(self, units: Sequence[Unit], ways: Ways) -> dict[str, Float[np.ndarray, "head item"]]:
        """The first-order estimates of all heads, by way."""
        step = "estimating the effects of heads"
        changes = estimate_changes(
            self.capture, self.evaluation, self.how, ways, lambda done, total: self.folder.progress(step, done, total)
        )
        places = [(layer, head) for unit in units for layer, (head,) in unit.selection.items()]
        return {how: np.stack([changes[how, layer][head] for layer, head in places]) for how in self.how}

    def _choose(
        self, units: Sequence[Unit], estimates: Float[np.ndarray, "head item"], top: int | None
    ) -> tuple[list[Unit], list[str]]:
        """The units that are run, and the names of heads among them that were not chosen for their estimates."""
        names = [unit.name for unit in units if unit.kind == HEAD]
        if top is None or 2 * top >= len(names):
            return [*units], names if len(names) == len(estimates) else []
        nothing = np.zeros((self.evaluation.items, len(self.evaluation.quantities)))
        changes = self.evaluation.gather(_add_change(nothing, estimates))
        smooth = self.evaluation.smooth if self.evaluation.smooth in changes else self.evaluation.quantities[0]
        sizes = np.abs(changes[smooth].sum(-1))
        size = dict(zip((unit.name for unit in list_heads(self.capture.model)), sizes, strict=True))
        ranked = sorted(names, key=lambda name: -size[name])
        sample = Random(self.seed).sample(names, top)
        return [unit for unit in units if unit.kind != HEAD or unit.name in {*ranked[:top], *sample}], sample

    def _evaluate(self, name: str, ablations: Sequence[Ablation], ways: Ways) -> Outcomes:
        """The outcomes of some ablations; a run that was killed goes on."""
        labels = [f"{each.unit.name} {each.how} {each.placebo} {each.path}" for each in ablations]
        about = _identify(self.capture.model, self.evaluation)
        identity = {"about": about, "ablations": labels, "seed": self.seed}
        path, outcomes = self.folder.sums(name), Outcomes.empty(self.evaluation, len(ablations))
        if self.run is not None:
            path = path.with_name(f"{path.stem}.{self.run.name}{path.suffix}")
        if self.folder.resume and path.exists():
            outcomes = Outcomes.from_sums(resume_sums(path, identity))
        total, saved = len(self.evaluation.batches) * (len(ablations) + 1), time.monotonic()
        what = "pairs of heads" if name == PAIRS else "heads"
        step = f"disabling {what} of {name_model(self.capture.model.name)}"
        for _ in measure_outcomes(
            self.capture, self.evaluation, ablations, ways, self.projections, outcomes, stream=self.stream,
            seed=self.seed,
        ):  # fmt: skip
            self.folder.progress(step, outcomes.steps, total)
            if time.monotonic() - saved >= SAVE_EVERY:
                save_sums(outcomes.as_sums(), path, identity=identity)
                saved = time.monotonic()
        save_sums(outcomes.as_sums(), path, identity=identity)
        return outcomes

    def _rank(self, ablations: Sequence[Ablation], outcomes: Outcomes) -> list[Unit]:
        """The heads in the order of their effects on the smooth metric, in the first way."""
        metric = next(metric for metric in self.evaluation.metrics if metric.name == self.evaluation.smooth)
        chosen = [
            number
            for number, each in enumerate(ablations)
            if (each.unit.kind, each.how, each.placebo, each.path) == (HEAD, self.how[0], 0, TOTAL)
        ]
        gather, evaluation = self.evaluation.gather, self.evaluation
        effects = compute_effects(
            metric, gather(outcomes.whole), gather(outcomes.disabled[chosen]), evaluation.clusters,
            evaluation.subsets[ALL],
        )  # fmt: skip
        return [ablations[chosen[place]].unit for place in np.argsort(-np.abs(effects.values), kind="stable")]


def _find_projections(capture: Capture, *, needed: bool) -> Mapping[Layer, Projection]:
    """The output projections. Without them, placebos and direct effects aside, passes begin at a block.

    Raises:
        ModelError: they are needed, and the model has none.
    """
    try:
        return find_projections(capture, collate_sample(capture.model))
    except ModelError:
        if needed:
            raise
        return {}


def _add_change(
    whole: Float[np.ndarray, "item quantity"], change: Float[np.ndarray, "estimate item"]
) -> Float[np.ndarray, "estimate item quantity"]:
    """The quantities of items if the first of them changes so."""
    estimated = np.broadcast_to(whole, (len(change), *whole.shape)).copy()
    estimated[..., 0] += change
    return estimated


def _count(model: Model) -> dict[str, int]:
    """The sizes of the axes of a table."""
    groups = max(count_groups(model, attention_type) for attention_type in model.layers)
    sizes = {"layer": max(model.layers.values()), "head": max(model.shape.heads.values())}
    return sizes | {"key_value_head": groups}


def _place(unit: Unit) -> Place:
    """Where a unit stands in a table."""
    if unit.kind == PAIR:
        return Place(unit.kind, unit.name)
    ((attention_type, layer), chosen), *_ = unit.selection.items()
    shared = len(chosen) if unit.kind == GROUP else 1
    number = 0 if unit.kind == LAYER else chosen[0] // shared + 1
    return Place(unit.kind, unit.name, attention_type, layer, number)


def _identify(model: Model, evaluation: Evaluation) -> dict[str, Any]:
    """Where a table comes from; a run that is resumed must have the same."""
    return identify_model(model) | {
        "corpus": evaluation.name, "corpus_sha256": evaluation.sha256, "documents": len({*evaluation.clusters}),
        "tokens": evaluation.tokens, "skipped": json.dumps(evaluation.skipped),
        "versions": json.dumps(list_versions(), sort_keys=True),
    }  # fmt: skip


def _fill(fresh: Path, table: xr.Dataset) -> None:
    """Write all files of the folder."""
    write_table(table, fresh / f"{TABLE}.nc")
    write_csv(list_effects(table), fresh / f"{TABLE}.csv")
    if "run" in table.dims:
        write_csv(list_effects(summarize_effects(table)), fresh / f"{SUMMARY}.csv")
    for name, figure in draw_effects(table).items():
        save(figure, fresh / "figures", name, pdf=False)
