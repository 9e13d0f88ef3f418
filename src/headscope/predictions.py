"""How many texts a tuned model gives each label. A model that names a single label for all cannot tell them apart."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

ATTRIBUTE = "predicted"
"""Under this key the counts of `count_predictions` are in the attributes of a table, or in the entry of a run."""

GROUP, CONTROL = "group", "control"
"""The key and the value that say in the entry of a run that it was tuned on the control."""

Predictions = Mapping[str, Any]
"""What `count_predictions` gives."""


@dataclass(frozen=True)
class SingleLabel:
    """The one label that a model, or each of some runs, names for all texts.

    Attributes:
        label: its name.
        texts: the number of texts.
        is_of_words: it is named for all words of the texts.
        runs: their names; none where it is a model alone.
    """

    label: str
    texts: int
    is_of_words: bool
    runs: tuple[str, ...] = ()


def count_predictions(texts: int, labels: Mapping[str, float]) -> dict[str, Any]:
    """Return the counts of a model's predictions, as they are stored in JSON.

    Args:
        texts: their number.
        labels: how many texts, or words and their pieces, get each label.
    """
    return {"texts": texts, "labels": {label: int(count) for label, count in labels.items() if count}}


def read_predictions(about: Mapping[Any, Any], run: str = "") -> dict[str, Predictions]:
    """Return what the models of a table predict, by the names of its runs; a model alone has an empty name.

    Args:
        about: the attributes of the table.
        run: the name of the only run that is wanted. Default: all runs.
    """
    if "runs" not in about:
        return {"": json.loads(about[ATTRIBUTE])} if ATTRIBUTE in about else {}
    entries = [each for each in json.loads(about["runs"]) if run in ("", each.get("name"))]
    return {name_run(each): each[ATTRIBUTE] for each in entries if ATTRIBUTE in each}


def find_single_labels(about: Mapping[Any, Any]) -> list[SingleLabel]:
    """Return the labels that models name for all texts, by the attributes of their table."""
    return list_single_labels(read_predictions(about))


def name_run(entry: Mapping[str, Any]) -> str:
    """Return the name of a run, with "of the control" if it was tuned on the control."""
    return f"{entry.get('name', '')} of the control" if entry.get(GROUP) == CONTROL else str(entry.get("name", ""))


def list_single_labels(predicted: Mapping[str, Predictions]) -> list[SingleLabel]:
    """Return the labels that models name for all texts, given what they predict by the names of their runs."""
    runs_of: dict[SingleLabel, list[str]] = {}
    for name, counts in predicted.items():
        if len(labels := counts.get("labels", {})) == 1:
            ((label, count),) = labels.items()
            runs_of.setdefault(SingleLabel(label, counts["texts"], count != counts["texts"]), []).append(name)
    return [
        SingleLabel(each.label, each.texts, each.is_of_words, tuple(filter(None, runs)))
        for each, runs in runs_of.items()
    ]
