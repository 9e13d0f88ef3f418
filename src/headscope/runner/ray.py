"""A corpus measured by the workers of a Ray cluster, shard by shard (extra ``ray``).

shards --map_batches--> workers, each with the model --sums--> files of all shards --merge_shards--> head table

Descriptions of shards go to the workers, and sums come back: each worker reads the corpus itself.
"""

import os
import platform
import re
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from glob import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import ray
import ray.data
import xarray as xr
from ray.util.queue import Empty, Queue
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from headscope.capture.model.device_names import AUTO, PROCESSOR
from headscope.capture.open.loading import load
from headscope.capture.passes.stream import Plan
from headscope.corpora.corpus import Corpus
from headscope.corpora.shard import Shard
from headscope.corpora.summary import CorpusSummary
from headscope.errors import HeadscopeError, first_line
from headscope.files import atomic_write
from headscope.reducers.reducer import Reducer
from headscope.runner.local import Progress, Run
from headscope.runner.provenance import list_versions
from headscope.runner.ray_cluster import connected, divide_cores, find_missing, has_gpus
from headscope.runner.shards import ShardSums, find_difference, merge_shards

SHARDS_PER_WORKER = 2
"""With more, less is lost when a worker dies; but the whole corpus is read for each shard."""

DEATHS = 3
"""How often a worker may die before a shard is finished; the run then ends."""

POLL = 0.5
"""Seconds between two questions how far the workers are."""


class WorkerDeathError(HeadscopeError):
    """A worker died as often as it may."""


@dataclass(frozen=True, eq=False)
class Work:
    """What all workers measure.

    Attributes:
        model: its name or path, which each worker loads.
        loading: the other arguments of `headscope.load`.
        documents, reducers, plan, summary: those of `headscope.runner.Run.open`.
        corpus_sha256: of the documents, as they are here.
        folder: in which relative paths begin.
        versions: of the packages here.
    """

    model: str
    loading: Mapping[str, Any]
    documents: Corpus
    reducers: Sequence[Reducer]
    plan: Plan
    summary: CorpusSummary
    corpus_sha256: str
    folder: str = field(default_factory=os.getcwd)
    versions: Mapping[str, str] = field(default_factory=list_versions)

    @classmethod
    def describe(
        cls,
        model: str,
        documents: Corpus,
        reducers: Sequence[Reducer],
        *,
        plan: Plan,
        summary: CorpusSummary,
        **loading: Any,
    ) -> "Work":
        """The work of these arguments, which are those of `headscope.runner.Run.open` and `headscope.load`."""
        # A copy, since a corpus remembers its hash, and each worker is to look at its own files.
        return cls(model, loading, replace(documents), reducers, plan, summary, documents.sha256)

    @property
    def on_gpus(self) -> bool:
        """Whether the model is to be on GPUs."""
        return bool(self.loading["device"] != PROCESSOR)

    def open(self) -> Run:
        """The run over the whole corpus, on the machine on which this is called.

        Raises:
            HeadscopeError: this machine has other versions or another corpus, or the run cannot be opened there.
        """
        where = f"the worker on {platform.node()}"
        ours = list_versions()
        for package in sorted(ours.keys() | self.versions.keys()):
            if (there := ours.get(package)) != (here := self.versions.get(package)):
                raise HeadscopeError(
                    f"{where} has {package} {there}, and {here} is installed here; install the same version on all "
                    "machines."
                )
        documents = self.documents.find_files()
        if documents.sha256 != self.corpus_sha256:
            raise HeadscopeError(
                f"{where} reads another corpus as {documents.name} than there is here; copy the same files to all "
                "machines."
            )
        model = load(self.model, **self.loading)
        return Run.open(model, documents, self.reducers, plan=self.plan, summary=self.summary)


class Overview:
    """How far the workers are, and whether their runs are one and the same, as they report it.

    Args:
        name: of whose run the identity is.
        identity: of the run that the shards belong to; None if the first worker is to say it.
    """

    def __init__(self, name: str, identity: Mapping[str, Any] | None) -> None:
        self.name, self.identity = name, identity
        self.shards: dict[int, int] = {}

    @property
    def words(self) -> int:
        """The number of words that are done."""
        return sum(self.shards.values())

    def add(self, report: Mapping[str, Any]) -> None:
        """Add what a worker reports: the identity of its run, or the number of words that are done of a shard.

        Raises:
            HeadscopeError: its run is another than that of the first.
        """
        if "shard" in report:
            self.shards[report["shard"]] = report["words"]
            return
        name, identity = report["name"], report["identity"]
        if self.identity is None:
            self.name, self.identity = name, identity
        if difference := find_difference(self.identity, identity):
            raise HeadscopeError(
                f"{self.name} and {name} differ in {difference}; give all machines the same model and arguments, and "
                "leave out --resume if they have changed."
            )


class Worker:
    """An actor of the cluster, which holds the model and measures one shard after another.

    What is wrong is given back beside the sums, since Ray keeps no more than the text of an exception. What it reports
    is plain data, so that the queue need not import what the worker does.
    """

    def __init__(self, work: Work, reports: Queue) -> None:
        self.work, self.reports = work, reports

    @cached_property
    def run(self) -> Run:
        """The run over the whole corpus.

        Raises:
            HeadscopeError: it cannot be opened here.
        """
        if Path(self.work.folder).is_dir():
            os.chdir(self.work.folder)
        run = self.work.open()
        self.reports.put({"name": f"the worker on {platform.node()}", "identity": run.identity})
        return run

    def __call__(self, batch: Mapping[str, np.ndarray]) -> dict[str, list[Any]]:
        """The file of a shard as bytes, or what was wrong."""
        shard = Shard(int(batch["number"][0]), int(batch["count"][0]))
        sums, wrong = b"", ""
        try:
            sums = self._measure(shard)
        except HeadscopeError as error:
            wrong = str(error)
        return {"number": [shard.number], "sums": [sums], "wrong": [wrong]}

    def _measure(self, shard: Shard) -> bytes:
        run = self.run.select(shard)
        done = run.add_up(progress=lambda seen, _: self.reports.put({"shard": shard.number, "words": seen}))
        with TemporaryDirectory() as folder:
            path = Path(folder) / "sums.npz"
            ShardSums.of_run(run, done).write(path)
            return path.read_bytes()


def measure(
    work: Work,
    sums: Path,
    *,
    workers: int | None = None,
    resume: bool = False,
    progress: Progress | None = None,
    waiting: Callable[[str], None] | None = None,
) -> xr.Dataset:
    """The head table of a corpus that the workers of a Ray cluster measure.

    It is that of `merge_shards`: the same to the last bit however often a worker or this process was killed, and the
    same as that of one run but for rounding. The cluster is the one that RAY_ADDRESS names, or else one that is started
    for the time on this machine.

    Args:
        work: what is measured.
        sums: beside it the files of shards are kept, as ``STEM.1-of-4.npz``; the caller removes them.
        workers: how many there are. Default: one for each GPU if the model is to be on GPUs, else for each core. With
            the device ``auto`` it is if the cluster has a GPU for each worker.
        resume: go on with the shards that a killed run left.
        progress: is called with the words done and those there are.
        waiting: is called with the cores or GPUs that are waited for, where others hold them.

    Raises:
        HeadscopeError: there is no such cluster or it has no room, the workers are not fit for the work, are not the
            same or die again and again, or something is wrong with the model, the corpus or a reducer.
    """
    with ThreadPoolExecutor(1) as pool, connected():
        # Without a GPU for each worker, all are on processors.
        if work.loading["device"] == AUTO and not has_gpus(workers):
            work = replace(work, loading={**work.loading, "device": PROCESSOR})
        workers, cores = divide_cores(workers, gpu=work.on_gpus)
        kept = _find_kept(sums)
        if not resume:
            for path in kept.values():
                path.unlink()
            kept = {}
        count = next(iter(kept)).count if kept else min(SHARDS_PER_WORKER * workers, work.summary.documents)
        paths = {Shard(number, count): _name_kept(sums, Shard(number, count)) for number in range(1, count + 1)}
        # The last one is measured again if all are there, so that somebody compares them with the model and the corpus.
        left = [shard for shard in paths if shard not in kept] or [Shard(count, count)]
        before = {shard: ShardSums.read(kept[shard]) for shard in paths if shard in kept and shard not in left}
        name, identity = next(((str(kept[shard]), done.identity) for shard, done in before.items()), ("", None))
        overview, reports = Overview(name, identity), _start_queue()
        words = sum(done.counts["words"] for done in before.values())

        def read_reports() -> None:
            for report in _take_all(reports):
                overview.add(report)
            if progress is not None and (seen := words + overview.words):
                progress(seen, max(seen, work.summary.words))

        missing = find_missing(min(workers, len(left)), cores, gpu=work.on_gpus)
        if missing and waiting is not None:
            waiting(missing)
        while left:
            rows, before_attempt = _map_shards(left, work, reports, min(workers, len(left)), cores), len(left)
            try:
                for row in _await_each(rows, pool, meanwhile=read_reports):
                    if row["wrong"]:
                        rows.close()  # ends the workers while Ray is still connected
                        raise HeadscopeError(row["wrong"])
                    shard = Shard(row["number"], count)
                    with atomic_write(paths[shard]) as temporary:
                        temporary.write_bytes(row["sums"])
                    left.remove(shard)
            except WorkerDeathError:
                if len(left) == before_attempt:
                    raise
    return merge_shards([*paths.values()], work.reducers)


def _name_kept(sums: Path, shard: Shard) -> Path:
    return sums.with_name(f"{sums.stem}.{shard.number}-of-{shard.count}{sums.suffix}")


def _find_kept(sums: Path) -> dict[Shard, Path]:
    """The files of shards that a killed run left."""
    name = re.compile(rf"{re.escape(sums.stem)}\.([0-9]+)-of-([0-9]+){re.escape(sums.suffix)}")
    matches = ((name.fullmatch(path.name), path) for path in sums.parent.glob(f"{escape(sums.stem)}.*{sums.suffix}"))
    return {Shard(int(match[1]), int(match[2])): path for match, path in matches if match is not None}


def _start_queue() -> Queue:
    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=True)
    return Queue(actor_options={"num_cpus": 0, "max_restarts": -1, "max_task_retries": -1, "scheduling_strategy": here})


def _take_all(reports: Queue) -> list[Mapping[str, Any]]:
    """All that the queue holds; nobody else takes from it."""
    try:
        return list(reports.get_nowait_batch(reports.qsize()))
    except Empty:  # it has died in between, and what it held is lost
        return []


def _map_shards(
    shards: Sequence[Shard], work: Work, reports: Queue, workers: int, cores: int
) -> Generator[Mapping[str, Any], None, None]:
    """Yield a row for each shard when it is measured; Ray starts a dead worker anew and gives it the shard again.

    Raises:
        WorkerDeathError: a worker died for the last time.
        HeadscopeError: something else is wrong with the workers.
    """
    rows = [{"number": shard.number, "count": shard.count} for shard in shards]
    # One block for each shard, and one shard at a time for each worker, so that none waits while another has several.
    pool = ray.data.ActorPoolStrategy(size=workers, max_tasks_in_flight_per_actor=1)
    with warnings.catch_warnings():
        # Ray has no other way yet to say how often a worker may be started anew.
        warnings.filterwarnings("ignore", ".*ray_remote_args")
        dataset = ray.data.from_items(rows, override_num_blocks=len(rows)).map_batches(
            Worker, batch_size=1, compute=pool, fn_constructor_args=(work, reports), num_cpus=cores,
            num_gpus=1 if work.on_gpus else None, max_restarts=DEATHS - 1,
        )  # fmt: skip
    try:
        yield from dataset.iter_rows()
    except ray.exceptions.RayTaskError:  # the error of somebody's own reducer, which is for who wrote it
        raise
    except (ray.exceptions.RayActorError, ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError) as error:
        raise WorkerDeathError(
            f"a worker of the Ray cluster died {DEATHS} times before a shard was finished "
            f"({_quote(error)}); see that each machine has enough memory for the models of its workers, and ask for "
            "fewer workers (--workers)."
        ) from error
    except ray.exceptions.RayError as error:
        raise HeadscopeError(
            f"the workers of the Ray cluster failed ({_quote(error)}); see that all machines have headscope and enough "
            "memory for the model."
        ) from error


def _quote(error: Exception) -> str:
    """Return the first sentence of the last line, where Ray has the reason."""
    return first_line(ValueError(str(error).strip().splitlines()[-1].partition(". ")[0]))


def _await_each(
    rows: Iterator[Mapping[str, Any]], pool: ThreadPoolExecutor, *, meanwhile: Callable[[], None]
) -> Iterator[Mapping[str, Any]]:
    """The rows, which a thread waits for, so that something can be done `meanwhile`, and once more before each row."""
    while True:
        row, waits = pool.submit(partial(next, rows, None)), True
        while waits:
            waits = not wait([row], timeout=POLL).done
            meanwhile()
        if (result := row.result()) is None:
            return
        yield result
