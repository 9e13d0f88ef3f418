"""Reducers whose items, such as links, are right or wrong one by one; the page of an atlas marks them in sentences."""

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol, runtime_checkable

from jaxtyping import Bool
from torch import Tensor

from headscope.capture.tokens.batch import Batch
from headscope.capture.tokens.words import Words
from headscope.corpora.document import Document
from headscope.examples import Item
from headscope.score import Score


@runtime_checkable
class ItemReducer(Protocol):
    """A reducer that judges, for each item of its first score and each direction, whether a head gets it right."""

    scores: ClassVar[tuple[Score, ...]]

    def prepare(self, batch: Batch, attention_type: str) -> Any:
        """Return the facts of a batch, as every reducer does."""

    def list_items(self, facts: Any) -> list[tuple[int, Item]]:
        """Return the items of a batch, as pairs of a document index and an item."""

    def find_counting(self, facts: Any) -> Bool[Tensor, "item direction"]:
        """Return whether each item counts in each direction."""

    def judge(self, facts: Any, words: Words) -> Bool[Tensor, "item head direction"]:
        """Return whether each head gets each item right in each direction."""

    def pick(
        self, document: Document, item: Item, direction: int, rule: str, options: Mapping[str, str]
    ) -> tuple[int, int] | None:
        """Return the word at which a rule starts, and the word that it picks or -1; None for an unknown rule.

        Args:
            document: The document of the item.
            item: An item of the document.
            direction: The index of the direction in which the item is scored.
            rule: The name of a rival of the first score.
            options: The options of the rival that were chosen, by dimension.
        """
