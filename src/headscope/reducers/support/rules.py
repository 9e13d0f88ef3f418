"""A user's own rule, which predicts a word for each word of a document, as a rival of heads."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Int

from headscope.corpora.document import Document, Link
from headscope.errors import HeadscopeError
from headscope.reducers.support.word_class import name_function

NONE = -1
"""The index in place of a word, if a rule predicts no word."""

ENDS = ("source", "target")
"""The ends of a link from which a rule may lead to the other end."""


@dataclass(frozen=True, repr=False)
class Rule:
    """A rule that predicts one word for each word of a document, without the model.

    Attributes:
        name: A phrase such as ``nearest verb``, which reports show.
        predict: A function that returns, for each word of a document, the index of the word that the rule predicts,
            from 0; None or -1 if it predicts none. It must return the same for the same document.

    Raises:
        HeadscopeError: The name is empty, or `predict` is not a function.
    """

    name: str
    predict: Callable[[Document], Iterable[int | None]]

    def __post_init__(self) -> None:
        """Raise an error if the name is empty or `predict` cannot be called."""
        if not self.name.strip() or not callable(self.predict):
            raise HeadscopeError(
                f"the rule {self.name!r} has {self.predict!r} to predict words; give it a name, and a function from a "
                "document to the index of a word, or None, for each of its words."
            )

    def __repr__(self) -> str:
        """Return the name of the rule and of the function, since the function's address differs in every run."""
        return f"Rule(name={self.name!r}, predict={name_function(self.predict)})"

    def find(self, document: Document) -> Int[np.ndarray, " word"]:
        """Return the word that the rule predicts for each word of a document; -1 if it predicts none.

        Raises:
            HeadscopeError: The function returns something else, or a word outside of the document.
        """
        predicted: Any = self.predict(document)
        count = len(document.words)
        words = list(predicted) if isinstance(predicted, Iterable) else None
        if words is None or len(words) != count:
            shown = repr(predicted) if words is None else f"{len(words)} predictions"
            raise HeadscopeError(
                f"the rule {self.name!r} gave {shown} for the document {document.id!r}, which has {count} words; "
                "return a list with the index of a word, or None, for each of them."
            )
        words = [NONE if word is None else word for word in words]
        for place, word in enumerate(words):
            if not isinstance(word, int | np.integer) or isinstance(word, bool) or not NONE <= word < count:
                raise HeadscopeError(
                    f"the rule {self.name!r} gave {word!r} for word {place} of the document {document.id!r}, which has "
                    f"{count} words; return indices from 0 to {count - 1}, or None where it predicts none."
                )
        return np.array(words, dtype=np.int64)


def find_by_rules(
    rules: Sequence[Rule], document: Document, links: Sequence[Link]
) -> tuple[Bool[np.ndarray, "link rule end"], Bool[np.ndarray, "link rule end"]]:
    """Return whether each rule leads from each end of a link to the other end, and whether it leads to any word.

    A rule sees the words as they are annotated. From a unit of several words it leads to each word outside of the unit
    to which it leads from one of its words.
    """
    ends = np.array([(link.source, link.target) for link in links], dtype=np.int64).reshape(-1, 1, len(ENDS))
    units = np.array(document.unit_numbers, dtype=np.int64)
    by_rule = [rule.find(document.original) for rule in rules]
    predicted = np.array(by_rule, dtype=np.int64).reshape(-1, len(units))
    first = np.searchsorted(units, np.arange(len(document.words) + 1))
    right = np.zeros((len(links), len(rules), len(ENDS)), dtype=bool)
    predicts = np.zeros_like(right)
    for place in range(int(np.diff(first).max(initial=0))):
        word = np.minimum(first[ends] + place, first[ends + 1] - 1)
        leads_to = predicted[np.arange(len(rules))[:, None], word]
        right |= (leads_to != NONE) & (units[leads_to] == ends[..., ::-1])
        # A prediction within a unit leads nowhere.
        predicts |= (leads_to != NONE) & ((document.units is None) | (units[leads_to] != ends))
    return right, predicts


def refuse_silent_rules(rules: Sequence[Rule], predicted: Int[np.ndarray, " rule_and_end"]) -> None:
    """Raise an error if a rule predicts no word for either end of any link, so that it is not a rival.

    Raises:
        HeadscopeError: A rule predicts no word.
    """
    for rule, count in zip(rules, predicted.reshape(-1, len(ENDS)), strict=True):
        if not count.any():
            raise HeadscopeError(
                f"the rule {rule.name!r} predicts no word for either end of any link of the corpus; correct its "
                "function, or leave it out."
            )
