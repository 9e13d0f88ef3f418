"""Attention without its matrix gives the answers of the matrix, and is used only where it may be."""

import re
from collections import Counter
from itertools import product

import pytest
import torch

import tiny
from headscope.capture.attention import Attention, DenseRows
from headscope.capture.batch import Batch, batches
from headscope.capture.fused import FusedRows
from headscope.capture.interface import Capture
from headscope.capture.model import Model
from headscope.errors import ModelError

DOCUMENTS = tiny.documents(7)
PLAIN = ("bert", "roberta", "distilbert", "electra", "albert", "gpt2", "llama", "qwen3", "bart")
MORE_THAN_PLAIN = ("gemma2", "gpt_oss", "t5")  # softcap, sinks, position biases


def of(family: str) -> tuple[Model, Batch]:
    model = Model.of(*tiny.make(family), name=family)
    (batch,) = batches(model, DOCUMENTS, batch_tokens=10**6, skipped=Counter())
    return model, batch


def seen(model: Model, batch: Batch, **how) -> list[Attention]:
    found: list[Attention] = []
    Capture(model, "interface").observe(batch, found.append, **how)
    return found


def real(attention: Attention, values: torch.Tensor) -> torch.Tensor:
    """Rows of tokens, without padding."""
    return values.transpose(1, 2)[attention.queries.real]


@pytest.mark.parametrize("family", PLAIN)
def test_the_answers_are_those_of_the_matrix(family: str) -> None:
    model, batch = of(family)
    for dense, fused in zip(seen(model, batch, fused=False), seen(model, batch, fused=True), strict=True):
        assert (type(dense), type(fused)) == (DenseRows, FusedRows)
        assert (dense.stack, dense.layer, dense.rows, dense.heads) == (
            fused.stack, fused.layer, fused.rows, fused.heads,
        )  # fmt: skip
        close = {"atol": 1e-5, "rtol": 0}
        torch.testing.assert_close(real(fused, fused.weights()), real(dense, dense.weights()), **close)
        torch.testing.assert_close(
            real(fused, fused.entropy()[..., None]), real(dense, dense.entropy()[..., None]), **close
        )
        # More columns than a head is wide, and a number that its width does not divide.
        columns = torch.rand(len(DOCUMENTS), fused.keys.length, 17, generator=torch.Generator().manual_seed(3))
        torch.testing.assert_close(real(fused, fused.average(columns)), real(dense, dense.average(columns)), **close)
        keys = torch.randint(
            fused.keys.length, (len(DOCUMENTS), fused.queries.length, 3), generator=torch.Generator().manual_seed(5)
        )
        torch.testing.assert_close(real(fused, fused.at(keys)), real(dense, dense.at(keys)), **close)
        visible = [attention.visible()[attention.queries.real] for attention in (fused, dense)]
        torch.testing.assert_close(*visible)


@pytest.mark.parametrize("family", PLAIN)
def test_it_agrees_with_float64(family: str) -> None:
    model, batch = of(family)
    for fused in seen(model, batch, fused=True):
        assert isinstance(fused, FusedRows)
        entropy = fused.entropy()
        groups = fused.heads // fused.key.shape[1]
        for b, h in product(range(len(DOCUMENTS)), range(fused.heads)):
            keys = int(fused.keys.real[b].sum())
            for q in range(int(fused.queries.real[b].sum())):
                last = q + 1 if fused.causal else keys
                scores = fused.scale * fused.key[b, h // groups, :last].double() @ fused.query[b, h, q].double()
                expected = torch.special.entr(scores.softmax(0)).sum()
                assert abs(entropy[b, h, q] - expected) < 1e-5


@pytest.mark.parametrize("family", MORE_THAN_PLAIN)
def test_scores_that_are_more_than_plain_keep_their_matrix(family: str) -> None:
    assert {type(attention) for attention in seen(*of(family), fused=True)} == {DenseRows}


def test_windows_keep_their_matrix_and_other_layers_do_not() -> None:
    types = {attention.layer: type(attention) for attention in seen(*of("modernbert"), fused=True)}
    assert types == {1: FusedRows, 2: DenseRows, 3: DenseRows}


def test_short_texts_and_whole_matrices_are_measured_with_the_matrix() -> None:
    model, batch = of("bert")
    assert {type(attention) for attention in seen(model, batch)} == {DenseRows}
    assert {type(attention) for attention in seen(model, batch, fused=True, whole=True)} == {DenseRows}


def test_nothing_as_large_as_the_matrix_is_made() -> None:
    """For a text of 1,999 tokens the matrix of one layer would be 24 million numbers; the mask one of 4 million."""
    from transformers import LlamaConfig, LlamaModel

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=317, hidden_size=84, intermediate_size=37, num_hidden_layers=2, num_attention_heads=6,
        num_key_value_heads=2, head_dim=14, max_position_embeddings=2000,
    )  # fmt: skip
    _, tokenizer = tiny.make("llama")
    model = Model.of(LlamaModel(config), tokenizer)
    ids = torch.randint(3, 300, (1, 1999), generator=torch.Generator().manual_seed(7))
    (short,) = batches(model, DOCUMENTS[:1], skipped=Counter())
    batch = long_batch(short, ids)
    largest = 0

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
            nonlocal largest
            made = function(*arguments, **(keywords or {}))
            sizes = [
                t.untyped_storage().nbytes() // 4 for t in torch.utils._pytree.tree_leaves(made) if torch.is_tensor(t)
            ]
            largest = max([largest, *sizes])
            return made

    attentions = []
    with Watch():
        Capture(model, "interface").observe(batch, lambda a: attentions.append((a, a.entropy(), a.visible())))
    assert {type(a) for a, _, _ in attentions} == {FusedRows}
    assert largest < 1999 * 1999 // 4


def long_batch(like: Batch, ids: torch.Tensor) -> Batch:
    from dataclasses import replace

    real = torch.ones_like(ids, dtype=torch.bool)
    position = torch.arange(ids.shape[1])[None]
    tokens = replace(
        like.encoder, ids=ids, real=real, word=position, position=position, cls=~real, sep=~real, punctuation=~real
    )
    return replace(like, encoder=tokens, inputs={"input_ids": ids, "attention_mask": real.long()})


def test_a_term_that_nobody_announced_is_noticed(monkeypatch) -> None:
    """A model whose own function adds to the scores behind our back must not be measured as if it did not."""
    from transformers.models.bert import modeling_bert

    honest = modeling_bert.eager_attention_forward

    def biased(module, query, key, value, mask, scaling=None, **terms):
        return honest(module, query, key, value, mask, scaling=1.01 * scaling, **terms)

    model, batch = of("bert")
    monkeypatch.setattr(modeling_bert, "eager_attention_forward", biased)
    with pytest.raises(ModelError) as refused:
        seen(model, batch, fused=True)
    assert re.fullmatch(
        r"layer 1 without its matrix of 'bert' change by [\d.e-]+ under observation, more than [\d.e-]+; "
        "what was captured is not what the model computes.",
        str(refused.value),
    )
