"""A part of a corpus: its first documents, or a random sample of them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from headscope.corpora.document import Document, Skipped
from headscope.corpora.text import format_count
from headscope.errors import CorpusError


@dataclass(frozen=True)
class Selection:
    """A part of the documents of a corpus, either the first `limit` or `sample` random ones.

    Attributes:
        limit: the number of first documents.
        sample: the number of random documents, in the order of the corpus.
        seed: the random seed of the sample; the same seed takes the same documents of a corpus.

    Raises:
        CorpusError: both or neither of `limit` and `sample` are given, or a number is invalid.
    """

    limit: int | None = None
    sample: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if (self.limit is None) == (self.sample is None):
            raise CorpusError(
                "a part of a corpus is either its first documents or a random sample; give `limit` or `sample`, and "
                "not both."
            )
        for name, count in (("limit", self.limit), ("sample", self.sample)):
            if count is not None and (not _is_whole(count) or count < 1):
                raise CorpusError(
                    f"`{name}` is {count!r}, and at least one document is needed; give a whole number from 1 on, or "
                    "leave it out for the whole corpus."
                )
        if self.sample is not None and (not _is_whole(self.seed) or self.seed < 0):
            raise CorpusError(f"`seed` is {self.seed!r}; the seed of a sample is a whole number from 0 on.")

    def __str__(self) -> str:
        """Return the selection in words: ``first 100 documents``, or ``100 documents at random, seed 0``."""
        if self.limit is not None:
            return f"first {format_count(self.limit, 'document')}"
        return f"{format_count(self.sample or 0, 'document')} at random, seed {self.seed}"

    def choose(self, documents: Iterable[Document]) -> frozenset[int] | None:
        """Return the indices of the selected documents, counted from 0; None if all are selected.

        For a sample, all documents are read; for a limit, at most `limit` and one more.
        """
        if self.limit is not None:
            count = sum(1 for _ in islice(documents, self.limit + 1))
            return frozenset(range(self.limit)) if count > self.limit else None
        count, size = sum(1 for _ in documents), self.sample or 0
        if count <= size:
            return None
        return frozenset(np.random.default_rng(self.seed).choice(count, size, replace=False).tolist())

    def select(self, parts: Iterable[Document | Skipped], chosen: frozenset[int]) -> Iterator[Document | Skipped]:
        """Yield the documents at the chosen indices, and the skipped parts between them.

        After the first `limit` documents nothing more is read. A sample is drawn from all readable documents, so the
        skipped parts of the whole corpus are yielded, and their reasons end in ``in the whole corpus``.
        """
        place = 0
        for part in parts:
            if isinstance(part, Skipped):
                yield part if self.sample is None else replace(part, reason=f"{part.reason}, in the whole corpus")
                continue
            if place == self.limit:
                return
            if place in chosen:
                yield part
            place += 1


def _is_whole(number: object) -> bool:
    """Return whether a value is a whole number; True and False are not, although Python counts them as ints."""
    return isinstance(number, int | np.integer) and not isinstance(number, bool)
