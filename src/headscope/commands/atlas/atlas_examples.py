"""The texts that stand on the page of an atlas with the attention of all heads: clear examples, and failures.

corpus --choose_candidates--> a few texts --measure_apart, score_reported, choose_examples--> examples --read_texts-->
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import xarray as xr

from headscope.analyse.chosen_examples import choose_examples, score_reported
from headscope.capture.model.model import Model
from headscope.capture.tokens.align import Alignment
from headscope.commands.progress import Progress
from headscope.corpora.document import Document
from headscope.corpora.selection import Selection
from headscope.examples import Example, pack
from headscope.reducers.reducer import Reducer
from headscope.reducers.support.directions import DIRECTIONS
from headscope.runner import Plan
from headscope.runner.example_texts import RowRule, measure_apart, read_texts
from headscope.view.reports import read_reports
from headscope.view.verdicts import may_stand_out

CANDIDATES = 4
"""Times as many texts as are wanted are looked at."""

POOL = 5
"""Times as many as are looked at are drawn at random, so that most of those can be of a good length."""

MANY_HEADS, SIZE, SIZE_OF_MANY = 300, 50, 24
"""The number of texts where none is asked for: of a model with more heads than that, fewer."""

GOOD_LENGTH = range(10, 25)
"""Tokens of the texts that are preferred, special ones included: they can be read at once, and all their maps fit."""

MOST_WEIGHTS = 14_200_000
"""Weights of all heads on all texts: 8 MB on the page at most, and mostly half of that."""

FEWEST_TOKENS, MOST_TOKENS = 16, 128
"""Of a text, at which longer ones are cut: the fewer, the more heads and texts there are."""


def make_examples(
    model: Model, documents: Iterable[Document], table: xr.Dataset, reducers: Sequence[Reducer], plan: Plan, *,
    size: int | None, seed: int, progress: Progress,
) -> xr.Dataset | None:  # fmt: skip
    """Texts with the attention of all heads, as many as `size` or, if that is None, as suit the number of heads.

    None where the model can read none of them.

    Of the rows of the head table, the texts are those on which their reported heads do well and badly; first come rows
    whose heads stand out, or may once the untrained model is measured. A table without reported heads gets texts at
    random.
    """
    heads = model.shape.together
    size = (SIZE_OF_MANY if heads > MANY_HEADS else SIZE) if size is None else size
    tokens = max(FEWEST_TOKENS, min(MOST_TOKENS, math.isqrt(MOST_WEIGHTS // (heads * size))))
    plan = replace(plan, max_tokens=min(plan.max_tokens or tokens, tokens), cut=True, view=None)
    candidates = choose_candidates(documents, CANDIDATES * size, seed, partial(_count_tokens, model, plan))
    scored = []
    for part, apart in measure_apart(model, candidates, reducers, plan) if reducers else ():
        scored += score_reported(table, apart, part)
        progress("choosing examples", len(scored), len(candidates))
    rows = [row for report in read_reports(table) for row in report.rows]
    rules = {
        row.key: RowRule(rule.name, rule.options, DIRECTIONS.index(row.direction) if row.direction else 0)
        for row in rows
        if (rule := row.best_rule)
    }
    rows.sort(key=lambda row: not may_stand_out(row))
    chosen = choose_examples(scored, [row.key for row in rows], size)
    names = {each.scored.text for each in chosen}
    others = [document.id for document in candidates if document.id not in names]
    names |= {*others[: max(0, size - len(names))]}
    texts = read_texts(model, [document for document in candidates if document.id in names], plan, reducers, rules)
    if not texts:
        return None
    places = {text.id: place for place, text in enumerate(texts)}
    examples = [
        Example(each.row, each.kind, places[each.scored.text], each.scored.right, each.scored.count)
        for each in chosen
        if each.scored.text in places
    ]
    about = {key: table.attrs[key] for key in ("model", "weights_sha256", "corpus", "corpus_sha256")}
    return pack(texts, examples, about | {"seed": seed})


def choose_candidates(
    documents: Iterable[Document], size: int, seed: int, count_tokens: Callable[[Sequence[Document]], Sequence[int]]
) -> list[Document]:
    """Draw `size` random documents; those with another length than `GOOD_LENGTH` only fill up the number."""
    places = Selection(sample=POOL * size, seed=seed).choose(documents)
    pool = [document for place, document in enumerate(documents) if places is None or place in places]
    order = np.random.default_rng(seed).permutation(len(pool))
    tokens = count_tokens(pool)
    is_far = [tokens[place] not in GOOD_LENGTH for place in order]
    return [pool[order[place]] for place in np.argsort(is_far, kind="stable")[:size]]


def _count_tokens(model: Model, plan: Plan, documents: Sequence[Document]) -> list[int]:
    """Count the tokens of each document; 0 for a document that the model cannot read."""
    aligned, _ = Alignment.for_model(model, cut=True, text=plan.text).align(documents)
    lengths = {text.document.id: text.length for text in aligned}
    return [lengths.get(document.id, 0) for document in documents]
