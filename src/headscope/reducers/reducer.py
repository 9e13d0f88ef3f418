"""What is asked of attention, and how the answers add up.

A reducer turns attention into sums and sums into values. Since sums are all it keeps, merging is
``+``: across batches, processes, machines and files on disk, in any order.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import xarray as xr
from torch import Tensor

from headscope.capture.tokens.batch import Batch
from headscope.corpora.summary import CorpusSummary
from headscope.errors import CorpusError
from headscope.reducers.support.folds import FoldAssignment, assign_folds
from headscope.score import Score as Score

Sums = dict[str, Tensor]
"""Named float64 or int64 tensors."""


@dataclass(frozen=True)
class Annotation:
    """What a reducer needs of a corpus.

    Attributes:
        title: what it is, such as ``links between words``.
        example: a corpus that has it, such as ``a treebank (CoNLL-U)``.
        is_in: true of the summary of a corpus that has it.
    """

    title: str
    example: str
    is_in: Callable[[CorpusSummary], object]


class Reducer(ABC):
    """A statistic of heads: a frozen dataclass with four pure functions.

    Its ``repr`` identifies a run that is resumed: it must say all that the sums depend on, and hold no address. The
    sums that `observe` returns have the same names for every layer.

    Attributes:
        name: what the command line and its sums call it.
        scope: the attention that it needs at once: ``rows`` (a block of query rows), ``layer`` (all rows of a layer)
            or ``pass`` (all layers of an attention type, in order). With ``gradient`` it is given no attention, but the
            `HeadGradient` of a layer for the loss of the model's task head (`headscope.capture.forward.loss`), whose
            batch has masks in it where the model predicts masked words.
        models: 2 if it compares two models. It is then given the attention of the model after, and behind it that of
            the model before.
        max_tokens: longer documents are skipped and counted; None if any length will do, which ``pass`` may not say.
        scores: what its result has scores of.
        annotation: what a corpus must have; None if any text will do.
        by_name: it is measured only where it is asked for by name, and no atlas has it unasked.
        on_sample: it takes long, and is measured on a random sample of the documents where it is not asked for by name.
        samples_queries: its values are means over most of the tokens of a text, and with the scope ``rows`` they can be
            estimated from a sample of the query rows.
        reads_logits: it asks for `Attention.raised`, for which the model must be a causal language model.
        reads_values: it asks for `Attention.values` or `Attention.output`, which views do not have.
    """

    name: ClassVar[str]
    scope: ClassVar[Literal["rows", "layer", "pass", "gradient"]]
    models: ClassVar[Literal[1, 2]] = 1
    max_tokens: ClassVar[int | None] = None
    scores: ClassVar[tuple[Score, ...]] = ()
    annotation: ClassVar[Annotation | None] = None
    by_name: ClassVar[bool] = False
    on_sample: ClassVar[bool] = False
    samples_queries: ClassVar[bool] = False
    reads_logits: ClassVar[bool] = False
    reads_values: ClassVar[bool] = False

    @classmethod
    def supports(cls, summary: CorpusSummary) -> bool:
        """Return True if a corpus has the annotation that it needs, and it need not be asked for by name."""
        return not cls.by_name and cls.is_annotated(summary)

    @classmethod
    def is_annotated(cls, summary: CorpusSummary) -> bool:
        """Return True if a corpus has the annotation that it needs, if any."""
        return cls.annotation is None or bool(cls.annotation.is_in(summary))

    @classmethod
    def for_corpus(cls, summary: CorpusSummary) -> "Reducer":
        """Return the reducer for a corpus, with folds that suit its texts.

        Raises:
            CorpusError: the annotation that it needs is not there.
        """
        cls.check_annotation(summary)
        return assign_folds(cls(), FoldAssignment.for_corpus(summary))

    @classmethod
    def check_annotation(cls, summary: CorpusSummary) -> None:
        """Refuse a corpus without the annotation that it needs.

        Raises:
            CorpusError: the annotation is not there; it says which corpus would be suitable.
        """
        if cls.annotation is not None and not cls.is_annotated(summary):
            raise CorpusError(
                f"the reducer `{cls.name}` needs {cls.annotation.title}, and the corpus has none; give "
                f"{cls.annotation.example}, or measure `surface` only."
            )

    @property
    def reports_heads(self) -> bool:
        """Return True if heads are chosen and reported by one of its scores."""
        return any(score.has_report for score in self.scores)

    @abstractmethod
    def prepare(self, batch: Batch, attention_type: str) -> Any:
        """The facts that `count` and `observe` need of a batch; worked out once for all of its layers."""

    @abstractmethod
    def count(self, facts: Any) -> Sums:
        """Sums that need no attention: how often each value is defined."""

    # mypy takes these arguments for any, so that methods of one attention and of two conform; nothing comes by keyword.
    @abstractmethod
    def observe(self, facts: Any, *attentions: Any, **_: Any) -> Sums:
        """The sums that the attention of a block of rows, a layer or a pass adds, or the gradient of a layer.

        The first axis is the head; in a pass it is the layer, and the head comes second.
        """

    @abstractmethod
    def result(self, sums: Mapping[str, np.ndarray], counts: Mapping[str, np.ndarray]) -> xr.Dataset:
        """The values, with units and source.

        Args:
            sums: what `observe` returned, added up; axes layer and head, then its own.
            counts: what `count` returned, added up.
        """
