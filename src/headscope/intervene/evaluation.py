"""What a model is evaluated on while heads are disabled: inputs, and what each of its outputs says.

model, task --prepare--> `Evaluation`: batches --model--> logits --quantify--> items --gather--> examples --metrics-->

An example is what an effect is averaged over (a labelled text, a text, a minimal pair). Its items are what the model is
run on (the two sentences of the pair), and a row of a batch adds to the quantities of one item.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headscope.analyse.metrics import Metric
from headscope.capture.forward import run_model
from headscope.capture.model import Model

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
        source: the files and their SHA-256.
        skipped: counts of what was left out, by reason.
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
    source: Mapping[str, str] = field(default_factory=dict)
    skipped: Mapping[str, int] = field(default_factory=dict)

    @property
    def sha256(self) -> str:
        """The SHA-256 of the tokens of all inputs and of what is counted with what."""
        digest = hashlib.sha256(repr((self.examples, self.clusters, [*self.subsets])).encode())
        for batch in self.batches:
            targets = batch.targets.tolist() if isinstance(batch.targets, Tensor) else batch.targets
            digest.update(repr((batch.items.tolist(), batch.inputs["input_ids"].tolist(), targets)).encode())
        return digest.hexdigest()

    @property
    def tokens(self) -> int:
        """The tokens of all inputs, without padding."""
        return int(sum(batch.real.sum() for batch in self.batches))


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
    dtype = torch.promote_types(logits.dtype, torch.float32)
    probabilities, difference = whole.to(dtype).softmax(-1), logits.to(dtype) - whole
    difference = difference - (probabilities * difference).sum(-1, keepdim=True)
    divergence = (probabilities * (difference.expm1() - difference)).sum(-1).log1p().double()
    if bool(divergence.isfinite().all()):
        return divergence
    # Logits so far apart that an exponential overflows, or minus infinity.
    expected, log_probabilities = (each.double().log_softmax(-1) for each in (whole, logits))
    return torch.nn.functional.kl_div(log_probabilities, expected, reduction="none", log_target=True).sum(-1)
