"""What the p-values of coreference say where no head can know the chains: worlds of real texts, with other chains.

In a shifted world the labels of a text's chains have gone round its mentions, in an assigned one they are assigned
anew. Heads point by habit: anywhere, at mentions, at near ones, at one that draws them, at those spelt alike.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
import xarray as xr

import headscope
from headscope.analyse import add_significance
from headscope.capture.rows.attention import Attention
from headscope.capture.tokens.batch import Batch, Tokens
from headscope.capture.tokens.words import Pointing
from headscope.corpora import Document, Span
from headscope.reducers.coreference import MENTIONS, Coreference
from headscope.reducers.support.antecedents import Mention, mentions_of
from headscope.reducers.support.permutations import Permutations
from headscope.runner.checkpoint import RunSums
from headscope.score import write_scores

pytestmark = [pytest.mark.data, pytest.mark.full]

CORPORA = {"litbank": "coref/litbank/conll", "ontogum": "coref/ontogum"}
TEXTS, WORDS, FEWEST, PERMUTATIONS, WORLDS, HEADS = 11, 307, 7, 99, 100, 43

Random = np.random.Generator
Labels = Callable[[list[str], Random], list[str]]


def shift(labels: list[str], random: Random) -> list[str]:
    """The labels further along the text, by one place at least."""
    places = int(random.integers(1, len(labels)))
    return labels[places:] + labels[:places]


def assign_anew(labels: list[str], random: Random) -> list[str]:
    """The labels in any order."""
    return random.permutation(labels).tolist()


WAYS: dict[str, Labels] = {"shifted": shift, "assigned": assign_anew}


def span_of(mention: Mention, label: str) -> Span:
    start = mention.head - mention.place
    return Span(start, start + len(mention.words), label, "mention")


def relabel(document: Document, way: Labels, random: Random) -> Document:
    """The document with other chains of the same sizes."""
    mentions = mentions_of(document)
    labels = way([mention.chain for mention in mentions], random)
    others = [span for span in document.spans if span.kind != "mention"]
    return replace(document, spans=(*others, *map(span_of, mentions, labels)))


def cut(document: Document) -> Document:
    """The beginning of a document."""
    spans = [span for span in document.spans if span.end <= WORDS and span.kind in ("mention", "upos")]
    links = [link for link in document.links if max(link.source, link.target) < WORDS]
    return replace(document, words=document.words[:WORDS], spans=tuple(spans), links=tuple(links), written=None)


@cache
def texts(folder: Path) -> tuple[Document, ...]:
    beginnings = (cut(document) for document in headscope.read(folder))
    return tuple(islice((text for text in beginnings if len(mentions_of(text)) >= FEWEST), TEXTS))


def point(document: Document, random: Random) -> np.ndarray:
    """The word that each word points at in each head: ``[head, word]``; what is no head word of a mention, at 0."""
    form = {mention.head: mention.head_word for mention in mentions_of(document)}
    heads = np.array(sorted(form))
    words = np.zeros((HEADS, WORDS), dtype=np.int64)
    words[30:40] = random.choice(heads, 10)[:, None]  # one mention draws the head
    for index, word in enumerate(heads):
        words[:6, word] = random.integers(0, len(document.words), 6)
        words[6:12, word] = random.choice(heads, 6)
        words[40:, word] = np.maximum(word - np.arange(1, 4), 0)
        if earlier := heads[:index].tolist():
            back = [1, 2, 3, *random.geometric((0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)).tolist()]
            words[12:22, word] = [earlier[-min(places, index)] for places in back]
            same = [other for other in earlier if form[other] == form[word]]
            alike = random.random(6) < (0.5, 0.6, 0.7, 0.8, 0.9, 1)
            words[22:28, word] = np.where(alike & bool(same), (same or earlier)[-1], earlier[-1])
            words[28:30, word] = earlier[0], random.choice(earlier)
    return words


@dataclass(frozen=True)
class Heads(Attention):
    """Heads of which nothing is known but where they point."""

    batch: Batch
    attends: Pointing
    layer: int = 1
    attention_type: str = "encoder"
    rows: slice = field(default_factory=lambda: slice(0, WORDS))

    @property
    def heads(self) -> int:
        return self.attends.word.shape[1]

    def words(self) -> "Heads":
        return self


def collate(documents: Sequence[Document]) -> Batch:
    """A batch in which each word is a token."""
    lengths = torch.tensor([len(document.words) for document in documents])
    place = torch.arange(WORDS).expand(len(documents), WORDS)
    real = place < lengths[:, None]
    none = torch.zeros_like(real)
    return Batch(tuple(documents), Tokens(place, real, place.where(real, -1), place, none, none, none), None, WORDS, {})


def measure_world(documents: Sequence[Document], pointing: np.ndarray, seed: int) -> xr.Dataset:
    """The p-values of heads that point so."""
    reducer = Coreference(permutations=Permutations(PERMUTATIONS, seed=seed))
    batch = collate(documents)
    facts = reducer.prepare(batch, "encoder")
    heads = Heads(batch, Pointing(torch.ones(pointing.shape), torch.from_numpy(pointing)))
    sums = {("coreference", "encoder", "-", name): value for name, value in reducer.count(facts).items()}
    sums |= {("coreference", "encoder", "1", name): value for name, value in reducer.observe(facts, heads).items()}
    done = RunSums.from_tensors(sums)
    observed, counts = done.collect_layers("coreference", "encoder", [1]), done.select_counts("coreference", "encoder")
    table = reducer.result(observed, counts).assign_attrs(scores=write_scores(reducer.scores))
    return add_significance(table.assign_coords(layer=[1], head=np.arange(1, HEADS + 1)))


@cache
def worlds(folder: Path, way: str) -> xr.Dataset:
    """The p-values of a hundred worlds."""
    tables = []
    for seed in range(WORLDS):
        random = np.random.default_rng(seed)
        documents = [relabel(text, WAYS[way], random) for text in texts(folder)]
        pointing = np.stack([point(text, random) for text in texts(folder)])
        table = measure_world(documents, pointing, seed)
        tables.append(table[["antecedent_best_p", "antecedent_p", "antecedent_count"]])
    return xr.concat(tables, "world")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("corpus", CORPORA)
def test_chains_that_no_head_can_know_are_found_in_few_worlds(data: Path, corpus: str, way: str) -> None:
    values = worlds(data / CORPORA[corpus], way)
    rows = [row for row in MENTIONS if (values["antecedent_count"].sel(mention=row) > 0).all()]
    assert rows == (["all"] if corpus == "litbank" else list(MENTIONS))  # LitBank has no parts of speech
    best = values["antecedent_best_p"].sel(mention=rows)
    assert (best.sel(mention="all") <= 0.05).mean() <= 0.08
    assert (best <= 0.05).mean() <= 0.08
    # A test that never rejects would pass as well.
    assert (abs((best <= 0.5).mean("world") - 0.5) < 0.2).all()
    # Some head of many has a small one in most worlds.
    assert ((values["antecedent_p"].sel(mention="all") <= 0.05).any(("layer", "head"))).mean() > 0.6


def test_a_habit_of_near_mentions_is_kept_and_one_of_words_spelt_alike_is_not(data: Path) -> None:
    documents = texts(data / CORPORA["litbank"])
    pointing = np.stack([point(text, np.random.default_rng(0)) for text in documents])
    p = measure_world(documents, pointing, 0)["antecedent_p"].sel(layer=1, mention="all")
    assert p.sel(head=13) > 0.05  # the nearest mention
    assert p.sel(head=28) == 1 / (PERMUTATIONS + 1)  # the nearest that is spelt alike, if there is one
