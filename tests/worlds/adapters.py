"""Adapters of a model with random heads: one that makes a head look from nouns to verbs, and one that is a placebo."""

import peft
import torch
import xarray as xr

import planted
from headscope.analyse.comparable import split_runs
from headscope.analyse.placebos import CHANGED, compare_with_placebos
from headscope.capture.model.model import Model
from headscope.capture.open.loading import load
from headscope.corpora import summarize
from headscope.reducers.support.permutations import with_permutations
from headscope.runner import measure, measure_placebos, resolve_reducers

LAYER, HEAD = 2, 3
"""The head that the adapter changes, counted from 1."""

STRENGTH, NOISE = 12.0, 0.02
"""Of the rule of that head, in logits, and of what the adapter adds to all heads."""

PLACEBOS, DOCUMENTS = 19, 60


def make(seed: int) -> Model:
    """Return the model, whose heads look at words and places at random."""
    model, draw = planted.plant({}), torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for layer in model.module.encoder.layer:
            for part in (layer.attention.self.query, layer.attention.self.key):
                part.weight.copy_(torch.randn(part.weight.shape, generator=draw))
    return load((model.module, model.tokenizer))


def adapt(seed: int) -> Model:
    """Return it with an adapter that gives a rule to one head, and a little noise to all."""
    model, draw = make(seed), torch.Generator().manual_seed(seed + 1)
    config = peft.LoraConfig(r=2, lora_alpha=2, target_modules=["query", "key"], lora_dropout=0)
    module = peft.get_peft_model(model.module, config).get_base_model()
    rules = torch.zeros(2, planted.SIZE, planted.HEADS * planted.SIZE)
    planted.from_to("noun", "verb")(*rules)
    with torch.no_grad():
        for number, layer in enumerate(module.encoder.layer, start=1):
            for part, rule in zip((layer.attention.self.query, layer.attention.self.key), rules, strict=True):
                first, second = part.lora_A["default"].weight, part.lora_B["default"].weight
                first.copy_(torch.randn(first.shape, generator=draw))
                second.copy_(NOISE * torch.randn(second.shape, generator=draw))
                if number == LAYER:  # the rule has one row
                    first[0] = rule[0]
                    second[(HEAD - 1) * planted.SIZE, 0] += STRENGTH**0.5 * planted.SIZE**0.25
    return load((module, model.tokenizer))


def measure_world(seed: int) -> tuple[xr.Dataset, xr.Dataset, xr.Dataset]:
    """Return the tables of a model, of it with the adapter, and of placebos of that, one more than are needed."""
    documents, adapted = planted.documents(DOCUMENTS, seed), adapt(seed)
    reducers = [with_permutations(*resolve_reducers(["relations"], summarize(documents)), 0)]
    before, after = (measure(model, documents, reducers) for model in (make(seed), adapted))
    return before, after, measure_placebos(adapted, PLACEBOS + 1, documents, reducers)


def list_changed(before: xr.Dataset, after: xr.Dataset, placebos: xr.Dataset) -> set[str]:
    """Return the heads that an adapter is said to change."""
    test = compare_with_placebos(before, after, [placebos], [("relation_accuracy", {})])
    return {*test["place"].values[test["verdict"].values == CHANGED]}


def judge_world(seed: int) -> tuple[set[str], set[str]]:
    """Return the heads that the adapter is said to change, and those that the last placebo is said to change."""
    before, after, placebos = measure_world(seed)
    others, (last,) = placebos.isel(run=slice(PLACEBOS)), split_runs(placebos.isel(run=[PLACEBOS]))
    # The placebos of a placebo would be drawn as this one was, of the same singular values.
    return list_changed(before, after, others), list_changed(before, last, others)
