"""Zhao and Bethard 2020, section 5: the effects of fine-tuning on negation, and on its control, on the heads.

Tables 2 to 4 and A2 to A5, figures 5 and A6, and the tests of the text.
"""

import math
from dataclasses import replace
from functools import partial

from headscope.analyse.agreement import consistencies
from headscope.analyse.compare import compare_variable
from headscope.studies.clark2019 import HALF_TO_DEEP
from headscope.studies.extractors import best_head_value, largest, mean_of_heads
from headscope.studies.run_extractors import (
    RunExtractor,
    average_head,
    best_head_before,
    change_statistic,
    consistency_per_run,
    corrected_change,
    deviation_over_runs,
    layer_change,
    mean_over_runs,
    model_score,
    on_tables,
    rank_sum_effect,
    rank_sum_p,
    selectivity,
    significant_changes,
    significant_consistencies,
)
from headscope.studies.study import Claim, Derived, Extractor, Pattern, Recording, Tuning, Value
from headscope.studies.zhao2020_tables import SCORES

BASE, LARGE, ROBERTA, ROBERTA_LARGE = "BERT-base", "BERT-large", "RoBERTa-base", "RoBERTa-large"
TUNED_ON = {"control": "tuned on the control", "task": "tuned on negation"}
BETTER = (BASE, ROBERTA)
"""The models in which the paper finds more change than under the control."""

TASK_SCORES = {
    # model: (tuned on negation: P, R and F1; tuned on the control: P, R, F1; accuracy on the control)
    BASE: (((96.1, 1.3), (89.7, 1.3), (92.8, 1.1)), ((34.8, 0.4), (36.1, 2.2), (35.4, 1.2)), (95.9, 3.0)),
    LARGE: (((97.3, 0.9), (93.0, 1.1), (95.1, 0.6)), ((39.2, 0.9), (33.1, 1.0), (35.9, 0.6)), (100.0, 0.0)),
    ROBERTA: (((97.2, 0.9), (92.9, 1.0), (95.9, 0.3)), ((43.4, 0.7), (45.4, 1.2), (44.4, 0.7)), (98.3, 0.4)),
    ROBERTA_LARGE: (((97.9, 0.9), (93.5, 1.2), (95.7, 0.9)), ((44.1, 0.6), (45.2, 1.8), (44.6, 1.0)), (97.9, 2.2)),
}
"""The scores of tables 2 and A2: mean and standard deviation over 10 runs."""

AVERAGE_HEADS = {
    # model: {group: P, R and F1}
    BASE: {"control": ((48.6, 1.7), (5.3, 0.2), (9.0, 0.4)), "task": ((52.2, 2.2), (6.6, 0.8), (11.1, 1.2))},
    LARGE: {"control": ((44.8, 0.3), (4.6, 0.1), (8.3, 0.2)), "task": ((46.0, 3.7), (4.8, 1.5), (8.0, 2.3))},
    ROBERTA: {"control": ((53.7, 1.7), (7.0, 0.3), (12.0, 0.5)), "task": ((55.5, 1.9), (7.9, 0.9), (13.4, 1.4))},
    ROBERTA_LARGE: {"control": ((48.2, 2.2), (7.0, 1.0), (11.5, 1.3)), "task": ((54.2, 3.4), (8.0, 1.8), (13.2, 2.7))},
}
"""The scores of tables 3 and A3: mean and standard deviation over runs."""

BEST_HEAD = {"control": ((65.0, 8.9), (47.5, 11.7), (53.1, 6.7)), "task": ((82.3, 4.1), (58.6, 10.8), (67.7, 7.9))}
"""The scores of head 8-4 of BERT-base in table 3: mean and standard deviation over runs."""

CHANGE_AGAINST_BASELINE = {
    # model: for P, R and F1: tau, and the numbers of runs in which it is significantly positive and negative
    BASE: ((-0.065, 0, 3), (0.096, 5, 0), (0.085, 5, 0)),
    LARGE: ((-0.098, 2, 5), (-0.132, 0, 7), (-0.132, 0, 8)),
    ROBERTA: ((-0.134, 0, 7), (-0.107, 0, 5), (-0.113, 0, 6)),
    ROBERTA_LARGE: ((-0.155, 0, 8), (-0.142, 0, 8), (-0.144, 0, 8)),
}
"""The statistics of table A4."""

CONSISTENCIES = {
    # model: {group: for P, R and F1: tau, its standard deviation and the number of significant runs}
    BASE: {
        "control": ((0.438, 0.020, 10), (0.406, 0.034, 10), (0.409, 0.026, 10)),
        "task": ((0.469, 0.025, 10), (0.519, 0.020, 10), (0.516, 0.020, 10)),
    },
    LARGE: {
        "control": ((0.0005, 0.057, 3), (0.007, 0.039, 1), (0.006, 0.039, 1)),
        "task": ((0.474, 0.038, 10), (0.523, 0.082, 10), (0.530, 0.066, 10)),
    },
    ROBERTA: {
        "control": ((0.456, 0.022, 10), (0.502, 0.023, 10), (0.487, 0.021, 10)),
        "task": ((0.521, 0.024, 10), (0.538, 0.033, 10), (0.531, 0.033, 10)),
    },
    ROBERTA_LARGE: {
        "control": ((0.389, 0.031, 10), (0.579, 0.029, 10), (0.561, 0.026, 10)),
        "task": ((0.516, 0.037, 10), (0.593, 0.056, 10), (0.584, 0.054, 10)),
    },
}
"""The statistics of tables 4 and A5."""

IMPOSSIBLE = (
    "table A2 has a misprint in P = 97.2, R = 92.9 and F1 = 95.9 of RoBERTa-base tuned on negation: the mean of F1 "
    "over runs cannot exceed the F1 of the mean P and R, which is at most 95.1 however they were rounded"
)
"""A note on a misprint for RoBERTa-base tuned on negation. It follows from the concavity of F1 in P and R."""

SELECTIVITY = Claim(
    "not in the paper", "selectivity: accuracy at the task less accuracy at the control",
    ("tuned_task", "tuned_control"), Value(math.nan), selectivity, unit="points",
    note="Hewitt and Liang 2019; low for a model that learns arbitrary labels as well",
)  # fmt: skip

TUNED = ("tuned_task", "tuned_control")
LEARNT = Pattern(
    "above that of the models tuned on the control", above=mean_over_runs(on_tables(model_score("task_f1"), 1))
)
STORIES = ("story", "story_task", "story_control")
TAUS = ("story", "review", "story_task", "review_task", "story_control", "review_control")
F1 = ("change_f1",)


def _mean_and_sd(first: Claim, per_run: RunExtractor, sd: float) -> list[Claim]:
    """Return a claim about a mean over runs, and one about its standard deviation."""
    second = replace(
        first, what=f"{first.what}, sd over runs", paper=replace(first.paper, number=sd),
        read=deviation_over_runs(per_run), pattern=None, note="",
    )  # fmt: skip
    # One mean of tau is printed with one more decimal: 0.0005.
    digits = 4 if first.paper.number == 0.0005 else first.digits
    return [replace(first, read=mean_over_runs(per_run), digits=digits), second]


def _task_score_claims() -> list[Claim]:
    claims = []
    for model, (negation, control_scores, accuracy) in TASK_SCORES.items():
        where = "table 2" if model == BASE else "table A2"
        cells = [
            *((f"{letter} at the task, tuned on negation", "tuned_task", name) for name, letter in SCORES.items()),
            *((f"{letter} at the task, tuned on the control", "tuned_control", f"task_{name}")
              for name, letter in SCORES.items()),
            ("accuracy at the control, tuned on it", "tuned_control", "accuracy"),
        ]  # fmt: skip
        for (what, on, name), (average, sd) in zip(cells, (*negation, *control_scores, accuracy), strict=True):
            note = IMPOSSIBLE if (model, on, name) == (ROBERTA, "tuned_task", "f1") else ""
            claim = Claim(where, what, (on,), Value(average), mean_over_runs(model_score(name)), model=model, note=note)
            per_run = model_score(name)
            if (on, name) == ("tuned_task", "f1"):  # otherwise there is no control, or the model did not learn the task
                claim, per_run = replace(claim, on=TUNED, pattern=LEARNT), on_tables(per_run, 0)
            claims += _mean_and_sd(claim, per_run, sd)
    return claims


def _head_claims() -> list[Claim]:
    """Return the claims of tables 3 and A3."""
    rows = [
        *((model, group, "average head", "", numbers)
          for model, groups in AVERAGE_HEADS.items() for group, numbers in groups.items()),
        *((BASE, group, "best head", "8-4", numbers) for group, numbers in BEST_HEAD.items()),
    ]  # fmt: skip
    claims = []
    for model, group, head, which, numbers in rows:
        for (name, letter), (average, sd) in zip(SCORES.items(), numbers, strict=True):
            before, task, control = _head_extractors(head, f"scope_{name}")
            pattern = _gain_pattern(model, before, control) if (group, name) == ("task", "f1") else None
            where, what = "table 3" if model == BASE else "table A3", f"{letter}, {head}, {TUNED_ON[group]}"
            claim = Claim(where, what, STORIES, Value(average, which), before, pattern=pattern, model=model)
            claims += _mean_and_sd(claim, task if group == "task" else control, sd)
    return claims


def _head_extractors(head: str, variable: str) -> tuple[Extractor, RunExtractor, RunExtractor]:
    """Return three extractors of a score from the tables `STORIES`: before tuning, per run of task, and of control."""
    if head == "average head":
        per_run = average_head(variable)
        return on_tables(mean_of_heads(variable), 0), on_tables(per_run, 1), on_tables(per_run, 2)
    per_run = best_head_before(variable, by="scope_f1")
    return on_tables(best_head_value(variable, by="scope_f1"), 0), on_tables(per_run, 0, 1), on_tables(per_run, 0, 2)


def _gain_pattern(model: str, before: Extractor, control: RunExtractor) -> Pattern:
    if model in BETTER:
        above = largest(before, mean_over_runs(control))
        return Pattern("above that before fine-tuning and under the control", above=above)
    return Pattern("above that before fine-tuning", above=before)


def _test_claims() -> list[Claim]:
    """Return the claims of section 5.3 and the bold type of table A3: the task's runs against the control's."""
    rows = [
        ("section 5.3", BASE, "average head", Value(7.578e-05)),
        ("section 5.3", BASE, "best head", Value(0.002089, "8-4")),
        *(("table A3", model, "average head", Value(math.nan, "significant" if model in BETTER else "not significant"))
          for model in (LARGE, ROBERTA, ROBERTA_LARGE)),
    ]  # fmt: skip
    claims = [
        _test_claim(where, f"F1, {head}", STORIES, paper, *_head_extractors(head, "scope_f1")[1:], model)
        for where, model, head, paper in rows
    ]
    consistency = on_tables(TAU_F1, 2, 3), on_tables(TAU_F1, 4, 5)
    return [*claims, _test_claim("section 5.3", "consistency of F1", TAUS, Value(1.083e-05), *consistency, BASE)]


def _test_claim(
    where: str, what: str, on: tuple[str, ...], paper: Value, task: RunExtractor, control: RunExtractor, model: str
) -> Claim:
    """Return the claim about a p-value of the task's runs against the control's, with the sign in the paper."""
    effect = rank_sum_effect(task, control)
    if model in BETTER:
        pattern = Pattern("above that under the control", above=0.0, effect=effect)
    else:  # No number is above 0 and below 0: a test can show a difference, but not that there is none.
        pattern = Pattern("no difference from the control", above=0.0, below=0.0, effect=effect)
    return Claim(
        where, f"p of task against control, {what}", on, paper, rank_sum_p(task, control), "p", 6, pattern, model,
        RANK_SUM, significant=4,
    )  # fmt: skip


def _change_against_baseline_claims() -> list[Claim]:
    claims = []
    for model, numbers in CHANGE_AGAINST_BASELINE.items():
        for (name, letter), (tau, positive, negative) in zip(SCORES.items(), numbers, strict=True):
            on, what = (f"change_{name}",), f"{letter}, score before and its own change"
            read = mean_over_runs(change_statistic("baseline_tau"))
            claims.append(
                Claim("table A4", f"Kendall's tau, {what}", on, Value(tau), read, "tau", 3, model=model, note=BIASED)
            )
            counts = {"positive": (1, positive), "negative": (-1, negative), "any": (0, positive + negative)}
            for which, (sign, runs) in counts.items():
                claims.append(
                    Claim("table A4", f"significant, {which}: {what}", on, Value(float(runs), "of 10 runs"),
                          significant_changes(sign), "runs", 0, model=model)
                )  # fmt: skip
    return claims


CORRECTED_CHANGE = Claim(
    "not in the paper", "Kendall's tau, F1 before in one half of the texts and its change in the other", F1,
    Value(math.nan), corrected_change, "tau", 3,
    Pattern("below 0", below=0.0),
    note=("chance in the score before no longer counts as change; below 0, heads with a high score gain less than "
         "others"),
)  # fmt: skip


def _consistency_claims() -> list[Claim]:
    claims = []
    for model, groups in CONSISTENCIES.items():
        where = "table 4" if model == BASE else "table A5"
        for group, numbers in groups.items():
            for (name, letter), (tau, sd, runs) in zip(SCORES.items(), numbers, strict=True):
                per_run, count = consistency_per_run(f"scope_{name}"), significant_consistencies(f"scope_{name}")
                what, places = f"{letter}, {TUNED_ON[group]}", (2, 3) if group == "task" else (4, 5)
                pattern = _consistency_pattern(model) if (group, name) == ("task", "f1") else None
                on = tuple(TAUS[place] for place in places)
                if pattern is not None:  # the pattern needs all tables
                    on, per_run, count = TAUS, on_tables(per_run, *places), on_tables(count, *places)
                read, title = mean_over_runs(per_run), f"Kendall's tau between the corpora, {what}"
                claim = Claim(where, title, on, Value(tau), read, "tau", 3, pattern, model)
                claims += _mean_and_sd(claim, per_run, sd)
                claims.append(
                    Claim(where, f"significant between the corpora, {what}", on, Value(float(runs), "of 10 runs"),
                          count, "runs", 0, model=model)
                )  # fmt: skip
    return claims


TAU_F1 = consistency_per_run("scope_f1")


def _consistency_pattern(model: str) -> Pattern | None:
    before = on_tables(lambda story, review: Value(consistencies(story, review, "scope_f1").taus[0]), 0, 1)
    control = mean_over_runs(on_tables(TAU_F1, 4, 5))
    if model in BETTER:
        return Pattern("above that before fine-tuning and under the control", above=largest(before, control))
    if model == LARGE:
        return Pattern("above that under the control", above=control)
    return None


def _layer_claims() -> list[Claim]:
    inside, outside = (mean_over_runs(layer_change(*HALF_TO_DEEP, others=others)) for others in (False, True))
    control = mean_over_runs(layer_change(*HALF_TO_DEEP, group="control"))
    return [
        Claim(where, f"mean change of F1, half of the depth to five sixths, {beside}", F1, Value(math.nan, "most"),
              inside, "points", 1, Pattern(says, above=above), model)
        for model in (BASE, ROBERTA, ROBERTA_LARGE)
        for where in ("figure 5" if model == BASE else "figure A6",)
        for beside, says, above in (
            ("beside other layers", "more than in other layers", outside),
            ("beside the control", "more than under the control", control),
        )
    ]  # fmt: skip


RANK_SUM = "exact two-sided rank-sum test between runs"
BIASED = (
    "biased: a head that scores high by chance has less to gain, so that unrelated scores give -0.50; the p-values "
    "assume independent heads"
)

DERIVED = {f"change_{name}": Derived(STORIES, partial(compare_variable, variable=f"scope_{name}")) for name in SCORES}
"""The tables that compare heads on stories: before tuning, tuned on the task, and tuned on the control."""

CLAIMS = (
    *_task_score_claims(), SELECTIVITY, *_head_claims(), *_test_claims(), *_layer_claims(),
    *_change_against_baseline_claims(), CORRECTED_CHANGE, *_consistency_claims(),
)  # fmt: skip

TUNING = Tuning(
    tasks=("negation",),
    corpora={"negation": "negation/conandoyle_zhao/data_story.json"},
    measured=("story", "review"),
    epochs=50,
    learning_rate=4e-5,
    paper="10 runs of 50 epochs at a learning rate of 4e-5; the epoch that is best on the test split",
)

RECORDING = Recording(
    arrays={
        "story": "story_pretrained", "story_task": "story_neg", "story_control": "story_control",
        "review": "review_pretrained", "review_task": "review_neg", "review_control": "review_control",
    },
    needed=STORIES,
    variables=tuple(f"scope_{name}" for name in SCORES),
    units="share of words",
    source="recorded scores; Zhao and Bethard 2020, section 4.1",
    task="negation",
    notes=(
        "Kendall's tau between a head's score before and its own change is biased downwards: unrelated scores give "
        "-0.50. The corrected tau takes the two from different texts; for that it needs the counts of each part of "
        "the corpus, which recorded scores do not have. Measure the models to get it.",
        "Kendall's p-values, and so the counts of significant runs, assume independent heads, which they are not.",
        "p-values are of the exact two-sided tests: rank-sum between the runs of negation and control, signed-rank of "
        "the runs against the model before. These reproduce the paper's.",
        "The arrays do not hold the baselines, the regression and the scores of the models on the task. Measure a "
        "model to get the first two (`headscope study zhao2020 --model ...`), fine-tune it to get all (`--seeds`).",
    ),
)  # fmt: skip
"""The layout of the files that the authors released, with arrays in place of pickles."""
