"""Documents in units: words that a model cannot tell apart, since they share a token or have the same characters.

A unit counts as a word in links, rivals, permutations and distances. Code that needs the forms of words, such as a
lexicon, a rule of the user's own or a probe, uses `Document.original`.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from headscope.corpora.document import SURE, Document, Link, Units
from headscope.corpora.written_text import Offsets, WrittenText, join_texts

INSIDE, REPEATED = "links inside a unit of words that share a token", "links between the same two units as another link"
UNCLEAR = "links whose candidates share a unit (scored without their candidates)"
"""The reasons why a link, or its candidates, are left out."""


def unite_words(
    document: Document, units: Sequence[int], texts: Sequence[WrittenText]
) -> tuple[Document, Counter[str]]:
    """Return a document with units as its words, and the number of links (or candidates) left out, by reason.

    Args:
        document: the document with its words.
        units: the index of the unit of each word, in order from 0. Words of one unit are neighbours.
        texts: the text as the model reads it, or both segments of a pair, with the characters of each word.
    """
    if not units or units[-1] == len(units) - 1:
        return document, Counter()
    text, offsets = join_texts(texts), list[Offsets]()
    for unit, (start, end) in zip(units, text.offsets, strict=True):
        if unit == len(offsets):
            offsets.append((start, end))
        else:
            offsets[-1] = offsets[-1][0], end
    text = WrittenText(text.content, tuple(offsets))
    links, losses = _unite_links(document.links, units)
    spans = (replace(each, start=units[each.start], end=units[each.end - 1] + 1) for each in document.spans)
    between = [replace(link, source=units[link.source]) for link in document.alignment]
    # If the same words have a sure and a possible link, the sure one counts.
    alignment = {(link.source, link.target): link for link in sorted(between, key=lambda link: link.label == SURE)}
    return replace(
        document, words=tuple(text.content[start:end] for start, end in offsets), links=links, spans=tuple(spans),
        boundary=None if document.boundary is None else units[document.boundary], alignment=tuple(alignment.values()),
        written=text, units=Units(document, tuple(units)),
    ), losses  # fmt: skip


def _unite_links(links: Sequence[Link], units: Sequence[int]) -> tuple[tuple[Link, ...], Counter[str]]:
    united: dict[Link, None] = {}
    losses = Counter[str]()
    for link in links:
        source, target, rivals = units[link.source], units[link.target], [units[rival] for rival in link.rivals]
        if source == target:
            losses[INSIDE] += 1
            continue
        if rivals and len({source, target, *rivals}) < 2 + len(rivals):
            # With fewer candidates the choice would be easier.
            losses[UNCLEAR] += 1
            rivals = []
        between = replace(link, source=source, target=target, rivals=tuple(rivals))
        losses[REPEATED] += between in united
        united[between] = None
    return tuple(united), +losses
