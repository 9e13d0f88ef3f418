"""One head table: any reducers on a model, or on the runs that were tuned from it.

model, corpus --measure--> head table --analyse--> with intervals and reported heads --> file

On a second corpus, the heads that were chosen on the first are scored (`add_replication`).
"""

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import xarray as xr

from headscope import heads
from headscope.analyse import add_replication, assess
from headscope.capture.loading import Loadable, load
from headscope.corpora import Corpus, CorpusSummary, read, summarize
from headscope.errors import HeadscopeError
from headscope.jobs.arguments import check_head, check_model, check_reducers, check_view, is_adapter, open_runs
from headscope.jobs.folder import reserve_file
from headscope.jobs.inputs import find_head, make_plan
from headscope.jobs.progress import Progress, ignore_progress, shows_progress
from headscope.jobs.replication import open_replication
from headscope.jobs.shard_arguments import RAY, check_engine
from headscope.reducers.reducer import Reducer
from headscope.reducers.support.permutations import with_permutations
from headscope.runner import Plan, list_reducers, measure_runs, refuse_sample, refuse_view, resolve_reducers
from headscope.runner import measure as run
from headscope.runs import Runs
from headscope.view.headings import name_model


@shows_progress
def measure(
    model: Loadable,
    corpus: str | Path | Iterable[Any],
    reducers: str | Reducer | Sequence[str | Reducer],
    *,
    out: str | Path | None = None,
    format: str | None = None,
    patterns: str | Path | None = None,
    hops: int = 1,
    limit: int | None = None,
    sample: int | None = None,
    seed: int = 0,
    runs: str | Path | Runs | None = None,
    task: str | None = None,
    device: str = "cpu",
    max_tokens: int | None = None,
    cut: bool | None = None,
    pair_tokens: int | None = None,
    batch_tokens: int | None = None,
    replicate: str | Path | Iterable[Any] | None = None,
    permutations: int | None = None,
    view: str | None = None,
    sample_queries: int | None = None,
    trust_remote_code: bool = False,
    resume: bool = False,
    engine: str = "local",
    workers: int | None = None,
    progress: Progress | bool | None = None,
) -> xr.Dataset:
    """The head table of a model on a corpus, with intervals, reported heads and p-values.

    Args:
        model: a hub id, a folder, also one of saved queries, keys and values, a ``.gguf`` file, ``minilm`` or
            ``smollm2`` (`headscope.load`), or a loaded model of transformers, alone or as ``(model, tokenizer)``.
        corpus: a file or folder, ``grammar``, or texts in memory: strings, lists of words, a dataset, Docs of spaCy or
            documents (`headscope.read`).
        reducers: a name (`headscope.reducers.REDUCERS`), a reducer, or several of them.
        out: the netCDF file to write. Default: none; the table is returned only.
        format: format of the corpus. Detected automatically if omitted.
        patterns: a JSON file of spaCy patterns; their matches are added to the corpus as links.
        hops: of a treebank, add the most frequent paths of up to 2 or 3 dependencies as links. Default: 1, none.
        limit: measure the first so many documents. Default: all.
        sample: measure so many documents at random, in their order; all of a corpus that has no more. Default: all.
        seed: random seed of `sample` and `sample_queries`.
        runs: a folder of runs that were tuned from the model: each run is measured instead of the model, and the table
            has the dimension ``run``.
        task: the task head whose loss reducers and views of gradients differentiate: ``masked-lm``, ``causal-lm``,
            ``classification``, ``tagging``, or ``own`` (`headscope.load`). Not for runs, which have the head of their
            task. Default: ``own`` for such reducers and views; others need no head.
        device: where to run the model; a loaded model stays where it is.
        max_tokens: longest text in tokens. Default: the limit of the model.
        cut: cut longer texts; otherwise they are skipped. Default: cut if the corpus has coreference.
        pair_tokens: cut pairs of paragraphs to this many tokens. Default: 128.
        batch_tokens: tokens in a batch, padding included.
        replicate: another corpus, on which the heads that are chosen on the first are scored again, with `format`,
            `patterns`, `hops`, `limit` and `sample` of the first. Not for runs. Default: none.
        permutations: number of permutations for the p-values; 0 skips them. Default: as many as the number of rows
            needs, 999 at least (`headscope.reducers.support.permutations.Permutations.for_rows`), and 0 for runs, whose
            chance level is tested when they are compared. A reducer that is given as an object keeps its own number.
            On `replicate` there are none, since nothing is chosen there.
        view: what is measured in place of the weights: ``norm`` for the share of what flows from each token,
            ``gradient`` or ``gradient-x-attention`` for that of what the loss depends on, ``rollout`` or
            ``rollout-without-sink`` for that of what comes from each token of the input, ``value-zeroing`` for that of
            what changes without each token's value (`headscope.capture.views.VIEWS`). Default: the weights.
        sample_queries: estimate the statistics of long texts from about so many of their tokens as queries, such as
            256, at random: nearly at the cost of the model alone, with the variables ``*_lower`` and ``*_upper`` as
            the ends of an interval around each value (`headscope.runner.row_sample`). Not every reducer takes a
            sample. Default: all tokens.
        trust_remote_code: run the Python code of the model's repository.
        resume: continue a killed run with the same arguments.
        engine: ``local`` for this process, or ``ray`` for the workers of a Ray cluster (extra ``ray``): the one that
            the environment variable RAY_ADDRESS names, or one that is started on this machine.
        workers: number of workers on Ray. Default: one for each core, or for each GPU if the device is ``cuda``.
        progress: True shows it, False does not; a function is called with the step, how much of it is done, and how
            much there is. Default: shown on a terminal and in a notebook.

    Raises:
        HeadscopeError: in one sentence, what was wrong with the model, the corpus, a reducer or the file.
    """
    progress = progress if callable(progress) else ignore_progress
    if out is None and resume:
        raise HeadscopeError("resume=True continues a file; name it as `out`.")
    runs = open_runs(runs, replicate)
    check_head(task, runs)
    reducers = list_reducers(reducers)
    check_reducers(reducers)
    check_view(view)
    check_model(model)
    check_engine(engine, workers, model, device, runs=runs, replicate=replicate)
    plan = make_plan(max_tokens, cut, pair_tokens, batch_tokens, view, sample_queries, seed)
    reading = partial(read, format=format, patterns=patterns, hops=hops, limit=limit, sample=sample, seed=seed)
    with nullcontext() if out is None else reserve_file(Path(out)) as sums:
        documents = reading(corpus)
        progress("reading the corpus", 0, 0)
        summary = summarize(documents)
        compares = runs is not None or is_adapter(model)
        chosen = choose_reducers(reducers, summary, runs, permutations, compares=compares)
        refuse_view(chosen, view)
        refuse_sample(chosen, plan)
        head = find_head(task, chosen, view) if runs is None else None
        if engine == RAY:
            table = _measure_on_ray(
                str(model), documents, chosen, plan=plan,
                summary=summary, sums=sums, workers=workers, resume=resume, progress=progress,
                device=device, trust_remote_code=trust_remote_code, task=head,
            )  # fmt: skip
            if out is not None:
                heads.write_table(table, out)
            return table
        second = open_replication(replicate, documents, reducers, chosen, reading=reading, progress=progress)
        progress("loading the model", 0, 0)
        model = load(model, device=device, trust_remote_code=trust_remote_code, task=head)

        def make_settings(step: str, summary: CorpusSummary, checkpoint: Path | None) -> dict[str, Any]:
            return {
                "plan": plan, "summary": summary,
                "checkpoint": checkpoint, "resume": resume, "progress": lambda done, total: progress(step, done, total),
            }  # fmt: skip

        if runs is None:
            settings = make_settings(f"measuring {name_model(model.name)}", summary, sums)
            table = assess(run(model, documents, chosen, **settings))
        else:
            step = f"measuring {len(runs.runs)} runs of {'the control of ' if runs.control else ''}{runs.task}"
            settings = make_settings(step, summary, sums)
            table = measure_runs(model, runs, documents, chosen, **settings, trust_remote_code=trust_remote_code)
            table = assess(table)
        if second is not None:
            checkpoint = sums and sums.with_stem(f"{sums.stem}.replication")
            settings = make_settings(f"replicating on {second.name}", second.summary, checkpoint)
            table = add_replication(table, run(model, second.documents, second.reducers, **settings))
        if out is not None:
            heads.write_table(table, out)
    return table


def _measure_on_ray(
    model: str,
    documents: Corpus,
    reducers: Sequence[Reducer],
    *,
    plan: Plan,
    summary: CorpusSummary,
    sums: Path | None,
    workers: int | None,
    resume: bool,
    progress: Progress,
    **loading: Any,
) -> xr.Dataset:
    """The head table that the workers of a Ray cluster measure; without `sums` nothing is kept for resuming."""
    # Ray is an extra, and takes seconds to import.
    from headscope.runner import ray

    progress("starting the workers", 0, 0)
    work = ray.Work.describe(model, documents, reducers, plan=plan, summary=summary, **loading)
    step = partial(progress, f"measuring {name_model(model)}")
    with TemporaryDirectory() as folder:
        sums = sums or Path(folder) / "sums.npz"
        return assess(ray.measure(work, sums, workers=workers, resume=resume, progress=step))


def choose_reducers(
    reducers: Sequence[str | Reducer],
    summary: CorpusSummary,
    runs: Runs | None,
    permutations: int | None,
    *,
    compares: bool,
) -> list[Reducer]:
    """The reducers that were named, for this corpus, with so many permutations.

    Raises:
        HeadscopeError: one compares a model with what it was tuned from, and there is nothing to compare.
    """
    chosen = []
    for named, reducer in zip(reducers, resolve_reducers(reducers, summary), strict=True):
        if not compares and reducer.models == 2:
            raise HeadscopeError(
                f"the reducer `{reducer.name}` compares a model with what it was tuned from; add --runs FOLDER, or "
                "give the folder of an adapter."
            )
        skipped = permutations is None and runs is not None and isinstance(named, str)
        chosen.append(with_permutations(reducer, 0 if skipped else permutations))
    return chosen
