"""The questions of a probe: which other word of a text is the right answer for a word? This module needs no torch.

The links of any corpus are such questions: which word is the syntactic head of this word, the predicate of this
argument, the antecedent of this mention, the cue in whose scope this word is?
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from headscope.corpora.document import Document
from headscope.corpora.summary import CorpusSummary
from headscope.errors import CorpusError
from headscope.learn.link_kinds import COREFERENCE, DEPENDENCY, KINDS, SCOPE
from headscope.reducers.support.antecedents import mentions_of, with_earlier

ROOT = -1
"""The answer for a word that has no syntactic head."""

PUNCTUATION = "punct"
"""The relation of words that get no question, since UAS is counted without punctuation."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A question: a word of a document for which another word is to be chosen.

    Attributes:
        word: The index of the word in the document, counted from 0.
        answers: The indices of the right words, the nearest first; `ROOT` if the word must get no head.
        label: The label of the link to the nearest answer.
    """

    word: int
    answers: tuple[int, ...]
    label: str

    @property
    def length(self) -> int | None:
        """The signed distance in words to the nearest answer (negative: to the left); None if the answer is `ROOT`."""
        return None if self.answers[0] == ROOT else self.answers[0] - self.word


def list_choices(document: Document, kind: str) -> list[Choice]:
    """List the questions about the words of a document, for one kind of links.

    For dependencies, all words except punctuation have a question; labels are without subtypes. A word that depends on
    no other is the root and has the answer `ROOT`; if there are several such words, they have no question. A unit of
    words depends on the words outside the unit on which its words depend. For mentions, any earlier mention of the same
    chain is right. For words in a scope, any word of its cue is right.
    """
    if kind == COREFERENCE:
        return [
            Choice(mention.head, tuple(answers), mention.classes[-1])
            for mention, earlier in with_earlier(mentions_of(document))
            if (answers := [other.head for other in earlier if other.chain == mention.chain])
        ]
    pairs = _pair_scopes(document) if kind == SCOPE else _pair_links(document, kind)
    by_word: defaultdict[int, list[tuple[int, str]]] = defaultdict(list)
    for word, answer, label in pairs:
        by_word[word].append((answer, label))
    choices = []
    for word in sorted(by_word):
        nearest = sorted(by_word[word], key=lambda pair: (abs(pair[0] - word), pair[0]))
        choices.append(Choice(word, tuple(dict.fromkeys(answer for answer, _ in nearest)), nearest[0][1]))
    if kind == DEPENDENCY:
        dependents = {link.source for link in document.links if link.kind == DEPENDENCY}
        if len(roots := set(range(len(document.words))) - dependents) == 1:
            choices.append(Choice(roots.pop(), (ROOT,), "root"))
    return choices


def find_kind(summary: CorpusSummary, kind: str | None) -> str:
    """Return the given kind of links; without one, return the first of `KINDS` that the corpus has.

    Raises:
        CorpusError: The corpus has no such links.
    """
    has = {*summary.links} | ({COREFERENCE} if "mention" in summary.spans else set())
    has |= {SCOPE} if {"scope", "cue"} <= summary.spans.keys() else set()
    available = [name for name in KINDS if name in has]
    if kind in available or (kind is None and available):
        return kind or available[0]
    wanted = "links of any kind" if kind is None else f"links of the kind {kind!r}"
    other = f"; it has {', '.join(available)}" if available else ""
    raise CorpusError(
        f"the corpus has no {wanted}, of which a probe could be trained{other}: give a treebank (CoNLL-U), or a corpus "
        "with roles, coreference, scopes of negation or patterns."
    )


def _pair_links(document: Document, kind: str) -> Iterator[tuple[int, int, str]]:
    for link in document.links:
        if link.kind == kind and not (kind == DEPENDENCY and link.label == PUNCTUATION):
            yield link.source, link.target, link.label.partition(":")[0] if kind == DEPENDENCY else link.label


def _pair_scopes(document: Document) -> Iterator[tuple[int, int, str]]:
    """Yield each word in the scope of a negation paired with each word of its cue, and the label of the pair."""
    cues: defaultdict[str, set[int]] = defaultdict(set)
    for span in document.spans:
        if span.kind == "cue":
            cues[span.label].update(range(span.start, span.end))
    for span in document.spans:
        if span.kind == "scope":
            for word in range(span.start, span.end):
                yield from ((word, cue, "in scope") for cue in cues[span.label] if word not in cues[span.label])
