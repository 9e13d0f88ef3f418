"""Documents whose links have rivals."""

import random
from collections.abc import Iterable
from dataclasses import replace

from headscope.corpora.document import Document


def add_rivals(documents: Iterable[Document]) -> list[Document]:
    """The same documents, in which most links that have other words beside them have up to three of them for rivals."""
    annotated = []
    for document in documents:
        rng, links = random.Random(f"rivals {document.id}"), []
        for link in document.links:
            others = [word for word in range(len(document.words)) if word not in (link.source, link.target)]
            size = min(len(others), rng.choice((0, 1, 2, 3)))
            links.append(replace(link, rivals=tuple(rng.sample(others, size))))
        annotated.append(replace(document, links=tuple(links)))
    return annotated
