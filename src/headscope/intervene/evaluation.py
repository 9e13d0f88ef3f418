"""What a model is evaluated on while heads are disabled: inputs, and what each of its outputs says.

model, task --prepare--> `Evaluation`: batches --model--> logits --quantify--> items --gather--> examples --metrics-->

An example is what an effect is averaged over (a labelled text, a text, a minimal pair). Its items are what the model is
run on (the two sentences of the pair), and a row of a batch adds to the quantities of one item.
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
    """Some inputs of a model.

    Attributes:
        inputs: what it is called with, the labels not among them.
        items: the item to which each row belongs.
        targets: what the outputs are compared with, as the evaluation has it.
    """

    inputs: Mapping[str, Tensor]
    items: Int[Tensor, " row"]
    targets: Any

    @property
    def real(self) -> Bool[Tensor, "row token"]:
        """False where padding."""
        return self.inputs["attention_mask"].bool()

    @property
    def length(self) -> int:
        """The tokens of the longest row, to which the others are padded."""
        return self.inputs["attention_mask"].shape[1]

    def select(self, rows: slice) -> "EvaluationBatch":
        """Return some of its rows, with the same padding."""
        inputs = {name: values[rows] for name, values in self.inputs.items()}
        return EvaluationBatch(inputs, self.items[rows], self.targets[rows])

    def add_to(self, values: Float[np.ndarray, "item quantity"], by_row: Float[Tensor, "row quantity"]) -> None:
        """Add the quantities of each row to those of its item."""
        np.add.at(values, self.items.numpy(), by_row.double().cpu().numpy())


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What a model is evaluated on.

    Attributes:
        name: of the task or corpus.
        content: the examples, in the plural: ``minimal pairs``.
        batches: all inputs, the longest first.
        items: the number of items.
        quantities: what is known of an item, by name. The first is the log-probability of what is right (of a
            regression, minus the squared error), which can be differentiated.
        quantify: the quantities that each row adds, of the logits of a batch and those of the whole model; these are
            left out where only the first quantity is wanted.
        gather: the quantities of examples, from those of items.
        metrics: functions of sums of the quantities of examples, the most important first.
        smooth: the metric that the first quantity decides.
        examples: ids of the examples.
        clusters: the text that each is from.
        subsets: parts of the examples, by name; `ALL` is the first.
        groups: the number of the group of each item, such as a minimal pair; by default each item is one.
        source: the files and their SHA-256.
        skipped: counts of what was left out, by reason.
        reading: attributes of a table that say how a model read the texts and their labels.
        labels: those among which a model chooses; none where it chooses none.
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
        """Return how a row of a batch is called, for messages."""
        return f"of item {int(batch.items[row]) + 1:,} of {self.name}"

    @property
    def sha256(self) -> str:
        """The SHA-256 of the tokens of all inputs and of what is counted with what."""
        parts: list[tuple[Any, ...]] = [(self.examples, self.clusters, [*self.subsets])]
        for batch in self.batches:
            targets = batch.targets.tolist() if isinstance(batch.targets, Tensor) else batch.targets
            parts.append((batch.items.tolist(), batch.inputs["input_ids"].tolist(), targets))
        return hash_texts(map(repr, parts))

    @property
    def tokens(self) -> int:
        """The tokens of all inputs, without padding."""
        return int(sum(batch.real.sum() for batch in self.batches))


def name_sums(
    sums: Float[np.ndarray, "... item quantity"], quantities: Sequence[str]
) -> dict[str, Float[np.ndarray, "... item"]]:
    """Sums of quantities, each by its name."""
    return {name: sums[..., number] for number, name in enumerate(quantities)}


def loss_metric(title: str, units: str, denominator: str, numerator: str = "log_probability") -> Metric:
    """Return the loss as a metric: the negative mean of a quantity for which higher is better."""
    ratio = ratio_metric("loss", title, units, -1, numerator, denominator)
    return replace(ratio, compute=lambda sums: -ratio.compute(sums))


def run_batches(
    model: Model,
    evaluation: Evaluation,
    run: Callable[[EvaluationBatch], R],
    progress: Callable[[int], None] | None = None,
) -> Iterator[R]:
    """Yield what a function returns of each batch of an evaluation, or of each part of one that does not fit.

    `progress` is called with the number of batches that are done.

    Raises:
        ModelError: one row alone does not fit into memory.
    """
    room = Room(model)
    for done, batch in enumerate(evaluation.batches, start=1):

        def run_rows(rows: Sequence[int], batch: EvaluationBatch = batch) -> R:
            return run(batch if len(rows) == len(batch.items) else batch.select(slice(rows[0], rows[-1] + 1)))

        yield from room.run_items(range(len(batch.items)), batch.length, run_rows, partial(evaluation.name_row, batch))
        if progress is not None:
            progress(done)


def compute_logits(model: Model, batch: EvaluationBatch) -> Tensor:
    """The logits of a model for a batch."""
    logits: Tensor = run_model(model, batch.inputs).logits
    return logits


def compute_divergence(
    whole: Float[Tensor, "*place label"], logits: Float[Tensor, "*place label"]
) -> Float[Tensor, "*place"]:
    """The Kullback-Leibler divergence of the probabilities under `logits` from those of the whole model, in nats.

    With the differences d of the logits and the probabilities p of the whole model, taken so that the mean of d under p
    is 0, it is ``log sum_i p_i exp(d_i)``. That keeps its digits in float32 however small it is, as two logarithms
    would not, and in float64 a vocabulary takes longer than most models do.
    """
    logits = widen(logits)
    probabilities, difference = whole.to(logits.dtype).softmax(-1), logits - whole
    difference = difference - (probabilities * difference).sum(-1, keepdim=True)
    divergence = (probabilities * (difference.expm1() - difference)).sum(-1).log1p().double()
    if bool(divergence.isfinite().all()):
        return divergence
    # Logits so far apart that an exponential overflows, or minus infinity.
    expected, log_probabilities = (each.double().log_softmax(-1) for each in (whole, logits))
    return torch.nn.functional.kl_div(log_probabilities, expected, reduction="none", log_target=True).sum(-1)
