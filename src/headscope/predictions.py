"""The number of texts for which a tuned model predicts each label, to find models that predict only one label."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

ATTRIBUTE = "predicted"
"""The key of the result of `count_predictions` in the attributes of a table, or in the entry of a run."""

GROUP, CONTROL = "group", "control"
"""The key and the value in the entry of a run that was tuned on the control."""

Predictions = Mapping[str, Any]
"""The result of `count_predictions`."""


@dataclass(frozen=True)
class SingleLabel:
    """The one label that a model, or each of some runs, predicts for all texts.

    Attributes:
        label: the name of the label.
        texts: the number of texts.
        is_of_words: true if the label is predicted for all words of the texts.
        runs: the names of the runs; empty for a single model.
    """

    label: str
    texts: int
    is_of_words: bool
    runs: tuple[str, ...] = ()


def count_predictions(texts: int, labels: Mapping[str, float]) -> dict[str, Any]:
    """Return an object for JSON with the number of texts, and the count of each label that a model predicts.

    Args:
        texts: the number of texts.
        labels: the number of texts, or of words and their pieces, with each label.
    """
    return {"texts": texts, "labels": {label: int(count) for label, count in labels.items() if count}}


def read_predictions(about: Mapping[Any, Any], run: str = "") -> dict[str, Predictions]:
    """Read the counts of predictions from a table, by the name of the run; the name of a single model is empty.

    Args:
        about: the attributes of the table.
        run: the name of the only run that is returned. Default: all runs.
    """
    if "runs" not in about:
        return {"": json.loads(about[ATTRIBUTE])} if ATTRIBUTE in about else {}
    entries = [each for each in json.loads(about["runs"]) if run in ("", each.get("name"))]
    return {name_run(each): each[ATTRIBUTE] for each in entries if ATTRIBUTE in each}


def find_single_labels(about: Mapping[Any, Any]) -> list[SingleLabel]:
    """Return each label that a model or run predicts for all texts, from the attributes of a table."""
    return list_single_labels(read_predictions(about))


def name_run(entry: Mapping[str, Any]) -> str:
    """Return the name of a run, with "of the control" if it was tuned on the control."""
    return f"{entry.get('name', '')} of the control" if entry.get(GROUP) == CONTROL else str(entry.get("name", ""))


def list_single_labels(predicted: Mapping[str, Predictions]) -> list[SingleLabel]:
    """Return each label that a model or run predicts for all texts, from the counts of predictions by run."""
    runs_of: dict[SingleLabel, list[str]] = {}
    for name, counts in predicted.items():
        if len(labels := counts.get("labels", {})) == 1:
            ((label, count),) = labels.items()
            runs_of.setdefault(SingleLabel(label, counts["texts"], count != counts["texts"]), []).append(name)
    return [
        SingleLabel(each.label, each.texts, each.is_of_words, tuple(filter(None, runs)))
        for each, runs in runs_of.items()
    ]
