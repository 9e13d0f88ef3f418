"""The texts of a page, with the attention of all heads: data for ``scripts/texts.js``."""

from dataclasses import asdict
from typing import Any

import numpy as np
import xarray as xr

from headscope.examples import READS, STEPS, Text, unpack
from headscope.view.page.packed import pack_bytes


def describe_texts(examples: xr.Dataset) -> dict[str, Any]:
    """The texts, what they are examples of, and their weights by attention type, layer after layer.

    Raises:
        TableError: the examples are damaged.
    """
    texts, chosen = unpack(examples)
    return {
        "steps": STEPS,
        "reads": READS,
        "texts": [describe_text(text) for text in texts],
        "examples": [
            {"row": each.row, "kind": each.kind, "text": each.text, "right": each.right, "count": each.count}
            for each in chosen
        ],
    }


def describe_text(text: Text, *, quick: bool = False) -> dict[str, Any]:
    """A text with its weights, a byte each, in gzip and base64; packed quickly, or as small as can be."""
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
