"""Attention to classes of tokens: Kovaleva et al. 2019, sections 4.4 and 4.5.

For each class, the attention from all tokens of the text to the token that gets most of it, and to all tokens of the
class together; the same for the attention of the classification token alone.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr
from jaxtyping import Bool, Float, Float64
from torch import Tensor

from headscope.capture.rows.attention import Attention
from headscope.capture.tokens.batch import Batch
from headscope.corpora.document import Document
from headscope.corpora.summary import CorpusSummary
from headscope.heads import SHARE, Described, describe
from headscope.reducers.reducer import Annotation, Reducer, Sums
from headscope.reducers.support.ratios import mean
from headscope.score import Score

KOVALEVA = "Kovaleva et al. 2019, section "
WORD_CLASSES = ("noun", "verb", "pronoun", "subject", "object", "negation")
CLASSES = (*WORD_CLASSES, "cls", "sep")

OF_UPOS: Mapping[str, str] = {"NOUN": "noun", "PROPN": "noun", "VERB": "verb", "PRON": "pronoun"}
OF_RELATION: Mapping[str, str] = {"nsubj": "subject", "csubj": "subject", "obj": "object", "iobj": "object"}
OF_SPAN: Mapping[str, str] = {"negation": "negation", "cue": "negation"}
"""The class of a word by its part of speech, by its relation without the subtype, and by the kind of a span on it."""

MASS = Score(
    "token_class_mass",
    "Attention to classes of tokens",
    "the mean share of a token's attention that goes to all tokens of a class",
    items="documents",
    rows="classes of tokens",
    baselines={"token_class_share": "share of the tokens"},
    control="token_class_share",
)

_QUERIES = ("", "_from_cls")
"""The suffixes of variables: for the attention from all tokens, and from the classification token alone."""


def _is_annotated(summary: CorpusSummary) -> bool:
    """Return True if a corpus marks some words by a part of speech, a relation or a negation."""
    return any(summary.spans.get(kind) for kind in ("upos", *OF_SPAN)) or bool(summary.links.get("dependency"))


@dataclass(frozen=True)
class TokenClasses(Reducer):
    """Attention to nouns, verbs, pronouns, subjects, objects, words of negation, [CLS] and [SEP].

    The attention that a token gets is the sum of its column of the attention map, divided by the length of the text. If
    a class has several tokens, the one that gets most counts. Each value is the mean over the documents that have the
    class, and NaN if none has. The same is measured for the row of the classification token alone, in every layer (the
    paper: in the last). Under uniform attention every token would get one over the length (``token_class_uniform``),
    and a class its share of the tokens (``token_class_share``), if all tokens can be seen.

    A class is found by position and annotation. The paper looks its words up by their letters, so that a word that
    occurs twice is one word, and *north* is a negation because of its *nor*. Nouns are common and proper nouns, verbs
    exclude auxiliaries, and a subject or object is its head word. Words of negation are the words that a treebank marks
    as such and the cues of a corpus of negations. Every token of a word counts separately.

    In a decoder the first token of a text gets the attention of heads that rest there, whatever word it is. So it is in
    no class: a text whose only pronoun is its first word has no pronoun.
    """

    name = "classes"
    scope = "layer"
    max_tokens = 4096
    scores = (MASS,)
    annotation = Annotation("parts of speech, dependencies or negations", "a treebank (CoNLL-U)", _is_annotated)

    def prepare(self, batch: Batch, attention_type: str) -> "_Facts":
        """Return the tokens of each class, and the share of each query in the means."""
        queries, keys = batch.queries(attention_type), batch.keys(attention_type)
        # A token without a word reads the index after the last word, which is in no class.
        word = keys.word.where(keys.word >= 0, batch.words)[:, None].expand(-1, len(WORD_CLASSES), -1)
        of_words = _class_words(batch).gather(2, word)
        if batch.is_causal(attention_type):
            of_words &= (keys.position > 0)[:, None]
        members = torch.cat([of_words, torch.stack([keys.cls, keys.sep], dim=1)], dim=1)
        whose = torch.stack([queries.real, queries.cls], dim=1)
        return _Facts(
            members.float(),
            whose / whose.sum(-1, keepdim=True).clamp_min(1),
            members.any(-1)[:, None] & whose.any(-1)[..., None],
            keys.real.sum(1, keepdim=True).double(),
        )

    def count(self, facts: "_Facts") -> Sums:
        """Count the documents that have each class, and sum over documents the two baselines of the class."""
        return {
            "documents": facts.defined.sum(0),
            "share": (facts.members.sum(-1) / facts.length).sum(0),
            "uniform": (facts.defined[:, 0] / facts.length).sum(0),
        }

    def observe(self, facts: "_Facts", attention: Attention) -> Sums:
        """Sum over documents the attention to the token of a class that gets most, and to all tokens of the class."""
        received = facts.queries[:, None] @ attention.weights()
        by_class = received[..., None, :] * facts.members[:, None, None]
        most_and_all = torch.stack([by_class.amax(-1), by_class.sum(-1)])
        # A missing classification token gives no attention, so its document adds 0.
        return {"received": most_and_all.double().sum(1).movedim(1, 0)}

    def result(self, sums: Mapping[str, np.ndarray], counts: Mapping[str, np.ndarray]) -> xr.Dataset:
        """Return each value for each layer, head and class, and its value under uniform attention."""
        documents, by_head, by_class = counts["documents"], ("layer", "head", "token_class"), ("token_class",)
        values: dict[str, xr.Variable] = {}
        for place, queries in enumerate(_QUERIES):
            whose = "from all tokens" if not queries else "from the classification token"
            source = KOVALEVA + ("4.4" if not queries else "4.5")
            most, together = np.moveaxis(mean(sums["received"][..., place, :], documents[place]), -2, 0)
            received = {
                f"token_class_attention{queries}": (most, "attention to the token of a class that gets most"),
                f"token_class_mass{queries}": (together, "attention to all tokens of a class together"),
            }
            for variable, (data, what) in received.items():
                values |= describe({variable: (data, by_head, f"{what}, {whose}", SHARE)}, source)
        share, uniform = (mean(counts[name], documents[0]) for name in ("share", "uniform"))
        baselines: dict[str, Described] = {
            "token_class_share": (share, by_class, "tokens that are of the class", "share of tokens"),
            "token_class_uniform": (uniform, by_class, "one token of the text", "share of tokens"),
        }
        count: Described = (documents[0], by_class, "documents that have the class", "documents")
        values |= describe(baselines, "headscope") | describe({"token_class_count": count}, KOVALEVA + "4.4")
        return xr.Dataset(values, coords={"token_class": list(CLASSES)})


@dataclass(frozen=True, eq=False)
class _Facts:
    """The facts of a batch that need no attention.

    Attributes:
        members: For each of `CLASSES`, 1 on its tokens.
        queries: For each of `_QUERIES`, the share of each query in the mean.
        defined: Whether a document has tokens of the class, and queries of the mean.
        length: The number of tokens of each document.
    """

    members: Float[Tensor, "batch class key"]
    queries: Float[Tensor, "batch whose query"]
    defined: Bool[Tensor, "batch whose class"]
    length: Float64[Tensor, "batch 1"]


def _class_words(batch: Batch) -> Bool[Tensor, "batch class word"]:
    """Return for each class and word of a batch whether the word is in the class; an extra last word is in no class."""
    members = [
        (row, WORD_CLASSES.index(name), word)
        for row, document in enumerate(batch.documents)
        for name, word in _classes_of(document)
    ]
    device = batch.encoder.ids.device
    is_member = torch.zeros(len(batch.documents), len(WORD_CLASSES), batch.words + 1, dtype=torch.bool, device=device)
    is_member[tuple(torch.tensor(members, dtype=torch.long, device=device).reshape(-1, 3).T)] = True
    return is_member


def _classes_of(document: Document) -> Iterator[tuple[str, int]]:
    """Yield pairs of a class and the index of a word (or of its unit) in this class.

    A word keeps the class that it has from a link, even if the link joins two words of one unit.
    """
    units = document.unit_numbers
    for link in document.original.links:
        if link.kind == "dependency" and (name := OF_RELATION.get(link.label.split(":")[0])):
            yield name, units[link.source]
    for span in document.original.spans:
        if name := OF_UPOS.get(span.label) if span.kind == "upos" else OF_SPAN.get(span.kind):
            yield from ((name, units[word]) for word in range(span.start, span.end))
