"""The measurement of a corpus by the workers of a Ray cluster, shard by shard (extra ``ray``).

shards --map_batches--> workers, each with the model --sums--> files of all shards --merge_shards--> head table

The workers get descriptions of shards and send back sums: each worker reads the corpus itself.
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
"""The number of shards for each worker.

With more, less is lost when a worker dies, but the whole corpus is read for each shard.
"""

DEATHS = 3
"""The number of deaths of a worker after which Ray gives up; the run then ends if no shard was finished meanwhile."""

POLL = 0.5
"""The number of seconds between two reads of the reports of the workers."""


class WorkerDeathError(HeadscopeError):
    """A worker died `DEATHS` times."""


@dataclass(frozen=True, eq=False)
class Work:
    """The measurement that all workers share.

    Attributes:
        model: The name or path of the model, which each worker loads.
        loading: The other arguments of `headscope.load`.
        documents, reducers, plan, summary: Arguments of `headscope.runner.Run.open`.
        corpus_sha256: The hash of the documents on this machine.
        folder: The folder in which relative paths begin.
        versions: The versions of the packages on this machine.
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
        """Return a description of a measurement; the arguments are those of `headscope.runner.Run.open` and `load`."""
        # A copy without the remembered hash of the corpus, since each worker must hash its own files.
        return cls(model, loading, replace(documents), reducers, plan, summary, documents.sha256)

    @property
    def on_gpus(self) -> bool:
        """Whether the model runs on GPUs."""
        return bool(self.loading["device"] != PROCESSOR)

    def open(self) -> Run:
        """Open the run over the whole corpus, on the machine on which this is called.

        Raises:
            HeadscopeError: This machine has other versions or another corpus, or the run cannot be opened on it.
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
    """The progress of the workers, and a check that all of them report the same run.

    Args:
        name: The name of the run with this identity, for error messages.
        identity: The identity of the run that the shards belong to; None to take it from the first worker.
    """

    def __init__(self, name: str, identity: Mapping[str, Any] | None) -> None:
        self.name, self.identity = name, identity
        self.shards: dict[int, int] = {}

    @property
    def words(self) -> int:
        """The number of words that are done."""
        return sum(self.shards.values())

    def add(self, report: Mapping[str, Any]) -> None:
        """Add a report of a worker: the identity of its run, or the number of words that are done of a shard.

        Raises:
            HeadscopeError: The run of the worker differs from the first one.
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

    An error comes back with the sums, since Ray keeps only the text of an exception. Reports are plain data, so that
    the queue need not import the code of the worker.
    """

    def __init__(self, work: Work, reports: Queue) -> None:
        self.work, self.reports = work, reports

    @cached_property
    def run(self) -> Run:
        """The run over the whole corpus.

        Raises:
            HeadscopeError: The run cannot be opened on this machine.
        """
        if Path(self.work.folder).is_dir():
            os.chdir(self.work.folder)
        run = self.work.open()
        self.reports.put({"name": f"the worker on {platform.node()}", "identity": run.identity})
        return run

    def __call__(self, batch: Mapping[str, np.ndarray]) -> dict[str, list[Any]]:
        """Measure a shard, and return the content of its file in bytes, or an error message."""
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
    """Measure a corpus with the workers of a Ray cluster.

    `merge_shards` makes the head table. It is the same to the last bit however often a worker or this process was
    killed, and differs from the table of one run only by rounding. RAY_ADDRESS names the cluster; without it, a cluster
    is started on this machine for the time of the run.

    Args:
        work: The work to do.
        sums: The files of shards are kept next to this path, as ``STEM.1-of-4.npz``; the caller removes them.
        workers: The number of workers. Default: one for each GPU if the model runs on GPUs, else one for each core.
            With the device ``auto`` it runs on GPUs if the cluster has a GPU for each worker.
        resume: Continue with the shards that a killed run left.
        progress: Is called with the number of words that are done and of all words.
        waiting: Is called with the cores or GPUs that the workers wait for, if others hold them.

    Raises:
        HeadscopeError: There is no such cluster or it has no room, the workers are not fit for the work, differ from
            each other or die again and again, or the model, the corpus or a reducer is faulty.
    """
    with ThreadPoolExecutor(1) as pool, connected():
        # Without a GPU for each worker, all workers use processors.
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
        # If all shards are there, the last is measured again, so that a worker checks the model and the corpus.
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
    """Return the files that a killed run left, by shard."""
    name = re.compile(rf"{re.escape(sums.stem)}\.([0-9]+)-of-([0-9]+){re.escape(sums.suffix)}")
    matches = ((name.fullmatch(path.name), path) for path in sums.parent.glob(f"{escape(sums.stem)}.*{sums.suffix}"))
    return {Shard(int(match[1]), int(match[2])): path for match, path in matches if match is not None}


def _start_queue() -> Queue:
    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=True)
    return Queue(actor_options={"num_cpus": 0, "max_restarts": -1, "max_task_retries": -1, "scheduling_strategy": here})


def _take_all(reports: Queue) -> list[Mapping[str, Any]]:
    """Take all reports out of the queue and return them; return none if the queue died."""
    try:
        return list(reports.get_nowait_batch(reports.qsize()))
    except Empty:  # the queue died in between, and its reports are lost
        return []


def _map_shards(
    shards: Sequence[Shard], work: Work, reports: Queue, workers: int, cores: int
) -> Generator[Mapping[str, Any], None, None]:
    """Yield a row for each shard when it is measured; Ray restarts a dead worker and gives it the shard again.

    Raises:
        WorkerDeathError: A worker died `DEATHS` times.
        HeadscopeError: The workers failed for another reason.
    """
    rows = [{"number": shard.number, "count": shard.count} for shard in shards]
    # One block for each shard, and one shard at a time for each worker, so that none waits while another has several.
    pool = ray.data.ActorPoolStrategy(size=workers, max_tasks_in_flight_per_actor=1)
    with warnings.catch_warnings():
        # Ray has no other way yet to limit the restarts of a worker.
        warnings.filterwarnings("ignore", ".*ray_remote_args")
        dataset = ray.data.from_items(rows, override_num_blocks=len(rows)).map_batches(
            Worker, batch_size=1, compute=pool, fn_constructor_args=(work, reports), num_cpus=cores,
            num_gpus=1 if work.on_gpus else None, max_restarts=DEATHS - 1,
        )  # fmt: skip
    try:
        yield from dataset.iter_rows()
    except ray.exceptions.RayTaskError:  # the error of a user's own reducer, which is for its author
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
    """Return the reason of an error of Ray: the first sentence of its last line."""
    return first_line(ValueError(str(error).strip().splitlines()[-1].partition(". ")[0]))


def _await_each(
    rows: Iterator[Mapping[str, Any]], pool: ThreadPoolExecutor, *, meanwhile: Callable[[], None]
) -> Iterator[Mapping[str, Any]]:
    """Yield rows as they come, and call `meanwhile` again and again while waiting for the next row.

    A thread of `pool` waits for the rows. `meanwhile` is also called once before each row.
    """
    while True:
        row, waits = pool.submit(partial(next, rows, None)), True
        while waits:
            waits = not wait([row], timeout=POLL).done
            meanwhile()
        if (result := row.result()) is None:
            return
        yield result
