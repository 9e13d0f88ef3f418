"""Plain names of the rows of scores, of rules and of statistics, each with its meaning.

The terminal, the figures and the page use these names, and show the codes in small type after them.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from headscope.view.relation_names import find_relation, read_names

RELATION = "relation:"
"""The prefix of the keys of rows that are relations between words."""

BACK = "head_to_dependent"
"""The direction from a syntactic head to its dependents."""


FINDS = "finds {finds} for {share} of {count} {items}"
"""The claim of a head that leads from one word to another."""

FINDS_BACK = "finds {share} of {count} {items} from {finds}"
"""The claim of a head that leads from a syntactic head to its dependents; each dependent is an item."""


class RowName(NamedTuple):
    """The plain name of a row of a score, with the texts that explain it.

    Attributes:
        title: The name of the row: ``object → its verb``.
        about: A sentence that explains the row; empty if only the definition of the score is known.
        example: An example in words; empty if there is none.
        finds: The target of the head: ``the verb``. If the head leads to the items, its starting point.
        items: The name of the items that count, in the plural: ``objects``.
        claim: A sentence on what a head does, with braces for `finds`, `items`, its share and the number of items.
    """

    title: str
    about: str
    example: str
    finds: str
    items: str
    claim: str = FINDS

    def state(self, share: str, count: int) -> str:
        """Return the claim about a head that gets a share of `count` items right, such as ``72 %``."""
        return self.claim.format(finds=self.finds, share=share, count=f"{count:,}", items=self.items)


ROWS: Mapping[str, RowName] = {key: RowName(**row) for key, row in read_names("rows.tsv").items()}
"""The plain names of the rows that are not relations, by key of the row."""

STATISTICS: Mapping[str, str] = {
    "mass_self": "attention to the word itself", "mass_previous": "attention to the token before",
    "mass_next": "attention to the next token", "mass_cls": "attention to [CLS]", "mass_sep": "attention to [SEP]",
    "mass_punctuation": "attention to . and ,", "mass_first": "attention to the first token (sink)",
    "mass_sep_from_sep": "attention of [SEP] to [SEP]", "mass_sep_from_other": "attention of other tokens to [SEP]",
    "entropy": "how widely it spreads (entropy)", "entropy_from_cls": "how widely [CLS] spreads (entropy)",
    "entropy_uniform": "entropy if spread evenly", "mean_distance": "how far it looks",
    "head_map_x": "place in the map of heads, from the left", "head_map_y": "place in the map of heads, from below",
    "cluster": "group of similar heads", "behaviour": "named behaviour", "head_role": "main role",
    "streaming_change": "how much its output changes with only first and recent tokens",
    "streaming_mass": "attention to first and recent tokens", "streaming_uniform": "the same if spread evenly",
    "head_gate": "importance to the loss",
    **{f"token_class_mass:{name}": f"attention to {name}s" for name in ("noun", "verb", "pronoun", "negation")},
    "token_class_mass:subject": "attention to subjects (where tokens look, not the relation)",
    "token_class_mass:object": "attention to objects (where tokens look, not the relation)",
    "token_class_mass:cls": "attention to [CLS], as a class", "token_class_mass:sep": "attention to [SEP], as a class",
}  # fmt: skip
"""The names of statistics of heads that describe where attention goes, by key."""

_SPEECH = {
    "ADJ": "adjective", "ADP": "preposition", "ADV": "adverb", "AUX": "auxiliary", "CCONJ": "‘and’ or ‘or’",
    "DET": "article", "INTJ": "interjection", "NOUN": "noun", "NUM": "number", "PART": "particle", "PRON": "pronoun",
    "PROPN": "name", "PUNCT": "punctuation mark", "SCONJ": "conjunction", "SYM": "symbol", "VERB": "verb",
    "X": "word of no class", "open class": "content word",
}  # fmt: skip
_SIDES = {  # the words before a word of Arabic or Hebrew are to its right
    "left": "before the word", "right": "after the word",
    "either, left first": "before or after the word", "either, right first": "after or before the word",
}  # fmt: skip
_RULES = {
    "untrained": "the same model with random weights", "rules": "simple rules that know the mentions",
    "all": "every word of the sentence", "chance": "a guess among the candidates", "uniform": "even attention",
    "random": "a random token", "blind": "pointing blindly",
}  # fmt: skip

TERMS = {
    "head": "One of the parallel attention units of a layer. 3-1 is layer 3, head 1, both counted from 1; L2H0, "
    "counted from 0, is the same head.",
    "held out": "The head was chosen on one half of the texts and scored on the other, so this number is not flattered "
    "by the choice.",
    "all texts": "Measured on all texts, also those on which heads are chosen: a little optimistic.",
    "rule": "The best fixed rule that needs no model, chosen on the same half of the texts as the head. A head is only "
    "worth reporting if it beats it.",
    "untrained": "The best head of the same model with random weights: what the architecture gives for free.",
    "permuted": "The same head when the annotation is moved to other places of its text: what comes by chance.",
    "interval": "The 95 % interval, which allows for texts that differ.",
    "p": "The larger of two p-values, of chance and of no lift over some rival, corrected for the rows of the table.",
    "lift": "The score of the head less that of its strongest rival, on the same items.",
    "stands_out": "The head beats every rule, the untrained model and chance, each beyond doubt (95 % interval of the "
    "difference above 0, p below 0.05), on 20 texts or more.",
    "does_not": "At least one rule without a model does as well, or nearly.",
    "undecided": "Too few texts, or permutations, to tell.",
    "not_yet": "No rule does as well. Whether the untrained model does is still to be measured.",
    "describes": "This number describes where attention goes. It has no right or wrong.",
}
"""The terms of the page, each with an explanation in a sentence or two."""


def gloss_row(key: str, direction: str = "", label: str = "", items: str = "items") -> RowName:
    """Return the plain name of a row of a score, with an explanation and an example if they are known.

    Args:
        key: The key of the row among the rows of all scores.
        direction: The direction in which the row is scored; by default, from the dependent to its syntactic head.
        label: The name of a row without a plain name, such as a row of your own.
        items: The name of the items of such a row.
    """
    code = key.removeprefix(RELATION)
    if key in ROWS:
        return ROWS[key]
    if not key.startswith(RELATION) or (relation := find_relation(code)) is None:
        return RowName(label or key, "", "", "it", items, "is right for {share} of {count} {items}")
    dependent, dependents, head, about, example = relation
    if direction != BACK:
        return RowName(f"{dependent} → {_add(head, 'its')}", about, example, _add(head, "the"), dependents)
    words, _, pairs = example.rpartition(": ")
    turned = ", ".join(" → ".join(reversed(pair.split(" → "))) for pair in pairs.split(", "))
    # "the noun it renames" becomes "noun": here, "it" would refer back to the dependent.
    known = re.split(r" (?:before )?(?:it|that)\b", head.removeprefix("the "))[0]
    # "measure of a noun" becomes "measure of it": the noun precedes it.
    own = re.sub(r"\b(?:an?|its) (?:light verb|noun|verb|word)(?= of any kind$| \(|$)", "it", dependent)
    own = f"{dependent} that depends on it" if dependent == known else own if own != dependent else f"its {dependent}"
    return RowName(f"{known} → {own}", about, f"{words}: {turned}", _add(head, "the"), dependents, FINDS_BACK)


def _add(word: str, article: str) -> str:
    return word if word.startswith("the ") else f"{article} {word}"


def gloss_statistic(key: str, label: str) -> str:
    """Return the plain name of a statistic of heads, or its label if it has no plain name."""
    return STATISTICS.get(key, label)


def gloss_distance(distance: int, distances: Sequence[int]) -> str:
    """Return a plain name for the attention to tokens from `distance` up to the next distance in `distances`."""
    if distance == 0:
        return "attention by distance: the token itself"
    further = [abs(other) for other in distances if other * distance > 0 and abs(other) > abs(distance)]
    reach = (
        f"{abs(distance)} or more"
        if not further
        else "–".join(dict.fromkeys([str(abs(distance)), str(min(further) - 1)]))
    )
    return f"attention by distance: {reach} {'back' if distance < 0 else 'ahead'}"


def gloss_rule(name: str, label: str, options: Mapping[str, str], direction: str = "") -> str:
    """Return the plain name of a rule with its chosen options, as a noun phrase.

    Args:
        name: The name of the rival.
        label: The label of the rival, for a rule without a plain name.
        options: The options that were chosen, by dimension.
        direction: The direction of the row. If it leads to the dependent (`BACK`), the sign of an offset is reversed.
    """
    match options:
        case {"offset": offset}:
            return _name_offset(-int(offset) if direction == BACK else int(offset))
        case {"side": side, "word_class": word_class}:
            *first, last = (_SPEECH.get(part, part) for part in word_class.split("/"))
            kind = f"{', '.join(first)} or {last}" if first else last
            look, *beside = side.partition(", else ")
            return f"the nearest {kind} {_SIDES.get(look, look)}{''.join(beside)}"
        case {"back": back}:
            return f"the token {back} back"
        case {"before": before, "behind": behind}:
            return f"{before} words before the negation and {behind} after it"
    known = label if options else _RULES.get(name, label)
    return f"the {known}" if known.startswith("nearest") else known


def _name_offset(offset: int) -> str:
    if abs(offset) == 1:
        return "the next word" if offset == 1 else "the word before"
    return f"the word {abs(offset)} {'ahead' if offset > 0 else 'back'}"
