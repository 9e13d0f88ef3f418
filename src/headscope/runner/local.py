"""Documents and a model in, a head table out: a fold over the stream of batches.

documents --Stream--> Portion --capture--> Attention --reducers--> sums --+--> RunSums --tabulate--> head table

Where a reducer compares two models, the model before reads the same batches, and its layers are held while the other
one runs.
"""

import datetime
import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import metadata
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
import xarray as xr
from jaxtyping import Bool
from torch import Tensor

from headscope.capture.attention import Attention
from headscope.capture.batch import Batch
from headscope.capture.interface import Capture
from headscope.capture.loading import Loadable, load
from headscope.capture.loss import check_loss, make_loss
from headscope.capture.model import Model
from headscope.capture.outputs import Outputs
from headscope.capture.stream import Plan, Portion, Stream
from headscope.capture.verify import are_finite
from headscope.capture.views import VIEWS
from headscope.corpora.corpus import Corpus, hash_documents, name_documents
from headscope.corpora.document import Document
from headscope.corpora.summary import CorpusSummary, summarize
from headscope.errors import CorpusError, HeadscopeError, ModelError
from headscope.reducers import DEFAULT
from headscope.reducers.reducer import Reducer, Sums, reads_logits
from headscope.runner.checkpoint import ALL_LAYERS, COUNTED, Key, RunSums
from headscope.runner.checkpoint import resume as resume_sums
from headscope.runner.checkpoint import save as save_sums
from headscope.runner.provenance import identify_model, list_versions
from headscope.runner.resolve import list_reducers, needs_head, refuse_view, resolve_reducers
from headscope.runner.table import name_view, tabulate

NOT_FINITE = "documents for which the model's outputs are not finite"
"""Why a document is left out: a weight that is NaN or infinite would count as one that is wrong."""

MOST_NOT_FINITE = 0.1
"""The share of all documents beyond which the model is refused."""

SAVE_EVERY = 20.0
"""Seconds between two savings of the sums so far."""

Progress = Callable[[int, int], None]
"""Called after each batch with the number of words done and the number of all words."""


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
        model: a loaded model, or what `headscope.load` takes.
        documents: a corpus that `headscope.read` gave, or any documents.
        reducers: names from `REDUCERS`, ``module:Reducer``, or reducers.
        plan: how to batch; the defaults suit most.
        checkpoint: where to keep the sums so far, every `SAVE_EVERY` seconds and at the end. The file
            stays there for the caller to delete once the table is safe.
        resume: go on from `checkpoint` if it exists; the table is the same to the last bit.
        progress: is called with the words done and those there are.
        summary: the result of `headscope.corpora.summarize` for `documents`, if that is known already.
        before: what the model was tuned from, for reducers that compare two models.

    Returns:
        A head table (`headscope.heads`) with all variables of all reducers.

    Raises:
        CorpusError: the corpus cannot be read or lacks what a reducer needs.
        ModelError: a model cannot be loaded, its attention cannot be captured faithfully, or two cannot be compared.
        HeadscopeError: the checkpoint belongs to another run, or there is nothing to compare with.
    """
    model = load(model)
    if isinstance(documents, Iterator):
        documents = list(documents)
    summary = summary or summarize(documents)
    resolved = resolve_reducers(list_reducers(reducers), summary)
    plan = _decide_cut(plan or Plan(), summary)
    refuse_view(resolved, plan.view)
    stream = open_stream(model, documents, resolved, plan, before=_load_before(before, model, resolved))
    identity = _identify(stream, resolved)
    done = RunSums({})
    if resume and checkpoint is not None and checkpoint.exists():
        done = resume_sums(checkpoint, identity)
    sums: Mapping[Key, Tensor] = {}
    saved = time.monotonic()
    for sums in accumulate(stream, resolved, done=done):
        if checkpoint is not None and time.monotonic() - saved >= SAVE_EVERY:
            save_sums(RunSums.from_tensors(sums), checkpoint, identity=identity)
            saved = time.monotonic()
        if progress is not None and ("seen", "words") in sums:
            progress(int(sums["seen", "words"]), summary.words)
    if sums:
        done = RunSums.from_tensors(sums)
    # What the readers left out is known before the model runs, and so is no part of what is resumed.
    total = done + RunSums({("skipped", reason): np.asarray(n) for reason, n in summary.skipped.items() if n})
    _refuse_not_finite(model, total)
    if not total.select_run("seen").get("documents"):
        reasons = ", ".join(f"{count} {reason}" for reason, count in total.select_run("skipped").items())
        raise CorpusError(
            f"none of the {summary.documents} documents could be measured ({reasons or 'all were left out'}); "
            "give shorter documents or a model that takes longer ones."
        )
    if checkpoint is not None:
        save_sums(done, checkpoint, identity=identity)
    call = f"measure(model={model.name!r}, reducers={[reducer.name for reducer in resolved]}, plan={plan})"
    paths = json.dumps(total.select_run("path"))
    created = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    about = identity["about"] | {"call": call, "paths": paths, "created": created}
    return name_view(tabulate(total, model, resolved), plan.view).assign_attrs(about)


def count_read(
    model: Model, documents: Iterable[Document], reducers: Sequence[Reducer], plan: Plan, summary: CorpusSummary
) -> dict[str, int]:
    """The numbers of ``documents`` and ``tokens`` that `measure` would read, without measuring any.

    A document for which the model's outputs are not finite is among them; that is seen only when it runs.
    """
    total: Counter[str] = Counter()
    for portion in open_stream(model, documents, reducers, _decide_cut(plan, summary)):
        total.update({name: int(n) for (kind, name), n in _count_portion(portion).items() if kind == "seen"})
    return {name: total[name] for name in ("documents", "tokens")}


def _decide_cut(plan: Plan, summary: CorpusSummary) -> Plan:
    """The plan, which cuts documents where the corpus has coreference unless it says otherwise."""
    return replace(plan, cut="mention" in summary.spans) if plan.cut is None else plan


def _refuse_not_finite(model: Model, done: RunSums) -> None:
    left_out, measured = done.select_run("skipped").get(NOT_FINITE, 0), done.select_run("seen").get("documents", 0)
    if left_out > MOST_NOT_FINITE * (left_out + measured):
        raise ModelError(
            f"the outputs of {model.name!r} are not finite (NaN or infinite) for {left_out} of "
            f"{left_out + measured} documents; its weights are damaged, or too large for half precision: give whole "
            "weights, or load it in float32."
        )


def open_stream(
    model: Model, documents: Iterable[Document], reducers: Sequence[Reducer], plan: Plan, *, before: Model | None = None
) -> Stream:
    """The stream of batches that suits the model, these reducers and the model to compare with, if there is one."""
    limits = [reducer.max_tokens for reducer in reducers if reducer.max_tokens is not None]
    if plan.view is not None and (longest := VIEWS[plan.view].max_tokens) is not None:
        limits.append(longest)
    # The weights of all layers are there until the backward pass.
    every_layer = needs_head(reducers, plan.view) or any(reducer.scope == "pass" for reducer in reducers)
    beside = () if before is None else (before,)
    held = (model, *beside) if every_layer else beside
    return Stream(
        documents, (model, *beside), plan, max_tokens=min(limits, default=None), held=held,
        reads_logits=any(map(reads_logits, reducers)),
    )  # fmt: skip


def try_views(
    model: Model, documents: Iterable[Document], reducers: Sequence[Reducer], plan: Plan, views: Iterable[str]
) -> None:
    """See the first batch of a corpus through each of some views, before anything is measured.

    Raises:
        HeadscopeError: a reducer has no such view.
        ModelError: the model cannot be seen through one of them.
    """
    for view in views:
        refuse_view(reducers, view)
        if VIEWS[view].of_loss:
            check_loss(model)
        next(iter(open_stream(model, documents, reducers, replace(plan, view=view))), None)


def accumulate(
    stream: Stream, reducers: Sequence[Reducer], *, done: RunSums | None = None
) -> Iterator[Mapping[Key, Tensor]]:
    """The sums over a stream, yielded after each portion as they have grown; the last ones are complete.

    Portions that are in `done`, which a stream of the same documents in the same order left, are not measured again.
    """
    done = done or RunSums({})
    sums = {key: torch.as_tensor(value, device=stream.models[0].device) for key, value in done.values.items()}
    for portion in islice(stream, done.select_run("seen").get("portions", 0), None):
        observed: Mapping[Key, Tensor] = {}
        while portion.batches:
            observed, finite = _observe_portion(portion, reducers, stream.plan)
            if bool(finite.all()):
                break
            portion, observed = portion.leave_out(~finite, NOT_FINITE), {}
        _add(sums, _count_portion(portion))
        _add(sums, observed)
        yield sums


def _count_portion(portion: Portion) -> dict[Key, Tensor]:
    """The counts of what was read and left out."""
    counts = {("seen", "portions"): 1} | {("skipped", reason): count for reason, count in portion.skipped.items()}
    sums: dict[Key, Tensor] = {key: torch.tensor(count) for key, count in counts.items()}
    if portion.batches:
        batch, unknown = portion.batches[0], portion.captures[0].model.tokenizer.unk_token_id
        is_unknown = batch.encoder.ids[batch.encoder.word >= 0] == (-1 if unknown is None else unknown)
        sums |= {
            ("seen", "documents"): torch.tensor(len(batch.documents)),
            ("seen", "words"): torch.tensor(sum(len(document.words) for document in batch.documents)),
            ("seen", "tokens"): batch.encoder.real.sum(),
            ("seen", "unknown"): is_unknown.sum(),
        }
    return sums


def _observe_portion(
    portion: Portion, reducers: Sequence[Reducer], plan: Plan
) -> tuple[dict[Key, Tensor], Bool[Tensor, " document"]]:
    """The sums that the reducers count and observe on a batch, and for which documents the models' outputs are finite.

    The sums are good for nothing unless all are.
    """
    (capture, *captures_beside), (batch, *batches_beside) = portion.captures, portion.batches
    by_gradient = [reducer for reducer in reducers if reducer.scope == "gradient"]
    posed, loss = make_loss(capture.model, batch) if needs_head(reducers, plan.view) else (batch, None)
    sums: dict[Key, Tensor] = {}
    facts: dict[tuple[str, str], Any] = {}

    def add(reducer: Reducer, attention_type: str, layer: str, values: Sums) -> None:
        _add(sums, {(reducer.name, attention_type, layer, name): value for name, value in values.items()})

    for reducer in reducers:
        for attention_type in capture.model.layers:
            read = posed if reducer.scope == "gradient" or plan.view is not None else batch
            prepared = facts[reducer.name, attention_type] = reducer.prepare(read, attention_type)
            add(reducer, attention_type, COUNTED, reducer.count(prepared))
    held, outputs_beside = [], []
    for capture_beside, batch_beside in zip(captures_beside, batches_beside, strict=True):
        layers_beside, outputs = _hold_layers(capture_beside, batch_beside, plan)
        held.append(layers_beside)
        outputs_beside.append(outputs)
    passes: defaultdict[str, list[tuple[Attention, ...]]] = defaultdict(list)
    by_pass = [reducer for reducer in reducers if reducer.scope == "pass"]
    by_layer = [reducer for reducer in reducers if reducer.scope in ("rows", "layer")]

    def see(attention: Attention) -> None:
        attention_type, layer = attention.attention_type, attention.layer
        # Each layer is let go of when it has been compared.
        attentions = (attention, *(layers.pop((attention_type, layer)) for layers in held))
        for reducer in by_layer:
            values = reducer.observe(facts[reducer.name, attention_type], *attentions[: reducer.models])
            add(reducer, attention_type, str(layer), values)
        if by_pass:
            passes[attention_type].append(attentions)

    whole = any(reducer.scope in ("layer", "pass") or reducer.models > 1 for reducer in reducers)
    # Where words are masked for the loss, other reducers see the text as it is, in a pass of their own; a view of the
    # loss shows what it depends on.
    together = posed is batch or plan.view is not None or len(by_gradient) == len(reducers)
    seen = capture.run(
        posed if together else batch, see, gradients=bool(by_gradient) and together, loss=loss, rows=plan.rows,
        whole=whole, fused=plan.fused,
    )  # fmt: skip
    differentiated = seen
    if not together:
        differentiated = capture.run(posed, gradients=True, loss=loss, rows=plan.rows, fused=plan.fused)
    for (attention_type, layer), gradient in differentiated.gradients.items():
        for reducer in by_gradient:
            add(reducer, attention_type, str(layer), reducer.observe(facts[reducer.name, attention_type], gradient))
    for reducer in by_pass:
        for attention_type, layers in passes.items():
            # All layers of the model, and behind them those of the one before.
            attentions = chain.from_iterable(list(zip(*layers, strict=True))[: reducer.models])
            values = reducer.observe(facts[reducer.name, attention_type], *attentions)
            add(reducer, attention_type, ALL_LAYERS, values)
    for (attention_type, layer, way), texts in seen.paths.items():
        sums["path", f"{attention_type} {layer} {way}"] = torch.tensor(texts)
    finite = [are_finite(batch, outputs.verified) for outputs in (seen, differentiated, *outputs_beside)]
    return sums, torch.stack(finite).all(0)


def _hold_layers(capture: Capture, batch: Batch, plan: Plan) -> tuple[dict[tuple[str, int], Attention], Outputs]:
    """The attention of all layers of a batch, by attention type and layer, and the outputs of the model."""
    held: dict[tuple[str, int], Attention] = {}

    def hold(attention: Attention) -> None:
        held[attention.attention_type, attention.layer] = attention

    outputs = capture.run(batch, hold, rows=plan.rows, whole=True)
    return held, outputs


def _add(sums: dict[Key, Tensor], values: Mapping[Key, Tensor]) -> None:
    for key, value in values.items():
        sums[key] = sums[key] + value if key in sums else value


def _load_before(before: Loadable | None, model: Model, reducers: Sequence[Reducer]) -> Model | None:
    """The model to compare with, if there is something to compare."""
    comparing = next((reducer for reducer in reducers if reducer.models == 2), None)
    if comparing is None:
        return None
    before = before or model.adapter_of or None
    if before is None:
        raise HeadscopeError(
            f"the reducer `{comparing.name}` compares two models, and one was given; give `before`, what it was tuned "
            "from."
        )
    return load(before, device=str(model.device))


def _identify(stream: Stream, reducers: Sequence[Reducer]) -> dict[str, Any]:
    """The identity of a run, checked when it is resumed, and kept in the table.

    Raises:
        ModelError: gradients are asked for, and the model has no loss.
    """
    documents, (model, *beside) = stream.documents, stream.models
    about = {
        **identify_model(model),
        "corpus": name_documents(documents),
        "corpus_sha256": hash_documents(documents),
    }
    if needs_head(reducers, stream.plan.view):
        about["loss"] = check_loss(model)
    for before in beside:
        about |= {"before": before.name, "before_weights_sha256": before.weights_sha256}
    versions = list_versions()
    if isinstance(documents, Corpus) and documents.patterns is not None:
        about["patterns"] = documents.patterns.content
        versions["spacy"] = metadata.version("spacy")
    if isinstance(documents, Corpus) and documents.hops > 1:
        about["hops"] = documents.hops
    about["versions"] = json.dumps(versions, sort_keys=True)
    return {"about": about, "reducers": [repr(reducer) for reducer in reducers], "plan": repr(stream.plan)}
