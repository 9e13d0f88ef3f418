"""Copying heads: against plain loops, whatever the batch, planted, and in a model without any."""

from functools import cache

import numpy as np
import pytest
import torch
import transformers as hf
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers

import headed
import laws
import tiny
import witnesses
from headscope.analyse import assess
from headscope.capture.model.model import Model
from headscope.corpora import Document, read
from headscope.errors import HeadscopeError, ModelError
from headscope.reducers import Copying, Reducer, Surface
from headscope.runner import Plan, measure

DOCUMENTS = [*tiny.documents(11), Document("again", ("the", "dog", "sees", "the", "dog", "."))]
FAMILIES = ("gpt2", "llama", "qwen3", "mistral")


@cache
def load(family: str) -> Model:
    return Model.from_module(*headed.make(family, "causal-lm"), name=family)


@pytest.mark.parametrize(
    "plan", [Plan(), Plan(batch_tokens=1, rows=3), Plan(fused=True)], ids=["batched", "alone, 3 rows", "fused"]
)
@pytest.mark.parametrize("family", FAMILIES)
def test_copying_is_what_plain_loops_say(family: str, plan: Plan) -> None:
    module, tokenizer = headed.make(family, "causal-lm")
    expected = witnesses.copying(module, tokenizer, DOCUMENTS)
    table = measure(load(family), DOCUMENTS, ["copying"], plan=plan)
    np.testing.assert_allclose(table["copying_mass"], expected["copied"], atol=2e-6)
    tokens = float(table["copying_count"])
    behind = table["fold_copied_behind"].sum("fold") / tokens
    np.testing.assert_allclose(behind, expected["behind"], atol=2e-6)
    random = float(table["fold_copied_random"].sum("fold")) / tokens
    assert random == pytest.approx(float(expected["random"]), abs=1e-9)
    assert expected["copied"].max() > 0.05
    assert expected["behind"].max() > 0.01


LAWFUL = (Surface(), Copying())


@cache
def tabulate_alone() -> xr.Dataset:
    return laws.tabulate_alone(load("mistral"), DOCUMENTS, LAWFUL)


@pytest.mark.full
@settings(max_examples=12, deadline=None)
@given(plan=laws.PLANS, order=st.permutations(range(len(DOCUMENTS))), cut=st.integers(1, len(DOCUMENTS) - 1))
def test_any_order_split_padding_batch_and_block(plan: Plan, order: list, cut: int) -> None:
    model, reducers = load("mistral"), LAWFUL
    permuted = [DOCUMENTS[place] for place in order]
    done = laws.merge(laws.add_up_parts(model, permuted, [cut], reducers, plan)[::-1])
    laws.assert_same(laws.tabulate_sums(done, model, reducers), tabulate_alone())


LAYERS, HEADS, KEY_HEADS, WIDTH, TOKENS = 2, 6, 3, 14, 89
"""Of the planted model; its tokens are directions in the first `WIDTH` numbers of the stream."""

SMALL = 1e-3
"""The size of output projections."""


def plant(planted: dict[tuple[int, int], str]) -> Model:
    """A Llama whose stream holds the token, and whose planted heads copy it or make it less probable.

    The embeddings have one length; feed-forward parts add nothing, and attention adds so little that all layers read
    the embeddings. All heads attend at random.
    """
    torch.manual_seed(5)
    size = HEADS * WIDTH
    config = hf.LlamaConfig(
        vocab_size=TOKENS, hidden_size=size, intermediate_size=7, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        num_key_value_heads=KEY_HEADS, head_dim=WIDTH, max_position_embeddings=512, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    module = hf.LlamaForCausalLM(config).eval()
    directions = torch.nn.functional.normalize(torch.randn(TOKENS, WIDTH), dim=-1)
    with torch.no_grad():
        module.model.embed_tokens.weight.zero_()
        # So long that what a norm adds to its divisor is nothing beside them.
        module.model.embed_tokens.weight[:, :WIDTH] = 20 * directions
        module.lm_head.weight.zero_()
        module.lm_head.weight[:, :WIDTH] = directions
        for number, layer in enumerate(module.model.layers, start=1):
            layer.mlp.down_proj.weight.zero_()
            layer.self_attn.o_proj.weight.normal_(0, SMALL)
            for (of_layer, head), what in planted.items():
                if of_layer == number:
                    key_head, part = (head - 1) // (HEADS // KEY_HEADS), slice((head - 1) * WIDTH, head * WIDTH)
                    value = layer.self_attn.v_proj.weight[key_head * WIDTH : (key_head + 1) * WIDTH]
                    value.zero_()
                    value[:, :WIDTH] = torch.eye(WIDTH)
                    output = layer.self_attn.o_proj.weight[:, part]
                    output.zero_()
                    output[:WIDTH] = SMALL * (torch.eye(WIDTH) if what == "copy" else -torch.eye(WIDTH))
    return Model.from_module(module, _make_tokenizer(), name="planted")


def _make_tokenizer() -> hf.PreTrainedTokenizerFast:
    """A word for each token."""
    names = ["<unk>", "<s>", "</s>", *(f"w{number}" for number in range(TOKENS - 3))]
    tokenizer = Tokenizer(models.WordLevel({name: number for number, name in enumerate(names)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return hf.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>", pad_token="</s>"
    )


def measure_repeats(model: Model) -> xr.Dataset:
    return assess(measure(model, read("repeats:31"), ["copying"]))


def test_a_planted_copying_head_is_reported_and_its_neighbours_are_not() -> None:
    table = measure_repeats(plant({(2, 4): "copy", (1, 3): "suppress"}))
    mass = table["copying_mass"]
    assert (int(table["copying_reported_layer"]), int(table["copying_reported_head"])) == (2, 4)
    # A special token stands in front, which no head copies.
    assert float(mass.sel(layer=2, head=4)) > 0.9
    assert float(mass.max()) == float(mass.sel(layer=2, head=4))
    others = mass.stack(place=("layer", "head")).drop_sel(place=[(2, 4)])
    assert float(others.max()) < 0.2
    assert float(mass.sel(layer=1, head=3)) < 1e-6
    assert float(table["copying_lift_lower"]) > 0.5
    assert float(table["copying_lift_p"]) < 0.01


@pytest.mark.parametrize("seed", range(3))
def test_in_a_model_without_copying_heads_none_stands_out(seed: int) -> None:
    torch.manual_seed(seed)
    module = plant({}).module
    with torch.no_grad():
        for layer in module.model.layers:
            layer.self_attn.v_proj.weight.normal_()
            layer.self_attn.o_proj.weight.normal_(0, SMALL)
    table = measure_repeats(Model.from_module(module, _make_tokenizer(), name="random"))
    assert float(table["copying_mass"].max()) < 0.2
    assert not float(table["copying_lift_lower"]) > 0.1


@pytest.mark.parametrize(
    ("family", "task", "why"),
    [
        ("bert", "masked-lm", "is read from the logits of a causal language model, and it has none"),
        ("t5", "causal-lm", "is read from the logits of a causal language model, and it has none"),
        ("gemma2", "causal-lm", "does more than to add the output of its attention to what it reads"),
    ],
)
def test_models_whose_logits_cannot_be_read_so_are_refused(family: str, task: str, why: str) -> None:
    model = Model.from_module(*headed.make(family, task), name=family)
    with pytest.raises(ModelError, match=why):
        measure(model, DOCUMENTS, ["copying"])


def test_a_model_without_its_head_is_refused() -> None:
    with pytest.raises(ModelError, match="load one with its head, as by --task causal-lm"):
        measure(Model.from_module(*tiny.make("llama"), name="bare"), DOCUMENTS, ["copying"])


class Asks(Surface):
    """A reducer that asks what it has not declared."""

    def observe(self, facts, attention):
        attention.raised()
        return super().observe(facts, attention)


def test_who_does_not_declare_it_is_told_so() -> None:
    asks: Reducer = Asks()
    with pytest.raises(HeadscopeError, match="declare reads_logits = True in the reducer"):
        measure(load("llama"), DOCUMENTS, [asks])


def test_copying_through_the_norm_view_is_a_share_of_what_flows() -> None:
    table = measure(load("llama"), DOCUMENTS, ["copying"], plan=Plan(view="norm"))
    weights = measure(load("llama"), DOCUMENTS, ["copying"])
    assert float(abs(table["copying_mass"] - weights["copying_mass"]).max()) > 1e-3
    assert float(table["copying_mass"].max()) <= 1
