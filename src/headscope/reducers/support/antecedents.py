"""The mentions of a text, and rules that choose an antecedent for a mention: Clark et al. 2019, section 4.3.

Plain Python on the annotation of one document, without a model.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from headscope.corpora.document import Document, Span

CLASSES = {"PRON": "pronoun", "PROPN": "proper"}
"""The class of a mention by the part of speech of its head word; all other parts of speech give ``nominal``."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """The person, number and gender that a mention may have: a letter for each option, all letters by default.

    Attributes:
        person: Letters of ``123``.
        number: Letters of ``sp``: singular and plural.
        gender: Letters of ``mfn``: a man, a woman, a thing.
    """

    person: str = "123"
    number: str = "sp"
    gender: str = "mfn"

    def agrees_with(self, other: "Agreement") -> bool:
        """Return True if two mentions with these agreements can refer to the same person or thing."""
        pairs = ((self.person, other.person), (self.number, other.number), (self.gender, other.gender))
        return all(any(letter in theirs for letter in ours) for ours, theirs in pairs)


PRONOUNS: Mapping[str, Agreement] = {
    word: agreement
    for words, agreement in {
        "i me my mine myself": Agreement("1", "s", "mf"),
        "we us our ours ourselves": Agreement("1", "p", "mf"),
        "you your yours": Agreement("2", "sp", "mf"),
        "yourself": Agreement("2", "s", "mf"),
        "yourselves": Agreement("2", "p", "mf"),
        "he him his himself": Agreement("3", "s", "m"),
        "she her hers herself": Agreement("3", "s", "f"),
        "it its itself": Agreement("3", "s", "n"),
        "they them their theirs themselves": Agreement("3", "p", "mfn"),
        "this": Agreement("3", "s", "mfn"),
        "these those": Agreement("3", "p", "mfn"),
        "who whom": Agreement("123", "sp", "mf"),
        "someone somebody anyone anybody everyone everybody": Agreement("3", "sp", "mf"),
        "something anything everything": Agreement("3", "s", "n"),
    }.items()
    for word in words.split()
}
"""The agreement of English pronouns. A pronoun that is missing here, such as *that*, agrees with any mention."""

_SINGULAR = frozenset("a an another one each every either neither this that".split())
_PLURAL = frozenset("two three four five six seven eight nine ten both many few several these those".split())
_PLURALS = frozenset("people men women children feet teeth mice geese".split())
_IN_S = frozenset("always news series species means lens economics mathematics physics politics".split())
_GENITIVES = frozenset(("'s", "’s", "'", "’"))


@dataclass(frozen=True)
class Mention:
    """A mention of a person or thing that is mentioned again.

    Attributes:
        chain: The chain of the mention, which all mentions of the same person or thing share.
        words: The words as they are written.
        place: The index of the head word among `words`.
        head: The index of the head word in the document, or of its unit.
        tag: The part of speech of the head word, empty if it is not annotated.
    """

    chain: str
    words: tuple[str, ...]
    place: int
    head: int
    tag: str

    @property
    def classes(self) -> tuple[str, ...]:
        """``all``, and the class by the part of speech of the head word, if this is annotated."""
        return ("all", CLASSES.get(self.tag, "nominal")) if self.tag else ("all",)

    @cached_property
    def text(self) -> tuple[str, ...]:
        """The words, case-folded."""
        return tuple(word.casefold() for word in self.words)

    @property
    def head_word(self) -> str:
        """The head word, case-folded."""
        return self.text[self.place]

    @cached_property
    def agreement(self) -> Agreement:
        """Person, number and gender, as far as they follow from English words alone.

        A pronoun is looked up in `PRONOUNS`. Without a part of speech, one-word mentions that are in `PRONOUNS` are
        pronouns, unless they are in capitals (*US*, *IT*). All other mentions are of the third person and of unknown
        gender (*the queen* may be *he*). Their number is known

        - from the first word, if that is a determiner or numeral such as *a*, *every*, *these*, *two*, is not the head
          word, and no genitive comes between the two (*this man 's sons*);
        - from the head word, if that is an irregular plural such as *people*, or a common noun in -s but not in -ss,
          -us or -is and not one of a few such as *news*. Without a part of speech, a word in lower case counts as a
          common noun.

        It is unknown for any other noun (*the team* may be *they*), for names and for mentions with *and*.
        """
        if self._is_pronoun:
            return PRONOUNS.get(self.head_word, Agreement())
        return Agreement("3", self._number)

    @property
    def _is_pronoun(self) -> bool:
        if self.tag:
            return self.tag == "PRON"
        (first, *rest), text = self.words, self.head_word
        return not rest and text in PRONOUNS and (len(first) == 1 or not first.isupper())

    @property
    def _number(self) -> str:
        before, noun = self.text[: self.place], self.head_word
        if "and" in self.text:
            return "sp"
        if before and not _GENITIVES & set(before):
            if before[0] in _SINGULAR:
                return "s"
            if before[0] in _PLURAL:
                return "p"
        if noun in _PLURALS:
            return "p"
        common = self.tag in ("NOUN", "") and self.words[self.place].islower()
        regular = noun.endswith("s") and not noun.endswith(("ss", "us", "is")) and noun not in _IN_S
        return "p" if common and regular else "sp"


def mentions_of(document: Document) -> list[Mention]:
    """Return the mentions of all chains with two or more mentions, in the order of their head words.

    Mentions of one chain with the same head word are nested, and only the longest of them is returned. Of mentions with
    the same head word, the longest comes first. Units are read as the words that they unite, and a mention is in the
    unit of its head word.
    """
    units, document = document.unit_numbers, document.original
    heads: dict[int, set[int]] = {}
    for link in document.links:
        if link.kind == "dependency":
            heads.setdefault(link.source, set()).add(link.target)
    tags = {word: span.label for span in document.spans if span.kind == "upos" for word in range(span.start, span.end)}
    spans = [span for span in document.spans if span.kind == "mention"]
    longest: dict[tuple[int, str], tuple[Span, int]] = {}
    for span in sorted(spans, key=lambda span: (span.start - span.end, span.start)):
        head = head_of(span, heads)
        longest.setdefault((units[head], span.label), (span, head))
    mentioned = Counter(chain for _, chain in longest)
    return [
        Mention(chain, document.words[span.start : span.end], head - span.start, unit, tags.get(head, ""))
        # Not by chain: permutations shift the chains along this order, so it must not depend on them.
        for (unit, chain), (span, head) in sorted(longest.items(), key=lambda entry: entry[0][0])
        if mentioned[chain] > 1
    ]


def head_of(span: Span, heads: Mapping[int, set[int]]) -> int:
    """Return the head word of a span: the first word whose own heads all lie outside of the span.

    Without a tree it is the last word. That is right for most English noun phrases, but not for those that go on after
    their noun (*the man in the hat*).
    """
    words = range(span.start, span.end)
    if not heads:
        return words[-1]
    return next((word for word in words if not any(head in words for head in heads.get(word, ()))), words[-1])


def with_earlier(mentions: Sequence[Mention]) -> Iterator[tuple[Mention, list[Mention]]]:
    """Yield each mention with the list of mentions whose head words precede its head word, the nearest first."""
    for mention in mentions:
        yield mention, [other for other in reversed(mentions) if other.head < mention.head]


SIEVES: Mapping[str, Callable[[Mention, Mention], bool]] = {
    "full_match": lambda mention, other: other.text == mention.text,
    "head_match": lambda mention, other: other.head_word == mention.head_word,
    "agreement": lambda mention, other: other.agreement.agrees_with(mention.agreement),
    "nearest": lambda mention, other: True,
}
"""The sieves of the paper, after Lee et al. 2011: same words, same head word, agreement, nearest.

The definition of agreement is ours (`Mention.agreement`), since the code of the paper was never released.
"""

RULES: Mapping[str, Sequence[str]] = {"nearest": ("nearest",), "head_match": ("head_match",), "rules": tuple(SIEVES)}
"""The baselines by name, with the sieves that each applies one after the other."""


def choose_antecedent(sieves: Sequence[str], mention: Mention, earlier: Sequence[Mention]) -> int | None:
    """Return the head word of the antecedent that the sieves choose; None if no earlier mention passes a sieve.

    The first sieve that any earlier mention passes decides: it chooses the nearest mention that passes it.
    """
    passing = (other.head for name in sieves for other in earlier if SIEVES[name](mention, other))
    return next(passing, None)
