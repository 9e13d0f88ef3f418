"""Words of translations at which a head attends most to a source word that they are aligned to, and what rules say."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from witnesses.seen import Seen

SHIFTS = range(-5, 6)


@dataclass
class Aligned:
    """Of one step: the words right, by layer and head; by rule and shift; their number; the links of each head that are
    sure, those that are gold, and how many links it has; and the sure links that there are.
    """

    right: np.ndarray
    sure: np.ndarray
    gold: np.ndarray
    index: dict[int, int] = field(default_factory=lambda: dict.fromkeys(SHIFTS, 0))
    diagonal: dict[int, int] = field(default_factory=lambda: dict.fromkeys(SHIFTS, 0))
    count: int = 0
    linked: int = 0
    sure_links: int = 0

    @property
    def share(self) -> np.ndarray:
        return self.right / (self.count or math.nan)

    @property
    def error_rate(self) -> np.ndarray:
        return 1 - (self.sure + self.gold) / (self.linked + self.sure_links)


def alignment(documents: Sequence[Seen]) -> dict[str, Aligned]:
    """Of the steps that predict words, and of those that read them; from the maps of the cross-attention."""
    shape = documents[0].weights.shape[:2]
    return {
        step: _align(documents, Aligned(*(np.zeros(shape) for _ in range(3))), back)
        for step, back in (("predicting", 1), ("reading", 0))
    }


def _align(documents: Sequence[Seen], aligned: Aligned, back: int) -> Aligned:
    for seen in documents:
        document = seen.document
        aligned.sure_links += sum(link.label == "sure" for link in document.alignment)
        source = sorted({key.word for key in seen.keys if key.word is not None})
        for place in range(len(document.translation)):
            rows = [row - back for row, query in enumerate(seen.queries) if query.word == place]
            if not rows or not source:
                continue
            aligned.linked += 1
            to_words = np.zeros((len(source), *aligned.right.shape))
            for column, key in enumerate(seen.keys):
                if key.word is not None:
                    to_words[source.index(key.word)] += seen.weights[:, :, rows, column].mean(-1)
            chosen = np.array(source)[to_words.argmax(0)]
            links = {
                link.source: link.label for link in document.alignment if link.target == place and link.source in source
            }
            for word, label in links.items():
                aligned.gold += chosen == word
                aligned.sure += (chosen == word) * (label == "sure")
            if "sure" not in links.values():
                continue
            aligned.count += 1
            aligned.right += np.isin(chosen, list(links))
            middle = math.floor((place + 0.5) / len(document.translation) * len(document.words) + 1e-9)
            for shift in SHIFTS:
                aligned.index[shift] += place + shift in links
                aligned.diagonal[shift] += middle + shift in links
    return aligned
