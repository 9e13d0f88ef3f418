"""The measurement of a model on documents, which makes a head table.

documents --Stream--> Portion --accumulate--> RunSums --complete_table--> head table
"""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import xarray as xr
from torch import Tensor

from headscope.capture.forward.installed import describe_edits
from headscope.capture.forward.loss import check_loss
from headscope.capture.model.model import Model
from headscope.capture.open.loading import Loadable, load
from headscope.capture.passes.stream import Plan, Stream
from headscope.capture.passes.views import VIEWS
from headscope.corpora.corpus import MEMORY, Corpus, hash_documents, name_documents
from headscope.corpora.document import Document
from headscope.corpora.shard import Shard
from headscope.corpora.summary import CorpusSummary, summarize
from headscope.errors import HeadscopeError
from headscope.heads import EDITED
from headscope.reducers import DEFAULT
from headscope.reducers.reducer import Reducer
from headscope.runner.accumulate import accumulate, count_portion
from headscope.runner.checkpoint import ADVICE, Key, RunSums
from headscope.runner.checkpoint import resume as resume_sums
from headscope.runner.checkpoint import save as save_sums
from headscope.runner.completed_table import complete_table
from headscope.runner.impossible import refuse_impossible_numbers, refuse_impossible_values
from headscope.runner.provenance import identify_model, identify_reading, list_versions
from headscope.runner.resolve import list_reducers, needs_head, refuse_sample, refuse_view, resolve_reducers
from headscope.runner.row_sample import find_shortest

SAVE_EVERY = 20.0
"""The number of seconds after which the sums so far are saved again."""

Progress = Callable[[int, int], None]
"""A function that is called after each batch with two numbers of words: the words that are done, and all words."""


def measure(
    model: Loadable,
    documents: Iterable[Document],
    reducers: str | Reducer | Sequence[str | Reducer] = DEFAULT,
    *,
    plan: Plan | None = None,
    checkpoint: Path | None = None,
    resume: bool = False,
    progress: Progress | None = None,
    summary: CorpusSummary | None = None,
    before: Loadable | None = None,
) -> xr.Dataset:
    """Measure every head of a model on a corpus.

    Args:
        model: A loaded model, or an argument of `headscope.load`.
        documents: A corpus from `headscope.read`, or any documents.
        reducers: Names from `REDUCERS`, ``module:Reducer``, or reducers.
        plan: How to batch; the defaults suit most cases.
        checkpoint: The file in which the sums so far are kept, every `SAVE_EVERY` seconds and at the end. It stays
            there for the caller to delete once the table is safe.
        resume: Continue from `checkpoint` if it exists; the table is the same to the last bit.
        progress: Is called with the number of words that are done and of all words.
        summary: The result of `headscope.corpora.summarize` for `documents`, if that is known already.
        before: The model from which `model` was tuned, for reducers that compare two models.

    Returns:
        A head table (`headscope.heads`) with all variables of all reducers.

    Raises:
        CorpusError: The corpus cannot be read or lacks what a reducer needs.
        ModelError: A model cannot be loaded, its attention cannot be captured faithfully, or two cannot be compared.
        HeadscopeError: The checkpoint belongs to another run or holds impossible sums, or there is no model to compare
            with.
    """
    run = Run.open(model, documents, reducers, plan=plan, summary=summary, before=before)
    done = run.add_up(checkpoint=checkpoint, resume=resume, progress=progress)
    return complete_table(done, run.summary, run.model.shape, run.reducers, run.identity, run.stream.plan.view)


@dataclass(frozen=True, eq=False)
class Run:
    """A measurement that is ready: documents, a model and reducers that were checked to fit together.

    Attributes:
        stream: The stream of batches; the first of its models is measured.
        reducers: The reducers that are measured.
        summary: The summary of the whole corpus, also if only a shard of it is read.
        identity: The identity of the run, which decides whether saved sums belong to it.
        shard: The part of the corpus that is read; None for all of it.
    """

    stream: Stream
    reducers: Sequence[Reducer]
    summary: CorpusSummary
    identity: Mapping[str, Any]
    shard: Shard | None = None

    @classmethod
    def open(
        cls,
        model: Loadable,
        documents: Iterable[Document],
        reducers: str | Reducer | Sequence[str | Reducer],
        *,
        plan: Plan | None = None,
        summary: CorpusSummary | None = None,
        before: Loadable | None = None,
    ) -> "Run":
        """Load the models, make the reducers and check that all fit together; the arguments are those of `measure`.

        Raises:
            CorpusError: The corpus cannot be read or lacks what a reducer needs.
            ModelError: A model cannot be loaded, or has no loss although gradients are needed.
            HeadscopeError: A reducer cannot be measured through the view or on a sample, or a model to compare with is
                missing.
        """
        model = load(model)
        if isinstance(documents, Iterator):
            documents = list(documents)
        if model.saved is not None:
            model.saved.check(documents)
        summary = summary or summarize(documents)
        resolved = resolve_reducers(list_reducers(reducers), summary)
        plan = _decide_cut(plan or Plan(), summary)
        refuse_view(resolved, plan.view)
        refuse_sample(resolved, plan)
        stream = open_stream(model, documents, resolved, plan, before=_load_before(before, model, resolved))
        stream = replace(stream, originals=summary.originals)
        return cls(stream, resolved, summary, _identify(stream, resolved))

    def select(self, shard: Shard) -> "Run":
        """Return a copy of this run that reads only a shard of the corpus; this run must read the whole corpus."""
        stream = replace(self.stream, documents=shard.select(self.stream.documents))
        return replace(self, stream=stream, identity={**self.identity, "shard": str(shard)}, shard=shard)

    @property
    def model(self) -> Model:
        """The model that is measured."""
        return self.stream.models[0]

    def add_up(
        self, *, checkpoint: Path | None = None, resume: bool = False, progress: Progress | None = None
    ) -> RunSums:
        """Measure all documents and return the sums of all reducers; the arguments are those of `measure`.

        Raises:
            HeadscopeError: The checkpoint belongs to another run, or holds impossible sums.
        """
        done = RunSums({})
        if resume and checkpoint is not None and checkpoint.exists():
            done = resume_sums(checkpoint, self.identity)
            refuse_impossible_numbers(done, str(checkpoint), ADVICE)
            refuse_impossible_values(done, self.model.shape, self.reducers, self.summary, str(checkpoint), ADVICE)
        # All shards have about the same number of words.
        words = self.summary.words // (1 if self.shard is None else self.shard.count)
        sums: Mapping[Key, Tensor] = {}
        saved = time.monotonic()
        for sums in accumulate(self.stream, self.reducers, done=done):
            if checkpoint is not None and time.monotonic() - saved >= SAVE_EVERY:
                save_sums(RunSums.from_tensors(sums), checkpoint, identity=self.identity)
                saved = time.monotonic()
            if progress is not None and ("seen", "words") in sums:
                seen = int(sums["seen", "words"])
                progress(seen, max(seen, words))
        if sums:
            done = RunSums.from_tensors(sums)
        if checkpoint is not None:
            save_sums(done, checkpoint, identity=self.identity)
        return done


def count_read(
    model: Model, documents: Iterable[Document], reducers: Sequence[Reducer], plan: Plan, summary: CorpusSummary
) -> dict[str, int]:
    """Count the ``documents`` and ``tokens`` that `measure` would read, without measuring heads.

    Documents for which the model's outputs are not finite are included; they are known only when the model runs.
    """
    total: Counter[str] = Counter()
    for portion in open_stream(model, documents, reducers, _decide_cut(plan, summary)):
        total.update({name: int(n) for (kind, name), n in count_portion(portion).items() if kind == "seen"})
    return {name: total[name] for name in ("documents", "tokens")}


def _decide_cut(plan: Plan, summary: CorpusSummary) -> Plan:
    """Return the plan; if its `cut` is None, the result cuts documents if the corpus has mentions of coreference."""
    return replace(plan, cut="mention" in summary.spans) if plan.cut is None else plan


def open_stream(
    model: Model, documents: Iterable[Document], reducers: Sequence[Reducer], plan: Plan, *, before: Model | None = None
) -> Stream:
    """Open a stream of batches for a model, its reducers and, if `before` is given, the model to compare with."""
    limits = [reducer.max_tokens for reducer in reducers if reducer.max_tokens is not None]
    if plan.view is not None and (longest := VIEWS[plan.view].max_tokens) is not None:
        limits.append(longest)
    # The weights of all layers stay in memory until the backward pass.
    every_layer = needs_head(reducers, plan.view) or any(reducer.scope == "pass" for reducer in reducers)
    beside = () if before is None else (before,)
    held = (model, *beside) if every_layer else beside
    alone_from = None if plan.sample_queries is None else find_shortest(plan.sample_queries)
    return Stream(
        documents, (model, *beside), plan, max_tokens=min(limits, default=None), held=held,
        reads_logits=any(reducer.reads_logits for reducer in reducers), alone_from=alone_from,
    )  # fmt: skip


def try_views(
    model: Model, documents: Iterable[Document], reducers: Sequence[Reducer], plan: Plan, views: Iterable[str]
) -> None:
    """Check on the first batch of a corpus that the attention of a model can be measured through each of `views`.

    Raises:
        HeadscopeError: A reducer cannot be measured through one of the views.
        ModelError: The model cannot be seen through one of the views.
    """
    for view in views:
        refuse_view(reducers, view)
        if VIEWS[view].of_loss:
            check_loss(model)
        next(iter(open_stream(model, documents, reducers, replace(plan, view=view))), None)


def _load_before(before: Loadable | None, model: Model, reducers: Sequence[Reducer]) -> Model | None:
    """Load the model to compare with; return None if no reducer compares two models."""
    comparing = next((reducer for reducer in reducers if reducer.models == 2), None)
    if comparing is None:
        return None
    before = before or model.adapter_of or None
    if before is None:
        raise HeadscopeError(
            f"the reducer `{comparing.name}` compares two models, and one was given; give `before`, what it was tuned "
            "from."
        )
    return load(before, device=str(model.device), dtype=model.dtype_asked)


def _identify(stream: Stream, reducers: Sequence[Reducer]) -> dict[str, Any]:
    """Return the identity of a run, which is checked on resuming; its `about` becomes attributes of the table."""
    documents, (model, *beside) = stream.documents, stream.models
    about: dict[str, Any] = {
        **identify_model(model),
        "corpus": name_documents(documents),
        "corpus_sha256": hash_documents(documents),
        **identify_reading(model, stream.plan),
    }
    if needs_head(reducers, stream.plan.view):
        about["loss"] = check_loss(model)
    for before in beside:
        about |= {"before": before.name, "before_weights_sha256": before.weights_sha256}
        about |= {f"before_{EDITED}": edits} if (edits := describe_edits(before.module)) else {}
    versions = list_versions()
    if isinstance(documents, Corpus) and documents.patterns is not None:
        about["patterns"] = documents.patterns.content
        versions["spacy"] = metadata.version("spacy")
    if stream.plan.sample_queries is not None:
        about |= {"sample_queries": stream.plan.sample_queries, "sample_seed": stream.plan.seed}
    if isinstance(documents, Corpus) and documents.source:
        about["corpus_source"] = documents.source
    if isinstance(documents, Corpus) and documents.hops > 1:
        about["hops"] = documents.hops
    about["versions"] = json.dumps(versions, sort_keys=True)
    return {
        "about": about,
        # The same bytes in another format are other documents.
        "format": documents.format if isinstance(documents, Corpus) else MEMORY,
        "reducers": [repr(reducer) for reducer in reducers],
        "plan": repr(replace(stream.plan, batch_tokens=stream.batch_tokens)),
    }
