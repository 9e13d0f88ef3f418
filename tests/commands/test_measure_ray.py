"""`headscope measure --engine ray`: the same table as that of shards, whatever is killed meanwhile."""

import errno
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

import headscope
import tiny
from headscope.commands.measure.engine import check_engine
from headscope.commands.recorded_request import read_request

engine = pytest.importorskip("headscope.runner.ray", reason="Ray is not installed; it comes with the extra `ray`")

CORPUS = "grammar:503"
CHOSEN = ("-r", "surface", "-r", "relations", "--permutations", "0", "--batch-tokens", "256")
WORKERS = 2
SHARDS = engine.SHARDS_PER_WORKER * WORKERS
PATIENCE = 240.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment in which commands find a cluster of two cores; processes have one core each, with Ray or not.

    Ray gives its workers the priority 15, so that beside the processes of other tests they would hardly get a core.
    """
    log = tmp_path_factory.mktemp("ray") / "log"
    # Not in the folder of the tests, since the names of sockets must be short.
    folder = tempfile.mkdtemp(prefix="ray")
    settings = {
        "OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled", "RAY_worker_niceness": "0",
    }  # fmt: skip
    environment = os.environ | settings
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    ray = Path(sys.executable).with_name("ray")
    start = [
        ray, "start", "--head", f"--port={port}", f"--num-cpus={WORKERS}", "--include-dashboard=false", "--block",
        f"--temp-dir={folder}", "--object-store-memory=100000000",
    ]  # fmt: skip
    with log.open("w") as file:
        process = subprocess.Popen([*map(str, start)], env=environment, stdout=file, stderr=file)
    try:
        await_that(lambda: "Ray runtime started" in log.read_text())
        yield environment | {"RAY_ADDRESS": f"127.0.0.1:{port}", "CLUSTER": str(process.pid)}
    finally:
        for child in psutil.Process(process.pid).children(recursive=True):
            child.kill()
        process.kill()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.save(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def joined(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The table of the same shards, measured one after another without Ray."""
    folder = tmp_path_factory.mktemp("local")
    paths = [folder / f"{number}.npz" for number in range(1, SHARDS + 1)]
    for number, path in enumerate(paths, start=1):
        headscope.measure_shard(
            str(model), CORPUS, ["surface", "relations"], f"{number}/{SHARDS}", out=path, permutations=0,
            batch_tokens=256,
        )  # fmt: skip
    headscope.merge(paths, out=folder / "joined.nc")
    return folder / "joined.nc"


def begin(folder: Path, environment: dict[str, str], *words: object) -> subprocess.Popen[str]:
    command = [str(Path(sys.executable).with_name("headscope")), *map(str, words)]
    return subprocess.Popen(command, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)  # fmt: skip


def begin_under_uv(folder: Path, environment: dict[str, str], *words: object) -> subprocess.Popen[str]:
    """Begin a command below a process that Ray takes for ``uv run``."""
    script = folder.with_name(f"{folder.name}-uv") / "run"
    script.parent.mkdir()
    script.write_text("import os, subprocess, sys\nos.chdir(sys.argv[1])\nsys.exit(subprocess.call(sys.argv[2:]))\n")
    command = ["uv", "run", str(folder), str(Path(sys.executable).with_name("headscope")), *map(str, words)]
    return subprocess.Popen(command, executable=sys.executable, cwd=script.parent, env=environment, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip


def headscope_in(folder: Path, environment: dict[str, str], *words: object) -> tuple[str, str]:
    process = begin_under_uv(folder, environment, *words)
    printed, complaint = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, complaint
    return printed, complaint


def measuring(model: Path, *options: object) -> tuple[object, ...]:
    return ("measure", model, CORPUS, *CHOSEN, "--engine", "ray", "--workers", WORKERS, *options)


def await_that(condition: Callable[[], object]) -> None:
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def list_kept(folder: Path) -> dict[str, int]:
    """The files of finished shards, and when each was written."""
    return {path.name: path.stat().st_mtime_ns for path in folder.glob(".heads.nc.partial.*-of-*.npz")}


def await_first_shard(folder: Path) -> None:
    """Wait until a shard of four is done, so that the workers are at those after it."""
    await_that(lambda: list_kept(folder))


def list_workers(environment: dict[str, str]) -> list[psutil.Process]:
    """Those of this cluster; other tests may have one of their own."""
    family = psutil.Process(int(environment["CLUSTER"])).children(recursive=True)
    return [process for process in family if process.name().startswith("ray::MapWorker")]


def assert_same(table: Path, joined: Path) -> None:
    """The same to the last bit."""
    ours, theirs = headscope.read_table(table), headscope.read_table(joined)
    requests = [read_request(each.attrs["request"])["command"] for each in (ours, theirs)]
    assert requests == ["measure", "merge"]
    differing = {"created": "", "request": ""}
    assert ours.attrs | differing == theirs.attrs | differing
    assert ours.drop_attrs(deep=False).identical(theirs.drop_attrs(deep=False))


def test_workers_give_the_table_of_the_same_shards(cluster, model: Path, joined: Path, tmp_path: Path) -> None:
    printed, complaint = headscope_in(tmp_path, cluster, *measuring(model))
    assert "Wrote heads.nc." in printed
    assert complaint.splitlines()[-2:] == ["starting the workers ...", f"measuring {model.name} ..."]
    assert_same(tmp_path / "heads.nc", joined)
    assert [path.name for path in tmp_path.iterdir()] == ["heads.nc"]


def test_a_killed_command_goes_on_with_the_shards_that_are_left_and_a_killed_worker_loses_nothing(
    cluster, model: Path, joined: Path, tmp_path: Path
) -> None:
    process = begin(tmp_path, cluster, *measuring(model))
    await_first_shard(tmp_path)
    process.kill()
    process.communicate(timeout=PATIENCE)
    kept = list_kept(tmp_path)
    assert 0 < len(kept) < SHARDS

    other = tiny.save_other(tmp_path / "other")
    process = begin(tmp_path, cluster, *measuring(other), "--resume")
    _, complaint = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert "differ in weights_sha256" in complaint
    assert "leave out --resume if they have changed" in complaint
    assert list_kept(tmp_path) == kept

    ended = {*list_workers(cluster)}
    process = begin(tmp_path, cluster, *measuring(model), "--resume")
    await_that(lambda: {*list_workers(cluster)} - ended)
    ({*list_workers(cluster)} - ended).pop().kill()
    _, complaint = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, complaint
    assert_same(tmp_path / "heads.nc", joined)
    assert not list_kept(tmp_path)


def test_what_is_wrong_on_a_worker_is_one_sentence(cluster, model: Path, tmp_path: Path) -> None:
    (model / "tokenizer.json").rename(tmp_path / "tokenizer.json")
    try:
        process = begin(tmp_path, cluster, *measuring(model))
        _, complaint = process.communicate(timeout=PATIENCE)
    finally:
        (tmp_path / "tokenizer.json").rename(model / "tokenizer.json")
    assert process.returncode == 2
    last = complaint.splitlines()[-1]
    assert last.startswith("headscope: ")
    assert str(model) in last
    assert "Traceback" not in complaint
    assert not [*tmp_path.iterdir()]


def test_a_worker_that_dies_again_and_again_ends_the_run(cluster, model: Path, tmp_path: Path) -> None:
    process = begin(tmp_path, cluster, *measuring(model), "--workers", 1)
    ended: set[psutil.Process] = set()
    while process.poll() is None:
        for worker in {*list_workers(cluster)} - ended:
            worker.kill()
            ended.add(worker)
        time.sleep(0.05)
    _, complaint = process.communicate(timeout=PATIENCE)
    assert (process.returncode, len(ended)) == (2, engine.DEATHS)
    assert complaint.endswith(
        "headscope: a worker of the Ray cluster died 3 times before a shard was finished (The actor is dead because "
        "its worker process has died); see that each machine has enough memory for the models of its workers, and ask "
        "for fewer workers (--workers).\n"
    )
    assert "Deprecation" not in complaint
    assert not [*tmp_path.iterdir()]


def test_more_workers_than_cores_are_refused(cluster, model: Path, tmp_path: Path) -> None:
    process = begin(tmp_path, cluster, *measuring(model), "--workers", 7)
    _, complaint = process.communicate(timeout=PATIENCE)
    assert complaint.endswith(
        "headscope: 7 workers were asked for, and the Ray cluster has 2 cores; ask for fewer workers (--workers), or "
        "for another device.\n"
    )
    assert process.returncode == 2


def test_a_cluster_that_is_not_there_is_refused_at_once(run, model: Path, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:9")
    code, _, complaint = run("measure", model, "grammar:7", "-r", "surface", "--engine", "ray", "-o", tmp_path / "a.nc")
    assert code == 2
    assert complaint.endswith(
        f"headscope: no Ray cluster answers at RAY_ADDRESS=127.0.0.1:9 ([Errno {errno.ECONNREFUSED}] "
        "Connection refused); start one there (`ray start --head`), or unset RAY_ADDRESS to have one started on this "
        "machine.\n"
    )


REFUSALS = {
    "engine": (("--engine", "spark"), "--engine is 'spark'; give local or ray."),
    "workers": (("--workers", 2), "only Ray has workers; leave out --workers, or add --engine ray."),
    "none": (("--engine", "ray", "--workers", 0), "--workers is 0; give 1 or more."),
    "shard": (("--engine", "ray", "--shard", "1/2"), "--shard does not work with --engine ray; leave out one of them."),
    "explain": (("--engine", "ray", "--explain"), "--explain does not work with --engine ray; leave out one of them."),
    "device": (("--engine", "ray", "--device", "cuda:1"), "Ray gives each worker a device, and 'cuda:1' was asked for; "
               "give cpu, or cuda for one GPU each."),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSALS)
def test_bad_arguments_are_refused_before_anything_is_read(run, model: Path, tmp_path: Path, case: str) -> None:
    options, sentence = REFUSALS[case]
    code, _, complaint = run("measure", model, "grammar:7", "-r", "surface", "-o", tmp_path / "a.nc", *options)
    assert (code, complaint) == (2, f"headscope: {sentence}\n")


def test_a_loaded_model_cannot_be_sent() -> None:
    with pytest.raises(headscope.HeadscopeError, match="each worker loads the model by itself"):
        check_engine("ray", None, object())


def test_without_ray_it_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setattr("headscope.commands.measure.engine.find_spec", lambda name: None)
    with pytest.raises(headscope.HeadscopeError, match="install headscope with the extra `ray`"):
        check_engine("ray", None, "minilm")
