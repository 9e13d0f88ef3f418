"""A random sample of attention maps for labelling by eye.

documents --choose_maps--> names of maps --read_maps--> the maps, each without its padding
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from jaxtyping import Float

from headscope.capture.model.model import Model
from headscope.capture.passes.room import Room
from headscope.capture.passes.stream import Plan, Portion, Stream
from headscope.capture.rows.attention import Attention
from headscope.corpora.document import Document
from headscope.errors import CorpusError
from headscope.reducers.support.pattern_network import LEAST_TOKENS

MAX_TOKENS = 512
"""The maximum number of tokens of a document; the maps of longer documents are too fine to see."""


@dataclass(frozen=True, order=True)
class MapName:
    """The name of a map: a document, and a head (of the encoder in an encoder-decoder) with layer and head from 1."""

    document: str
    layer: int
    head: int


@dataclass(frozen=True, eq=False)
class HeadMap:
    """The attention map of one head on one document.

    Attributes:
        name: The name of the map.
        weights: The attention weights without padding, in float32.
        separators: The positions of the separator tokens, which end the sentences of a pair.
    """

    name: MapName
    weights: Float[np.ndarray, "query key"]
    separators: tuple[int, ...] = ()


def choose_maps(
    documents: Sequence[Document], layers: Sequence[int], heads: int, count: int, seed: int = 0
) -> list[MapName]:
    """Choose maps at random: each of a different document, and about the same number for each head.

    If the count is not a multiple of the number of heads, some heads have one map more than others.

    Returns:
        The names of the maps.

    Raises:
        CorpusError: There are fewer documents than maps.
    """
    if len(documents) < count:
        raise CorpusError(
            f"{count} maps of as many documents were asked for, and the corpus has {len(documents):,}; ask for fewer."
        )
    generator = np.random.default_rng(seed)
    chosen = generator.permutation(len(documents))[:count]
    rounds = [generator.permutation(len(layers) * heads) for _ in range(-(-count // (len(layers) * heads)))]
    places = (divmod(int(place), heads) for place in np.concatenate(rounds or [np.empty(0, int)]))
    return [
        MapName(documents[document].id, layers[layer], head + 1)
        for document, (layer, head) in zip(chosen, places, strict=False)
    ]


def read_maps(
    model: Model, documents: Sequence[Document], names: Sequence[MapName], plan: Plan | None = None
) -> Iterator[HeadMap]:
    """Yield the maps with the given names, in the order of their documents.

    Documents that are too long for the model or cannot be read, and maps that are too short, are left out.
    """
    wanted = defaultdict(list)
    for name in names:
        wanted[name.document].append(name)
    chosen = [document for document in documents if document.id in wanted]
    plan = plan or Plan()
    room = Room.measure(model, plan.batch_tokens)
    for portion in Stream(chosen, (model,), plan, MAX_TOKENS):
        for maps in room.run(portion, partial(_read_maps, wanted=wanted)):
            yield from maps


def _read_maps(portion: Portion, wanted: Mapping[str, Sequence[MapName]]) -> list[HeadMap]:
    """Return the wanted maps of a batch, of its first attention type; `wanted` has the names of maps by document id."""
    maps: dict[MapName, HeadMap] = {}
    names: list[MapName] = []
    for batch, capture in zip(portion.batches, portion.captures, strict=True):
        names = [name for document in batch.documents for name in wanted[document.id]]
        rows = {document.id: row for row, document in enumerate(batch.documents)}
        attention_type = next(iter(capture.model.layers))

        def keep(
            attention: Attention, names: list[MapName] = names, rows: dict[str, int] = rows, kind: str = attention_type
        ) -> None:
            if attention.attention_type != kind:
                return
            for name in names:
                if name.layer == attention.layer:
                    maps[name] = _cut_map(attention, rows[name.document], name)

        capture.run(batch, keep, whole=True)
    return [maps[name] for name in names if len(maps[name].weights) >= LEAST_TOKENS]


def _cut_map(attention: Attention, row: int, name: MapName) -> HeadMap:
    """Return the map of a head on one document of a batch, without padding."""
    queries, keys = attention.queries.real[row], attention.keys.real[row]
    weights = attention.weights()[row, name.head - 1][queries][:, keys]
    separators = attention.keys.sep[row][keys].nonzero()[:, 0].tolist()
    return HeadMap(name, weights.detach().float().cpu().numpy(), tuple(separators))
