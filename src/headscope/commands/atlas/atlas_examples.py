"""The example texts on the page of an atlas, with the attention of all heads: texts where heads do well, and failures.

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
"""The number of candidate texts for each text that is shown."""

POOL = 5
"""The number of texts that are drawn at random for each candidate, so that most candidates can have a good length."""

MANY_HEADS, SIZE, SIZE_OF_MANY = 300, 50, 24
"""The number of heads above which a model gets fewer example texts, and the two default numbers of texts.

The first number of texts is for models with at most this number of heads, the second for models with more.
"""

GOOD_LENGTH = range(10, 25)
"""The preferred lengths of a text in tokens, including special tokens.

A text of this length can be read quickly, and all its maps fit on the page.
"""

MOST_WEIGHTS = 14_200_000
"""The maximum number of attention weights of all heads on all texts, which need at most 8 MB on the page."""

FEWEST_TOKENS, MOST_TOKENS = 16, 128
"""The lowest and the highest limit of tokens at which example texts are cut.

The limit is lower if the model has more heads or the page has more texts.
"""


def make_examples(
    model: Model, documents: Iterable[Document], table: xr.Dataset, reducers: Sequence[Reducer], plan: Plan, *,
    size: int | None, seed: int, progress: Progress,
) -> xr.Dataset | None:  # fmt: skip
    """Return example texts with the attention of all heads; None if the model can read no text.

    The texts are those on which the reported heads of the table do well or badly. Rows whose heads stand out, or may
    stand out once the untrained model is measured, come first. If that gives too few texts, random texts are added.

    Args:
        model: The model.
        documents: The corpus.
        table: The head table with the reported heads.
        reducers: The reducers that score the reported heads on each text.
        plan: How to read the texts.
        size: The number of texts. None: fewer for a model with more than `MANY_HEADS` heads.
        seed: The seed of the random choice.
        progress: A function that is called as the work advances.
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
    """Choose `size` random documents; documents outside `GOOD_LENGTH` are taken only if there are too few others."""
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
