"""Tokens of answers at whose prediction a head attends most to the needle, and what rules would say."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from witnesses.seen import Seen


@dataclass
class Retrieved:
    """Of one row: the tokens right, by layer and head, by needle from the last on, and by the last and the first place
    of the token before; and the number of tokens.
    """

    right: np.ndarray
    needle: list[int] = field(default_factory=lambda: [0, 0, 0, 0])
    match: list[int] = field(default_factory=lambda: [0, 0])
    count: int = 0

    @property
    def share(self) -> np.ndarray:
        return self.right / (self.count or math.nan)


def retrieval(documents: Sequence[Seen]) -> dict[str, Retrieved]:
    """Of the first and the later tokens of all answers."""
    shape = documents[0].weights.shape[:2]
    rows = {"first token": Retrieved(np.zeros(shape)), "later tokens": Retrieved(np.zeros(shape))}
    for seen in documents:
        spans = {span.kind: span for span in seen.document.spans if span.kind in ("needle", "answer")}
        if len(spans) < 2:
            continue
        text = [token for token in seen.keys if token.position >= 0]
        tokens = {
            kind: [token for token in text if token.word is not None and span.start <= token.word < span.end]
            for kind, span in spans.items()
        }
        order = [span.kind for span in seen.document.spans if "needle" in span.kind][::-1]
        for number, (answer, needle) in enumerate(zip(tokens["answer"], tokens["needle"], strict=False)):
            if answer.id != needle.id:
                continue
            row = rows["later tokens" if number else "first token"]
            row.count += 1
            query = next(i for i, token in enumerate(seen.queries) if token.position == answer.position - 1)
            target = next(i for i, token in enumerate(seen.keys) if token.position == needle.position)
            row.right += seen.weights[:, :, query].argmax(-1) == target
            if order.index("needle") < 4:
                row.needle[order.index("needle")] += 1
            before = text[answer.position - 1]
            places = [token.position for token in text if token.id == before.id and token.position < before.position]
            for which, place in enumerate((places[-1], places[0]) if places else ()):
                row.match[which] += place + 1 == needle.position
    return rows
