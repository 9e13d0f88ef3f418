"""DuoAttention's ``full_attention_heads.tsv``: how much each key/value head needs the whole text (Xiao et al. 2024).

A line for each layer, in it a number from 0 to 1 for each key/value head, with tabs between them and no header: what
``numpy.savetxt`` writes and ``load_attn_pattern`` reads, which takes a number outside of 0 to 1 for the nearer end.
"""

import math
from pathlib import Path

from headscope.errors import TableError, quote
from headscope.files import parse_number, reading
from headscope.headlists.head_list import GROUP, HEAD, HeadEntry, HeadList, ListedModel

NAME = "duo-attention"
SCORE, TITLE = "full_attention", "share of full attention (DuoAttention)"

STREAMING = "streaming_kept"
"""The score that is high where a head can do without the whole text, and these numbers are low: they are 1 less it."""


def read(path: Path) -> HeadList:
    """The list of all key/value heads in a file, without intervals.

    Where each query head has keys of its own, as in older models, these are its heads.

    Raises:
        TableError: a line is empty or has another length than the first, or holds what is no finite number.
    """
    with reading(path) as file:
        lines = file.read().decode(errors="replace").splitlines()
    entries, width = [], 0
    for layer, line in enumerate(lines, 1):
        cells = line.split("\t")
        width = width or len(cells)
        if len(cells) != width:
            raise TableError(
                f"line {layer} of {path} has {len(cells)} numbers and line 1 has {width}; each layer must have as many "
                "key/value heads, with tabs between them."
            )
        for head, cell in enumerate(cells, 1):
            value = min(max(_parse(cell, f"line {layer} of {path}"), 0.0), 1.0)
            entries.append(HeadEntry(layer, head, value, score=SCORE, title=TITLE))
    if not entries:
        raise TableError(f"{path} is empty; a file of DuoAttention has a line of numbers for each layer.")
    model = ListedModel(layers=len(lines), key_value_heads=width)
    return HeadList(tuple(entries), model, unit=GROUP, method="Read from a file of DuoAttention.")


def render(heads: HeadList, key_value_heads: int | None = None) -> str:
    """The text of the file for a list that has all heads of one row.

    Args:
        heads: a list of one row.
        key_value_heads: of a layer, where query heads share them; each has the largest number of its query heads, since
            it is needed as much as the one that needs it most. By default those of the model, where the list says
            that its query heads share them; otherwise each head has a column of its own.

    Raises:
        TableError: a head is missing, or its value is none from 0 to 1; so many key/value heads cannot be shared by
            the heads; or the list is one of another number of key/value heads.
    """
    layers = heads.model.layers or max(entry.layer for entry in heads.entries)
    known = heads.model.heads if heads.unit == HEAD else heads.model.key_value_heads
    width = known or max(entry.head for entry in heads.entries)
    if heads.unit == GROUP and key_value_heads not in (None, width):
        raise TableError(
            f"the list has {width} key/value heads of a layer, and {key_value_heads} were asked for; leave the number "
            "out."
        )
    entries = {(entry.layer, entry.head): entry for entry in heads.entries}
    if len(entries) < layers * width:
        raise TableError(
            f"the list has {len(entries)} of {layers * width} heads, and DuoAttention needs a number for each; export "
            "from the atlas, which has them all."
        )
    rows = [[_share(entries[layer, head]) for head in range(1, width + 1)] for layer in range(1, layers + 1)]
    shared = heads.model.key_value_heads if key_value_heads is None else key_value_heads
    if shared is not None and heads.unit == HEAD:
        if shared < 1 or width % shared:
            raise TableError(
                f"{shared} key/value heads cannot be shared by {width} heads; give a number that divides "
                f"{width}, which the configuration of the model has as num_key_value_heads."
            )
        size = width // shared
        rows = [[max(row[start : start + size]) for start in range(0, width, size)] for row in rows]
    return "".join("\t".join(f"{value:.18e}" for value in row) + "\n" for row in rows)


def _share(entry: HeadEntry) -> float:
    value = entry.value
    if value is None or not 0 <= value <= 1:
        raise TableError(
            f"the head {entry.layer}-{entry.head} has the value {value}, and DuoAttention takes numbers from 0 to 1; "
            "export a score that is a share."
        )
    return 1 - value if entry.score == STREAMING else value


def _parse(cell: str, where: str) -> float:
    value = parse_number(cell)
    if math.isnan(value):
        raise TableError(f"{where} has {quote(cell)}, which is no number; a file of DuoAttention has nothing else.")
    return value
