"""Fine-tuned runs on the terminal."""

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape

from headscope.predictions import ATTRIBUTE, CONTROL, GROUP, SingleLabel, list_single_labels, name_run
from headscope.runs import TEST, Runs, selectivity
from headscope.view.headings import name_model
from headscope.view.lines import make_grid, print_grid, write
from headscope.view.wording import describe_single_labels, format_spread

SHORT = {"precision": "P", "recall": "R", "f1": "F1", "accuracy": "accuracy", "matthews": "Matthews", "pearson": "r"}


def print_tuned(task: Runs, control: Runs | None, console: Console) -> None:
    """Print the scores of the runs and their mean; with a control, also its scores and the selectivity."""
    _print_runs(task, escape(task.task), console)
    singles = describe_single_labels(_find_single_labels(task, control))
    if control is None:
        _print_sentences(singles, console)
        return
    _print_runs(control, f"the control of {escape(task.task)}", console)
    if all("task" in run.scores for run in control.runs):
        on_task = f"on the test split of [bold]{escape(task.task)}[/] itself, in the same epochs"
        _print_grid(control, "task", f"The runs of the control, {on_task}", console)
    if differences := selectivity(task, control):
        write(
            console,
            f"\nSelectivity (accuracy on the task less accuracy on the control; Hewitt and Liang 2019): "
            f"{format_spread([*differences.values()])} over {len(differences)} seed{'s' * (len(differences) != 1)}",
        )
    _print_sentences(singles, console)


def _find_single_labels(task: Runs, control: Runs | None) -> list[SingleLabel]:
    """Return the labels of runs that predict one label for all texts of the test split."""
    entries: list[dict[str, Any]] = [
        {"name": run.name, GROUP: group, ATTRIBUTE: run.predicted.get(TEST, {})}
        for group, runs in (("", task), (CONTROL, control))
        for run in (runs.runs if runs else ())
    ]
    return list_single_labels({name_run(entry): entry[ATTRIBUTE] for entry in entries})


def _print_sentences(sentences: Sequence[str], console: Console) -> None:
    if sentences:
        write(console, "\n" + "\n".join(map(escape, sentences)), style="bold")


def format_scores(runs: Runs, split: str) -> dict[str, str]:
    """Return mean and deviation of the runs' scores on a split in the best epoch, as text, by short name.

    It is empty if the runs were not scored on the split.
    """
    return {SHORT[name]: format_spread(values) for name, values in _list_scores(runs, split).items()}


def _list_scores(runs: Runs, split: str) -> dict[str, list[float]]:
    """Return the values of each score on a split, run by run; scores that a run lacks are left out."""
    scores = [run.scores[split] for run in runs.runs if split in run.scores]
    common = [name for name in SHORT if scores and all(name in values for values in scores)]
    return {name: [values[name] for values in scores] for name in common}


def _print_runs(runs: Runs, task: str, console: Console) -> None:
    heading = (
        f"[bold]{escape(name_model(runs.model))}[/] tuned on [bold]{task}[/]: the test split, in the epoch that is "
        f"best by {SHORT[runs.metric]} on {runs.select}"
    )
    _print_grid(runs, "test", heading, console)


def _print_grid(runs: Runs, split: str, heading: str, console: Console) -> None:
    scored = [run for run in runs.runs if split in run.scores]
    if not scored:
        return
    scores = _list_scores(runs, split)
    # Four scores and their deviations fit 80 columns.
    lines = make_grid("run", "best epoch", *(SHORT[name] for name in scores), apart=1)
    for run in scored:
        of_epochs = f"{run.best_epoch} of {len(run.epochs)}"
        lines.add_row(run.name, of_epochs, *(f"{run.scores[split][name]:.3f}" for name in scores))
    if len(scored) > 1:
        lines.add_row("mean ± sd", "", *map(format_spread, scores.values()), style="bold")
    write(console, f"\n{heading}")
    print_grid(lines, console)
