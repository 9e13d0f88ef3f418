"""Tokenizers that no model is read with: each is refused with a sentence that says why, and what to give."""

from pathlib import Path
from typing import Any

import pytest
import transformers as hf

import tiny
import tokenizer_classes
from headscope.capture.model.model import Model
from headscope.capture.open.loading import load
from headscope.capture.tokens.align import Alignment
from headscope.corpora import Document
from headscope.errors import ModelError
from headscope.text_forms import WRITTEN

SIZES = {"num_hidden_layers": 2, "num_attention_heads": 5, "hidden_size": 35, "intermediate_size": 37}


def refuse(module: hf.PreTrainedModel, tokenizer: Any) -> str:
    with pytest.raises(ModelError) as refused:
        Model.from_module(module, tokenizer, name="x")
    return str(refused.value)


@pytest.mark.parametrize("name", tokenizer_classes.PAGES)
def test_a_tokenizer_that_reads_pages_is_refused_and_its_vocabulary_is_read_without_it(name: str, tmp_path: Path):
    module = hf.RobertaModel(hf.RobertaConfig(**SIZES, vocab_size=400))
    for part in (module, tokenizer_classes.make(name)):
        part.save_pretrained(tmp_path)
    what = "the nodes of a page" if name == "MarkupLMTokenizer" else "words with their boxes on a page"
    with pytest.raises(ModelError) as refused:
        load(tmp_path)
    assert str(refused.value) == (
        f"the tokenizer of {str(tmp_path)!r} ({name}) reads {what} and no running text; in Python, give the model with "
        "a tokenizer of text, such as PreTrainedTokenizerFast.from_pretrained(folder), which has the same vocabulary."
    )
    model = load(module, hf.PreTrainedTokenizerFast.from_pretrained(tmp_path))
    ((aligned,), skipped) = Alignment.for_model(model, text=WRITTEN).align([Document("a", ("the", "dog", "don't"))])
    assert {*aligned.word} - {-1} == {0, 1, 2}
    assert not skipped


@pytest.mark.full
def test_every_slow_class_is_refused() -> None:
    module, _ = tiny.make("bert")
    kinds = tokenizer_classes.list_classes()
    slow = {name: kind for name, kind in kinds.items() if not issubclass(kind, hf.TokenizersBackend)}
    assert len(slow) > 25
    for name, kind in slow.items():
        assert refuse(module, object.__new__(kind)) == (
            f"the tokenizer of 'x' ({name}) is a slow one, which cannot say which word a token comes from; give a "
            "model with a tokenizer.json."
        )


def make_two_sided(vocabulary: int) -> hf.PreTrainedModel:
    """An encoder-decoder whose decoder has a vocabulary of some size beside an encoder with that of `tiny`."""
    parts = [hf.BertConfig(**SIZES, vocab_size=size) for size in (tiny.VOCABULARY, vocabulary)]
    config = hf.EncoderDecoderConfig.from_encoder_decoder_configs(*parts)
    config.decoder_start_token_id = config.pad_token_id = 0
    return hf.EncoderDecoderModel(config)


def make_marian(vocabulary: int) -> hf.PreTrainedModel:
    """A translator whose decoder has a vocabulary of some size, as Marian's may."""
    sizes = {f"{side}_{size}": 2 for side in ("encoder", "decoder") for size in ("layers", "attention_heads")}
    tokens = {"vocab_size": tiny.VOCABULARY, "decoder_vocab_size": vocabulary, "decoder_start_token_id": 0}
    shared = {"share_encoder_decoder_embeddings": False, "pad_token_id": 0}
    return hf.MarianModel(hf.MarianConfig(**sizes, **tokens, **shared, d_model=24))


@pytest.mark.parametrize("vocabulary", [131, 97, 1021])
@pytest.mark.parametrize("make", [make_two_sided, make_marian])
def test_an_encoder_decoder_of_two_vocabularies_is_refused(make, vocabulary: int) -> None:
    module, tokenizer = make(vocabulary), tiny.tokenizer(tiny.T5)
    if vocabulary == tiny.VOCABULARY:
        assert Model.from_module(module, tokenizer).layers == {"encoder": 2, "decoder": 2, "cross": 2}
        return
    assert refuse(module, tokenizer) == (
        f"the encoder of 'x' ({type(module).__name__}) knows 131 tokens and its decoder {vocabulary:,}, and "
        "headscope gives both the tokens of one tokenizer; give a model with one vocabulary."
    )
