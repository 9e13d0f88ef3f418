"""A corpus measured in shards, by as many processes or machines as one likes, and the head table of all of them.

model, corpus, K/N --measure_shard--> file of sums;  all files --merge--> head table with intervals and reported heads
"""

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import xarray as xr

from headscope import heads
from headscope.analyse import assess
from headscope.capture.loading import Loadable, load
from headscope.corpora import Shard, read, summarize
from headscope.errors import HeadscopeError
from headscope.jobs.arguments import check_head, check_model, check_output_file, check_reducers, check_view, is_adapter
from headscope.jobs.folder import reserve_file
from headscope.jobs.inputs import find_head, make_plan
from headscope.jobs.measure import choose_reducers
from headscope.jobs.progress import Progress, ignore_progress, shows_progress
from headscope.reducers.reducer import Reducer
from headscope.runner import Run, ShardSums, list_reducers, merge_shards, refuse_sample, refuse_view
from headscope.view.headings import name_model


@shows_progress
def measure_shard(
    model: Loadable,
    corpus: str | Path | Iterable[Any],
    reducers: str | Reducer | Sequence[str | Reducer],
    shard: str | Shard,
    *,
    out: str | Path,
    format: str | None = None,
    patterns: str | Path | None = None,
    hops: int = 1,
    limit: int | None = None,
    sample: int | None = None,
    seed: int = 0,
    task: str | None = None,
    device: str = "cpu",
    max_tokens: int | None = None,
    cut: bool | None = None,
    pair_tokens: int | None = None,
    batch_tokens: int | None = None,
    permutations: int | None = None,
    view: str | None = None,
    sample_queries: int | None = None,
    trust_remote_code: bool = False,
    resume: bool = False,
    progress: Progress | bool | None = None,
) -> ShardSums:
    """The sums over a shard of a corpus, in a file that `merge` joins with those of the other shards.

    Each shard is measured by a process of its own, on any machine that has the model and the whole corpus, which is
    read to see what it holds. `shard` says which of how many it is, such as ``"2/8"`` (`headscope.corpora.Shard`), and
    `out` is the file to write. The other arguments are those of `headscope.measure`. They are the same for all shards,
    but for the number of the `device`, such as ``cuda:1``.

    Returns:
        What was written.

    Raises:
        HeadscopeError: in one sentence, what was wrong with the model, the corpus, a reducer, the shard or the file.
    """
    progress = progress if callable(progress) else ignore_progress
    shard = Shard.parse(shard) if isinstance(shard, str) else shard
    check_head(task, None)
    reducers = list_reducers(reducers)
    check_reducers(reducers)
    check_view(view)
    check_model(model)
    plan = make_plan(max_tokens, cut, pair_tokens, batch_tokens, view, sample_queries, seed)
    with reserve_file(Path(out)) as checkpoint:
        documents = read(corpus, format=format, patterns=patterns, hops=hops, limit=limit, sample=sample, seed=seed)
        progress("reading the corpus", 0, 0)
        summary = summarize(documents)
        shard.check(summary.documents)
        chosen = choose_reducers(reducers, summary, None, permutations, compares=is_adapter(model))
        refuse_view(chosen, view)
        refuse_sample(chosen, plan)
        progress("loading the model", 0, 0)
        model = load(model, device=device, trust_remote_code=trust_remote_code, task=find_head(task, chosen, view))
        run = Run.open(model, documents, chosen, plan=plan, summary=summary).select(shard)
        step = partial(progress, f"measuring shard {shard} with {name_model(model.name)}")
        sums = ShardSums.of_run(run, run.add_up(checkpoint=checkpoint, resume=resume, progress=step))
        sums.write(Path(out))
    return sums


def merge(
    shards: str | Path | Sequence[str | Path],
    reducers: str | Reducer | Sequence[str | Reducer] = (),
    *,
    out: str | Path | None = None,
) -> xr.Dataset:
    """The head table of all shards of a corpus, with intervals, reported heads and p-values.

    The shards are added up in the order of their numbers, so that the table is the same to the last bit however they
    are given. It differs from that of one `headscope.measure` of the whole corpus by rounding alone.

    Args:
        shards: the files that `measure_shard` wrote, all of them.
        reducers: reducers of your own that were measured, by ``module:Reducer`` or as objects; those of headscope need
            not be named. Default: none.
        out: the netCDF file to write. Default: none; the table is returned only.

    Raises:
        HeadscopeError: in one sentence, which shard is missing, is given twice or is of another run, or what is wrong
            with a reducer or a file.
    """
    paths = [Path(path) for path in ([shards] if isinstance(shards, str | Path) else shards)]
    if out is not None:
        check_output_file(Path(out))
        if Path(out).resolve() in {path.resolve() for path in paths}:
            raise HeadscopeError(
                f"{out} is one of the shards and would be overwritten; name another file as `out` (-o)."
            )
    table = assess(merge_shards(paths, reducers))
    if out is not None:
        heads.write_table(table, out)
    return table
