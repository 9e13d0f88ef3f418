"""The essay *What does a fine-tuned BERT model look at?* (2019): what heads see after fine-tuning on aspects.

The essay makes five observations on single pairs of a question and a review, and asks for a formal study. This study
measures every head before and after fine-tuning, and in models that were tuned on arbitrary labels.
"""

import math
from collections.abc import Mapping
from contextlib import suppress
from functools import partial

import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from headscope.analyse.compare import compare_variable
from headscope.errors import TableError
from headscope.heads import head_name
from headscope.studies.extractors import PERCENT, best_head_value, largest
from headscope.studies.run_extractors import best_head_after, find_best_before, head_value, on_tables
from headscope.studies.study import (
    Claim,
    Derived,
    Extractor,
    Measurement,
    NotMeasuredError,
    Pattern,
    Printed,
    Study,
    Tuning,
    Value,
)
from headscope.studies.study_names import NAMES
from headscope.view.figures import draw_changes, draw_heatmaps, draw_runs

BERT = "BERT-base"
BEFORE, RUNS = ("pairs",), ("pairs", "pairs_task", "pairs_control")
MASS = "aspect_mass"
SETTINGS = {"pairs": "none", "pairs_control": "control", "pairs_task": "aspects"}
"""The data on which a model is fine-tuned, by the name of its table."""

OBSERVATIONS = {
    # target: (where, the target's description, the target that it is compared with in the same runs)
    "same_aspect": ("learning 1", "the aspect's words in the review", ""),
    "sentiment": ("learning 2", "sentiment words about the aspect", ""),
    "phrase": ("learning 3", "the whole phrase about the aspect", ""),
    "other_aspect": ("learning 4", "words of another aspect", "same_beside_other"),
    "sep_when_absent": ("learning 5", "[SEP], where the review does not speak of the aspect", "sep_when_present"),
}

HEADS = {
    # target: (the essay's name, and layer and head counted from 1)
    "same_aspect": ("9-8", 10, 9),
    "sentiment": ("9-0", 10, 1),
    "other_aspect": ("10-3", 11, 4),
}
"""The essay counts from 0, like BertViz, which drew its pictures: it has a head 9-0."""

BESIDE = {
    "same_beside_other": "more than to the aspect asked about, in the same pairs",
    "sep_when_present": "more than where the review speaks of the aspect",
}


def _best_before(target: str) -> Extractor:
    """Return an extractor of the largest attention of any head to a target, from a table before fine-tuning."""
    return lambda table: best_head_value(MASS, MASS)(table.sel(target=target))


def _make_claims() -> list[Claim]:
    claims = []
    for target, (where, what, beside) in OBSERVATIONS.items():
        after, control = (on_tables(best_head_after(MASS, target=target), place) for place in (1, 2))
        before = on_tables(_best_before(target), 0)
        claims.append(
            Claim(where, f"attention to {what}, best head", RUNS, Value(math.nan, "a head mostly attends to it"), after,
                  pattern=Pattern("above that before and under the control", above=largest(before, control)),
                  note="the best head of each model, chosen on the same data that it is scored on")
        )  # fmt: skip
        if target in HEADS:
            essay, layer, head = HEADS[target]
            of_head = partial(head_value, layer, head, MASS)
            claims += [
                Claim(where, f"attention to {what}, the essay's head", RUNS, Value(math.nan, f"mostly, {essay} from 0"),
                      on_tables(of_head(target=target), 1), model=BERT,
                      pattern=Pattern("above that before fine-tuning", above=on_tables(of_head(target=target), 0))),
                Claim("not in the essay", f"attention to {what}, the essay's head, tuned on arbitrary labels", RUNS,
                      Value(math.nan), on_tables(of_head(target=target), 2), model=BERT,
                      note=f"head {layer}-{head}, counted from 1"),
            ]  # fmt: skip
        if beside:
            within = on_tables(best_head_after(MASS, target=beside), 1)
            claims.append(
                Claim(where, f"attention to {what}, best head, held against its like", RUNS, Value(math.nan, "mostly"),
                      after, pattern=Pattern(BESIDE[beside], above=within))
            )  # fmt: skip
    return claims


def tabulate_targets(tables: Mapping[str, xr.Dataset]) -> pd.DataFrame:
    """Return a data frame with the head that attends most to each target, for the models of each setting.

    The best head has the highest mean over runs, on the data on which it is scored. Further columns have the share of
    pairs in which the head points at the target, and the share of attention under uniform attention. Shares are in
    percent, "±" is the standard deviation over these runs (``ddof`` 0).
    """
    rows = []
    for target in tables["pairs"]["target"].values.tolist():
        for name, setting in SETTINGS.items():
            if name not in tables:
                continue
            with suppress(NotMeasuredError):  # the corpus does not have this target
                rows.append({"attention to": target.replace("_", " "), "tuned on": setting}
                            | _describe_best_head(tables[name].sel(target=target)))  # fmt: skip
    return pd.DataFrame(rows)


def _describe_best_head(of_target: xr.Dataset) -> dict[str, object]:
    count = of_target.sizes.get("run", 0)
    by_run = of_target if count else of_target.expand_dims("run")
    best = find_best_before(by_run[[MASS]].mean("run"), MASS)
    row: dict[str, object] = {"runs": count or "", "best head": head_name(**best)}
    for variable, column in ((MASS, "attention"), ("aspect_accuracy", "points at it")):
        values = PERCENT * by_run[variable].sel(best).values
        row |= {column: float(values.mean()), f"{column} sd": float(values.std()) if count > 1 else math.nan}
    even = by_run["aspect_uniform"]
    return row | {"even attention": PERCENT * float(even.mean())}


def _compare_target(target: str, before: xr.Dataset, task: xr.Dataset, control: xr.Dataset) -> xr.Dataset:
    """Compare how often each head points at a target: before, after and under the control."""
    return compare_variable(before, task, control, "aspect_accuracy", where={"target": target})


def _plot_best_heads(before: xr.Dataset, task: xr.Dataset, control: xr.Dataset) -> Figure:
    panels = {}
    for target in OBSERVATIONS:
        with suppress(TableError):  # the corpus does not have this target
            panels[target.replace("_", " ")] = _compare_target(target, before, task, control)
    what = "how often the head that was best before points at its target"
    return draw_runs.draw_pairs(draw_runs.pair_comparisons(panels), task, what, units="share of pairs")


ASPECTS2019 = Study(
    title=NAMES["aspects2019"],
    models={BERT: ("bert-base-uncased", "google-bert/bert-base-uncased")},
    measurements={
        "pairs": Measurement(
            "absa/semeval2014/Restaurants_Test_Gold.xml",
            "SemEval-2014 task 4, restaurants, test set: https://alt.qcri.org/semeval2014/task4/",
            ("aspects",), "single pairs of SemEval-2014",
        )
    },
    claims=_make_claims(),
    tuning=Tuning(
        tasks=("aspects",),
        corpora={"aspects": "absa/semeval2014"},
        measured=("pairs",),
        epochs=4,
        learning_rate=2e-5,
        paper="one model; the essay does not give its epochs, so they are those of Sun et al. 2019, whom it follows",
    ),
    figures={
        "aspects-before": (BEFORE, partial(draw_heatmaps.draw_score_heatmap, variable="aspect_accuracy")),
        "best-heads": (RUNS, _plot_best_heads),
        **{f"change-{target.replace('_', '-')}": ((f"change_{target}",), draw_changes.draw_change_heatmaps)
           for target in OBSERVATIONS},
    },
    derived={f"change_{target}": Derived(RUNS, partial(_compare_target, target)) for target in OBSERVATIONS},
    printed={"targets": Printed("The best head for each target, before and after fine-tuning", tabulate_targets)},
    notes=(
        "The essay has no figures and counts heads from 0: its 9-8, 9-0 and 10-3 are 10-9, 10-1 and 11-4 here.",
        "It looks at one model after fine-tuning. That a head attends to something after fine-tuning says little if "
        "it did before, or does after fine-tuning on arbitrary labels: a verdict requires more than both.",
        "The phrase of an aspect and the sentiment words are approximations (`headscope.reducers.aspects`).",
    ),
)  # fmt: skip
