"""Whether word alignments look written in another form than they were read in: counted from 1, or with sides swapped.

Nothing of a file says which form it is in, and in the wrong one most links still join two words. Two things show it.
Where places are counted from 1, no link has the place 0. And translations recur: where two words are linked, other
pairs have the same two. If more of the links would recur with their sides swapped, they were written so.
"""

from headscope.corpora.alignments import FORMS, Form
from headscope.corpora.document import Document

MOST = 1000
"""The first pairs with links, which are looked at."""

FEWEST = 5
"""Pairs with links from which on it is no accident that none of them has the place 0."""

_TIMES, _MORE = 1.5, 10
"""How many times as many links recur with their sides swapped, and how many more, if they were written so."""


class LinkEvidence:
    """The evidence of pairs that were read in one form."""

    def __init__(self, form: Form) -> None:
        self.form = form
        self._pairs = 0
        self._has_first = False
        # By what is taken off the places: how many links recur as they are, and how many with their sides swapped.
        self._recurrences = {0: _Recurrences(), 1: _Recurrences()}

    def add(self, document: Document) -> None:
        """Add the links of a pair."""
        if self._pairs == MOST or not document.alignment:
            return
        self._pairs += 1
        self._has_first |= any(0 in (link.source, link.target) for link in document.alignment)
        for shift, recurrences in self._recurrences.items():
            recurrences.add(document, shift)

    def describe(self) -> str:
        """Return sentences on what the links look like, and in which format they are read so; empty without doubt."""
        from_1 = self.form.first == 0 and self._pairs >= FEWEST and not self._has_first
        given, swapped = self._recurrences[int(from_1)].counts
        is_swapped = swapped > _TIMES * given + _MORE
        if not (from_1 or is_swapped):
            return ""
        better = Form(1 if from_1 else self.form.first, self.form.swapped is not is_swapped)
        name = next(name for name, form in FORMS.items() if form == better)
        doubts = []
        if from_1:
            doubts.append(f"The links look counted from 1: none of {self._pairs:,} pairs has the place 0.")
        if is_swapped:
            doubts.append(
                f"The sides of the links look swapped: {given:,} links join words that were linked before, and "
                f"{swapped:,} would the other way round."
            )
        return f"{' '.join(doubts)} Name the format {name} to read them so."


class _Recurrences:
    """How many links join two words that an earlier link joins, as they are and with their sides swapped."""

    def __init__(self) -> None:
        self.counts = (0, 0)
        self._linked: tuple[set[tuple[str, str]], set[tuple[str, str]]] = (set(), set())

    def add(self, document: Document, shift: int) -> None:
        places = {(link.source - shift, link.target - shift) for link in document.alignment}
        fewer = min(len(document.words), len(document.translation))
        # A link that is the same both ways, or has a place that only one side has, says nothing of the two.
        informative = [pair for pair in places if pair[::-1] not in places and 0 <= min(pair) <= max(pair) < fewer]
        for source, target in sorted(informative):
            ways = [(document.words[a], document.translation[b]) for a, b in ((source, target), (target, source))]
            given, swapped = (way in linked for way, linked in zip(ways, self._linked, strict=True))
            self.counts = self.counts[0] + given, self.counts[1] + swapped
            for way, linked in zip(ways, self._linked, strict=True):
                linked.add(way)
