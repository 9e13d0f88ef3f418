"""The format of a file of heads, by what it holds."""

from pathlib import Path

from headscope.errors import TableError
from headscope.headlists import alignment_heads, duo_attention, retrieval_heads
from headscope.headlists.head_list import GROUP, HeadList, parse_head_list
from headscope.headlists.json_file import load_json
from headscope.own_files import HEAD_LIST_FORMAT

FOREIGN = (duo_attention.NAME, retrieval_heads.NAME, alignment_heads.NAME)
"""The formats of others, each of one row."""


def read_heads(path: str | Path) -> HeadList:
    """The list of heads in a file: ``heads.json``, a ``.tsv`` of DuoAttention, or JSON of Retrieval_Head or Whisper.

    Raises:
        TableError: there is no such file, it is of no such format, or something in it is not as the format has it.
    """
    path = Path(path)
    if path.is_file() and path.suffix.lower() in (".tsv", ".txt"):
        return duo_attention.read(path)
    stored = load_json(path)
    if isinstance(stored, dict) and "format" in stored:
        return parse_head_list(stored, path)
    if alignment_heads.is_like(stored):
        return alignment_heads.parse(stored, path)
    if retrieval_heads.is_like(stored):
        return retrieval_heads.parse(stored, path)
    raise TableError(
        f"{path} holds no list of heads; give one of the format {HEAD_LIST_FORMAT!r}, a table of DuoAttention (.tsv), "
        "the JSON of Retrieval_Head, or alignment heads of Whisper."
    )


def render_heads(heads: HeadList, format: str, key_value_heads: int | None = None) -> str:
    """The text of a file in one of the formats of `FOREIGN`, of a list of one row.

    Raises:
        TableError: the format cannot hold the list.
    """
    if format == duo_attention.NAME:
        return duo_attention.render(heads, key_value_heads)
    if heads.unit == GROUP:
        raise TableError(f"the list is of key/value heads, and {format} is of query heads; export it as duo-attention.")
    return retrieval_heads.render(heads) if format == retrieval_heads.NAME else alignment_heads.render(heads)
