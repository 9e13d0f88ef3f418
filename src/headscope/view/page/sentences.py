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
        "texts": [_describe(text) for text in texts],
        "examples": [
            {"row": each.row, "kind": each.kind, "text": each.text, "right": each.right, "count": each.count}
            for each in chosen
        ],
    }


def _describe(text: Text) -> dict[str, Any]:
    return {
        "id": text.id,
        "words": text.words,
        "tokens": text.tokens,
        "token_words": text.token_words,
        "links": text.links,
        "spans": text.spans,
        "weights": pack_bytes(np.ascontiguousarray(text.weights).tobytes()),
    }
