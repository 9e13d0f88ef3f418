"""A dataset that is streamed, measured as one in memory: whole, in shards, and after a kill."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
import xarray as xr
from datasets import Dataset, IterableDataset

import headscope
import tiny
from headscope.errors import CorpusError, HeadscopeError
from headscope.runner import local

TEXTS = [" ".join(document.words) for document in tiny.documents_with_roles(17)]


class Stream:
    """A streamed dataset, and how many of its rows were given each time."""

    def __init__(self, texts: Callable[[int], list[str]]) -> None:
        self.given: list[int] = []

        def give_rows() -> Iterator[Mapping[str, str]]:
            self.given.append(0)
            for text in texts(len(self.given) - 1):
                self.given[-1] += 1
                yield {"text": text}

        self.dataset = IterableDataset.from_generator(give_rows)


def without_time(table: xr.Dataset) -> xr.Dataset:
    return table.drop_attrs(deep=False).assign_attrs({k: v for k, v in table.attrs.items() if k != "created"})


@pytest.fixture(scope="module")
def model() -> headscope.Model:
    return headscope.load(tiny.make("bert"))


@pytest.fixture(scope="module")
def whole(model) -> xr.Dataset:
    """The table of the same texts in memory."""
    return headscope.measure(model, Dataset.from_dict({"text": TEXTS}), "surface")


def test_the_table_is_that_of_the_texts_in_memory_and_they_are_read_twice(model, whole) -> None:
    stream = Stream(lambda _: TEXTS)
    table = headscope.measure(model, stream.dataset, "surface")
    xr.testing.assert_identical(without_time(table), without_time(whole))
    assert sum(stream.given) <= 2 * len(TEXTS) + 1


def test_shards_of_a_stream_are_joined(model, whole, tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.npz" for number in (1, 2, 3)]
    for number, path in enumerate(paths, start=1):
        headscope.measure_shard(model, Stream(lambda _: TEXTS).dataset, "surface", f"{number}/3", out=path)
    table = headscope.merge(paths)
    assert table.attrs["corpus_sha256"] == whole.attrs["corpus_sha256"]
    xr.testing.assert_allclose(table[[*whole.data_vars]], whole.drop_attrs())


def test_a_killed_run_goes_on_with_the_same_texts_alone(model, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(local, "SAVE_EVERY", 0.0)
    settings = {"out": tmp_path / "heads.nc", "batch_tokens": 47}
    measured: list[int] = []

    def stop(step: str, done: int, total: int) -> None:
        measured.extend([done] if step.startswith("measuring") and done else [])
        if len(measured) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        headscope.measure(model, Stream(lambda _: TEXTS).dataset, "surface", **settings, progress=stop)
    with pytest.raises(HeadscopeError, match="was left by another run"):
        headscope.measure(model, Stream(lambda _: TEXTS[::-1]).dataset, "surface", **settings, resume=True)
    again = headscope.measure(model, Stream(lambda _: TEXTS).dataset, "surface", **settings, resume=True)
    once = headscope.measure(model, Stream(lambda _: TEXTS).dataset, "surface", batch_tokens=47)
    xr.testing.assert_identical(without_time(again), without_time(once))


def test_a_stream_that_changes_is_refused_before_there_is_a_table(model, tmp_path: Path) -> None:
    stream = Stream(lambda times: TEXTS if times < 2 else [*TEXTS[:5], *TEXTS[6:]])
    with pytest.raises(CorpusError, match=r"^document 5 of the dataset, counted from 0, is another than when the data"):
        headscope.measure(model, stream.dataset, "surface", out=tmp_path / "heads.nc")
    assert not (tmp_path / "heads.nc").exists()
