"""Paths of several dependencies, by trying every chain of links."""

from headscope.corpora.document import Document


def paths(document: Document) -> set[tuple[int, int, str]]:
    """The paths of two and of three dependencies without punctuation: the lowest word, the highest, and the labels."""
    links = [link for link in document.links if link.kind == "dependency" and not link.label.startswith("punct")]
    chains = set()
    for low in links:
        for middle in links:
            if low.target != middle.source:
                continue
            chains.add((low.source, middle.target, f"{middle.label}+{low.label}"))
            for high in links:
                if middle.target == high.source:
                    chains.add((low.source, high.target, f"{high.label}+{middle.label}+{low.label}"))
    return chains
