"""Need: the effect of disabling each head, next to the number of rows for which the head stands out.

head table + effects of `headscope disable` on the same weights --add_need--> the table with ``effect_<metric>``,
``marks`` and ``need`` of each head

The effects are measured by the metric that changes a little with each example (the loss, or the margin of minimal
pairs). An accuracy changes in steps: if none of a few examples flips, its interval has no width, and any head would
count as not needed.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Int

from headscope.analyse.effect_table import STATISTICS
from headscope.analyse.effects import judge
from headscope.analyse.ends import ENDS
from headscope.analyse.metrics import ATTRIBUTE, read_metrics
from headscope.analyse.report import STANDS_OUT, UNDECIDED, list_verdicts
from headscope.errors import TableError
from headscope.heads import require_table, variable
from headscope.identity import name_differences
from headscope.predictions import ATTRIBUTE as PREDICTED
from headscope.predictions import read_predictions
from headscope.score import read_scores

BOUND = 0.01
"""The bound in nats: a head is not needed if the whole interval of its effect lies between -`BOUND` and `BOUND`."""

NEEDS = NOT_TESTED, NOT_SHOWN, NOT_NEEDED, BETTER_WITHOUT, NEEDED = (
    "not tested", "need not shown", "not needed", "better without", "needed",
)  # fmt: skip
"""The possible results of disabling a head; the variable ``need`` has their indices in this tuple."""

METRIC_ATTRIBUTE = "effects_metric"
"""The attribute of a table that describes the metric of its effects, as JSON: a list with one item."""

SOURCE = "headscope; docs/howto/disable-heads.md says when a head is needed"

_LACKS_HEADS = (
    "{name} has no effects of query heads such as 3-1; run `headscope disable` on all of them, or name some (--heads), "
    "and give its folder."
)
_LACKS_TEXTS = "the effects in {name} are of a single text, which tests nothing; run `headscope disable` on more texts."
_LACKS_PARTS = "{name} is a part of a table of effects; give the whole, with its dimensions how and subset."
_LACKS_PLACEBOS = (
    "the effects in {name} have no placebos, without which no head can be called needed; run `headscope disable` "
    "with --placebos 2 or more."
)


def check_effects(effects: xr.Dataset, name: str) -> xr.Dataset:
    """Return the table unchanged, or raise an error if it cannot show which heads are needed.

    Args:
        effects: The table from `headscope.measure_effects`.
        name: The name of the table in messages.

    Raises:
        TableError: The table has no effects of heads or no placebos, is of a single text, or is only a part of a table.
    """
    require_table(effects)
    metric = find_metric(effects) if ATTRIBUTE in effects.attrs else None
    if metric is None or f"effect_{metric['name']}" not in effects:
        raise TableError(_LACKS_HEADS.format(name=name))
    stem = f"effect_{metric['name']}"
    lacks = {
        _LACKS_PARTS: not {"how", "subset"} <= {*effects.dims},
        _LACKS_PLACEBOS: f"{stem}_placebo" not in effects,
        _LACKS_TEXTS: not {f"{stem}_lower", f"{stem}_p_corrected"} <= {*effects.data_vars},
    }
    for message, is_lacking in lacks.items():
        if is_lacking:
            raise TableError(message.format(name=name))
    return effects


def find_metric(effects: xr.Dataset) -> Mapping[str, Any] | None:
    """Return the metric that changes smoothly, which has first-order estimates; None if no metric has estimates."""
    return next((metric for metric in read_metrics(effects) if f"first_order_{metric['name']}" in effects), None)


def match_effects(effects: xr.Dataset, model: Mapping[str, Any]) -> xr.Dataset:
    """Return the effects of a model; if the table has several runs, select the run with the model's weights.

    Args:
        effects: A table that passed `check_effects`.
        model: The attributes that identify the model (`headscope.identity`), and its name.

    Raises:
        TableError: The effects are of another model.
    """
    name, weights_sha256, differences = model["model"], model["weights_sha256"], "weights"
    disabled = str(effects.attrs["model"])
    if "runs" in effects.attrs:
        # The hash in the table's attributes is of the model that the runs were tuned from.
        hashes = {run["name"]: run["weights_sha256"] for run in json.loads(effects.attrs["runs"])}
        names = np.atleast_1d(effects["run"].values).tolist() if "run" in effects.coords else []
        for run in names:
            if hashes[run] == weights_sha256:
                return effects.sel(run=run) if "run" in effects.dims else effects
        disabled = f"the runs {', '.join(names)}" if names else f"several runs of {disabled}, as means"
    elif not (differences := name_differences(effects.attrs, model)):
        return effects
    raise TableError(
        f"the effects are those of {disabled}, and {name} differs from that in its {differences}; give the model that "
        "was disabled. A loaded model with a task head is another one without it: save it to a folder, and give that "
        "to both commands."
    )


def add_need(table: xr.Dataset, effects: xr.Dataset, *, bound: float = BOUND) -> xr.Dataset:
    """Add the effect of disabling each head, and whether the model needs the head.

    Args:
        table: A head table, with its report (`add_report`) if it has scores.
        effects: The effects on the same model, as `match_effects` returns them.
        bound: The bound in nats. If the metric has other units, no head is called not needed.

    Returns:
        The table with, for each head:

        * ``effect_<metric>``, ``_lower``, ``_upper``, ``_p_corrected`` and ``_placebo...``, as in `effects`, on all
          examples and with the first way of disabling;
        * ``marks``: the number of rows for which the head is the reported head and stands out; NaN if there are too few
          texts to decide; missing if the table has no reported heads;
        * ``need``: the index in `NEEDS` of what disabling the head shows. A head is needed if the metric is surely
          worse without it, and surely worse than with its placebos; not needed if neither this nor the opposite is
          sure, and the interval of the change lies within `bound`. Each verdict must hold in every way in which the
          head was disabled; only the first way has placebos.
    """
    metric = find_metric(effects)
    assert metric is not None, "check_effects refuses such a table"
    stem = f"effect_{metric['name']}"
    chosen = effects.isel(subset=0).transpose("how", ...)
    new = {
        f"{stem}{end}": chosen[f"{stem}{end}"].isel(how=0).variable.copy()
        for end in STATISTICS
        if f"{stem}{end}" in chosen
    }
    examples, content = int(effects["examples"][0]), effects.attrs.get("content", "examples")
    about = f"on the {examples:,} {content} with which heads were disabled"
    new[stem].attrs |= {"title": f"change of {metric['name']}", "texts": about, "scale": "diverging"}
    dims = list(map(str, new[stem].dims))
    if (marks := _count_marks(table, dims)) is not None:
        what = "rows, also of the same items, for which it is the reported head and stands out; NaN: too few texts"
        new["marks"] = variable(marks.values, dims, name=what, units="rows", source=SOURCE)
    codes = ", ".join(f"{code} {need}" for code, need in enumerate(NEEDS))
    new["need"] = variable(
        _judge_need(chosen, metric, bound), dims, name=f"what disabling the head shows: {codes}", units="label",
        source=SOURCE,
    )  # fmt: skip
    origin = {key: effects.attrs[key] for key in ("corpus", "corpus_sha256", "call", "created")}
    origin |= {"how": ", ".join(map(str, effects["how"].values)), "content": content}
    origin |= {"bound": bound} if _has_bound(metric) else {}
    run = str(effects["run"].item()) if "run" in effects.coords and "runs" in effects.attrs else ""
    if predicted := [*read_predictions(effects.attrs, run).values()]:
        origin[PREDICTED] = json.dumps(predicted[0])
    origin |= {"examples": examples, "texts": int(effects["texts"][0])}
    named = {f"effects_{key}": value for key, value in origin.items()}
    return table.assign(new).assign_attrs(named | {METRIC_ATTRIBUTE: json.dumps([metric])})


def _judge_need(effects: xr.Dataset, metric: Mapping[str, Any], bound: float) -> Int[np.ndarray, "*head"]:
    """Judge whether the model needs each head; return the index of the result in `NEEDS`."""
    stem = f"effect_{metric['name']}"
    values, lower, upper = (effects[f"{stem}{end}"].values for end in ENDS)
    p, placebo, placebo_p = (
        effects[f"{stem}_{end}"].values.ravel() for end in ("p_corrected", "placebo", "placebo_p_corrected")
    )
    judged = judge(metric["better"], values.ravel(), p, placebo, placebo_p)
    verdicts = np.array(judged, dtype=object).reshape(values.shape)
    conditions = {
        NOT_TESTED: (verdicts == "not tested").any(0),
        # Only the first way of disabling has placebos.
        NEEDED: (verdicts[0] == "needed") & np.isin(verdicts[1:], ("needed", "worse without")).all(0),
        BETTER_WITHOUT: (verdicts == "better without").all(0),
        NOT_NEEDED: (np.maximum(np.abs(lower), np.abs(upper)) < bound).all(0) & _has_bound(metric),
    }
    codes = [np.int8(NEEDS.index(need)) for need in conditions]
    return np.select([*conditions.values()], codes, default=np.int8(NEEDS.index(NOT_SHOWN)))


def _has_bound(metric: Mapping[str, Any]) -> bool:
    """Return whether the metric is in nats, so that `BOUND` applies to it."""
    return str(metric["units"]).startswith("nats")


def _count_marks(table: xr.Dataset, dims: Sequence[str]) -> xr.DataArray | None:
    """Count the rows for which each head stands out; None if the table has no reported heads.

    A head without such a row gets NaN if a row that reports it is undecided, or if no row of the table is decided.
    """
    if not any(f"{score.report_prefix}reported_verdict" in table for score in read_scores(table)):
        return None
    marks = xr.DataArray(
        np.zeros([table.sizes[dim] for dim in dims]), dims=dims, coords={dim: table[dim].values for dim in dims}
    )
    undecided, decided = xr.zeros_like(marks, dtype=bool), False
    for head, _, verdict in list_verdicts(table, dims):
        place = dict(zip(dims, head, strict=True))
        marks.loc[place] += verdict == STANDS_OUT
        undecided.loc[place] |= verdict == UNDECIDED
        decided |= verdict != UNDECIDED
    return marks.where((marks > 0) | (~undecided & decided))
