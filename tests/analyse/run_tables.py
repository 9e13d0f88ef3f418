"""Head tables of a model before tuning, and of runs tuned from it, with the sums by fold of their scores."""

import json
from pathlib import Path

import numpy as np
import xarray as xr

from analyse.tables import ATTRIBUTES
from headscope import heads
from headscope.reducers.negation_scope import NegationScope
from headscope.score import write_scores

WORDS = 29
"""In scope, in each fold."""


def weights(seed: int, control: bool) -> str:
    """Of the run of this seed."""
    return f"{seed:02x}{int(control)}0" * 16


def scope_table(
    hits: np.ndarray,
    said: np.ndarray,
    gold: np.ndarray,
    *,
    seeds: list[int] | None = None,
    control: bool = False,
    **attrs: str | int,
) -> xr.Dataset:
    """Scores of negation scopes with their sums: ``hits[layer, head, fold]``, or ``hits[run, layer, head, fold]``."""
    dims = ("run", "layer", "head", "fold")[-hits.ndim :]
    found, answers = hits.sum(-1), said.sum(-1)
    values = {
        "scope_precision": (dims[:-1], found / np.maximum(answers, 1)),
        "scope_recall": (dims[:-1], found / gold.sum()),
        "scope_f1": (dims[:-1], 2 * found / (answers + gold.sum())),
        "fold_scope_said_hits": (dims, hits),
        "fold_scope_said": (dims, said),
        "fold_scope": (("fold",), gold),
    }
    coords = {"layer": np.arange(1, hits.shape[-3] + 1), "head": np.arange(1, hits.shape[-2] + 1)}
    about = ATTRIBUTES | {"scores": write_scores(NegationScope.scores)} | attrs
    if seeds is not None:
        coords |= {"run": [f"seed-{seed}" for seed in seeds], "seed": ("run", seeds)}
        about |= {"task": "negation", "control": int(control)}
        about["runs"] = json.dumps([
            {"name": f"seed-{seed}", "seed": seed, "weights_sha256": weights(seed, control), "best_epoch": 3}
            for seed in seeds
        ])  # fmt: skip
    variables = {
        name: heads.variable(data, on, name=f"{name} of words", units="share", source="loops")
        for name, (on, data) in values.items()
    }
    return heads.check(xr.Dataset(variables, coords=coords, attrs=about))


def simulate(
    draw: np.random.Generator, shares: np.ndarray, folds: int = 13, *, said: bool = True, **options: object
) -> xr.Dataset:
    """Texts in which each head, or each head of each run, finds its share of the words of scopes."""
    gold = np.full(folds, WORDS)
    hits = draw.binomial(WORDS, np.repeat(shares[..., None], folds, -1))
    wrong = draw.binomial(WORDS, 0.1, hits.shape) if said else np.zeros_like(hits)
    return scope_table(hits, hits + wrong, gold, **options)


def released(data: Path, model: str, *names: str) -> list[xr.Dataset]:
    """The arrays that Zhao and Bethard released, as head tables."""
    arrays = np.load(data / f"negation/zhao_head_scores/{model}.npz")
    made = []
    for name in names:
        corpus, values = name.split("_")[0], arrays[name]
        about = {"units": "share", "source": "released", "long_name": "score"}
        dims = ("run", "layer", "head")[-values.ndim + 1 :]
        coords = {"layer": np.arange(1, 13), "head": np.arange(1, 13)} | (
            {"run": np.arange(10)} if "run" in dims else {}
        )
        parts = ("scope_precision", "scope_recall", "scope_f1")
        attrs = {"model": model, "weights_sha256": model, "corpus": corpus, "corpus_sha256": corpus, "documents": 1}
        attrs["scores"] = write_scores(NegationScope.scores)
        variables = {part: (dims, values[..., place], about) for place, part in enumerate(parts)}
        made.append(xr.Dataset(variables, coords=coords, attrs=attrs))
    return made


LAYERS, HEADS, RUNS, OTHERS = 3, 5, 7, 11
SEEDS, OTHER_SEEDS = [2, 3, 5, 7, 11, 13, 17], [17, 13, 11, 7, 5, 41, 43, 47, 53, 59, 61]
PAIRS = [(seed, SEEDS.index(seed), OTHER_SEEDS.index(seed)) for seed in (5, 7, 11, 13, 17)]


def tables(seed: int = 1, runs: int = RUNS, others: int = OTHERS) -> tuple[xr.Dataset, xr.Dataset, xr.Dataset]:
    """Before, after and control; the task's runs find more."""
    draw = np.random.default_rng(seed)
    shares = draw.beta(2, 6, (LAYERS, HEADS))
    after = np.clip(shares + draw.normal(0.05, 0.05, (runs, LAYERS, HEADS)), 0.01, 0.99)
    control = np.clip(shares + draw.normal(0, 0.03, (others, LAYERS, HEADS)), 0.01, 0.99)
    return (
        simulate(draw, shares),
        simulate(draw, after, seeds=SEEDS[:runs]),
        simulate(draw, control, seeds=OTHER_SEEDS[:others], control=True),
    )
