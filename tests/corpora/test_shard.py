"""Shards: together the whole corpus, each document once, in their order, and about as long."""

import random
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headscope.corpora import Document, Shard
from headscope.errors import HeadscopeError


def make(lengths: list[int]) -> list[Document]:
    return [Document(f"text {number}", ("word",) * length) for number, length in enumerate(lengths)]


@given(lengths=st.lists(st.integers(1, 40), max_size=40), count=st.integers(1, 7))
def test_each_document_is_in_one_shard_and_none_is_much_longer(lengths: list[int], count: int) -> None:
    documents = make(lengths)
    shards = [[*Shard(number, count).select(documents)] for number in range(1, count + 1)]
    assert sorted(chain.from_iterable(shards), key=documents.index) == documents
    assert all(shard == sorted(shard, key=documents.index) for shard in shards)
    words = [sum(len(document.words) for document in shard) for shard in shards]
    assert max(words) - min(words) <= max(lengths, default=0)


def test_a_long_text_is_alone_with_few() -> None:
    documents = make([5000, *[7] * 1000])
    first, second, third = ([*Shard(number, 3).select(documents)] for number in (1, 2, 3))
    assert (len(first), len(second), len(third)) == (1, 500, 500)


def test_a_document_more_changes_no_shard_of_those_before() -> None:
    documents = make(random.Random(3).choices(range(1, 50), k=61))
    for number in (1, 2, 3):
        before = [*Shard(number, 3).select(documents[:-1])]
        assert [*Shard(number, 3).select(documents)][: len(before)] == before


@pytest.mark.parametrize("name", ["", "2", "2/", "/3", "2/3/4", "-1/3", "two/3", "2 of 3", "1/9999999999"])
def test_a_shard_that_is_written_in_another_way_is_refused(name: str) -> None:
    with pytest.raises(HeadscopeError) as refused:
        Shard.parse(name)
    assert str(refused.value) == (
        f"the shard {name!r} is not understood; name one as K/N, such as 2/8 for the second of eight."
    )


@pytest.mark.parametrize(("name", "last"), [("0/3", 3), ("4/3", 3), ("1/0", 1)])
def test_a_shard_that_there_is_not_is_refused(name: str, last: int) -> None:
    with pytest.raises(HeadscopeError) as refused:
        Shard.parse(name)
    number, _, count = name.partition("/")
    assert str(refused.value) == (
        f"there is no shard {number} of {count}; shards are counted from 1: name one as K/N, such as 1/{last}."
    )
    assert str(Shard.parse("2/3")) == "2/3"
