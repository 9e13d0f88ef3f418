"""Which texts show best what the reported heads do, and where they fail.

head table, and that of a few texts, a fold each --score_reported--> what the heads get right on each text
what they get right --choose_examples--> a few of the texts, with as many rows as possible
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import xarray as xr

from headscope.analyse.report import locate_reported
from headscope.analyse.uncertainty import Ratio
from headscope.corpora.document import Document
from headscope.examples import CLEAR, FAILS
from headscope.score import Score, read_scores

EXAMPLES_OF_A_ROW = 3
"""Clear ones, and as many on which the head fails."""


@dataclass(frozen=True, slots=True)
class Scored:
    """What the reported head of a row of a score gets right on a text.

    Attributes:
        text: name of the text.
        right, count: of the items in the text, the denominator of the score.
        words: of the text.
    """

    text: str
    right: float
    count: float
    words: int

    @property
    def estimate(self) -> float:
        """The share that is right by Laplace's rule of succession, so that 3 of 3 say more than 1 of 1."""
        return (self.right + 1) / (self.count + 2)


@dataclass(frozen=True, slots=True)
class ChosenExample:
    """A text that was chosen as an example of a row, by the row's key."""

    row: str
    kind: str
    scored: Scored


def score_reported(table: xr.Dataset, apart: xr.Dataset, documents: Sequence[Document]) -> list[dict[str, Scored]]:
    """What the reported heads of a head table get right on each of some documents, by key of the row: ``relation:obj``.

    Args:
        table: with reported heads (`headscope.assess`).
        apart: the head table of these documents, each in a fold of its own.
        documents: in the order of these folds.
    """
    scored: list[dict[str, Scored]] = [{} for _ in documents]
    for score in _list_reported(table, apart):
        dim = score.row_dimension(table)
        rows = [row for row in table[dim].values if row in apart.indexes[dim]] if dim else []
        if dim and not rows:
            continue
        reported, part = (each.sel({dim: rows}) if dim else each for each in (table, apart))
        head = Ratio.of_heads(part, score).at(**locate_reported(reported, score.report_prefix))
        there = reported[f"{score.report_prefix}reported_layer"] > 0
        right, count = (
            values.where(there).transpose(..., "fold").values.reshape(max(1, len(rows)), -1)
            for values in xr.broadcast(head.numerator, head.denominator)
        )
        for row, key in enumerate(map(str, rows) if dim else [""]):
            for document, scores, r, n in zip(documents, scored, right[row], count[row], strict=False):
                if n > 0:
                    scores[":".join(filter(None, (score.stem, key)))] = Scored(
                        document.id, float(r), float(n), len(document.words)
                    )
    return scored


def choose_examples(
    texts: Sequence[Mapping[str, Scored]], rows: Sequence[str], size: int, each: int = EXAMPLES_OF_A_ROW
) -> list[ChosenExample]:
    """Examples of rows on at most so many texts: of each row the clearest and the one that fails most, then the next.

    A row that gets no further text of its own has the best of those that were chosen for others.

    The clearest is that with the largest `Scored.estimate`, and of equals the shortest; something must be right. That
    which fails most has the smallest, and something must be wrong.

    Args:
        texts: what the reported heads get right on each, as of `score_reported`.
        rows: keys of rows, the most important first.
        size: the number of texts that may be chosen.
        each: examples of a row and kind.
    """
    ranked = {(row, kind): _rank(texts, row, kind) for row in rows for kind in (CLEAR, FAILS)}
    chosen: list[ChosenExample] = []
    names: set[str] = set()
    for place in range(each):
        for (row, kind), best in ranked.items():
            scored = best[place] if place < len(best) else None
            if scored is None or (scored.text not in names and len(names) == size):
                continue
            names.add(scored.text)
            chosen.append(ChosenExample(row, kind, scored))
    for (row, kind), best in ranked.items():
        own = [example for example in chosen if example.row == row]
        missing = each - sum(example.kind == kind for example in own)
        used = {example.scored.text for example in own}
        others = [scored for scored in best if scored.text in names and scored.text not in used]
        chosen += [ChosenExample(row, kind, scored) for scored in others[:missing]]
    return chosen


def _rank(texts: Sequence[Mapping[str, Scored]], row: str, kind: str) -> list[Scored]:
    """The texts with this row, the best example of the kind first."""
    scored = [text[row] for text in texts if row in text]
    if kind == CLEAR:
        right = [each for each in scored if each.right > 0]
        return sorted(right, key=lambda each: (-each.estimate, each.words))
    wrong = [each for each in scored if each.right < each.count]
    return sorted(wrong, key=lambda each: (each.estimate, each.words))


def _list_reported(table: xr.Dataset, apart: xr.Dataset) -> list[Score]:
    """The scores of a table by which heads are reported, and of which the other table has the sums too."""
    return [
        score
        for score in read_scores(table)
        if score.has_report
        and not score.ascending
        and f"{score.report_prefix}reported_layer" in table
        and {score.variable, *score.numerator, *score.denominator} <= {*apart.data_vars}
    ]
