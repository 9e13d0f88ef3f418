"""The word of each token, from their characters: a naive search over characters is the witness."""

import unicodedata
from itertools import pairwise

import hypothesis
import pytest
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerFast

import tiny
from headscope.capture.model.model import Model
from headscope.capture.open.loading import load
from headscope.capture.tokens.align import Alignment
from headscope.capture.tokens.assign import NO_WORD, SPECIAL, assign_tokens, find_lead
from headscope.corpora import Document
from headscope.corpora.written_text import Offsets, WrittenText, join_words, split_text
from headscope.text_forms import SPACED, WRITTEN


def assign(text: WrittenText, *tokens: Offsets | None) -> tuple[list[int], list[int], str]:
    assigned = assign_tokens(text, tokens)
    return assigned.units, assigned.tokens, assigned.dropped


def unite(text: WrittenText, tokens: list[Offsets]) -> list[int]:
    """The unit of each word, by looking at every character of every word and token."""
    letters = [{at for at in range(*word) if not text.content[at].isspace()} for word in text.offsets]
    touched = [{w for w, own in enumerate(letters) if own & {*range(*token)}} for token in tokens]
    together = [*touched, *({a, b} for a, x in enumerate(letters) for b, y in enumerate(letters) if x & y)]
    units, number = [], -1
    for word in range(len(letters)):
        number += not any(min(group) < word <= max(group) for group in together if group)
        units.append(number)
    return units


WORD = st.text("ab", min_size=1, max_size=4)


@hypothesis.given(
    words=st.lists(WORD, min_size=1, max_size=7), gaps=st.lists(st.sampled_from(["", " ", "  ", "\n"]), min_size=8),
    cuts=st.sets(st.integers(1, 40)),
)  # fmt: skip
def test_words_that_share_a_token_are_a_unit(words: list[str], gaps: list[str], cuts: set[int]) -> None:
    content, offsets = "", []
    for word, gap in zip(words, gaps, strict=False):
        offsets.append((len(content), len(content) + len(word)))
        content += word + gap
    text = WrittenText(content, tuple(offsets))
    edges = [0, *sorted(cut for cut in cuts if cut < len(content)), len(content)]
    tokens = [*pairwise(edges)]
    units, of_tokens, dropped = assign(text, *tokens)
    assert units == unite(text, tokens)
    assert dropped == ""
    for (start, end), unit in zip(tokens, of_tokens, strict=True):
        own = {
            units[w]
            for w, (first, last) in enumerate(offsets)
            if content[start:end].strip() and first < end and start < last
        }
        if own:
            assert {unit} == own
        else:  # of no word, or the space in front of one
            begins = {first: units[w] for w, (first, _) in enumerate(offsets)}
            assert unit == NO_WORD or (content[start:end] == " " and begins[end] == unit)


@pytest.mark.parametrize(
    ("content", "words", "tokens", "expected"),
    [
        ("do n't", ((0, 2), (3, 6)), [(0, 2), (2, 4), (4, 6)], ([0, 1], [0, 1, 1])),
        ("don't", ((0, 2), (2, 5)), [(0, 3), (3, 4), (4, 5)], ([0, 0], [0, 0, 0])),
        ("don't", ((0, 2), (2, 5)), [(0, 2), (2, 5)], ([0, 1], [0, 1])),
        ("im Haus", ((0, 2), (0, 2), (3, 7)), [(0, 2), (3, 7)], ([0, 0, 1], [0, 1])),
        ("a 19", ((0, 1), (2, 4)), [(0, 1), (1, 2), (2, 3), (3, 4)], ([0, 1], [0, 1, 1, 1])),
        ("a 19", ((0, 1), (2, 4)), [(0, 1), (2, 2), (2, 3), (3, 4)], ([0, 1], [0, 1, 1, 1])),  # as RoBERTa says it
        ("a  b", ((0, 1), (3, 4)), [(0, 1), (1, 2), (2, 4)], ([0, 1], [0, NO_WORD, 1])),
        ("a\nb", ((0, 1), (2, 3)), [(0, 1), (1, 2), (2, 3)], ([0, 1], [0, NO_WORD, 1])),
        ("日本", ((0, 1), (1, 2)), [(0, 1), (0, 2), (1, 2)], ([0, 0], [0, 0, 0])),  # bytes of both in one token
        ("a", ((0, 1),), [None, (0, 1), None], ([0], [SPECIAL, 0, SPECIAL])),
        ("a \u200b b", ((0, 1), (2, 3), (4, 5)), [(0, 1), (1, 2), (3, 5)], ([0, 1, 2], [0, NO_WORD, 2])),
        ("10 000 x", ((0, 6), (7, 8)), [(0, 2), (2, 3), (3, 6), (6, 8)], ([0, 1], [0, 0, 0, 1])),  # a space inside
        ("日 a", ((0, 1), (2, 3)), [(0, 0), (0, 1), (1, 3)], ([0, 1], [0, 0, 1])),  # RoBERTa's own space, of no width
        (" 日", ((1, 2),), [(0, 0), (1, 2)], ([0], [0, 0])),
    ],
)  # fmt: skip
def test_a_token_is_of_the_words_whose_characters_it_has(content, words, tokens, expected) -> None:
    assert assign(WrittenText(content, words), *tokens) == (*expected, "")


@pytest.mark.parametrize(
    ("tokens", "dropped"),
    [([(0, 1), (4, 5)], "日"), ([(0, 1), (2, 3)], "b"), ([(2, 3), (4, 5)], "a"), ([(0, 1), (2, 3), (4, 5)], "")],
)
def test_a_visible_character_in_no_token_is_noticed(tokens: list[Offsets], dropped: str) -> None:
    assert assign(join_words(("a", "日", "b")), *tokens)[-1] == dropped


def test_the_beginning_of_a_text_may_be_cut_off() -> None:
    text = join_words(("日", "a"))
    assert assign_tokens(text, [(2, 3)], whole=False).dropped == ""
    assert assign_tokens(text, [(2, 3)]).dropped == "日"


def test_combining_marks_control_characters_and_spaces_may_be_dropped() -> None:
    assert assign(join_words(("e\u0301", "\u200b", "a\ufffd")), (0, 1), (5, 6))[-1] == ""


def test_a_text_with_dropped_characters_is_left_out_and_counted() -> None:
    module, tokenizer = tiny.make("gpt2")
    tokenizer.backend_tokenizer.normalizer = normalizers.Replace("x", "")
    documents = [Document("a", ("the", "xx", "dog")), Document("b", ("the", "dog"))]
    aligned, skipped = Alignment.for_model(Model.from_module(module, tokenizer)).align(documents)
    assert [text.document.id for text in aligned] == ["b"]
    assert skipped == {"documents with characters that the tokenizer drops": 1}


LETTERS = unicodedata.normalize("NFD", "한글")  # six letters of two syllables


@pytest.mark.parametrize(
    ("normalizer", "words"),
    [
        (normalizers.Replace("``", '"'), ("the", "``", "dog", "``")),  # as ALBERT and XLNet read quotation marks
        (normalizers.NFC(), (LETTERS, "dog", LETTERS[:3])),
        (normalizers.NFKC(), ("ｶﾞｽ", "dog")),
        (normalizers.Replace(Regex(r"\.{2,}"), "…"), ("the", "dog...", "dog..")),
        (normalizers.Replace(Regex("-+"), "-"), ("the--dog", "dog", "---")),
    ],
)
def test_characters_that_are_written_as_one_are_read(normalizer: normalizers.Normalizer, words) -> None:
    _, tokenizer = tiny.make("gpt2")
    tokenizer.backend_tokenizer.normalizer = normalizer
    (offsets,) = tokenizer([" ".join(words)], return_offsets_mapping=True)["offset_mapping"]
    assert {*range(len(" ".join(words)))} - {place for token in offsets for place in range(*token)}
    for text in (WRITTEN, SPACED):
        ((aligned,), skipped) = Alignment(tokenizer, None, False, 128, text).align([Document("a", words)])
        assert {*aligned.word} == {*range(len(words))}
        assert not skipped


@pytest.mark.parametrize(
    ("normalizer", "content"),
    [
        (normalizers.Sequence([normalizers.Replace("``", '"'), normalizers.Replace("x", "")]), "the x `` dog"),
        (normalizers.Replace("``", '"'), "the 日 `` dog"),
        (normalizers.Sequence([normalizers.Replace(Regex("-+"), "-"), normalizers.Replace("x", "")]), "the--dogxx"),
        (normalizers.Sequence([normalizers.Replace("``", '"'), normalizers.Replace("x", "")]), "the x`` dog"),
        (normalizers.NFC(), f"{LETTERS} 日 dog"),
        (normalizers.Lowercase(), "日 dog"),
    ],
)
def test_characters_that_are_dropped_beside_them_are_noticed(normalizer, content: str) -> None:
    # Llama's rules with neither bytes nor a token for the unknown: the offsets behind what is dropped shift.
    letters = {letter: number for number, letter in enumerate('▁thedogx"한글')}
    backend = Tokenizer(models.BPE(letters, [], fuse_unk=True, byte_fallback=True))
    backend.pre_tokenizer = pre_tokenizers.Metaspace(split=False)
    backend.normalizer = normalizer
    words, text = split_text(content)
    alignment = Alignment(PreTrainedTokenizerFast(tokenizer_object=backend), None, False, 128, WRITTEN)
    aligned, skipped = alignment.align([Document("a", words, written=text)])
    assert not aligned
    assert skipped == {"documents with characters that the tokenizer drops": 1}


@pytest.mark.parametrize(("family", "lead"), [("bert", ""), ("t5", ""), ("roberta", ""), ("gpt2", "")])
def test_what_stands_before_the_first_word(family: str, lead: str) -> None:
    assert find_lead(tiny.make(family)[1]) == lead


STRINGS = (
    "They don't.", "the  dog\n\nsaw 1984 trees", " leading", "naïve café 日本語です 😀!", "a\u200bb c\u0301d",
    "U.S.\tand e.g. ...", "It was old.\n\n",
)  # fmt: skip


@pytest.mark.demo
@pytest.mark.parametrize("name", ["minilm", pytest.param("smollm2", marks=pytest.mark.full)])
def test_a_written_text_has_the_tokens_of_the_tokenizer(name: str, request) -> None:
    model = load(request.getfixturevalue("smollm2") if name == "smollm2" else name)
    for string in STRINGS:
        words, text = split_text(string)
        ((aligned,), skipped) = Alignment.for_model(model, text=WRITTEN).align([Document("d", words, written=text)])
        assert aligned.ids == model.tokenizer(string)["input_ids"]
        assert {*range(len(aligned.document.words))} <= {*aligned.word}
        assert not skipped
