"""A block of rows of the matrix: what it can answer, and what it refuses."""

import pytest
import torch

import tiny
from headscope.capture.model.model import Model
from headscope.capture.passes.stream import Stream
from headscope.capture.rows.attention import Attention
from headscope.errors import HeadscopeError


def test_words_are_refused_on_a_block_of_rows_and_answered_on_a_layer() -> None:
    model = Model.from_module(*tiny.make("bert"), name="bert")
    portion = next(iter(Stream(tiny.documents(7), (model,))))
    (batch,), (capture,) = portion.batches, portion.captures
    refusals = []

    def ask(attention: Attention) -> None:
        with pytest.raises(HeadscopeError, match="of a block of rows") as refused:
            attention.words()
        refusals.append(str(refused.value))

    capture.run(batch, ask, rows=3, fused=False)
    assert set(refusals) == {
        "attention between words was asked of a block of rows, and the tokens of a word may lie in two blocks; "
        'declare scope = "layer" in the reducer.'
    }
    shapes = []
    capture.run(batch, lambda attention: shapes.append(attention.words().attends.word.shape), whole=True)
    assert shapes == [torch.Size([len(batch.documents), 5, batch.words])] * len(shapes)
