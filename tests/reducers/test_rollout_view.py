"""Reducers through rollout: the attention of each head, carried down to the input, with the sink and without it."""

import json

import numpy as np
import pytest
import torch

import edited
import planted
import tiny
import witnesses
from headscope.capture.forward.interface import Capture
from headscope.capture.model.model import Model
from headscope.capture.passes.through import see_through
from headscope.capture.passes.views import VIEWS
from headscope.capture.rows.attention import Attention
from headscope.corpora import Document
from headscope.runner import Plan, measure

DOCUMENTS = tiny.documents(7)
FAMILIES = ("bert", "gpt2", "llama", "mistral", "modernbert", "gpt_oss", "bart", "t5", "mpnet")
"""Encoders and decoders, with windows and with sinks that are no tokens, crossing over, and without the interface."""
SINK = pytest.mark.parametrize("sink", [True, False], ids=["with the sink", "without it"])


def view(sink: bool) -> str:
    return "rollout" if sink else "rollout-without-sink"


@SINK
@pytest.mark.parametrize("family", FAMILIES)
def test_a_row_is_carried_down_to_the_input(family: str, sink: bool) -> None:
    module, tokenizer = tiny.make(family)
    model = Model.from_module(module, tokenizer, name=family)
    batch = edited.read(model, DOCUMENTS)
    ours: dict[tuple[str, int], Attention] = {}

    def observe(attention: Attention) -> None:
        ours[attention.attention_type, attention.layer] = attention

    see_through(view(sink), Capture.verified(model, batch), batch).run(batch, observe, rows=3)
    far = 0.0
    for place, document in enumerate(batch.documents):
        plain = witnesses.see(module, tokenizer, document)
        for attention_type, seen in witnesses.see_rollout(plain, sink=sink).items():
            queries, keys = seen.weights.shape[2:]
            for layer, expected in enumerate(seen.weights, start=1):
                shown = ours[attention_type, layer]
                rows = shown.weights()[place, :, :queries]
                np.testing.assert_allclose(rows[:, :, :keys], expected, atol=1e-5, rtol=0)
                assert not rows[:, :, keys:].any()
                np.testing.assert_array_equal(shown.visible()[place, :queries], seen.visible[layer - 1].sum(-1))
                far = max(far, abs(expected - plain[attention_type].weights[layer - 1]).max())
    assert far > 0.1  # the view is not the weights


@SINK
@pytest.mark.parametrize("family", ["bert", "llama"])
def test_reducers_count_it(family: str, sink: bool) -> None:
    module, tokenizer = tiny.make(family)
    seen = [
        next(iter(witnesses.see_rollout(witnesses.see(module, tokenizer, document), sink=sink).values()))
        for document in DOCUMENTS
    ]
    table = measure(
        Model.from_module(module, tokenizer, name=family),
        DOCUMENTS,
        ["surface", "relations"],
        plan=Plan(view=view(sink)),
    )
    for name, expected in witnesses.surface(seen).items():
        np.testing.assert_allclose(table[name], expected, atol=1e-5, rtol=1e-6, err_msg=name)
    for name, expected in witnesses.relations(seen).items():
        row = table["relation_accuracy"].sel(relation=name, direction=list(witnesses.DIRECTIONS))
        np.testing.assert_allclose(row.transpose("layer", "head", "direction"), expected.accuracy)
    assert (table.attrs["view"], table.attrs["view_residual"]) == (view(sink), 0.5)
    assert "keeps 0.5 of a token in the residual stream" in table.attrs["view_shows"]
    assert table["mass_sep"].attrs["units"] == "share of the input"
    assert all("with the matrix: the view needs it" in way for way in json.loads(table.attrs["paths"]))


def test_heads_that_hand_on_what_the_token_before_has() -> None:
    """All heads of layers 1 and 2 attend to the token before, so that the bits of a path are tossed: a closed form."""
    model = planted.plant({(layer, head): planted.previous for layer in (1, 2) for head in range(1, planted.HEADS + 1)})
    batch = edited.read(model, planted.documents(3))
    shown: dict[int, torch.Tensor] = {}

    def observe(attention: Attention) -> None:
        shown[attention.layer] = attention.weights()

    see_through("rollout", Capture.verified(model, batch), batch).run(batch, observe)
    query = 4
    for layer, expected in ((1, [1.0]), (2, [0.5, 0.5])):
        for back, share in enumerate(expected, start=1):
            np.testing.assert_allclose(shown[layer][:, :, query, query - back], share, atol=1e-3)


def test_longer_texts_are_left_out_and_counted() -> None:
    limit = VIEWS["rollout"].max_tokens
    body, tokenizer = tiny.make("llama")
    body.config.update({"max_position_embeddings": 2 * limit})
    tokenizer.model_max_length = 2 * limit
    model = Model.from_module(type(body)(body.config), tokenizer, name="long")
    long = Document("long", ("dog",) * limit)
    table = measure(model, [long, *DOCUMENTS], ["surface"], plan=Plan(view="rollout", cut=False))
    assert json.loads(table.attrs["skipped"]) == {f"documents longer than {limit} tokens": 1}
    assert table.attrs["documents"] == len(DOCUMENTS)
