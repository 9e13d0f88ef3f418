"""What heads attend to and how far, whatever the relation: Clark et al. 2019, section 3, and beyond it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import torch
import xarray as xr
from jaxtyping import Bool, Float, Float64, Int
from torch import Tensor

from headscope import heads
from headscope.capture.rows.attention import Attention
from headscope.capture.tokens import distance
from headscope.capture.tokens.batch import Batch, Tokens
from headscope.errors import HeadscopeError
from headscope.heads import describe
from headscope.reducers.reducer import Reducer, Sums
from headscope.reducers.support.ratios import mean
from headscope.reducers.support.word_class import WordClass
from headscope.score import Score

SHARE, NATS, TOKENS = heads.SHARE, "nats", "tokens"
CLARK = "Clark et al. 2019, section "
VIG = "Vig and Belinkov 2019"

VARIABLES: Mapping[str, tuple[str, str, str]] = {
    "mass_self": ("attention to the token itself", SHARE, CLARK + "3.1"),
    # Clark et al. divide by all queries, also by those without a previous (next) token, which lowers the mean of short
    # texts; here only queries that have one count.
    "mass_previous": ("attention to the token before, where there is one", SHARE, CLARK + "3.1"),
    "mass_next": ("attention to the token after, where there is one", SHARE, CLARK + "3.1"),
    "mass_cls": ("attention to the classification token", SHARE, CLARK + "3.2"),
    "mass_sep": ("attention to separators", SHARE, CLARK + "3.2"),
    "mass_punctuation": ("attention to full stops and commas", SHARE, CLARK + "3.2"),
    "mass_first": ("attention to the first token", SHARE, "Xiao et al. 2024, section 3 (attention sinks)"),
    # Clark et al. always divide by two separators; here the actual number counts.
    "mass_sep_from_sep": ("attention to separators from separators", SHARE, CLARK + "3.2"),
    "mass_sep_from_other": ("attention to separators from all other tokens", SHARE, CLARK + "3.2"),
    "entropy": ("entropy of the attention", NATS, CLARK + "3.3"),
    "entropy_from_cls": ("entropy of the attention from the classification token", NATS, CLARK + "3.3"),
    "entropy_uniform": ("entropy if all keys that the mask allows had the same weight", NATS, CLARK + "3.3"),
    "mean_distance": ("distance to the tokens attended to, before or after, weighted by the attention", TOKENS, VIG),
}
"""The name, unit and source of each variable. Its value is a mean over queries, and then over documents."""

SHOWN: Mapping[str, tuple[str, str, str]] = {
    "mass_self": ("to itself", "", "entropy_uniform"),
    "mass_previous": ("to the token before", "the previous token", "entropy_uniform"),
    "mass_next": ("to the token after", "the next token", "entropy_uniform"),
    "mass_cls": ("to [CLS]", "[CLS]", "entropy_uniform"),
    "mass_sep": ("to [SEP]", "[SEP]", ""),
    "mass_punctuation": ("to “.” and “,”", ". and ,", ""),
    "mass_first": ("to the first token", "the first token", "entropy_uniform"),
    "mass_sep_from_sep": ("from [SEP] to [SEP]", "", ""),
    "mass_sep_from_other": ("from others to [SEP]", "", ""),
    "entropy": ("entropy", "", "entropy_uniform"),
    "entropy_from_cls": ("entropy, from [CLS]", "", "entropy_uniform"),
    "entropy_uniform": ("entropy if uniform", "", ""),
    "mean_distance": ("mean distance", "", ""),
}
"""The title of each variable, the attended token by which heads are ranked, and the variable of its baseline."""

FARTHEST = 2**31 - 1
"""The largest offset or edge, far beyond any text."""

_COLUMNS = ("cls", "sep", "punctuation", "first")
_NEIGHBOURS = {"self": 0, "previous": -1, "next": 1}
"""The offsets that are alone in their bucket of distances, since the edges always begin with 1, 2."""

_WITHOUT_KEYS = ("entropy", "uniform", "distance")

_MEANS: Mapping[str, tuple[str, str]] = {
    "mass_self": ("self", "self"),
    "mass_previous": ("previous", "previous"),
    "mass_next": ("next", "next"),
    "mass_cls": ("cls", "has_cls"),
    "mass_sep": ("sep", "has_sep"),
    "mass_punctuation": ("punctuation", "all"),
    "mass_first": ("first", "all"),
    "mass_sep_from_sep": ("sep", "from_sep"),
    "mass_sep_from_other": ("sep", "from_other"),
    "entropy": ("entropy", "all"),
    "entropy_from_cls": ("entropy", "from_cls"),
    "entropy_uniform": ("uniform", "all"),
    "mean_distance": ("distance", "all"),
}
"""For each of `VARIABLES`, the column that is averaged, and the set of queries over which it is averaged."""


@dataclass(frozen=True)
class Surface(Reducer):
    """Attention to special tokens, punctuation and neighbours, how far it reaches, and its entropy.

    A document in which a value is not defined (no separator, only one token) does not count for it. If no document
    counts, the value is NaN.

    Attributes:
        offsets: Further neighbours besides the next ones, as distances in tokens, negative before the query:
            ``mass_offset``, over the queries that have such a neighbour.
        classes: Words whose tokens are counted together (`WordClass`): ``mass_class``, next to ``class_share``, their
            share of the tokens. A document without them counts, with 0.
        edges: Distances at which a bucket of ``mass_distance`` begins: 1, 2 and any larger ones.

    Raises:
        HeadscopeError: An offset, edge or class is not valid, or is named twice.
    """

    offsets: Sequence[int] = ()
    classes: Sequence[WordClass] = ()
    edges: Sequence[int] = distance.EDGES

    name = "surface"
    scope = "rows"
    scores = (
        Score(
            "mass_class",
            "Attention to classes of words",
            "the mean share of a token's attention that goes to all tokens of the words of a class",
            items="documents",
            rows="classes of words",
            baselines={"class_share": "share of the tokens"},
            control="class_share",
        ),
    )
    samples_queries = True

    def __post_init__(self) -> None:
        """Raise an error if an offset, edge or class is not valid or is named twice; store all fields as tuples."""
        for what in ("offsets", "classes", "edges"):
            object.__setattr__(self, what, tuple(getattr(self, what)))
        numbers = [*self.offsets, *self.edges]
        if wrong := [number for number in numbers if type(number) is not int or abs(number) > FARTHEST]:
            raise HeadscopeError(f"{wrong[0]!r} is no distance in tokens; give whole numbers up to {FARTHEST:,}.")
        if self.edges[:2] != (1, 2) or list(self.edges) != sorted(set(self.edges)):
            raise HeadscopeError(f"the edges {self.edges} do not begin with 1, 2 and grow; give such as 1, 2, 4, 8.")
        names = [word_class.name for word_class in self.classes]
        for what, given in (("offset", list(map(str, self.offsets))), ("class", names)):
            if twice := [name for name in given if given.count(name) > 1]:
                raise HeadscopeError(f"the {what} {twice[0]} is named twice; name each once.")

    def prepare(self, batch: Batch, attention_type: str) -> "_Facts":
        """Return the keys of each column, the neighbours, and the queries over which means are taken."""
        queries, keys = batch.queries(attention_type), batch.keys(attention_type)
        first = torch.zeros_like(keys.real)
        first[:, 0] = True
        classes = [_is_in_class(word_class, batch, keys) for word_class in self.classes]
        columns = torch.stack([keys.cls, keys.sep, keys.punctuation, first, *classes], dim=-1).float()
        first_position = keys.position[:, :1]
        last_position = keys.position.where(keys.real, -1).amax(1, keepdim=True)
        offsets = torch.tensor([*_NEIGHBOURS.values(), *self.offsets], device=keys.ids.device)
        position = queries.position[..., None] + offsets
        there = queries.real[..., None] & (position >= first_position[..., None])
        there &= position <= last_position[..., None]
        neighbours = (position[..., len(_NEIGHBOURS) :] - first_position[..., None]).clamp(0, keys.length - 1)
        has_cls, has_sep = (kind.any(1, keepdim=True) for kind in (keys.cls, keys.sep))
        with_sep = queries.real & has_sep
        others = (queries.real, queries.real & has_cls, with_sep, queries.sep & has_sep, with_sep & ~queries.sep)
        near, far = there[..., : len(_NEIGHBOURS)], there[..., len(_NEIGHBOURS) :]
        which = torch.cat([near, torch.stack([*others, queries.cls], dim=-1), far], dim=-1).double()
        shares = which / which.sum(1, keepdim=True).clamp_min(1)
        _, *bins = _lay_out_means(self)
        over, wanted = (torch.tensor(places, device=keys.ids.device) for places in bins)
        padded, length = queries.is_padded, keys.real.sum(1, keepdim=True)
        batch.questions.expect(attention_type, tuple(self.edges), columns)
        return _Facts(columns, neighbours, shares, padded, length, over, wanted)

    def count(self, facts: "_Facts") -> Sums:
        """Count the documents in which each value is defined, and sum the share of each class of words."""
        defined = (facts.shares.sum(1) > 0).sum(0)[facts.over]
        members = facts.columns[..., len(_COLUMNS) :].double().sum(1)
        return {"defined": defined, "class_share": (members / facts.length).sum(0)}

    def observe(self, facts: "_Facts", attention: Attention) -> Sums:
        """Sum over documents the contribution of these query rows to each mean, with all means on one axis."""
        rows = attention.rows
        by_distance, mean_distance = attention.distances(tuple(self.edges))
        uniform = attention.visible().clamp_min(1).log()[:, None].expand(-1, attention.heads, -1)
        single = (each[..., None] for each in (attention.entropy(), uniform, mean_distance))
        at_offsets = [attention.at(facts.neighbours[:, rows])] if self.offsets else []
        seen = torch.cat([attention.average(facts.columns), *single, by_distance, *at_offsets], dim=-1)
        if facts.padded:
            # Padding may hold any value, also NaN; its share is 0.
            seen = seen.where(attention.queries.real[:, None, rows, None], 0)
        # One product of every share with every column costs less than one for each value, though most are not used.
        some = attention.batch.blocks.summed_rows
        chunks = zip(torch.split(facts.shares[:, rows], some, 1), torch.split(seen, some, 2), strict=True)
        total = reduce(torch.add, ((shares[:, None].mT @ chunk.double()).sum(0) for shares, chunk in chunks))
        return {"means": total.flatten(1)[:, facts.wanted]}

    def result(self, sums: Mapping[str, np.ndarray], counts: Mapping[str, np.ndarray]) -> xr.Dataset:
        """Return each value for each layer and head, and also by distance, offset and class."""
        several = {
            "mass_distance": ("attention by distance, from each distance to the next", "distance", VIG),
            "mass_offset": ("attention to the token at an offset, where there is one", "token_offset", CLARK + "3.1"),
            "mass_class": ("attention to the tokens of a class of words", "class", CLARK + "3.2"),
        }
        coords = {
            "distance": list(distance.names(tuple(self.edges))),
            "token_offset": list(self.offsets),
            "class": [word_class.name for word_class in self.classes],
        }
        sizes, _, _ = _lay_out_means(self)
        ends = np.cumsum(list(sizes.values()))[:-1]
        means = dict(zip(sizes, np.split(mean(sums["means"], counts["defined"]), ends, axis=-1), strict=True))
        values: dict[str, xr.Variable] = {}
        for variable, (name, units, source) in VARIABLES.items():
            title, target, baseline = SHOWN[variable]
            shown = {"title": title, "target": target, "baseline": baseline}
            values[variable] = heads.variable(
                means[variable][..., 0], ("layer", "head"), name=name, units=units, source=source, **shown
            )
        for variable, (name, dim, source) in several.items():
            if coords[dim]:
                values |= describe({variable: (means[variable], ("layer", "head", dim), name, SHARE)}, source)
        if self.classes:
            documents = np.split(counts["defined"], ends)[list(sizes).index("mass_class")]
            share = mean(counts["class_share"], documents)
            name = "tokens of a class of words, which attention that prefers none would give it where all can be seen"
            values |= describe({"class_share": (share, ("class",), name, "share of tokens")}, "headscope")
        return xr.Dataset(values, coords={dim: place for dim, place in coords.items() if place})


_SHARES = ("self", "previous", "next", "all", "has_cls", "has_sep", "from_sep", "from_other", "from_cls")
"""The sets of queries over which means are taken."""


@dataclass(frozen=True, eq=False)
class _Facts:
    """The facts of a batch that need no attention.

    Attributes:
        columns: For each of `_COLUMNS` and then each class, 1 on its keys.
        neighbours: For each further offset, the key at that offset (any key, if there is none).
        shares: For each of `_SHARES` and then each further offset, the share of each query in its document's mean.
        padded: Whether there is padding among the queries.
        length: The number of keys of each document.
        over: For each value, the index in `shares` of the queries over which it is a mean.
        wanted: For each value, its index in the flattened axes share and column.
    """

    columns: Float[Tensor, "batch key column"]
    neighbours: Int[Tensor, "batch query neighbour"]
    shares: Float64[Tensor, "batch query share"]
    padded: bool
    length: Int[Tensor, "batch 1"]
    over: Int[Tensor, " value"]
    wanted: Int[Tensor, " value"]


def _lay_out_means(surface: Surface) -> tuple[dict[str, int], list[int], list[int]]:
    """Return the number of values of each variable, and for each value the index of its share and of its bin.

    A bin is an index in the flattened axes share and column. The columns are in the order of `Surface.observe`.
    """
    neighbour = {offset: name for name, offset in _NEIGHBOURS.items()}
    buckets = [neighbour.get(nearest, f"bucket {nearest}") for nearest in distance.names(tuple(surface.edges))]
    offsets = [f"offset {offset}" for offset in surface.offsets]
    classes = [f"class {word_class.name}" for word_class in surface.classes]
    columns = (*_COLUMNS, *classes, *_WITHOUT_KEYS, *buckets, *offsets)
    column, share = ({name: index for index, name in enumerate(names)} for names in (columns, (*_SHARES, *offsets)))
    means = {name: [pair] for name, pair in _MEANS.items()}
    means |= {
        "mass_distance": [(name, "all") for name in buckets],
        "mass_offset": [(name, name) for name in offsets],
        "mass_class": [(name, "all") for name in classes],
    }
    pairs = [pair for pairs_of_value in means.values() for pair in pairs_of_value]
    sizes = {name: len(pairs_of_value) for name, pairs_of_value in means.items()}
    bins = [share[over] * len(columns) + column[averaged] for averaged, over in pairs]
    return sizes, [share[over] for _, over in pairs], bins


def _is_in_class(word_class: WordClass, batch: Batch, keys: Tokens) -> Bool[Tensor, "batch key"]:
    """Return for each token whether it is part of a word of the class."""
    # Tokens without a word read the index after the last word, which is in no class.
    members = torch.zeros(len(batch.documents), batch.words + 1, dtype=torch.bool)
    for row, document in enumerate(batch.documents):
        members[row, word_class.find(document)] = True
    return members.to(keys.word.device).gather(1, keys.word.where(keys.word >= 0, batch.words))
