"""Examples: a few texts of a corpus, with the attention of all heads and the annotation of each.

documents, model --runner--> texts with maps --+--> one `xarray.Dataset` --> ``examples.nc``, the sentences of a page
head table, scores of documents --analyse--> `Example`: a text on which the head of a row does well, or badly
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import UInt8

from headscope import netcdf
from headscope.errors import HeadscopeError, TableError, first_line
from headscope.files import atomic_write, parse_json

FORMAT_ATTRIBUTE = "headscope_examples_format"
FORMAT = 4
"""The version of the schema, stored in each file. `read_examples` also reads the older versions in `BEFORE`."""

BEFORE = (2, 3)
"""The older versions that can still be read. They have no items, so a reader finds the right items from the rounded
weights. In version 2, the content of a text is its words with spaces between them.
"""

STEPS = 100
"""The number of steps between 0 and 1 to which weights are rounded: enough for a picture, in one byte per weight."""

WEIGHT, COUNTS, RIGHT = "_weight", "_counts", "_right"
"""The endings of the names of variables, which begin with an attention type: ``encoder_weight``."""

BOTH = 3
"""The code for both directions of an item."""

CLEAR, FAILS = "clear", "fails"
"""The kinds of examples: the head gets the items of a row right, or wrong."""


@dataclass(frozen=True, slots=True)
class Example:
    """A text on which the reported head of a row does well or badly.

    Attributes:
        row: the key of the row, such as ``relation:obj``.
        kind: `CLEAR` or `FAILS`.
        text: the index of the text.
        right, count: the number of items that the head gets right in the text, and the number of all its items.
    """

    row: str
    kind: str
    text: int
    right: float
    count: float


@dataclass(frozen=True, slots=True)
class Item:
    """An item on which heads are scored: a link between two words, or a mention and its antecedents.

    Attributes:
        source: the index of the word at one end.
        targets: the index of the word at the other end, or of several words, each of which is right.
        rows: the keys of the rows of scores in which the item counts, such as ``relation:obj``.
    """

    source: int
    targets: tuple[int, ...]
    rows: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """The items of a text that each head of one attention type gets right, in each direction in which an item counts.

    Attributes:
        counts: the directions in which each item counts: 1 for the first, 2 for the second, 3 for both.
        right: the directions in which each head gets each item right, with the same codes.
    """

    counts: UInt8[np.ndarray, " item"]
    right: UInt8[np.ndarray, "layer head item"]


READS = {"encoder": ("encoder", "encoder"), "decoder": ("decoder", "decoder"), "cross": ("decoder", "encoder")}
"""For each attention type, the side whose tokens attend and the side whose tokens are attended to."""


@dataclass(frozen=True, slots=True)
class Side:
    """The tokens of a text that an encoder or a decoder reads.

    Attributes:
        tokens: the tokens, with special tokens.
        token_words: the index of each token's word; -1 for tokens outside words.
    """

    tokens: tuple[str, ...]
    token_words: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Text:
    """A text and the attention of all heads on it.

    Attributes:
        id: the id of the document.
        words: the words as annotated.
        content: the text as a string.
        offsets: for each word, the index of its first character in `content`, and the index after its last character.
        boundary: the index of the first word of the second segment, if the text is a pair; else None.
        sides: the tokens of the encoder, of the decoder, or of both, by name.
        links: source, target and label of each link, as indices of words.
        spans: first word, the word after the last, label and kind of each span.
        weights: by attention type, the weight of each head from each token to each, in whole percent. `READS` says
            which sides attend and are attended to.
        random_tokens: the random tokens of the `headscope.corpora.Document`, if the text consists of them.
        messages: the messages of a conversation, each in the form that chat templates take.
        items: the items on which heads are scored.
        judged: by attention type, the items that heads get right; empty in the versions `BEFORE` and without
            annotation.
        picks: by key of a row, the words from which and to which the best rule of the row leads, for each of its items;
            -1 if the rule leads to no word. A row without rules has no entry.
    """

    id: str
    words: tuple[str, ...]
    content: str
    offsets: tuple[tuple[int, int], ...]
    boundary: int | None
    sides: Mapping[str, Side]
    links: tuple[tuple[int, int, str], ...]
    spans: tuple[tuple[int, int, str, str], ...]
    weights: Mapping[str, UInt8[np.ndarray, "layer head query key"]]
    random_tokens: tuple[float, ...] = ()
    messages: tuple[Mapping[str, Any], ...] = ()
    items: tuple[Item, ...] = ()
    judged: Mapping[str, Judged] = field(default_factory=dict)
    picks: Mapping[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)

    def shape(self, attention_type: str) -> tuple[int, int]:
        """Return, for an attention type, the number of tokens that attend and the number of tokens attended to."""
        queries, keys = READS[attention_type]
        return len(self.sides[queries].tokens), len(self.sides[keys].tokens)


def quantize(weights: np.ndarray) -> np.ndarray:
    """Round weights to whole percent; weights below 0 count as 0, and weights above 1 as 1."""
    steps: np.ndarray = np.rint(np.clip(weights, 0, 1) * STEPS).astype(np.uint8)
    return steps


def pack(texts: Sequence[Text], examples: Sequence[Example], about: Mapping[str, Any]) -> xr.Dataset:
    """Pack the texts of one model (at least one) and the examples into a dataset with the attributes `about`."""
    variables: dict[str, Any] = {
        "content": (
            ("text",), np.array([json.dumps(_read_content(text)) for text in texts], dtype=object),
            {"long_name": "id, words, tokens, and links and spans of words, as JSON", "units": "text"},
        ),
        "examples": (
            (), json.dumps([asdict(example) for example in examples]),
            {"long_name": "texts on which the reported head of a row does well or badly, as JSON", "units": "text"},
        ),
    }  # fmt: skip
    coords: dict[str, Any] = {}
    for name in texts[0].weights:
        layers, heads = texts[0].weights[name].shape[:2]
        dims = (f"{name}_layer", f"{name}_head", f"{name}_cell")
        cells = np.concatenate([text.weights[name].reshape(layers, heads, -1) for text in texts], axis=-1)
        about_cells = {
            "long_name": f"{name} attention from each token of a text to each, row by row, text after text",
            "units": f"share of attention / {STEPS}",
        }
        variables[f"{name}{WEIGHT}"] = (dims, cells, about_cells)
        coords |= {dims[0]: np.arange(1, layers + 1), dims[1]: np.arange(1, heads + 1)}
        if all(name in text.judged for text in texts):
            judged, item = [text.judged[name] for text in texts], f"{name}_item"
            counts = np.concatenate([each.counts for each in judged])
            right = np.concatenate([each.right for each in judged], axis=-1)
            units = "directions: 1, 2, or 3 for both"
            what = {"long_name": "where each item counts, text after text", "units": units}
            variables[f"{name}{COUNTS}"] = ((item,), counts, what)
            what = {"long_name": f"where {name} heads get each item right", "units": units}
            variables[f"{name}{RIGHT}"] = ((*dims[:2], item), right, what)
    return xr.Dataset(variables, coords, {str(key): value for key, value in about.items()})


def select_texts(dataset: xr.Dataset, places: Sequence[int]) -> xr.Dataset:
    """Return a dataset from `pack` with only some of its texts, and with the examples of these texts.

    Args:
        dataset: the dataset.
        places: the indices of the texts to keep, at least one, in their new order.

    Raises:
        TableError: the dataset is damaged.
    """
    texts, examples = unpack(dataset)
    numbers = {place: number for number, place in enumerate(places)}
    kept = [replace(example, text=numbers[example.text]) for example in examples if example.text in numbers]
    return pack([texts[place] for place in places], kept, {str(name): each for name, each in dataset.attrs.items()})


def unpack(dataset: xr.Dataset) -> tuple[list[Text], list[Example]]:
    """Return the texts and the examples in a dataset from `pack`.

    Raises:
        TableError: the dataset is damaged.
    """
    try:
        texts = [_read_text(parse_json(str(each))) for each in dataset["content"].values]
        for name in READS:
            if f"{name}{WEIGHT}" in dataset:
                _share_out(texts, name, dataset[f"{name}{WEIGHT}"])
            if f"{name}{RIGHT}" in dataset:
                _share_out_items(texts, name, dataset[f"{name}{COUNTS}"], dataset[f"{name}{RIGHT}"])
        examples = [Example(**each) for each in parse_json(str(dataset["examples"].item()))]
        for text in texts:
            _check_text(text)
        if not all(_is_example(example, len(texts)) for example in examples):
            raise ValueError("an example is of no text")
        return texts, examples
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise TableError(f"the examples are damaged ({first_line(error)}); run `headscope atlas` again.") from error


def _read_text(content: Mapping[str, Any]) -> Text:
    """Return the text in a JSON object from `_read_content`; its weights are still missing."""
    words = tuple(content["words"])
    ends = accumulate(len(word) + 1 for word in words)
    joined = [(end - 1 - len(word), end - 1) for word, end in zip(words, ends, strict=True)]
    offsets = tuple((start, stop) for start, stop in content.get("offsets", joined))
    return Text(
        content["id"], words, content.get("content", " ".join(words)), offsets, content["boundary"],
        {name: Side(tuple(side["tokens"]), tuple(side["token_words"])) for name, side in content["sides"].items()},
        tuple((source, target, label) for source, target, label in content["links"]),
        tuple((start, end, label, kind) for start, end, label, kind in content["spans"]),
        {}, tuple(content["random_tokens"]), tuple(content.get("messages", ())),
        tuple(Item(each["source"], tuple(each["targets"]), tuple(each["rows"])) for each in content.get("items", ())),
        picks={row: tuple((start, end) for start, end in pairs) for row, pairs in content.get("picks", {}).items()},
    )  # fmt: skip


def _share_out(texts: list[Text], name: str, weights: xr.DataArray) -> None:
    """Add the stored weights of an attention type to the texts in the list."""
    shapes = [text.shape(name) for text in texts]
    ends = np.cumsum([queries * keys for queries, keys in shapes])
    cells = weights.transpose(f"{name}_layer", f"{name}_head", f"{name}_cell").values
    if cells.dtype != np.uint8 or cells.max(initial=0) > STEPS:
        raise ValueError(f"{name} weights are no whole percent")
    for axis, size in zip(("layer", "head"), cells.shape, strict=False):
        if not np.array_equal(weights[f"{name}_{axis}"], np.arange(1, size + 1)):
            raise ValueError(f"{name}_{axis} does not count 1, 2, 3 ...")
    if ends[-1] != cells.shape[-1]:
        raise ValueError(f"{cells.shape[-1]} {name} weights for {ends[-1]} pairs of tokens")
    parts = np.split(cells, ends[:-1], axis=-1)
    texts[:] = [
        replace(text, weights={**text.weights, name: part.reshape(*part.shape[:2], *shape)})
        for text, part, shape in zip(texts, parts, shapes, strict=True)
    ]


def _share_out_items(texts: list[Text], name: str, counts: xr.DataArray, right: xr.DataArray) -> None:
    """Add the items that heads of an attention type get right to the texts in the list."""
    ends = np.cumsum([len(text.items) for text in texts])
    if not ends[-1] == counts.size == right.sizes[f"{name}_item"]:
        raise ValueError(f"{counts.size} {name} items, and the texts have {ends[-1]}")
    if any(each.dtype != np.uint8 or each.max(initial=0) > BOTH for each in (counts.values, right.values)):
        raise ValueError(f"{name} items count in other directions than two")
    if right.shape[:2] != texts[0].weights[name].shape[:2]:
        raise ValueError(f"{name} items are of {right.shape[:2]} heads, and weights of others")
    parts = (np.split(each.values, ends[:-1], axis=-1) for each in (counts, right))
    texts[:] = [
        replace(text, judged={**text.judged, name: Judged(*of_text)})
        for text, *of_text in zip(texts, *parts, strict=True)
    ]


def _check_text(text: Text) -> None:
    """Raise an error for a text with a value of a wrong type, or with an index outside its words or its content.

    Raises:
        ValueError: the text has such a value.
    """
    count = len(text.words)
    labels = [label for *_, label in text.links] + [each for *_, label, kind in text.spans for each in (label, kind)]
    labels += [row for item in text.items for row in item.rows] + [*text.picks]
    spelt = (text.id, text.content, *text.words, *(token for side in text.sides.values() for token in side.tokens))
    if not all(isinstance(each, str) for each in (*spelt, *labels)):
        raise ValueError("a text has something else where a text belongs")
    if not all(isinstance(message, dict) for message in text.messages):
        raise ValueError("a message is no object")
    ends = [
        *text.links,
        *((source, target, "") for item in text.items for source in [item.source] for target in item.targets),
    ]
    words = [place for source, target, _ in ends for place in (source, target)]
    words += [place for start, end, *_ in text.spans for place in (start, end - 1)]
    words += [] if text.boundary is None else [text.boundary]
    if not all(type(place) is int and 0 <= place < count for place in words):
        raise ValueError("something is annotated at a word that is not there")
    places = [place for side in text.sides.values() for place in side.token_words]
    places += [place for pairs in text.picks.values() for pair in pairs for place in pair]
    if not all(type(place) is int and -1 <= place < count for place in places):
        raise ValueError("a token or a pick names a missing word")
    if not {*text.sides} <= {"encoder", "decoder"} or any(
        len(side.tokens) != len(side.token_words) for side in text.sides.values()
    ):
        raise ValueError("the number of tokens differs from the number of their words")
    characters = [place for offsets in text.offsets for place in offsets]
    if len(text.offsets) != count or not all(type(place) is int for place in characters):
        raise ValueError("the positions of words are not whole numbers, one pair for each word")
    if not all(0 <= start <= end <= len(text.content) for start, end in text.offsets):
        raise ValueError("a word is not in its text")


def _is_example(example: Example, texts: int) -> bool:
    """Return True if an example has a known kind, finite counts, and an index below the number of `texts`."""
    named = isinstance(example.row, str) and example.kind in (CLEAR, FAILS)
    counts = (example.right, example.count)
    finite = all(type(count) in (int, float) and math.isfinite(count) for count in counts)
    return named and finite and type(example.text) is int and 0 <= example.text < texts


def write_examples(dataset: xr.Dataset, path: str | Path) -> Path:
    """Write a dataset of examples to a netCDF-4 file, completely or not at all.

    Raises:
        HeadscopeError: the system does not allow writing the file.
    """
    stored = dataset.assign_attrs({FORMAT_ATTRIBUTE: FORMAT})
    packed = {"zlib": True, "complevel": 4}
    encoding = {str(name): packed for name in stored.data_vars if str(name).endswith((WEIGHT, RIGHT))}
    with atomic_write(Path(path)) as temporary:
        temporary.write_bytes(netcdf.encode({"/": stored}, {"/": encoding}))
    return Path(path)


def read_examples(path: str | Path) -> xr.Dataset:
    """Read the dataset of examples from a file that `write_examples` wrote.

    Raises:
        TableError: the file is missing, holds no examples, has another format or is damaged.
    """
    path = Path(path)
    netcdf.check_file(path, "examples are written by `headscope atlas`")
    try:
        check_version, advice = partial(_check_version, path), "run `headscope atlas` again"
        dataset = netcdf.read(path, FORMAT_ATTRIBUTE, check_version, groups=(), advice=advice).to_dataset()
    except HeadscopeError:
        raise
    except Exception as error:
        raise TableError(f"{path} is damaged or incomplete; run `headscope atlas` again.") from error
    del dataset.attrs[FORMAT_ATTRIBUTE]
    unpack(dataset)
    return dataset


def _check_version(path: Path, version: int | None) -> None:
    """Raise an error for a file without examples, or with examples of an unknown format version."""
    if version is None:
        raise TableError(f"{path} holds no examples; give the file examples.nc of an atlas.")
    if version not in (FORMAT, *BEFORE):
        raise TableError(
            f"{path} has examples of format {version}, and this headscope reads format {FORMAT}; "
            "run `headscope atlas` again."
        )


def _read_content(text: Text) -> dict[str, Any]:
    """Return a text without its weights, as a JSON object."""
    return {
        "id": text.id, "words": text.words, "content": text.content, "offsets": text.offsets,
        "boundary": text.boundary,
        "sides": {name: asdict(side) for name, side in text.sides.items()},
        "links": text.links, "spans": text.spans, "random_tokens": text.random_tokens, "messages": text.messages,
        "items": [asdict(item) for item in text.items], "picks": dict(text.picks),
    }  # fmt: skip
