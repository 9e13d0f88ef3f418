"""The word that a rule picks for an end of a link; the page of an atlas draws it next to the word of a head."""

from collections.abc import Mapping, Sequence

from headscope.corpora.document import Document
from headscope.examples import Item
from headscope.reducers.support.nearest import find_nearest
from headscope.reducers.support.rules import ENDS, NONE, Rule

NO_PICK = -1
"""The index that is returned if a rule picks no word."""


def pick_for_link(
    document: Document, item: Item, direction: int, options: Mapping[str, str], rules: Sequence[Rule]
) -> tuple[int, int] | None:
    """Return the end of a link at which a rule starts, and the word that it picks; None if the options fit no rule.

    Args:
        document: The document of the link.
        item: A link of the document.
        direction: The index of the direction in which the link is scored; your own rules have an end instead.
        options: The options of the rule: an offset, a side and a class of words, or one of your own rules and its end.
        rules: Your own rules.
    """
    ends = (item.source, item.targets[0])
    match options:
        case {"offset": offset}:
            return ends[direction], pick_at_offset(document, ends[direction], (1, -1)[direction] * int(offset))
        case {"side": side, "word_class": word_class}:
            return ends[direction], find_nearest(document, ends[direction], side, word_class)
        case {"rule": name, "end": end}:
            start, other = ends if end == ENDS[0] else ends[::-1]
            return start, _apply(next(rule for rule in rules if rule.name == name), document, start, other)
    return None


def pick_at_offset(document: Document, word: int, offset: int) -> int:
    """Return the index of the word at an offset from another word; `NO_PICK` outside of the document."""
    return word + offset if 0 <= word + offset < len(document.words) else NO_PICK


def _apply(rule: Rule, document: Document, start: int, other: int) -> int:
    """Return the word to which a rule leads from `start`, or `NO_PICK`.

    From a unit of several words a rule may lead to several words. Then `other` comes first, if it is one of them.
    """
    units = document.unit_numbers
    predicted = [word for unit, word in zip(units, rule.find(document.original).tolist(), strict=True) if unit == start]
    leads_to = [units[word] for word in predicted if word != NONE]
    return other if other in leads_to else next(iter(leads_to), NO_PICK)
