"""Texts that show best what the reported heads do, and on which texts they fail.

head table, and the head table of a few texts, a fold each --score_reported--> score of the heads on each text
scores on each text --choose_examples--> a few of the texts, with as many rows as possible
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
"""The maximum number of clear examples of a row, and also of examples on which the head of the row fails."""


@dataclass(frozen=True, slots=True)
class Scored:
    """The score of the reported head of a row on one text.

    Attributes:
        text: The name of the text.
        right: The number of items in the text that the head gets right.
        count: The number of items in the text, the denominator of the score.
        words: The number of words of the text.
    """

    text: str
    right: float
    count: float
    words: int

    @property
    def estimate(self) -> float:
        """The share of right items by Laplace's rule of succession, so that 3 of 3 count more than 1 of 1."""
        return (self.right + 1) / (self.count + 2)


@dataclass(frozen=True, slots=True)
class ChosenExample:
    """A text that was chosen as an example of a row.

    Attributes:
        row: The key of the row.
        kind: `CLEAR`, or `FAILS` for a text on which the head fails.
        scored: The score of the row's reported head on the text.
    """

    row: str
    kind: str
    scored: Scored


def score_reported(table: xr.Dataset, apart: xr.Dataset, documents: Sequence[Document]) -> list[dict[str, Scored]]:
    """Score the reported heads of a head table on each document.

    Each document gets a mapping from the key of a row, such as ``relation:obj``, to the score of the row's head. Rows
    without items in the document are left out.

    Args:
        table: A head table with reported heads (`headscope.analyse.assess`).
        apart: The head table of these documents, with a fold for each document.
        documents: The documents, in the order of these folds.
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
    """Choose texts as examples of each row: the clearest texts, and the texts on which the reported head fails most.

    Each row gets its first text of both kinds before any row gets a second one, until `size` different texts are
    chosen. A row that lacks examples then takes the best of the texts that were chosen for other rows.

    The clearest text has the largest `Scored.estimate`, and at least one right item; of equal texts the shortest comes
    first. The text on which the head fails most has the smallest estimate, and at least one wrong item.

    Args:
        texts: The scores of the reported heads on each text, from `score_reported`.
        rows: The keys of rows, the most important first.
        size: The maximum number of different texts.
        each: The number of examples for each row and kind.
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
    """Return the scores of a row's head on the texts that are examples of a kind, the best example first."""
    scored = [text[row] for text in texts if row in text]
    if kind == CLEAR:
        right = [each for each in scored if each.right > 0]
        return sorted(right, key=lambda each: (-each.estimate, each.words))
    wrong = [each for each in scored if each.right < each.count]
    return sorted(wrong, key=lambda each: (each.estimate, each.words))


def _list_reported(table: xr.Dataset, apart: xr.Dataset) -> list[Score]:
    """Return the scores of `table` that have reported heads, and whose sums are also in `apart`.

    Scores for which a lower value is better are left out.
    """
    return [
        score
        for score in read_scores(table)
        if score.has_report
        and not score.ascending
        and f"{score.report_prefix}reported_layer" in table
        and {score.variable, *score.numerator, *score.denominator} <= {*apart.data_vars}
    ]
