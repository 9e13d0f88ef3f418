"""Paths of several dependencies as links: from a word to the head of its head, and further up.

In *she waits in the garden*, ``case`` leads from *in* to *garden* and ``obl`` from *garden* to *waits*. Together they
are the path ``obl+case`` from *in* to *waits* (multi-hop dependency paths: Sashida et al. 2026).
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from headscope.corpora.document import Document, Link
from headscope.errors import CorpusError

KIND = "path"

MOST_HOPS = 3
"""The number of dependencies in the longest paths (Sashida et al. 2026)."""

FEWEST, MOST = 40, 30
"""A path becomes links if the corpus has it at least 40 times, and it is among the 30 most frequent of its length."""


@dataclass(frozen=True)
class Paths:
    """The paths of two or more dependencies that are frequent in a corpus.

    Attributes:
        hops: the number of dependencies in the longest path.
        labels: the labels of the paths, from the head down, such as ``obl+case``.
    """

    hops: int
    labels: frozenset[str]

    @classmethod
    def of_corpus(cls, documents: Iterable[Document], hops: int) -> "Paths":
        """Return the most frequent paths of each length in these documents.

        Raises:
            CorpusError: no path is frequent enough.
        """
        count = Counter(link.label for document in documents for link in list_paths(document, hops))
        labels = []
        for length in range(2, hops + 1):
            of_length = [label for label, times in count.most_common() if label.count("+") == length - 1]
            labels += [label for label in of_length[:MOST] if count[label] >= FEWEST]
        if not labels:
            lengths = " or ".join(map(str, range(2, hops + 1)))
            raise CorpusError(
                f"no path of {lengths} dependencies occurs {FEWEST} times in the corpus; give a larger treebank, or "
                "leave out the hops."
            )
        return cls(hops, frozenset(labels))

    def add_to(self, document: Document) -> Document:
        """Return a document with its frequent paths as further links."""
        paths = [link for link in list_paths(document, self.hops) if link.label in self.labels]
        return replace(document, links=(*document.links, *paths)) if paths else document


def check_hops(hops: int) -> None:
    """Raise an error for a number of hops that is not from 1 to `MOST_HOPS`."""
    if not isinstance(hops, int) or isinstance(hops, bool) or not 1 <= hops <= MOST_HOPS:
        raise CorpusError(
            f"`hops` is {hops!r}; give 1 for dependencies alone, 2 or {MOST_HOPS} for paths up to that length."
        )


def list_paths(document: Document, hops: int) -> Iterator[Link]:
    """Yield a link for each path of 2 to `hops` dependencies in a document, except paths with punctuation.

    A link leads from the lowest word of the path to the highest.
    """
    head_of = {link.source: link for link in document.links if link.kind == "dependency"}
    for word in head_of:
        labels: list[str] = []
        seen, last = {word}, word
        while last in head_of and len(labels) < hops:
            link = head_of[last]
            labels, last = [link.label, *labels], link.target
            # Faulty annotation may have cycles.
            if link.label.partition(":")[0] == "punct" or last in seen:
                break
            seen.add(last)
            if len(labels) > 1:
                yield Link(word, last, "+".join(labels), KIND)
