"""Heads as classifiers that nobody trained: Clark et al. 2019, sections 4.1 and 4.2.

A head's prediction for a word is the *other* word that it attends to most
(``dependent_to_head``), or the other word that attends to it most (``head_to_dependent``). It is
right if that word is the gold head of the dependency.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float, Float64, Int
from torch import Tensor

from headscope import heads
from headscope.capture.attention import Attention
from headscope.capture.batch import Batch, Tokens
from headscope.corpora.corpus import Survey
from headscope.corpora.document import Document
from headscope.errors import CorpusError
from headscope.measure.reducer import Sums

CLARK = "Clark et al. 2019, sections 4.1 and 4.2"
DIRECTIONS = ("dependent_to_head", "head_to_dependent")
OFFSETS = (-5, -4, -3, -2, -1, 1, 2, 3, 4, 5)
FOLDS = 10
ALL = "all"


@dataclass(frozen=True)
class Relations:
    """How often each head points from a dependent at its head, or from a head at its dependent.

    Attention *to* a split word is summed over its tokens, attention *from* it averaged; special
    tokens belong to no word and are left out. Of equal weights the first word counts. A word that
    may attend to no other word (the first one under a causal mask) predicts nothing, and is wrong.

    The sums are kept in folds of the corpus, with the squares that an interval clustered by
    document needs, so that `headscope.analyse` can choose a head on one half of the corpus and
    score it on the other without a second pass.

    Attributes:
        labels: the dependency labels of the corpus, most frequent first.
        by_group: deal whole groups of documents to the folds; otherwise, where the corpus has too few
            groups to fill them, single documents.
        seed: of the deal.
    """

    labels: tuple[str, ...]
    by_group: bool = True
    seed: int = 0

    name: ClassVar[str] = "relations"
    whole: ClassVar[bool] = True
    max_tokens: ClassVar[int | None] = 4096

    @classmethod
    def over(cls, survey: Survey) -> "Relations":
        """The reducer for the dependency labels that the corpus has.

        Raises:
            CorpusError: it has none.
        """
        counts = survey.links.get("dependency", {})
        if not counts:
            raise CorpusError(
                "the reducer `relations` needs dependencies, and the corpus has none; "
                "give a treebank (CoNLL-U), or measure `surface` only."
            )
        taken = [label for label in counts if label == ALL or label.endswith(":*")]
        if taken:
            raise CorpusError(
                f"the corpus has links labelled {taken[0]!r}, which is the name of a row that pools others; "
                "call the label something else."
            )
        labels = sorted(counts, key=lambda label: (-counts[label], label))
        return cls(tuple(labels), by_group=survey.groups >= 2 * FOLDS)

    @property
    def rows(self) -> tuple[str, ...]:
        """The values of the dimension ``relation``.

        Each label as it stands; ``label:*`` for a label together with its subtypes, where it has
        any; and ``all``, which is every relation but punctuation (the root has no link). Clark's
        ``all`` counts both.
        """
        bases = Counter(label.split(":")[0] for label in self.labels)
        has_subtypes = {label.split(":")[0] for label in self.labels if ":" in label}
        return (ALL, *self.labels, *(f"{base}:*" for base in bases if base in has_subtypes))

    def rows_of(self, label: str) -> Iterable[str]:
        """The rows in which a link of this label counts."""
        base = label.split(":")[0]
        return (name for name in (label, f"{base}:*", ALL if base != "punct" else "") if name in self.rows)

    def count(self, batch: Batch, stack: str) -> Sums:
        """How many links there are, and how often each fixed offset finds the head."""
        gold = _gold(self, batch)
        distance = (gold.head - gold.dependent)[:, None] == torch.tensor(OFFSETS, device=gold.head.device)
        links = torch.ones_like(gold.head)[:, None]
        return {
            "documents": gold.per_row(torch.ones_like(gold.cell_count)[:, None])[..., 0].long(),
            **{name: sums[..., 0] for name, sums in gold.totals(links, "link").items()},
            **gold.totals(distance, "offset"),
        }

    def observe(self, attention: Attention) -> Sums:
        """How many links each head gets right, in each direction."""
        gold = _gold(self, attention.batch)
        words = _between_words(attention)
        word = torch.arange(words.shape[-1], device=words.device)
        right = []
        for dim, words_of in ((-1, words), (-2, words)):
            most, where = words_of.max(dim)
            found = most[gold.document, :, gold.dependent] > 0
            right.append(found & (where[gold.document, :, gold.dependent] == word[gold.head][:, None]))
        hits = torch.stack(right, dim=-1).flatten(1)
        return {
            name: sums.view(*sums.shape[:2], attention.heads, len(DIRECTIONS)).movedim((2, 3), (0, 1))
            for name, sums in gold.totals(hits, "correct").items()
        }

    def result(self, sums: Mapping[str, np.ndarray], counts: Mapping[str, np.ndarray]) -> xr.Dataset:
        """Accuracies, and the sums by fold from which their uncertainty follows."""
        total = counts["link"].sum(-1)
        with np.errstate(invalid="ignore"):
            # A head that is always right must not vanish (Clark's script drops it); 0 links give NaN.
            accuracy = sums["correct"].sum(-1).transpose(0, 1, 3, 2) / total[:, None]
            offsets = counts["offset"].sum(1) / total[:, None]
        by_head = ("layer", "head", "direction", "relation", "fold")
        by_offset = ("relation", "fold", "offset")
        share, links = "share of links", "links"
        values = {
            "relation_accuracy": (
                accuracy,
                ("layer", "head", "relation", "direction"),
                "links that the head gets right",
                share,
            ),
            "relation_count": (total, ("relation",), "links", links),
            "offset_accuracy": (offsets, ("relation", "offset"), "links whose head stands at a fixed offset", share),
        }
        squares, product = "sum over documents of the square of ", "sum over documents of links times "
        for name, dims, found, what in (
            ("correct", by_head, sums, "links got right"),
            ("offset", by_offset, counts, "links at the offset"),
            ("link", by_offset[:2], counts, "links"),
        ):
            values[f"fold_{name}"] = (found[name], dims, what, links)
            values[f"fold_{name}_squares"] = (found[f"{name}_squares"], dims, squares + what, "links²")
            if name != "link":
                values[f"fold_{name}_by_link"] = (found[f"{name}_by_link"], dims, product + what, "links²")
        values["fold_documents"] = (
            counts["documents"],
            ("relation", "fold"),
            "documents with the relation",
            "documents",
        )
        table = {
            variable: heads.variable(np.asarray(data), dims, name=name, units=units, source=CLARK)
            for variable, (data, dims, name, units) in values.items()
        }
        coords = {"relation": list(self.rows), "direction": list(DIRECTIONS), "offset": list(OFFSETS)}
        table["fold_link"].attrs["dealt_by"] = "text" if self.by_group else "document"
        by_count = sorted(range(len(total)), key=lambda row: (self.rows[row] != ALL, -total[row]))
        return xr.Dataset(table, coords=coords).isel(relation=by_count)

    def fold(self, document: Document) -> int:
        """The fold of a document: its group decides, by a hash, so no order can change it."""
        unit = document.group if self.by_group and document.group else document.id
        return int.from_bytes(hashlib.sha256(f"{self.seed} {unit}".encode()).digest()[:8]) % FOLDS


@dataclass(frozen=True, eq=False)
class _Gold:
    """The gold links of a batch.

    A link counts in several rows of the table. A *cell* is one document's share of one row: the
    unit that an interval clustered by document sums over.

    Attributes:
        document, dependent, head: of each link.
        link, cell: for each place in which a link counts, the link and the cell.
        cell_count: the number of links of each cell.
        cell_row: where each cell stands in the flattened axes relation and fold.
        rows: the number of relations.
    """

    document: Int[Tensor, " link"]
    dependent: Int[Tensor, " link"]
    head: Int[Tensor, " link"]
    link: Int[Tensor, " place"]
    cell: Int[Tensor, " place"]
    cell_count: Float64[Tensor, " cell"]
    cell_row: Int[Tensor, " cell"]
    rows: int

    def totals(self, right: Tensor, name: str) -> Sums:
        """Of what is right for each link (axis 1 is anything): the sums for each relation and fold."""
        found = torch.zeros(len(self.cell_count), right.shape[1], dtype=torch.float64, device=right.device)
        found.index_add_(0, self.cell, right.double()[self.link])
        sums = {name: found, f"{name}_squares": found.square(), f"{name}_by_link": found * self.cell_count[:, None]}
        return {key: self.per_row(values).long() for key, values in sums.items()}

    def per_row(self, of_cells: Tensor) -> Float64[Tensor, "relation fold any"]:
        """Cells added up for each relation and fold."""
        total = torch.zeros(self.rows * FOLDS, of_cells.shape[1], dtype=torch.float64, device=of_cells.device)
        return total.index_add_(0, self.cell_row, of_cells.double()).view(self.rows, FOLDS, -1)


@lru_cache(maxsize=2)
def _gold(relations: Relations, batch: Batch) -> _Gold:
    row_of = {name: index for index, name in enumerate(relations.rows)}
    rows_of = {label: [row_of[name] for name in relations.rows_of(label)] for label in relations.labels}
    have_tokens = [set(row) for row in batch.encoder.word.tolist()]
    links: list[tuple[int, int, int]] = []
    places: list[tuple[int, int]] = []
    cells: dict[tuple[int, int], int] = {}
    counts: Counter[int] = Counter()
    for index, document in enumerate(batch.documents):
        for link in document.links:
            if link.kind != "dependency" or not {link.source, link.target} <= have_tokens[index]:
                continue
            for row in rows_of[link.label]:
                cell = cells.setdefault((index, row), len(cells))
                places.append((len(links), cell))
                counts[cell] += 1
            links.append((index, link.source, link.target))
    folds = [relations.fold(document) for document in batch.documents]
    device = batch.encoder.ids.device
    document_of, dependent, head = torch.tensor(links, dtype=torch.long, device=device).reshape(-1, 3).T
    link_of, cell_of = torch.tensor(places, dtype=torch.long, device=device).reshape(-1, 2).T
    return _Gold(
        document_of,
        dependent,
        head,
        link_of,
        cell_of,
        cell_count=torch.tensor([counts[cell] for cell in range(len(cells))], dtype=torch.float64, device=device),
        cell_row=torch.tensor([row * FOLDS + folds[index] for index, row in cells], dtype=torch.long, device=device),
        rows=len(row_of),
    )


def _between_words(attention: Attention) -> Float[Tensor, "batch head word word"]:
    """Attention from word to word; 0 from a word to itself, and wherever a word has no token."""
    batch = attention.batch
    to_words = attention.average(_membership(attention.keys, batch.words))
    from_words = _membership(attention.queries, batch.words)[:, attention.rows]
    from_words = from_words / from_words.sum(1, keepdim=True).clamp_min(1)
    words = torch.einsum("bqv,bhqw->bhvw", from_words, to_words)
    words.diagonal(dim1=-2, dim2=-1).zero_()
    return words


def _membership(tokens: Tokens, words: int) -> Float[Tensor, "batch token word"]:
    """1 where a token is part of a word."""
    return (tokens.word[..., None] == torch.arange(words, device=tokens.word.device)).float()
