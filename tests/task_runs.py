"""A folder of planted models as `headscope tune` would leave it: runs that need the heads that we chose."""

from collections.abc import Collection, Sequence
from pathlib import Path

from headscope.runs import Run, Runs, write
from planted_task import plant_task
from tuned import weights_sha256

NOUNS = "nouns"
"""The task of `planted_task`."""


def plant_runs(
    folder: Path, heads: Sequence[Collection[tuple[int, int]]], *, task: str = NOUNS, control: bool = False
) -> Runs:
    """The model before in the folder ``model``, and in ``runs`` one for each of these collections of heads."""
    before = plant_task([])
    for part in (before.module.base_model, before.tokenizer):
        part.save_pretrained(folder / "model")
    finished = []
    for seed, of_run in enumerate(heads, 1):
        planted, run = plant_task(of_run, seed=seed), folder / "runs" / f"seed-{seed}"
        for part in (planted.module, planted.tokenizer):
            part.save_pretrained(run)
        scores = ({"test": {"accuracy": 1.0}},)
        finished.append(Run(run.name, seed, best_epoch=1, epochs=scores, weights_sha256=weights_sha256(run)))
    runs = Runs(
        folder / "runs", task, control, str(folder / "model"), weights_sha256(folder / "model"), "validation",
        "accuracy", {"epochs": 1}, tuple(finished),
    )  # fmt: skip
    write(runs)
    return runs
