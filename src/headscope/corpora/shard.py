"""A corpus divided into shards with about equal numbers of tokens, which are measured separately and merged."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import heapify, heapreplace

from headscope.corpora.document import Document
from headscope.errors import HeadscopeError, quote


@dataclass(frozen=True)
class Shard:
    """One of the shards of a corpus.

    Documents are assigned in order, each to the shard with the fewest characters so far. Texts of one corpus have
    similar numbers of tokens per character, so the shards have similar numbers of tokens, whether texts are long or
    short. No shard needs to tokenize the texts of the others.

    Attributes:
        number: the number of the shard, counted from 1.
        count: the number of shards of the corpus.

    Raises:
        HeadscopeError: `number` is not from 1 to `count`.
    """

    number: int
    count: int

    def __post_init__(self) -> None:
        """Raise an error for a shard whose number is not from 1 to `count`."""
        if not 1 <= self.number <= self.count:
            raise HeadscopeError(
                f"there is no shard {self.number} of {self.count}; shards are counted from 1: name one as K/N, such as "
                f"1/{max(self.count, 1)}."
            )

    @classmethod
    def parse(cls, name: str) -> "Shard":
        """Return the shard that is written as ``number/count``.

        Raises:
            HeadscopeError: `name` has another form, or `number` is not from 1 to `count`.
        """
        if not re.fullmatch(r"[0-9]{1,9}/[0-9]{1,9}", name):
            raise HeadscopeError(
                f"the shard {quote(name)} is not understood; name one as K/N, such as 2/8 for the second of eight."
            )
        number, count = map(int, name.split("/"))
        return cls(number, count)

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def check(self, documents: int) -> None:
        """Raise an error if a corpus has fewer documents than shards.

        Raises:
            HeadscopeError: there are more shards than documents.
        """
        if self.count > documents:
            raise HeadscopeError(
                f"a corpus of {documents} documents cannot be divided into {self.count} shards; ask for at most as "
                "many shards as documents."
            )

    def select(self, documents: Iterable[Document]) -> Iterator[Document]:
        """Yield only the documents that belong to the shard, in their order."""
        shards = [(0, number) for number in range(1, self.count + 1)]
        heapify(shards)
        for document in documents:
            characters, number = shards[0]
            own = sum(map(len, document.words)) + sum(map(len, document.translation))
            heapreplace(shards, (characters + own, number))
            if number == self.number:
                yield document
