"""Scores whose items are right or wrong one by one, such as links: what the page of an atlas marks in a sentence."""

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
    """A reducer that says of each item of its first score, in each direction, whether a head gets it right."""

    scores: ClassVar[tuple[Score, ...]]

    def prepare(self, batch: Batch, attention_type: str) -> Any:
        """The facts of a batch, as of every reducer."""

    def list_items(self, facts: Any) -> list[tuple[int, Item]]:
        """The items of a batch, each behind the place of its document."""

    def find_counting(self, facts: Any) -> Bool[Tensor, "item direction"]:
        """Where each item counts."""

    def judge(self, facts: Any, words: Words) -> Bool[Tensor, "item head direction"]:
        """Where each head gets each item right."""

    def pick(
        self, document: Document, item: Item, direction: int, rule: str, options: Mapping[str, str]
    ) -> tuple[int, int] | None:
        """The word from which a rule leads, and the one to which it does or -1; None if there is no such rule.

        Args:
            document: whose words they are.
            item: of the document.
            direction: the place of the direction in which the item is scored.
            rule: the name of a rival of the first score.
            options: those that were chosen, by dimension.
        """
