"""What is asked of attention, and how the answers add up.

A reducer turns attention into sums and sums into values. Since sums are all it keeps, merging is
``+``: across batches, processes, machines and files on disk, in any order.
"""

from collections.abc import Mapping
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
import xarray as xr
from torch import Tensor

from headscope.capture.attention import Attention
from headscope.capture.batch import Batch
from headscope.corpora.corpus import CorpusSummary

Sums = dict[str, Tensor]
"""Named float64 or int64 tensors. What `Reducer.observe` returns has the head axis first."""


@runtime_checkable
class Reducer(Protocol):
    """A statistic of heads: a frozen dataclass with three pure functions.

    Attributes:
        name: what the command line calls it.
        whole: it needs all rows of a layer at once, and so is limited to `max_tokens`.
        max_tokens: longer documents are skipped and counted; None if any length will do.
    """

    name: ClassVar[str]
    whole: ClassVar[bool]
    max_tokens: ClassVar[int | None]

    @classmethod
    def supports(cls, summary: CorpusSummary) -> bool:
        """Whether a corpus has the annotation that it needs."""

    @classmethod
    def for_corpus(cls, summary: CorpusSummary) -> "Reducer":
        """The reducer for a corpus with these annotations.

        Raises:
            CorpusError: the annotation that it needs is not there.
        """

    def count(self, batch: Batch, attention_type: str) -> Sums:
        """What is known of a batch before any attention: how often each value is defined."""

    def observe(self, attention: Attention) -> Sums:
        """What a block of rows of one layer adds, head axis first."""

    def result(self, sums: Mapping[str, np.ndarray], counts: Mapping[str, np.ndarray]) -> xr.Dataset:
        """The values, with units and source.

        Args:
            sums: what `observe` returned, added up; axes layer and head, then its own.
            counts: what `count` returned, added up.
        """
