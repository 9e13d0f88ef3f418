"""Evaluations of a model with each unit disabled in turn.

For each batch the whole model runs once, and the outputs of its blocks are kept. Then the model runs once for each
unit, starting at the heads of the unit's lowest layer, since everything below is the same.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headscope.analyse.effect_table import DIRECT, TOTAL
from headscope.capture.forward.interface import Capture
from headscope.capture.forward.verify import is_same, refuse_not_finite
from headscope.capture.passes.blocks import Layer, Recorded, get_first, has_blocks, record_blocks
from headscope.capture.passes.projection import Projection
from headscope.capture.passes.residual import ResidualStream
from headscope.capture.passes.room import Room
from headscope.intervene.ablation import Ablation
from headscope.intervene.evaluation import Evaluation, EvaluationBatch, compute_logits
from headscope.intervene.placebo import DisabledUnit
from headscope.intervene.ways import Ways
from headscope.runner.checkpoint import RunSums


@dataclass(eq=False)
class Outcomes:
    """The quantities of each item, with the whole model and with each unit disabled.

    Attributes:
        whole: The quantities of the evaluation with the whole model.
        disabled: The quantities with each ablation.
        squared_norms: For each ablation, the squared norm of its change, summed over tokens and layers.
        tokens: The number of tokens over which `squared_norms` are summed.
        steps: The number of finished runs of a batch; the first run of each batch is with the whole model.
    """

    whole: Float[np.ndarray, "item quantity"]
    disabled: Float[np.ndarray, "ablation item quantity"]
    squared_norms: Float[np.ndarray, " ablation"]
    tokens: int = 0
    steps: int = 0

    @classmethod
    def empty(cls, evaluation: Evaluation, ablations: int) -> "Outcomes":
        """Make outcomes that are all 0, as they are before the first batch."""
        size = (evaluation.items, len(evaluation.quantities))
        return cls(np.zeros(size), np.zeros((ablations, *size)), np.zeros(ablations))

    @classmethod
    def from_sums(cls, sums: RunSums) -> "Outcomes":
        """Make the outcomes from the result of `as_sums`."""
        whole, disabled, squared_norms, tokens, steps = (sums.values[name,] for name in cls.__dataclass_fields__)
        return cls(whole, disabled, squared_norms, int(tokens), int(steps))

    def as_sums(self) -> RunSums:
        """Return the outcomes as sums that can be written to a file."""
        return RunSums({(name,): np.asarray(value) for name, value in vars(self).items()})

    def join(self, other: "Outcomes") -> "Outcomes":
        """Return outcomes with the ablations of these outcomes, followed by the ablations of `other`.

        Both must come from the same evaluation, with the same whole model.
        """
        disabled = np.concatenate([self.disabled, other.disabled])
        squared_norms = np.concatenate([self.squared_norms, other.squared_norms])
        return Outcomes(self.whole, disabled, squared_norms, self.tokens, self.steps + other.steps)

    @property
    def norms(self) -> Float[np.ndarray, " ablation"]:
        """The norm of the change by each ablation, as a root mean square over tokens."""
        return np.sqrt(self.squared_norms / max(1, self.tokens))


def measure_outcomes(
    capture: Capture,
    evaluation: Evaluation,
    ablations: Sequence[Ablation],
    ways: Ways,
    projections: Mapping[Layer, Projection],
    outcomes: Outcomes,
    *,
    stream: ResidualStream | None = None,
    seed: int = 0,
) -> Iterator[None]:
    """Run an evaluation with each ablation, and add the results to `outcomes`; yield whenever they can be saved.

    This is after each ablation of a batch, or at the end of a batch that is divided because it does not fit into
    memory. A later call continues from saved outcomes: it does not repeat their finished steps.

    `projections` may be empty if there are no placebos and no direct paths. Only direct paths need `stream`, the
    residual stream. `seed` sets the directions of placebos.

    Raises:
        ModelError: The heads of the model cannot be edited, or its outputs are not finite.
    """
    run: Callable[[_Passes, DisabledUnit], Tensor] | None = None

    def make_edit(ablation: Ablation, passes: _Passes) -> DisabledUnit:
        replacement = ways.choose(ablation.how, passes.batch)
        return DisabledUnit(ablation, replacement, projections, passes.find_streams(ablation), seed)

    def measure(batch: EvaluationBatch, start: int) -> Iterator[int]:
        """Run a batch, or a part of it, from the step `start` on; yield the number of each step that was added.

        Step 0 is the whole model, and step n is the n-th ablation.
        """
        nonlocal run
        whole, passes = _run_whole(capture, batch, projections, stream)
        if run is None:
            highest = [max(layer for _, layer in ablation.unit.selection) for ablation in ablations]
            ends = [ablations[highest.index(find(highest))] for find in (min, max)]
            run = _choose_run(passes, [make_edit(ablation, passes) for ablation in ends])
        if not start:
            if not bool(torch.isfinite(whole).all()):
                raise refuse_not_finite(capture.model.name, "on this task", what="logits")
            batch.add_to(outcomes.whole, evaluation.quantify(batch, whole, whole))
            outcomes.tokens += int(batch.real.sum())
            yield 0
        for number in range(max(0, start - 1), len(ablations)):
            edit = make_edit(ablations[number], passes)
            logits = run(passes, edit) if edit.ablation.path == TOTAL else passes.run_directly(edit)
            quantities = evaluation.quantify(batch, logits, whole)
            squared_norm = sum(float(_sum_real(norm**2, batch)) for norm in edit.norms)
            # Add only when everything is computed: a step that fails is run again.
            batch.add_to(outcomes.disabled[number], quantities)
            outcomes.squared_norms[number] += squared_norm
            yield number + 1

    room, steps = Room(capture.model), len(ablations) + 1
    first, past = divmod(outcomes.steps, steps)
    for place, batch in enumerate(evaluation.batches[first:], start=first):
        waiting = [(batch, past)]
        while waiting:
            part, start = waiting.pop()
            rows = len(part.items)
            if (count := room.count(rows, part.length)) < rows:
                waiting += [(part.select(slice(count, rows)), start), (part.select(slice(0, count)), start)]
                continue
            try:
                for step in measure(part, start):
                    start = step + 1
                    # A killed run continues only at steps that are done for the whole batch.
                    if part is batch:
                        outcomes.steps += 1
                        if step:
                            yield
            except Exception as error:
                room.shrink(rows, part.length, evaluation.name_row(part, 0), error)
                waiting.append((part, start))
            else:
                continue
            room.clear()
        if outcomes.steps < (place + 1) * steps:
            outcomes.steps = (place + 1) * steps
            yield
        past = 0


@dataclass(frozen=True, eq=False)
class _Passes:
    """Forward passes on one batch with a unit disabled; each method starts at another point of the model.

    Attributes:
        capture: The capture of the model.
        batch: The batch.
        projections: The output projection of each layer, if known.
        recorded: The recorded pass of the whole model; None if the model has no blocks.
        stream: The residual stream, if known.
    """

    capture: Capture
    batch: EvaluationBatch
    projections: Mapping[Layer, Projection]
    recorded: Recorded | None
    stream: ResidualStream | None

    def find_streams(self, ablation: Ablation) -> Mapping[Layer, Tensor]:
        """Return the residual stream to which each layer of a placebo adds its output.

        Empty if the ablation is not a placebo, or if the model has no blocks. Layers without a projection are left out.
        """
        if self.recorded is None or not ablation.placebo:
            return {}
        return self.recorded.find_streams(ablation.unit.selection, self.projections)

    @torch.inference_mode()
    def run_from_heads(self, edit: DisabledUnit) -> Tensor:
        """Return the logits with a unit disabled, from a pass that starts right after the heads of its lowest layer."""
        recorded, lowest = self._find_lowest(edit)
        # The capture changes the heads of higher layers during the pass.
        above = self.capture.editing(edit) if len(edit.ablation.unit.selection) > 1 else nullcontext()
        with above, recorded.change(lowest, edit, self.projections):
            return compute_logits(self.capture.model, self.batch)

    @torch.inference_mode()
    def run_from_block(self, edit: DisabledUnit) -> Tensor:
        """Return the logits from a pass that begins at the block of the lowest layer of the unit."""
        recorded, lowest = self._find_lowest(edit)
        with self.capture.editing(edit), recorded.skip_below(lowest):
            return compute_logits(self.capture.model, self.batch)

    @torch.inference_mode()
    def run_from_start(self, edit: DisabledUnit) -> Tensor:
        """Return the logits from a pass through the whole model."""
        with self.capture.editing(edit):
            return compute_logits(self.capture.model, self.batch)

    @torch.inference_mode()
    def run_directly(self, edit: DisabledUnit) -> Tensor:
        """Return the logits from a pass in which only the final norm reads what the edit changes."""
        assert self.recorded is not None
        assert self.stream is not None
        last = get_first(self.recorded.outputs[-1])
        changed = last.clone()
        for layer in edit.ablation.unit.selection:
            z, about = self.recorded.heads[layer]
            heads = torch.arange(z.shape[1], device=z.device)
            changed += self.projections[layer].apply(edit(z, about) - z, heads).to(last)
        scale = self.stream.freeze_scale(last) if edit.ablation.path == DIRECT else nullcontext()
        with scale, self.recorded.end_with(changed):
            return compute_logits(self.capture.model, self.batch)

    def _find_lowest(self, edit: DisabledUnit) -> tuple[Recorded, Layer]:
        assert self.recorded is not None
        starts = self.recorded.starts
        return self.recorded, min(edit.ablation.unit.selection, key=lambda layer: starts[layer])


@torch.inference_mode()
def _run_whole(
    capture: Capture,
    batch: EvaluationBatch,
    projections: Mapping[Layer, Projection],
    stream: ResidualStream | None,
) -> tuple[Tensor, _Passes]:
    """Run the whole model on a batch; return the logits, and the passes that can then be run with a unit disabled."""
    if not has_blocks(capture):
        return compute_logits(capture.model, batch), _Passes(capture, batch, projections, None, stream)
    with record_blocks(capture) as recorded:
        return compute_logits(capture.model, batch), _Passes(capture, batch, projections, recorded, stream)


def _choose_run(passes: _Passes, edits: Sequence[DisabledUnit]) -> Callable[[_Passes, DisabledUnit], Tensor]:
    """Return the method for the fastest kind of pass that gives the logits of a whole pass on `edits`.

    The logits may differ by rounding.
    """
    if passes.recorded is None:
        return _Passes.run_from_start
    expected = [passes.run_from_start(edit) for edit in edits]
    for run in (_Passes.run_from_heads, _Passes.run_from_block):
        try:
            actual = [run(passes, edit) for edit in edits]
        except KeyError:  # a projection is unknown
            continue
        if all(is_same(passes.capture.model, *pair) for pair in zip(expected, actual, strict=True)):
            return run
    return _Passes.run_from_start


def _sum_real(squares: Float[Tensor, "row token"], batch: EvaluationBatch) -> Tensor:
    """Return the sum over the tokens of the input without padding; over all entries if their shape is another."""
    real = batch.real.to(squares.device)
    return (squares * real if squares.shape == real.shape else squares).double().sum()
