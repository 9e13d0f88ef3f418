"""Matches between the labels of a classifier and the labels of a task, if the same label has two different names.

Published classifiers often call their labels ``LABEL_0`` and ``LABEL_1``, or ``NEGATIVE`` and ``POSITIVE``.
"""

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from headscope.errors import HeadscopeError, ModelError, list_some, suggest

ATTRIBUTE = "label_names"
"""The attribute of a table that states how labels with different names were matched."""

PREFIX = "LABEL_"
"""The prefix of the names that transformers gives to unnamed labels; the number of the label follows."""

EXAMPLE = "LABEL_0=negative,LABEL_1=positive"

_SHOWN = 12
"""The number of labels that a message lists."""


def read_label_names(given: str | Mapping[Any, Any], task: str, labels: Sequence[str]) -> dict[str, str]:
    """Read pairs of a model's label and a task's label; return a mapping from the first to the second.

    The mapping has the order of the task's labels.

    Args:
        given: The pairs of labels, as a text such as `EXAMPLE` or as a mapping.
        task: The name of the task, for messages.
        labels: The labels of the task; empty if the task has numbers.

    Raises:
        HeadscopeError: The pairs are not such a text or mapping; the task has no labels, or lacks a label of a pair; or
            a label is named twice, or a label of the task is not named.
    """
    if not labels:
        raise HeadscopeError(f"the task {task} has numbers and no labels; leave out `labels`.")
    pairs = _split_pairs(given) if isinstance(given, str) else _list_pairs(given)
    for side, names in (("model", [of_model for of_model, _ in pairs]), ("task", [of_task for _, of_task in pairs])):
        if twice := [name for name, count in Counter(names).items() if count > 1]:
            raise HeadscopeError(
                f"`labels` names the label {twice[0]!r} of the {side} twice; name each label of the model and of the "
                "task once."
            )
    for _, of_task in pairs:
        if of_task not in labels:
            raise HeadscopeError(
                f"`labels` names the label {of_task!r}, and the task {task} has {_list(labels)}"
                f"{suggest(of_task, labels)}; write the model's label, = and one of these, as in {EXAMPLE}."
            )
    named = {of_task: of_model for of_model, of_task in pairs}
    if missing := [label for label in labels if label not in named]:
        raise HeadscopeError(
            f"`labels` has no label of the model for {_list(missing)} (task {task}); give one for each of "
            f"{_list(labels)}."
        )
    return {named[label]: label for label in labels}


def match_labels(
    model: str, numbers: Mapping[int, str], task: str, labels: Sequence[str], given: Mapping[str, str]
) -> tuple[list[int], str]:
    """Find each label of a task among the labels of a model; return their numbers and a description of the match.

    The numbers are in the order of the task's labels. The description is empty if all names are equal.

    Names that differ only in case match, and the numbers of unnamed labels (``LABEL_0`` or ``0``) match the labels 0, 1
    and so on of a task.

    Args:
        model: The name of the model, for messages.
        numbers: The names of the model's labels, by number.
        task: The name of the task, for messages.
        labels: The labels of the task.
        given: The result of `read_label_names`; empty if the labels must match by their names.

    Raises:
        ModelError: The labels cannot be matched, or several labels of the model have the same name.
        HeadscopeError: The model lacks a label of `given`.
    """
    names = {number: str(name) for number, name in sorted(numbers.items())}
    for of_model in given:
        if of_model not in names.values():
            raise HeadscopeError(
                f"`labels` names the label {of_model!r}, and the model {model!r} has {_list(names.values())}"
                f"{suggest(of_model, names.values())}; write one of these, = and the task's label, as in {EXAMPLE}."
            )
    wanted = {*given, *map(str.casefold, labels)}
    if twice := [name for name, n in Counter(names.values()).items() if n > 1 and {name, name.casefold()} & wanted]:
        raise ModelError(
            f"the model {model!r} has several labels called {twice[0]!r}; give each another name in id2label of its "
            "config.json."
        )
    number_of = _invert(given, names) if given else _match_names(names, labels)
    if number_of is None:
        raise ModelError(_explain(model, [*names.values()], task, labels))
    pairs = [(names[number], label) for number, label in zip(number_of, labels, strict=True)]
    differ = any(of_model != of_task for of_model, of_task in pairs)
    return number_of, ", ".join(f"{of_model} as {of_task}" for of_model, of_task in pairs) if differ else ""


def _split_pairs(text: str) -> list[tuple[str, str]]:
    """Return the pairs of a model's label and a task's label in a text such as `EXAMPLE`."""
    pairs = []
    for part in text.split(","):
        of_model, equals, of_task = (each.strip() for each in part.partition("="))
        if not (of_model and equals and of_task):
            raise HeadscopeError(
                f"`labels` has {part.strip()!r}; write a label of the model, = and the task's, and a comma before the "
                f"next, as in {EXAMPLE}."
            )
        pairs.append((of_model, of_task))
    return pairs


def _list_pairs(given: Any) -> list[tuple[str, str]]:
    if not isinstance(given, Mapping) or not given:
        raise HeadscopeError(
            f"`labels` is {given!r:.60}; give a text such as {EXAMPLE}, or a mapping from labels of the model to those "
            "of the task."
        )
    return [(str(of_model), str(of_task)) for of_model, of_task in given.items()]


def _invert(given: Mapping[str, str], names: Mapping[int, str]) -> list[int]:
    """Return the indices of the model's labels that are the keys of `given`, in the same order."""
    number_of = {name: number for number, name in names.items()}
    return [number_of[of_model] for of_model in given]


def _match_names(names: Mapping[int, str], labels: Sequence[str]) -> list[int] | None:
    """Return the model's number of each label; None if the labels do not match.

    Labels match by their names, by their names without regard to case, or by their numbers, all in the same way.
    """
    numbered = [str(number) for number in range(len(labels))]
    ways: list[tuple[list[str], Sequence[str]]] = [
        ([*names.values()], labels),
        ([name.casefold() for name in names.values()], [label.casefold() for label in labels]),
    ]
    if sorted(labels) == sorted(numbered) and len(names) == len(labels):
        ways.append(([name.removeprefix(PREFIX) for name in names.values()], labels))
    for of_model, of_task in ways:
        if len({*of_task}) == len(of_task) and {*of_task} <= {*of_model}:
            matched = [[*names][place] for label in of_task for place, name in enumerate(of_model) if name == label]
            if len(matched) == len(labels):
                return matched
    return None


def _explain(model: str, names: Sequence[str], task: str, labels: Sequence[str]) -> str:
    """Return a message that says why the labels cannot be matched, and what to do."""
    has = f"the model {model!r} has the labels {_list(names)}, and the task {task} has {_list(labels)}"
    if len(names) < len(labels):
        return f"{has}; give a model with a label for each of these, such as one that `headscope tune` tuned on it."
    pairs = [*zip(names, labels, strict=False)]
    if any(mark in name for pair in pairs for name in pair for mark in ",="):
        example = f"a mapping in Python, such as labels={dict(islice(pairs, _SHOWN))!r}"
    else:
        example = f"`labels` {shlex.quote(','.join(f'{of_model}={of_task}' for of_model, of_task in pairs))}"
    return (
        f"{has}; say which is which with {example}, in the order that is right, or give a model that `headscope tune` "
        "tuned on it."
    )


def _list(names: Iterable[str]) -> str:
    return list_some([*map(repr, names)], _SHOWN)
