"""Models that read something else than the tokens of a text: what they read is named."""

import pytest
import transformers as hf

import tiny
from headscope.capture.model.model import Model
from headscope.errors import ModelError

SIZES = {"hidden_size": 36, "num_hidden_layers": 2, "num_attention_heads": 6, "intermediate_size": 37}
IMAGE = {"image_size": 16, "patch_size": 8}
# fmt: off
KINDS = {
    "vit": (SIZES | IMAGE, "(ViTModel) reads images (pixel_values) and no tokens of a text; give a text model."),
    "swin": ({"image_size": 32, "patch_size": 4, "embed_dim": 12, "depths": [1, 1], "num_heads": [2, 4],
              "window_size": 2},
             "(SwinModel) reads images (pixel_values) and no tokens of a text; give a text model."),
    "audio-spectrogram-transformer": (
        SIZES | {"patch_size": 4, "num_mel_bins": 16, "max_length": 16},
        "(ASTModel) reads sound (input_values) and no tokens of a text; give a text model."),
    "perceiver": (
        {"num_latents": 8, "d_latents": 32, "d_model": 32, "num_blocks": 1, "num_self_attends_per_block": 2,
         "num_self_attention_heads": 4, "num_cross_attention_heads": 4},
        "(PerceiverModel) reads inputs and no tokens of a text; give a text model."),
    "canine": (
        SIZES | {"num_hash_buckets": 31, "num_hash_functions": 2},
        "(CanineModel) has no embeddings of tokens of its own, so that it does not read a text as the tokens of a "
        "tokenizer alone; give a text model."),
    "clip": (
        {"text_config": SIZES | {"vocab_size": 131, "bos_token_id": 1, "eos_token_id": 2},
         "vision_config": SIZES | IMAGE},
        "(CLIPModel) has no embeddings of tokens of its own, so that it does not read a text as the tokens of a "
        "tokenizer alone; give the part of it that reads text alone (its .text_model)."),
}
# fmt: on


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_model_reads_is_named(kind: str) -> None:
    sizes, sentence = KINDS[kind]
    module = hf.AutoModel.from_config(hf.AutoConfig.for_model(kind, **sizes))
    with pytest.raises(ModelError) as refused:
        Model.from_module(module, tiny.tokenizer(tiny.BERT), name="other")
    assert str(refused.value) == f"'other' {sentence}"


def test_a_part_that_reads_text_is_measured() -> None:
    from headscope.runner import measure

    config = hf.CLIPTextConfig(**SIZES, vocab_size=tiny.BYTE_VOCABULARY, bos_token_id=0, eos_token_id=1, pad_token_id=2)
    model = Model.from_module(hf.CLIPTextModel(config).eval(), tiny.tokenizer(tiny.LLAMA), name="clip")
    assert measure(model, tiny.documents(3), ["surface"])["entropy"].sizes["head"] == 6
