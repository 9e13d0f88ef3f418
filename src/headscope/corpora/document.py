"""One record for all corpora: words with their annotation."""

import hashlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import accumulate, groupby
from typing import NamedTuple

from headscope.corpora.message import ROLE, Message
from headscope.corpora.written_text import WrittenText, join_texts, join_words
from headscope.errors import CorpusError


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of words of a document, ``start <= i < end`` (counted from 0), with a label.

    ``kind`` names the annotation of the span, and ``label`` is its value there:

    ================  ==========================================================================================
    kind              label
    ================  ==========================================================================================
    ``upos``          the universal part of speech of one word, ``NOUN``
    ``negation``      the feature that marks one word as a negation, ``Polarity=Neg``
    ``mention``       the coreference chain of the mention, ``3``
    ``cue``           the number of the negation of this cue, ``1``
    ``affixal_cue``   the same for a cue that is a part of its word (*un-*, *-less*)
    ``scope``         the number of the negation whose scope includes these words, ``1``
    ``event``         the number of the negation that negates this event, ``1``
    ``predicate``     the sense of a predicate, ``come.03``
    ``target``        the number of the words that evoke a frame in their sentence, ``1``
    ``element``       the number of the target and the name of a frame element, ``1 Buyer``
    ``core_element``  the same for an element of this type; others: ``core_unexpressed_``, ``peripheral_`` and
                      ``extra_thematic_element``
    ``aspect``        the polarity of an aspect term, ``positive``
    ``asked``         the aspect that these words of a question name, ``food`` or ``FOOD#QUALITY``
    ``same_aspect``   the polarity of a term of the aspect in the question
    ``other_aspect``  the polarity of a term of another aspect
    ``role``          the speaker of these words in a conversation, ``user``
    ================  ==========================================================================================

    Annotation that is not contiguous (a cue *neither ... nor*, a scope around its cue) is several spans with one label.
    """

    start: int
    end: int
    label: str
    kind: str = ""


def merge_into_spans(words: Iterable[int], label: str, kind: str) -> Iterator[Span]:
    """Yield the fewest spans of one label that cover exactly these words of a document, in order."""
    for _, run in groupby(enumerate(sorted(set(words))), key=lambda pair: pair[1] - pair[0]):
        stretch = [word for _, word in run]
        yield Span(stretch[0], stretch[-1] + 1, label, kind=kind)


@dataclass(frozen=True, slots=True, repr=False)
class Link:
    """A directed relation between two words (0-based).

    For ``kind="dependency"`` the source is the dependent, the target its syntactic head and the label the relation
    (``nsubj:pass``). The root of a sentence has no link.

    For ``kind="role"`` the source is the head word of an argument, the target the predicate and the label the semantic
    role (``ARG0``). In FrameNet, which has no heads, the source is the last word.

    For ``kind="coreference"`` the source is a pronoun, the target the head word of a name to which it refers, and the
    label the pronoun in lower case.

    For ``kind="pattern"`` a user's pattern matches both words, and the label is its name.

    For ``kind="alignment"`` the source is a word of the text and the target a word of its translation, counted from 0
    there too; the label is ``sure`` or ``possible`` (Och and Ney 2003).

    The rivals are other words that could be mistaken for the target, such as the other name to which a pronoun could
    refer. The target and its rivals are the *candidates* of the link. Most links have no rivals.
    """

    source: int
    target: int
    label: str
    kind: str = "dependency"
    rivals: tuple[int, ...] = ()

    def __repr__(self) -> str:
        """Return the fields; rivals only if there are any, so that other corpora keep their hashes."""
        rivals = f", rivals={self.rivals!r}" if self.rivals else ""
        return f"Link(source={self.source}, target={self.target}, label={self.label!r}, kind={self.kind!r}{rivals})"

    @property
    def wrong_rivals(self) -> str:
        """A description of the first error in the rivals of the link; empty if there is none."""
        times = Counter(self.rivals)
        for rival in self.rivals:
            if rival == self.target:
                return f"the rival {rival}, which is its target"
            if rival == self.source:
                return f"the rival {rival}, which is its source"
            if times[rival] > 1:
                return f"the rival {rival} twice"
        return ""


SURE, POSSIBLE = "sure", "possible"
"""The labels of links between a word and a word of the translation."""


class Origin(NamedTuple):
    """The group and the id under which a document counts as evidence: its own, or those of its original.

    Attributes:
        group: the group of the document, of the original if it is a copy, or of the first of several texts that are
            nearly the same; empty if it is unknown.
        id: the id of the document, or of the original.
    """

    group: str
    id: str

    @property
    def cluster(self) -> str:
        """The group or, if it is unknown, the id."""
        return self.group or self.id


def hash_name(name: str, seed: int = 0) -> int:
    """Return a number of 8 bytes from a name and a seed: the same on every machine, and uniformly distributed."""
    return int.from_bytes(hashlib.sha256(f"{seed} {name}".encode()).digest()[:8])


@dataclass(frozen=True, slots=True, repr=False)
class Document:
    """A text that one forward pass sees: a sentence, a pair of segments, or a longer passage.

    Attributes:
        id: an id that is unique in the corpus. It says where in the corpus the document is, for messages.
        words: the words as annotated.
        links: relations between two words.
        spans: stretches of words.
        label: the annotation of the whole text, if there is any.
        group: the text that the document was cut from; empty or its id if that is unknown. The documents of one group
            all go into the half on which a head is chosen or all into the half on which it is scored, unless there are
            very few groups.
        boundary: the index of the first word of the second segment, if the model gets a pair of segments.
        random_tokens: for a text of random tokens, the position of each word in the vocabulary, from 0 to 1. The model
            gets the token there, and the word is only its name.
        translation: the words of a translation, which the decoder of an encoder-decoder reads. Without a translation it
            reads the words of the text once more.
        alignment: links from words to words of the translation.
        written: the text as its author wrote it, with the characters of each word; None if the corpus has only words.
        has_question: true if the first segment is a question about the text in the second
            (`headscope.corpora.reviews`).
        messages: the messages of a conversation. The chat template of a tokenizer turns them into the text. A document
            that is cut keeps all of them.
        units: the original words, if the words of this document are units (`headscope.corpora.units`).
        tree_faults: a fault for each sentence from a treebank that is not a tree (`headscope.corpora.trees`).
        repeats: the group and the id under which the document counts, if it is a copy or its text is nearly the same as
            another (`headscope.corpora.originals`); None if it counts under its own, or if this is unknown.

    Raises:
        CorpusError: a span, link, rival or boundary points outside the words, a link joins a word to itself, a rival is
            the source or the target of its link, or occurs twice, the numbers of random tokens and words differ, the
            written text or the messages have other words, or the alignment points outside the words or the translation,
            or has a label that is not ``sure`` or ``possible``.
    """

    id: str
    words: tuple[str, ...]
    links: tuple[Link, ...] = ()
    spans: tuple[Span, ...] = ()
    label: str | None = None
    group: str = ""
    boundary: int | None = None
    random_tokens: tuple[float, ...] = field(default=(), repr=False)  # the words name them, so hashes need not
    translation: tuple[str, ...] = ()
    alignment: tuple[Link, ...] = ()
    written: WrittenText | None = None
    messages: tuple[Message, ...] = ()
    units: "Units | None" = field(default=None, repr=False, compare=False)
    tree_faults: tuple[str, ...] = field(default=(), repr=False, compare=False)  # the links have them already
    has_question: bool = field(default=False, repr=False, compare=False)  # the words have it already
    repeats: Origin | None = field(default=None, repr=False, compare=False)  # depends on the other documents

    @property
    def origin(self) -> Origin:
        """The group and the id under which the document counts: its own, or another document's if it is a copy."""
        return self.repeats or Origin(self.group, self.id)

    def __repr__(self) -> str:
        """Return the fields; rare ones only if they have a value, so that other corpora keep their hashes."""
        optional = ("translation", "alignment", "written", "messages")
        shown = [each.name for each in fields(self) if each.repr and each.name not in optional]
        shown += [name for name in optional if getattr(self, name)]
        return f"Document({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    def __post_init__(self) -> None:
        n = len(self.words)
        for link in self.links:
            if not (0 <= link.source < n and 0 <= link.target < n):
                raise CorpusError(
                    f"document {self.id!r} has {n} words, but its link {link.label!r} joins word "
                    f"{link.source} to word {link.target}; words are numbered from 0 to {n - 1}."
                )
            if link.source == link.target:
                raise CorpusError(
                    f"document {self.id!r} has a link {link.label!r} from word {link.source} to itself; "
                    "a link joins two words: leave it out."
                )
            if not link.rivals:
                continue
            if outside := [rival for rival in link.rivals if not 0 <= rival < n]:
                raise CorpusError(
                    f"document {self.id!r} has {n} words, but its link {link.label!r} has the rival {outside[0]}; "
                    f"words are numbered from 0 to {n - 1}."
                )
            if wrong := link.wrong_rivals:
                raise CorpusError(
                    f"document {self.id!r} has a link {link.label!r} with {wrong}; rivals are other words, each named "
                    "once: leave it out."
                )
        for span in self.spans:
            if not 0 <= span.start < span.end <= n:
                raise CorpusError(
                    f"document {self.id!r} has {n} words, but its span {span.label!r} goes from "
                    f"{span.start} to {span.end}; a span needs 0 <= start < end <= {n}."
                )
        if self.boundary is not None and not 0 < self.boundary < n:
            raise CorpusError(
                f"document {self.id!r} has {n} words, so its second segment cannot begin at word "
                f"{self.boundary}; it needs at least one word on each side."
            )
        if self.random_tokens and (
            len(self.random_tokens) != n or not all(0 <= place < 1 for place in self.random_tokens)
        ):
            raise CorpusError(
                f"document {self.id!r} has {n} words and {len(self.random_tokens)} random tokens; each word needs one: "
                "a place in the vocabulary, from 0 up to 1."
            )
        if self.written is not None:
            if len(self.written.offsets) != n:
                raise CorpusError(
                    f"document {self.id!r} has {n} words, and its text gives the characters of "
                    f"{len(self.written.offsets)}; give the characters of each word, or leave the text out."
                )
            if fault := self.written.fault:
                raise CorpusError(
                    f"document {self.id!r} has {fault}; words follow one another in their text: correct it."
                )
        if self.messages and self.units is None:
            words = [word for message in self.messages for text in message.texts for word in text.split()]
            if words[:n] != [*self.words] or self.boundary is not None:
                raise CorpusError(
                    f"document {self.id!r} has other words than its messages, or a second segment; the words are what "
                    "white space parts in the messages: correct them."
                )
        for link in self.alignment:
            if not (0 <= link.source < n and 0 <= link.target < len(self.translation)):
                raise CorpusError(
                    f"document {self.id!r} has {n} words and {len(self.translation)} in its translation, but its "
                    f"alignment joins word {link.source} to word {link.target} of the translation; both are numbered "
                    "from 0."
                )
            if link.label not in (SURE, POSSIBLE):
                raise CorpusError(
                    f"document {self.id!r} has an alignment with the label {link.label!r}; the label of a link to a "
                    f"word of the translation is {SURE!r} or {POSSIBLE!r}."
                )

    @property
    def text(self) -> WrittenText:
        """The written text; without one, the words joined by single spaces."""
        return self.written or join_words(self.words)

    @property
    def lacks_text(self) -> bool:
        """Whether the document has only its words: neither a written text nor given tokens."""
        return self.written is None and not self.has_given_tokens

    @property
    def has_given_tokens(self) -> bool:
        """Whether the tokens of the document are given: random tokens, or the output of a chat template."""
        return bool(self.random_tokens or self.messages)

    @property
    def original(self) -> "Document":
        """The document as its corpus has it: itself, unless its words are units."""
        return self if self.units is None else self.units.original

    @property
    def unit_numbers(self) -> Sequence[int]:
        """The index of the unit of each word of the original; without units, the index of the word."""
        return range(len(self.words)) if self.units is None else self.units.numbers

    def truncate(self, words: int) -> "Document":
        """Return the document cut after its first `words` words, with the links and spans among these words.

        The translation is cut after the same number of words. A link keeps all of its rivals or none. The span of a
        message ends at the cut.
        """
        boundary = self.boundary if self.boundary is not None and self.boundary < words else None
        links = tuple(
            # With fewer candidates the choice would be easier.
            link if max(link.rivals, default=0) < words else replace(link, rivals=())
            for link in self.links
            if max(link.source, link.target) < words
        )
        spans = tuple(
            replace(span, end=min(span.end, words))
            for span in self.spans
            if span.end <= words or (span.kind == ROLE and span.start < words)
        )
        alignment = tuple(link for link in self.alignment if max(link.source, link.target) < words)
        return replace(
            self, words=self.words[:words], links=links, spans=spans, boundary=boundary,
            random_tokens=self.random_tokens[:words], translation=self.translation[:words], alignment=alignment,
            written=self.written and self.written.truncate(words), units=self.units and self.units.truncate(words),
        )  # fmt: skip


def join_sentences(identity: str, group: str, sentences: Sequence[Document]) -> Document:
    """Return one document that joins sentences of a treebank.

    If the text of at least one sentence is known, the texts are joined by single spaces.
    """
    starts = [*accumulate((len(sentence.words) for sentence in sentences), initial=0)]
    parts = [*zip(starts, sentences, strict=False)]
    return Document(
        identity,
        words=tuple(word for sentence in sentences for word in sentence.words),
        links=tuple(
            replace(link, source=link.source + start, target=link.target + start)
            for start, sentence in parts
            for link in sentence.links
        ),
        spans=tuple(
            replace(span, start=span.start + start, end=span.end + start)
            for start, sentence in parts
            for span in sentence.spans
        ),
        group=group,
        tree_faults=tuple(fault for sentence in sentences for fault in sentence.tree_faults),
        written=join_texts(sentence.text for sentence in sentences) if any(s.written for s in sentences) else None,
    )


@dataclass(frozen=True, slots=True)
class Units:
    """The original words of a document whose words are units.

    Attributes:
        original: the document as its corpus has it.
        numbers: the index of the unit of each word of the original.
    """

    original: Document
    numbers: tuple[int, ...]

    def truncate(self, units: int) -> "Units":
        """Return the original words of the first `units` units."""
        words = bisect_left(self.numbers, units)
        return Units(self.original.truncate(words), self.numbers[:words])


@dataclass(frozen=True, slots=True)
class Skipped:
    """A document, or a part of its annotation, that the reader of a format leaves out on purpose and counts.

    Attributes:
        where: file and line.
        reason: what was left out and why, with the same words each time.
    """

    where: str
    reason: str
