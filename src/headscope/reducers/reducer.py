"""What is asked of attention, and how the answers add up.

A reducer turns attention into sums and sums into values. Since sums are all it keeps, merging is
``+``: across batches, processes, machines and files on disk, in any order.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
import xarray as xr
from torch import Tensor

from headscope.capture.batch import Batch
from headscope.corpora.summary import CorpusSummary
from headscope.errors import CorpusError
from headscope.score import Score

Sums = dict[str, Tensor]
"""Named float64 or int64 tensors."""


@runtime_checkable
class Reducer(Protocol):
    """A statistic of heads: a frozen dataclass with four pure functions.

    Attributes:
        name: what the command line and its sums call it.
        scope: the attention that it needs at once: ``rows`` (a block of query rows), ``layer`` (all rows of a layer)
            or ``pass`` (all layers of an attention type, in order). With ``gradient`` it is given no attention, but the
            `HeadGradient` of a layer for the loss of the model's task head (`headscope.capture.loss`), whose batch has
            masks in it where the model predicts masked words.
        models: 2 if it compares two models. It is then given the attention of the model after, and behind it that of
            the model before.
        max_tokens: longer documents are skipped and counted; None if any length will do, which ``pass`` may not say.

    A reducer that takes long may set ``on_sample``: where it is not asked for by name, it is measured on a random
    sample of the documents (`needs_sample`).

    A reducer with the scope ``rows`` whose values are means over most of the tokens of a text sets ``samples_queries``:
    they can be estimated from a sample of the query rows (`samples_queries`).

    A reducer that asks which tokens the values raise sets ``reads_logits`` (`reads_logits`).

    A reducer that asks for values or outputs (`Attention.values`, `Attention.output`) sets ``reads_values``
    (`reads_values`).

    A reducer whose result has scores declares them as ``scores``, a tuple of `Score` (`declared_scores`). Its ``repr``
    identifies a run that is resumed: it must say all that the sums depend on, and hold no address. The sums that
    `observe` returns have the same names for every layer.
    """

    name: ClassVar[str]
    scope: ClassVar[Literal["rows", "layer", "pass", "gradient"]]
    models: ClassVar[Literal[1, 2]]
    max_tokens: ClassVar[int | None]

    def prepare(self, batch: Batch, attention_type: str) -> Any:
        """The facts that `count` and `observe` need of a batch; worked out once for all of its layers."""

    def count(self, facts: Any) -> Sums:
        """Sums that need no attention: how often each value is defined."""

    # mypy takes these arguments for any, so that methods of one attention and of two conform; nothing comes by keyword.
    def observe(self, facts: Any, *attentions: Any, **_: Any) -> Sums:
        """The sums that the attention of a block of rows, a layer or a pass adds, or the gradient of a layer.

        The first axis is the head; in a pass it is the layer, and the head comes second.
        """

    def result(self, sums: Mapping[str, np.ndarray], counts: Mapping[str, np.ndarray]) -> xr.Dataset:
        """The values, with units and source.

        Args:
            sums: what `observe` returned, added up; axes layer and head, then its own.
            counts: what `count` returned, added up.
        """


def declared_scores(reducer: Reducer) -> tuple[Score, ...]:
    """The scores that a reducer declares: a tuple ``scores`` of its class, which it may lack."""
    return tuple(getattr(reducer, "scores", ()))


def reports_heads(reducer: Reducer) -> bool:
    """True if heads are chosen and reported by a score of a reducer."""
    return any(score.has_report for score in declared_scores(reducer))


def needs_sample(reducer: Reducer | type[Reducer]) -> bool:
    """True if a reducer is measured on a sample of a corpus where it is not asked for by name."""
    return bool(getattr(reducer, "on_sample", False))


def samples_queries(reducer: Reducer | type[Reducer]) -> bool:
    """True if the values of a reducer can be estimated from a sample of the query rows of long texts."""
    return reducer.scope == "rows" and bool(getattr(reducer, "samples_queries", False))


def reads_logits(reducer: Reducer | type[Reducer]) -> bool:
    """True if a reducer asks for `Attention.raised`, for which the model must be a causal language model."""
    return bool(getattr(reducer, "reads_logits", False))


def reads_values(reducer: Reducer | type[Reducer]) -> bool:
    """True if a reducer asks for `Attention.values`, which views do not have."""
    return bool(getattr(reducer, "reads_values", False))


class CorpusReducer(Reducer, Protocol):
    """A reducer that makes itself for a corpus, and so can be named without arguments."""

    @classmethod
    def supports(cls, summary: CorpusSummary) -> bool:
        """True if a corpus has the annotation that it needs."""

    @classmethod
    def for_corpus(cls, summary: CorpusSummary) -> "Reducer":
        """The reducer for a corpus with these annotations.

        Raises:
            CorpusError: the annotation that it needs is not there.
        """


def missing_annotation(reducer: str, needs: str, suitable: str) -> CorpusError:
    """The error for a corpus that lacks what a reducer needs; it says which corpus would be suitable."""
    return CorpusError(
        f"the reducer `{reducer}` needs {needs}, and the corpus has none; give {suitable}, or measure `surface` only."
    )
