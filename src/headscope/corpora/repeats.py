"""Random tokens that are repeated: the texts that show induction heads (Olsson et al. 2022).

A document is ``[r, r]``, where r are random tokens; a model reads them after its first special token. Tokens differ
between models, so the documents have positions in a vocabulary instead of tokens.
"""

from collections.abc import Iterator
from random import Random

from headscope.corpora.document import Document, Span

COUNT, SEED = 100, 0
SHORTEST, LONGEST = 16, 64
"""The least and greatest number of repeated tokens. It varies, so no head finds the repeated token by its distance."""

GRAIN = 10**6
"""The number of positions in a vocabulary among which a token is drawn."""


def generate_repeats(count: int = COUNT, seed: int = SEED) -> Iterator[Document]:
    """Yield `count` documents of random tokens; a span ``repeat`` marks the second half, which repeats the first.

    The same seed gives the same documents.
    """
    for number in range(1, count + 1):
        random = Random(f"{seed} {number}")
        places = random.sample(range(GRAIN), random.randint(SHORTEST, LONGEST)) * 2
        half = len(places) // 2
        yield Document(
            f"repeats:{seed}:{number}", tuple(f"t{place}" for place in places),
            spans=(Span(half, len(places), "repeat", "repeat"),),
            random_tokens=tuple((place + 0.5) / GRAIN for place in places),
        )  # fmt: skip
