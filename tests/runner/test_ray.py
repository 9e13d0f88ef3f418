"""What workers of Ray compare with each other, and how cores are divided among them; nothing here starts a cluster."""

from dataclasses import replace
from pathlib import Path

import pytest
import ray

import tiny
from headscope.corpora import Shard, read, summarize
from headscope.errors import HeadscopeError
from headscope.runner import Plan, resolve_reducers
from headscope.runner import ray as engine
from headscope.runner.ray import Coordinator, Work, make_work


@pytest.fixture
def work(tmp_path: Path) -> Work:
    path = tmp_path / "texts.txt"
    path.write_text("the dog that the cats see sleeps .\nthe cat sleeps .\n")
    documents = read(path)
    summary = summarize(documents)
    model = str(tiny.save(tmp_path / "model"))
    return make_work(
        model, documents, resolve_reducers(["surface"], summary), plan=Plan(), summary=summary, device="cpu"
    )


def test_a_worker_opens_the_same_run(work: Work) -> None:
    run = work.open()
    assert run.identity["about"]["corpus_sha256"] == work.corpus_sha256
    assert Coordinator("", None).compare("the first", run.identity) == ""


def test_a_worker_with_another_version_is_refused(work: Work) -> None:
    other = replace(work, versions={**work.versions, "torch": "1.13"})
    with pytest.raises(HeadscopeError, match=r"^the worker on \S+ has torch \S+, and 1.13 is installed here; install"):
        other.open()


def test_a_worker_with_another_corpus_is_refused(work: Work) -> None:
    work.documents.files[0].write_text("the dog sleeps .\n")
    with pytest.raises(HeadscopeError, match=r"reads another corpus as .*texts.txt than there is here; copy the same"):
        work.open()


def test_a_worker_with_other_weights_is_refused(work: Work, tmp_path: Path) -> None:
    coordinator = Coordinator("", None)
    assert not coordinator.compare("the worker on a", work.open().identity)
    other = replace(work, model=str(tiny.save_other(tmp_path / "other")))
    wrong = coordinator.compare("the worker on b", other.open().identity)
    assert wrong.startswith("the worker on a and the worker on b differ in weights_sha256, ")
    assert not coordinator.compare("the worker on c", work.open().identity)


def test_words_are_counted_by_shard_however_often_it_begins() -> None:
    coordinator = Coordinator("", None)
    for shard, words in ((1, 31), (2, 17), (1, 7), (1, 53)):
        coordinator.note(shard, words)
    assert coordinator.count() == 70


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
    assert engine._divide_cores(workers, gpu=gpu) == expected


def test_a_cluster_without_a_gpu_is_refused(monkeypatch) -> None:
    monkeypatch.setattr(ray, "nodes", lambda: nodes({"CPU": 8.0}))
    with pytest.raises(HeadscopeError, match=r"^1 worker was asked for, and the Ray cluster has 0 GPUs"):
        engine._divide_cores(None, gpu=True)


def test_shards_of_another_table_are_not_taken(tmp_path: Path) -> None:
    sums = tmp_path / ".heads[1].nc.partial.npz"
    for name in (".heads[1].nc.partial.3-of-5.npz", ".heads1.nc.partial.2-of-5.npz", ".heads[1].nc.partial.npz"):
        (tmp_path / name).touch()
    assert engine._find_kept(sums) == {Shard(3, 5): tmp_path / ".heads[1].nc.partial.3-of-5.npz"}
    assert engine._name_kept(sums, Shard(3, 5)).name == ".heads[1].nc.partial.3-of-5.npz"
