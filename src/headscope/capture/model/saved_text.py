"""The queries, keys and values of one text, as another engine saved them in a safetensors file.

Only headers are read before attention is replayed, so that wrong files are refused before any long work.
`docs/howto/saved-attention.md` describes the format.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from headscope.errors import ModelError
from headscope.files import has_surrogate, parse_json
from headscope.guards.formats import SAVED_ATTENTION
from headscope.guards.tensors import open_tensors

FORMAT = "headscope-attention-1"
"""The value of ``format`` in the header of each file."""

CAUSAL, ALL, TENSOR = "causal", "all", "tensor"
"""The masks: each token sees the tokens up to itself, or all tokens, or the tokens that the tensor ``mask`` shows."""

PARTS = ("query", "key", "value")

DTYPES = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}
"""The type of tensors in torch, by its name in files."""

KEYS = frozenset("format id mask scale window words tokens word_of_token special".split())
"""The keys that a header may have."""

LARGEST_SCALE = 1e6
"""The bound of scales. A scale is a small number, such as 0.125; a number this large is a mistake."""

LARGEST_WINDOW = 2**31 - 1
"""The largest window, in tokens; no text is longer."""

LONGEST_SHOWN = 200
"""The largest number of characters of a value that a message shows."""

SPECIAL = ("cls", "sep")
"""The kinds of special tokens that statistics tell apart."""


@dataclass(frozen=True)
class Settings:
    """The settings for computing attention from saved tensors, the same for all texts of a folder.

    Attributes:
        mask: `CAUSAL`, `ALL` or `TENSOR`.
        scales: The factor of the products of queries and keys, for each layer.
        windows: The window of each layer in tokens; None for no window. With the mask `CAUSAL`, it counts the query
            itself and the tokens before it. With the mask `ALL`, it counts the tokens on either side of the query,
            without the query.
        heads: The number of query heads.
        key_heads: The number of key/value heads.
        size: The width of a query and a key.
        width: The width of a value.
        dtype: The type of the tensors.
        special: The kinds of special tokens (`SPECIAL`), and the spelling of each.
    """

    mask: str
    scales: tuple[float, ...]
    windows: tuple[int | None, ...]
    heads: int
    key_heads: int
    size: int
    width: int
    dtype: str
    special: tuple[tuple[str, str], ...]

    @property
    def layers(self) -> int:
        """The number of layers."""
        return len(self.scales)


@dataclass(frozen=True, eq=False)
class SavedText:
    """The saved attention of one text.

    Attributes:
        file: The file with its tensors.
        words: The words of the document.
        tokens: The spelling of each token.
        word: The number of the word that each token is part of; -1 for special tokens.
        settings: The settings of its attention.
        outputs: The numbers of the layers whose attention output was saved as well.
    """

    file: Path
    words: tuple[str, ...]
    tokens: tuple[str, ...]
    word: tuple[int, ...]
    settings: Settings
    outputs: frozenset[int]

    def read(self, name: str) -> Tensor:
        """Read a tensor of the file by its name."""
        with open_tensors(self.file, SAVED_ATTENTION) as saved:
            tensor: Tensor = saved.get_tensor(name)
        return tensor


def open_text(file: Path) -> tuple[str, SavedText]:
    """Read the header of a file, check it and the shapes, and return the id of the document and the text.

    Raises:
        ModelError: The file is damaged or incomplete, or its parts contradict each other.
    """
    with open_tensors(file, SAVED_ATTENTION) as saved:
        header = saved.metadata() or {}
        slices = {name: saved.get_slice(name) for name in [*saved.keys()]}
        shapes = {name: tuple(part.get_shape()) for name, part in slices.items()}
        kinds = {name: str(part.get_dtype()) for name, part in slices.items()}
    read = _Header(file, header)
    if header.get("format") != FORMAT:
        raise ModelError(
            f"the header of {file} has the format {header.get('format')!r} where {FORMAT!r} is wanted; save the texts "
            "as docs/howto/saved-attention.md says."
        )
    if others := sorted(header.keys() - KEYS):
        raise ModelError(
            f"the header of {file} has the key {others[0]!r}, which means nothing here; there are "
            f"{', '.join(sorted(KEYS))}."
        )
    tokens, words = (tuple(read.get(name, list)) for name in ("tokens", "words"))
    word = tuple(read.get("word_of_token", list))
    if len(word) != len(tokens) or not all(-1 <= number < len(words) for number in word):
        raise ModelError(
            f"the header of {file} says of {len(word):,} of its {len(tokens):,} tokens which of the {len(words):,} "
            "words they are part of, counted from 0; give a number for each, and -1 for special tokens."
        )
    layers = _count_layers(file, shapes)
    settings = Settings(
        read.choose("mask", (CAUSAL, ALL, TENSOR)),
        tuple(map(float, read.spread("scale", layers, _is_scale))),
        tuple(read.spread("window", layers, _is_window)),
        *_check_shapes(file, shapes, layers, len(tokens)),
        _check_dtype(file, kinds),
        tuple(sorted(read.get("special", dict).items())),
    )
    if not {*dict(settings.special)} <= {*SPECIAL}:
        raise ModelError(
            f"the header of {file} has the special tokens {', '.join(dict(settings.special))}, and only "
            f"{' and '.join(SPECIAL)} are known; leave the others out."
        )
    _check_mask(file, settings, shapes, len(tokens))
    outputs = frozenset(layer for layer in range(1, layers + 1) if f"layers.{layer}.output" in shapes)
    return header.get("id", file.stem), SavedText(file, words, tokens, word, settings, outputs)


@dataclass(frozen=True)
class _Header:
    """The header of a file; its values are JSON."""

    file: Path
    values: Mapping[str, str]

    def get(self, name: str, kind: type) -> Any:
        """Return a value of type `kind` (list or dict); a missing dict is empty, a missing list is an error."""
        if name not in self.values:
            if kind is dict:
                return {}
            raise self._refuse(name, "nothing", f"a JSON {kind.__name__}")
        value = self._parse(name)
        if type(value) is not kind:
            raise self._refuse(name, repr(value), f"a JSON {kind.__name__}")
        wanted, written = (int, "whole numbers") if name == "word_of_token" else (str, "strings")
        entries: Any = value.values() if isinstance(value, dict) else value
        if others := [each for each in entries if type(each) is not wanted]:
            raise self._refuse(name, repr(others[0]), f"a JSON {kind.__name__} of {written}")
        if wanted is str and (halves := [each for each in entries if has_surrogate(each)]):
            raise self._refuse(name, repr(halves[0]), "whole characters, of which none is half of one")
        return value

    def choose(self, name: str, choices: Sequence[str]) -> str:
        """Return a value that must be one of `choices`."""
        value = self.values.get(name, "nothing").strip('"')
        if value not in choices:
            raise self._refuse(name, value, ", ".join(choices))
        return value

    def spread(self, name: str, layers: int, fits: Callable[[Any], bool]) -> list[Any]:
        """Return the value of each layer, from one value for all layers or a list; raise an error if one does not fit.

        A missing value is None for each layer.
        """
        value = self._parse(name)
        values = value if isinstance(value, list) else [value] * layers
        if len(values) != layers or not all(map(fits, values)):
            wanted = f"a number, or a list of {layers}, one for each layer"
            raise self._refuse(name, self.values.get(name, "nothing"), wanted)
        return values

    def _parse(self, name: str) -> Any:
        """Parse a value as JSON; return it unchanged if it is not JSON, and None if it is missing."""
        try:
            return parse_json(self.values.get(name, "null"))
        except ValueError:
            return self.values[name]

    def _refuse(self, name: str, given: str, wanted: str) -> ModelError:
        shown = given if len(given) <= LONGEST_SHOWN else f"{given[:LONGEST_SHOWN]} ..."
        return ModelError(f"the header of {self.file} says {shown} for `{name}`; give {wanted}.")


def _is_scale(value: Any) -> bool:
    """Return whether a value is a number by which scores can be multiplied."""
    return type(value) in (int, float) and abs(value) < LARGEST_SCALE and value != 0


def _is_window(value: Any) -> bool:
    """Return whether a value is a number of tokens, or None for no window."""
    return value is None or (type(value) is int and 0 < value <= LARGEST_WINDOW)


def _count_layers(file: Path, shapes: Mapping[str, Sequence[int]]) -> int:
    layers = 0
    while all(f"layers.{layers + 1}.{part}" in shapes for part in PARTS):
        layers += 1
    parts = (*PARTS, "output")
    wanted = {f"layers.{layer}.{part}" for layer in range(1, layers + 1) for part in parts} | {"mask"}
    if not layers or (others := sorted({*shapes} - wanted)):
        what = f"has {others[0]!r}" if layers else f"has {', '.join(sorted(shapes)) or 'no tensors'}"
        raise ModelError(
            f"{file} {what}, and its tensors are called layers.1.query, layers.1.key, layers.1.value and so on; name "
            "them so, without a gap, and save all three of each layer."
        )
    return layers


def _check_shapes(
    file: Path, shapes: Mapping[str, Sequence[int]], layers: int, tokens: int
) -> tuple[int, int, int, int]:
    """Check the shapes, and return query heads, key/value heads, width of a query and width of a value."""
    for name, shape in shapes.items():
        if name != "mask" and (len(shape) != 3 or 0 in shape):
            raise ModelError(
                f"{name} of {file} has the shape {tuple(shape)}, and three sizes are wanted (heads, tokens, numbers of "
                "each), none of them 0; save it so."
            )
    first_query, first_key, first_value = (shapes[f"layers.1.{part}"] for part in PARTS)
    heads, key_heads = first_query[0], first_key[0]
    size, width = first_query[-1], first_value[-1]
    wanted = {
        "query": (heads, tokens, size), "key": (key_heads, tokens, size), "value": (key_heads, tokens, width),
        "output": (heads, tokens, width),
    }  # fmt: skip
    for name, shape in shapes.items():
        part = name.rpartition(".")[2]
        if part in wanted and tuple(shape) != wanted[part]:
            raise ModelError(
                f"{name} of {file} has the shape {tuple(shape)} where {wanted[part]} is wanted (heads, tokens, numbers "
                f"of each), as the header and layers.1 have it; save all of them of the same {tokens:,} tokens."
            )
    if not tokens or heads % key_heads:
        raise ModelError(
            f"{file} has {heads} query heads, {key_heads} key heads and {tokens} tokens; each key head is shared by as "
            "many query heads, and there is a token at least."
        )
    return heads, key_heads, size, width


def _check_mask(file: Path, settings: Settings, shapes: Mapping[str, Sequence[int]], tokens: int) -> None:
    shape = shapes.get("mask")
    if settings.mask == TENSOR and any(settings.windows):
        raise ModelError(
            f"the header of {file} says {TENSOR} for `mask` and has a `window` as well; put the window into the tensor."
        )
    if (settings.mask == TENSOR) != (shape is not None) or (shape is not None and tuple(shape) != (tokens, tokens)):
        there = "no tensor `mask`" if shape is None else f"a tensor `mask` of the shape {tuple(shape)}"
        raise ModelError(
            f"the header of {file} says {settings.mask} for `mask`, and it has {there}; save one of the shape "
            f"{(tokens, tokens)} if the header says {TENSOR}, and none otherwise."
        )


def _check_dtype(file: Path, kinds_of: Mapping[str, str]) -> str:
    kinds = {kind for name, kind in kinds_of.items() if name != "mask"}
    if (kind := kinds_of.get("mask", "BOOL")) not in ("BOOL", "U8"):
        raise ModelError(
            f"the mask of {file} is of the type {kind}, and truth values are wanted: true where the token of the row "
            "sees that of the column; save it as bool."
        )
    if len(kinds) != 1 or not kinds <= DTYPES.keys():
        raise ModelError(
            f"the tensors of {file} are of the types {', '.join(sorted(kinds))}; save all of them as one of "
            f"{', '.join(DTYPES.values())}."
        )
    return DTYPES[kinds.pop()]
