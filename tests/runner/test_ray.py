"""What workers of Ray compare with each other, and how cores are divided among them; nothing here starts a cluster."""

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import tiny
from headscope.corpora import Shard, read, summarize
from headscope.errors import HeadscopeError
from headscope.runner import Plan, resolve_reducers

engine = pytest.importorskip("headscope.runner.ray", reason="Ray is not installed; it comes with the extra `ray`")
ray_cluster = pytest.importorskip("headscope.runner.ray_cluster")
ray, Overview, Queue, Work, Worker = engine.ray, engine.Overview, engine.Queue, engine.Work, engine.Worker
divide_cores = engine.divide_cores


@pytest.fixture
def work(tmp_path: Path) -> Work:
    path = tmp_path / "texts.txt"
    path.write_text("the dog that the cats see sleeps .\nthe cat sleeps .\n")
    documents = read(path)
    summary = summarize(documents)
    model = str(tiny.save(tmp_path / "model"))
    return Work.describe(
        model, documents, resolve_reducers(["surface"], summary), plan=Plan(), summary=summary, device="cpu"
    )


def test_a_worker_opens_the_same_run(work: Work) -> None:
    run = work.open()
    assert run.identity["about"]["corpus_sha256"] == work.corpus_sha256
    overview = Overview("", None)
    for name in ("the worker on a", "the worker on b"):
        overview.add({"name": name, "identity": run.identity})
    assert (overview.name, overview.identity) == ("the worker on a", run.identity)


def test_a_worker_with_another_version_is_refused(work: Work) -> None:
    other = replace(work, versions={**work.versions, "torch": "1.13"})
    with pytest.raises(HeadscopeError, match=r"^the worker on \S+ has torch \S+, and 1.13 is installed here; install"):
        other.open()


def test_a_worker_with_another_corpus_is_refused(work: Work) -> None:
    work.documents.files[0].write_text("the dog sleeps .\n")
    with pytest.raises(HeadscopeError, match=r"reads another corpus as .*texts.txt than there is here; copy the same"):
        work.open()


def test_a_worker_with_other_weights_is_refused(work: Work, tmp_path: Path) -> None:
    overview = Overview("", None)
    overview.add({"name": "the worker on a", "identity": work.open().identity})
    other = replace(work, model=str(tiny.save_other(tmp_path / "other")))
    with pytest.raises(HeadscopeError, match=r"^the worker on a and the worker on b differ in weights_sha256, "):
        overview.add({"name": "the worker on b", "identity": other.open().identity})
    overview.add({"name": "the worker on c", "identity": work.open().identity})


def test_words_are_counted_by_shard_however_often_it_begins() -> None:
    overview = Overview("", None)
    for shard, words in ((1, 31), (2, 17), (1, 7), (1, 53)):
        overview.add({"shard": shard, "words": words})
    assert overview.words == 70


def nodes(*resources: dict[str, float]) -> list[dict]:
    dead = {"Alive": False, "Resources": {"CPU": 97.0, "GPU": 7.0}}
    return [dead, *({"Alive": True, "Resources": held} for held in resources)]


@pytest.mark.parametrize(
    ("cluster", "workers", "gpu", "expected"),
    [
        (nodes({"CPU": 8.0}), None, False, (8, 1)),
        (nodes({"CPU": 8.0}), 3, False, (3, 2)),
        # Three workers of two cores do not fit on two machines of three.
        (nodes({"CPU": 3.0}, {"CPU": 3.0}), 3, False, (3, 1)),
        (nodes({"CPU": 5.0}, {"CPU": 2.0}), 2, False, (2, 2)),
        (nodes({"CPU": 5.0}, {"memory": 2.0}), 1, False, (1, 5)),
        (nodes({"CPU": 16.0, "GPU": 2.0}, {"CPU": 16.0}), None, True, (2, 1)),
    ],
)
def test_all_workers_find_a_place(monkeypatch, cluster, workers, gpu: bool, expected: tuple[int, int]) -> None:
    monkeypatch.setattr(ray, "nodes", lambda: cluster)
    assert divide_cores(workers, gpu=gpu) == expected


def test_a_cluster_without_a_gpu_is_refused(monkeypatch) -> None:
    monkeypatch.setattr(ray, "nodes", lambda: nodes({"CPU": 8.0}))
    with pytest.raises(HeadscopeError, match=r"^1 worker was asked for, and the Ray cluster has 0 GPUs"):
        divide_cores(None, gpu=True)


def test_shards_of_another_table_are_not_taken(tmp_path: Path) -> None:
    sums = tmp_path / ".heads[1].nc.partial.npz"
    for name in (".heads[1].nc.partial.3-of-5.npz", ".heads1.nc.partial.2-of-5.npz", ".heads[1].nc.partial.npz"):
        (tmp_path / name).touch()
    assert engine._find_kept(sums) == {Shard(3, 5): tmp_path / ".heads[1].nc.partial.3-of-5.npz"}
    assert engine._name_kept(sums, Shard(3, 5)).name == ".heads[1].nc.partial.3-of-5.npz"


class LocalQueue(Queue):
    """A queue of Ray that is a list in this process, and no actor."""

    def __init__(self) -> None:
        self.items: list[Any] = []

    def put(self, item: Any) -> None:
        self.items.append(item)

    def qsize(self) -> int:
        return len(self.items)

    def get_nowait_batch(self, number: int) -> list[Any]:
        batch, self.items = self.items[:number], self.items[number:]
        return batch


@pytest.fixture
def measured(monkeypatch) -> list[Shard]:
    """The shards that workers were given; there is one worker, in this process, and no cluster."""
    given: list[Shard] = []

    def map_shards(shards, work, reports, workers, cores):
        worker = Worker(work, reports)
        for shard in reversed(shards):
            given.append(shard)
            row = worker({"number": np.array([shard.number]), "count": np.array([shard.count])})
            yield {name: value[0] for name, value in row.items()}

    monkeypatch.setattr(engine, "connected", nullcontext)
    monkeypatch.setattr(engine, "divide_cores", lambda workers, *, gpu: (workers, 1))
    monkeypatch.setattr(engine, "_start_queue", LocalQueue)
    monkeypatch.setattr(engine, "find_missing", lambda *_, **__: "")
    monkeypatch.setattr(engine, "_map_shards", map_shards)
    return given


@pytest.fixture
def long_work(tmp_path: Path) -> Work:
    documents = read("grammar:29")
    summary = summarize(documents)
    reducers = resolve_reducers(["surface"], summary)
    model = str(tiny.save(tmp_path / "model"))
    return Work.describe(model, documents, reducers, plan=Plan(), summary=summary, device="cpu")


def without_time(table: xr.Dataset) -> xr.Dataset:
    return table.assign_attrs(created="")


def test_only_the_shards_that_are_left_are_measured(measured: list[Shard], long_work: Work, tmp_path: Path) -> None:
    sums = tmp_path / "sums.npz"
    whole = without_time(engine.measure(long_work, sums, workers=2))
    assert measured == [Shard(number, 4) for number in (4, 3, 2, 1)]
    for left, expected in (((2, 3), [3, 2]), ((), [4]), ((4,), [4])):
        for number in left:
            (tmp_path / f"sums.{number}-of-4.npz").unlink()
        measured.clear()
        # The number of shards is that of the killed run, whatever the number of workers.
        resumed = without_time(engine.measure(long_work, sums, workers=3, resume=True))
        assert measured == [Shard(number, 4) for number in expected]
        assert resumed.identical(whole)


def test_without_resume_what_was_left_is_measured_again(measured: list[Shard], long_work: Work, tmp_path: Path) -> None:
    sums = tmp_path / "sums.npz"
    engine.measure(long_work, sums, workers=2)
    measured.clear()
    engine.measure(long_work, sums, workers=3)
    assert sorted(measured, key=str) == [Shard(number, 6) for number in range(1, 7)]
    assert len([*tmp_path.glob("sums.*")]) == 6


def test_shards_of_other_weights_are_not_gone_on_with(measured: list[Shard], long_work: Work, tmp_path: Path) -> None:
    sums = tmp_path / "sums.npz"
    engine.measure(long_work, sums, workers=2)
    other = replace(long_work, model=str(tiny.save_other(tmp_path / "other")))
    (tmp_path / "sums.4-of-4.npz").unlink()
    with pytest.raises(HeadscopeError, match=r"sums\.1-of-4\.npz and the worker on \S+ differ in weights_sha256"):
        engine.measure(other, sums, workers=2, resume=True)
    assert not (tmp_path / "sums.4-of-4.npz").exists()


def test_a_corpus_in_another_format_is_another_run(long_work: Work) -> None:
    identity = long_work.open().identity
    overview = Overview("the worker on a", identity)
    with pytest.raises(HeadscopeError, match="differ in format; give all machines the same model and arguments"):
        overview.add({"name": "the worker on b", "identity": {**identity, "format": "text-lines"}})


def die_after(shards_finished: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a worker die for the last time after so many shards, attempt after attempt; then none does."""
    whole = engine._map_shards
    numbers = iter(shards_finished)

    def map_shards(*arguments: Any) -> Iterator[Any]:
        for finished, row in enumerate(whole(*arguments)):
            if finished == number:
                raise engine.WorkerDeathError("died.")
            yield row

    def map_or_die(*arguments: Any) -> Iterator[Any]:
        nonlocal number
        number = next(numbers, None)
        return map_shards(*arguments)

    number = None
    monkeypatch.setattr(engine, "_map_shards", map_or_die)


def test_deaths_with_shards_in_between_end_nothing(measured, long_work: Work, tmp_path: Path, monkeypatch) -> None:
    whole = without_time(engine.measure(long_work, tmp_path / "whole.npz", workers=2))
    die_after([1, 2], monkeypatch)
    assert without_time(engine.measure(long_work, tmp_path / "sums.npz", workers=2)).identical(whole)


def test_deaths_without_a_shard_end_the_run(measured, long_work: Work, tmp_path: Path, monkeypatch) -> None:
    die_after([1, 0, 1], monkeypatch)
    with pytest.raises(HeadscopeError, match=r"^died\.$"):
        engine.measure(long_work, tmp_path / "sums.npz", workers=2)
    assert [path.name for path in tmp_path.glob("sums.*")] == ["sums.4-of-4.npz"], "which --resume goes on with"


@pytest.mark.parametrize(
    ("free", "gpu", "missing"),
    [
        ({"CPU": 6.0}, False, ""), ({"CPU": 5.0}, False, "1 core"), ({}, False, "6 cores"),
        ({"GPU": 2.0}, True, "1 GPU"), ({"GPU": 3.0}, True, ""),
    ],
)  # fmt: skip
def test_cores_that_others_hold_are_counted(monkeypatch, free: dict[str, float], gpu: bool, missing: str) -> None:
    monkeypatch.setattr(ray, "available_resources", lambda: free)
    assert engine.find_missing(3, 1 if gpu else 2, gpu=gpu) == missing


def test_cores_that_others_hold_are_said(measured, long_work: Work, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(engine, "find_missing", lambda workers, cores, *, gpu: f"{workers} cores")
    waits: list[str] = []
    engine.measure(long_work, tmp_path / "sums.npz", workers=2, waiting=waits.append)
    assert waits == ["2 cores"]


MISSING = "Authentication token is missing or incorrect. Ensure that the token for the cluster is available"


OWN_WARNINGS = pytest.mark.filterwarnings("ignore::DeprecationWarning")
"""Ray has them of itself, where the settings of its data are made."""


@OWN_WARNINGS
@pytest.mark.parametrize(
    ("error", "text", "sentence"),
    [
        (ConnectionError("Failed to connect to Ray cluster"), f"ray.exceptions.AuthenticationError: {MISSING}",
         r"^the Ray cluster at .*:9 wants a token, and has not got the right one; set RAY_AUTH_MODE=token, and"),
        (ray.exceptions.AuthenticationError(MISSING), "", "^the Ray cluster at .*:9 wants a token"),
        (ConnectionError("Failed to connect to Ray cluster"), "GCS timed out",
         r"^no connection to a Ray cluster at .*:9 \(GCS timed out\); start one there"),
    ],
)  # fmt: skip
def test_a_cluster_that_wants_a_token_is_told_from_none(monkeypatch, error: Exception, text: str, sentence) -> None:
    def connect(**_: Any) -> None:
        try:
            raise RuntimeError(text)
        except RuntimeError as below:
            if text:
                raise error from below
            raise error from None

    monkeypatch.setenv("RAY_ADDRESS", "ray://127.0.0.1:9")
    monkeypatch.setattr(ray, "init", connect)
    with pytest.raises(HeadscopeError, match=sentence), ray_cluster.connected():
        pass


@OWN_WARNINGS
@pytest.mark.parametrize(("setting", "anew"), [(None, False), ("1", True)])
def test_under_uv_workers_start_in_the_environment_that_is_there(monkeypatch, setting: str | None, anew: bool) -> None:
    monkeypatch.setattr(ray_cluster.ray_constants, ray_cluster.UV_SETTING, True)
    monkeypatch.delenv(ray_cluster.UV_SETTING, raising=False)
    if setting:
        monkeypatch.setenv(ray_cluster.UV_SETTING, setting)
    monkeypatch.setenv("RAY_ADDRESS", "ray://127.0.0.1:9")
    settings: list[bool] = []
    monkeypatch.setattr(
        ray, "init", lambda **_: settings.append(ray_cluster.ray_constants.RAY_ENABLE_UV_RUN_RUNTIME_ENV)
    )
    with ray_cluster.connected():
        pass
    assert settings == [anew]
