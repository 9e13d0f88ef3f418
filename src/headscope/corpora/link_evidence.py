"""Evidence that word alignments were read in the wrong form: they count from 1, or their sides are swapped.

A file does not say in which form it is, and in the wrong form most links still join two words. Two facts show the form.
If words are counted from 1, no link has the index 0. And translations recur: if two words are linked, other pairs of
sentences have the same two words. If more of the links would recur with their sides swapped, they were written so.
"""

from headscope.corpora.alignments import FORMS, Form
from headscope.corpora.document import Document

MOST = 1000
"""The number of pairs with links that are checked, from the first on."""

FEWEST = 5
"""The least number of pairs with links that shows, if no link has the index 0, that links count from 1."""

_TIMES, _MORE = 1.5, 10
"""Sides count as swapped if s > 1.5 r + 10, where s links recur with their sides swapped and r links as they are."""


class LinkEvidence:
    """The evidence from pairs of sentences that the form in which their links were read is wrong."""

    def __init__(self, form: Form) -> None:
        self.form = form
        self._pairs = 0
        self._has_first = False
        # By the number that is subtracted from indices: how many links recur as they are, and with their sides swapped.
        self._recurrences = {0: _Recurrences(), 1: _Recurrences()}

    def add(self, document: Document) -> None:
        """Add the links of a pair of sentences; pairs after the first `MOST` with links are ignored."""
        if self._pairs == MOST or not document.alignment:
            return
        self._pairs += 1
        self._has_first |= any(0 in (link.source, link.target) for link in document.alignment)
        for shift, recurrences in self._recurrences.items():
            recurrences.add(document, shift)

    def describe(self) -> str:
        """Return a message with the likely form of the links and the name of its format; empty without evidence."""
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
    """The number of links that join the same words as an earlier link: as written, and with their sides swapped."""

    def __init__(self) -> None:
        self.counts = (0, 0)
        self._linked: tuple[set[tuple[str, str]], set[tuple[str, str]]] = (set(), set())

    def add(self, document: Document, shift: int) -> None:
        places = {(link.source - shift, link.target - shift) for link in document.alignment}
        fewer = min(len(document.words), len(document.translation))
        # A link that is the same in both ways, or has an index that only one side has, is no evidence.
        informative = [pair for pair in places if pair[::-1] not in places and 0 <= min(pair) <= max(pair) < fewer]
        for source, target in sorted(informative):
            ways = [(document.words[a], document.translation[b]) for a, b in ((source, target), (target, source))]
            given, swapped = (way in linked for way, linked in zip(ways, self._linked, strict=True))
            self.counts = self.counts[0] + given, self.counts[1] + swapped
            for way, linked in zip(ways, self._linked, strict=True):
                linked.add(way)
