"""Comparisons of heads before and after fine-tuning for the tests of `headscope.view`: naive arithmetic and scipy."""

import json
import math
import os
from pathlib import Path

import numpy as np
import xarray as xr
from scipy.stats import false_discovery_control, kendalltau, mannwhitneyu, t, wilcoxon

from headscope import heads

RELEASED = Path(os.environ.get("HEADSCOPE_DATA", "")) / "negation" / "zhao_head_scores"


def drawn(
    layers: int = 5,
    count_of_heads: int = 7,
    runs: tuple[int, ...] = (3, 2),
    *,
    gains: tuple[float, ...] = (0.08, 0.0),
    seed: int = 0,
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Scores before, ``(layer, head)``, and after, ``(run, layer, head)`` for each group; the upper half gains."""
    random = np.random.default_rng(seed)
    before = random.beta(1, 6, (layers, count_of_heads))
    upper = (np.arange(layers) >= layers // 2)[:, None]
    afters = []
    for count, gain in zip(runs, gains, strict=False):
        effect = gain * upper * random.uniform(0, 2, before.shape)
        afters.append(before + effect + random.normal(0, 0.02, (count, *before.shape)))
    return before, afters


def comparison(
    before: np.ndarray,
    afters: list[np.ndarray],
    *,
    variable: str = "scope_f1",
    model: str = "tiny/bert",
    task: str = "negation",
) -> xr.Dataset:
    """What `headscope.analyse.compare.compare` returns, by hand; the corrected taus are the others plus 0.25."""
    groups = ["task", "control"][: len(afters)]
    layers, count_of_heads = before.shape
    most = max(len(after) for after in afters)
    after = np.full((len(groups), most, layers, count_of_heads), np.nan)
    for place, values in enumerate(afters):
        after[place, : len(values)] = values
    counts = np.array([len(values) for values in afters])
    change = after - before
    mean = _mean(change, 1)
    half = _half(change, counts)
    layer_change = _mean(change, -1)
    average = _mean(after, (-1, -2))
    best = np.unravel_index(int(np.nanargmax(before)), before.shape)
    gained = average - np.nanmean(before)
    taus = np.full((2, len(groups), most), np.nan)
    for at in np.argwhere(np.isfinite(average)):
        known = np.isfinite(before) & np.isfinite(change[tuple(at)])
        taus[(slice(None), *at)] = kendalltau(before[known], change[tuple(at)][known])
    by_head, by_run = ("layer", "head"), ("group", "run")
    values = {
        "before": (before, by_head),
        "after": (after, (*by_run, *by_head)),
        "change": (mean, ("group", *by_head)),
        "change_lower": (mean - half, ("group", *by_head)),
        "change_upper": (mean + half, ("group", *by_head)),
        "layer_change": (layer_change, (*by_run, "layer")),
        "average_before": (np.nanmean(before), ()),
        "average": (average, by_run),
        "average_lower": (np.nanmean(gained, 1) - _half(gained, counts), ("group",)),
        "average_upper": (np.nanmean(gained, 1) + _half(gained, counts), ("group",)),
        "best_before": (before[best], ()),
        "best": (after[(..., *best)], by_run),
        "rich_tau": (taus[0], by_run),
        "rich_p": (taus[1], by_run),
        "rich_corrected": (taus[0] + 0.25, by_run),
        "before_p": (_signed(change, counts), ("group", *by_head)),
        "average_before_p": (_signed(gained, counts), ("group",)),
    }
    values["before_q"] = (np.array([_q(p) for p in values["before_p"][0]]), ("group", *by_head))
    if len(afters) == 2:
        pairs = int(counts.min())
        between = np.array([after[0, :pairs] - after[1, :pairs]])
        values |= {
            "p": (_sums(after, counts), by_head),
            "layer_p": (_sums(layer_change, counts), ("layer",)),
            "average_p": (_sums(average, counts), ()),
            "best_p": (_sums(after[(..., *best)], counts), ()),
            "paired_p": (_signed(between, np.array([pairs]))[0], by_head),
            "average_paired_p": (
                _signed(np.array([average[0, :pairs] - average[1, :pairs]]), np.array([pairs]))[0],
                (),
            ),
        }
        for name in ("p", "layer_p", "paired_p"):
            values[name.removesuffix("p") + "q"] = (_q(values[name][0]), values[name][1])
    variables = {
        name: heads.variable(np.asarray(data), dims, name=name.replace("_", " "), units=_units(name), source="hand")
        for name, (data, dims) in values.items()
    }
    coords = {"group": groups, "run": np.arange(1, most + 1)}
    coords |= {"layer": np.arange(1, layers + 1), "head": np.arange(1, count_of_heads + 1)}
    attrs = {
        "variable": variable,
        "best_head": f"{best[0] + 1}-{best[1] + 1}",
        "model": model,
        "weights_sha256": "ab" * 32,
        "task": task,
        "corpus": "story.json",
        "corpus_sha256": "cd" * 32,
        "documents": 757,
        "tokens": 25093,
        "skipped": json.dumps({}),
        "call": "headscope compare before.nc after.nc --control control.nc",
    }
    return heads.check(xr.Dataset(variables, coords=coords, attrs=attrs))


def released(model: str = "bert-base", score: int = 2, corpus: str = "story") -> xr.Dataset:
    """The scores that Zhao and Bethard released: 10 runs of the task and 10 of the control."""
    with np.load(RELEASED / f"{model}.npz") as arrays:
        before, *afters = (arrays[f"{corpus}_{of}"][..., score] for of in ("pretrained", "neg", "control"))
    variable = f"scope_{('precision', 'recall', 'f1')[score]}"
    return comparison(before, afters, variable=variable, model=f"{model} (released)")


def _units(name: str) -> str:
    if name.endswith(("_p", "_q")) or name in {"p", "q"}:
        return "probability"
    return "rank correlation" if name.startswith("rich") else "share of words"


def _mean(values: np.ndarray, axes: int | tuple[int, ...]) -> np.ndarray:
    """The mean of what is there; NaN where nothing is."""
    known = np.isfinite(values)
    total = np.where(known, values, 0).sum(axes)
    return np.where(known.any(axes), total / np.maximum(known.sum(axes), 1), np.nan)


def _half(change: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Half of the 95 % t interval of the mean over runs, the second axis; NaN where there is one run."""
    halves = np.full((len(counts), *change.shape[2:]), np.nan)
    for place, n in enumerate(counts):
        if n > 1:
            halves[place] = t.ppf(0.975, n - 1) * change[place, :n].std(0, ddof=1) / math.sqrt(n)
    return halves


def _sums(values: np.ndarray, counts: np.ndarray) -> np.ndarray:
    one, other = (values[place, :n] for place, n in enumerate(counts))
    return np.asarray(mannwhitneyu(one, other, method="exact", axis=0).pvalue)


def _signed(values: np.ndarray, counts: np.ndarray) -> np.ndarray:
    tests = [wilcoxon(of[:n], axis=0, method="exact").pvalue for of, n in zip(values, counts, strict=True)]
    return np.array(tests)


def _q(p: np.ndarray) -> np.ndarray:
    q = np.full(p.shape, np.nan)
    known = np.isfinite(p)
    q[known] = false_discovery_control(p[known])
    return q
