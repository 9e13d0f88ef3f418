"""The losses whose gradients are measured: what they are sums of is in `reducers/test_gradients`."""

from collections import Counter
from dataclasses import replace

import pytest
import torch
from transformers.models.auto import modeling_auto

import headed
import tiny
from headscope.capture.forward.loss import MASKED, check_loss, choose_masked, find_task, make_loss
from headscope.capture.model.model import Model
from headscope.capture.model.model_names import TASKS as NAMES
from headscope.capture.open.loading import TASKS, load
from headscope.capture.tokens.align import Alignment
from headscope.capture.tokens.batch import Batch, collate
from headscope.corpora import Document
from headscope.errors import ModelError

DOCUMENTS = tiny.documents(7)


def make(family: str, task: str) -> Model:
    return Model.from_module(*headed.make(family, task), name=family)


def one_batch(model: Model, documents: list[Document]) -> Batch:
    return collate(model, Alignment.for_model(model).align(documents)[0])


def test_the_names_of_transformers_classes_tell_their_task() -> None:
    listed = {
        "masked-lm": modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES,
        "causal-lm": modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        "classification": modeling_auto.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES,
        "tagging": modeling_auto.MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING_NAMES,
    }
    assert set(listed) == set(TASKS) == set(NAMES)
    for task, kinds in listed.items():
        right = [kind for kind in kinds.values() if find_task(kind) == task]
        assert len(right) > 0.9 * len(kinds), task
    for kind in modeling_auto.MODEL_MAPPING_NAMES.values():
        assert not isinstance(kind, str) or not kind.endswith("Model") or find_task(kind) is None or "LMHead" in kind


def test_the_masks_of_a_text_are_its_own() -> None:
    model = make("bert", "masked-lm")
    together, alone = one_batch(model, DOCUMENTS), [one_batch(model, [document]) for document in DOCUMENTS]
    read, _ = make_loss(model, together)
    mask, masked = model.tokenizer.mask_token_id, 0
    for batch in alone:
        row = [document.id for document in together.documents].index(batch.documents[0].id)
        length = batch.encoder.length
        own, _ = make_loss(model, batch)
        assert torch.equal(read.encoder.ids[row, :length], own.encoder.ids[0])
        places = (own.encoder.ids[0] == mask).nonzero()[:, 0]
        words = int((batch.encoder.word[0] >= 0).sum())
        assert len(places) == max(1, round(MASKED * words))
        assert bool((batch.encoder.word[0, places] >= 0).all())
        assert not bool(own.encoder.punctuation[0, places].any())
        masked += len(places)
    assert torch.equal(read.inputs["input_ids"], read.encoder.ids)
    assert int((read.encoder.ids == mask).sum()) == masked > 10
    assert torch.equal(together.inputs["input_ids"], together.encoder.ids)


def test_each_token_is_masked_about_as_often() -> None:
    words = list(range(1, 41))
    times = Counter(place for text in range(1000) for place in choose_masked([text], words))
    assert set(times) == set(words)
    # 150 of 1,000 is expected, with a standard deviation of 11.3.
    assert max(abs(count - 150) for count in times.values()) < 50


def test_of_a_text_in_which_nothing_can_be_predicted_the_loss_is_0() -> None:
    model = make("gpt2", "causal-lm")
    batch = one_batch(model, [Document("one", ("dog",))])
    _, loss = make_loss(model, batch)
    value = loss(model.module(**batch.inputs))
    assert float(value.detach()) == 0
    assert value.requires_grad


def test_the_gold_label_is_predicted_where_the_model_knows_it() -> None:
    model = make("bert", "classification")
    document = DOCUMENTS[0]
    losses = {}
    for label in ("negative", "none", "positive", "unheard of", None):
        batch = one_batch(model, [replace(document, label=label)])
        losses[label] = float(make_loss(model, batch)[1](model.module(**batch.inputs)).detach())
    known = [losses[label] for label in ("negative", "none", "positive")]
    assert sum(torch.exp(-torch.tensor(known))) == pytest.approx(1)
    assert losses["unheard of"] == losses[None] == min(known)


REFUSED = {
    "no head": (
        lambda: Model.from_module(*tiny.make("bert"), name="bert"),
        "gradients are of a loss, and 'bert' (BertModel) has no task head to give one; give weights with a head, or "
        "name its task (--task, or task= of headscope.load) if they have one.",
    ),
    "sees what it predicts": (
        lambda: make("bert", "causal-lm"),
        "'bert' (BertLMHeadModel) sees each token that it is to predict; load it with the task masked-lm.",
    ),
    "no mask": (
        lambda: Model.from_module(headed.make("bert", "masked-lm")[0], tiny.make("t5")[1], name="bert"),
        "the tokenizer of 'bert' has no mask; give the one that the model was trained with.",
    ),
    "a number": (
        lambda: change(make("bert", "classification"), num_labels=1),
        "'bert' predicts a number, of which there is no loss here; give a model that chooses one label.",
    ),
    "several labels": (
        lambda: change(make("bert", "classification"), problem_type="multi_label_classification"),
        "'bert' predicts several labels of a text, of which there is no loss here; give a model that chooses one "
        "label.",
    ),
}


def change(model: Model, **settings) -> Model:
    model.module.config.update(settings)
    return model


@pytest.mark.parametrize("case", REFUSED)
def test_a_model_without_a_loss_is_refused(case: str) -> None:
    make_model, sentence = REFUSED[case]
    with pytest.raises(ModelError) as refused:
        check_loss(make_model())
    assert str(refused.value) == sentence


@pytest.mark.parametrize(("family", "task"), [("bert", "masked-lm"), ("gpt2", "classification"), ("t5", "causal-lm")])
def test_a_model_is_loaded_with_its_own_head(family: str, task: str, tmp_path) -> None:
    for part in headed.make(family, task):
        part.save_pretrained(tmp_path)
    model = load(tmp_path, task="own")
    assert type(model.module) is headed.HEADS[family, task]
    assert check_loss(model) == task


def test_a_bare_decoder_is_loaded_as_a_causal_model(tmp_path) -> None:
    tiny.save(tmp_path, "gpt2")
    assert check_loss(load(tmp_path, task="own")) == "causal-lm"


def test_weights_without_a_head_are_refused_before_they_are_loaded(tmp_path) -> None:
    tiny.save(tmp_path, "bert")
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(ModelError) as refused:
        load(tmp_path, task="own")
    assert str(refused.value) == (
        f"gradients are of a loss, and {str(tmp_path)!r} (BertModel) has no task head to give one; give weights with a "
        "head, or name its task (`task`, or task= of headscope.load) if they have one."
    )
