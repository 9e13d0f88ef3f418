"""The cost of disabling all heads and layers, as ratios to plain evaluations of the same model.

    python benchmarks/disabling.py PAIRS [--model minilm] [--examples 400] [--rounds 5]

PAIRS is the folder of a task of sentence pairs, such as MRPC, as `headscope tune` reads it. The model gets a new layer
for the task, since its speed does not depend on what it has learnt. All evaluations run in this process in turn, round
after round; a ratio is taken within a round, and the median over the rounds is reported.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from statistics import median

import torch
from transformers import AutoModelForSequenceClassification

import headscope
from headscope.capture.forward.interface import Capture
from headscope.capture.model.model import Model
from headscope.capture.open.loading import source
from headscope.capture.passes.projection import find_projections
from headscope.intervene.ablation import HEAD, LAYER, Ablation, list_ablations, list_units
from headscope.intervene.edit import capture_model, collate_sample
from headscope.intervene.effect import Outcomes, measure_outcomes
from headscope.intervene.estimate import estimate_changes
from headscope.intervene.evaluation import Evaluation, compute_logits
from headscope.intervene.labels import prepare_task
from headscope.intervene.ways import Ways
from headscope.learn.task import TEST, Task


def main() -> None:
    """Time all heads and layers, and estimates of all heads, beside the whole model, and print the ratios."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("pairs", type=Path)
    arguments.add_argument("--task", default="mrpc")
    arguments.add_argument("--model", default="minilm")
    arguments.add_argument("--examples", type=int, default=400)
    arguments.add_argument("--rounds", type=int, default=5)
    given = arguments.parse_args()
    task = sample(headscope.learn.read_task(given.task, given.pairs), given.examples)
    model = load(given.model, task)
    evaluation, capture = prepare_task(model, task), capture_model(model)
    ablations = list_ablations([u for u in list_units(model) if u.kind in (HEAD, LAYER)], ["uniform"], {})
    print(f"{len(task.splits[TEST])} examples, {evaluation.tokens:,} tokens, {len(ablations)} heads and layers")
    plain, disabled, trained, estimated = [], [], [], []
    for _ in range(given.rounds):
        plain.append(clock(lambda: evaluate_plainly(model, evaluation)) * len(ablations))
        disabled.append(clock(lambda: disable_all(capture, evaluation, ablations)))
        trained.append(clock(lambda: differentiate(model, evaluation)))
        estimated.append(clock(lambda: estimate_changes(capture, evaluation, ["uniform"], Ways())))
    faster = median(before / after for before, after in zip(plain, disabled, strict=True))
    dearer = median(after / before for before, after in zip(trained, estimated, strict=True))
    print(f"all heads and layers: {median(disabled):.1f} s; as many plain evaluations take {faster:.2f} times that")
    print(f"estimates of all heads: {dearer:.2f} times a forward and backward pass of {median(trained):.1f} s")


def load(name: str, task: Task) -> Model:
    """A model with a new layer for the task."""
    base = headscope.load(name)
    labels = {"id2label": dict(enumerate(task.labels)), "label2id": {label: n for n, label in enumerate(task.labels)}}
    module = AutoModelForSequenceClassification.from_pretrained(source(name), **labels)
    return Model.from_module(module, base.tokenizer, name=name)


def sample(task: Task, count: int) -> Task:
    """The task with so many examples in its test split."""
    examples = task.splits[TEST]
    chosen = Random(0).sample(examples, min(count, len(examples)))
    return Task(task.name, task.kind, task.labels, {TEST: tuple(chosen)}, "accuracy")


def clock(run: Callable[[], object]) -> float:
    """The seconds of the processor that a run takes, which other programs beside it change little."""
    start = time.process_time()
    run()
    return time.process_time() - start


def evaluate_plainly(model: Model, evaluation: Evaluation) -> None:
    """One evaluation of the whole model."""
    for batch in evaluation.batches:
        with torch.inference_mode():
            logits = compute_logits(model, batch)
            evaluation.quantify(batch, logits, logits)


def disable_all(capture: Capture, evaluation: Evaluation, ablations: list[Ablation]) -> None:
    """An evaluation with each head and layer disabled."""
    outcomes = Outcomes.empty(evaluation, len(ablations))
    projections = find_projections(capture, collate_sample(capture.model))
    for _ in measure_outcomes(capture, evaluation, ablations, Ways(), projections, outcomes):
        pass


def differentiate(model: Model, evaluation: Evaluation) -> None:
    """One forward and backward pass over all examples, as in training."""
    for batch in evaluation.batches:
        scores = evaluation.quantify(batch, compute_logits(model, batch), None)[:, 0]
        scores.sum().backward()
    model.module.zero_grad()


if __name__ == "__main__":
    main()
