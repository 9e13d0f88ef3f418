"""The attention of heads on your texts, as labelled arrays.

text --align--> tokens --model--> attention --average over a word's tokens--> `AttentionMap`: layer, head, query, key
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, overload

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headscope.capture.forward.interface import Capture
from headscope.capture.forward.verify import are_finite, refuse_not_finite
from headscope.capture.model.model import Model
from headscope.capture.open.loading import Loadable, load
from headscope.capture.passes.room import Room
from headscope.capture.passes.stream import Plan, Portion, Stream
from headscope.capture.rows.attention import Attention
from headscope.capture.tokens.align import TOO_LONG, TRANSLATION_TOO_LONG, Alignment, explain_unread, is_cut
from headscope.capture.tokens.batch import Batch, Tokens
from headscope.capture.tokens.words import membership, pool_queries
from headscope.corpora import Document, read
from headscope.corpora.memory import read_text
from headscope.errors import HeadscopeError
from headscope.first_guesses import explained
from headscope.heads import DIMENSIONS, SHARE
from headscope.intervene.head_names import HeadNames
from headscope.intervene.selected_heads import Selection, select_heads
from headscope.runner.example_texts import describe_side
from headscope.runner.provenance import identify_model
from headscope.view.attention_map import AttentionMap

Between: TypeAlias = Literal["words", "tokens"]
"""The units between which attention is returned: words or tokens."""

LEVELS: Mapping[Between, tuple[str, str]] = {
    "words": (
        "attention between words: to a word the sum over its tokens, from it their mean",
        "Clark et al. 2019, section 4.1",
    ),
    "tokens": ("attention between tokens", "Vaswani et al. 2017, section 3.2"),
}
"""For each kind of unit, a description of the attention between units, and the paper that defines it."""

EXPECTED = "a string, a `Document` or the messages of a conversation, or a list of texts"
"""The values that `attend` accepts as its argument `text`, for error messages."""

WITHOUT_LIMIT = 1 << 20
"""The greatest number of tokens in a text if the model has no limit: more than any text has."""


@overload
def attend(
    model: Loadable, text: str | Document, heads: HeadNames | None = None, between: Between = "words"
) -> AttentionMap: ...
@overload
def attend(
    model: Loadable, text: Iterable[Any] | Path, heads: HeadNames | None = None, between: Between = "words"
) -> list[AttentionMap]: ...
@explained
def attend(
    model: Loadable, text: Any, heads: HeadNames | None = None, between: Between = "words"
) -> AttentionMap | list[AttentionMap]:
    """Return the attention weights of heads between the words of a text, as one array, or as a list for several texts.

    >>> attention = headscope.attend("minilm", "The dog sees the old house.", "3-1")
    >>> attention.sel(layer=3, head=1, query="house")  # where the word looks; the weights sum to 1
    >>> figure = attention.plot()

    Args:
        model: as for `headscope.load`. Within `headscope.disable` the attention is that of the edited model.
        text: a string, whose punctuation around words counts as words, as for a text typed into `headscope explore`; a
            `Document`; the messages of a conversation; or several texts, which are read in batches: a list of these, or
            any other corpus that `headscope.read` takes. Give a path as a `Path`.
        heads: names such as ``3-1``, as for `headscope.disable`: layers and heads count from 1, ``3`` is a whole layer,
            and ``cross`` all cross-attention. By default all heads. For an encoder-decoder, name heads of one attention
            type.
        between: ``words`` or ``tokens``. The attention to a word is the sum over its tokens, and the attention from a
            word the mean over its tokens (Clark et al. 2019, section 4.1). Each special token is a word of its own.

    Returns:
        An `xarray.DataArray` with the dimensions ``layer``, ``head``, ``query`` and ``key``, for any number of heads.
        The array has the layers and the head numbers of the chosen heads; heads in it that were not chosen are NaN. The
        words are the coordinates of ``query`` (the words that attend) and ``key`` (the words that are attended to). A
        word attends to itself and to special tokens too, so the weights of each query sum to 1, or to less if the model
        has a sink that is not a token.
        Its ``plot`` draws it as a heatmap. For several texts, a list of such arrays in their order.

    Raises:
        HeadscopeError: a head is unknown, the heads are of several attention types, or a text is empty, is not a text,
            has only one token, or has more tokens than the model reads.
        ModelError: the model cannot be loaded, its attention cannot be captured, or it is not finite.
    """
    if between not in [*LEVELS]:
        raise HeadscopeError(f"attention is between 'words' or 'tokens', and {between!r} came; give one of these.")
    documents, several = _read_documents(text)
    loaded = load(model)
    selection = _select(loaded, heads)
    limit = loaded.max_tokens or WITHOUT_LIMIT
    for place, document in enumerate(documents):
        _check_length(loaded, document, limit, f"text {place}, counted from 0," if several else "the text")
    maps = _read_maps(loaded, documents, selection, between, Plan(pair_tokens=limit))
    return maps if several else maps[0]


def _read_documents(text: Any) -> tuple[list[Document], bool]:
    """Return the documents, with distinct ids, and True if `text` is a collection of texts, even of a single text."""
    if isinstance(text, str):
        if not text.strip():
            raise HeadscopeError("the text is empty; give one with words.")
        return [read_text(text)], False
    if isinstance(text, Document):
        return [text], False
    if isinstance(text, bytes | Mapping) or not isinstance(text, Path | Iterable):
        raise HeadscopeError(f"the text is of type {type(text).__name__}; give {EXPECTED}.")
    if isinstance(text, list | tuple):
        if not text:
            raise HeadscopeError(f"the text is an empty {type(text).__name__}; give {EXPECTED}.")
        if all(isinstance(message, Mapping) for message in text):
            return list(read([text])), False
        text = [read_text(each, place) if isinstance(each, str) else each for place, each in enumerate(text)]
    documents = list(read(text))
    if len({document.id for document in documents}) < len(documents):
        documents = [replace(document, id=str(place)) for place, document in enumerate(documents)]
    return documents, True


def _select(model: Model, heads: HeadNames | None) -> Selection:
    """Return the named heads, by default all heads of the model; they must have the same attention type.

    Raises:
        HeadscopeError: the heads are of several types.
    """
    types = list(model.layers)
    selection = select_heads(model, types if heads is None else heads)
    chosen = list(dict.fromkeys(attention_type for attention_type, _ in selection))
    if len(chosen) > 1:
        raise HeadscopeError(
            f"{model.name!r} has {', '.join(types)} attention, whose words and places differ; name heads of one of "
            f"these, such as {chosen[-1]!r} for all or '{chosen[-1]} 1-1' for one."
        )
    return selection


def _check_length(model: Model, document: Document, limit: int, which: str) -> None:
    """Raise an error for a text of more than `limit` tokens or a single token, or one that the model cannot read."""
    aligned, skipped = Alignment.for_model(model, pair_tokens=limit).align([document])
    if aligned and aligned[0].length > 1 and not is_cut(skipped):
        return
    if aligned and not is_cut(skipped):
        raise HeadscopeError(
            f"{which} is one token for {model.name!r}, which attends to itself alone; give more words."
        )
    if aligned or any(reason.startswith((TOO_LONG, TRANSLATION_TOO_LONG)) for reason in skipped):
        raise HeadscopeError(f"{which} has more tokens than the {limit} that {model.name!r} reads; give it in parts.")
    raise HeadscopeError(explain_unread(model.name, skipped))


@dataclass(frozen=True, slots=True)
class _Units:
    """The words or tokens of a text that attend, or that are attended to.

    Attributes:
        labels: each word, or each token in readable form, in their order.
        numbers: for each token of the batch, the index of its unit; -1 for padding.
    """

    labels: Sequence[str]
    numbers: Sequence[int]


def _read_maps(
    model: Model, documents: Sequence[Document], selection: Selection, between: Between, plan: Plan
) -> list[AttentionMap]:
    """Return an attention map of the selected heads for each document, in the order of the documents."""
    maps: dict[str, AttentionMap] = {}
    room = Room.measure(model, plan.batch_tokens)
    attention_type = next(name for name, _ in selection)
    about = identify_model(model) | {"attention_type": attention_type, "between": between}

    def read_portion(portion: Portion) -> dict[str, AttentionMap]:
        of_portion: dict[str, AttentionMap] = {}
        for batch, capture in zip(portion.batches, portion.captures, strict=True):
            for document, attention in zip(
                batch.documents, _read_batch(capture, batch, selection, between), strict=True
            ):
                of_portion[document.id] = attention.assign_attrs(about)
        return of_portion

    for portion in Stream(documents, (model,), plan):
        for of_part in room.run(portion, read_portion):
            maps |= of_part
    return [maps[document.id] for document in documents]


def _read_batch(capture: Capture, batch: Batch, selection: Selection, between: Between) -> list[AttentionMap]:
    """Return an attention map of the selected heads for each document of a batch."""
    attention_type = next(name for name, _ in selection)
    sides = [
        [_list_units(capture.model, batch, tokens, row, between) for row in range(len(batch.documents))]
        for tokens in (batch.queries(attention_type), batch.keys(attention_type))
    ]
    columns = [_mark_units(of_texts, batch.encoder.ids.device) for of_texts in sides]
    layers: dict[int, Tensor] = {}

    def observe(attention: Attention) -> None:
        if heads := selection.get((attention.attention_type, attention.layer)):
            queries, keys = (side.to(attention.batch.device) for side in columns)
            pooled = pool_queries(attention.average(keys), queries)
            layers[attention.layer] = pooled[:, list(heads)].float().cpu()

    outputs = capture.run(batch, observe, whole=True)
    finite = are_finite(batch, outputs.verified)
    if not bool(finite.all()):
        place = int((~finite).nonzero()[0, 0])
        raise refuse_not_finite(capture.model.name, f"for the text {batch.documents[place].text.content!r:.60}")
    chosen = {layer: heads for (_, layer), heads in selection.items()}
    return [
        _label({layer: of_texts[row].numpy() for layer, of_texts in layers.items()}, chosen, queries, keys, between)
        for row, (queries, keys) in enumerate(zip(*sides, strict=True))
    ]


def _list_units(model: Model, batch: Batch, tokens: Tokens, row: int, between: Between) -> _Units:
    """Return the labels of the units of a text, in order, and the unit of each token (-1 for padding).

    The units are words and special tokens, or tokens, as `between` says.
    """
    words = batch.documents[row].words
    side = describe_side(model.tokenizer, tokens, row, len(words))
    labels: list[str] = []
    numbers: list[int] = []
    before = -1
    for token, word in zip(side.tokens, side.token_words, strict=True):
        is_word = between == "words" and word >= 0
        if not (is_word and word == before):
            labels.append(words[word] if is_word else token)
        numbers.append(len(labels) - 1)
        before = word
    padding = [-1] * (tokens.length - len(numbers))
    return _Units(labels, numbers + padding)


def _mark_units(of_texts: Sequence[_Units], device: torch.device) -> Float[Tensor, "batch token unit"]:
    """Return an array that is 1 where a token belongs to a unit of its text, and 0 elsewhere."""
    numbers = torch.tensor([units.numbers for units in of_texts], device=device)
    return membership(numbers, max(len(units.labels) for units in of_texts))


def _label(
    layers: Mapping[int, Float[np.ndarray, "head query key"]],
    heads: Mapping[int, Sequence[int]],
    queries: _Units,
    keys: _Units,
    between: Between,
) -> AttentionMap:
    """Return the attention on one text, labelled with layers, heads and units; NaN for heads that were not chosen."""
    numbers = sorted({head for of_layer in heads.values() for head in of_layer})
    values = np.full((len(layers), len(numbers), len(queries.labels), len(keys.labels)), np.nan, np.float32)
    for place, layer in enumerate(sorted(layers)):
        rows = [numbers.index(head) for head in heads[layer]]
        values[place, rows] = layers[layer][:, : len(queries.labels), : len(keys.labels)]
    what, source = LEVELS[between]
    about = {"long_name": what, "units": SHARE, "source": source}
    coords = {
        "layer": ("layer", sorted(layers), {"long_name": DIMENSIONS["layer"]}),
        "head": ("head", [number + 1 for number in numbers], {"long_name": DIMENSIONS["head"]}),
        "query": ("query", list(queries.labels), {"long_name": f"{between[:-1]} that attends"}),
        "key": ("key", list(keys.labels), {"long_name": f"{between[:-1]} that is attended to"}),
    }
    return AttentionMap(values, coords, ("layer", "head", "query", "key"), "attention", about)
