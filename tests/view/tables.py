"""Synthetic head tables for the tests of `headscope.view`: random numbers, no model.

Every axis has another prime length (5 layers, 7 heads, 3 relations, 2 directions), so that a
transposed axis cannot pass.
"""

import json
from collections.abc import Sequence

import numpy as np
import xarray as xr

from headscope import heads
from headscope.analyse.report import UNDECIDED
from headscope.reducers.coreference import ACCURACY as ANTECEDENTS
from headscope.reducers.relations import ACCURACY as RELATIONS
from headscope.reducers.surface import SHOWN
from headscope.score import write_scores

SHARES = {
    "mass_self": "attention to the token itself",
    "mass_previous": "attention to the token before",
    "mass_next": "attention to the token after",
    "mass_cls": "attention to [CLS]",
    "mass_sep": "attention to [SEP]",
    "mass_punctuation": "attention to . and ,",
    "mass_first": "attention to the first token",
    "mass_sep_from_sep": "attention from [SEP] to [SEP]",
    "mass_sep_from_other": "attention from other tokens to [SEP]",
}
NATS = {
    "entropy": "entropy of the attention of a token",
    "entropy_from_cls": "entropy of the attention of [CLS]",
    "entropy_uniform": "entropy of uniform attention",
}
SIDES = ["left", "right"]
CLASSES = ["ADJ", "NOUN", "NOUN/PROPN", "PRON", "PUNCT", "VERB", "X", "ADV", "DET", "AUX", "NUM"]
OFFSETS = [-5, -4, -3, -2, -1, 1, 2, 3, 4, 5]
LENGTHS = [-6, *OFFSETS, 6]
DIRECTIONS = ["dependent_to_head", "head_to_dependent"]
STACKS = {"encoder": 5, "decoder": 3, "cross": 3}
SOURCE = "Clark et al. 2019, section 3"


def head_table(
    layers: int = 5,
    count_of_heads: int = 7,
    relations: Sequence[str] = ("nsubj", "obj", "nsubj:pass"),
    *,
    attention_types: bool = False,
    rare: Sequence[str] = ("nsubj:pass",),
    model: str = "tiny/bert",
    seed: int = 0,
) -> xr.Dataset:
    """A head table of random numbers that follows the schema.

    Args:
        layers: layers of the model, or of its encoder.
        count_of_heads: heads in each layer.
        relations: names, most frequent first.
        attention_types: give the table a dim ``attention_type``; decoder and cross have 3 layers, NaN beyond.
        rare: relations that are too rare to report.
        model: the model's name.
        seed: of the random numbers.
    """
    random = np.random.default_rng(seed)
    dims = ("attention_type", "layer", "head") if attention_types else ("layer", "head")
    shape = ((len(STACKS),) if attention_types else ()) + (layers, count_of_heads)

    def per_head(values: np.ndarray) -> np.ndarray:
        """Blank the layers that a shorter attention type does not have."""
        if attention_types:
            for position, depth in enumerate(STACKS.values()):
                values[position, depth:] = np.nan
        return values

    variables: dict[str, xr.DataArray] = {}

    def add(key: str, values: np.ndarray, over: Sequence[str], name: str, units: str) -> None:
        title, target, baseline = SHOWN.get(key, ("", "", ""))
        shown = {"title": title, "target": target, "baseline": baseline}
        variables[key] = heads.variable(values, over, name=name, units=units, source=SOURCE, **shown)

    for key, name in SHARES.items():
        add(key, per_head(random.beta(1, 6, shape)), dims, name, "share of attention")
    for key, name in NATS.items():
        values = np.full(shape, np.log(31.0)) if key == "entropy_uniform" else random.uniform(0.2, 3.4, shape)
        add(key, per_head(values), dims, name, "nats")
    _add_relations(add, per_head, random, dims, shape, list(relations))
    _add_reported(add, variables, random, list(relations), rare, layers, count_of_heads, attention_types)
    add("mean_distance", per_head(random.uniform(1, 23, shape)), dims, "distance", "tokens")

    coords: dict[str, object] = {
        "layer": np.arange(1, layers + 1),
        "head": np.arange(1, count_of_heads + 1),
        "relation": list(relations),
        "direction": DIRECTIONS,
        "offset": OFFSETS,
        "side": SIDES,
        "word_class": CLASSES,
        "length": LENGTHS,
    }
    if attention_types:
        coords["attention_type"] = list(STACKS)
    attrs = {
        "model": model,
        "revision": "0a1b2c3d",
        "weights_sha256": "ab" * 32,
        "tokenizer": "BertTokenizer",
        "corpus": "ewt-test.conllu",
        "corpus_sha256": "cd" * 32,
        "documents": 211,
        "tokens": 25093,
        "skipped": json.dumps({"longer than 128 tokens": 17}),
        "seed": seed,
        "versions": json.dumps({"headscope": "0.1.0", "torch": "2.13.0"}),
        "call": "headscope atlas tiny/bert ewt-test.conllu -o out",
        "created": "2026-01-02T03:04:05+00:00",
        "scores": write_scores([RELATIONS]),
        "split": "Documents are assigned to two halves by a hash of their name.",
    }
    return heads.check(xr.Dataset(variables, coords=coords, attrs=attrs))


def _add_relations(add, per_head, random, dims, shape, relations) -> None:
    over = (*dims, "relation", "direction")
    accuracy = per_head(random.beta(1.5, 6, (*shape, len(relations), len(DIRECTIONS))))
    add("relation_accuracy", accuracy, over, "share of links whose most-attended word is right", "accuracy")
    add("relation_accuracy_lower", accuracy * 0.9, over, "lower end of the 95 % interval", "accuracy")
    add("relation_accuracy_upper", np.minimum(1, accuracy * 1.1), over, "upper end of the 95 % interval", "accuracy")
    counts = (4211 / 1.7 ** np.arange(len(relations))).astype(int)
    add("relation_count", counts, ("relation",), "links", "links")
    offsets = random.dirichlet(np.full(len(OFFSETS), 0.5), len(relations)) * 0.9
    add("offset_accuracy", offsets, ("relation", "offset"), "accuracy of a fixed offset", "accuracy")
    folds = (np.arange(2) == 0).astype(int)
    add("fold_link", counts[:, None] * folds, ("relation", "fold"), "links", "links")
    near = (counts[:, None] * offsets)[:, None] * folds[:, None]
    add("fold_offset", near, ("relation", "fold", "offset"), "links at an offset", "links")
    shares = random.beta(1, 7, (len(DIRECTIONS), len(relations), 1, len(SIDES), len(CLASSES)))
    by_class = np.rint(shares * counts[:, None, None, None] * folds[:, None, None]).astype(int)
    rule = ("direction", "relation", "fold", "side", "word_class")
    add("fold_upos", by_class, rule, "links that a rule by part of speech finds", "links")
    lengths = random.integers(0, 2, (len(relations), len(LENGTHS))) * random.integers(3, 97, len(LENGTHS))
    add("length_count", lengths, ("relation", "length"), "links of a length", "links")
    at_length = per_head(random.beta(1.5, 6, (*shape, len(relations), len(DIRECTIONS), len(LENGTHS))))
    at_length = np.where(lengths[:, None] > 0, at_length, np.nan)
    add("length_accuracy", at_length, (*over, "length"), "links of a length that the head gets right", "accuracy")


def _add_reported(add, variables, random, relations, rare, layers, count_of_heads, attention_types) -> None:
    n = len(relations)
    is_rare = np.isin(relations, list(rare))
    over = ("relation",)
    depth = min(layers, 3) if attention_types else layers
    add("reported_layer", np.where(is_rare, np.nan, random.integers(1, depth + 1, n)), over, "layer", "layer")
    add("reported_head", np.where(is_rare, np.nan, random.integers(1, count_of_heads + 1, n)), over, "head", "head")
    add("reported_direction", np.where(is_rare, "", random.choice(DIRECTIONS, n)), over, "direction", "direction")
    if attention_types:
        add(
            "reported_attention_type",
            np.where(is_rare, "", random.choice(list(STACKS), n)),
            over,
            "attention_type",
            "attention_type",
        )
    for key, low, high in (("heldout", 0.3, 0.9), ("untrained", 0.1, 0.3)):
        middle = np.where(is_rare, np.nan, random.uniform(low, high, n))
        add(f"{key}_accuracy", middle, over, f"{key} accuracy", "accuracy")
        add(f"{key}_lower", middle - 0.05, over, "lower end of the 95 % interval", "accuracy")
        add(f"{key}_upper", middle + 0.07, over, "upper end of the 95 % interval", "accuracy")
    add("heldout_count", random.integers(9, 2000, n), over, "held-out links", "links")
    add("heldout_clusters", random.integers(20, 33, n), over, "folds with held-out links", "folds")
    add("heldout_offset", np.where(is_rare, np.nan, random.choice(OFFSETS, n)), over, "best fixed offset", "words")
    offset = np.where(is_rare, np.nan, random.uniform(0.1, 0.5, n))
    add("heldout_offset_accuracy", offset, over, "its accuracy", "accuracy")
    add("heldout_offset_lower", offset - 0.03, over, "lower end of the 95 % interval", "accuracy")
    add("heldout_offset_upper", offset + 0.05, over, "upper end of the 95 % interval", "accuracy")
    upos = np.where(is_rare, np.nan, random.uniform(0.1, 0.3, n))
    add("heldout_upos_accuracy", upos, over, "its accuracy", "accuracy")
    add("heldout_upos_lower", upos - 0.02, over, "lower end of the 95 % interval", "accuracy")
    add("heldout_upos_upper", upos + 0.06, over, "upper end of the 95 % interval", "accuracy")
    add("heldout_upos_side", np.where(is_rare, "", random.choice(SIDES, n)), over, "side", "label")
    add("heldout_upos_word_class", np.where(is_rare, "", random.choice(CLASSES, n)), over, "class", "label")
    for rival in ("offset", "upos", "untrained"):
        lift = np.where(is_rare, np.nan, random.uniform(-0.2, 0.5, n))
        add(f"lift_over_{rival}", lift, over, f"lift over {rival}", "accuracy")
        add(f"lift_over_{rival}_lower", lift - 0.11, over, "lower end of the 95 % interval", "accuracy")
        add(f"lift_over_{rival}_upper", lift + 0.13, over, "upper end of the 95 % interval", "accuracy")
    strongest = random.choice(["offset", "upos", "untrained"], n)
    add("lift_rival", np.where(is_rare, "", strongest), over, "strongest rival", "label")
    for end in ("", "_lower", "_upper"):
        lifts = [variables[f"lift_over_{rival}{end}"].values[row] for row, rival in enumerate(strongest)]
        add(f"lift{end}", np.array(lifts), over, "lift over the strongest rival", "accuracy")
    verdicts = np.where(is_rare, "", random.choice(["stands out", "does not stand out", "cannot decide"], n))
    add("reported_verdict", verdicts, over, "verdict", "label")
    for key, low, high in (
        ("lift_detectable", 0.02, 0.2),
        ("reported_selection_frequency", 0, 1),
        ("reported_permuted", 0, 0.3),
    ):
        add(key, np.where(is_rare, np.nan, random.uniform(low, high, n)), over, key, "share")
    add("verdict_p", random.uniform(0, 0.04, n), over, "p-value of the verdict", "probability")


def with_verdicts(table: xr.Dataset, *verdicts: str) -> xr.Dataset:
    """A table with these verdicts on its relations."""
    decided = [verdict != UNDECIDED for verdict in verdicts]
    return table.assign(
        reported_verdict=("relation", list(verdicts), table["reported_verdict"].attrs),
        verdict_p=table["verdict_p"].where(xr.DataArray(decided, dims="relation")),
    )


def with_mentions(table: xr.Dataset) -> xr.Dataset:
    """A table that reports its first three relations once more, the other way round, as classes of mentions."""
    # Antecedents have no rule by part of speech.
    names = [
        name for name, values in table.data_vars.items() if values.dims == ("relation",) and "_upos" not in str(name)
    ]
    again = table[names].drop_vars(["relation_count", "reported_direction"]).isel(relation=[2, 1, 0])
    again = again.rename({name: f"antecedent_{name}" for name in again.data_vars} | {"relation": "mention"})
    again = again.assign_coords(mention=["all", "pronoun", "proper"])
    rival = again["antecedent_lift_rival"]
    again["antecedent_lift_rival"] = rival.where(rival != "upos", "offset").astype(str)
    about = table["relation_accuracy"].attrs
    scores = table["relation_accuracy"].isel(relation=[2, 1, 0], direction=0).transpose(..., "relation").values
    again["antecedent_accuracy"] = (["layer", "head", "mention"], scores, about)
    again["antecedent_count"] = ("mention", [53, 43, 5], about)
    again["antecedent_nearest"] = ("mention", [0.31, 0.37, 0.41], about)
    scores = write_scores([RELATIONS, ANTECEDENTS])
    return heads.check(xr.merge([table, again]).assign_attrs(scores=scores))
