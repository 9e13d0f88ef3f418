"""Documents -> verified batches, for all code that reads batches.

documents --align--> texts of about one length --collate--> Batch, which each model reads as the same tokens

The batches depend only on the documents, the models and the arguments, so an interrupted run can continue at a batch.
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
"""The number of documents that are sorted by length together: enough for little padding, and few enough to hold."""

BATCH_TOKENS = 2048
"""The tokens of a batch, padding included. A batch has at least one document of any length.

On a processor, larger batches only have more padding.
"""

GPU_BATCH_TOKENS = 1 << 15
"""The tokens of a batch on a GPU. If its memory holds less, a batch runs in parts (`headscope.capture.passes.room`).

The number does not depend on free memory, so that an interrupted run continues at the same batch.
"""

VERIFIED_WORDS = 128
"""The number of words of the text on which the capture is verified; the verification computes the matrix."""

HELD_WEIGHTS = 1 << 27
"""The largest number of attention weights of a batch, in all layers, that are held at once (512 MiB).

A single document may have more. A document of 512 tokens has 38 million weights in a model of 12 layers of 12 heads,
and 101 million in a model of 24 layers of 16 heads.
"""


@dataclass(frozen=True)
class Plan:
    """The settings with which a corpus is read; the same plan gives the same table to the last bit.

    Attributes:
        max_tokens: The most tokens of a text, if this is below the model's own limit; None for the model's limit.
        cut: Cut longer documents after the last word that fits; otherwise they are skipped. By default `measure` cuts
            them if the corpus has coreference, whose documents are whole texts.
        pair_tokens: The number of tokens to which pairs of segments are cut (Clark et al. 2019, section 3: 128).
        text: ``written``, as the author wrote it; or ``spaced``, with a space before each word, as in many papers.
        batch_tokens: The tokens of a batch, padding included; None for `BATCH_TOKENS`, or on a GPU for the number that
            fits.
        rows: The number of query rows of a block of attention. Default: as many as memory allows.
        fused: Do without the attention matrix wherever a layer and the reducers allow it. Default: only for long
            texts, for which it is faster.
        view: The name of a view in `headscope.capture.passes.views.VIEWS`, measured in place of the weights; None for
            the weights.
        sample_queries: Estimate the statistics of longer texts from about this number of random query rows
            (`headscope.runner.row_sample`); None for all rows.
        seed: The random seed of that sample.
        first: The id of the token with which a text begins, in place of the tokenizer's own; None for the tokenizer's
            own.
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
        """Raise an error for blocks of fewer than 1 row, an unknown view, or an unknown form of texts."""
        check_view(self.view)
        check_text(self.text)
        if self.rows is not None and self.rows < 1:
            raise HeadscopeError(f"blocks of {self.rows} rows were asked for; ask for 1 or more, or for none.")


@dataclass(frozen=True, eq=False)
class Portion:
    """A batch, and the counts of documents that were skipped since the batch before it.

    Attributes:
        batches: The batch as each model of the stream reads it. It is empty only in the last portion, if all documents
            after the last batch were skipped.
        captures: The verified capture of each model; empty if `batches` is empty.
        skipped: The number of skipped documents, by reason.
    """

    batches: tuple[Batch, ...]
    captures: tuple[Capture, ...]
    skipped: Mapping[str, int]

    def select(self, rows: Sequence[int]) -> "Portion":
        """Return the portion with only some documents of its batch, by their indices."""
        batches = tuple(batch.select(torch.tensor(rows, device=batch.encoder.ids.device)) for batch in self.batches)
        return replace(self, batches=batches)

    def leave_out(self, left_out: Bool[Tensor, " batch"], reason: str) -> "Portion":
        """Return the portion without some documents of its batch, which it counts as skipped for `reason`."""
        skipped = Counter(self.skipped) + Counter({reason: int(left_out.sum())})
        rest = (~left_out).nonzero()[:, 0]
        batches = tuple(batch.select(rest) for batch in self.batches) if len(rest) else ()
        return Portion(batches, self.captures if batches else (), skipped)


@dataclass(frozen=True, eq=False)
class Stream:
    """The documents as batches, longest documents of each window first; iteration yields `Portion` objects.

    The attention of every model is verified on the beginning of the first batch, before that batch is yielded.

    Attributes:
        documents: Any number of documents; only `WINDOW` of them are held at a time.
        models: One model, or several of one shape that read the same tokens.
        plan: The settings with which the documents are read and batched.
        max_tokens: The most tokens of a document, if neither the plan's limit nor a model's limit is lower.
        held: The models whose attention of all layers is held at once; their batches are kept small.
        reads_logits: Also find the token whose logit each value of the first model raises most.
        alone_from: The number of tokens from which on a text is a batch alone; None if only the size of batches
            decides.
        originals: The names under which a document counts if it repeats another document.

    Raises:
        ModelError: Two models differ in shape or device, or read a document as different tokens; or the attention of a
            model cannot be captured faithfully.
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
        """Raise an error if the models differ in shape or device."""
        first, *others = self.models
        for other in others:
            _refuse_other_shape(other, first)

    def __iter__(self) -> Iterator[Portion]:
        first, *others = self.models
        streams = tee(mark_repeats(self.documents, self.originals), len(self.models))
        sides = [self._batches(model, documents) for model, documents in zip(self.models, streams, strict=True)]
        captures: tuple[Capture, ...] = ()
        # Without thresholds of length, the capture was already verified on a text with padding.
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
        """Yield padded batches for one model, each with the counts of documents skipped since the batch before it.

        If documents are skipped after the last batch, their counts come with None in place of a batch.
        """
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
        """The number of tokens of a batch, by the plan, or else by the device."""
        is_on_gpu = any(device.type == "cuda" for device in self.models[0].devices)
        default = GPU_BATCH_TOKENS if is_on_gpu else BATCH_TOKENS
        return default if self.plan.batch_tokens is None else self.plan.batch_tokens

    def _documents_of_batch(self, longest: int) -> int:
        """Return the number of documents of a batch whose longest document has `longest` tokens."""
        if self.alone_from is not None and longest >= self.alone_from:
            return 1
        count = self.batch_tokens // longest
        if self.held:
            count = min(count, HELD_WEIGHTS // sum(model.shape.together for model in self.held) // longest**2)
        return max(1, count)


def _capture(model: Model, batch: Batch, plan: Plan, *, reads_logits: bool) -> Capture:
    """Return the verified capture of a model; it is verified on fewer words if there is not enough memory."""
    words = VERIFIED_WORDS
    while words:
        try:
            return _verify(model, batch, plan, words, reads_logits=reads_logits)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
        words //= 2
    # The error of the whole sample tells for how many tokens there is not enough memory.
    return _verify(model, batch, plan, VERIFIED_WORDS, reads_logits=reads_logits)


def _verify(model: Model, batch: Batch, plan: Plan, words: int, *, reads_logits: bool) -> Capture:
    """Return the capture of a model, verified on the first document of a batch with finite outputs.

    It shows the view of the plan, and has the unembedding if `reads_logits`.
    """
    for document in batch.documents:
        sample = _sample(model, document, words, batch.encoder.length, plan.text, padded=plan.batch_tokens != 1)
        if is_finite(model, sample):
            capture = Capture.verified(model, sample)
            unembedding = find_unembedding(capture, sample) if reads_logits else None
            return replace(see_through(plan.view, capture, sample), unembedding=unembedding)
    others = f"{len(batch.documents) - 1} documents of its batch"
    raise refuse_not_finite(model.name, f"for {batch.documents[0].id!r} and {others}")


def _sample(model: Model, document: Document, words: int, pair_tokens: int, text: str, *, padded: bool) -> Batch:
    """Make the batch for verifying the capture: the beginning of a document, with padding if the run will have any."""
    long = document.original.truncate(words)
    documents = [long, long.truncate(max(1, len(long.words) // 2))] if padded else [long]
    # The sample of a pair may lack the second segment; as a single text it may be too long for the model, so it is cut.
    aligned, _ = Alignment.for_model(model, cut=True, pair_tokens=pair_tokens, text=text).align(documents)
    return collate(model, aligned)


def _refuse_other_shape(before: Model, after: Model) -> None:
    """Raise an error if two models differ in shape or device, so their heads cannot be compared one by one."""
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
    """Raise an error unless the batches of two models have the same documents and tokens; None: no batch is left."""
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
    """Return the inputs of the model with 0 for padding, since a tokenizer without a padding token was given one."""
    shown = batch.inputs | {"input_ids": batch.encoder.ids.where(batch.encoder.real, 0)}
    if batch.decoder is not None:
        shown["decoder_input_ids"] = batch.decoder.ids.where(batch.decoder.real, 0)
    return shown
