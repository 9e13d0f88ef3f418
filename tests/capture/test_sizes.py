"""Numbers of heads and limits of length, under whatever names a configuration has for them."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
import transformers as hf

import headscope
import hybrids
import tiny
import witnesses
from headscope.capture.model.model import Model
from headscope.capture.model.shape import Shape
from headscope.capture.model.sizes import count_heads, count_key_value_heads, find_limit
from headscope.corpora.document import Document
from headscope.errors import HeadscopeError, ModelError
from headscope.intervene.ablation import GROUP, list_units
from headscope.intervene.selected_heads import select_heads
from headscope.runner import measure

DOCUMENTS = tiny.documents(7)
GEMMA = {
    **hybrids.SIZES, "num_hidden_layers": 4, "sliding_window": tiny.WINDOW, "vocab_size": tiny.BYTE_VOCABULARY,
    "vocab_size_per_layer_input": tiny.BYTE_VOCABULARY, "hidden_size_per_layer_input": 7, "global_head_dim": 28,
    "layer_types": ["sliding_attention", "full_attention"] * 2, "pad_token_id": 2, "bos_token_id": 0, "eos_token_id": 1,
}  # fmt: skip
# fmt: off
KINDS = {  # of Gemma 4, and the key/value heads of each layer
    "wider heads": ({}, (2, 2, 2, 2)),
    "fewer key heads": ({"num_global_key_value_heads": 1, "attention_k_eq_v": True}, (2, 1, 2, 1)),
    "more key heads": (
        {"per_layer_config": {layer: {"num_key_value_heads": 3, "head_dim": 14} for layer in (1, 3)}}, (2, 3, 2, 3)),
    "keys of other layers": ({"num_kv_shared_layers": 2}, (2, 2, 2, 2)),
}
# fmt: on


def make_gemma(**settings) -> Model:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = hf.Gemma4TextModel(hf.Gemma4TextConfig(**GEMMA, **settings)).eval()
        with torch.no_grad():
            for name, weights in module.named_parameters():
                if weights.ndim > 1 and "embed" not in name:
                    weights.normal_(0, 0.3)
    return Model.from_module(module, tiny.tokenizer(tiny.LLAMA), name="gemma4")


@pytest.mark.parametrize("kind", KINDS)
def test_gemma_4_is_measured_as_it_attends(kind: str) -> None:
    """Weights returned by the eager model are the witness."""
    settings, shared = KINDS[kind]
    model = make_gemma(**settings)
    assert tuple(model.shape.count_key_value_heads("decoder", layer) for layer in range(1, 5)) == shared
    table = measure(model, DOCUMENTS, ["surface"])
    expected = witnesses.surface([witnesses.see(model.module, model.tokenizer, each)["decoder"] for each in DOCUMENTS])
    for name in ("mass_first", "mass_previous", "entropy", "mean_distance"):
        np.testing.assert_allclose(table[name], expected[name], atol=1e-4, err_msg=name)
    assert float(table["entropy"].std()) > 0.01


def test_key_value_heads_that_differ_by_layer_are_named_by_layer() -> None:
    model = make_gemma(**KINDS["more key heads"][0])
    names = [unit.name for unit in list_units(model) if unit.kind == GROUP]
    assert names == [
        f"{layer}-kv{group}" for layer, count in enumerate((2, 3, 2, 3), 1) for group in range(1, count + 1)
    ]
    assert select_heads(model, ["1-kv2", "2-kv2"]) == {("decoder", 1): (3, 4, 5), ("decoder", 2): (2, 3)}
    with pytest.raises(HeadscopeError, match=r"^there is no key/value head 3-kv3; the layer has 2, 3-kv1 to 3-kv2\.$"):
        select_heads(model, "3-kv3")
    table = measure(model, DOCUMENTS[:2], ["surface"])
    assert table.attrs["key_value_heads_by_layer"] == '{"decoder": [2, 3, 2, 3]}'
    assert "key_value_heads" not in table.attrs
    with pytest.raises(HeadscopeError, match=r"^the layers of the model have different numbers of key/value heads"):
        headscope.analyse.group_heads(table, 2)


def block(**attention) -> dict:
    return {"attention": attention}


# fmt: off
STATED = {  # what a configuration of three layers says, and what it comes to
    "once": ({"num_attention_heads": 6, "num_key_value_heads": 2}, (2,)),
    "not at all": ({"num_attention_heads": 6}, (6,)),
    "lists": ({"num_attention_heads": [6, 6, 6], "num_key_value_heads": [2, 2, 2]}, (2,)),
    "lists that differ": ({"num_attention_heads": [6, 6, 6], "num_key_value_heads": [2, 3, 1]}, (2, 3, 1)),
    "names of OpenELM": ({"num_query_heads": [6, 6, 6], "num_kv_heads": [2, 3, 1]}, (2, 3, 1)),
    "names of DeciLM": ({"num_attention_heads": 6, "num_key_value_heads_per_layer": [2, 3, 1]}, (2, 3, 1)),
    "blocks": ({"num_attention_heads": 6, "block_configs": [
        block(n_heads_in_group=3), SimpleNamespace(attention=SimpleNamespace(n_heads_in_group=2)),
        block(n_heads_in_group=None, no_op=True)]}, (2, 3, 6)),
    "one for all": ({"num_attention_heads": 6, "multi_query": True}, (1,)),
    "a layer without": ({"num_attention_heads": [6, 0, 6], "num_key_value_heads": [2, None, 2]}, (2,)),
}
# fmt: on


@pytest.mark.parametrize("case", STATED)
def test_numbers_are_read_by_layer(case: str) -> None:
    stated, shared = STATED[case]
    config = SimpleNamespace(model_type="made-up", num_hidden_layers=3, **stated)
    assert count_heads(config) == 6
    assert count_key_value_heads(config, 6) == shared


def test_heads_that_are_convolutions_do_not_count() -> None:
    assert count_heads(hf.ConvBertConfig(num_attention_heads=6, head_ratio=2)) == 3


def test_a_block_without_attention_is_a_layer_without() -> None:
    config = hf.LlamaConfig(num_hidden_layers=3, num_attention_heads=6, hidden_size=84, head_dim=14)
    config.block_configs = [block(n_heads_in_group=3), block(no_op=True), block(replace_with_linear=True)]
    shape = Shape.from_config(config)
    assert shape.without_attention == {2: "no_op", 3: "linear"}
    assert shape.attention_layers == {"decoder": (1,)}
    assert shape.key_value_heads == {"decoder": 2}


@pytest.mark.parametrize(
    ("stated", "kind"),
    [
        ({"num_query_heads": [12, 16, 20]}, "openelm"),
        ({"num_attention_heads": 12, "num_attention_heads_per_layer": [12, 20, 20]}, "laguna"),
        (
            {"num_attention_heads": 12, "swa_num_attention_heads": 20, "layer_types": ["full_attention"] * 2
             + ["sliding_attention"]},
            "inkling",
        ),
    ],
)  # fmt: skip
def test_query_heads_that_differ_by_layer_are_refused(stated: dict, kind: str) -> None:
    with pytest.raises(ModelError) as refused:
        count_heads(SimpleNamespace(model_type=kind, num_hidden_layers=3, **stated))
    assert str(refused.value) == (
        f"the layers of the model have 12 to 20 attention heads (a model of the type {kind!r}), and tables have as "
        "many in each layer; give a model whose layers have equally many."
    )


def test_heads_that_differ_layer_by_layer_in_transformers_are_refused() -> None:
    config = hf.LlamaConfig(num_hidden_layers=2, num_attention_heads=6, hidden_size=84, head_dim=14)
    config.per_layer_config = {1: {"num_attention_heads": 3}}
    with pytest.raises(ModelError, match=r"^the layers of the model have 3 to 6 attention heads"):
        Shape.from_config(config)


def test_other_heads_than_the_configuration_has_are_noticed() -> None:
    module, words = tiny.make("bert")
    module.config.num_attention_heads = 7
    with pytest.raises(ModelError) as refused:
        measure(Model.from_module(module, words, name="bert"), DOCUMENTS, ["surface"])
    assert str(refused.value) == (
        "layer 1 of 'bert' has 5 heads, and by its configuration each has 7; give a model with equally many in all "
        "layers, whose configuration is its own."
    )


@pytest.mark.parametrize("kind", [hf.FNetConfig, hf.RwkvConfig])
def test_a_model_that_has_no_heads_is_refused(kind: type) -> None:
    config = kind(vocab_size=tiny.VOCABULARY, hidden_size=14, num_hidden_layers=2)
    with pytest.raises(ModelError) as refused:
        Model.from_module(hf.AutoModel.from_config(config), tiny.tokenizer(tiny.BERT), name="none")
    assert str(refused.value) == (
        f"the configuration of the model states no number of attention heads (a model of the type "
        f"{config.model_type!r}); give a model that has heads."
    )


@pytest.mark.parametrize(
    ("stated", "limit"),
    [
        ({"max_position_embeddings": 97, "seq_length": 31}, 97),
        ({"max_position_embeddings": -1}, None),
        ({"n_positions": 97}, 97),
        ({"max_seq_len": 97}, 97),
        ({"seq_length": 97}, 97),
        ({"max_sequence_length": 97}, 97),
        ({"max_context_length": 97}, 97),
        ({"max_encoder_position_embeddings": 97, "max_decoder_position_embeddings": 31}, 31),
        ({"max_source_positions": 97, "max_position_embeddings": None}, 97),
        ({}, None),
    ],
)
def test_limits_are_known_under_many_names(stated: dict, limit: int | None) -> None:
    assert find_limit(SimpleNamespace(**stated)) == limit


def test_the_limit_of_both_parts_of_an_encoder_decoder_counts() -> None:
    sizes = {"vocab_size": 131, "num_attention_heads": 5, "hidden_size": 35, "num_hidden_layers": 2}
    parts = [hf.BertConfig(**sizes, intermediate_size=37, max_position_embeddings=limit) for limit in (97, 31)]
    config = hf.EncoderDecoderConfig.from_encoder_decoder_configs(*parts)
    config.decoder_start_token_id = config.pad_token_id = 0
    model = Model.from_module(hf.EncoderDecoderModel(config), tiny.tokenizer(tiny.BERT), name="two")
    assert model.max_tokens == 30  # the start token takes one


def test_texts_beyond_the_limit_of_mpt_are_left_out() -> None:
    config = hf.MptConfig(d_model=36, n_heads=6, n_layers=2, max_seq_len=24, vocab_size=tiny.BYTE_VOCABULARY)
    module, words = hf.MptModel(config).eval(), tiny.tokenizer(tiny.GPT2)
    model = Model.from_module(module, words, name="mpt")
    documents = [Document(each.id, each.words) for each in DOCUMENTS]
    table = measure(model, documents, ["surface"])
    lengths = [len(words(list(each.words), is_split_into_words=True)["input_ids"]) for each in documents]
    assert model.max_tokens == 24 < max(lengths)
    left = sum(length > 24 for length in lengths)
    assert table.attrs["documents"] == len(documents) - left
    assert f'"documents longer than 24 tokens": {left}' in table.attrs["skipped"]
    short = [each for each, length in zip(documents, lengths, strict=True) if length <= 24]
    expected = witnesses.surface([witnesses.see(module, words, each)["decoder"] for each in short])
    np.testing.assert_allclose(table["entropy"], expected["entropy"], atol=1e-4)


def test_layers_in_a_form_that_is_not_known_are_refused() -> None:
    config = hf.LxmertConfig(
        vocab_size=131, hidden_size=12, num_attention_heads=3, intermediate_size=7, l_layers=1, x_layers=1, r_layers=1
    )
    with pytest.raises(ModelError, match=r"^the configuration of 'lxmert' states its layers or heads in a form that"):
        Model.from_module(hf.LxmertModel(config), tiny.make("bert")[1], name="lxmert")
