"""Random tokens that are repeated: the texts on which induction heads are found (Olsson et al. 2022).

A document is ``[r, r]``, where r are random tokens; a model reads them behind its first special token. The documents
name no tokens, since these differ from model to model: they say where in a vocabulary each one lies.
"""

from collections.abc import Iterator
from random import Random

from headscope.corpora.document import Document, Span

COUNT, SEED = 100, 0
SHORTEST, LONGEST = 16, 64
"""Tokens of r. They vary, so that no head finds the repeated token by its distance alone."""

GRAIN = 10**6
"""The places of a vocabulary that a token is drawn from."""


def generate_repeats(count: int = COUNT, seed: int = SEED) -> Iterator[Document]:
    """So many documents, the same for the same seed; each has a span ``repeat`` over its second half."""
    for number in range(1, count + 1):
        random = Random(f"{seed} {number}")
        places = random.sample(range(GRAIN), random.randint(SHORTEST, LONGEST)) * 2
        half = len(places) // 2
        yield Document(
            f"repeats:{seed}:{number}", tuple(f"t{place}" for place in places),
            spans=(Span(half, len(places), "repeat", "repeat"),),
            random_tokens=tuple((place + 0.5) / GRAIN for place in places),
        )  # fmt: skip
