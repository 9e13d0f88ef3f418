"""Clark, Khandelwal, Levy and Manning 2019, What Does BERT Look At?: tables 1 to 3, figures 2 to 4 and 6."""

import math
from contextlib import suppress

import xarray as xr

from headscope.analyse import add_behaviours, add_head_map
from headscope.errors import TableError
from headscope.studies.extractors import (
    best_head,
    best_head_value,
    best_relation_head,
    best_relation_offset,
    count_heads_above,
    layer_of_top_head,
    mean_of_layers,
    share_of_heads_below,
    single_value,
    top_layer,
)
from headscope.studies.probe_extractors import best_structural_probe, probe_accuracy, probe_gain
from headscope.studies.study import Claim, Derived, Extractor, Measurement, NotMeasuredError, Pattern, Study, Value
from headscope.studies.study_names import NAMES
from headscope.view.figures import draw_layers
from headscope.view.figures.draw_head_map import draw_head_map
from headscope.view.figures.draw_probes import draw_accuracies

BERT = "BERT-base"
EWT = (
    "ud/UD_English-EWT/en_ewt-ud-dev.conllu",
    "UD English EWT, development set: https://github.com/UniversalDependencies/UD_English-EWT",
)
"""The path and the source of the treebank that replaces the papers' treebanks."""
TREEBANK, COREFERENCE, TEXT, GRADIENTS, MAP = ("treebank",), ("coreference",), ("text",), ("text_gradients",), ("map",)
PROBES = ("probe",)

RELATIONS = {
    # Stanford: (Universal Dependencies, head, accuracy, baseline, its offset)
    "All": (("all",), "7-6", 34.5, 26.3, "+1"),
    "prep": ((), "7-4", 66.7, 61.8, "-1"),
    "pobj": (("case",), "9-6 head to dependent", 76.3, 34.6, "-2"),
    "det": ((), "8-11", 94.3, 51.7, "+1"),
    "nn": (("compound",), "4-10", 70.4, 70.2, "+1"),
    "nsubj": ((), "8-2", 58.5, 45.5, "+1"),
    "amod": ((), "4-10", 75.6, 68.3, "+1"),
    "dobj": (("obj",), "8-10", 86.8, 40.0, "-2"),
    "advmod": ((), "7-6", 48.8, 40.2, "+1"),
    "aux": ((), "4-10", 81.1, 71.5, "+1"),
    "poss": (("nmod:poss",), "7-6", 80.5, 47.7, "+1"),
    "auxpass": (("aux:pass",), "4-10", 82.5, 40.5, "+1"),
    "ccomp": ((), "8-1", 48.8, 12.4, "-2"),
    "mark": ((), "8-2", 50.7, 14.5, "+2"),
    "prt": (("compound:prt",), "6-7", 99.1, 91.4, "-1"),
}
"""Table 1. Labels of the paper are used if the treebank has them, and else those of Universal Dependencies."""

MAPPED = {
    "All": "all relations but punct and root, which the paper counts too",
    "prep": "in Universal Dependencies a preposition depends on its noun, not on what the phrase belongs to",
    "pobj": "`case` read backwards: there the preposition depends on its noun; genitive 's is also `case`",
    "nn": "`compound`; names are `flat` there",
    "dobj": "`obj`",
    "nsubj": "in both schemes without passive subjects",
    "advmod": "with *not*, which is neg in the paper",
    "aux": "without infinitival to, which is `mark` there",
    "poss": "`nmod:poss`; the paper also counts 's as right, which is not done here",
    "auxpass": "`aux:pass`",
    "mark": "with infinitival to, which is aux in the paper",
    "prt": "`compound:prt`",
}
"""Notes for comparing the paper's relations with those of Universal Dependencies."""

MENTIONS = {
    "all": (65, 27, 52, 69),
    "pronoun": (64, 29, 47, 70),
    "proper": (73, 29, 67, 77),
    "nominal": (58, 19, 40, 60),
}
"""Table 2, by class of mentions: head 5-4, nearest mention, head match, rules."""

RULES = {"nearest": "nearest mention", "head_match": "head match", "rules": "rule-based"}
"""The names of the rules of table 2 in a head table, and in the paper."""


def _table_1_claims() -> list[Claim]:
    claims = []
    for label, (others, head, accuracy, baseline, offset) in RELATIONS.items():
        labels, swapped = (label, *others), label == "pobj"
        where, fixed = f"table 1, {label}", best_relation_offset(*labels, swapped=swapped)
        claims += [
            Claim(where, "best head", TREEBANK, Value(accuracy, head), best_relation_head(*labels, swapped=swapped),
                  pattern=Pattern("above the best fixed offset", above=fixed), model=BERT, note=MAPPED.get(label, "")),
            Claim(where, "best fixed offset", TREEBANK, Value(baseline, offset), fixed),
        ]  # fmt: skip
    return claims


def _table_2_claims() -> list[Claim]:
    claims = []
    for mention, (head, *rules) in MENTIONS.items():
        where, score = f"table 2, {mention}", "antecedent_accuracy"
        # The paper shows one head for all classes: the best over all mentions.
        read = best_head_value(score, by=score, mention=mention)
        if mention == "all":
            read = best_head(score, prefix="antecedent_", mention="all")
        above = Pattern("above head match", above=single_value("antecedent_head_match", mention=mention))
        paper = Value(float(head), "5-4")
        claims.append(Claim(where, "best head", COREFERENCE, paper, read, digits=0, pattern=above, model=BERT))
        for (rule, what), number in zip(RULES.items(), rules, strict=True):
            read = single_value(f"antecedent_{rule}", mention=mention)
            claims.append(Claim(where, what, COREFERENCE, Value(float(number)), read, digits=0))
    return claims


def _share_from_dependent(table: xr.Dataset) -> Value:
    """Return the share of the relations whose best head attends from the dependent to its head."""
    count, exceptions = 0, []
    for label, (others, *_) in RELATIONS.items():
        with suppress(NotMeasuredError):
            best = best_relation_head(label, *others, swapped=label == "pobj")(table)
            count += 1
            exceptions += [label] if "head to dependent" in best.detail else []
    detail = f"all but {', '.join(exceptions)}" if exceptions else "all"
    return Value(100 * (count - len(exceptions)) / max(count, 1), detail)


def _map_heads(text: xr.Dataset) -> xr.Dataset:
    """Return a table of texts together with the head map and the behaviours of its heads."""
    try:
        return add_behaviours(add_head_map(text))
    except TableError as error:
        raise NotMeasuredError(str(error).rstrip(".")) from error


def _table_3_claims() -> list[Claim]:
    attention, both, words, untrained, next_word = (
        "attention", "attention-and-words", "words-and-distances", "untrained-attention-and-words", "right-branching",
    )  # fmt: skip
    rows = (
        ("Right-branching", 26, next_word, None, ""),
        ("Distances + GloVe", 58, words, None, ""),
        ("Random Init Attn + GloVe", 30, untrained,
         Pattern("below words and distances", below=probe_accuracy(words)), ""),
        ("Attn", 61, attention, Pattern("above right-branching", above=probe_accuracy(next_word)),
         "here at the optimum; the paper's single pass is `attention-single-pass`"),
        ("Attn + GloVe", 77, both, Pattern("above the probe of attention alone", above=probe_accuracy(attention)), ""),
    )  # fmt: skip
    claims = [
        Claim("table 3", what, PROBES, Value(float(number)), probe_accuracy(name), "UAS", 0, pattern, BERT, note)
        for what, number, name, pattern, note in rows
    ]
    gain = Pattern("attention adds to words and distances", above=0.0)
    return [
        *claims,
        Claim("table 3", "Attn + GloVe less Distances + GloVe", PROBES, Value(19.0), probe_gain(both, words),
              "points of UAS", 0, gain, BERT),
        Claim("table 3", "structural probe", PROBES, Value(80.0), best_structural_probe(), "UUAS", 0, None, BERT,
              "undirected, and trained on hidden states: the paper says that it is not directly comparable"),
    ]  # fmt: skip


HALF_TO_DEEP = (6 / 12, 10 / 12)
"""Layers 6 to 10 of 12, as a share of the depth, to find them in a model of another depth."""

UP_TO_FOURTH, FROM_FIFTH = (0.0, 4 / 12), (5 / 12, 1.0)
"""Layers 1 to 4 and 5 to 12 of 12, as shares of the depth."""


def _gradient_from_fifth(name: str) -> Extractor:
    return mean_of_layers(f"gradient_{name}", *FROM_FIFTH, 1.0)


LOSS_NOTE = (
    "here the size of the gradient by one weight, of the loss that is summed over the masked tokens of a segment; the "
    "paper does not say how it sums"
)

TEXTUAL = (
    Claim("section 4.2", "relations for which the dependent attends to its head", TREEBANK,
          Value(100 * 14 / 15, "all but pobj"), _share_from_dependent, "% of relations", 0,
          Pattern("most relations", above=50.0), BERT),
    Claim("section 3.1", "heads with most of their attention on the token before", TEXT,
          Value(4.0, "layers 2, 4, 7, 8 of 12"), count_heads_above("mass_previous", 0.5), "heads", 0,
          Pattern("there are some", above=0.0), BERT),
    Claim("section 3.1", "heads with most of their attention on the token after", TEXT,
          Value(5.0, "layers 1, 2, 2, 3, 6 of 12"), count_heads_above("mass_next", 0.5), "heads", 0,
          Pattern("there are some", above=0.0), BERT),
    Claim("section 3.1", "heads with little attention on the token itself", TEXT,
          Value(math.nan, "most"), share_of_heads_below("mass_self", 0.1), "% of heads", 0,
          Pattern("most heads", above=50.0), BERT, "little: under a tenth"),
    Claim("figure 2, above", "layer that attends most to [CLS]", TEXT,
          Value(math.nan, "early"), top_layer("mass_cls"), "layer", 0, None, BERT),
    Claim("figure 2, above", "layer that attends most to [SEP]", TEXT,
          Value(math.nan, "middle"), top_layer("mass_sep"), "layer", 0,
          Pattern("after the one for [CLS] and before the one for . and ,",
                  top_layer("mass_cls"), top_layer("mass_punctuation")), BERT),
    Claim("figure 2, above", "layer that attends most to . and ,", TEXT,
          Value(math.nan, "deep"), top_layer("mass_punctuation"), "layer", 0, None, BERT),
    Claim("section 3.2", "attention to [SEP] from half of the depth to five sixths", TEXT,
          Value(math.nan, "over 50 in layers 6-10 of 12"), mean_of_layers("mass_sep", *HALF_TO_DEEP), "%", 1,
          Pattern("over half", above=50.0), BERT),
    Claim("figure 2, below", "the same from [SEP]", TEXT,
          Value(math.nan, "over 90"), mean_of_layers("mass_sep_from_sep", *HALF_TO_DEEP), "%", 1,
          Pattern("over nine tenths", above=90.0), BERT),
    Claim("figure 2, below", "the same from [SEP], beside other tokens", TEXT,
          Value(math.nan, "more"), mean_of_layers("mass_sep_from_sep", *HALF_TO_DEEP), "%", 1,
          Pattern("more than from other tokens", above=mean_of_layers("mass_sep_from_other", *HALF_TO_DEEP)), BERT),
    Claim("section 3.2, figure 3", "gradient of the loss by attention to [SEP], from five twelfths of the depth on",
          GRADIENTS, Value(math.nan, "very small from layer 5 of 12 on"), _gradient_from_fifth("sep"), "nats", 4,
          Pattern("below that of the layers before", below=mean_of_layers("gradient_sep", *UP_TO_FOURTH, 1.0)), BERT,
          LOSS_NOTE),
    *(
        Claim("figure 3", f"the same by attention to {what}", GRADIENTS, Value(math.nan), _gradient_from_fifth(name),
              "nats", 4, model=BERT, note="the paper prints a picture alone")
        for name, what in (("cls", "[CLS]"), ("punctuation", ". and ,"), ("other", "other tokens"))
    ),
    Claim("figure 4, above", "layer of the head with the greatest entropy", TEXT,
          Value(1.0, "of 12 layers"), layer_of_top_head("entropy"), "layer", 0,
          Pattern("in the first layer", below=2.0), BERT),
    Claim("section 3.3, figure 4, below", "entropy from [CLS] in the last layer", TEXT,
          Value(3.89, "layer 12 of 12"), mean_of_layers("entropy_from_cls", 1.0, 1.0, 1.0), "nats", 2,
          Pattern("above that from all tokens", above=mean_of_layers("entropy", 1.0, 1.0, 1.0)), BERT),
    Claim("section 6, figure 6", "mean distance of two heads of one layer", MAP,
          Value(math.nan, "often fairly close"), single_value("js_distance_within_layer", 1.0), "nats", 3,
          Pattern("below that of two heads of different layers",
                  below=single_value("js_distance_across_layers", 1.0)), BERT),
    Claim("section 6", "mean silhouette of clusters of heads", MAP,
          Value(math.nan, "several clear clusters"), single_value("cluster_silhouette", 1.0), "silhouette", 2,
          model=BERT, note="1 is well set apart, below about 0.25 there are no groups to speak of (Kaufman and "
          "Rousseeuw 1990); of the number of clusters with the largest, none of more than half of the heads"),
    Claim("section 6", "agreement of these clusters on two halves of the texts", MAP,
          Value(math.nan), single_value("cluster_stability", 1.0), "Rand index", 2, model=BERT,
          note="the paper has no such number"),
)  # fmt: skip
"""The claims of sections 3, 4.2 and 6, and figures 2 to 4 and 6, for which the paper prints no other numbers."""

CLARK2019 = Study(
    title=NAMES["clark2019"],
    # The paper's own model is not "the uncased BERT model", as it says, but the commands released with it use that one.
    models={
        BERT: ("bert-base-cased", "google-bert/bert-base-cased", "bert-base-uncased", "google-bert/bert-base-uncased")
    },
    measurements={
        "treebank": Measurement(
            *EWT, ("relations",), "Wall Street Journal part of the Penn Treebank, in Stanford Dependencies"
        ),
        "coreference": Measurement(
            "coref/ontogum/conll", "OntoGUM: https://github.com/amir-zeldes/gum, folder coref/ontogum",
            ("coreference",), "CoNLL-2012 (OntoNotes), documents cut to 128 tokens", max_tokens=128,
        ),
        "text": Measurement(
            "text/wikitext-2",
            "WikiText-2, the files wiki.valid.tokens and wiki.test.tokens: https://huggingface.co/datasets/Salesforce/wikitext",
            ("surface", "head_distances"),
            "1,000 random pairs of consecutive paragraphs of Wikipedia, cut to 128 tokens", sample=1000,
            loss=("masked-lm", "gradients"),
        ),
    },
    claims=(*_table_1_claims(), *_table_2_claims(), *_table_3_claims(), *TEXTUAL),
    figures={
        "figure-2": (TEXT, draw_layers.draw_special_tokens),
        "figure-3": (GRADIENTS, draw_layers.draw_gradients),
        "figure-4": (TEXT, draw_layers.draw_entropies),
        "figure-6": (MAP, draw_head_map),
        "table-3": (PROBES, draw_accuracies),
    },
    derived={"map": Derived(TEXT, _map_heads)},
    notes=(
        "The paper's treebank and coreference corpus are licensed, and its segments of Wikipedia were released only "
        "inside pickled attention maps. So no corpus is known to be the paper's own: its values are shown, and never "
        "required to be equal.",
        "The paper chooses the best head and offset on the same data that they are scored on, and so does the value "
        "next to the paper's. The held-out value is judged.",
        "Figure 3 is of the loss of masked language modelling, so it needs weights with the head for that.",
        "Figure 6 is of the mean divergence of two heads over tokens and texts; the paper sums over all tokens, and "
        "its code adds 0.001 / n to each weight. Heads are compared in 32 random tokens of each text.",
        "Table 3 is read from the folder of `headscope probe`, which takes longer than all the rest; the paper trains "
        "on the Penn Treebank, with vectors of GloVe.",
        "Not here: of table 2, the neural system, which is no attention head.",
    ),
)  # fmt: skip
