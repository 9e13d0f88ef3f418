"""Paths of several dependencies as links: from a word to the head of its head, and on.

In *she waits in the garden*, ``case`` leads from *in* to *garden* and ``obl`` from *garden* to *waits*; together they
are the path ``obl+case`` from *in* to *waits* (multi-hop dependency paths: Sashida et al. 2026).
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from headscope.corpora.document import Document, Link
from headscope.errors import CorpusError

KIND = "path"

MOST_HOPS = 3
"""The dependencies of the longest paths (Sashida et al. 2026)."""

FEWEST, MOST = 40, 30
"""A path becomes links where the corpus has so many of it, and it is one of the most frequent of its length."""


@dataclass(frozen=True)
class Paths:
    """The paths of two dependencies, and of more, that a corpus has often enough.

    Attributes:
        hops: the dependencies of the longest.
        labels: of the paths, from the head down, such as ``obl+case``.
    """

    hops: int
    labels: frozenset[str]

    @classmethod
    def of_corpus(cls, documents: Iterable[Document], hops: int) -> "Paths":
        """The most frequent paths of each length of these documents.

        Raises:
            CorpusError: they have no path often enough.
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
        """The document with these paths as further links."""
        paths = [link for link in list_paths(document, self.hops) if link.label in self.labels]
        return replace(document, links=(*document.links, *paths)) if paths else document


def check_hops(hops: int) -> None:
    """Refuse a number of hops that is not from 1 to `MOST_HOPS`."""
    if not isinstance(hops, int) or isinstance(hops, bool) or not 1 <= hops <= MOST_HOPS:
        raise CorpusError(
            f"`hops` is {hops!r}; give 1 for dependencies alone, 2 or {MOST_HOPS} for paths up to that length."
        )


def list_paths(document: Document, hops: int) -> Iterator[Link]:
    """The paths of 2 to so many dependencies of a document, from the lowest word; those with punctuation are none."""
    head_of = {link.source: link for link in document.links if link.kind == "dependency"}
    for word in head_of:
        labels: list[str] = []
        seen, last = {word}, word
        while last in head_of and len(labels) < hops:
            link = head_of[last]
            labels, last = [link.label, *labels], link.target
            # Annotation in error may lead round in a circle.
            if link.label.partition(":")[0] == "punct" or last in seen:
                break
            seen.add(last)
            if len(labels) > 1:
                yield Link(word, last, "+".join(labels), KIND)
