"""How much a model's loss depends on attention: Clark et al. 2019, section 3.2 and figure 3, and Michel et al. 2019."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr
from jaxtyping import Bool, Float64, Int
from torch import Tensor

from headscope import heads
from headscope.capture.forward.head_edit import HeadGradient
from headscope.capture.model.block_sizes import BlockSizes
from headscope.capture.tokens.batch import Batch
from headscope.reducers.reducer import Reducer, Sums
from headscope.reducers.support.ratios import mean
from headscope.score import Score

CLARK = "Clark et al. 2019, section 3.2 and figure 3"
MICHEL = "Michel et al. 2019, section 4.1"
NATS = "nats"

CLASSES: Mapping[str, tuple[str, str]] = {
    "cls": ("[CLS]", "the classification token"),
    "sep": ("[SEP]", "separators"),
    "punctuation": ("“.” and “,”", "full stops and commas"),
    "first": ("the first token", "the first token"),
    "other": ("other tokens", "tokens that are no [CLS], [SEP], full stop or comma"),
    "all": ("any token", "all tokens"),
}
"""The classes of attended tokens, each with a title and a phrase."""


@dataclass(frozen=True)
class Gradients(Reducer):
    """How much the model's loss changes with the attention weights and with the output of each head.

    ``gradient_sep`` is the mean of ``|dL/dA|`` over all weights A with which a token of a text may attend to a
    separator; figure 3 of Clark et al. 2019 shows it by layer. ``gradient_sum_sep`` is the sum over the separators, as
    a mean over the tokens that attend. The two order layers alike if texts have the same length, but they do not order
    classes alike: the class of all other tokens has many more keys. A weight that the mask hides is not counted.

    ``head_gate`` is the size of the gradient by a factor of 1 on the head's output in a text, ``|sum_i g_i . z_i|``
    (Michel et al. 2019, section 4.1, without their division by the norm of a layer). It is not a sum of the other
    values.

    All values are means over texts. The loss is that of the model's task head (`headscope.capture.forward.loss`), in
    nats. The loss of a text is the sum over all predictions in it. Clark et al. take the mean, which divides by the
    length, so that the same attention would count less in longer texts. A text without a class does not count for that
    class. Tokens that are masked for the loss count in the class of other tokens.
    """

    name = "gradients"
    scope = "gradient"
    scores = (
        Score(
            "head_gate",
            "Importance of heads to the loss",
            "how much the loss of a text changes with a factor on the head's output",
            items="texts",
        ),
        Score(
            "gradient_all",
            "Gradient of the loss by attention weights",
            "how much the loss of a text changes with a weight of the head, the mean over its weights",
            items="texts",
        ),
    )
    by_name = True

    def prepare(self, batch: Batch, attention_type: str) -> "_Facts":
        """Return the classes of the keys, and the queries that are not padding."""
        queries, keys = batch.queries(attention_type), batch.keys(attention_type)
        first = torch.zeros_like(keys.real)
        first[:, 0] = True
        other = keys.real & ~(keys.cls | keys.sep | keys.punctuation)
        columns = torch.stack([keys.cls, keys.sep, keys.punctuation, first, other, keys.real], dim=-1)
        return _Facts(columns, queries.real)

    def count(self, facts: "_Facts") -> Sums:
        """Count all texts, and for each class the texts that have a token of the class."""
        return {"defined": facts.columns.any(1).sum(0), "documents": torch.tensor(len(facts.real))}

    def observe(self, facts: "_Facts", gradient: HeadGradient) -> Sums:
        """Sum over texts the size of the gradient of a weight, of the weights of a query, and of the head gate.

        The first two are means over the weights and over the queries of a text, for each of `CLASSES`.
        """
        total, weights = _sum_by_class(facts, gradient)
        queries = facts.real.sum(1).double()
        products = (gradient.g * gradient.z).sum(-1).double().where(facts.real[:, None], 0)
        return {
            "by_weight": (total / weights.clamp_min(1)[:, None]).sum(0),
            "by_query": (total / queries[:, None, None]).sum(0),
            "gate": products.sum(-1).abs().sum(0),
        }

    def result(self, sums: Mapping[str, np.ndarray], counts: Mapping[str, np.ndarray]) -> xr.Dataset:
        """Return the mean size of each gradient over texts, for each layer and head."""
        values: dict[str, xr.Variable] = {}
        for prefix, which, what, title in (
            ("gradient", "by_weight", "a weight of attention to {}", "gradient of a weight on {}"),
            ("gradient_sum", "by_query", "the weights of a token's attention to {}, in sum", "gradient to {}, in sum"),
        ):
            means = mean(sums[which], counts["defined"])
            for column, (short, phrase) in enumerate(CLASSES.values()):
                values[f"{prefix}_{list(CLASSES)[column]}"] = heads.variable(
                    means[..., column], ("layer", "head"), units=NATS, source=CLARK, title=title.format(short),
                    name=f"size of the gradient of the loss by {what.format(phrase)}",
                )  # fmt: skip
        values["head_gate"] = heads.variable(
            mean(sums["gate"], counts["documents"]), ("layer", "head"), units=NATS, source=MICHEL,
            name="size of the gradient of the loss by a factor on the head's output",
            title="importance to the loss",
        )  # fmt: skip
        return xr.Dataset(values)


@dataclass(frozen=True, eq=False)
class _Facts:
    """The facts of a batch that need no gradient.

    Attributes:
        columns: For each of `CLASSES`, whether each key is in it.
        real: True for queries, False for padding.
    """

    columns: Bool[Tensor, "batch key column"]
    real: Bool[Tensor, "batch query"]


def _sum_by_class(
    facts: _Facts, gradient: HeadGradient
) -> tuple[Float64[Tensor, "batch head column"], Int[Tensor, "batch column"]]:
    """Return for each class the sum of the gradient sizes over all visible weights to its tokens, and their number."""
    batch, head, queries, _ = gradient.g.shape
    columns = facts.columns.to(gradient.g.dtype)
    total = torch.zeros(batch, head, len(CLASSES), dtype=torch.float64, device=columns.device)
    weights = torch.zeros(batch, len(CLASSES), dtype=torch.long, device=columns.device)
    step = max(1, BlockSizes.measure(columns.device).swept // (batch * head * columns.shape[1]))
    for start in range(0, queries, step):
        rows = slice(start, min(start + step, queries))
        seen = gradient.visible(rows) & facts.real[:, rows, None]
        # Padding may hold any value, also NaN.
        sizes = gradient.by_weight(rows).abs_().masked_fill_(~seen[:, None], 0.0)
        total += (sizes @ columns[:, None]).sum(2, dtype=torch.float64)
        weights += (seen.to(columns.dtype) @ columns).sum(1).long()
    return total, weights
