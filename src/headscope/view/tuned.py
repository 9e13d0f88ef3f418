"""Fine-tuned runs on the terminal."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from headscope.runs import Runs, selectivity

SHORT = {"precision": "P", "recall": "R", "f1": "F1", "accuracy": "accuracy", "matthews": "Matthews", "pearson": "r"}


def tuned(task: Runs, control: Runs | None, console: Console) -> None:
    """How well the runs learnt, each and on the average; with a control, what it learnt and how selective that is.

    Args:
        task: the runs on a task.
        control: those on its control, if there are any.
        console: where to.
    """
    _family(task, escape(task.task), "test", console)
    if control is None:
        return
    _family(control, f"the control of {escape(task.task)}", "test", console)
    if all("task" in run.scores for run in control.runs):
        _family(control, f"the control's runs, scored on {escape(task.task)} itself", "task", console)
    if found := selectivity(task, control):
        console.print(
            f"\nSelectivity (accuracy on the task less accuracy on the control; Hewitt and Liang 2019): "
            f"{_mean(list(found.values()))} over {len(found)} seed{'s' * (len(found) != 1)}",
            soft_wrap=True,
            highlight=False,
        )


def _family(runs: Runs, called: str, split: str, console: Console) -> None:
    scores = {run.name: run.scores[split] for run in runs.runs if split in run.scores}
    if not scores:
        return
    names = [name for name in SHORT if all(name in found for found in scores.values())]
    lines = Table(box=None, pad_edge=False)
    lines.add_column("run")
    lines.add_column("epoch kept", justify="right")
    for name in names:
        lines.add_column(SHORT[name], justify="right")
    for run in runs.runs:
        of_epochs = f"{run.kept} of {len(run.epochs)}"
        lines.add_row(run.name, of_epochs, *(_score(scores[run.name][name]) for name in names))
    if len(scores) > 1:
        lines.add_row("mean ± sd", "", *(_mean(_column(scores, name)) for name in names), style="bold")
    console.print(
        f"\n[bold]{escape(runs.model)}[/] tuned on [bold]{called}[/]: the test split, in the epoch that is best by "
        f"{SHORT[runs.metric]} on {runs.select}",
        soft_wrap=True,
        highlight=False,
    )
    console.print(lines, highlight=False)


def _column(scores: Mapping[str, Mapping[str, float]], name: str) -> list[float]:
    return [found[name] for found in scores.values()]


def _score(value: float) -> str:
    return f"{value:.3f}"


def _mean(values: Sequence[float]) -> str:
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else math.nan
    return f"{np.mean(values):.3f}" + ("" if math.isnan(spread) else f" ± {spread:.3f}")
