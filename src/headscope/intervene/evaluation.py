"""Evaluations of a model while heads are disabled: the inputs, and the quantities that the model's outputs give.

model, task --prepare--> `Evaluation`: batches --model--> logits --quantify--> items --gather--> examples --metrics-->

An effect is averaged over examples (a labelled text, a text, a minimal pair). The model runs on the items of an example
(the two sentences of the pair), and each row of a batch adds to the quantities of one item.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headscope.analyse.metrics import Metric, ratio_metric
from headscope.capture.model.dtypes import widen
from headscope.capture.model.forward import run_model
from headscope.capture.model.model import Model
from headscope.capture.passes.room import Room
from headscope.files import hash_texts

R = TypeVar("R")

ALL = "all"
"""The subset of all examples."""


@dataclass(frozen=True, eq=False)
class EvaluationBatch:
    """Inputs that a model reads together, with the targets of its outputs.

    Attributes:
        inputs: The arguments of the model, without labels.
        items: The item to which each row belongs.
        targets: The targets that the outputs are compared with, in the form that the evaluation uses.
    """

    inputs: Mapping[str, Tensor]
    items: Int[Tensor, " row"]
    targets: Any

    @property
    def real(self) -> Bool[Tensor, "row token"]:
        """A mask that is False for padding."""
        return self.inputs["attention_mask"].bool()

    @property
    def length(self) -> int:
        """The number of tokens of the longest row, to which the other rows are padded."""
        return self.inputs["attention_mask"].shape[1]

    def select(self, rows: slice) -> "EvaluationBatch":
        """Return some rows of the batch, with the same padding."""
        inputs = {name: values[rows] for name, values in self.inputs.items()}
        return EvaluationBatch(inputs, self.items[rows], self.targets[rows])

    def add_to(self, values: Float[np.ndarray, "item quantity"], by_row: Float[Tensor, "row quantity"]) -> None:
        """Add the quantities of each row to the quantities of its item."""
        np.add.at(values, self.items.numpy(), by_row.double().cpu().numpy())


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The inputs and metrics of the evaluation of a model.

    Attributes:
        name: The name of the task or corpus.
        content: The kind of examples, in the plural: ``minimal pairs``.
        batches: All inputs, the longest first.
        items: The number of items.
        quantities: The names of the quantities of an item. The first is the log-probability of the right answer (for a
            regression, minus the squared error), which can be differentiated.
        quantify: A function from the logits of a batch and the logits of the whole model to the quantities that each
            row adds. The logits of the whole model are None if only the first quantity is needed.
        gather: A function from the quantities of items to the quantities of examples.
        metrics: Functions of sums of the quantities of examples, the most important first.
        smooth: The name of the metric that depends on the first quantity alone.
        examples: The ids of the examples.
        clusters: The text that each example is from.
        subsets: Masks of parts of the examples, by name; `ALL` is the first.
        groups: The number of the group of each item, such as a minimal pair; by default each item is a group.
        source: The files and their SHA-256.
        skipped: The number of texts that were left out, by reason.
        reading: Attributes of a table that describe how the model read the texts and their labels.
        labels: The labels among which the model chooses; empty if it does not choose labels.
    """

    name: str
    content: str
    batches: Sequence[EvaluationBatch]
    items: int
    quantities: tuple[str, ...]
    quantify: Callable[[EvaluationBatch, Tensor, Tensor | None], Float[Tensor, "row quantity"]]
    gather: Callable[[Float[np.ndarray, "... item quantity"]], Mapping[str, Float[np.ndarray, "... example"]]]
    metrics: tuple[Metric, ...]
    smooth: str
    examples: tuple[str, ...]
    clusters: tuple[str, ...]
    subsets: Mapping[str, Bool[np.ndarray, " example"]]
    groups: Sequence[int] = ()
    source: Mapping[str, str] = field(default_factory=dict)
    skipped: Mapping[str, int] = field(default_factory=dict)
    reading: Mapping[str, str | int] = field(default_factory=dict)
    labels: tuple[str, ...] = ()

    def name_row(self, batch: EvaluationBatch, row: int) -> str:
        """Return the words for a row of a batch in an error message, such as ``of item 3 of SST-2``."""
        return f"of item {int(batch.items[row]) + 1:,} of {self.name}"

    @property
    def sha256(self) -> str:
        """The SHA-256 of the tokens, targets and items of all inputs, the examples, the clusters and subset names."""
        parts: list[tuple[Any, ...]] = [(self.examples, self.clusters, [*self.subsets])]
        for batch in self.batches:
            targets = batch.targets.tolist() if isinstance(batch.targets, Tensor) else batch.targets
            parts.append((batch.items.tolist(), batch.inputs["input_ids"].tolist(), targets))
        return hash_texts(map(repr, parts))

    @property
    def tokens(self) -> int:
        """The number of tokens of all inputs, without padding."""
        return int(sum(batch.real.sum() for batch in self.batches))


def name_sums(
    sums: Float[np.ndarray, "... item quantity"], quantities: Sequence[str]
) -> dict[str, Float[np.ndarray, "... item"]]:
    """Split sums of quantities into one array for each quantity, by the name of the quantity."""
    return {name: sums[..., number] for number, name in enumerate(quantities)}


def loss_metric(title: str, units: str, denominator: str, numerator: str = "log_probability") -> Metric:
    """Make the metric ``loss``: minus the sum `numerator`, for which higher is better, divided by `denominator`."""
    ratio = ratio_metric("loss", title, units, -1, numerator, denominator)
    return replace(ratio, compute=lambda sums: -ratio.compute(sums))


def run_batches(
    model: Model,
    evaluation: Evaluation,
    run: Callable[[EvaluationBatch], R],
    progress: Callable[[int], None] | None = None,
) -> Iterator[R]:
    """Yield the result of `run` for each batch of an evaluation; a batch that does not fit into memory runs in parts.

    `progress` is called with the number of finished batches.

    Raises:
        ModelError: A single row does not fit into memory.
    """
    room = Room(model)
    for done, batch in enumerate(evaluation.batches, start=1):

        def run_rows(rows: Sequence[int], batch: EvaluationBatch = batch) -> R:
            return run(batch if len(rows) == len(batch.items) else batch.select(slice(rows[0], rows[-1] + 1)))

        yield from room.run_items(range(len(batch.items)), batch.length, run_rows, partial(evaluation.name_row, batch))
        if progress is not None:
            progress(done)


def compute_logits(model: Model, batch: EvaluationBatch) -> Tensor:
    """Compute the logits of a model for a batch."""
    logits: Tensor = run_model(model, batch.inputs).logits
    return logits


def compute_divergence(
    whole: Float[Tensor, "*place label"], logits: Float[Tensor, "*place label"]
) -> Float[Tensor, "*place"]:
    """Compute the Kullback-Leibler divergence of the probabilities under `logits` from the whole model's, in nats.

    Let d be the differences of the logits and p the probabilities of the whole model, with d shifted so that its mean
    under p is 0. Then the divergence is ``log sum_i p_i exp(d_i)``. This form stays exact in float32 however small the
    divergence is; the difference of two logarithms would not. In float64, the sum over a vocabulary would take longer
    than most models.
    """
    logits = widen(logits)
    probabilities, difference = whole.to(logits.dtype).softmax(-1), logits - whole
    difference = difference - (probabilities * difference).sum(-1, keepdim=True)
    divergence = (probabilities * (difference.expm1() - difference)).sum(-1).log1p().double()
    if bool(divergence.isfinite().all()):
        return divergence
    # The logits are minus infinity, or so far apart that an exponential overflows.
    expected, log_probabilities = (each.double().log_softmax(-1) for each in (whole, logits))
    return torch.nn.functional.kl_div(log_probabilities, expected, reduction="none", log_target=True).sum(-1)
