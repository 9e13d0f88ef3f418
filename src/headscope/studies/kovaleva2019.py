"""Kovaleva, Romanov, Rogers and Rumshisky 2019, Revealing the Dark Secrets of BERT.

Semantic roles (section 4.2), changes by fine-tuning (4.3), attention to classes of tokens (4.4) and from [CLS] in the
last layer (4.5), effects of disabling heads and layers (4.6). The study measures the statements of the paper's text;
most figures of the paper are pictures without numbers.
"""

import math
from functools import partial

import numpy as np
import xarray as xr

from headscope.analyse.metrics import read_metrics
from headscope.heads import head_name
from headscope.studies.clark2019 import EWT
from headscope.studies.effect_extractors import best_gain, count_better_without, layer_gain, mean_gain
from headscope.studies.extractors import (
    PERCENT,
    best_head,
    best_head_value,
    best_offset,
    largest,
    mean_of_heads,
    mean_of_layers,
)
from headscope.studies.run_extractors import (
    average_head,
    deep_layers,
    lowest_other_layer,
    mean_over_runs,
    on_tables,
)
from headscope.studies.study import Claim, Extractor, Measurement, NotMeasuredError, Pattern, Study, Tuning, Value
from headscope.studies.study_names import NAMES
from headscope.view.figures import draw_heatmaps, draw_runs
from headscope.view.figures.draw_effects import draw_head_effects, draw_layer_effects
from headscope.view.figures.draw_patterns import draw_shares

BERT = "BERT-base"
CLASSES, ROLES = ("classes",), ("roles",)
WORD_CLASSES = {
    "noun": "nouns",
    "verb": "verbs",
    "pronoun": "pronouns",
    "subject": "subjects",
    "object": "objects",
    "negation": "words of negation",
}


def _attention_to(name: str) -> Extractor:
    return mean_of_heads("token_class_attention", token_class=name)


def _attention_from_cls_to(name: str) -> Extractor:
    return mean_of_layers("token_class_attention_from_cls", 1.0, 1.0, token_class=name)


def _count_heads_for_roles(table: xr.Dataset) -> Value:
    """Count the heads whose weight between predicate and role is surely over twice their weight between any words."""
    if "role_weight_lower" not in table or not bool(table["role_weight_lower"].notnull().any()):
        raise NotMeasuredError("no role of the corpus counts")
    above = (table["role_weight_lower"] > 2 * table["role_weight_anywhere"]).transpose("layer", "head")
    names = [head_name(layer + 1, head + 1) for layer, head in np.argwhere(above.values).tolist()]
    return Value(float(len(names)), ", ".join(names))


SPECIAL = largest(_attention_to("cls"), _attention_to("sep"))
MORE_THAN_WORDS = Pattern("more than to any class of words", above=largest(*map(_attention_to, WORD_CLASSES)))

TASKS = {"mrpc": "MRPC", "rte": "RTE", "cola": "CoLA", "sst2": "SST-2", "stsb": "STS-B", "wnli": "WNLI"}
"""The GLUE tasks of the paper; QNLI and QQP are not read."""

RUNS, CLASS_RUNS = ("texts_task", "texts_control"), ("classes_task",)
LAST = 10 / 12
"""A depth, as a share of all layers: deeper are only the last two of 12 layers."""

LAST_LAYER = 0.999
"""A depth, as a share of all layers: deeper is only the last layer."""


def _last_layers(group: int) -> Extractor:
    return mean_over_runs(on_tables(deep_layers("similarity", LAST, scale=1.0), group))


def _from_cls_after(name: str) -> Extractor:
    return mean_over_runs(deep_layers("token_class_attention_from_cls", LAST_LAYER, token_class=name))


def _attention_to_after(name: str) -> Extractor:
    return mean_over_runs(average_head("token_class_attention", token_class=name))


def _change_to(variable: str) -> Extractor:
    per_run = average_head(variable)
    return mean_over_runs(lambda before, after: per_run(after) - PERCENT * float(before[variable].mean()))


OTHER_LAYERS = mean_over_runs(on_tables(lowest_other_layer("similarity", LAST, scale=1.0), 0))

TUNED = (
    Claim("section 4.3, figure 5", "similarity of maps before and after, last sixth of the layers", RUNS,
          Value(math.nan, "least, last two of 12 layers"), _last_layers(0), "cosine", 3,
          Pattern("below that of every other layer", below=OTHER_LAYERS), BERT),
    Claim("not in the paper", "the same, tuned on arbitrary labels", RUNS, Value(math.nan), _last_layers(1), "cosine",
          3, Pattern("above that of the task", above=_last_layers(0)),
          note="if this is as low, the change is not due to the task: last layers get the largest gradients in any "
               "training"),
    *(
        Claim("section 4.4, figure 6", f"change of attention to {name}, average head", ("texts", "texts_task"),
              Value(math.nan, "no change" if name == "[CLS]" else "most stays"), _change_to(variable), "points")
        for name, variable in (("[CLS]", "mass_cls"), ("[SEP]", "mass_sep"))
    ),
    Claim("section 4.4, figure 6", "attention to [SEP] after fine-tuning, average head", CLASS_RUNS,
          Value(math.nan, "most, with [CLS]"), _attention_to_after("sep"), model=BERT,
          pattern=Pattern("more than to any class of words", above=largest(*map(_attention_to_after, WORD_CLASSES)))),
    Claim("section 4.5, figure 7", "attention from [CLS] to [SEP] after fine-tuning, last layer", CLASS_RUNS,
          Value(math.nan, "most"), _from_cls_after("sep"), model=BERT,
          pattern=Pattern("more than to any class of words", above=largest(*map(_from_cls_after, WORD_CLASSES)))),
    *(
        Claim("section 4.5, figure 7", f"attention from [CLS] to {name} after fine-tuning, last layer", CLASS_RUNS,
              Value(math.nan, "less"), _from_cls_after(key), model=BERT)
        for key, name in WORD_CLASSES.items()
    ),
)  # fmt: skip
"""The claims of sections 4.3 to 4.5, on fine-tuned models."""

MAP_TABLES = ("maps", "maps_task")
"""The tables with patterns of maps before and after fine-tuning, in 200 texts of the task."""

MAPS = tuple(
    claim
    for pattern, paper in {
        "vertical": Value(30.0, "of 400 maps that were labelled"),
        "diagonal": Value(math.nan),
        "vertical+diagonal": Value(math.nan),
        "block": Value(math.nan, "some, where a task has pairs"),
        "heterogeneous": Value(math.nan, "varies with the task"),
    }.items()
    for claim in (
        Claim("section 4.1, figure 2", f"{pattern} maps", MAP_TABLES[:1], paper,
              mean_of_heads("pattern_share", pattern=pattern), "% of maps",
              note="before fine-tuning" if paper.detail else "before fine-tuning; the paper prints a picture alone"),
        Claim("section 4.1, figure 2", f"{pattern} maps after fine-tuning", MAP_TABLES[1:], Value(math.nan),
              mean_over_runs(average_head("pattern_share", pattern=pattern)), "% of maps",
              note="the paper prints a picture alone"),
    )
)  # fmt: skip
"""The claims of section 4.1."""

EFFECTS = ("effects_task",)
HELD_OUT = "held out: in each run the best of the other runs, on the same examples"
BEYOND = Pattern("a gain beyond the placebos", above=0.0)

DISABLED = (
    Claim("section 4.6, figure 8", "gain from disabling one head, best head", EFFECTS,
          Value(math.nan, "0.1 (STS-B) to 1.2 (MRPC)"), best_gain("head"), "points", 1, Pattern("a gain", above=0.0),
          BERT, HELD_OUT),
    Claim("not in the paper", "the same, less that of the head's placebos", EFFECTS, Value(math.nan),
          best_gain("head", beyond_placebos=True), "points", 1, BEYOND, BERT,
          "placebos: changes of the layer's output that are as large, in random directions"),
    Claim("section 4.6, figure 8", "heads that are better disabled, beyond their placebos", EFFECTS,
          Value(math.nan, "some in each task"), count_better_without("head"), "heads", 0,
          Pattern("there are some", above=0.0), BERT,
          "here: on the average of the runs, or in one of them, corrected for all heads (and runs)"),
    Claim("section 4.6, figure 8", "gain from disabling one head, average head", EFFECTS,
          Value(math.nan, "a gain in MRPC and RTE"), mean_over_runs(mean_gain("head", tasks=("mrpc", "rte"))),
          "points", 2, Pattern("a gain", above=0.0), BERT),
    Claim("not in the paper", "gain with a head's placebos, average head", EFFECTS, Value(math.nan),
          mean_over_runs(mean_gain("head", placebos=True)), "points", 2, None, BERT,
          "what changes as large in random directions bring"),
    Claim("section 4.6, figure 9", "gain from disabling one layer, best layer", EFFECTS, Value(math.nan, "a gain"),
          best_gain("layer"), "points", 1, Pattern("a gain", above=0.0), BERT, HELD_OUT),
    Claim("not in the paper", "the same, less that of the layer's placebos", EFFECTS, Value(math.nan),
          best_gain("layer", beyond_placebos=True), "points", 1, BEYOND, BERT),
    Claim("section 4.6, figure 9", "gain from disabling the first layer", EFFECTS, Value(3.2, "RTE"),
          mean_over_runs(layer_gain(1, tasks=("rte",))), "points", 1, Pattern("a gain", above=0.0), BERT),
)  # fmt: skip
"""The claims of section 4.6; a disabled head attends equally to all tokens."""

KOVALEVA2019 = Study(
    title=NAMES["kovaleva2019"],
    models={BERT: ("bert-base-uncased", "google-bert/bert-base-uncased")},
    measurements={
        "classes": Measurement(*EWT, ("classes",), "development sets of GLUE"),
        "roles": Measurement(
            "framenet/UP_English-EWT/en_ewt-up-dev.conllu",
            "Universal Propositions, English EWT, development set: https://github.com/UniversalPropositions/UP-1.0",
            ("roles",), "FrameNet: core elements of frames",
        ),
        "texts": Measurement(
            "", "the test split of the task", ("surface",), "development sets of GLUE", sample=1000, of_task=True,
            tuned=("similarity",),
        ),
        "maps": Measurement(
            "", "the test split of the task", ("map_patterns",), "development sets of GLUE", sample=200, of_task=True
        ),
        "effects": Measurement(
            "", "the test split of the task", (), "development sets of GLUE", of_task=True, disabled_by=("uniform",)
        ),
    },
    claims=(
        *MAPS,
        Claim("section 4.2", "heads that link a predicate to what fills its roles", ROLES, Value(2.0, "of 144"),
              _count_heads_for_roles, "heads", 0, Pattern("there are some", above=0.0), BERT,
              "here: those that give the two over twice the weight that they give any two words of the sentence"),
        Claim("section 4.2, figure 3", "weight between the two, best head", ROLES, Value(math.nan, "some heads"),
              best_head("role_weight", prefix="role_", score="weight"), "% of attention", 1,
              Pattern("above that between any two words",
                      above=best_head_value("role_weight_anywhere", by="role_weight")), BERT),
        Claim("not in the paper", "the same, were all attention at the best fixed offset", ROLES, Value(math.nan),
              best_offset("role_weight_offset", by="role_weight_offset"), "% of attention",
              note="a head that knows only the distance could reach this"),
        *(
            Claim("section 4.4", f"attention to {name}, average head", CLASSES, Value(math.nan, "negligible"),
                  _attention_to(key), pattern=Pattern("less than to the greater of [CLS] and [SEP]", below=SPECIAL),
                  model=BERT)
            for key, name in WORD_CLASSES.items()
        ),
        Claim("section 4.4, figure 6", "attention to [CLS], average head", CLASSES, Value(math.nan, "most, with [SEP]"),
              _attention_to("cls"), pattern=MORE_THAN_WORDS, model=BERT),
        Claim("section 4.4, figure 6", "attention to [SEP], average head", CLASSES, Value(math.nan, "most, with [CLS]"),
              _attention_to("sep"), pattern=MORE_THAN_WORDS, model=BERT),
        Claim("section 4.5, figure 7", "attention from [CLS] to [SEP], last layer", CLASSES, Value(math.nan, "most"),
              _attention_from_cls_to("sep"), model=BERT,
              pattern=Pattern("more than to any class of words",
                              above=largest(*(_attention_from_cls_to(key) for key in WORD_CLASSES)))),
        *(
            Claim("section 4.5, figure 7", f"attention from [CLS] to {name}, last layer", CLASSES,
                  Value(math.nan, "less"), _attention_from_cls_to(key), model=BERT)
            for key, name in WORD_CLASSES.items()
        ),
        *TUNED,
        *DISABLED,
    ),
    tuning=Tuning(
        tasks=tuple(TASKS),
        corpora={name: f"glue/{folder}" for name, folder in TASKS.items()},
        measured=("classes", "texts", "maps"),
        epochs=3,
        learning_rate=2e-5,
        paper="each GLUE set, one run; figure 5 is over its development set",
    ),
    figures={
        "figure-2": (
            MAP_TABLES,
            lambda before, after: draw_shares({"before fine-tuning": before, "after fine-tuning": after}),
        ),
        "figure-3": (ROLES, partial(draw_heatmaps.draw_score_heatmap, variable="role_weight")),
        "figure-6": (CLASSES, partial(draw_heatmaps.draw_score_heatmap, variable="token_class_mass")),
        "figure-5": (RUNS, draw_runs.draw_similarity_heatmap),
        "figure-6-tuned": (
            ("classes", "classes_task"),
            partial(draw_runs.draw_class_heatmaps, variable="token_class_attention"),
        ),
        "figure-7-tuned": (
            ("classes", "classes_task"),
            partial(draw_runs.draw_class_heatmaps, classes=("cls", "sep", *WORD_CLASSES),
                    variable="token_class_attention_from_cls"),
        ),
        "figure-8": (EFFECTS, lambda effects: draw_head_effects(effects, read_metrics(effects)[0])),
        "figure-9": (EFFECTS, lambda effects: draw_layer_effects(effects, read_metrics(effects)[0])),
    },
    notes=(
        "The paper prints these results as pictures; where it gives no number, its column quotes its words.",
        "The paper finds words by their letters; here they are found by position and annotation, so that *north* is "
        "not a negation. A class counts with its token that gets most attention.",
        "Each task has a control, which the paper does not have: the same texts with arbitrary labels. The classes of "
        "words of fine-tuned models are measured on the treebank, since GLUE has no annotation of words.",
        "Heads and layers are disabled in the models that were tuned on the task itself; the folder effects has the "
        "effects in each run, on all metrics.",
        "The kinds of maps are told apart by the classifier that comes with headscope, which was trained on maps of "
        "MiniLM (macro F1 .83 on maps that it was not trained on). The paper's was trained on maps of BERT-base, and "
        "neither it nor its 400 labels were published.",
    ),
)  # fmt: skip
