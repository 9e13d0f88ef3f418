"""Models with a task head: loaded, verified by their logits, and differentiated by their own loss."""

import re
from dataclasses import replace

import pytest
import torch
import transformers as hf

import headed
import tiny
from headscope.capture.forward.interface import Capture
from headscope.capture.model.model import Model
from headscope.capture.open.loading import load
from headscope.capture.open.untrained import untrained_model
from headscope.capture.tokens.align import Alignment
from headscope.capture.tokens.batch import Batch, collate
from headscope.errors import HeadscopeError, ModelError
from headscope.runner.local import Plan, measure

DOCUMENTS = tiny.documents(5)


def save(folder, family: str, task: str):
    """A tiny model with its task head, on disk."""
    for part in headed.make(family, task):
        part.save_pretrained(folder)
    return folder


def one_batch(model: Model) -> Batch:
    return collate(model, Alignment.for_model(model).align(DOCUMENTS)[0])


@pytest.mark.parametrize(("family", "task"), headed.HEADS)
def test_what_is_verified_are_the_logits(family: str, task: str, tmp_path) -> None:
    model = load(save(tmp_path, family, task), task=task)
    assert type(model.module) is headed.HEADS[family, task]
    model.module.config._experts_implementation = "eager"  # as in `tiny`; it is not saved
    batch = one_batch(model)
    outputs = Capture.verified(model, batch).run(batch)
    with torch.no_grad():
        expected = model.module(**batch.inputs).logits
    assert outputs.hidden is None
    assert outputs.logits is not None
    assert dict(outputs.layers) == dict(model.layers)
    real = (batch.decoder or batch.encoder).real if expected.ndim == 3 else slice(None)
    torch.testing.assert_close(outputs.logits[real], expected[real], atol=1e-4, rtol=1e-4)
    assert type(untrained_model(model).module) is type(model.module)


def test_with_its_head_a_model_has_the_same_table(tmp_path) -> None:
    headed = load(save(tmp_path, "llama", "causal-lm"), task="causal-lm")
    plain = load(tmp_path)
    tables = [measure(model, DOCUMENTS, ["surface", "relations"], plan=Plan()) for model in (headed, plain)]
    assert tables[0].equals(tables[1])


def test_a_head_that_lies_is_noticed(tmp_path, monkeypatch) -> None:
    model = load(save(tmp_path, "bert", "classification"), task="classification")
    calls = []

    def forget(module, arguments, output):
        calls.append(module)
        return output if len(calls) < 3 else output + 1.0

    model.module.classifier.register_forward_hook(forget)
    with pytest.raises(ModelError) as refused:
        Capture.verified(model, one_batch(model))
    assert "the outputs of" in str(refused.value)


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize(
    ("family", "task"), [("bert", "classification"), ("bert", "tagging"), ("gpt2", "causal-lm"), ("t5", "causal-lm")]
)
def test_the_models_own_loss_is_the_default(family: str, task: str, fused: bool, tmp_path) -> None:
    model = load(save(tmp_path, family, task), task=task)
    batch = one_batch(model)
    capture = Capture.verified(model, batch)
    labels = (batch.decoder or batch.encoder).ids % 2
    batch = replace(batch, inputs=batch.inputs | {"labels": labels[:, 0] if task == "classification" else labels})
    own = capture.run(batch, gradients=True, fused=fused)
    given = capture.run(batch, gradients=True, loss=lambda output: output.loss, fused=fused)
    assert set(own.gradients) == {(kind, n) for kind, count in model.layers.items() for n in range(1, count + 1)}
    for layer, gradient in own.gradients.items():
        assert gradient.g.abs().max() > 0
        assert torch.equal(gradient.g, given.gradients[layer].g)
    Capture.verified(model, batch)


def test_a_head_without_weights_is_refused(tmp_path) -> None:
    tiny.save(tmp_path, "bert")
    with pytest.raises(ModelError) as refused:
        load(tmp_path, task="classification")
    assert str(refused.value) == (
        f"{str(tmp_path)!r} lacks 2 of the weights that the task classification calls for, such as classifier.bias; "
        "they would be random. Give a checkpoint that was trained for this task, or load the model without a task."
    )


def test_a_pooler_that_a_classifier_reads_may_not_be_missing(tmp_path) -> None:
    from safetensors.torch import load_file, save_file

    save(tmp_path, "bert", "classification")
    weights = load_file(tmp_path / "model.safetensors")
    kept = {name: value for name, value in weights.items() if "pooler" not in name}
    save_file(kept, tmp_path / "model.safetensors", metadata={"format": "pt"})
    assert load(tmp_path).layers == {"encoder": 2}
    with pytest.raises(ModelError, match=r"lacks 2 of the weights that the task classification calls for"):
        load(tmp_path, task="classification")


def test_a_task_that_there_is_not_is_refused(tmp_path, wrong_types: None) -> None:
    with pytest.raises(HeadscopeError) as refused:
        load(tmp_path, task="translation")
    assert str(refused.value) == (
        "there is no task 'translation'; there are masked-lm, causal-lm, classification, tagging, and own for the head "
        "that the weights have."
    )


def test_a_model_whose_output_cannot_be_verified_is_refused() -> None:
    body, tokenizer = tiny.make("bert")
    model = Model.from_module(hf.BertForQuestionAnswering(body.config), tokenizer, name="bert")
    with pytest.raises(ModelError) as refused:
        Capture.verified(model, one_batch(model))
    assert re.fullmatch(
        "the model returns neither logits nor a last hidden state, with which the capture would be verified; "
        "load it without its head, or with one of the tasks of `headscope.load`.",
        str(refused.value),
    )
