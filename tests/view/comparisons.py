"""Comparisons of heads before and after fine-tuning for the tests of `headscope.view`: of scores, without models."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from headscope import heads
from headscope.analyse.compare import compare_variable as compare
from headscope.reducers import REDUCERS
from headscope.score import write_scores

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
    before: np.ndarray, afters: Sequence[np.ndarray], *, variable: str = "scope_f1", **about: Any
) -> xr.Dataset:
    """The comparison of scores before with those of the runs of a task and, where there are two, of its control."""
    start = family(before, {variable: ("layer", "head")}, **about)
    tables = [
        family(after, {variable: ("run", "layer", "head")}, control=place == 1, **about)
        for place, after in enumerate(afters)
    ]
    return compare(start, *tables, variable=variable)


def family(
    values: np.ndarray,
    named: Mapping[str, Sequence[str]],
    *,
    control: bool = False,
    model: str = "tiny/bert",
    task: str = "negation",
    units: str = "share of words",
    coords: Mapping[str, Sequence[str]] | None = None,
) -> xr.Dataset:
    """A head table with one variable: of a model or, with the dimension ``run``, of runs with seeds 1, 2, ..."""
    ((variable, dims),) = named.items()
    sizes = dict(zip(dims, values.shape, strict=True))
    places: dict[str, Any] = {dim: np.arange(1, sizes[dim] + 1) for dim in ("layer", "head")} | dict(coords or {})
    attrs: dict[str, Any] = {
        "model": model,
        "weights_sha256": "ab" * 32,
        "corpus": "story.json",
        "corpus_sha256": "cd" * 32,
        "documents": 757,
        "tokens": 25093,
        "skipped": json.dumps({}),
        "call": "headscope measure",
        "scores": write_scores(score for reducer in REDUCERS.values() for score in reducer.scores),
    }
    if "run" in dims:
        seeds = np.arange(1, sizes["run"] + 1)
        places |= {"run": [f"seed-{seed}" for seed in seeds], "seed": ("run", seeds)}
        attrs |= {"task": task, "control": int(control)}
        attrs["runs"] = json.dumps([{"name": f"seed-{seed}", "seed": int(seed)} for seed in seeds])
    of = heads.variable(values, dims, name=variable.replace("_", " "), units=units, source="drawn")
    return heads.check(xr.Dataset({variable: of}, coords=places, attrs=attrs))


def released(model: str = "bert-base", score: int = 2, corpus: str = "story") -> xr.Dataset:
    """The scores that Zhao and Bethard released: 10 runs of the task and 10 of the control."""
    with np.load(RELEASED / f"{model}.npz") as arrays:
        before, *afters = (arrays[f"{corpus}_{of}"][..., score] for of in ("pretrained", "neg", "control"))
    variable = f"scope_{('precision', 'recall', 'f1')[score]}"
    return comparison(before, afters, variable=variable, model=f"{model} (released)")
