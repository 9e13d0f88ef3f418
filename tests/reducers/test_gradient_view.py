"""Reducers through the views of gradients: of what the loss depends on in a row, how much is each token's."""

import json
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import headed
import laws
import rivals
import tiny
import tuned
import witnesses
from headscope.capture.forward.interface import Capture
from headscope.capture.forward.loss import choose_masked, make_loss
from headscope.capture.model.block_sizes import BlockSizes
from headscope.capture.model.model import Model
from headscope.capture.passes.through import see_through
from headscope.capture.rows.attention import Attention
from headscope.capture.tokens.align import Alignment
from headscope.capture.tokens.batch import collate
from headscope.corpora import Document, summarize
from headscope.errors import HeadscopeError, ModelError
from headscope.reducers import Reducer
from headscope.reducers.support.permutations import with_permutations
from headscope.runner import Plan, measure, resolve_reducers
from plain_reducers import OF_ONE_MODEL
from reducers.test_gradients import Sizes

DOCUMENTS = tiny.documents(7)
VIEWS = pytest.mark.parametrize("view", ["gradient", "gradient-x-attention"])
HEADS = (
    ("bert", "masked-lm"), ("bert", "classification"), ("gpt2", "causal-lm"), ("llama", "causal-lm"),
    ("mistral", "causal-lm"), ("gpt_oss", "causal-lm"), ("bart", "causal-lm"),
)  # fmt: skip
"""Values of their own, side by side with queries, grouped, behind windows and sinks, and crossing over."""


@cache
def load(family: str, task: str) -> Model:
    return Model.from_module(*make(family, task), name=family)


def make(family: str, task: str) -> tuple:
    """Matrices less wide than tiny models have: the losses of transformers, and some norms, round to float32."""
    return headed.make(family, task, dtype=torch.float64, spread=0.5)


def find_masked(model: Model, task: str, document: Document) -> list[int]:
    """The places of the tokens that are masked, each text alone."""
    ((text,), _) = Alignment.for_model(model).align([document])
    words = [place for place, word in enumerate(text.word) if word >= 0]
    return choose_masked(text.ids, words) if task == "masked-lm" else []


@cache
def see(family: str, task: str, view: str, document: Document) -> dict[str, witnesses.Seen]:
    plain = witnesses.see(*tiny.make(family), document)
    exact, tokenizer = make(family, task)
    masked = find_masked(load(family, task), task, document)
    times = view == "gradient-x-attention"
    return witnesses.see_gradients(exact, tokenizer, task, plain, masked, times_attention=times)


@VIEWS
@pytest.mark.parametrize("rows", [None, 3], ids=["", "3 rows"])
@pytest.mark.parametrize(("family", "task"), HEADS)
def test_a_row_has_the_shares_of_the_sizes_of_its_gradients(
    family: str, task: str, view: str, rows: int | None
) -> None:
    model = load(family, task)
    batch = collate(model, Alignment.for_model(model).align(DOCUMENTS)[0])
    capture = see_through(view, Capture.verified(model, batch), batch)
    posed, loss = make_loss(model, batch)
    blocks: dict[tuple[str, int], list[torch.Tensor]] = {}

    def observe(attention: Attention) -> None:
        blocks.setdefault((attention.attention_type, attention.layer), []).append(attention.weights())

    capture.run(posed, observe, loss=loss, rows=rows)
    for place, document in enumerate(batch.documents):
        for attention_type, seen in see(family, task, view, document).items():
            for layer, expected in enumerate(seen.weights, start=1):
                ours = torch.cat(blocks[attention_type, layer], dim=2)[place]
                assert torch.equal(ours[:, expected.shape[1] :], torch.zeros_like(ours[:, expected.shape[1] :]))
                # The norms and the losses of some families are float32 in any model.
                bound = 1e-6 if family == "bert" else 1e-5
                ours = ours[:, : expected.shape[1], : expected.shape[2]]
                np.testing.assert_allclose(ours, expected, atol=bound, rtol=0)
                sums = expected.sum(-1)
                assert (np.isclose(sums, 1) | (sums == 0)).all()


@VIEWS
@pytest.mark.parametrize(("family", "task"), [("bert", "masked-lm"), ("llama", "causal-lm")])
def test_reducers_count_them(family: str, task: str, view: str) -> None:
    seen = [next(iter(see(family, task, view, document).values())) for document in DOCUMENTS]
    table = measure(load(family, task), DOCUMENTS, ["surface", "relations", "classes"], plan=Plan(view=view))
    for name, expected in witnesses.surface(seen).items():
        np.testing.assert_allclose(table[name], expected, atol=1e-5, rtol=1e-6, err_msg=name)
    for name, expected in witnesses.relations(seen).items():
        row = table["relation_accuracy"].sel(relation=name, direction=list(witnesses.DIRECTIONS))
        np.testing.assert_allclose(row.transpose("layer", "head", "direction"), expected.accuracy)
    assert (table.attrs["view"], table.attrs["loss"]) == (view, task)
    assert all("with the matrix: the view needs it" in way for way in json.loads(table.attrs["paths"]))


def answering() -> tuple[list[Document], list[Reducer]]:
    """All reducers that read attention of one model, on documents for each."""
    documents = rivals.add_rivals(tiny.documents_with_roles(11))
    resolved = resolve_reducers(OF_ONE_MODEL, summarize(documents))
    return documents, [with_permutations(reducer, 7) for reducer in resolved]


@VIEWS
def test_every_reducer_of_one_model_answers(view: str) -> None:
    documents, reducers = answering()
    weights, table = (
        measure(load("bert", "tagging"), documents, reducers, plan=Plan(view=shown)) for shown in (None, view)
    )
    for reducer in reducers:
        own = measure(load("bert", "tagging"), documents, [reducer], plan=Plan(view=view))
        assert any(not weights[name].equals(table[name]) for name in own.data_vars), reducer.name


@VIEWS
@pytest.mark.parametrize(
    ("family", "task"),
    [("bert", "masked-lm"), ("llama", "causal-lm"), pytest.param("bart", "causal-lm", marks=pytest.mark.full)],
)
@settings(max_examples=3, deadline=None)
@given(plan=laws.PLANS, order=st.permutations(range(11)), cut=st.integers(1, 10))
def test_any_split_order_padding_batch_and_block(
    family: str, task: str, view: str, plan: Plan, order: list, cut: int
) -> None:
    documents, reducers = answering()
    model, how = load(family, task), {"rows": plan.rows, "fused": plan.fused, "batch_tokens": plan.batch_tokens}
    permuted = [documents[place] for place in order]
    sums = laws.add_up_parts(model, permuted, [cut], reducers, Plan(**how, view=view))
    done = laws.merge(sums[::-1])
    laws.assert_same(laws.tabulate_sums(done, model, reducers), expected(family, task, view))


@cache
def expected(family: str, task: str, view: str):
    documents, reducers = answering()
    return laws.tabulate_alone(load(family, task), documents, reducers, Plan(view=view))


@VIEWS
def test_two_models_have_no_loss_in_common(view: str) -> None:
    module, tokenizer = tiny.make("bert")
    before = Model.from_module(tuned.perturb(module, 5), tokenizer, name="before")
    with pytest.raises(HeadscopeError) as refused:
        measure(load("bert", "masked-lm"), DOCUMENTS, ["similarity"], plan=Plan(view=view), before=before)
    assert str(refused.value) == (
        f"the reducer `similarity` compares two models, which have no loss in common, so it has no view `{view}`; "
        "measure it apart, without --view or with --view norm."
    )


@VIEWS
def test_a_model_without_a_loss_or_without_the_interface_is_refused(view: str) -> None:
    with pytest.raises(ModelError) as refused:
        measure(Model.from_module(*tiny.make("bert"), name="bare"), DOCUMENTS, ["surface"], plan=Plan(view=view))
    assert str(refused.value) == (
        "gradients are of a loss, and 'bare' (BertModel) has no task head to give one; give weights with a head, or "
        "name its task (--task, or task= of headscope.load) if they have one."
    )
    other = Model.from_module(*headed.make("mpnet", "masked-lm"), name="other")
    with pytest.raises(ModelError) as refused:
        measure(other, DOCUMENTS, ["surface"], plan=Plan(view=view))
    assert str(refused.value) == (
        "the heads of 'other' (MPNetForMaskedLM) cannot be edited or differentiated: the model does not use "
        "transformers' attention interface; its attention can only be observed."
    )


@VIEWS
def test_nothing_of_size_query_times_key_is_made_for_a_long_text(view: str, monkeypatch) -> None:
    length = 4096
    body, tokenizer = tiny.make("llama")
    body.config.update({"num_hidden_layers": 1, "max_position_embeddings": length})
    tokenizer.model_max_length = length
    model = Model.from_module(headed.HEADS["llama", "causal-lm"](body.config), tokenizer, name="long")
    document = Document("long", ("dog", "sees", "the", ".") * (length // 4 - 1))
    monkeypatch.setattr(BlockSizes, "measure", lambda device: BlockSizes(weights=1 << 18))
    with Sizes() as sizes:
        table = measure(model, [document], ["surface"], plan=Plan(view=view))
    assert float(table["entropy"].min()) > 0
    assert sizes.largest < length**2 / 8
