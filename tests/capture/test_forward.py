"""One pass of a model: what it can be run on is run, and why it fails is what the sentence says."""

import re
from collections.abc import Callable

import numpy as np
import pytest
import torch
import transformers as hf
from transformers import PreTrainedModel, PreTrainedTokenizerFast

import headed
import tiny
import witnesses
from headscope.capture.forward.interface import Capture
from headscope.capture.model.forward import run_model
from headscope.capture.model.model import Model
from headscope.capture.open.loading import load
from headscope.capture.tokens.align import Alignment
from headscope.capture.tokens.batch import collate
from headscope.corpora.document import Document
from headscope.errors import ModelError
from headscope.runner import Plan, measure

DOCUMENTS = tiny.documents(7)


def add_padding(words: PreTrainedTokenizerFast, embeddings: int) -> PreTrainedTokenizerFast:
    """A padding token of its own, beyond the embeddings of a model that nobody has resized."""
    words.add_tokens([f"<{number}>" for number in range(embeddings - len(words))])
    words.add_special_tokens({"pad_token": "[PAD]" if "[PAD]" not in words.get_vocab() else "[PADDING]"})
    assert words.pad_token_id >= embeddings
    return words


@pytest.mark.parametrize("named", [True, False], ids=["named in the configuration", "named nowhere"])
@pytest.mark.parametrize("family", ["llama", "gpt2", "bert"])
def test_a_padding_token_without_an_embedding_is_never_read(family: str, named: bool) -> None:
    module, words = tiny.make(family)
    if not named:
        module.config.pad_token_id = None
    model = Model.from_module(module, add_padding(words, module.get_input_embeddings().num_embeddings), name=family)
    table = measure(model, DOCUMENTS, ["surface"])
    seen = [witnesses.see(module, words, document) for document in DOCUMENTS]
    expected = witnesses.surface([each[next(iter(model.layers))] for each in seen])
    for name in ("mass_first", "mass_previous", "entropy"):
        np.testing.assert_allclose(table[name], expected[name], atol=1e-4, err_msg=name)


def test_a_token_without_an_embedding_in_a_text_is_named() -> None:
    module, words = tiny.make("llama")
    model = Model.from_module(module, add_padding(words, tiny.BYTE_VOCABULARY), name="llama")
    with pytest.raises(ModelError) as refused:
        measure(model, [Document("0", ("the", "[PAD]"))], ["surface"])
    assert str(refused.value) == (
        "the token '[PAD]' has the number 317, and 'llama' has embeddings of 317 tokens; call resize_token_embeddings "
        "and train those that were added, or give the tokenizer that it was trained with."
    )


def make_classifier(family: str) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    body, words = tiny.make(family)
    body.config.num_labels = 3
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        module = hf.AutoModelForSequenceClassification.from_config(body.config).eval()
    module.base_model.load_state_dict(body.state_dict())
    module.config.get_text_config().pad_token_id = None
    return module, words


@pytest.mark.parametrize("ending", [None, "[PAD]", "</s>"], ids=["no ending", "its padding", "its ending"])
@pytest.mark.parametrize("family", ["llama", "gpt2", "bloom"])
def test_a_classifier_without_a_padding_token_reads_the_end_of_each_text(family: str, ending: str | None) -> None:
    """One text at a time, in which transformers reads the last token, is the witness of the labels."""
    module, words = make_classifier(family)
    model = load((module, words), task="classification")
    documents = [Document(each.id, (*each.words, *([ending] * bool(ending)))) for each in DOCUMENTS]
    if ending == "[PAD]":
        documents = [Document(each.id, (*each.words[:-1], words.pad_token)) for each in documents]
    aligned = Alignment.for_model(model).align(documents)[0]
    batch = collate(model, aligned)
    with torch.no_grad():
        alone = torch.cat([module(input_ids=torch.tensor([text.ids])).logits for text in aligned])
        torch.testing.assert_close(run_model(model, batch.inputs).logits, alone, atol=1e-4, rtol=1e-4)
    assert module.config.get_text_config().pad_token_id is None
    assert Capture.verified(model, batch)
    bare = (hf.AutoModel.from_config(module.config), words)
    bare[0].load_state_dict(module.base_model.state_dict())
    plain = measure(load((bare[0].eval(), words)), documents, ["surface"])
    np.testing.assert_allclose(measure(model, documents, ["surface"])["entropy"], plain["entropy"], atol=1e-4)


def test_texts_of_one_length_are_classified_too() -> None:
    module, words = make_classifier("llama")
    model = load((module, words), task="classification")
    batch = collate(model, Alignment.for_model(model).align([Document(str(n), ("the", "dog")) for n in range(3)])[0])
    assert bool(batch.encoder.real.all())
    with torch.no_grad():
        alone = module(input_ids=batch.inputs["input_ids"][:1]).logits
        torch.testing.assert_close(run_model(model, batch.inputs).logits, alone.expand(3, -1), atol=1e-5, rtol=1e-5)


def test_a_classifier_that_knows_another_padding_token_than_its_tokenizer_gets_its_own() -> None:
    module, words = headed.make("gpt2", "classification")
    module.config.pad_token_id = 7
    assert words.pad_token_id != 7
    table = measure(load((module, words), task="classification"), DOCUMENTS, ["surface"])
    assert table.attrs["documents"] == len(DOCUMENTS)


def fail(error: Exception) -> Callable[..., None]:
    def hook(*arguments: object) -> None:
        raise error

    return hook


def make_long(module: PreTrainedModel, words: PreTrainedTokenizerFast) -> None:
    """Its configuration says that it reads more than it has positions for."""
    module.config.max_position_embeddings = words.model_max_length = 1000
    module.embeddings.position_ids = torch.arange(1000)[None]
    module.embeddings.token_type_ids = torch.zeros(1, 1000, dtype=torch.long)


def fill_memory(module: PreTrainedModel, words: PreTrainedTokenizerFast) -> None:
    error = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.\nMore.")
    module.encoder.layer[1].register_forward_pre_hook(fail(error))


def move_a_buffer(module: PreTrainedModel, words: PreTrainedTokenizerFast) -> None:
    module.register_buffer("scale", torch.empty(1, device="meta"), persistent=False)
    error = RuntimeError("Expected all tensors to be on the same device, but got meta and cpu")
    module.encoder.register_forward_pre_hook(fail(error))


def want_an_image(module: PreTrainedModel, words: PreTrainedTokenizerFast) -> None:
    module.encoder.register_forward_pre_hook(fail(ValueError("You have to specify pixel_values")))


CAUSES = {
    "positions": (
        make_long,
        "has embeddings of 149 positions, and a text has 202 tokens; lower --max-tokens to 149, or state the limit in "
        "its configuration.",
    ),
    "types": (
        lambda module, words: module.encoder.layer[1].half(),
        "has weights of the types float16 and float32, which it cannot multiply (mat1 and mat2 must have the same "
        "dtype, but got Float and Half); give all of them one type, as with model.to(torch.float32).",
    ),
    "devices": (
        move_a_buffer,
        "has weights on cpu and meta; put all of it on one device, as with model.to('cpu').",
    ),
    "memory": (
        fill_memory,
        "needs more memory than there is for 2 texts of up to 33 tokens (CUDA out of memory. Tried to allocate 2.00 "
        "GiB); lower --batch-tokens, lower --max-tokens, or load it in bfloat16.",
    ),
    "another input": (
        want_an_image,
        "also needs images (pixel_values), and is run on text alone (You have to specify pixel_values); give a text "
        "model, or the part of this one that reads text.",
    ),
    "padding": (
        lambda module, words: module.encoder.register_forward_pre_hook(fail(ValueError("no padding token"))),
        "reads texts together only with a padding token (no padding token); set pad_token_id in its configuration, or "
        "measure each text alone (--batch-tokens 1).",
    ),
    "anything else": (
        lambda module, words: module.encoder.register_forward_pre_hook(fail(KeyError("language"))),
        "cannot be run on text (KeyError: 'language'); mend what this says, or give another model with its own "
        "tokenizer.",
    ),
}


@pytest.mark.parametrize("cause", CAUSES)
def test_the_sentence_is_about_the_cause(cause: str) -> None:
    change, sentence = CAUSES[cause]
    module, words = tiny.make("bert")
    change(module, words)
    documents = [Document("0", ("dog",) * 200)] if cause == "positions" else DOCUMENTS
    with pytest.raises(ModelError) as refused:
        measure(Model.from_module(module, words, name="bert"), documents, ["surface"])
    assert str(refused.value) == f"'bert' (BertModel) {sentence}"


def test_a_pass_that_fails_later_is_explained_too() -> None:
    """The capture is verified on shorter texts."""
    module, words = tiny.make("bert")
    make_long(module, words)
    model = Model.from_module(module, words, name="bert")
    short, long = (collate(model, Alignment.for_model(model).align([Document("0", ("dog",) * n)])[0]) for n in (5, 200))
    capture = Capture.verified(model, short)
    with pytest.raises(ModelError, match=re.escape("has embeddings of 149 positions, and a text has 202 tokens")):
        capture.run(long)


def test_an_error_of_an_observer_is_its_own() -> None:
    model = Model.from_module(*tiny.make("bert"), name="bert")
    batch = collate(model, Alignment.for_model(model).align(DOCUMENTS)[0])
    with pytest.raises(ZeroDivisionError):
        Capture.verified(model, batch).run(batch, fail(ZeroDivisionError()))


@pytest.mark.parametrize("kind", ["vilt", "blip"])
def test_models_of_images_and_text_want_an_image(kind: str) -> None:
    sizes = {"hidden_size": 36, "num_hidden_layers": 2, "num_attention_heads": 6, "intermediate_size": 37}
    image = {"image_size": 16, "patch_size": 8}
    if kind == "vilt":
        module = hf.ViltModel(hf.ViltConfig(**sizes, **image, vocab_size=tiny.VOCABULARY))
    else:
        text = {**sizes, "vocab_size": tiny.VOCABULARY, "bos_token_id": 1, "eos_token_id": 2, "encoder_hidden_size": 36}
        config = hf.BlipConfig(text_config=text, vision_config={**sizes, **image})
        module = hf.BlipForConditionalGeneration(config)
    model = Model.from_module(module.eval(), tiny.tokenizer(tiny.BERT), name=kind)
    with pytest.raises(ModelError, match=r"also needs images \(pixel_values\), and is run on text alone"):
        measure(model, DOCUMENTS, ["surface"], plan=Plan(batch_tokens=64))
