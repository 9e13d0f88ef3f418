"""Fine-tuned runs on the terminal."""

from collections.abc import Mapping, Sequence

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from headscope.runs import Runs, selectivity

SHORT = {"precision": "P", "recall": "R", "f1": "F1", "accuracy": "accuracy", "matthews": "Matthews", "pearson": "r"}


def print_tuned(task: Runs, control: Runs | None, console: Console) -> None:
    """Print how well the runs learnt, each and on the average; with a control, what it learnt and the selectivity.

    Args:
        task: the runs on a task.
        control: those on its control, if there are any.
        console: where to.
    """
    _print_runs(task, escape(task.task), console)
    if control is None:
        return
    _print_runs(control, f"the control of {escape(task.task)}", console)
    if all("task" in run.scores for run in control.runs):
        on_task = (
            f"The runs of the control, on the test split of [bold]{escape(task.task)}[/] itself, in the same epochs"
        )
        _print_grid(control, "task", on_task, console)
    if differences := selectivity(task, control):
        console.print(
            f"\nSelectivity (accuracy on the task less accuracy on the control; Hewitt and Liang 2019): "
            f"{_mean(list(differences.values()))} over {len(differences)} seed{'s' * (len(differences) != 1)}",
            soft_wrap=True,
            highlight=False,
        )


def format_scores(runs: Runs, split: str) -> dict[str, str]:
    """The scores of the runs on a split, in the epoch that was kept: mean and deviation as text, by their short names.

    Empty where they were not scored on it.
    """
    scores = {run.name: run.scores[split] for run in runs.runs if split in run.scores}
    return {SHORT[name]: _mean(_column(scores, name)) for name in _names(scores)} if scores else {}


def _names(scores: Mapping[str, Mapping[str, float]]) -> list[str]:
    return [name for name in SHORT if all(name in values for values in scores.values())]


def _print_runs(runs: Runs, task: str, console: Console) -> None:
    heading = (
        f"[bold]{escape(runs.model)}[/] tuned on [bold]{task}[/]: the test split, in the epoch that is best by "
        f"{SHORT[runs.metric]} on {runs.select}"
    )
    _print_grid(runs, "test", heading, console)


def _print_grid(runs: Runs, split: str, heading: str, console: Console) -> None:
    scores = {run.name: run.scores[split] for run in runs.runs if split in run.scores}
    if not scores:
        return
    names = _names(scores)
    # Four scores and their deviations fit 80 columns.
    lines = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    lines.add_column("run", no_wrap=True)
    lines.add_column("best epoch", justify="right", no_wrap=True)
    for name in names:
        lines.add_column(SHORT[name], justify="right", no_wrap=True)
    for run in runs.runs:
        of_epochs = f"{run.best_epoch} of {len(run.epochs)}"
        lines.add_row(run.name, of_epochs, *(_score(scores[run.name][name]) for name in names))
    if len(scores) > 1:
        lines.add_row("mean ± sd", "", *(_mean(_column(scores, name)) for name in names), style="bold")
    console.print(f"\n{heading}", soft_wrap=True, highlight=False)
    console.print(lines, highlight=False)


def _column(scores: Mapping[str, Mapping[str, float]], name: str) -> list[float]:
    return [values[name] for values in scores.values()]


def _score(value: float) -> str:
    return f"{value:.3f}"


def _mean(values: Sequence[float]) -> str:
    """Mean and, of more than one, standard deviation: of these runs (ddof 0), as in all tables of runs."""
    return f"{np.mean(values):.3f}" + (f" ± {np.std(values):.3f}" if len(values) > 1 else "")
