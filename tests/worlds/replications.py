"""Worlds of two corpora: heads with a lift on the one, and with another, or none, on the other."""

import numpy as np
import xarray as xr

from analyse.tables import FOLDS, OFFSETS, Links, Text, head_table
from headscope.analyse import add_replication, add_report
from headscope.analyse.replicate import SURVIVES

ROWS, TEXTS, LINKS = 23, 67, 5
NAMES = [f"row {number}" for number in range(ROWS)]
ELSEWHERE = {"corpus": "another", "corpus_sha256": "ef" * 32}


def make_corpus(draw: np.random.Generator, lifts: np.ndarray) -> xr.Dataset:
    """Return a table of two heads: the first finds links as often as an offset does, and by its lift more often.

    The links of a text are alike: it has a share of its own, by which the head and the offset find them.
    """
    texts = []
    for number in range(TEXTS):
        links = {}
        for name, lift in zip(NAMES, lifts, strict=True):
            share = draw.beta(2, 3)
            hits = draw.random((LINKS, 1, 2, 2)) < np.array([min(1, share + lift), 0])[None, None, :, None]
            links[name] = Links(hits, np.where(draw.random(LINKS) < share, OFFSETS[0], 17))
        texts.append(Text(number % FOLDS, links))
    return head_table(texts, NAMES)


def make_report() -> xr.Dataset:
    """Return heads that have a lift of .4 on the corpus on which they were chosen."""
    return add_report(make_corpus(np.random.default_rng(5), np.full(ROWS, 0.4)), minimum=5)


def replicate(report: xr.Dataset, draw: np.random.Generator, lifts: np.ndarray) -> np.ndarray:
    """Return which rows survive on another corpus, where they have these lifts."""
    replicated = add_replication(report, make_corpus(draw, lifts).assign_attrs(ELSEWHERE))
    return (replicated["replication_verdict"] == SURVIVES).values
