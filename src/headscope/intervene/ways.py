"""Replacements of a head's output on the batches of an evaluation, made from the texts of the evaluation."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from headscope.capture.forward.head_edit import EditedLayer
from headscope.capture.forward.interface import Capture
from headscope.capture.passes.blocks import Layer
from headscope.errors import HeadscopeError
from headscope.intervene import replacement
from headscope.intervene.evaluation import Evaluation, EvaluationBatch, compute_logits, run_batches
from headscope.intervene.replacement import Mean, Replacement, Resample
from headscope.intervene.way_names import WAYS

OTHERS = 16
"""The maximum number of texts whose outputs are kept for ``resample``; a minimal pair gives at most one text."""


@dataclass(frozen=True, eq=False)
class Ways:
    """The ways to disable heads on the texts of an evaluation.

    Attributes:
        mean: The mean output of each head over all tokens of the evaluation.
        outputs: The outputs of each layer, for each text that is kept for ``resample``.
        donors: The group of each kept text.
        groups: The group of each item of the evaluation. All items of a group get the outputs of the same text, which
            is from another group, so that the two sentences of a minimal pair differ only in the words that distinguish
            them.
    """

    mean: Mean = field(default_factory=lambda: Mean({}, {}))
    outputs: Mapping[Layer, Sequence[Float[Tensor, "head _ width"]]] = field(default_factory=dict)
    donors: Sequence[int] = ()
    groups: Sequence[int] = ()

    def choose(self, how: str, batch: EvaluationBatch) -> Replacement:
        """Return the replacement of the output of heads on a batch, for `how`, one of `WAYS`."""
        if how == "resample":
            chosen = [self._choose_other(self.groups[item]) for item in batch.items.tolist()]
            return Resample({layer: tuple(texts[other] for other in chosen) for layer, texts in self.outputs.items()})
        simple: Mapping[str, Replacement] = {
            "uniform": replacement.uniform, "zero": replacement.zero, "mean": self.mean
        }  # fmt: skip
        return simple[how]

    def _choose_other(self, group: int) -> int:
        """Return the index of the kept text, of another group, whose outputs the items of a group get."""
        other = group % len(self.donors)
        return other if self.donors[other] != group else (other + 1) % len(self.donors)


def prepare_ways(capture: Capture, evaluation: Evaluation, ways: Sequence[str], *, seed: int = 0) -> Ways:
    """Prepare the named ways to disable heads: collect the outputs of heads that ``mean`` and ``resample`` need.

    These are outputs on the texts of the evaluation. The texts run once if one of the two ways is named. The seed
    decides which texts are kept for ``resample``.

    Raises:
        HeadscopeError: A way is unknown, or there are too few texts for it.
    """
    if unknown := [how for how in ways if how not in WAYS]:
        raise HeadscopeError(f"heads cannot be disabled by {unknown[0]!r}; name one or more of {', '.join(WAYS)}.")
    if not {"mean", "resample"} & {*ways}:
        return Ways()
    groups = evaluation.groups or range(evaluation.items)
    if len({*groups}) < 2:
        raise HeadscopeError(
            f"{evaluation.name} has one text or pair only, whose outputs nothing can replace; give more."
        )
    order = torch.randperm(evaluation.items, generator=torch.Generator().manual_seed(seed)).tolist()
    by_group = {groups[item]: item for item in reversed(order)}
    first = [item for item in order if by_group[groups[item]] == item]
    items = sorted(first[:OTHERS] if "resample" in ways else ())
    sums: dict[Layer, Tensor] = {}
    counts: dict[Layer, int] = {}
    outputs: dict[Layer, dict[int, Tensor]] = {}
    for batch, layer, z in _watch(capture, evaluation):
        real = batch.real.to(z.device)
        real = real if real.shape[1] == z.shape[2] else torch.ones_like(z[:, 0, :, 0], dtype=torch.bool)
        total = torch.einsum("bhqw,bq->hw", z.double(), real.double())
        sums[layer] = sums[layer] + total if layer in sums else total
        counts[layer] = counts.get(layer, 0) + int(real.sum())
        for row, item in enumerate(batch.items.tolist()):
            if item in items and item not in outputs.setdefault(layer, {}):
                outputs[layer][item] = z[row][:, real[row]].clone()
    mean = Mean({layer: total / counts[layer] for layer, total in sums.items()}, {})
    texts = {layer: [of_items[item] for item in items] for layer, of_items in outputs.items()}
    return Ways(mean, texts, [groups[item] for item in items], groups)


def _watch(capture: Capture, evaluation: Evaluation) -> Iterator[tuple[EvaluationBatch, Layer, Tensor]]:
    """Run the model on each batch of an evaluation, and yield for each layer the batch, the layer and its output z."""

    def read(batch: EvaluationBatch) -> tuple[EvaluationBatch, dict[Layer, Tensor]]:
        outputs: dict[Layer, Tensor] = {}

        def look(z: Tensor, layer: EditedLayer) -> Tensor:
            outputs[layer.attention_type, layer.layer] = z
            return z

        with capture.editing(look), torch.inference_mode():
            compute_logits(capture.model, batch)
        return batch, outputs

    for batch, outputs in run_batches(capture.model, evaluation, read):
        for layer, z in outputs.items():
            yield batch, layer, z
