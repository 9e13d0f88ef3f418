"""Files of heads in all known formats: the format of a file is detected by its content."""

from pathlib import Path
from typing import Any

from headscope.errors import TableError, quote
from headscope.files import check_regular
from headscope.headlists import alignment_heads, duo_attention, retrieval_heads
from headscope.headlists.head_list import GROUP, HeadList, parse_head_list
from headscope.headlists.json_file import load_json
from headscope.own_files import HEAD_LIST_FORMAT

FOREIGN = (duo_attention.NAME, retrieval_heads.NAME, alignment_heads.NAME)
"""The formats of other tools; a file in one of them has one row."""


MOST = 100_000
"""A number of layers, or of heads in a layer, that no model exceeds."""

_DUO_SETTINGS = ("sink_size", "recent_size")
"""The fields of the ``config.json`` that DuoAttention has in the folder of its table."""

_CONFIGURATION = (
    "is_multilingual", "lang_to_id", "task_to_id", "lang_ids", "suppress_ids", "begin_suppress_tokens", "bos_token_id",
    "eos_token_id", "transformers_version", "model_type", "architectures",
)  # fmt: skip
"""Fields that mark a configuration of transformers or CTranslate2. The configuration of any model has at least one."""


def read_heads(path: str | Path) -> HeadList:
    """Return the heads in a file: ``heads.json``, a ``.tsv`` of DuoAttention, or JSON of Retrieval_Head or Whisper.

    Raises:
        TableError: the file is missing, has another format, is not valid in its format, or has a layer or head with a
            number that no model has.
    """
    heads = _read(Path(path))
    for entry in heads.entries:
        if max(entry.layer, entry.head) > MOST:
            name = quote(f"{entry.layer}-{entry.head}")
            raise TableError(f"{path} has the head {name}, and no model has {MOST:,} layers or heads; correct it.")
    return heads


def _read(path: Path) -> HeadList:
    check_regular(path)
    if path.is_file() and path.suffix.lower() in (".tsv", ".txt"):
        return duo_attention.read(path)
    stored = load_json(path)
    if isinstance(stored, dict) and "format" in stored:
        return parse_head_list(stored, path)
    _refuse_other(stored, path)
    if retrieval_heads.is_like(stored):
        return retrieval_heads.parse(stored, path)
    if alignment_heads.is_like(stored):
        return alignment_heads.parse(stored, path)
    raise TableError(
        f"{path} holds no list of heads; give one of the format {HEAD_LIST_FORMAT!r}, a table of DuoAttention (.tsv), "
        "the JSON of Retrieval_Head, or alignment heads of Whisper."
    )


def _refuse_other(stored: Any, path: Path) -> None:
    """Raise an error for a file of another tool that has no list of heads; the error names the content of the file.

    Raises:
        TableError: the file has patterns of MInference, settings of DuoAttention, or a configuration of a model.
    """
    if isinstance(stored, list) and stored and all(map(_is_layer_of_patterns, stored)):
        raise TableError(
            f"{path} is a list of sparse patterns of MInference, which has no scores of heads: its numbers are sizes "
            "of a pattern and how well it fits; measure the heads with the reducer sparse_shapes, or give a list with "
            "scores."
        )
    if not isinstance(stored, dict):
        return
    if all(name in stored for name in _DUO_SETTINGS):
        raise TableError(
            f"{path} has the settings of DuoAttention and no heads; give full_attention_heads.tsv of the same folder."
        )
    if stored.get(alignment_heads.FIELD) is None and any(name in stored for name in _CONFIGURATION):
        raise TableError(
            f"{path} is a configuration of a model without {alignment_heads.FIELD}; give the generation_config.json of "
            "a Whisper model that has them, such as the model that this one was tuned from."
        )


def _is_layer_of_patterns(layer: Any) -> bool:
    """Return whether a value has a pattern for each head: ``{"0": ["vertical_and_slash", 1000, 6096, 0.9], ...}``."""
    return (
        isinstance(layer, dict)
        and bool(layer)
        and all(
            key.isdecimal() and isinstance(pattern, list) and bool(pattern) and isinstance(pattern[0], str)
            for key, pattern in layer.items()
        )
    )


def render_heads(heads: HeadList, format: str, key_value_heads: int | None = None) -> str:
    """Return the text of a file for a list of one row, in a format of another tool (`FOREIGN`).

    Raises:
        TableError: the format cannot hold the list.
    """
    if format == duo_attention.NAME:
        return duo_attention.render(heads, key_value_heads)
    if heads.unit == GROUP:
        raise TableError(f"the list is of key/value heads, and {format} is of query heads; export it as duo-attention.")
    return retrieval_heads.render(heads) if format == retrieval_heads.NAME else alignment_heads.render(heads)
