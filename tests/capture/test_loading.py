"""A loaded model of transformers, with or without its tokenizer and its task head; words that must not run together."""

import pytest
import torch
import transformers as hf
import xarray as xr
from tokenizers import Regex
from tokenizers import pre_tokenizers as pre
from transformers import PreTrainedTokenizerFast

import headscope
import tiny
from headscope.capture.model.model import Model
from headscope.capture.open.loading import _wrap, load
from headscope.capture.tokens.align import Alignment
from headscope.corpora import Document
from headscope.errors import ModelError

WORDS = ("the", "dog", "walked", ".")
PIECES = ["Ġthe", "Ġdog", "Ġwalk", "ed", "Ġ."]
SPLIT = Regex(r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s+")
# Without a space of their own before each word: GPT-2's, that of SmolLM, and that of Llama 3 and Qwen 2.
SPACELESS = {
    "gpt2": pre.ByteLevel(add_prefix_space=False),
    "smollm": pre.Sequence([pre.Digits(individual_digits=True), pre.ByteLevel(add_prefix_space=False)]),
    "llama3": pre.Sequence([pre.Split(SPLIT, behavior="isolated"), pre.ByteLevel(False, use_regex=False)]),
}


def spaceless(kind: str) -> PreTrainedTokenizerFast:
    """A tokenizer that puts no space in front of a text."""
    tokenizer = tiny.tokenizer(tiny.GPT2)
    tokenizer.backend_tokenizer.pre_tokenizer = SPACELESS[kind]
    return tokenizer


def pieces(model: Model) -> list[str]:
    ((aligned,), _) = Alignment.for_model(model, text="spaced").align([Document("a", WORDS)])
    return model.tokenizer.convert_ids_to_tokens(aligned.ids)


@pytest.mark.parametrize("kind", SPACELESS)
def test_words_do_not_run_together(kind: str, tmp_path) -> None:
    tokenizer = spaceless(kind)
    module = tiny.make("gpt2")[0]
    model = Model.from_module(module, tokenizer)
    assert model.tokenizer is tokenizer
    assert pieces(model) == PIECES
    module.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    assert pieces(load(tmp_path)) == PIECES


def test_a_text_has_the_tokens_that_it_has_as_a_string() -> None:
    model = Model.from_module(tiny.make("gpt2")[0], spaceless("llama3"))
    for text, string in (("written", "the dog walked"), ("spaced", " the dog walked")):
        ((aligned,), _) = Alignment.for_model(model, text=text).align([Document("a", WORDS[:3])])
        assert aligned.ids == spaceless("llama3")(string)["input_ids"]


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_other_tokenizers_stay_as_they_are(family: str) -> None:
    module, tokenizer = tiny.make(family)
    assert Model.from_module(module, tokenizer).tokenizer is tokenizer


@pytest.mark.parametrize(
    ("auto", "family"), [(hf.AutoModelForCausalLM, "gpt2"), (hf.AutoModelForMaskedLM, "bert")], ids=["causal", "masked"]
)
def test_of_a_model_with_a_task_head_the_base_model_is_measured(auto, family: str, tmp_path) -> None:
    module, tokenizer = tiny.make(family)
    module.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    headed = auto.from_pretrained(tmp_path)
    documents = [Document("a", WORDS)]
    expected = headscope.measure(load(tmp_path), documents, ["surface"]).drop_attrs()
    for given in (headed, (headed, tokenizer), load(headed, tokenizer), headed.base_model):
        xr.testing.assert_identical(headscope.measure(given, documents, ["surface"]).drop_attrs(), expected)
    assert load(headed).name == str(tmp_path)
    assert type(load(headed, task="causal-lm" if family == "gpt2" else "masked-lm").module) is type(headed)


def test_a_model_that_was_loaded_by_headscope_is_itself() -> None:
    model = Model.from_module(*tiny.make("bert"), name="bert")
    assert load(model) is model
    assert load(model, tiny.make("bert")[1]).name == "bert"


def test_the_mode_of_the_module_is_evaluation() -> None:
    module, tokenizer = tiny.make("bert")
    load(module.train(), tokenizer)
    assert not module.training


def test_a_model_shows_its_name_and_sizes() -> None:
    assert (
        repr(Model.from_module(*tiny.make("bert"), name="mine"))
        == "Model('mine', BertModel, 2 x 5 heads (encoder), cpu)"
    )
    sizes = "2 x 5 heads (encoder), 3 x 5 heads (decoder), 3 x 5 heads (cross)"
    assert repr(Model.from_module(*tiny.make("bart"), name="b")) == f"Model('b', BartModel, {sizes}, cpu)"


def test_what_is_no_model_with_its_tokenizer_is_refused_in_a_sentence(tmp_path) -> None:
    module, tokenizer = tiny.make("bert")
    large = tiny.make("gpt2")[1]
    refusals = {
        "the model is of type Linear; give a hub id, a folder with config.json, weights and tokenizer, a .gguf file, "
        "`minilm` or `smollm2`, or a loaded model of transformers.":
        lambda: _wrap(torch.nn.Linear(2, 3), tokenizer, None),
        "the loaded model 'BertModel' comes without its tokenizer; give both, as in headscope.load(model, tokenizer).":
        lambda: load(module),
        f"the tokenizer of 'BertModel' knows {len(large)} tokens and the model 131; give the tokenizer that the model "
        "was trained with.": lambda: load(module, large),
        "the tokenizer of 'minilm' is loaded with it; leave the tokenizer out.": lambda: load("minilm", tokenizer),
        "a model with its tokenizer is a pair, and 2 were given; write (model, tokenizer).":
        lambda: load((module, tokenizer), tokenizer),
    }  # fmt: skip
    for message, refuse in refusals.items():
        with pytest.raises(ModelError) as refused:
            refuse()
        assert str(refused.value) == message
