"""The interface of reducers: they turn attention into sums, and sums into the values of a table.

Since a reducer keeps only sums, its results are merged by ``+``: across batches, processes, machines and files on disk,
in any order.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import xarray as xr
from torch import Tensor

from headscope.capture.rows.attention import Attention as Attention
from headscope.capture.tokens.batch import Batch as Batch
from headscope.corpora.summary import CorpusSummary
from headscope.errors import CorpusError
from headscope.reducers.support.folds import FoldAssignment, assign_folds
from headscope.score import Score as Score

Sums = dict[str, Tensor]
"""Named float64 or int64 tensors."""

Arrays = Mapping[str, np.ndarray]
"""Sums over a whole corpus, which are the arguments of `Reducer.result`."""


@dataclass(frozen=True)
class Annotation:
    """The annotation that a reducer needs in a corpus.

    Attributes:
        title: The name of the annotation, such as ``links between words``.
        example: A corpus that has it, such as ``a treebank (CoNLL-U)``.
        is_in: A function that is true for the summary of a corpus with the annotation.
    """

    title: str
    example: str
    is_in: Callable[[CorpusSummary], object]


class Reducer(ABC):
    """A statistic of heads: a frozen dataclass with four pure functions.

    Its ``repr`` identifies a run when it is resumed. So it must show everything that the sums depend on, and must not
    contain an address. The sums that `observe` returns have the same names for every layer.

    Attributes:
        name: The name of the reducer on the command line and in the keys of its sums.
        scope: The attention that `observe` needs at once: ``rows`` (a block of query rows), ``layer`` (all rows of a
            layer) or ``pass`` (all layers of an attention type, in order). With ``gradient``, `observe` gets no
            attention but the `HeadGradient` of a layer for the loss of the model's task head
            (`headscope.capture.forward.loss`); if the model predicts masked words, the batch contains masks.
        models: 2 if the reducer compares two models. `observe` then gets the attention of the model after, followed by
            the attention of the model before.
        max_tokens: The largest number of tokens of a document; longer documents are skipped and counted. None allows
            any length, but ``pass`` needs a limit.
        scores: The scores in the result.
        annotation: The annotation that a corpus must have; None if any text is enough.
        by_name: Whether the reducer is measured only if a user names it; an atlas does not include it otherwise.
        on_sample: Whether the reducer takes long, so that it is measured on a random sample of the documents unless a
            user names it.
        samples_queries: Whether the values are means over most tokens of a text; with the scope ``rows`` they can then
            be estimated from a sample of the query rows.
        reads_logits: Whether the reducer reads `Attention.raised`, for which the model must be a causal language model.
        reads_values: Whether the reducer reads `Attention.values` or `Attention.output`, which views do not have.
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
        """Return True if a corpus has the annotation that the reducer needs, unless a user must name the reducer."""
        return not cls.by_name and cls.is_annotated(summary)

    @classmethod
    def is_annotated(cls, summary: CorpusSummary) -> bool:
        """Return True if the reducer needs no annotation, or if a corpus has the annotation that it needs."""
        return cls.annotation is None or bool(cls.annotation.is_in(summary))

    @classmethod
    def for_corpus(cls, summary: CorpusSummary) -> "Reducer":
        """Return the reducer for a corpus, with folds that suit its texts.

        Raises:
            CorpusError: The corpus lacks the annotation that the reducer needs.
        """
        cls.check_annotation(summary)
        return assign_folds(cls(), FoldAssignment.for_corpus(summary))

    @classmethod
    def check_annotation(cls, summary: CorpusSummary) -> None:
        """Raise an error if a corpus lacks the annotation that the reducer needs.

        Raises:
            CorpusError: The annotation is missing; the message names a suitable corpus.
        """
        if cls.annotation is not None and not cls.is_annotated(summary):
            raise CorpusError(
                f"the reducer `{cls.name}` needs {cls.annotation.title}, and the corpus has none; give "
                f"{cls.annotation.example}, or measure `surface` only."
            )

    @property
    def reports_heads(self) -> bool:
        """Whether one of the scores is used to choose and report heads."""
        return any(score.has_report for score in self.scores)

    @abstractmethod
    def prepare(self, batch: Batch, attention_type: str) -> Any:
        """Return the facts about a batch that `count` and `observe` need, such as the positions of its links.

        It is called once for each attention type and device of a batch, and not again for each layer.
        """

    @abstractmethod
    def count(self, facts: Any) -> Sums:
        """Return the sums that need no attention: how often each value is defined."""

    # With these argument types, mypy accepts methods of one attention and of two; no argument is passed by keyword.
    @abstractmethod
    def observe(self, facts: Any, *attentions: Any, **_: Any) -> Sums:
        """Return the sums of a part of a batch: a block of rows, a layer, a pass or the gradient of a layer (`scope`).

        The first axis is the head; in a pass the first axis is the layer and the second axis is the head.
        """

    @abstractmethod
    def result(self, sums: Mapping[str, np.ndarray], counts: Mapping[str, np.ndarray]) -> xr.Dataset:
        """Return the values, with units and source.

        Args:
            sums: The results of `observe`, added up; the first axes are layer and head, followed by those of the
                reducer.
            counts: The results of `count`, added up.
        """
