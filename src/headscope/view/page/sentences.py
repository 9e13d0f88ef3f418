"""The texts of a page, with the attention of all heads: data for ``scripts/texts.js``."""

from typing import Any

import numpy as np
import xarray as xr

from headscope.examples import STEPS, Text, unpack
from headscope.view.page.packed import pack_bytes


def describe_texts(examples: xr.Dataset) -> dict[str, Any]:
    """The texts, what they are examples of, and their weights: gzip in base64, a byte each, layer after layer.

    Raises:
        TableError: the examples are damaged.
    """
    texts, chosen = unpack(examples)
    return {
        "attention_type": str(examples.attrs["attention_type"]),
        "steps": STEPS,
        "texts": [describe_text(text) for text in texts],
        "examples": [
            {"row": each.row, "kind": each.kind, "text": each.text, "right": each.right, "count": each.count}
            for each in chosen
        ],
    }


def describe_text(text: Text, *, quick: bool = False) -> dict[str, Any]:
    """A text with its weights, packed; quickly, or as small as can be."""
    weights = np.ascontiguousarray(text.weights).tobytes()
    return {
        "id": text.id,
        "words": text.words,
        "tokens": text.tokens,
        "token_words": text.token_words,
        "links": text.links,
        "spans": text.spans,
        "weights": pack_bytes(weights, quick=quick),
    }
