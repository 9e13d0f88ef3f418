"""Data of a page, packed with gzip and base64, which ``scripts/packed.js`` unpacks."""

import base64
import gzip
import json
from typing import Any


def pack_bytes(content: bytes, *, quick: bool = False) -> str:
    """Pack bytes with gzip and base64; the same bytes always give the same text."""
    return base64.b64encode(gzip.compress(content, compresslevel=1 if quick else 6, mtime=0)).decode("ascii")


def pack_json(data: Any) -> str:
    """Write data as JSON, and pack it with gzip and base64.

    Raises:
        ValueError: the data have a number that is not finite.
    """
    return pack_bytes(json.dumps(data, allow_nan=False, separators=(",", ":")).encode())
