"""Conversations as documents: from JSON Lines, from lists of messages and from datasets, and what is refused."""

import json
from typing import Any

import pandas as pd
import pytest
from datasets import Dataset

from headscope.corpora import Document, Message, Span, WrittenText, read, summarize
from headscope.corpora.originals import hash_text
from headscope.corpora.records import read as read_records
from headscope.corpora.records import recognise
from headscope.errors import CorpusError

FILE = "chats.jsonl"

CHAT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": " Where is\n Eve? "},
    {"role": "assistant", "content": ""},
    {"role": "user", "content": [{"type": "text", "text": "Say it"}, {"type": "text", "text": "again."}]},
]
MESSAGES = (
    Message("system", "Be brief."),
    Message("user", " Where is\n Eve? "),
    Message("assistant", ""),
    Message("user", ("Say it", "again.")),
)
WORDS = ("Be", "brief.", "Where", "is", "Eve?", "Say", "it", "again.")
ROLES = (Span(0, 2, "system", "role"), Span(2, 5, "user", "role"), Span(5, 8, "user", "role"))
TEXT = WrittenText(
    "Be brief.\n Where is\n Eve? \n\nSay it\nagain.",
    ((0, 2), (3, 9), (11, 16), (17, 19), (21, 25), (28, 31), (32, 34), (35, 41)),
)
EXAMPLE = '{"role": "user", "content": "Where does Eve live?"}'


@pytest.mark.parametrize("nulls", [{}, {"tool_calls": None, "name": None}])
def test_a_list_of_messages_is_a_document_with_a_span_for_each_role(nulls: dict[str, None]) -> None:
    chat = [{**message, **nulls} for message in CHAT]
    document = Document("0", WORDS, spans=ROLES, written=TEXT, messages=MESSAGES)
    assert [*read([chat])] == [*read([tuple(chat)])] == [*read(pd.DataFrame({"messages": [chat]}))] == [document]
    assert summarize(read([chat])).spans == {"role": 3}


def test_a_dataset_has_messages_in_a_column() -> None:
    chats = [[CHAT[0], CHAT[1]], [CHAT[1]]]
    dataset = Dataset.from_dict({"id": [1, 2], "messages": chats})
    for corpus in (dataset, dataset.to_iterable_dataset()):
        assert [document.messages for document in read(corpus)] == [MESSAGES[:2], MESSAGES[1:2]]


def test_a_line_may_give_messages_and_links_between_their_words(file) -> None:
    line = {"messages": CHAT, "id": "a", "links": [[4, 0, "x"]], "spans": [[4, 5, "1", "mention"]], "group": "g"}
    path = file(json.dumps(line) + "\n" + json.dumps({"messages": CHAT[:1], "words": None}))
    first, second = read_records(path)
    assert (first.id, first.words, first.messages, first.group) == ("chats.jsonl:a", WORDS, MESSAGES, "chats.jsonl:g")
    assert first.spans == (*ROLES, Span(4, 5, "1", "mention"))
    assert [(link.source, link.target) for link in first.links] == [(4, 0)]
    assert second.words == ("Be", "brief.")
    assert recognise(['{"id": "a", "messages": ['])
    assert read(path).format == "records"


def test_the_same_words_of_other_roles_are_another_text() -> None:
    first, second, third = read([[{"role": role, "content": "Be brief."}] for role in ("user", "system", "user")])
    assert hash_text(first) == hash_text(third) != hash_text(second)
    assert "messages" in repr(first)
    assert "messages" not in repr(Document("a", ("Be", "brief.")))


@pytest.mark.parametrize(
    ("messages", "sentence"),
    [
        ([], f"the messages []; expected a list of objects, such as [{EXAMPLE}]: correct it."),
        ("Hi", f'the messages "Hi"; expected a list of objects, such as [{EXAMPLE}]: correct it.'),
        (
            [CHAT[0], "Hi"],
            'the messages [{"role": "system", "content": "Be brief."}, "Hi"]; expected a list of objects,',
        ),
        (
            [{"role": "user", "content": ""}, {"role": "assistant", "content": " "}],
            "messages without a visible character; a text needs words: leave it out.",
        ),
        (
            [CHAT[0], {"role": "assistant", "content": "Hm", "tool_calls": []}],
            'the message 1, counted from 0, with the key "tool_calls"; headscope reads the role and the text of a '
            "message, and no tools, thoughts or pictures: leave out this conversation, or the key.",
        ),
        (
            [{"content": "Hi"}],
            f"the message 0, counted from 0, with the role null; a message is {EXAMPLE}: correct it.",
        ),
        (
            [{"role": "user"}],
            'the message 0, counted from 0, with the content null; expected a string, or a list of {"type": "text", '
            '"text": "Where does Eve live?"}: correct it, or leave the text out.',
        ),
        ([{"role": "user", "content": [{"type": "image"}]}], "the message 0, counted from 0, with the content"),
        ([{"role": "user", "content": ["Hi"]}], 'the message 0, counted from 0, with the content ["Hi"]; expected'),
        ([{"role": "user", "content": {"text": "a"}}], "the message 0, counted from 0, with the content"),
        (
            [{"role": "user", "content": "\ud83d"}],
            r'the message 0, counted from 0, with the content "\ud83d"; expected',
        ),
    ],
)
def test_messages_that_are_none_are_one_sentence(file, messages: Any, sentence: str) -> None:
    path = file(json.dumps({"messages": messages}))
    with pytest.raises(CorpusError) as refused:
        [*read_records(path)]
    assert str(refused.value).startswith(f"{path}:1 has {sentence}")


def test_messages_stand_for_words_and_text(file) -> None:
    for beside, value in (("words", ["a"]), ("text", "a"), ("boundary", 1)):
        path = file(json.dumps({"messages": CHAT, beside: value}))
        with pytest.raises(CorpusError) as refused:
            [*read_records(path)]
        assert str(refused.value) == (
            f'{path}:1 has the keys "messages" and "{beside}"; the words of a conversation are those of its messages: '
            "leave one of the two out."
        )


def test_a_message_alone_is_no_corpus() -> None:
    with pytest.raises(CorpusError, match=r"^item 0 of the corpus, counted from 0, is of type dict; give a list whose"):
        read(CHAT)
    with pytest.raises(
        CorpusError, match=r"^item 1 of the corpus, counted from 0, has the message 0, counted from 0, w"
    ):
        read([CHAT, [{"role": "user"}]])
