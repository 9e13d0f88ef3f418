"""Retrieval heads: heads that look up an answer far back in the text.

Wu et al. 2025, *Retrieval head mechanistically explains long-context factuality*, section 2.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
import xarray as xr
from jaxtyping import Bool, Int
from torch import Tensor

from headscope.capture.rows.attention import Attention
from headscope.capture.tokens.batch import Batch
from headscope.corpora.document import Document
from headscope.corpora.needles import ANSWERED, NEEDLE, OTHER_NEEDLE
from headscope.reducers.reducer import Annotation, Reducer, Sums
from headscope.reducers.support.folds import FoldAssignment, total_by_fold
from headscope.reducers.support.ratios import score_table
from headscope.score import Rival, Score

WU = "Wu et al. 2025, section 2"

ANSWERS = ("first token", "later tokens")
"""The rows of the table: the first token of an answer, and its later tokens."""

NEEDLES = ("last needle", "second to last needle", "third to last needle", "fourth to last needle")
OCCURRENCES = ("last", "first")
"""The options of the two rivals: the needle, and the earlier occurrence of a token."""

ACCURACY = Score(
    "retrieval_accuracy",
    "Retrieval",
    "the share of the tokens of answers at whose prediction the head attends most to the same token of the needle that "
    "is asked for",
    numerator=("fold_retrieved",), denominator=("fold_answer",),
    rivals=(
        Rival(
            "needle", "the same needle of each text", ("fold_retrieved_needle",), ("fold_answer",), ("needle",),
            "always the {needle}",
        ),
        Rival(
            "match", "what followed the same token earlier", ("fold_retrieved_match",), ("fold_answer",),
            ("occurrence",), "after the {occurrence} place of the same token",
        ),
    ),
    items="tokens of answers", rows="tokens of an answer", label="answer: {}", attends="token",
    roles={ANSWERS[0]: "retrieval"},  # an induction head finds the later tokens too
)  # fmt: skip


@dataclass(frozen=True)
class Retrieval(Reducer):
    """How often each head, where a model is to give an answer, looks at the answer in the text.

    In a text with an answer the same words occur earlier, in the needle (the spans ``answer`` and ``needle``).
    ``retrieval_accuracy`` is the share of the answer's tokens for which the head, at the token before, attends most to
    the same token of the needle, of all tokens that it can see. Only the question can tell where the first token is. An
    induction head finds the later tokens too, unless another needle has the same words.

    Wu et al. let the model generate, and count the tokens that it copies. Here the model reads the answer, so that
    heads of all models are scored on the same tokens; each counts once. Tokens of the answer that differ from the
    tokens of the needle do not count.

    The rivals of a head do not know the question: always the same needle (such as the last), and the token that
    followed the last or the first occurrence of the same token.

    Attributes:
        fold_assignment: The assignment of documents to folds; sums are kept by fold.
    """

    fold_assignment: FoldAssignment = field(default_factory=FoldAssignment)

    name = "retrieval"
    scope = "rows"
    scores = (ACCURACY,)
    annotation = Annotation(
        "spans of needles and answers",
        "the corpus `needles`",
        lambda summary: summary.spans.get(NEEDLE) and summary.spans.get(ANSWERED),
    )

    def prepare(self, batch: Batch, attention_type: str) -> "_Facts":
        """Return for each token of an answer the query that predicts it, its key in the needle, and the rules' hits."""
        queries, keys = batch.queries(attention_type), batch.keys(attention_type)
        text, device = batch.encoder, queries.ids.device
        items = [
            [*_list_items(document, ids[:length], words)]
            for document, ids, words, length in zip(
                batch.documents, text.ids.tolist(), text.word.tolist(), text.real.sum(1).tolist(), strict=True
            )
        ]
        most = max(1, *(len(of_text) for of_text in items))
        padded = [of_text + [_NONE] * (most - len(of_text)) for of_text in items]

        def gather(name: str) -> Tensor:
            return torch.tensor([[getattr(item, name) for item in of_text] for of_text in padded], device=device)

        # The start token of a decoder precedes the text.
        query, target = (
            (gather(name) - side.position[:, :1]).clamp(0, side.length - 1)
            for name, side in (("query", queries), ("target", keys))
        )
        folds = self.fold_assignment.folds(batch.documents, device)
        return _Facts(query, target, gather("answer"), gather("needles"), gather("matches"), folds)

    def count(self, facts: "_Facts") -> Sums:
        """Count the tokens of answers and the hits of each rule, for each of `ANSWERS` and each fold."""
        rules = {"fold_answer": facts.there, "fold_retrieved_needle": facts.needle, "fold_retrieved_match": facts.match}
        return {name: _total(facts, right) for name, right in rules.items()}

    def observe(self, facts: "_Facts", attention: Attention) -> Sums:
        """Count by head, row and fold the tokens at whose prediction the head attends most to the needle's token."""
        rows = attention.rows
        held = (facts.query >= rows.start) & (facts.query < rows.stop)
        largest = attention.largest(facts.query.clamp(rows.start, rows.stop - 1))
        right = (largest == facts.target[:, None]) & held[:, None]
        return {"fold_retrieved": _total(facts, right.movedim(1, -1)).movedim(-1, 0)}

    def result(self, sums: Mapping[str, np.ndarray], counts: Mapping[str, np.ndarray]) -> xr.Dataset:
        """Return the share of tokens that each head gets right (NaN without tokens), and the sums by fold."""
        rows, unit = {"answer": list(ANSWERS)}, self.fold_assignment.unit
        table = score_table(ACCURACY, {**sums, **counts}, rows, source=WU, fold_unit=unit)
        return table.assign_coords(needle=list(NEEDLES), occurrence=list(OCCURRENCES))


@dataclass(frozen=True, eq=False)
class _Facts:
    """The facts of a batch that need no attention; an item is a token of an answer.

    Attributes:
        query: The position at which the item is predicted: the token before.
        target: The position of the same token in the needle.
        answer: The index of the row of the item in `ANSWERS`; -1 after the last item of a text.
        needle: Whether the needle is each of `NEEDLES`.
        match: For each of `OCCURRENCES` of the token before the item, whether the target follows it.
        fold: The fold of each document.
    """

    query: Int[Tensor, "batch item"]
    target: Int[Tensor, "batch item"]
    answer: Int[Tensor, "batch item"]
    needle: Bool[Tensor, "batch item needle"]
    match: Bool[Tensor, "batch item occurrence"]
    fold: Int[Tensor, " batch"]

    @property
    def there(self) -> Bool[Tensor, "batch item"]:
        """True for an item, False for padding."""
        return self.answer >= 0


def _total(facts: _Facts, right: Bool[Tensor, "batch item *any"]) -> Int[Tensor, "answer fold *any"]:
    """Count the items for which `right` is True, for each of `ANSWERS` and each fold."""
    rows = []
    for answer in range(len(ANSWERS)):
        of_row = (facts.answer == answer).view(*facts.answer.shape, *(1 for _ in right.shape[2:]))
        rows.append(total_by_fold((right & of_row).sum(1), facts.fold))
    return torch.stack(rows)


class _Item(NamedTuple):
    """A token of an answer (`_Facts` describes its fields), with positions counted from the first token of the text."""

    query: int
    target: int
    answer: int
    needles: list[bool]
    matches: list[bool]


_NONE = _Item(0, 0, -1, [False] * len(NEEDLES), [False] * len(OCCURRENCES))


def _list_items(document: Document, ids: list[int], words: list[int]) -> Iterator[_Item]:
    """Yield the tokens of a text's answer that equal the token with the same index in its needle."""
    tokens = {kind: _find_tokens(document, kind, words) for kind in (ANSWERED, NEEDLE)}
    if not all(tokens.values()):
        return
    from_end = [span.kind == NEEDLE for span in reversed(document.spans) if span.kind in (NEEDLE, OTHER_NEEDLE)]
    needles = [nth < len(from_end) and from_end[nth] for nth in range(len(NEEDLES))]
    for number, (place, target) in enumerate(zip(tokens[ANSWERED], tokens[NEEDLE], strict=False)):
        if ids[place] != ids[target] or place == 0:
            continue
        earlier = [other for other in range(place - 1) if ids[other] == ids[place - 1]]
        followed = [earlier[-1] + 1, earlier[0] + 1] if earlier else [-1, -1]
        yield _Item(place - 1, target, min(number, 1), needles, [where == target for where in followed])


def _find_tokens(document: Document, kind: str, words: list[int]) -> list[int]:
    """Return the positions of the tokens in the first span of a kind; empty if there is no such span."""
    span = next((span for span in document.spans if span.kind == kind), None)
    return [] if span is None else [place for place, word in enumerate(words) if span.start <= word < span.end]
