"""Documents and a model in, a head table out.

documents --batches--> Batch --capture--> Attention --reducers--> sums --+--> Totals --tabulate--> head table

Where two models are compared, the one before reads the same batches, and what its layers did is held while the other
one runs (`headscope.reducers.similarity`).
"""

import datetime
import hashlib
import json
import platform
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from itertools import tee, zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from headscope.capture.align import PAIR_TOKENS, Alignment
from headscope.capture.attention import Attention, DenseRows
from headscope.capture.batch import BATCH_TOKENS, Batch, batches, collate
from headscope.capture.interface import Capture
from headscope.capture.model import Model, load
from headscope.corpora.corpus import Corpus, CorpusSummary, summarize
from headscope.corpora.document import Document
from headscope.errors import CorpusError, HeadscopeError
from headscope.reducers import REDUCERS
from headscope.reducers.reducer import Reducer
from headscope.reducers.similarity import Similarity, batch_weights, refuse_other_shape, refuse_other_tokens
from headscope.runner import totals as files
from headscope.runner.table import tabulate
from headscope.runner.totals import Totals

SAVE_EVERY = 20.0
"""Seconds between two savings of the sums so far."""

VERIFIED_WORDS = 128
"""Words of the text on which the capture is verified: its rows are made one by one, whatever the length of the rest."""

Report = Callable[[int, int], None]
"""Told, after each batch, how many words are done and how many there are."""

Held = dict[tuple[str, int], Attention]
"""What each layer of a attention type did on a batch."""


@dataclass(frozen=True)
class Plan:
    """How a corpus is to be measured; the same plan gives the same table to the last bit.

    Attributes:
        max_tokens: lower the model's limit.
        cut: documents that are longer are cut behind the last word that fits; otherwise they are left out.
            By default they are cut where the corpus has coreference, whose documents are whole texts.
        pair_tokens: pairs of segments are cut to this (Clark et al. 2019, section 3: 128).
        batch_tokens: tokens of a batch, padding included.
        rows: query rows of a block of attention; by default as many as memory wants.
        fused: do without the attention matrix wherever a layer and the reducers allow it; by
            default only for long texts, where it is the faster way.
    """

    max_tokens: int | None = None
    cut: bool | None = None
    pair_tokens: int = PAIR_TOKENS
    batch_tokens: int = BATCH_TOKENS
    rows: int | None = None
    fused: bool | None = None

    def __post_init__(self) -> None:
        """Refuse blocks of no rows."""
        if self.rows is not None and self.rows < 1:
            raise HeadscopeError(f"blocks of {self.rows} rows were asked for; ask for 1 or more, or for none.")


def measure(
    model: Model | str | Path,
    documents: Iterable[Document],
    reducers: Sequence[str | Reducer] = ("surface",),
    *,
    plan: Plan | None = None,
    checkpoint: Path | None = None,
    resume: bool = False,
    progress: Report | None = None,
    summary: CorpusSummary | None = None,
    before: Model | str | Path | None = None,
) -> xr.Dataset:
    """Measure every head of a model on a corpus.

    Args:
        model: a loaded model, or what `headscope.load` takes.
        documents: a corpus that `headscope.read` gave, or any documents.
        reducers: names from `REDUCERS`, or reducers.
        plan: how to batch; the defaults suit most.
        checkpoint: where to keep the sums so far, every `SAVE_EVERY` seconds and at the end. The file
            stays there for the caller to delete once the table is safe.
        resume: go on from `checkpoint` if it exists; the table is the same to the last bit.
        progress: is told of the progress.
        summary: what `headscope.corpora.summarize` found in `documents`, if that is known already.
        before: what the model was tuned from; the reducer ``similarity`` compares the two.

    Returns:
        A head table (`headscope.heads`) with all variables of all reducers.

    Raises:
        CorpusError: the corpus cannot be read or lacks what a reducer needs.
        ModelError: a model cannot be loaded, its attention cannot be captured faithfully, or two cannot be compared.
        HeadscopeError: the checkpoint belongs to another run, or there is nothing to compare with.
    """
    model = model if isinstance(model, Model) else load(model)
    if isinstance(documents, Iterator):
        documents = list(documents)
    summary = summary or summarize(documents)
    chosen = resolve(reducers, summary)
    before = _before(before, model, chosen)
    plan = plan or Plan()
    if plan.cut is None:
        plan = replace(plan, cut="mention" in summary.spans)
    facts = _facts(model, documents, chosen, plan, before)
    done = Totals({})
    if resume and checkpoint is not None and checkpoint.exists():
        done = _resumed(checkpoint, facts)
    # Words without a token and the like are known before the model runs, so they are counted anew.
    skipped: Counter[str] = Counter(summary.skipped)
    sums: Mapping[files.Key, Tensor] = {}
    saved = time.monotonic()
    for sums in accumulate(model, documents, chosen, plan=plan, done=done, skipped=skipped, before=before):
        if checkpoint is not None and time.monotonic() - saved >= SAVE_EVERY:
            files.save(Totals.of(sums), checkpoint, facts=facts)
            saved = time.monotonic()
        if progress is not None:
            progress(int(sums["seen", "words"]), summary.words)
    if sums:
        done = Totals.of(sums)
    if not done.values:
        raise CorpusError(
            f"none of the {summary.documents} documents could be measured ({_reasons(skipped)}); "
            "give shorter documents or a model that takes longer ones."
        )
    if checkpoint is not None:
        files.save(done, checkpoint, facts=facts)
    done = done + Totals({("skipped", reason): np.asarray(count) for reason, count in skipped.items() if count})
    call = f"measure(model={model.name!r}, reducers={[type(r).name for r in chosen]}, plan={plan})"
    paths = json.dumps(done.of_run("path"))
    return tabulate(done, model, chosen).assign_attrs(facts["about"], call=call, paths=paths, **_now())


def resolve(reducers: Sequence[str | Reducer], summary: CorpusSummary) -> list[Reducer]:
    """The reducers of these names, made for a corpus that was summarized.

    Raises:
        HeadscopeError: a name is unknown.
        CorpusError: the corpus lacks the annotation that one needs.
    """
    chosen = []
    for reducer in reducers:
        if isinstance(reducer, str):
            if reducer not in REDUCERS:
                raise HeadscopeError(f"there is no reducer {reducer!r}; there are {', '.join(REDUCERS)}.")
            reducer = REDUCERS[reducer].for_corpus(summary)
        chosen.append(reducer)
    names = [type(reducer).name for reducer in chosen]
    if len(set(names)) < len(names):
        raise HeadscopeError(f"of the reducers {', '.join(names)} one is named twice; name each once.")
    if not chosen:
        raise HeadscopeError(f"no reducer was named; name one or more of {', '.join(REDUCERS)}.")
    return chosen


def accumulate(
    model: Model,
    documents: Iterable[Document],
    reducers: Sequence[Reducer],
    *,
    plan: Plan,
    skipped: Counter[str],
    done: Totals | None = None,
    before: Model | None = None,
) -> Iterator[Mapping[files.Key, Tensor]]:
    """The sums over `documents`, yielded after each batch as they have grown; the last ones are complete.

    Args:
        model: is verified on the first batch before anything is counted.
        documents: in the same order as before, if `done` is given.
        reducers: what to measure.
        plan: how to batch.
        skipped: what was left out is counted here, by reason.
        done: sums of the first batches, which are not run again.
        before: a model that is run beside it, for reducers that compare the two.
    """
    pair = [model] if before is None else [model, before]
    limits = [plan.max_tokens, *(r.max_tokens for r in reducers), *(one.max_tokens for one in pair)]
    done = done or Totals({})
    sums = {key: torch.as_tensor(value, device=model.device) for key, value in done.values.items()}
    first = done.of_run("seen").get("batches", 0)
    captures: list[Capture] = []
    streams = [
        batches(
            one,
            copy,
            max_tokens=min((limit for limit in limits if limit is not None), default=None),
            cut=bool(plan.cut),
            pair_tokens=plan.pair_tokens,
            batch_tokens=plan.batch_tokens,
            batch_weights=None if before is None else batch_weights(before),
            skipped=counted,
        )
        for one, copy, counted in zip(pair, tee(documents, len(pair)), (skipped, Counter[str]()), strict=False)
    ]
    for number, (batch, *beside) in enumerate(zip_longest(*streams)):
        if before is not None:
            refuse_other_tokens(before, model, batch, beside[0])
        if not captures:
            padded = plan.batch_tokens > 1
            captures = [Capture.verified(one, _sample(one, batch, padded=padded)) for one in pair]
        if number >= first:
            held = _held(captures[1], beside[0], plan) if before is not None else None
            _add(sums, _of_batch(captures[0], batch, reducers, plan, held))
            yield sums


def _held(capture: Capture, batch: Batch, plan: Plan) -> Held:
    """The attention of all layers of a batch."""
    held: Held = {}

    def hold(attention: Attention) -> None:
        held[attention.attention_type, attention.layer] = attention

    capture.run(batch, hold, rows=plan.rows, whole=True)
    return held


def _of_batch(
    capture: Capture, batch: Batch, reducers: Sequence[Reducer], plan: Plan, held: Held | None
) -> dict[files.Key, Tensor]:
    unknown = capture.model.tokenizer.unk_token_id
    unknown = -1 if unknown is None else unknown
    sums: dict[files.Key, Tensor] = {
        ("seen", "batches"): torch.tensor(1),
        ("seen", "documents"): torch.tensor(len(batch.documents)),
        ("seen", "words"): torch.tensor(sum(len(document.words) for document in batch.documents)),
        ("seen", "tokens"): batch.encoder.real.sum(),
        ("seen", "unknown"): (batch.encoder.ids[batch.encoder.word >= 0] == unknown).sum(),
    }
    for reducer in reducers:
        for attention_type in capture.model.layers:
            counts = reducer.count(batch, attention_type)
            _add(sums, {(type(reducer).name, attention_type, "-", name): value for name, value in counts.items()})

    def see(attention: Attention) -> None:
        if held is not None and isinstance(attention, DenseRows):
            # Each layer is let go of when it has been compared.
            attention = replace(attention, before=held.pop((attention.attention_type, attention.layer)))
        for reducer in reducers:
            key = (type(reducer).name, attention.attention_type, str(attention.layer))
            _add(sums, {(*key, name): value for name, value in reducer.observe(attention).items()})

    whole = any(reducer.whole for reducer in reducers)
    seen = capture.run(batch, see, rows=plan.rows, whole=whole, fused=plan.fused)
    for (attention_type, layer, way), texts in seen.paths.items():
        sums["path", f"{attention_type} {layer} {way}"] = torch.tensor(texts)
    return sums


def _add(sums: dict[files.Key, Tensor], more: Mapping[files.Key, Tensor]) -> None:
    for key, value in more.items():
        sums[key] = sums[key] + value if key in sums else value


def _sample(model: Model, batch: Batch, *, padded: bool) -> Batch:
    """A little of a batch, with padding in it if the run will have some, on which the capture is verified."""
    first = batch.documents[0]
    long = first.beginning(VERIFIED_WORDS)
    documents = [long, first.beginning(max(1, len(long.words) // 2))] if padded else [long]
    alignment = Alignment.of(model, pair_tokens=batch.encoder.length)
    return collate(model, list(alignment.align(documents, Counter())))


def _before(before: Model | str | Path | None, model: Model, reducers: Sequence[Reducer]) -> Model | None:
    """The model to compare with, if there is something to compare."""
    if not any(isinstance(reducer, Similarity) for reducer in reducers):
        return None
    if before is None:
        raise HeadscopeError(
            "the reducer `similarity` compares two models, and one was given; give `before`, what it was tuned from."
        )
    before = before if isinstance(before, Model) else load(before, device=str(model.device))
    refuse_other_shape(before, model)
    return before


def _facts(
    model: Model, documents: Iterable[Document], reducers: Sequence[Reducer], plan: Plan, before: Model | None
) -> dict[str, Any]:
    """What makes a run this run and no other; checked when it is resumed, and told in the table."""
    about = {
        "model": model.name,
        "revision": model.revision,
        "weights_sha256": model.weights_sha256,
        "dtype": str(model.module.dtype).removeprefix("torch."),
        "device": str(model.device),
        "tokenizer": type(model.tokenizer).__name__,
        "corpus": documents.name if isinstance(documents, Corpus) else "documents in memory",
        "corpus_sha256": documents.sha256 if isinstance(documents, Corpus) else _sha256(documents),
    }
    if before is not None:
        about |= {"before": before.name, "before_weights_sha256": before.weights_sha256}
    versions = _versions()
    if isinstance(documents, Corpus) and documents.patterns is not None:
        about["patterns"] = documents.patterns.content
        versions["spacy"] = metadata.version("spacy")
    about["versions"] = json.dumps(versions, sort_keys=True)
    return {"about": about, "reducers": [repr(reducer) for reducer in reducers], "plan": repr(plan)}


def _resumed(checkpoint: Path, facts: Mapping[str, Any]) -> Totals:
    done, of = files.load(checkpoint)
    if of != json.loads(json.dumps(facts)):
        before, now = of.get("about", {}), facts["about"]
        different = [key for key in now if before.get(key) != now[key]] or ["reducers or plan"]
        raise HeadscopeError(
            f"{checkpoint} was left by another run (its {', '.join(different)} differ from what is asked for now); "
            "delete it, or run without --resume."
        )
    return done


def _versions() -> dict[str, str]:
    packages = ("headscope", "torch", "transformers", "tokenizers", "numpy", "xarray")
    return {"python": platform.python_version()} | {name: metadata.version(name) for name in packages}


def _sha256(documents: Iterable[Document]) -> str:
    digest = hashlib.sha256()
    for document in documents:
        digest.update(repr(document).encode())
    return digest.hexdigest()


def _now() -> dict[str, str]:
    return {"created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")}


def _reasons(skipped: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in skipped.items() if count) or "all were left out"
