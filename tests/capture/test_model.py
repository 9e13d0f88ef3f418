"""Loading and identifying: what is refused, and what says which weights it was."""

import hashlib
import re
import shutil

import pytest
import torch

import tiny
from headscope.capture.model.model import Model
from headscope.capture.model.shape import Shape
from headscope.capture.open.loading import load
from headscope.capture.open.untrained import untrained_model
from headscope.capture.tokens.align import Alignment
from headscope.capture.tokens.batch import collate
from headscope.corpora.document import Document
from headscope.errors import ModelError
from headscope.runner import Plan, measure


@pytest.fixture
def folder(tmp_path):
    """A tiny model on disk."""
    module, tokenizer = tiny.make("bert")
    module.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def test_a_folder_is_identified_by_the_hash_of_its_weights(folder) -> None:
    model = load(folder)
    assert model.weights_sha256 == hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    (folder / "model.fp16.safetensors").write_bytes(b"a variant that is not used")
    assert load(folder).weights_sha256 == model.weights_sha256
    assert model.layers == {"encoder": 2}
    assert model.max_tokens == 128


def test_a_folder_without_a_tokenizer_is_refused(folder) -> None:
    for file in folder.glob("*token*"):
        file.unlink()
    with pytest.raises(ModelError) as refused:
        load(folder)
    assert str(refused.value) == (
        f"{str(folder)!r} comes without a vocabulary: its tokenizer knows 5 special tokens and no word; "
        "add tokenizer.json."
    )


@pytest.mark.parametrize("name", ["./nowhere", "/nowhere/at/all"])
def test_a_folder_that_is_not_there_is_one_sentence(name) -> None:
    with pytest.raises(ModelError) as refused:
        load(name)
    assert str(refused.value) == (
        f"there is no folder {name!r}; give a hub id, a folder with config.json, weights and tokenizer, a .gguf file, "
        "`minilm` or `smollm2`."
    )


@pytest.mark.parametrize("broken", ["model.safetensors", "tokenizer.json", "config.json"])
def test_a_broken_file_is_one_sentence(folder, broken) -> None:
    content = (folder / broken).read_bytes()
    (folder / broken).write_bytes(content[: len(content) // 2])
    with pytest.raises(ModelError) as refused:
        load(folder)
    assert re.fullmatch(
        rf"no model could be loaded from {re.escape(repr(str(folder)))} \(.*\); "
        "give a hub id, a folder with config.json, weights and tokenizer, a .gguf file, `minilm` or `smollm2`.",
        str(refused.value),
    )


def test_weights_that_would_be_random_are_refused(folder, tmp_path) -> None:
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    lost = "encoder.layer.1.attention.self.key.weight"
    save_file({k: v for k, v in weights.items() if k != lost}, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError) as refused:
        load(folder)
    assert str(refused.value) == (
        f"{str(folder)!r} lacks 1 of the weights that its configuration calls for, such as {lost}; "
        "they would be random. Give a complete checkpoint."
    )


def test_a_device_that_is_not_there_is_refused(folder) -> None:
    with pytest.raises(ModelError) as refused:
        load(folder, device="banana")
    assert re.fullmatch(
        rf"{re.escape(repr(str(folder)))} cannot be put on the device 'banana' \(.*\); "
        "give cpu, or a GPU that is there.",
        str(refused.value),
    )


def test_nobodys_code_is_run_unasked(folder) -> None:
    shutil.move(folder / "model.safetensors", folder / "elsewhere")
    torch.save({"weights": print}, folder / "pytorch_model.bin")
    with pytest.raises(ModelError, match="no model could be loaded from"):
        load(folder)


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_an_untrained_model_has_the_shape_but_not_the_weights(family) -> None:
    model = Model.from_module(*tiny.make(family), name=family)
    untrained, again, other = untrained_model(model), untrained_model(model), untrained_model(model, seed=1)
    shapes = [{name: p.shape for name, p in m.module.named_parameters()} for m in (model, untrained)]
    assert shapes[0] == shapes[1]
    assert untrained.weights_sha256 == again.weights_sha256
    assert len({model.weights_sha256, untrained.weights_sha256, other.weights_sha256}) == 3
    assert untrained.name == f"random weights (seed 0) of {family}"


def test_an_untrained_model_has_the_precision_of_its_model() -> None:
    module, tokenizer = tiny.make("llama")
    assert untrained_model(Model.from_module(module.to(torch.bfloat16), tokenizer)).module.dtype == torch.bfloat16


def test_a_family_that_reads_padding_is_refused_unless_each_text_is_alone() -> None:
    from transformers import ConvBertConfig, ConvBertModel

    torch.manual_seed(0)
    config = ConvBertConfig(
        vocab_size=131, hidden_size=48, num_hidden_layers=2, num_attention_heads=6, intermediate_size=37, head_ratio=2,
        embedding_size=48, max_position_embeddings=149,
    )  # fmt: skip
    module = ConvBertModel(config)
    with torch.no_grad():
        for weights in module.parameters():
            weights.add_(0.3 * torch.randn(weights.shape))
    model = Model.from_module(module, tiny.tokenizer(tiny.BERT), name="convbert")
    with pytest.raises(ModelError) as refused:
        measure(model, tiny.documents(7), ["surface"])
    assert re.fullmatch(
        r"the outputs of 'convbert' change by [\d.e-]+ with the padding next to a text; "
        r"measure each text alone \(--batch-tokens 1\).",
        str(refused.value),
    )
    assert measure(model, tiny.documents(7), ["surface"], plan=Plan(batch_tokens=1)).attrs["documents"] == 7


def test_a_model_that_takes_no_text_is_refused() -> None:
    from transformers import WhisperConfig, WhisperModel

    config = WhisperConfig(
        vocab_size=131, d_model=30, encoder_layers=2, decoder_layers=3, encoder_attention_heads=5,
        decoder_attention_heads=5, encoder_ffn_dim=7, decoder_ffn_dim=7, num_mel_bins=11, max_source_positions=13,
        max_target_positions=17, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
    )  # fmt: skip
    with pytest.raises(ModelError) as refused:
        Model.from_module(WhisperModel(config), tiny.tokenizer(tiny.BERT), name="whisper")
    assert str(refused.value) == (
        "'whisper' (WhisperModel) reads sound (input_features) and no tokens of a text; give a text model."
    )


def test_a_word_spelt_like_a_separator_is_none() -> None:
    model = Model.from_module(*tiny.make("bert"), name="bert")
    batch = collate(model, Alignment.for_model(model).align([Document("d", ("the", "[SEP]", "dog"))])[0])
    assert (batch.encoder.ids == model.tokenizer.sep_token_id).sum() == 2
    assert batch.encoder.sep.nonzero().tolist() == [[0, 4]]


@pytest.mark.parametrize("family", {**tiny.FAMILIES, **tiny.UNSUPPORTED})
def test_a_model_that_is_a_decoder_alone_has_decoder_layers(family: str) -> None:
    """Its attention type is what its attention does: a later token changes nothing before it."""
    model = Model.from_module(*tiny.make(family), name=family)
    expected = {**tiny.FAMILIES, **tiny.UNSUPPORTED}[family].attention_types
    assert dict(model.layers) == expected
    if "cross" not in expected:
        batch = collate(model, Alignment.for_model(model).align(tiny.documents(1))[0])
        changed = {**batch.inputs, "input_ids": batch.inputs["input_ids"].clone()}
        changed["input_ids"][:, -1] = changed["input_ids"][:, 1]
        with torch.no_grad():
            before, after = (model.module(**inputs).last_hidden_state[:, :-1] for inputs in (batch.inputs, changed))
        assert torch.allclose(before, after, atol=1e-4) == (set(expected) == {"decoder"})


def test_the_configuration_may_say_otherwise() -> None:
    import transformers as hf

    sizes = {"num_hidden_layers": 3, "num_attention_heads": 4, "hidden_size": 12}
    kinds = [
        (hf.BertConfig(is_decoder=True, **sizes), "decoder"),
        (hf.BertGenerationConfig(**sizes), "encoder"),
        (hf.Gemma2Config(use_bidirectional_attention=True, **sizes), "encoder"),
        (hf.Gemma3TextConfig(**sizes), "decoder"),
        (hf.Gemma3Config(text_config=sizes), "decoder"),
        (hf.ModernBertDecoderConfig(**sizes), "decoder"),
        (hf.OPTConfig(**sizes), "decoder"),
    ]
    for config, kind in kinds:
        assert Shape.from_config(config).layers == {kind: 3}


@pytest.mark.parametrize("where", ["a layer", "all"])
def test_a_model_that_is_spread_over_devices_is_refused(where: str) -> None:
    module, tokenizer = tiny.make("llama")
    # The device "meta" stands in for a second one: so transformers leaves what it keeps on disk.
    (module.layers[1] if where == "a layer" else module).to("meta")
    with pytest.raises(ModelError) as refused:
        load(module, tokenizer)
    there = "cpu and no device (meta)" if where == "a layer" else "no device (meta)"
    assert str(refused.value) == (
        f"the weights of 'LlamaModel' lie on {there}, and no hook of accelerate brings them together when it runs; "
        "load it with device_map, or put all of it on one device."
    )
