"""The JSON of Retrieval_Head (Wu et al. 2024): ``{"16-19": [0.9, 0.8], ...}`` on one line.

A key is the layer and the head, both counted from 0, and its value the retrieval scores of the head, one for each
detection; whoever reads it takes their mean.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headscope.errors import TableError, quote
from headscope.headlists.head_list import HeadEntry, HeadList, is_number

NAME = "retrieval-heads"
SCORE, TITLE = "retrieval_score", "retrieval score (Retrieval_Head)"

_KEY = re.compile(r"(\d{1,9})-(\d{1,9})")


def is_like(stored: Any) -> bool:
    """True for a JSON object whose first key is the name of a head."""
    return isinstance(stored, Mapping) and bool(stored) and _KEY.fullmatch(next(iter(stored))) is not None


def parse(stored: Mapping[str, Any], path: Path) -> HeadList:
    """The list of the heads in a JSON object, without intervals: the mean of the scores of each, and their number.

    Raises:
        TableError: a key is no head, or its value is no list of numbers.
    """
    entries = []
    for key, scores in stored.items():
        match = _KEY.fullmatch(key)
        if match is None:
            raise TableError(
                f"{path} has the key {quote(key)}, and a head is layer-head, both counted from 0, such as '16-19'; "
                "correct it."
            )
        numbers = isinstance(scores, list) and all(map(is_number, scores))
        if not numbers or not scores:
            raise TableError(f"{path} has no scores for the head {key!r}; give a list of one number or more.")
        values = tuple(float(score) for score in scores)
        mean = sum(values) / len(values)
        layer, head = int(match[1]) + 1, int(match[2]) + 1
        entries.append(
            HeadEntry(layer, head, mean, count=len(values), score=SCORE, title=TITLE, values=values)
        )  # fmt: skip
    return HeadList(tuple(entries), method="Read from a file of Retrieval_Head: means over its detections.")


def render(heads: HeadList) -> str:
    """The text of the file for a list of one row; a head with a single value has a list of this one.

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
