"""The JSON of Retrieval_Head (Wu et al. 2024): ``{"16-19": [0.9, 0.8], ...}`` on one line.

A key is the layer and the head, both counted from 0. Its value is the list of the head's retrieval scores, one for each
detection; users of the file take their mean. A file may also have the mean in place of the scores, or pairs that are
ranked by it: ``[["16-19", 0.9], ...]`` or ``[[[16, 19], 0.9], ...]``.
"""

import json
import math
import re
from pathlib import Path
from typing import Any

from headscope.errors import TableError, quote
from headscope.headlists.head_list import HeadEntry, HeadList, is_number, is_whole, refuse_repeated

NAME = "retrieval-heads"
SCORE, TITLE = "retrieval_score", "retrieval score (Retrieval_Head)"

_KEY = re.compile(r"\s*([0-9]{1,9})\s*-\s*([0-9]{1,9})\s*")


def is_like(stored: Any) -> bool:
    """Return whether the first key of a JSON object, or the first of ranked pairs, is the name of a head."""
    if isinstance(stored, dict):
        return _parse_head(next(iter(stored), None)) is not None
    return isinstance(stored, list) and bool(stored) and _is_ranked(stored[0])


def parse(stored: Any, path: Path) -> HeadList:
    """Return the list of the heads in a JSON object or in ranked pairs, without intervals.

    The value of a head is the mean of its scores, and its count is their number. If only the mean is stored, it is the
    value, and there is no count.

    Raises:
        TableError: a key is not a head, its value is neither a number nor a list of numbers, or a head occurs twice.
    """
    if isinstance(stored, dict):
        pairs = [*stored.items()]
    else:
        pairs = [_take_pair(pair, f"entry {number} of {path}") for number, pair in enumerate(stored, 1)]
    entries = [_parse_entry(key, scores, path) for key, scores in pairs]
    refuse_repeated([f"{entry.layer - 1}-{entry.head - 1}" for entry in entries], path)
    return HeadList(tuple(entries), method="Read from a file of Retrieval_Head: means over its detections.")


def _parse_head(key: Any) -> tuple[int, int] | None:
    """Return the layer and the head of a key, both from 0 on: ``"16-19"`` or ``[16, 19]``; None for other keys."""
    if isinstance(key, list) and len(key) == 2 and all(is_whole(number, 0) for number in key):
        return key[0], key[1]
    match = _KEY.fullmatch(key) if isinstance(key, str) else None
    return None if match is None else (int(match[1]), int(match[2]))


def _is_ranked(pair: Any) -> bool:
    """Return whether a value is a head and its score, but not two pairs of numbers, which could be two heads."""
    if not isinstance(pair, list) or len(pair) != 2 or _parse_head(pair[0]) is None:
        return False
    return isinstance(pair[0], str) or not isinstance(pair[1], list)


def _take_pair(pair: Any, where: str) -> tuple[Any, Any]:
    if not _is_ranked(pair):
        raise TableError(
            f"{where} is {quote(json.dumps(pair))}, and a ranked head is a pair of the head and its score, such as "
            '["16-19", 0.9]; correct it.'
        )
    return pair[0], pair[1]


def _parse_entry(key: Any, scores: Any, path: Path) -> HeadEntry:
    numbers = _parse_head(key)
    if numbers is None:
        raise TableError(
            f"{path} has the key {quote(key)}, and a head is layer-head, both counted from 0, such as '16-19'; "
            "correct it."
        )
    values = scores if isinstance(scores, list) else [scores]
    name = f"{numbers[0]}-{numbers[1]}"
    if not values:
        raise TableError(f"{path} has no scores for the head {name!r}; give a list of one number or more.")
    if wrong := [value for value in values if not is_number(value)]:
        raise TableError(
            f"{path} has {quote(json.dumps(wrong[0]))} as a score of the head {name!r}, which must be a finite number; "
            "correct it."
        )
    mean = sum(map(float, values)) / len(values)
    if not math.isfinite(mean):
        raise TableError(f"{path} has scores of the head {name!r} that are too large to have a mean; correct them.")
    layer, head = numbers[0] + 1, numbers[1] + 1
    if values is not scores:
        return HeadEntry(layer, head, mean, score=SCORE, title=TITLE)
    of_each = tuple(map(float, values))
    return HeadEntry(layer, head, mean, count=len(of_each), score=SCORE, title=TITLE, values=of_each)


def render(heads: HeadList) -> str:
    """Return a list of one row in the JSON of Retrieval_Head; a head without single scores has a list of its value.

    Raises:
        TableError: a head has no value.
    """
    scores = {}
    for entry in heads.entries:
        if entry.value is None:
            raise TableError(
                f"the head {entry.place} has no value, and Retrieval_Head needs one for each; export a score."
            )
        scores[f"{entry.layer - 1}-{entry.head - 1}"] = [*entry.values] or [entry.value]
    return f"{json.dumps(scores)}\n"
