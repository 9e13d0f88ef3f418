"""Alignment heads in openai-whisper: a truth value for each head of each layer, compressed by gzip, in base85.

The text states neither the number of layers nor the number of heads; a configuration of the model does.
"""

import zlib
from base64 import b85decode
from pathlib import Path
from typing import Any

from headscope.errors import TableError
from headscope.headlists.head_list import is_whole
from headscope.headlists.json_file import load_json

CONFIG = "config.json"
"""The name of the file with the configuration of a model, which may be in the same folder."""

_SIZES = (("decoder_layers", "decoder_attention_heads"), ("n_text_layer", "n_text_head"))
"""The fields with the numbers of layers and heads, in transformers and in openai-whisper."""

_BEGINNING = "ABzY8"
"""The beginning of a gzip file in base85."""

_GZIP = 31
_MOST_HEADS = 1 << 16


def is_packed(value: Any) -> bool:
    """Return whether a value is a text that begins like packed heads."""
    return isinstance(value, str) and value.startswith(_BEGINNING)


def unpack(packed: str, stored: Any, path: Path) -> list[list[int]]:
    """Return the pairs of layer and head, both from 0 on, whose packed value is true.

    Args:
        packed: the text.
        stored: the value of the file, which may have the numbers of layers and heads.
        path: the path of the file. Its folder may have the configuration.

    Raises:
        TableError: the text is damaged, or the numbers of layers and heads are missing or those of another model.
    """
    unpacker = zlib.decompressobj(_GZIP)
    try:
        flags = unpacker.decompress(b85decode(packed), _MOST_HEADS + 1)
    except (ValueError, zlib.error):
        flags = b""
    if not unpacker.eof or not 0 < len(flags) <= _MOST_HEADS or not {*flags} <= {0, 1}:
        raise TableError(f"{path} has packed alignment heads that are damaged; copy them again from openai-whisper.")
    sizes = _find_sizes(stored) or _find_sizes_in_folder(path)
    if sizes is None:
        raise TableError(
            f"{path} has the packed alignment heads of openai-whisper, which are {len(flags)} heads without the number "
            f"of layers; put the {CONFIG} of the model into its folder, or give the generation_config.json of "
            "transformers."
        )
    layers, heads = sizes
    if layers * heads != len(flags):
        raise TableError(
            f"{path} has packed alignment heads of {len(flags)} heads, and the configuration has {layers} layers of "
            f"{heads} heads; give the two of one model."
        )
    return [[*divmod(number, heads)] for number, flag in enumerate(flags) if flag]


def _find_sizes(configuration: Any) -> tuple[int, int] | None:
    """Return the numbers of layers and heads in a configuration; None if it does not have both."""
    if not isinstance(configuration, dict):
        return None
    for of_layers, of_heads in _SIZES:
        layers: Any = configuration.get(of_layers)
        heads: Any = configuration.get(of_heads)
        if is_whole(layers, 1) and is_whole(heads, 1):
            return layers, heads
    return None


def _find_sizes_in_folder(path: Path) -> tuple[int, int] | None:
    configuration = path.parent / CONFIG
    return _find_sizes(load_json(configuration)) if configuration.is_file() else None
