"""Pairs of made-up sentences of the words that the tiny tokenizers know, with random links between their words."""

import random

import tiny
from headscope.corpora.document import Document, Link

LENGTHS = (1, 2, 3, 5, 7, 11, 13)


def pairs(count: int = 13) -> list[Document]:
    """Pairs of 1 to 13 words on each side; some have no link, some no sure one, and some a word without a token."""
    return [_pair(number) for number in range(count)]


def _pair(number: int) -> Document:
    rng = random.Random(f"pair {number}")
    source, target = (tuple(rng.choices((*tiny.WHOLE, *tiny.SPLIT), k=rng.choice(LENGTHS))) for _ in range(2))
    if number % 5 == 4:
        source, target = (*source, tiny.TOKENLESS[0]), (tiny.TOKENLESS[0], *target)
    every = [(first, second) for first in range(len(source)) for second in range(len(target))]
    linked = rng.sample(every, k=min(len(every), rng.randrange(2 * len(target) + 1)))
    alignment = tuple(
        Link(first, second, rng.choice(("sure", "sure", "possible")), kind="alignment") for first, second in linked
    )
    group = f"text-{number // 2}"
    return Document(f"pair-{number}", source, group=group, translation=target, alignment=alignment)
