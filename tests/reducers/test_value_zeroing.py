"""Reducers through value zeroing: what changes at a token where a head does not get the value of another."""

import json

import numpy as np
import pytest
import torch

import edited
import tiny
import witnesses
from headscope.capture.forward.interface import Capture
from headscope.capture.model.model import Model
from headscope.capture.passes.through import see_through
from headscope.capture.passes.views import VIEWS
from headscope.capture.rows.attention import Attention
from headscope.corpora import Document
from headscope.errors import ModelError
from headscope.runner import Plan, measure

DOCUMENTS = tiny.documents(3)
VIEW = "value-zeroing"
FAMILIES = ("bert", "gpt2", "llama", "mistral", "modernbert")
"""Norms behind and before the sum, grouped queries, and windows of decoders and encoders."""


def make(family: str) -> tuple[Model, torch.nn.Module]:
    """A model in float64, where there is one: cosines of nearly the same vectors need the digits."""
    module, tokenizer = tiny.make(family)
    module = module if family == "modernbert" else module.double()  # whose masks overflow
    return Model.from_module(module, tokenizer, name=family), module


@pytest.mark.parametrize("family", FAMILIES)
def test_a_value_is_taken_from_one_head_and_the_block_run_again(family: str) -> None:
    model, module = make(family)
    batch = edited.read(model, DOCUMENTS)
    ours: dict[int, Attention] = {}

    def observe(attention: Attention) -> None:
        ours[attention.layer] = attention

    see_through(VIEW, Capture.verified(model, batch), batch).run(batch, observe, rows=3)
    far = 0.0
    for place, document in enumerate(batch.documents):
        (plain,) = witnesses.see(module, model.tokenizer, document).values()
        (seen,) = witnesses.see_zeroed(module, model.tokenizer, document).values()
        length = len(seen.keys)
        for layer, expected in enumerate(seen.weights, start=1):
            rows = ours[layer].weights()[place, :, :length]
            np.testing.assert_allclose(rows[:, :, :length], expected, atol=1e-4, rtol=0)
            assert not rows[:, :, length:].any()
            far = max(far, abs(expected - plain.weights[layer - 1]).max())
    assert far > 0.1  # the view is not the weights


@pytest.mark.full
def test_reducers_count_it() -> None:
    model, module = make("llama")
    seen = [
        next(iter(witnesses.see_zeroed(module, model.tokenizer, document).values())) for document in DOCUMENTS
    ]  # fmt: skip
    table = measure(model, DOCUMENTS, ["surface", "relations"], plan=Plan(view=VIEW))
    for name, expected in witnesses.surface(seen).items():
        np.testing.assert_allclose(table[name], expected, atol=1e-3, err_msg=name)
    assert table["mass_sep"].attrs["units"] == "share of the change"
    assert "cosine distance" in table.attrs["view_shows"]


@pytest.mark.parametrize("family", ["t5", "bart", "gpt_oss"])
def test_rows_are_shares_of_what_may_be_seen(family: str) -> None:
    """Where the decoder has two kinds of attention in a block, and where a sink that is no token takes some."""
    subject = edited.make(family)

    def observe(attention: Attention) -> None:
        rows = attention.weights().movedim(1, -1)
        real = attention.queries.real
        torch.testing.assert_close(
            rows[real].sum(-2), torch.ones(()).expand(rows[real].sum(-2).shape), atol=1e-5, rtol=0
        )
        kinds.add(attention.attention_type)

    kinds: set[str] = set()
    capture = Capture.verified(subject.model, subject.batch)
    see_through(VIEW, capture, subject.batch).run(subject.batch, observe)
    assert kinds == set(subject.model.layers)


def test_a_block_that_does_more_is_refused() -> None:
    subject = edited.make("albert")
    with pytest.raises(ModelError, match="more than to add the projected output of its heads"):
        see_through(VIEW, Capture.verified(subject.model, subject.batch), subject.batch)


def test_longer_texts_are_left_out_and_counted() -> None:
    subject = edited.make("llama")
    long = Document("long", ("dog",) * VIEWS[VIEW].max_tokens)
    table = measure(subject.model, [long, *DOCUMENTS], ["surface"], plan=Plan(view=VIEW, cut=False))
    assert json.loads(table.attrs["skipped"]) == {f"documents longer than {VIEWS[VIEW].max_tokens} tokens": 1}
    assert table.attrs["documents"] == len(DOCUMENTS)
