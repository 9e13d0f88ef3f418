"""What a decoder reads of a document with a translation: the words of that, and a length of its own."""

from dataclasses import replace

import pytest
import torch

import tiny
import tiny_pairs
from family_maps import make
from headscope.capture.forward.interface import Capture
from headscope.capture.model.languages import set_languages
from headscope.capture.model.model import Model
from headscope.capture.passes.views import VIEWS
from headscope.capture.tokens.align import Alignment, TranslationTokens, is_cut
from headscope.capture.tokens.batch import collate
from headscope.corpora import Document
from headscope.errors import ModelError
from headscope.runner import Plan, measure
from headscope.runner.example_texts import read_texts
from plain_reducers import OF_ONE_MODEL

PAIRS = tiny_pairs.pairs(13)


def pair(*words: int) -> Document:
    """A document and a translation of so many words."""
    first, second = (("the",) * count for count in words)
    return Document(f"pair {words}", first, translation=second)


def test_tokens_of_a_translation_are_traced_to_its_words() -> None:
    model = make("bart")
    (text,), skipped = Alignment.for_model(model).align(
        [Document("d", ("the", "dog"), translation=("walking", "cat", "walked"))]
    )
    encoded = model.tokenizer(text_target=["walking", "cat", "walked"], is_split_into_words=True)
    assert not skipped
    assert text.translation == TranslationTokens(
        encoded["input_ids"], [-1 if word is None else 2 + word for word in encoded.word_ids()]
    )
    batch = collate(model, [text])
    assert batch.decoder is not None
    assert batch.decoder.ids[0].tolist() == [model.start_id, *encoded["input_ids"]]
    assert batch.decoder.word[0].tolist() == [-1, *text.translation.word]
    assert batch.decoder.position[0].tolist() == [*range(-1, len(encoded["input_ids"]))]
    assert batch.words == 2


def test_a_model_without_a_decoder_beside_its_encoder_passes_translations_over() -> None:
    for family in ("bert", "gpt2"):
        (text,), _ = Alignment.for_model(make(family)).align([pair(3, 200)])
        assert text.translation is None


@pytest.mark.parametrize("words", [(5, 1), (5, 4), (5, 5), (5, 9)])
@pytest.mark.parametrize("family", ["bart", "t5"])
def test_the_sides_of_a_batch_differ_in_length_and_its_maps_are_those_of_the_model(family: str, words: tuple) -> None:
    model = make(family)
    aligned, _ = Alignment.for_model(model).align([pair(*words), pair(2, 2)])
    batch = collate(model, aligned)
    assert batch.decoder is not None
    assert batch.decoder.length != batch.encoder.length
    longest = max(len(text.translation.ids) for text in aligned) + 1
    assert batch.decoder.length == longest + (longest == batch.encoder.length)
    assert batch.decoder.real.sum(1).tolist() == [len(text.translation.ids) + 1 for text in aligned]
    layers = Capture.verified(model, batch).run(batch).layers
    assert dict(layers) == {"encoder": 2, "decoder": 3, "cross": 3}


def test_padding_behind_a_translation_changes_nothing() -> None:
    model = make("bart")
    aligned, _ = Alignment.for_model(model).align([pair(4, 3)])
    batch = collate(model, aligned)
    assert batch.decoder.real.tolist() == [[True] * 6 + [False]]  # the start token, <s>, three words and </s>
    padded = model.module(**batch.inputs).last_hidden_state
    alone = {name: ids[:, :6] for name, ids in batch.inputs.items()}
    torch.testing.assert_close(padded[:, :6], model.module(**alone).last_hidden_state)


def test_a_translation_that_is_too_long_is_left_out_or_cut_and_counted() -> None:
    model = make("bart")
    long, short = pair(3, 200), pair(3, 5)
    aligned, skipped = Alignment.for_model(model, max_tokens=17).align([long, short])
    assert [text.document for text in aligned] == [short]
    assert dict(skipped) == {"documents with translations longer than 17 tokens": 1}
    aligned, skipped = Alignment.for_model(model, max_tokens=17, cut=True).align([long, short])
    assert [len(text.translation.ids) for text in aligned] == [17, 7]
    assert dict(skipped) == {"translations cut to 17 tokens (the rest is used)": 1}
    assert is_cut(skipped)


def test_a_translation_as_long_as_the_model_reads_is_read() -> None:
    model = make("bart")
    limit = model.max_tokens
    full = pair(limit - 2, limit - 2)
    table = measure(model, [full, replace(pair(limit - 2, limit - 3), id="other")], ["surface"])
    assert table.attrs["documents"] == 2
    assert table.attrs["skipped"] == "{}"


def test_a_word_of_a_translation_without_a_token_is_counted() -> None:
    document = Document("d", ("the",), translation=("cat", tiny.TOKENLESS[1], "dog"))
    (text,), skipped = Alignment.for_model(make("t5")).align([document])
    assert {1, 3} <= {*text.translation.word}
    assert dict(skipped) == {"words of translations without a token": 1}


@pytest.mark.parametrize("view", [None, *(name for name, view in VIEWS.items() if not view.of_loss)])
def test_every_reducer_and_view_takes_documents_with_translations(view: str | None) -> None:
    names = [name for name in OF_ONE_MODEL if name in ("surface", "head_distances", "average_map", "nearby_tokens")]
    names += ["sinks", "map_patterns", "sparse_shapes"]
    table = measure(make("bart"), PAIRS[:5], names, plan=Plan(view=view))
    assert table["entropy"].sel(attention_type="cross").notnull().all()


class Languages(type(tiny.make("bart")[1])):
    """A tokenizer of several languages, which begins a text with the token of its language."""

    src_lang, tgt_lang = "the", ""

    def _switch_to_target_mode(self) -> None:
        self.language = self.tgt_lang

    def _switch_to_input_mode(self) -> None:
        self.language = self.src_lang


def make_languages() -> Model:
    module, tokenizer = tiny.make("bart")
    tokenizer.__class__ = Languages
    return Model.from_module(module, tokenizer, name="many")


def test_languages_are_those_of_a_copy_of_the_tokenizer() -> None:
    model = make_languages()
    word = next(token for token in model.tokenizer.get_vocab() if token.endswith("dog"))
    named = set_languages(model, source=word, target=word)
    assert (named.tokenizer.src_lang, named.tokenizer.tgt_lang) == (word, word)
    assert (model.tokenizer.src_lang, model.tokenizer.tgt_lang) == ("the", "")
    Alignment.for_model(named).align([pair(2, 3)])
    assert named.tokenizer.language == word


def test_languages_that_the_tokenizer_does_not_have_are_refused() -> None:
    assert set_languages(make("bart")) is make("bart")
    cases = {
        (
            "bart",
            "source",
            "eng_Latn",
        ): "the tokenizer of 'bart' (RobertaTokenizer) is of one language alone, so it has no "
        "source language 'eng_Latn'; leave it out.",
        ("many", "target", "eng_Latn"): "the tokenizer of 'many' (Languages) has no token 'eng_Latn' for the target "
        "language; name it as the tokenizer does, such as eng_Latn (NLLB) or en_XX (mBART).",
        ("many", "source", None): "the tokenizer of 'many' (Languages) is of several languages, and that of the "
        "translation is not known; name it as the tokenizer does, such as --target fra_Latn.",
    }
    for (name, side, language), sentence in cases.items():
        model = make_languages() if name == "many" else make("bart")
        kind = type(model.tokenizer).__name__
        with pytest.raises(ModelError) as refused:
            set_languages(model, **{side: language})
        assert str(refused.value) == sentence.replace("RobertaTokenizer", kind)


def test_words_of_a_translation_are_shown_as_tokens() -> None:
    document = Document("d", ("the", "dog"), translation=("walking", "cat"))
    (text,) = read_texts(make("bart"), [document], Plan())
    assert {*text.sides["encoder"].token_words} == {-1, 0, 1}
    assert {*text.sides["decoder"].token_words} == {-1}
    assert len(text.sides["decoder"].token_words) > 5
