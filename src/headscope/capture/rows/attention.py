"""Attention as an object whose methods compute statistics of its rows; it need not hold a matrix.

A reducer gets an `Attention` while the forward pass runs, and asks it for averages, entropies or single weights. Each
implementation computes the answers in its own way; the seam in `headscope.capture.forward.interface` chooses the
implementation.
"""

from functools import cached_property
from typing import Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor

from headscope.capture.tokens.batch import Batch, Tokens
from headscope.capture.tokens.words import Words
from headscope.errors import HeadscopeError


@runtime_checkable
class Attention(Protocol):
    """A block of query rows of one layer's attention, for one batch.

    Rows and keys of padding are included, and mean nothing; a reducer leaves them out by ``queries.real`` and
    ``keys.real``. With a view (`headscope.capture.passes.views`), a weight is the view's number for the key, as a share
    of the row.

    Attributes:
        layer: The number of the layer, counted from 1 in the order of the forward pass, separately for each attention
            type.
        attention_type: ``encoder``, ``decoder`` (also for a model with a decoder alone) or ``cross``.
        rows: The query positions whose rows are held; they may have a step.
        batch: The documents, their tokens and words.
        raised_tokens: The result of `raised`; None if nobody reads logits.
        value: The result of `values`; None for a view, and if only the weights can be seen.
    """

    layer: int
    attention_type: str
    rows: slice
    batch: Batch
    raised_tokens: Int[Tensor, "batch head key"] | None
    value: Float[Tensor, "batch key_head key width"] | None

    @property
    def queries(self) -> Tokens:
        """The tokens that attend, also those whose rows are not held."""
        return self.batch.queries(self.attention_type)

    @property
    def keys(self) -> Tokens:
        """The tokens that are attended to."""
        return self.batch.keys(self.attention_type)

    @property
    def heads(self) -> int:
        """The number of query heads."""

    def average(self, columns: Float[Tensor, "batch key feature"]) -> Float[Tensor, "batch head query feature"]:
        """Return the average of each column under the attention: sum_k a[q, k] * columns[k].

        The columns are for all keys, and the result is for the held rows.
        """

    def average_by_head(
        self, columns: Float[Tensor, "batch key_head key feature"]
    ) -> Float[Tensor, "batch head query feature"]:
        """Return averages as `average` does, with separate columns for each head or each key/value head."""

    def raised(self) -> Int[Tensor, "batch head key"]:
        """Return the id of the token of the text whose logit the value of each key raises most.

        It is -1 for special tokens and padding. `headscope.capture.forward.unembedding` says how values raise logits.

        Raises:
            HeadscopeError: No reducer has declared that it reads logits.
        """
        if self.raised_tokens is None:
            raise HeadscopeError(
                "which tokens the values raise was asked of attention, and nobody reads logits here; declare "
                "reads_logits = True in the reducer."
            )
        return self.raised_tokens

    def values(self) -> Float[Tensor, "batch key_head key width"]:
        """Return the values of each key/value head; their average is a head's output before the output projection.

        Query heads share them in order: of 6 heads with 2 key/value heads, the first 3 heads share the first.

        Raises:
            HeadscopeError: A view is shown in place of attention, or the model does not show its values.
        """
        return read_values(self.value)

    def output(self) -> Float[Tensor, "batch head query width"]:
        """Return the output of each head for each held row, before the output projection: the average of its values.

        Raises:
            HeadscopeError: As in `values`.
        """

    def entropy(self) -> Float[Tensor, "batch head query"]:
        """Return the entropy of each row, -sum_k a[q, k] ln a[q, k], in nats."""

    def at(self, keys: Int[Tensor, "batch query n"]) -> Float[Tensor, "batch head query n"]:
        """Return the weights of each held row on the n keys that `keys` gives for this row."""

    def largest(self, queries: Int[Tensor, "batch n"]) -> Int[Tensor, "batch head n"]:
        """Return the key with the largest weight for each of `queries`; the first key if several are equal.

        `queries` must be among the held rows. They are counted among all queries, not among the held rows.
        """

    def distances(
        self, edges: tuple[int, ...]
    ) -> tuple[Float[Tensor, "batch head query bucket"], Float[Tensor, "batch head query"]]:
        """Return the attention of each query to each bucket of distance, and its mean distance, in tokens.

        Args:
            edges: The distances at which a bucket begins, from 1 upwards. There is one bucket for each edge before the
                query, one for each edge after it, and one for the token itself
                (`headscope.capture.tokens.distance.names`).
        """

    def visible(self) -> Float[Tensor, "batch query"]:
        """Return the number of keys that each query may attend to under the model's mask."""

    def weights(self) -> Float[Tensor, "batch head query key"]:
        """Return the matrix of weights; call this only in a reducer that truly needs the matrix."""

    def words(self) -> Words:
        """Return the attention between words, without the diagonal and special tokens; all rows must be held.

        Raises:
            HeadscopeError: Not all rows of the layer are held.
        """
        return self._words

    @cached_property
    def _words(self) -> Words:
        """The result of `words`, computed once."""
        if self.rows != slice(0, self.queries.length):
            raise HeadscopeError(
                "attention between words was asked of a block of rows, and the tokens of a word may lie in two blocks; "
                'declare scope = "layer" in the reducer.'
            )
        return Words.from_average(self.average, self.queries.word[:, self.rows], self.keys.word, self.batch.words)


def read_values(values: Float[Tensor, "batch head token width"] | None) -> Float[Tensor, "batch head token width"]:
    """Return values or outputs unchanged, or raise an error if they are None.

    Raises:
        HeadscopeError: A view is shown, or the model does not show its values, so there are none.
    """
    if values is None:
        raise HeadscopeError(
            "the values were asked of a view, or of a model of which only the weights can be seen; declare "
            "reads_values = True in the reducer, and measure attention itself in a model that can be captured."
        )
    return values
