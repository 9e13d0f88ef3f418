"""Heads that know no gold, in five kinds, and heads that know some; shown to reducers without a model.

Each kind has a habit that real heads have, trained or not. What it weighs follows from the words of a document and
from where they stand.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from headscope.capture.rows.attention import Attention
from headscope.capture.tokens.batch import Batch, Tokens
from headscope.capture.tokens.words import Words
from headscope.corpora.document import Document
from headscope.reducers.support.antecedents import PRONOUNS
from headscope.reducers.support.nearest import CLASSES
from headscope.score import write_scores

AT_ONCE = 48
"""Documents of a batch; they are sorted by length first."""

KINDS = ("uniform", "one word", "lexical", "nearby", "similar", "nearest liked")
"""What ignorant heads do: look anywhere; at one place or one frequent word; at liked words, wherever they are; at
a distance; at words that look alike; at the nearest of many words that are liked."""

CUNNING = ("part of speech", "cue", "pronoun")
"""What heads do that know a little: the nearest word of some parts of speech, on one side or on either; the cue of a
negation from nearby; the nearest earlier pronoun or name, perhaps the same one."""

NEGATIVE = frozenset("not n't no never nothing without nobody none nor cannot".split())
THIRD = frozenset("he him his she her hers it its they them their".split())


@dataclass
class Drawn(Attention):
    """The attention of heads that were drawn."""

    layer: int
    attention_type: str
    rows: slice
    batch: Batch
    drawn: Words

    @property
    def heads(self) -> int:
        return self.drawn.weights.shape[1]

    def words(self) -> Words:
        return self.drawn


@dataclass(frozen=True, eq=False)
class Prepared:
    """Documents in batches, and what a reducer knows of them: the same for all heads.

    Attributes:
        reducer: as for a corpus.
        documents: of the corpus.
    """

    reducer: Any
    documents: Sequence[Document]

    @cached_property
    def vocabulary(self) -> dict[str, int]:
        words = dict.fromkeys(word.casefold() for document in self.documents for word in document.words)
        return {word: index for index, word in enumerate(words)}

    @cached_property
    def by_frequency(self) -> list[int]:
        """The words, the most frequent first."""
        counts = Counter(word.casefold() for document in self.documents for word in document.words)
        return [self.vocabulary[word] for word, _ in counts.most_common()]

    @cached_property
    def tags(self) -> dict[str, str]:
        """The most frequent part of speech of each word."""
        counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for document in self.documents:
            for span in document.spans:
                if span.kind == "upos":
                    counts[document.words[span.start].casefold()][span.label] += 1
        return {word: tags.most_common(1)[0][0] for word, tags in counts.items()}

    def like(self, words: frozenset[str]) -> Tensor:
        """1 for each of these words."""
        return torch.tensor([float(word in words) for word in self.vocabulary])

    def of_class(self, name: str) -> Tensor:
        """1 for each word that is mostly of one of these parts of speech."""
        return self.like(frozenset(word for word, tag in self.tags.items() if tag in name.split("/")))

    @cached_property
    def similar(self) -> Tensor:
        """For each word and feature (itself, first three and last two letters), which value it has."""
        values: list[dict[str, int]] = [{}, {}, {}]
        rows = []
        for word in self.vocabulary:
            parts = (word, word[:3], word[-2:])
            rows.append([seen.setdefault(part, len(seen)) for seen, part in zip(values, parts, strict=True)])
        return torch.tensor(rows)

    @cached_property
    def batches(self) -> list[tuple[Batch, Tensor, Any]]:
        """Batches, the words in them (-1 behind the end), and the facts of the reducer."""
        ordered = sorted(self.documents, key=lambda document: len(document.words))
        parts = []
        for start in range(0, len(ordered), AT_ONCE):
            documents = tuple(ordered[start : start + AT_ONCE])
            batch, form = self._batch(documents)
            parts.append((batch, form, self.reducer.prepare(batch, "encoder")))
        return parts

    @cached_property
    def counts(self) -> dict[str, np.ndarray]:
        return _add_up([self.reducer.count(facts) for _, _, facts in self.batches])

    def _batch(self, documents: tuple[Document, ...]) -> tuple[Batch, Tensor]:
        width = max(len(document.words) for document in documents)
        form = torch.full((len(documents), width), -1)
        for index, document in enumerate(documents):
            form[index, : len(document.words)] = torch.tensor([self.vocabulary[w.casefold()] for w in document.words])
        real, place = form >= 0, torch.arange(width).expand(form.shape)
        nothing = torch.zeros_like(real)
        tokens = Tokens(form.clamp(min=0), real, place.where(real, -1), place, nothing, nothing, nothing)
        return Batch(documents, tokens, None, width, {}), form

    def table(self, heads: "Heads") -> xr.Dataset:
        """The head table of some heads."""
        layers = []
        for layer in range(1, heads.layers + 1):
            sums = []
            for batch, form, facts in self.batches:
                drawn = Words(heads.attend(self, layer - 1, batch, form))
                sums.append(self.reducer.observe(facts, Drawn(layer, "encoder", slice(0, batch.words), batch, drawn)))
            layers.append(_add_up(sums))
        stacked = {name: np.stack([layer[name] for layer in layers]) for name in layers[0]}
        table = self.reducer.result(stacked, self.counts)
        places = {dim: np.arange(1, table.sizes[dim] + 1) for dim in ("layer", "head")}
        return table.assign_coords(places).assign_attrs(scores=write_scores(self.reducer.scores))


def _add_up(sums: Sequence[Mapping[str, Tensor]]) -> dict[str, np.ndarray]:
    return {name: np.asarray(sum(part[name].numpy() for part in sums)) for name in sums[0]}


@dataclass(frozen=True, eq=False)
class Heads:
    """Heads of one kind or of all, drawn by a seed: what they weigh, and how much they heed chance.

    Attributes:
        seed: of all that is drawn.
        kinds: of which the heads are, in turn.
        layers, heads: how many there are.
        known: for heads by layer and place (from 0), the share of gold links that they know.
    """

    seed: int
    kinds: Sequence[str] = KINDS
    layers: int = 6
    heads: int = 12
    known: Mapping[tuple[int, int], float] = field(default_factory=dict)

    @cached_property
    def noise(self) -> torch.Generator:
        return torch.Generator().manual_seed(self.seed)

    @cached_property
    def habits(self) -> dict[str, np.ndarray]:
        draw, shape = np.random.default_rng(self.seed), (self.layers, self.heads)
        return {
            "place": draw.choice([0, 1, 2, -1, -2], shape), "offset": draw.integers(-4, 5, shape),
            "decay": draw.uniform(0.3, 3, shape), "side": draw.choice([-1, 0, 1], shape),
            "share": draw.choice([0.02, 0.1, 0.3], shape), "rank": draw.integers(0, 60, shape),
        }  # fmt: skip

    def attend(self, corpus: Prepared, layer: int, batch: Batch, form: Tensor) -> Tensor:
        real = form >= 0
        score = torch.empty(len(form), self.heads, batch.words, batch.words)
        for head in range(self.heads):
            kind = self.kinds[(layer * self.heads + head) % len(self.kinds)]
            score[:, head] = self._score(corpus, kind, layer, head, form)
        weights = score.masked_fill(~real[:, None, None], -torch.inf)
        weights.diagonal(dim1=-2, dim2=-1).fill_(-torch.inf)
        weights = weights.softmax(-1).nan_to_num(0) * real[:, None, :, None]
        for (of, head), share in self.known.items():
            if of == layer:
                self._know(batch, weights[:, head], share)
        return weights

    def _score(self, corpus: Prepared, kind: str, layer: int, head: int, form: Tensor) -> Tensor:
        habit = {name: values[layer, head].item() for name, values in self.habits.items()}
        width, words = form.shape[1], len(corpus.vocabulary)
        noise = torch.rand(len(form), width, width, generator=self.noise)
        far = (torch.arange(width) - torch.arange(width)[:, None]).float()
        if kind == "uniform":
            return noise
        if kind == "one word" and head % 2:
            return 5 * (form == corpus.by_frequency[habit["rank"]])[:, None].float() + noise
        if kind == "one word":
            last = (form >= 0).sum(1, keepdim=True)
            at = habit["place"] + (last if habit["place"] < 0 else 0)
            return 5 * (torch.arange(width) == at).float().reshape(-1, 1, width) + noise
        if kind == "nearby":
            return -habit["decay"] * (far - habit["offset"]).abs() + 2 * noise
        random = torch.Generator().manual_seed(self.seed * 1009 + layer * 101 + head)
        if kind == "lexical":
            ours, theirs, liked = (torch.randn(words, rank, generator=random) for rank in (5, 5, 1))
            return ours[form] @ theirs[form].mT + 2 * liked[form].mT
        side = torch.where(far.sign() == habit["side"], 0, -9) if habit["side"] else 0.01 * far.sign()
        near = -0.1 * habit["decay"] * far.abs() + side
        if kind == "similar":
            same = corpus.similar[form][:, :, None] == corpus.similar[form][:, None]
            return same.float() @ (6 * torch.rand(3, generator=random)) + near + 0.1 * noise
        if kind == "part of speech":
            some = CLASSES[int(torch.randint(len(CLASSES), (), generator=random))]
            return 20 * corpus.of_class(some)[form][:, None] + near
        if kind == "cue":
            reach = -far.sign() * far if habit["side"] == 0 else far * habit["side"]
            liked = corpus.like(NEGATIVE)[form][:, None] * (reach.abs() < 3 + habit["rank"] / 4) * (reach <= 0)
            return 20 * liked + near / 10 + 4 * (torch.arange(width) == 0)
        if kind == "pronoun":
            weigh = 4 * torch.rand(3, generator=random)
            liked = weigh[0] * corpus.like(frozenset(PRONOUNS)) + weigh[1] * corpus.like(THIRD)
            same = (form[:, :, None] == form[:, None]) & (liked[form][:, None] > 0)
            return liked[form][:, None] + weigh[2] * same + near / 10 - 9 * (far > 0)
        return 6 * (torch.rand(words, generator=random) < habit["share"]).float()[form][:, None] + near

    def _know(self, batch: Batch, weights: Tensor, share: float) -> None:
        """Let a head look at the gold in a share of the links."""
        for index, document in enumerate(batch.documents):
            known = torch.rand(len(document.links), generator=self.noise) < share
            for link in (link for link, knows in zip(document.links, known.tolist(), strict=True) if knows):
                weights[index, link.source] *= 0.01
                weights[index, link.source, link.target] = 1
