"""Datasets that are streamed: read anew each time, never kept, and refused where they then give other texts."""

import pickle
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from itertools import count, islice
from typing import Any

import pytest
from datasets import Dataset, IterableDataset, IterableDatasetDict

from headscope.corpora import read, summarize
from headscope.corpora.memory import EXPECTED
from headscope.corpora.shard import Shard
from headscope.errors import CorpusError

TEXTS = ["The old dog sees .", "It\n\twas a  cat", "Two cats", "Dogs bark", "A bird sang in the tree ."]
OTHER = (
    "document {} of the dataset, counted from 0, is another than when the dataset was read before; it is streamed, so "
    "it is read several times and has to give the same texts in the same order: give its shuffling a seed and leave "
    "its epoch alone, or write it to a file."
)


def stream(rows: Callable[[int], Iterator[Mapping[str, Any]]]) -> IterableDataset:
    """A streamed dataset of the rows that a function gives for the number of times it was called before."""
    times = count()
    return IterableDataset.from_generator(lambda: rows(next(times)))


def rows_of(*texts: Any, column: str = "text") -> Iterator[Mapping[str, Any]]:
    return ({column: text} for text in texts)


@pytest.fixture(scope="module")
def whole() -> Dataset:
    return Dataset.from_dict({"number": range(5), "text": TEXTS})


@pytest.fixture(scope="module")
def streamed(whole) -> IterableDataset:
    return whole.to_iterable_dataset()


@pytest.mark.parametrize("selection", [{}, {"sample": 3, "seed": 7}, {"limit": 3}, {"limit": 7}])
def test_a_streamed_dataset_has_the_documents_of_one_in_memory(whole, streamed, selection) -> None:
    ours, theirs = read(streamed, **selection), read(whole, **selection)
    assert list(ours) == list(theirs) == list(ours)
    assert summarize(ours) == summarize(theirs)
    assert (len(ours), ours[-1], ours.title) == (len(theirs), theirs[-1], theirs.title)
    assert (ours.sha256 == theirs.sha256) is (selection != {"limit": 3})
    shards = [[document.id for document in Shard(number, 2).select(ours)] for number in (1, 2)]
    assert shards == [[document.id for document in Shard(number, 2).select(theirs)] for number in (1, 2)]


def test_a_dataset_that_does_not_know_its_columns_shows_them_in_its_first_row() -> None:
    dataset = stream(lambda _: rows_of("one", "two three", column="sentence"))
    assert dataset.column_names is None
    assert [document.words for document in read(dataset)] == [("one",), ("two", "three")]
    with pytest.raises(CorpusError, match=r"^the dataset has no column 'text'; its columns are sentence: name the one"):
        read(dataset, column="text")


def test_no_row_is_kept_or_read_before_it_is_asked_for() -> None:
    taken: list[int] = []

    def endless(_: int) -> Iterator[Mapping[str, str]]:
        for number in count():
            taken.append(number)
            yield {"text": f"word {number}"}

    corpus = read(stream(endless), limit=11)
    assert [document.words[1] for document in corpus] == [str(number) for number in range(11)]
    assert summarize(corpus).documents == 11
    assert corpus.sha256 == read(stream(endless), limit=11).sha256 != read(stream(endless), limit=13).sha256
    assert max(taken) < 17


@pytest.mark.full
def test_the_memory_for_a_stream_does_not_grow_with_its_texts() -> None:
    words = " ".join(["word"] * 1009)
    corpus = read(stream(lambda _: rows_of(*[words] * 997)))
    assert sum(1 for _ in islice(corpus, 11)) == 11
    tracemalloc.start()
    try:
        assert sum(len(document.words) for document in corpus) == 997 * 1009
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # The words alone would take 8 MB.
    assert peak < 1_000_000


@pytest.mark.parametrize(
    ("second", "place"),
    [(["a", "c", "b"], 1), (["a", "b"], 2), (["a", "b", "c", "d"], 3), (["other", "b", "c"], 0)],
    ids=["another order", "fewer", "more", "another text"],
)
def test_other_texts_the_next_time_are_refused(second: list[str], place: int) -> None:
    texts = {0: ["a"], 1: ["a", "b", "c"]}
    corpus = read(stream(lambda times: rows_of(*texts.get(times, second))))
    assert summarize(corpus).words == 3
    with pytest.raises(CorpusError) as refused:
        list(corpus)
    assert str(refused.value) == OTHER.format(place)


def test_a_seeded_shuffle_is_read_and_another_epoch_refused(whole) -> None:
    dataset = Dataset.from_dict({"text": [f"word {number}" for number in range(97)]}).to_iterable_dataset()
    corpus = read(dataset.shuffle(seed=3, buffer_size=31))
    numbers = [document.words[1] for document in corpus]
    assert numbers == [document.words[1] for document in corpus] != sorted(numbers, key=int)
    corpus.held.rows.set_epoch(1)
    with pytest.raises(CorpusError, match=r"^document 0 of the dataset, counted from 0, is another than when"):
        list(corpus)


def test_another_process_looks_at_its_own_texts(streamed) -> None:
    corpus = read(streamed)
    held = pickle.loads(pickle.dumps(corpus.held))
    assert list(held) == list(corpus)
    other = Dataset.from_dict({"text": TEXTS[::-1]}).to_iterable_dataset()
    held = pickle.loads(pickle.dumps(corpus.held))
    held.rows = other
    assert held.sha256 == read(TEXTS[::-1]).sha256 != corpus.sha256


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], f"the corpus is an empty IterableDataset; give {EXPECTED}."),
        (
            [{"text": "one"}, {"text": " "}],
            "item 1 of the corpus, counted from 0, is an empty string; a text needs words: leave it out.",
        ),
        (
            [{"text": "one"}, {"review": "two", "stars": 3}],
            "item 1 of the corpus, counted from 0, has no column 'text'; its columns are review, stars: leave it out, "
            "or name the column that all items have.",
        ),
        (
            [{"review": "two", "stars": 3}],
            "the dataset has no column text, sentence, words, tokens or messages; its columns are review, stars: name "
            "the one with the texts, as in headscope.read(dataset, column='review') or hf:NAME#review.",
        ),
        ([{"text": None}], f"item 0 of the corpus, counted from 0, is of type NoneType; give {EXPECTED}."),
    ],
)
def test_what_is_no_text_is_refused_in_a_sentence(rows, message: str) -> None:
    with pytest.raises(CorpusError) as refused:
        list(read(stream(lambda _: iter(rows))))
    assert str(refused.value) == message


def test_splits_are_refused(streamed) -> None:
    with pytest.raises(CorpusError, match=r"^the dataset has the splits train; give one of them, such as"):
        read(IterableDatasetDict({"train": streamed}))


def test_an_iterator_is_read_once_and_kept() -> None:
    corpus = read(iter(TEXTS))
    assert len(list(corpus)) == len(list(corpus)) == 5
