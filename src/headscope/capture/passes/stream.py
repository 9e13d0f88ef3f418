"""Documents -> verified batches, in one place, for all who read batches.

documents --align--> texts of about one length --collate--> Batch, which each model reads as the same tokens

The batches depend on the documents, the models and the arguments alone, so whoever stopped at a batch can go on there.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice, tee, zip_longest

import torch
from jaxtyping import Bool
from torch import Tensor

from headscope.capture.forward.interface import Capture
from headscope.capture.forward.untouched import is_finite
from headscope.capture.forward.verify import refuse_not_finite
from headscope.capture.model.forward import is_out_of_memory
from headscope.capture.model.model import Model
from headscope.capture.passes.residual import find_unembedding
from headscope.capture.passes.through import see_through
from headscope.capture.passes.views import check_view
from headscope.capture.tokens.align import PAIR_TOKENS, Alignment, check_text
from headscope.capture.tokens.batch import Batch, collate
from headscope.capture.tokens.companions import divide, find_side, list_thresholds
from headscope.corpora.document import Document
from headscope.corpora.originals import Originals, mark_repeats
from headscope.errors import HeadscopeError, ModelError
from headscope.text_forms import WRITTEN

WINDOW = 2048
"""Documents that are sorted by length together: enough to pad little, few enough to hold."""

BATCH_TOKENS = 2048
"""Tokens of a batch, padding included; at least one document whatever its length.

On a processor larger batches only pad more.
"""

GPU_BATCH_TOKENS = 1 << 15
"""The same on a GPU, which is run in parts where its memory holds less (`headscope.capture.passes.room`).

It is one number, so that a run goes on at the same batch however much memory is free.
"""

VERIFIED_WORDS = 128
"""Words of the text on which the capture is verified: its rows are made one by one, whatever the length of the rest."""

HELD_WEIGHTS = 1 << 27
"""Attention weights of all layers that are held at once (512 MiB), if one document does not have more alone.

A document of 512 tokens has 38 million in a model of 12 layers of 12 heads, and 101 million in one of 24 layers of 16.
"""


@dataclass(frozen=True)
class Plan:
    """How a corpus is to be read; the same plan gives the same table to the last bit.

    Attributes:
        max_tokens: lower the model's limit.
        cut: documents that are longer are cut behind the last word that fits; otherwise they are left out.
            By default `measure` cuts them where the corpus has coreference, whose documents are whole texts.
        pair_tokens: pairs of segments are cut to this (Clark et al. 2019, section 3: 128).
        text: ``written``, as its author wrote it; or ``spaced``, its words with a space before each, as in many papers.
        batch_tokens: tokens of a batch, padding included; None for `BATCH_TOKENS`, and on a GPU for what fits.
        rows: query rows of a block of attention; by default as many as memory wants.
        fused: do without the attention matrix wherever a layer and the reducers allow it; by
            default only for long texts, where it is the faster way.
        view: what is measured in place of the weights, a name from `headscope.capture.passes.views.VIEWS`; None for the
            weights.
        sample_queries: estimate the statistics of longer texts from about so many of their query rows, at random
            (`headscope.runner.row_sample`); None for all rows.
        seed: random seed of that sample.
        first: the token with which a text begins, in the place of what the tokenizer puts there; None for that.
    """

    max_tokens: int | None = None
    cut: bool | None = None
    pair_tokens: int = PAIR_TOKENS
    text: str = WRITTEN
    batch_tokens: int | None = None
    rows: int | None = None
    fused: bool | None = None
    view: str | None = None
    sample_queries: int | None = None
    seed: int = 0
    first: int | None = None

    def __post_init__(self) -> None:
        """Refuse blocks of no rows, an unknown view, and an unknown way to read a text."""
        check_view(self.view)
        check_text(self.text)
        if self.rows is not None and self.rows < 1:
            raise HeadscopeError(f"blocks of {self.rows} rows were asked for; ask for 1 or more, or for none.")


@dataclass(frozen=True, eq=False)
class Portion:
    """A batch, and what was left out of the corpus since the batch before it.

    Attributes:
        batches: the batch as each model of the stream reads it. Empty only in the last portion, where the documents
            behind the last batch were all left out.
        captures: the verified way to the attention of each model; empty where `batches` is.
        skipped: how much was left out, by reason.
    """

    batches: tuple[Batch, ...]
    captures: tuple[Capture, ...]
    skipped: Mapping[str, int]

    def select(self, rows: Sequence[int]) -> "Portion":
        """Return the portion with some documents of its batch alone."""
        batches = tuple(batch.select(torch.tensor(rows, device=batch.encoder.ids.device)) for batch in self.batches)
        return replace(self, batches=batches)

    def leave_out(self, left_out: Bool[Tensor, " batch"], reason: str) -> "Portion":
        """The portion without some documents of its batch, which count as skipped."""
        skipped = Counter(self.skipped) + Counter({reason: int(left_out.sum())})
        rest = (~left_out).nonzero()[:, 0]
        batches = tuple(batch.select(rest) for batch in self.batches) if len(rest) else ()
        return Portion(batches, self.captures if batches else (), skipped)


@dataclass(frozen=True, eq=False)
class Stream:
    """The documents as batches, the longest of each window first; iterating gives one `Portion` after the other.

    The attention of every model is verified on the beginning of the first batch, before that is handed out.

    Attributes:
        documents: any number of them; only `WINDOW` are held at a time.
        models: one, or several of one shape that read the same tokens.
        plan: how to batch.
        max_tokens: of a document, if neither the plan's limit nor a model's is lower still.
        held: the models of which the attention of all layers is held at once; their batches are kept small.
        reads_logits: it is also found which tokens the values of the first model raise.
        alone_from: tokens from which on a text is a batch by itself; None if only its length decides.
        originals: under which names the documents count that repeat others.

    Raises:
        ModelError: two models differ in their shape or device, read a document as other tokens, or their attention
            cannot be captured faithfully.
    """

    documents: Iterable[Document]
    models: tuple[Model, ...]
    plan: Plan = Plan()
    max_tokens: int | None = None
    held: tuple[Model, ...] = ()
    reads_logits: bool = False
    alone_from: int | None = None
    originals: Originals = field(default_factory=Originals, repr=False)

    def __post_init__(self) -> None:
        """Refuse models that cannot read side by side."""
        first, *others = self.models
        for other in others:
            _refuse_other_shape(other, first)

    def __iter__(self) -> Iterator[Portion]:
        first, *others = self.models
        streams = tee(mark_repeats(self.documents, self.originals), len(self.models))
        sides = [self._batches(model, documents) for model, documents in zip(self.models, streams, strict=True)]
        captures: tuple[Capture, ...] = ()
        # Where no length is a threshold, the capture was verified on a text with padding already.
        verified = set() if self._thresholds else {0}
        for portions in zip_longest(*sides, fillvalue=(None, Counter[str]())):
            (batch, skipped), *beside = portions
            for other, (batch_beside, _) in zip(others, beside, strict=True):
                _refuse_other_tokens(other, first, batch, batch_beside)
            batches = tuple(batch for batch, _ in portions if batch is not None)
            if not captures:
                captures = tuple(
                    _capture(model, batches[0], self.plan, reads_logits=self.reads_logits and model is first)
                    for model in self.models
                    if batches
                )
            if batches and (side := find_side(self._thresholds, batches[0].encoder.length)) not in verified:
                verified.add(side)
                for capture, each in zip(captures, batches, strict=True):
                    capture.verify_companions(each)
            yield Portion(batches, captures if batches else (), skipped)

    @cached_property
    def _thresholds(self) -> tuple[int, ...]:
        return tuple(sorted({length for model in self.models for length in list_thresholds(model.module)}))

    def _batches(self, model: Model, documents: Iterable[Document]) -> Iterator[tuple[Batch | None, Counter[str]]]:
        """Padded batches for one model, each with what was left out since the one before."""
        limits = [self.max_tokens, self.plan.max_tokens, *(each.max_tokens for each in self.models)]
        alignment = Alignment.for_model(
            model,
            max_tokens=min((limit for limit in limits if limit is not None), default=None),
            cut=bool(self.plan.cut),
            pair_tokens=self.plan.pair_tokens,
            text=self.plan.text,
            first=self.plan.first,
        )
        rest, skipped = iter(documents), Counter[str]()
        while window := list(islice(rest, WINDOW)):
            aligned, left_out = alignment.align(window)
            aligned.sort(key=lambda text: -text.length)
            skipped += left_out
            while aligned:
                count = self._documents_of_batch(aligned[0].length)
                for alike in divide(aligned[:count], self._thresholds, lambda text: text.length):
                    yield collate(model, alike), skipped
                    skipped = Counter()
                aligned = aligned[count:]
        if skipped:
            yield None, skipped

    @cached_property
    def batch_tokens(self) -> int:
        """The tokens of a batch, those of the device where the plan leaves them open."""
        is_on_gpu = any(device.type == "cuda" for device in self.models[0].devices)
        default = GPU_BATCH_TOKENS if is_on_gpu else BATCH_TOKENS
        return default if self.plan.batch_tokens is None else self.plan.batch_tokens

    def _documents_of_batch(self, longest: int) -> int:
        """The number of documents of a batch whose longest has so many tokens."""
        if self.alone_from is not None and longest >= self.alone_from:
            return 1
        count = self.batch_tokens // longest
        if self.held:
            count = min(count, HELD_WEIGHTS // sum(model.shape.together for model in self.held) // longest**2)
        return max(1, count)


def _capture(model: Model, batch: Batch, plan: Plan, *, reads_logits: bool) -> Capture:
    """Return the way to a model's attention, verified on as many words as there is memory for."""
    words = VERIFIED_WORDS
    while words:
        try:
            return _verify(model, batch, plan, words, reads_logits=reads_logits)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
        words //= 2
    # The error of the whole sample says how much there was no memory for.
    return _verify(model, batch, plan, VERIFIED_WORDS, reads_logits=reads_logits)


def _verify(model: Model, batch: Batch, plan: Plan, words: int, *, reads_logits: bool) -> Capture:
    """The way to a model's attention, verified on the first document of a batch for which its outputs are finite."""
    for document in batch.documents:
        sample = _sample(model, document, words, batch.encoder.length, plan.text, padded=plan.batch_tokens != 1)
        if is_finite(model, sample):
            capture = Capture.verified(model, sample)
            unembedding = find_unembedding(capture, sample) if reads_logits else None
            return replace(see_through(plan.view, capture, sample), unembedding=unembedding)
    others = f"{len(batch.documents) - 1} documents of its batch"
    raise refuse_not_finite(model.name, f"for {batch.documents[0].id!r} and {others}")


def _sample(model: Model, document: Document, words: int, pair_tokens: int, text: str, *, padded: bool) -> Batch:
    """A little of a document, with padding in it if the run will have some, on which the capture is verified."""
    long = document.original.truncate(words)
    documents = [long, long.truncate(max(1, len(long.words) // 2))] if padded else [long]
    # A pair whose second segment is left out is a single text, and may be too long for the model.
    aligned, _ = Alignment.for_model(model, cut=True, pair_tokens=pair_tokens, text=text).align(documents)
    return collate(model, aligned)


def _refuse_other_shape(before: Model, after: Model) -> None:
    """Refuse two models whose heads cannot be compared one by one."""
    if difference := before.shape.difference(after.shape):
        raise ModelError(
            f"{before.name!r} and {after.name!r} differ in {difference}; "
            "compare a model with the one that it was tuned from."
        )
    if before.device != after.device:
        raise ModelError(
            f"{before.name!r} is on {before.device} and {after.name!r} on {after.device}; put both on one."
        )


def _refuse_other_tokens(before: Model, after: Model, batch: Batch | None, beside: Batch | None) -> None:
    """Refuse the batches of two models, None where one has no more, unless they are the same documents and tokens."""
    if batch is None and beside is None:
        return
    if batch is None or beside is None or not _same(batch, beside):
        near = next(each.documents[0].id for each in (batch, beside) if each is not None)
        raise ModelError(
            f"{after.name!r} turns {near!r}, or a document of about its length, into other tokens than "
            f"{before.name!r}; only models with one tokenizer can be compared."
        )


def _same(batch: Batch, beside: Batch) -> bool:
    if [document.id for document in batch.documents] != [document.id for document in beside.documents]:
        return False
    ours, theirs = _shown(batch), _shown(beside)
    return ours.keys() == theirs.keys() and all(torch.equal(values, theirs[name]) for name, values in ours.items())


def _shown(batch: Batch) -> dict[str, Tensor]:
    """The inputs of the model, padding as 0: a tokenizer that had no token to pad with was given one."""
    shown = batch.inputs | {"input_ids": batch.encoder.ids.where(batch.encoder.real, 0)}
    if batch.decoder is not None:
        shown["decoder_input_ids"] = batch.decoder.ids.where(batch.decoder.real, 0)
    return shown
