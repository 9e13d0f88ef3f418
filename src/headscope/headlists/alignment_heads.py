"""Whisper's ``alignment_heads`` (Radford et al. 2022): the heads of the cross-attention that follow the sound.

Pairs of layer and head, both counted from 0: ``[[2, 2], [3, 0]]``, alone or in the field ``alignment_heads`` of a
``generation_config.json`` of transformers. The package openai-whisper packs the same pairs into a text; see
`packed_heads`.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headscope.errors import TableError, quote
from headscope.headlists.head_list import HeadEntry, HeadList, is_whole, refuse_repeated
from headscope.headlists.packed_heads import is_packed, unpack

NAME = "alignment-heads"
FIELD, TITLE = "alignment_heads", "alignment of sound and text (Whisper)"
CROSS = "cross"
"""The attention type of alignment heads."""


def is_like(stored: Any) -> bool:
    """Return whether a value is a JSON array, packed heads, or an object with the field ``alignment_heads``."""
    return isinstance(stored, list) or is_packed(stored) or (isinstance(stored, dict) and FIELD in stored)


def parse(stored: Any, path: Path) -> HeadList:
    """Return the alignment heads in the value of a JSON file as a list of heads, without scores.

    Raises:
        TableError: an item is not a pair of whole numbers from 0 on, a head occurs twice, the list is empty, or packed
            heads cannot be unpacked.
    """
    pairs = stored[FIELD] if isinstance(stored, dict) else stored
    if is_packed(pairs):
        pairs = unpack(pairs, stored, path)
    if not isinstance(pairs, list) or not pairs:
        raise TableError(f"{path} has no alignment heads; give a list of pairs, such as [[2, 2], [3, 0]].")
    entries = []
    for number, pair in enumerate(pairs, 1):
        if not isinstance(pair, list) or len(pair) != 2 or not all(is_whole(place, 0) for place in pair):
            raise TableError(
                f"entry {number} of {path} is {quote(json.dumps(pair))}, and an alignment head is a pair of numbers "
                "[layer, head], both counted from 0; correct it."
            )
        entries.append(HeadEntry(pair[0] + 1, pair[1] + 1, score=FIELD, title=TITLE, attention_type=CROSS))
    refuse_repeated([json.dumps(pair) for pair in pairs], path)
    return HeadList(tuple(entries), method="Read from the alignment heads of Whisper, which have no scores.")


def render(heads: HeadList) -> str:
    """Return the heads of a list with one row as JSON: pairs of layer and head, in the order of the list.

    Raises:
        TableError: a head has another attention type, in a model with several.
    """
    for entry in heads.entries:
        if entry.attention_type not in ("", CROSS):
            raise TableError(
                f"the head {entry.place} is none of the cross-attention, of which alignment heads are; choose another "
                "row."
            )
    return f"{json.dumps([[entry.layer - 1, entry.head - 1] for entry in heads.entries])}\n"


def render_settings(heads: HeadList, settings: Mapping[str, Any]) -> str:
    """Return the text of a ``generation_config.json`` that has the heads of a list next to its other settings.

    Raises:
        TableError: as in `render`.
    """
    return f"{json.dumps({**settings, FIELD: json.loads(render(heads))}, indent=2)}\n"
