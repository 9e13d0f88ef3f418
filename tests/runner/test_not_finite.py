"""Weights that are NaN for some texts: these are left out and counted, and many of them are refused."""

import re

import pytest
import torch
import xarray as xr

import tiny
from headscope.capture.model.model import Model
from headscope.corpora import Document
from headscope.corpora.summary import summarize
from headscope.errors import ModelError
from headscope.reducers.relations import Relations
from headscope.runner import Plan, measure
from headscope.runner.completed_table import NOT_FINITE
from headscope.runner.example_texts import read_texts

BAD = "house"


def damaged(family: str) -> Model:
    """A model for which every text with a certain word is NaN, whatever stands beside it."""
    module, tokenizer = tiny.make(family)
    (*_, token) = (id for id in tokenizer([BAD], is_split_into_words=True, add_special_tokens=False)["input_ids"])
    with torch.no_grad():
        module.get_input_embeddings().weight[token] = torch.nan
    return Model.from_module(module, tokenizer, name=family)


def documents(count: int, bad: tuple[int, ...]) -> list[Document]:
    texts = [document for document in tiny.documents(3 * count) if BAD not in document.words and document.words]
    spoilt = [Document(f"bad {place}", (*texts[place].words, BAD)) for place in bad]
    return spoilt + texts[: count - len(bad)]


@pytest.mark.parametrize("plan", [Plan(), Plan(batch_tokens=1), Plan(batch_tokens=31), Plan(fused=True)])
@pytest.mark.parametrize("family", ["bert", "llama", "bart"])
def test_texts_that_are_not_finite_are_left_out_and_counted(family: str, plan: Plan) -> None:
    corpus, model = documents(37, (2, 3)), damaged(family)
    # One reducer for both, since two texts fewer are in other folds.
    reducers = ["surface", Relations.for_corpus(summarize(corpus))]
    table = measure(model, corpus, reducers, plan=plan)
    assert table.attrs["skipped"] == f'{{"{NOT_FINITE}": 2}}'
    assert table.attrs["documents"] == 35
    rest = measure(model, corpus[2:], reducers, plan=plan)
    xr.testing.assert_allclose(table.drop_attrs(), rest.drop_attrs(), rtol=0, atol=2e-6)
    assert all(values.notnull().any() for values in table[["entropy", "relation_accuracy"]].data_vars.values())


def test_many_are_refused() -> None:
    with pytest.raises(ModelError) as refused:
        measure(damaged("bert"), documents(17, (2, 3)), ["surface"])
    assert str(refused.value) == (
        "the outputs of 'bert' are not finite (NaN or infinite) for 2 of 17 documents; its weights are damaged, or too "
        "large for half precision: give whole weights, or load it in float32."
    )


def test_a_model_that_is_finite_for_no_text_is_refused() -> None:
    with pytest.raises(ModelError) as refused:
        measure(damaged("bert"), documents(2, (2, 3)), ["surface"])
    assert re.fullmatch(
        r"the outputs of 'bert' are not finite \(NaN or infinite\) for 'bad \d' and 1 documents of its batch; its "
        r"weights are damaged, or too large for half precision: give whole weights, or load it in float32\.",
        str(refused.value),
    )


def test_texts_that_are_not_finite_are_not_among_the_examples() -> None:
    corpus = documents(17, (2, 3))
    assert [text.id for text in read_texts(damaged("bert"), corpus, Plan())] == [each.id for each in corpus[2:]]
