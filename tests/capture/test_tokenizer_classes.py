"""Every fast tokenizer class of transformers, in memory and from a folder: tokens of running text, and their words.

A text reads "do|n't": two words of one piece of text. The witness of the word of each token goes by characters, and
the tokens of each word spell it.
"""

import re
import unicodedata
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

import pytest
import transformers as hf
from transformers import PreTrainedTokenizerBase

import tokenizer_classes
from headscope.capture.open.loading import load
from headscope.capture.tokens.align import Aligned, Alignment, explain_unread
from headscope.capture.tokens.assign import NO_WORD, SPECIAL
from headscope.corpora import Document
from headscope.corpora.written_text import Offsets, WrittenText
from headscope.text_forms import WRITTEN

TEXTS = (
    "In 1984|, they do|n't visit the U.S.| in 19|84|.",
    "They  visit\nthe dog\t\tin\u00a0the U.S.|\n",
    " the dog|. 10\u00a0000 dogs",
    "café cafe\u0301 the|, na\u00efve nai\u0308ve",
    "中文|中 the 中|文|中|. हिन्दी",
    "the 😀 dog|😀|, 👩\u200d💻 👍🏽|👍🏽 the",
    "``the dog|''|, 한글 \u1112\u1161\u11ab\u1100\u1173\u11af ｶﾞｽ …| ﬁn|d Ａ",
)
CLASSES = [name for name in tokenizer_classes.MAKERS if name not in tokenizer_classes.PAGES]
CLASSES += [*tokenizer_classes.FILES, "EsmcTokenizer"]
FRAMED_WHEN_LOADED = {"RemBertTokenizer"}
"""Transformers adds the special tokens of these classes only where a tokenizer comes from a folder."""


def read(marked: str) -> Document:
    """A document of words that white space and bars part; bars are none of its text."""
    offsets, text = [], ""
    for part in re.split(r"(\s+|\|)", marked):
        if part.strip() and part != "|":
            offsets.append((len(text), len(text) + len(part)))
        text += part.strip("|")
    words = tuple(text[first:end] for first, end in offsets)
    return Document(marked, words, written=WrittenText(text, tuple(offsets)))


def expect(text: str, words: Sequence[Offsets], tokens: Sequence[Offsets]) -> tuple[list[int], list[int]]:
    """The unit of each word and of each token, by looking at every character."""
    owners = [{number for number, word in enumerate(words) if place in range(*word)} for place in range(len(text) + 1)]
    touched = []
    for first, end in tokens:
        visible = [place for place in range(first, end) if not text[place].isspace()]
        own = set().union(*(owners[place] for place in visible))
        if not visible:
            alone = end == 0 or (text[end - 1] == " " and not text[: end - 1][-1:].isspace())
            own = owners[first] if first < end and owners[first] else owners[end] if alone else set()
        touched.append(own)
    joined = {word for own in touched for word in own if word > min(own)}
    units = [*accumulate((word not in joined for word in range(1, len(words))), initial=0)]
    return units, [units[min(own)] if own else NO_WORD for own in touched]


def spell(text: str) -> str:
    """The letters of a text or of tokens, whatever a tokenizer does to accents, width, case and quotation marks."""
    letters = [letter for letter in unicodedata.normalize("NFKD", text) if unicodedata.category(letter)[0] not in "MCZ"]
    return re.sub("``|''", '"', re.sub("##|▁", "", "".join(letters))).casefold()


def check(tokenizer: PreTrainedTokenizerBase) -> list[Aligned]:
    """Check the tokens and words of each text, and return them."""
    special = list(dict.fromkeys(tokenizer.all_special_tokens))[:7]
    documents = [read(marked) for marked in (*TEXTS, *(f"the {token} dog|{token}" for token in special))]
    aligned, skipped = Alignment(tokenizer, None, False, 128, WRITTEN).align(documents)
    assert {key for key in skipped if "links" not in key} == set()
    assert [text.document.id for text in aligned] == [document.id for document in documents]
    spelt = 0
    for text, document in zip(aligned, documents, strict=True):
        content, offsets = document.text.content, document.text.offsets
        encoded = tokenizer(content, return_offsets_mapping=True)
        assert text.ids == encoded["input_ids"]
        own = [side is not None for side in encoded.sequence_ids(0)]
        places = [place for place, of_text in zip(encoded["offset_mapping"], own, strict=True) if of_text]
        units, words = expect(content, offsets, places)
        assert [word for word in text.word if word != SPECIAL] == words, content
        assert [word != SPECIAL for word in text.word] == own
        plain = tokenizer(content, add_special_tokens=False)["input_ids"]
        assert [token for token, word in zip(text.ids, text.word, strict=True) if word != SPECIAL] == plain
        assert {*units} == {*range(len(text.document.words))} <= {*text.word}
        for unit in {*units}:
            tokens = [token for token, word in zip(text.ids, text.word, strict=True) if word == unit]
            if tokenizer.unk_token_id not in tokens:
                members = [place for place, number in zip(offsets, units, strict=True) if number == unit]
                decoded = tokenizer.backend_tokenizer.decode(tokens, skip_special_tokens=False)
                assert spell(decoded) == spell(content[members[0][0] : members[-1][1]])
                spelt += 1
    assert spelt > 0
    return aligned


def test_every_fast_class_is_built_or_named() -> None:
    fast = {name for name, kind in tokenizer_classes.list_classes().items() if issubclass(kind, hf.TokenizersBackend)}
    files = {"TokenizersBackend", "ParakeetTokenizer", "EsmcTokenizer"}
    assert fast == {*tokenizer_classes.MAKERS, *tokenizer_classes.NOT_BUILT, *files}


@pytest.mark.parametrize("name", CLASSES)
def test_a_tokenizer_in_memory_has_the_tokens_of_running_text(name: str) -> None:
    check(tokenizer_classes.make(name))


@pytest.mark.full
@pytest.mark.parametrize("name", CLASSES)
def test_a_tokenizer_from_a_folder_has_the_tokens_it_has_in_memory(name: str, tmp_path: Path) -> None:
    tokenizer = tokenizer_classes.make(name)
    tokenizer.save_pretrained(tmp_path)
    loaded = check(hf.AutoTokenizer.from_pretrained(tmp_path))
    if name not in FRAMED_WHEN_LOADED:
        assert loaded == check(tokenizer)


WITHOUT = {
    "LlamaTokenizer": tokenizer_classes.make_pieces(["<unk>", "<s>", "</s>"]),  # neither bytes nor the unknown
    "GPT2Tokenizer": {"vocab": {letter: number for number, letter in enumerate("thedogĠ")}, "merges": []},
}
"""Vocabularies that lack a character, of classes that have no token for the unknown."""


@pytest.mark.parametrize("name", WITHOUT)
def test_a_text_with_a_character_that_a_vocabulary_lacks_is_left_out(name: str) -> None:
    tokenizer = getattr(hf, name)(**WITHOUT[name])
    aligned, skipped = Alignment(tokenizer, None, False, 128, WRITTEN).align([read("the 😀 dog"), read("the dog")])
    assert [text.document.id for text in aligned] == ["the dog"]
    assert skipped == {"documents with characters that the tokenizer drops": 1}
    assert explain_unread("llama", skipped) == (
        "the tokenizer of llama drops characters of this text; type one without them."
    )


SIZES = {"num_hidden_layers": 1, "num_attention_heads": 2, "hidden_size": 24}
GROUPED = {**SIZES, "intermediate_size": 8, "num_key_value_heads": 1, "head_dim": 12}
MODELS = {
    "bert": ("BertTokenizer", SIZES),
    "roberta": ("RobertaTokenizer", SIZES),
    "xlm-roberta": ("XLMRobertaTokenizer", SIZES),
    "gpt2": ("GPT2Tokenizer", SIZES),
    "llama": ("LlamaTokenizer", GROUPED),
    "qwen2": ("Qwen2Tokenizer", GROUPED),
    "gemma": ("GemmaTokenizer", GROUPED),
    "t5": ("T5Tokenizer", SIZES),
}


@pytest.mark.parametrize("model", MODELS)
def test_a_model_from_a_folder_reads_as_the_one_in_memory(model: str, tmp_path: Path) -> None:
    name, sizes = MODELS[model]
    tokenizer = tokenizer_classes.make(name)
    module = hf.AutoModel.from_config(hf.AutoConfig.for_model(model, **sizes, vocab_size=len(tokenizer)))
    for part in (module, tokenizer):
        part.save_pretrained(tmp_path)
    documents = [read(marked) for marked in TEXTS]
    read_by = [Alignment.for_model(opened, text=WRITTEN) for opened in (load(module, tokenizer), load(tmp_path))]
    in_memory, from_folder = (alignment.align(documents) for alignment in read_by)
    assert in_memory == from_folder
    assert len(in_memory[0]) == len(TEXTS)
