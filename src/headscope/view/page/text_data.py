"""The texts of a page, with the attention of all heads: data for ``scripts/texts.js``."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import xarray as xr

from headscope.examples import READS, STEPS, Text, unpack
from headscope.view.page.packed import pack_bytes


def describe_texts(examples: xr.Dataset) -> dict[str, Any]:
    """Return the data of the texts with their weights and scored items, and the examples that refer to the texts.

    Raises:
        TableError: the examples are damaged.
    """
    texts, chosen = unpack(examples)
    rows = sorted({row for text in texts for item in text.items for row in item.rows})
    return {
        "steps": STEPS,
        "reads": READS,
        "rows": rows,
        "judged": all(text.judged for text in texts),
        "texts": [describe_text(text) | _describe_items(text, rows) for text in texts],
        "examples": [
            {"row": each.row, "kind": each.kind, "text": each.text, "right": each.right, "count": each.count}
            for each in chosen
        ],
    }


def measure_texts(examples: xr.Dataset) -> list[int]:
    """Return the number of bytes that each text takes in a page.

    Raises:
        TableError: the examples are damaged.
    """
    return [len(json.dumps(text).encode()) for text in describe_texts(examples)["texts"]]


def describe_text(text: Text, *, quick: bool = False) -> dict[str, Any]:
    """Return the data of a text; its weights, one byte each, are packed quickly (`quick`) or as small as possible."""
    weights = {name: np.ascontiguousarray(each).tobytes() for name, each in text.weights.items()}
    return {
        "id": text.id,
        "words": text.words,
        "content": text.content,
        "offsets": text.offsets,
        "boundary": text.boundary,
        "random_tokens": text.random_tokens,
        "messages": text.messages,
        "sides": {name: asdict(side) for name, side in text.sides.items()},
        "shapes": {name: each.shape[:2] for name, each in text.weights.items()},
        "links": text.links,
        "spans": text.spans,
        "weights": {name: pack_bytes(each, quick=quick) for name, each in weights.items()},
    }


def _describe_items(text: Text, rows: Sequence[str]) -> dict[str, Any]:
    """Return the scored items of a text, and for each head the items that it gets right, one byte each.

    Each item is a list of its source, its targets, and the indices of its rows in `rows`.
    """
    place = {row: number for number, row in enumerate(rows)}
    return {
        "items": [(item.source, item.targets, [place[row] for row in item.rows]) for item in text.items],
        "counts": {name: judged.counts.tolist() for name, judged in text.judged.items()},
        "right": {name: pack_bytes(np.ascontiguousarray(each.right).tobytes()) for name, each in text.judged.items()},
        "picks": {place[row]: pairs for row, pairs in text.picks.items()},
    }
