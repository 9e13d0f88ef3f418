"""Texts as they are written: where the words are, in texts made up and in treebanks."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headscope.corpora import Document, summarize
from headscope.corpora.last_words import end_at_last_word
from headscope.corpora.written_text import (
    WrittenText,
    find_covered,
    find_words,
    join_texts,
    join_words,
    locate_tokens,
    locate_words,
    split_text,
    split_words,
)
from headscope.errors import CorpusError

SPACES = " \t\n\r\x0b\x0c\x1c\x85\u00a0\u2003\u2028\u3000"
FILES = (
    "UD_English-EWT/en_ewt-ud-dev.conllu",
    "UD_English-GUM/en_gum-ud-dev.conllu",
    "UD_German-GSD/de_gsd-ud-dev.conllu",
    "UD_Turkish-BOUN/tr_boun-ud-dev.conllu",
    "UD_Chinese-GSDSimp/zh_gsdsimp-ud-dev.conllu",
)


def cut(text: WrittenText) -> list[str]:
    return [text.content[start:stop] for start, stop in text.offsets]


@given(st.text(st.sampled_from("ab\u00e9\u6f22\U0001f600" + SPACES) | st.characters(exclude_categories=["Cs"])))
def test_a_text_is_split_where_python_splits_it(text: str) -> None:
    words, written = split_text(text)
    assert list(words) == text.split() == cut(written)
    assert (written.content, written.fault) == (text, "")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('He said: "don\'t..." (yes!)', ["He", "said", ":", '"', "don't", "...", '"', "(", "yes", "!", ")"]),
        ("«نعم»، قال.", ["«", "نعم", "»", "،", "قال", "."]),
        ("हिन्दी में है।", ["हिन्दी", "में", "है", "।"]),
        ("\U0001f469\u200d\U0001f467 twenty-one, 3.5 %", ["\U0001f469\u200d\U0001f467", "twenty-one", ",", "3.5", "%"]),
        (' "', ['"']),
    ],
)
def test_punctuation_around_a_word_is_a_word(text: str, words: list[str]) -> None:
    assert split_words(text)[0] == tuple(words)


@given(st.text(st.sampled_from("a-b.'’s(_" + SPACES)), st.integers(0, 9), st.integers(1, 9))
def test_words_of_characters_are_those_that_have_one_of_them(text: str, start: int, length: int) -> None:
    words, characters = find_words(text), range(start, start + length)
    first, end = find_covered(words, start, start + length)
    touched = [i for i, (begin, stop) in enumerate(words.offsets) if {*range(begin, stop)} & {*characters}]
    assert touched == [*range(first, end)]
    assert "".join(words.words) == "".join(text.split())
    assert (words.content, words.fault) == (text, "")


@given(st.text(st.sampled_from("ab.,\u00ab\u3002" + SPACES) | st.characters(exclude_categories=["Cs"])))
def test_words_and_punctuation_are_all_that_a_text_has(text: str) -> None:
    words, written = split_words(text)
    assert list(words) == cut(written)
    assert "".join(words) == "".join(text.split())
    assert {*text.split()} & {"a", "b"} <= {*words}


def test_what_white_space_parts_has_its_characters() -> None:
    text = "\tSie  kam\u00a0an.\n"
    assert split_text(text) == (("Sie", "kam", "an."), WrittenText(text, ((1, 4), (6, 9), (10, 13))))
    assert split_text(" \n") == ((), WrittenText(" \n", ()))


@pytest.mark.parametrize("space", [*SPACES, "", " \n\u3000"])
def test_white_space_of_any_kind_may_be_between_tokens(space: str) -> None:
    text, gap = f"{space}a{space}bb{space}", len(space)
    written = WrittenText(text, ((gap, gap + 1), (2 * gap + 1, 2 * gap + 3)))
    assert locate_words(text, ["a", "bb"], {}) == written


@given(st.lists(st.tuples(st.text(SPACES), st.text("ab- ", min_size=1).filter(str.strip)), min_size=1), st.data())
def test_tokens_are_found_in_what_they_make(parts: list[tuple[str, str]], data: st.DataObject) -> None:
    tokens = [token.strip() for _, token in parts]
    text = "".join(space + token for (space, _), token in zip(parts, tokens, strict=True)) + data.draw(st.text(SPACES))
    written = locate_words(text, tokens, {})
    assert written is not None
    assert cut(written) == tokens
    gaps = [
        text[stop:start] for (_, stop), (start, _) in zip(((0, 0), *written.offsets), written.offsets, strict=False)
    ]
    assert not "".join(gaps).strip()


@pytest.mark.parametrize(
    ("text", "located"),
    [("a b c", 3), ("a b", 2), ("a b x c", 2), ("a b d", 2), ("a  b", 2), ("x a b c", 0), ("", 0), ("a x ", 1)],
)
def test_tokens_are_located_as_far_as_they_follow(text: str, located: int) -> None:
    offsets = locate_tokens(text, ["a", "b", "c"])
    assert [text[start:stop] for start, stop in offsets] == ["a", "b", "c"][:located]
    assert (locate_words(text, ["a", "b", "c"], {}) is None) is (text != "a b c")


@pytest.mark.parametrize("text", ["a b.", "a b c", "a b \u200b", "A b", "a", "", "b a", "a\u0301 b"])
def test_a_text_of_other_words_has_none_of_these(text: str) -> None:
    assert locate_words(text, ["a", "b"], {}) is None


def test_no_tokens_have_a_text_of_nothing_but_white_space() -> None:
    assert locate_words(" ", [], {}) == WrittenText(" ", ())
    assert locate_words("a", [], {}) is None


def test_words_have_their_own_characters_where_they_spell_their_token_and_else_all() -> None:
    text = "Im Haus don't zum"
    parts = {0: ["in", "dem"], 2: ["do", "n't"], 3: ["zu", "de", "m"]}
    offsets = ((0, 2), (0, 2), (3, 7), (8, 10), (10, 13), (14, 17), (14, 17), (14, 17))
    assert locate_words(text, ["Im", "Haus", "don't", "zum"], parts) == WrittenText(text, offsets)
    assert locate_words(text, ["Im", "Haus", "don't", "zur"], parts) is None


def test_words_and_texts_are_joined() -> None:
    first = join_words(["a", "bb"])
    assert first == WrittenText("a bb", ((0, 1), (2, 4)))
    assert join_words(["a", "bb"], before=" ") == WrittenText(" a bb", ((1, 2), (3, 5)))
    assert join_words([]) == WrittenText("", ())
    assert join_texts([first, WrittenText("cd", ((0, 1), (1, 2)))]) == WrittenText(
        "a bb cd", ((0, 1), (2, 4), (5, 6), (6, 7))
    )
    assert join_texts([first, first], "") == WrittenText("a bba bb", ((0, 1), (2, 4), (4, 5), (6, 8)))


@pytest.mark.parametrize(
    ("offsets", "fault"),
    [
        (((0, 1), (1, 3)), ""),
        (((0, 2), (0, 2), (2, 3)), ""),
        ((), ""),
        (((0, 4),), "a word at the characters 0 to 4 of a text of 3 characters"),
        (((-1, 2),), "a word at the characters -1 to 2 of a text of 3 characters"),
        (((1, 1),), "a word at the characters 1 to 1 of a text of 3 characters"),
        (((2, 3), (1, 3)), "a word at the characters 1 to 3 after one at 2 to 3"),
        (((0, 3), (1, 2)), "a word at the characters 1 to 2 after one at 0 to 3"),
    ],
)
def test_words_lie_in_their_text_in_order(offsets: tuple[tuple[int, int], ...], fault: str) -> None:
    assert WrittenText("a b", offsets).fault == fault


def test_a_part_of_a_text_has_the_characters_of_its_words() -> None:
    text = WrittenText(" a bb, c ", ((1, 2), (3, 5), (5, 6), (7, 8)))
    assert text.truncate(2) == text.cut(0, 2) == WrittenText(" a bb", ((1, 2), (3, 5)))
    assert text.cut(1, 4) == WrittenText("bb, c", ((0, 2), (2, 3), (4, 5)))
    assert text.truncate(0) == WrittenText("", ())
    assert text.truncate(7) == WrittenText(" a bb, c", text.offsets)


@pytest.mark.parametrize(
    ("words", "text", "boundary", "expected"),
    [
        ("The dog sees it !", "The  dog sees it!", None, "The  dog sees it"),
        ("\u2018 He said : go!\u2019 .", " \u2018He said:\tgo!\u2019.", None, " \u2018He said:\tgo"),
        ("One . It runs , too .", "One. It  runs, too.", 2, "It  runs, too"),
    ],
)
def test_a_text_that_ends_at_its_last_word_is_cut_there(
    words: str, text: str, boundary: int | None, expected: str
) -> None:
    document = Document("1", tuple(words.split()), boundary=boundary, written=locate_words(text, words.split(), {}))
    ended = end_at_last_word(document)
    assert ended is not None
    assert ended.written is not None
    assert ended.written.content == expected
    assert tuple(cut(ended.written)) == ended.words


def test_a_last_word_that_does_not_spell_its_token_keeps_all_of_it() -> None:
    written = WrittenText("Er ging hin zum.", ((0, 2), (3, 7), (8, 11), (12, 15), (12, 15), (15, 16)))
    ended = end_at_last_word(Document("1", ("Er", "ging", "hin", "zu", "dem", "."), written=written))
    assert ended == Document("1", ("Er", "ging", "hin", "zu", "dem"), written=written.cut(0, 5))
    assert written.cut(0, 5).content == "Er ging hin zum"


def test_a_document_has_a_text_with_all_of_its_words() -> None:
    words, written = ("She", "left", "."), WrittenText("She left.", ((0, 3), (4, 8), (8, 9)))
    document = Document("a", words, written=written)
    assert document.text == written
    assert Document("a", words).text == WrittenText("She left .", ((0, 3), (4, 8), (9, 10)))
    assert document.truncate(2) == Document("a", words[:2], written=WrittenText("She left", ((0, 3), (4, 8))))
    assert repr(document) == f"{repr(Document('a', words))[:-1]}, written={written!r})"
    assert "written" not in repr(Document("a", words))


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (
            WrittenText("She", ((0, 3),)),
            "document 'a' has 2 words, and its text gives the characters of 1; give the characters of each word, or "
            "leave the text out.",
        ),
        (
            WrittenText("She left", ((0, 3), (4, 9))),
            "document 'a' has a word at the characters 4 to 9 of a text of 8 characters; words follow one another in "
            "their text: correct it.",
        ),
    ],
)
def test_a_text_with_other_words_than_its_document_is_refused(written: WrittenText, message: str) -> None:
    with pytest.raises(CorpusError, match=rf"^{re.escape(message)}$"):
        Document("a", ("She", "left"), written=written)


@pytest.mark.data
@pytest.mark.parametrize("file", FILES)
def test_every_word_of_a_treebank_is_where_its_text_has_it(data: Path, read_real: Any, file: str) -> None:
    path = data / "ud" / file
    documents = read_real("conllu", path)[path]
    blocks = [block for block in path.read_text(encoding="utf-8").split("\n\n") if block]
    alone = 0
    for document, block in zip(documents, blocks, strict=True):
        lines = block.split("\n")
        (text,) = (line.removeprefix("# text = ") for line in lines if line.startswith("# text = "))
        assert document.written.content == text
        # Each word, and the token in the text that has it.
        last, token, words, spelt = 0, "", [], []
        for number, form in (line.split("\t")[:2] for line in lines if not line.startswith("#")):
            if "-" in number:
                last, token = int(number.split("-")[1]), form
            elif number.isdigit():
                words.append(form)
                spelt.append(token if int(number) <= last else form)
        assert list(document.words) == words
        characters = cut(document.written)
        assert all(own in (word, whole) for own, word, whole in zip(characters, words, spelt, strict=True))
        assert not [own for own, whole in zip(characters, spelt, strict=True) if own not in whole]
        covered = {place for start, stop in document.written.offsets for place in range(start, stop)}
        assert all(letter.isspace() for place, letter in enumerate(text) if place not in covered)
        alone += sum(own == word for own, word in zip(characters, words, strict=True))
    assert alone / sum(len(document.words) for document in documents) > 0.97


def test_half_a_character_between_words_is_refused_too() -> None:
    document = Document("d", ("a",), written=WrittenText("\ud83d a", ((2, 3),)))
    with pytest.raises(CorpusError, match=r"^document 'd' has the text '\\ud83d a', with half of a character that"):
        summarize([document])
