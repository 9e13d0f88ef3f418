"""Texts apart: what the heads score on each of them is what they score on it alone; the maps are the model's own."""

from functools import cache

import numpy as np
import pytest
import torch
from torch.nn import functional

import laws
import own
import rivals
import tiny
from headscope.capture.model.model import Model
from headscope.corpora import Document, summarize
from headscope.examples import STEPS
from headscope.runner import Plan, resolve_reducers
from headscope.runner.example_texts import measure_apart, read_texts
from plain_reducers import OF_ONE_MODEL

RETURNED = {
    "bert": {"encoder": "attentions"},
    "llama": {"decoder": "attentions"},
    "bart": {"encoder": "encoder_attentions", "decoder": "decoder_attentions", "cross": "cross_attentions"},
}
"""Where transformers returns the weights of each attention type."""

DOCUMENTS = rivals.add_rivals(tiny.documents_with_roles(13))
EVERY = (*OF_ONE_MODEL, *own.OWN)


@cache
def model(family: str) -> Model:
    return Model.from_module(*tiny.make(family), name=family)


@pytest.mark.parametrize("family", ["bert", "gemma2"])
def test_a_document_scores_apart_what_it_scores_alone(family: str) -> None:
    reducers = [reducer for reducer in resolve_reducers(list(EVERY), summarize(DOCUMENTS)) if reducer.reports_heads]
    assert len(reducers) > 5
    ((part, apart),) = measure_apart(model(family), DOCUMENTS, reducers, Plan(batch_tokens=53))
    assert part == DOCUMENTS
    scores = [score for reducer in reducers for score in reducer.scores if score.has_report]
    for fold in (0, 2, 7, 11):
        done = laws.add_up(model(family), [DOCUMENTS[fold]], reducers, Plan())
        alone = laws.tabulate_sums(done, model(family), reducers)
        for name in {name for score in scores for name in (*score.numerator, *score.denominator)} & {*alone.data_vars}:
            wanted = alone[name].sum("fold")  # its rows are in another order
            seen = apart[name].isel(fold=fold).sel({dim: wanted[dim] for dim in wanted.indexes})
            np.testing.assert_allclose(seen, wanted, atol=2e-6, rtol=1e-5, err_msg=name)


def test_more_documents_than_folds_are_measured_in_parts() -> None:
    documents = tiny.documents(131)
    reducers = resolve_reducers(["relations"], summarize(documents))
    parts = list(measure_apart(model("bert"), documents, reducers, Plan()))
    assert [document.id for part, _ in parts for document in part] == [document.id for document in documents]
    links = [int(apart["fold_link"].sel(relation="obj").isel(fold=place)) for part, apart in parts
             for place in range(len(part))]  # fmt: skip
    assert links == [sum(link.label == "obj" for link in document.links) for document in documents]


@pytest.mark.parametrize("family", ["bert", "llama", "bart"])
def test_the_maps_are_what_the_model_returns(family: str) -> None:
    documents = [document for document in tiny.documents(11) if document.boundary is None]
    texts = read_texts(model(family), documents, Plan(batch_tokens=47))
    assert [text.id for text in texts] == [document.id for document in documents]
    module, tokenizer = tiny.make(family)
    module.set_attn_implementation("eager")
    for text, document in zip(texts, documents, strict=True):
        encoded = tokenizer([list(document.words)], is_split_into_words=True, return_tensors="pt")
        with torch.no_grad():
            started = model(family).start_id
            ids = encoded.input_ids
            decoder = {} if started is None else {"decoder_input_ids": functional.pad(ids, (1, 0), value=started)}
            outputs = module(**encoded, **decoder, output_attentions=True)
        returned = {kind: outputs[name] for kind, name in RETURNED[family].items()}
        assert [*text.weights] == [*returned]
        for kind, attentions in returned.items():
            naive = torch.stack([layer[0] for layer in attentions]).numpy()
            assert text.weights[kind].shape == naive.shape
            np.testing.assert_allclose(text.weights[kind] / STEPS, naive, atol=0.5 / STEPS + 1e-5)
            assert text.weights[kind].shape[-2:] == text.shape(kind)
        words = tuple(-1 if word is None else word for word in encoded.word_ids(0))
        for name, side in text.sides.items():
            assert side.token_words == ((-1, *words) if started and name == "decoder" else words)
            assert len(side.tokens) == len(side.token_words)
        assert text.words == document.words
        assert text.links == tuple((link.source, link.target, link.label) for link in document.links)


def test_documents_that_are_too_long_are_left_out_or_cut() -> None:
    long = Document("long", tuple("the dog sees a cat".split()) * 7)
    short = Document("short", ("the", "dog"))
    assert [text.id for text in read_texts(model("bert"), [long, short], Plan(max_tokens=17))] == ["short"]
    (cut,) = read_texts(model("bert"), [long], Plan(max_tokens=17, cut=True))
    assert cut.words == long.words[:15]
    assert cut.weights["encoder"].shape == (2, 5, 17, 17)
