"""Whether tokens see those behind them is taken from the mask, whatever the type of the model."""

from collections.abc import Callable

import pytest
import torch
import transformers as hf

import headscope
import hybrids
import tiny
from headscope.capture.model.direction import sees_ahead
from headscope.capture.model.model import Model

SIZES = {
    "vocab_size": tiny.BYTE_VOCABULARY, "hidden_size": 42, "num_hidden_layers": 2, "num_attention_heads": 3,
    "intermediate_size": 37, "max_position_embeddings": 149,
}  # fmt: skip


def make_two_way_llama() -> torch.nn.Module:
    module, _ = tiny.make("llama")
    module.config.is_causal = False
    return module


def make_qwen2_vl() -> torch.nn.Module:
    text = SIZES | {
        "num_key_value_heads": 1, "bos_token_id": 0, "eos_token_id": 1,
        "rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [1, 2, 4]},
    }  # fmt: skip
    vision = {"depth": 1, "embed_dim": 32, "hidden_size": 42, "num_heads": 4}
    return hf.Qwen2VLModel(hf.Qwen2VLConfig(text_config=text, vision_config=vision))


def make_clip_text() -> torch.nn.Module:
    return hf.CLIPTextModel(hf.CLIPTextConfig(**SIZES, bos_token_id=0, eos_token_id=1))


def make_bert_decoder() -> torch.nn.Module:
    return hf.BertModel(hf.BertConfig(**SIZES, is_decoder=True))


def make_xlnet() -> torch.nn.Module:
    return hf.XLNetModel(hf.XLNetConfig(vocab_size=tiny.BYTE_VOCABULARY, d_model=42, n_layer=2, n_head=3, d_inner=37))


KINDS: dict[str, tuple[Callable[[], torch.nn.Module], bool]] = {
    "llama that sees both ways": (make_two_way_llama, True),
    "text through a vision-language model": (make_qwen2_vl, False),
    "text tower": (make_clip_text, False),
    "bert as a decoder": (make_bert_decoder, False),
    "without the interface": (make_xlnet, True),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_mask_says_what_the_type_does_not(kind: str) -> None:
    make, ahead = KINDS[kind]
    module = make().eval()
    assert sees_ahead(module) is ahead
    model = Model.from_module(module, tiny.make("llama")[1])
    assert [*model.layers] == ["encoder" if ahead else "decoder"]
    # The weights agree: the first token of three sees the others, or does not.
    module.set_attn_implementation("eager")
    with torch.no_grad():
        output = module(input_ids=torch.tensor([[5, 6, 7]]), output_attentions=True)
    assert (output.attentions[0][0, :, 0, 1:] > 0).any().item() is ahead


@pytest.mark.parametrize("family", [*tiny.FAMILIES, *hybrids.HYBRIDS])
def test_the_mask_agrees_with_the_type_where_that_is_known(family: str) -> None:
    module, _ = (hybrids if family in hybrids.HYBRIDS else tiny).make(family)
    before = module.config._attn_implementation
    if not module.config.is_encoder_decoder:
        assert sees_ahead(module) is (family in "bert roberta distilbert electra albert modernbert".split())
    assert module.config._attn_implementation == before


def test_a_model_that_takes_no_text_or_has_no_weights_shows_nothing() -> None:
    assert sees_ahead(tiny.make("bert")[0].to("meta")) is None
    assert sees_ahead(hf.ViTModel(hf.ViTConfig(hidden_size=12, num_hidden_layers=1, num_attention_heads=3))) is None


def test_all_links_are_scored_where_both_sides_are_seen() -> None:
    """A causal model cannot show links that point ahead, and they are counted as left out; another can."""
    tables = {}
    for two_way in (False, True):
        module, tokenizer = tiny.make("llama")
        module.config.is_causal = not two_way
        table = headscope.measure((module, tokenizer), tiny.documents(7), ["relations"], permutations=0)
        tables[two_way] = table.sel(relation="det")
    links = sum(link.label == "det" for document in tiny.documents(7) for link in document.links)
    assert tables[True]["relation_count"] == links
    assert "relation_left_out" not in tables[True]
    assert (tables[False]["relation_count"] + tables[False]["relation_left_out"] == links).all()
    assert (tables[False]["relation_left_out"] > 0).all()


def test_a_model_that_is_compiled_in_place_is_not_compiled_for_this() -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the model was compiled")

    module, _ = tiny.make("gpt2")
    module.compile(backend=refuse)
    assert sees_ahead(module) is False
