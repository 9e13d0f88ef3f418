"""A corpus divided into shards of about as many tokens, which are measured apart and joined."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import heapify, heapreplace

from headscope.corpora.document import Document
from headscope.errors import HeadscopeError, quote


@dataclass(frozen=True)
class Shard:
    """One of the shards of a corpus.

    Each document goes, in order, to the shard that has the fewest characters so far. Texts of one corpus have about as
    many tokens to a character, so that the shards have about as many tokens, long and short texts alike; and nobody has
    to tokenize the texts of the others.

    Attributes:
        number: counted from 1.
        count: of the shards of the corpus.

    Raises:
        HeadscopeError: there is no such shard.
    """

    number: int
    count: int

    def __post_init__(self) -> None:
        """Refuse a shard that there is not."""
        if not 1 <= self.number <= self.count:
            raise HeadscopeError(
                f"there is no shard {self.number} of {self.count}; shards are counted from 1: name one as K/N, such as "
                f"1/{max(self.count, 1)}."
            )

    @classmethod
    def parse(cls, name: str) -> "Shard":
        """The shard that is written as ``number/count``.

        Raises:
            HeadscopeError: `name` is written in another way, or there is no such shard.
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
        """Refuse to divide a corpus of so many documents into more shards.

        Raises:
            HeadscopeError: there are more shards than documents.
        """
        if self.count > documents:
            raise HeadscopeError(
                f"a corpus of {documents} documents cannot be divided into {self.count} shards; ask for at most as "
                "many shards as documents."
            )

    def select(self, documents: Iterable[Document]) -> Iterator[Document]:
        """The documents of the shard, in their order."""
        shards = [(0, number) for number in range(1, self.count + 1)]
        heapify(shards)
        for document in documents:
            characters, number = shards[0]
            own = sum(map(len, document.words)) + sum(map(len, document.translation))
            heapreplace(shards, (characters + own, number))
            if number == self.number:
                yield document
