"""Tiny models as fine-tuning would leave them: the weights of one, a little off, and a folder of several."""

import copy
import hashlib
from pathlib import Path

import torch
from transformers import PreTrainedModel

import headed
import tiny
from headscope.runs import Run, Runs, write

SEEDS = (11, 3, 7)


def perturb(module: PreTrainedModel, seed: int, amount: float = 0.1) -> PreTrainedModel:
    """A copy whose every weight is a little off, by the seed."""
    generator = torch.Generator().manual_seed(seed)
    perturbed = copy.deepcopy(module)
    with torch.no_grad():
        for weights in perturbed.parameters():
            weights.add_(amount * torch.randn(weights.shape, generator=generator))
    return perturbed


def make_runs(
    folder: Path, name: str = "bert", seeds: tuple[int, ...] = SEEDS, *, control: bool = False, task: str = ""
) -> Runs:
    """A tiny model in the folder ``model``, and runs in ``runs`` that are it with other weights, and a head for a task.

    Without a task they have no head.
    """
    module, tokenizer = headed.make(name, task) if task else tiny.make(name)
    for part in (module.base_model, tokenizer):
        part.save_pretrained(folder / "model")
    finished = []
    for seed in seeds:
        run = folder / "runs" / f"seed-{seed}"
        for part in (perturb(module, seed), tokenizer):
            part.save_pretrained(run)
        scores = ({"validation": {"f1": 0.5}}, {"validation": {"f1": 0.7}})
        finished.append(Run(run.name, seed, best_epoch=2, epochs=scores, weights_sha256=weights_sha256(run)))
    runs = Runs(
        folder / "runs", "negation", control, str(folder / "model"), weights_sha256(folder / "model"), "validation",
        "f1", {"epochs": 2}, tuple(finished),
    )  # fmt: skip
    write(runs)
    return runs


def weights_sha256(folder: Path) -> str:
    """What ``sha256sum`` prints for the weights of a saved model."""
    return hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
