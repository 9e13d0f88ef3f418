"""Texts of which a token gets more than 0.3 of a head's attention."""

import math
from collections.abc import Sequence

import numpy as np

from witnesses.seen import Seen, Token


def _find(keys: Sequence[Token]) -> dict[str, int]:
    places = {f"{name} token": place for place, name in enumerate(("first", "second", "third")) if place < len(keys)}
    for name, kind in (("first separator", "sep"), ("first full stop or comma", "punctuation")):
        where = [place for place, token in enumerate(keys) if token.kind == kind and place > 0]
        if where:
            places[name] = where[0]
    return places


Row = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, int]


def sinks(documents: Sequence[Seen], *, causal: bool, with_decoder: bool) -> dict[str, Row]:
    """Of each token the share of texts in which it is a sink, for each layer and head; the same of the token beside it,
    and of uniform attention; the mean attention to it; and the number of texts. With a decoder in the model they count
    from the token on.
    """
    layers, heads = documents[0].weights.shape[:2]
    rows = {}
    for name in ("first token", "second token", "third token", "first separator", "first full stop or comma"):
        itself, beside, uniform = np.zeros((layers, heads)), np.zeros((layers, heads)), np.zeros((layers, 1))
        mass, count = np.zeros((layers, heads)), 0
        for seen in documents:
            place = _find(seen.keys).get(name)
            if place is None:
                continue
            other = place + 1 if place + 1 < len(seen.keys) else place - 1
            sees, see_other = (
                [query for query in range(len(seen.queries)) if not causal or query >= key] for key in (place, other)
            )
            # A decoder's start token is none of the text.
            text = [token for token in seen.keys if token.position >= 0]
            if len(text) - (_find(text)[name] if with_decoder else 0) < 16:
                continue
            count += 1
            itself += seen.weights[:, :, sees, place].mean(-1) > 0.3
            mass += seen.weights[:, :, sees, place].mean(-1)
            beside += seen.weights[:, :, see_other, other].mean(-1) > 0.3
            uniform += (1 / seen.visible[:, sees].sum(-1)).mean(-1, keepdims=True) > 0.3
        number = count or math.nan
        rows[name] = itself / number, beside / number, uniform / number, mass / number, count
    return rows
