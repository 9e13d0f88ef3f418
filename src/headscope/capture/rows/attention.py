"""Attention answers questions; it is not a matrix.

A reducer is handed an `Attention` while the forward pass runs, and asks it for averages, entropies
or single weights. How the answer is found is the business of the implementation, which the seam in
`headscope.capture.forward.interface` chooses.
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

    Rows and keys of padding are present and meaningless; a reducer leaves them out by
    ``queries.real`` and ``keys.real``. Through a view (`headscope.capture.passes.views`) a weight is what the view
    shows of the key, as a share of the row.

    Attributes:
        layer: counted from 1 in the order of the forward pass, in each attention type by itself.
        attention_type: ``encoder``, ``decoder`` (also of a model that is a decoder alone) or ``cross``.
        rows: the query positions held: those that follow each other, or every so manieth from the first on.
        batch: the documents, their tokens and words.
        raised_tokens: the answer to `raised`; None where nobody reads logits.
        value: the answer to `values`; None of a view, and where only the weights can be seen.
    """

    layer: int
    attention_type: str
    rows: slice
    batch: Batch
    raised_tokens: Int[Tensor, "batch head key"] | None
    value: Float[Tensor, "batch key_head key width"] | None

    @property
    def queries(self) -> Tokens:
        """The tokens that attend; all of them, of which `rows` are held."""
        return self.batch.queries(self.attention_type)

    @property
    def keys(self) -> Tokens:
        """The tokens that are attended to."""
        return self.batch.keys(self.attention_type)

    @property
    def heads(self) -> int:
        """The number of query heads."""

    def average(self, columns: Float[Tensor, "batch key feature"]) -> Float[Tensor, "batch head query feature"]:
        """The average of each column under the attention: sum_k a[q, k] * columns[k].

        The columns are of all keys, the result of the rows that are held.
        """

    def average_by_head(
        self, columns: Float[Tensor, "batch key_head key feature"]
    ) -> Float[Tensor, "batch head query feature"]:
        """The average of columns of which each head, or each key/value head, has its own; otherwise as `average`."""

    def raised(self) -> Int[Tensor, "batch head key"]:
        """The token of the text whose logit the value of each key raises most; -1 for special tokens and padding.

        What a value adds is read as `headscope.capture.forward.unembedding` says.

        Raises:
            HeadscopeError: no reducer has declared that it reads logits.
        """
        if self.raised_tokens is None:
            raise HeadscopeError(
                "which tokens the values raise was asked of attention, and nobody reads logits here; declare "
                "reads_logits = True in the reducer."
            )
        return self.raised_tokens

    def values(self) -> Float[Tensor, "batch key_head key width"]:
        """The values of each key/value head, of which the output of a head before the output projection is the average.

        Query heads share them in order: of 6 heads and 2 key/value heads, the first 3 have those of the first.

        Raises:
            HeadscopeError: a view is shown in place of attention, or the model shows no values.
        """
        return read_values(self.value)

    def output(self) -> Float[Tensor, "batch head query width"]:
        """What each head gives to each row that is held, before the output projection: the average of its values.

        Raises:
            HeadscopeError: as `values`.
        """

    def entropy(self) -> Float[Tensor, "batch head query"]:
        """-sum_k a[q, k] ln a[q, k], in nats."""

    def at(self, keys: Int[Tensor, "batch query n"]) -> Float[Tensor, "batch head query n"]:
        """The weights on chosen keys, n for each row that is held."""

    def largest(self, queries: Int[Tensor, "batch n"]) -> Int[Tensor, "batch head n"]:
        """The key on which the weight of some of the rows that are held is largest; the first of equals.

        The queries are counted among all of them, not among those that are held.
        """

    def distances(
        self, edges: tuple[int, ...]
    ) -> tuple[Float[Tensor, "batch head query bucket"], Float[Tensor, "batch head query"]]:
        """The mass of each query in each bucket of distance, and its mean distance, in tokens.

        Args:
            edges: distances at which a bucket begins, from 1 upwards; there are as many buckets before
                the query as after it, and one for the token itself (`headscope.capture.tokens.distance.names`).
        """

    def visible(self) -> Float[Tensor, "batch query"]:
        """The number of keys that each query may attend to under the model's mask."""

    def weights(self) -> Float[Tensor, "batch head query key"]:
        """The matrix itself: only where a reducer truly needs it."""

    def words(self) -> Words:
        """Return the attention between words, without the diagonal and special tokens; of a whole layer only.

        Raises:
            HeadscopeError: a block of rows is held and not a layer.
        """
        return self._words

    @cached_property
    def _words(self) -> Words:
        """The same, worked out once for all who ask."""
        if self.rows != slice(0, self.queries.length):
            raise HeadscopeError(
                "attention between words was asked of a block of rows, and the tokens of a word may lie in two blocks; "
                'declare scope = "layer" in the reducer.'
            )
        return Words.from_average(self.average, self.queries.word[:, self.rows], self.keys.word, self.batch.words)


def read_values(values: Float[Tensor, "batch head token width"] | None) -> Float[Tensor, "batch head token width"]:
    """The answer to `Attention.values` or `Attention.output`, if there is one.

    Raises:
        HeadscopeError: there is none.
    """
    if values is None:
        raise HeadscopeError(
            "the values were asked of a view, or of a model of which only the weights can be seen; declare "
            "reads_values = True in the reducer, and measure attention itself in a model that can be captured."
        )
    return values
