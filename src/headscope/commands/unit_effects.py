"""The effects of disabling units (heads, layers, key/value heads) of a model in an evaluation. Outcomes can be resumed.

units --list_ablations--> ablations --measure_outcomes--> outcomes --tabulate_effects--> head table
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from headscope.analyse.direct_effects import tabulate_direct_effects
from headscope.analyse.effect_table import PATHS, TOTAL, Ablated, Measured, Place, tabulate_effects
from headscope.analyse.effects import Quantities, compute_effects
from headscope.analyse.metrics import count_predicted
from headscope.capture.forward.interface import Capture
from headscope.capture.model.model import Model
from headscope.capture.passes.blocks import Layer
from headscope.capture.passes.projection import Projection, find_projections
from headscope.capture.passes.residual import ResidualStream, find_residual_stream
from headscope.commands.disable.request import Disable
from headscope.commands.folder import OutputFolder
from headscope.errors import HeadscopeError, ModelError
from headscope.intervene.ablation import (
    GROUP,
    HEAD,
    LAYER,
    PAIR,
    Ablation,
    Unit,
    list_ablations,
    list_heads,
    pair_units,
)
from headscope.intervene.edit import capture_model, collate_sample
from headscope.intervene.effect import Outcomes, measure_outcomes
from headscope.intervene.estimate import estimate_changes
from headscope.intervene.evaluation import ALL, Evaluation
from headscope.intervene.ways import Ways, prepare_ways
from headscope.predictions import ATTRIBUTE, count_predictions
from headscope.runner.checkpoint import resume as resume_sums
from headscope.runner.checkpoint import save as save_sums
from headscope.runner.local import SAVE_EVERY
from headscope.runner.provenance import identify_model, list_versions
from headscope.view.headings import name_model

TABLE, PAIRS = "effects", "pairs"
"""The names under which the outcomes of units and of pairs of heads are kept for resuming."""


def measure_units(
    folder: OutputFolder,
    model: Model,
    evaluation: Evaluation,
    units: Sequence[Unit],
    request: Disable,
    *,
    seed: int,
    run: str = "",
) -> xr.Dataset:
    """Measure the effects of disabling units of a model, as a head table with its provenance.

    Args:
        folder: The folder in which outcomes are kept, so that a killed command can be resumed.
        model: The loaded model.
        evaluation: The evaluation of the model.
        units: The heads, layers and key/value heads, which are disabled one by one.
        request: The request, which says how units are disabled.
        seed: The seed of placebos, samples and texts for ``resample``.
        run: The name of the run, if several are measured into one folder.

    Raises:
        HeadscopeError: There are fewer than two heads to make pairs of, or the model has no direct effects or placebos,
            or cannot be edited.
    """
    if request.pairs and sum(unit.kind == HEAD for unit in units) < 2:
        raise HeadscopeError("pairs are made of two heads, and fewer are disabled; name more heads, or no pairs.")
    capture = capture_model(model)
    projections = find_known_projections(capture, needed=bool(request.placebos or request.direct))
    stream = find_residual_stream(capture, collate_sample(model), projections) if request.direct else None
    measuring = _Measuring(folder, capture, evaluation, request, seed, projections, stream, run)
    return measuring.measure(units).assign_attrs(
        identify_evaluation(model, evaluation) | {"content": evaluation.content}
    )


@dataclass(frozen=True, eq=False)
class _Measuring:
    """The measurement of one table of effects; attributes not described here are the arguments of `measure_units`.

    Attributes:
        projections: The output projection of each layer.
        stream: The residual stream, on which direct effects are measured; None without direct effects.
    """

    folder: OutputFolder
    capture: Capture
    evaluation: Evaluation
    request: Disable
    seed: int
    projections: Mapping[Layer, Projection]
    stream: ResidualStream | None
    run: str

    def measure(self, units: Sequence[Unit]) -> xr.Dataset:
        """Return the table of effects, without its provenance."""
        how, pairs, evaluation = self.request.how, self.request.pairs, self.evaluation
        self.folder.progress("preparing what takes the place of heads", 0, 0)
        ways = prepare_ways(self.capture, evaluation, how, seed=self.seed)
        every_head = list_heads(self.capture.model)
        estimates = self._estimate(every_head, ways)
        units, sample = self._choose(units, estimates[how[0]])
        paths = PATHS if self.stream else (TOTAL,)
        ablations = list_ablations(units, how, {how[0]: self.request.placebos}, paths)
        outcomes = self._evaluate(TABLE, ablations, ways)
        if pairs:
            largest = self._rank(ablations, outcomes)[:pairs]
            together = list_ablations(pair_units(largest), how, {})
            outcomes = outcomes.join(self._evaluate(PAIRS, together, ways))
            ablations = [*ablations, *together]
        gather, changes = evaluation.gather, np.concatenate([estimates[way] for way in how])
        measured = Measured(
            metrics=evaluation.metrics, whole=gather(outcomes.whole), disabled=gather(outcomes.disabled),
            ablations=[Ablated(_place(each.unit), each.how, each.placebo, each.path) for each in ablations],
            norms=outcomes.norms, clusters=evaluation.clusters, subsets=evaluation.subsets,
            sizes=count_units(self.capture.model), attention_types=[*self.capture.model.layers],
            smooth=evaluation.smooth,
            estimated=[Ablated(_place(unit), way) for way in how for unit in every_head],
            estimates=gather(_add_change(outcomes.whole, changes)), sample=sample,
        )  # fmt: skip
        table, direct = tabulate_effects(measured), tabulate_direct_effects(measured)
        table = table.assign_coords(direct.coords).assign(direct.data_vars)
        return table.assign_attrs(describe_predictions(evaluation, measured.whole))

    def _estimate(self, units: Sequence[Unit], ways: Ways) -> dict[str, Float[np.ndarray, "head item"]]:
        """Return the first-order estimates of the effects of the given heads, for each way of disabling them."""
        step = "estimating the effects of heads"
        how, report = self.request.how, lambda done, total: self.folder.progress(step, done, total)
        changes = estimate_changes(self.capture, self.evaluation, how, ways, report)
        places = [(layer, head) for unit in units for layer, (head,) in unit.selection.items()]
        return {way: np.stack([changes[way, layer][head] for layer, head in places]) for way in how}

    def _choose(self, units: Sequence[Unit], estimates: Float[np.ndarray, "head item"]) -> tuple[list[Unit], list[str]]:
        """Choose the units to run, by the size of their estimates if the request limits the number of heads.

        Returns:
            The units, and the names of the heads among them that are a random sample (all heads if the number is not
            limited; none if only some heads are named).
        """
        names, top = [unit.name for unit in units if unit.kind == HEAD], self.request.top
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
        """Run ablations, and return their outcomes; with `resume`, continue from saved outcomes."""
        return evaluate_ablations(
            self.folder, self.capture, self.evaluation, ablations, ways, self.projections, name=name,
            noun="pairs of heads" if name == PAIRS else "heads", stream=self.stream, seed=self.seed, run=self.run,
        )  # fmt: skip

    def _rank(self, ablations: Sequence[Ablation], outcomes: Outcomes) -> list[Unit]:
        """Sort the heads by the size of their effects in the first way of disabling, the largest effect first."""
        metric = next(metric for metric in self.evaluation.metrics if metric.name == self.evaluation.smooth)
        chosen = [
            number
            for number, each in enumerate(ablations)
            if (each.unit.kind, each.how, each.placebo, each.path) == (HEAD, self.request.how[0], 0, TOTAL)
        ]
        gather, evaluation = self.evaluation.gather, self.evaluation
        effects = compute_effects(
            metric, gather(outcomes.whole), gather(outcomes.disabled[chosen]), evaluation.clusters,
            evaluation.subsets[ALL],
        )  # fmt: skip
        return [ablations[chosen[place]].unit for place in np.argsort(-np.abs(effects.values), kind="stable")]


def evaluate_ablations(
    folder: OutputFolder, capture: Capture, evaluation: Evaluation, ablations: Sequence[Ablation], ways: Ways,
    projections: Mapping[Layer, Projection], *, name: str, noun: str, stream: ResidualStream | None = None,
    seed: int = 0, run: str = "",
) -> Outcomes:  # fmt: skip
    """Run ablations, and return their outcomes; with `resume`, continue from saved outcomes.

    Args:
        folder: The folder in which outcomes are kept, under `name`.
        capture: The capture of the model.
        evaluation: The evaluation of the model.
        ablations: The ablations, which are run one after the other.
        ways: The replacements of the outputs of heads, for each way of disabling.
        projections: The output projection of each layer; empty if they are unknown.
        name: The name under which outcomes are kept.
        noun: The name of the disabled units in the progress.
        stream: The residual stream, for direct effects.
        seed: The seed of placebos.
        run: The name of the run, if several are measured into one folder.
    """
    labels = [
        f"{each.unit.name} {dict(each.unit.selection)} {each.how} {each.placebo} {each.path}" for each in ablations
    ]
    identity = {"about": identify_evaluation(capture.model, evaluation), "ablations": labels, "seed": seed}
    path, outcomes = folder.sums(name), Outcomes.empty(evaluation, len(ablations))
    if run:
        path = path.with_name(f"{path.stem}.{run}{path.suffix}")
    if folder.resume and path.exists():
        outcomes = Outcomes.from_sums(resume_sums(path, identity))
    total, saved = len(evaluation.batches) * (len(ablations) + 1), time.monotonic()
    step = f"disabling {noun} of {name_model(capture.model.name)}"
    for _ in measure_outcomes(capture, evaluation, ablations, ways, projections, outcomes, stream=stream, seed=seed):
        folder.progress(step, outcomes.steps, total)
        if time.monotonic() - saved >= SAVE_EVERY:
            save_sums(outcomes.as_sums(), path, identity=identity)
            saved = time.monotonic()
    save_sums(outcomes.as_sums(), path, identity=identity)
    return outcomes


def describe_predictions(evaluation: Evaluation, whole: Quantities) -> dict[str, str]:
    """Return an attribute with the counts of labels that the whole model predicts; empty if it predicts no labels."""
    if not evaluation.labels:
        return {}
    counts = count_predicted(whole, evaluation.labels)
    return {ATTRIBUTE: json.dumps(count_predictions(len(evaluation.examples), counts))}


def find_known_projections(capture: Capture, *, needed: bool) -> Mapping[Layer, Projection]:
    """Return the output projection of each layer; empty if they are unknown and not needed.

    Without projections, passes through the model begin at a block, except for placebos and direct effects.

    Raises:
        ModelError: The projections are needed, and the model has none.
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
    """Return the quantities of items for each estimate, with the estimated change added to the first quantity."""
    estimated = np.broadcast_to(whole, (len(change), *whole.shape)).copy()
    estimated[..., 0] += change
    return estimated


def count_units(model: Model) -> dict[str, int]:
    """Return the numbers of layers, heads and key/value heads of a model, as sizes of the dimensions of a table."""
    groups = max(model.shape.key_value_heads.values())
    sizes = {"layer": max(model.layers.values()), "head": max(model.shape.heads.values())}
    return sizes | {"key_value_head": groups}


def _place(unit: Unit) -> Place:
    """Return the position of a unit in a table."""
    if unit.kind == PAIR:
        return Place(unit.kind, unit.name)
    ((attention_type, layer), chosen), *_ = unit.selection.items()
    shared = len(chosen) if unit.kind == GROUP else 1
    number = 0 if unit.kind == LAYER else chosen[0] // shared + 1
    return Place(unit.kind, unit.name, attention_type, layer, number)


def identify_evaluation(model: Model, evaluation: Evaluation) -> dict[str, Any]:
    """Return attributes that identify the model and the evaluation; a resumed command must have the same."""
    return identify_model(model) | {
        "corpus": evaluation.name, "corpus_sha256": evaluation.sha256, "documents": len({*evaluation.clusters}),
        "tokens": evaluation.tokens, "skipped": json.dumps(evaluation.skipped), **evaluation.reading,
        "versions": json.dumps(list_versions(), sort_keys=True),
    }  # fmt: skip
