"""Tasks from any data set that the library `datasets` loads: from the hub, or from a folder of files."""

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from headscope.corpora.hub import load_splits
from headscope.errors import CorpusError
from headscope.files import check_regular, expand_home, hash_lines
from headscope.learn.table_task import TEXTS, build_task
from headscope.learn.task import TEST, TRAIN, VALIDATION, Example, Kind, Task

PREFIX = "datasets:"
"""The prefix of such a task name: ``datasets:NAME`` or ``datasets:NAME/CONFIG``, optionally with ``#COLUMN``."""

LABELS = ("label", "labels", "score")
WORDS = ("tokens", "words")
TAGS = ("tags", "labels", "ner_tags", "pos_tags", "upos")
SPLITS = {TRAIN: ("train",), VALIDATION: ("validation", "valid", "dev"), TEST: ("test",)}

UNLABELLED = "rows without a label"
NO_TEXT = "rows without a text"

_NAMES_NO_TEXT = ("id", "idx", "index", "guid")


@dataclass(frozen=True)
class _Columns:
    """The columns of a data set that make a task.

    Attributes:
        kind: The kind of task.
        texts: One or two columns of texts, or the column of the words.
        label: The column of the label or of the tags.
        names: The names of the labels, if labels are stored as numbers; else empty.
    """

    kind: Kind
    texts: tuple[str, ...]
    label: str
    names: tuple[str, ...]


def read_hub(name: str) -> Task:
    """Read a task from a data set on the hub or in a folder.

    The label is in the column given after ``#``, or in one of `LABELS`. If one of `WORDS` is a column of lists, the
    task is tagging: the tags are in the column given after ``#``, or in the only other column of lists. The texts are
    in columns of `headscope.learn.table_task.TEXTS`, or in the only one or two columns of strings. Labels of type float
    make the task a regression. Rows without a label or a text are left out and counted; a test split without any label
    is ignored.

    Args:
        name: `PREFIX` and the name of the set, with its configuration after a slash, or a folder; then perhaps ``#``
            and the column of the label.

    Raises:
        CorpusError: `datasets` is not installed or cannot load the set, the columns are ambiguous, or the splits have
            different labels.
    """
    place, _, column = name.removeprefix(PREFIX).partition("#")
    loaded = _load(name, place)
    columns = _find_columns(name, loaded.get("train", next(iter(loaded.values()))).features, column)
    skipped: Counter[str] = Counter()
    splits: dict[str, tuple[Example, ...]] = {}
    unlabelled: list[str] = []
    for split, prefixes in SPLITS.items():
        own_name = next(
            (existing for prefix in prefixes for existing in loaded if str(existing).startswith(prefix)), None
        )
        if own_name is None:
            continue
        left_out: Counter[str] = Counter()
        splits[split] = tuple(_read_examples(f"{name}, {own_name}", loaded[own_name], columns, left_out))
        if splits[split]:
            skipped += left_out
        else:
            unlabelled.append(str(own_name))
    if not splits.get(TRAIN):
        raise CorpusError(
            f"{name} has no rows with a label to train on; its splits are {', '.join(map(str, loaded))}: give a set "
            "with a split 'train'."
        )
    notes = [f"the texts are in {' and '.join(columns.texts)}, the labels in {columns.label}"]
    notes += [f"its split {split} has no labels" for split in unlabelled]
    return build_task(
        name, columns.kind, splits, {place: _hash_examples(splits)}, notes=tuple(notes), skipped=dict(skipped)
    )


def _load(name: str, place: str) -> Mapping[str, Any]:
    if not place:
        raise CorpusError(f"{name} names no set; write {PREFIX}NAME, {PREFIX}NAME/CONFIG or {PREFIX}FOLDER.")
    folder = expand_home(place)
    check_regular(folder)
    *others, (path, configuration) = [(place, None)] if folder.exists() else _candidates(place)
    for candidate in others:
        with suppress(CorpusError):
            return load_splits(name, *candidate)
    return load_splits(name, path, configuration)


def _candidates(place: str) -> list[tuple[str, str | None]]:
    """List the possible pairs of name and configuration in a path; without a configuration, the second is None."""
    parts = place.split("/")
    if len(parts) == 1:
        return [(place, None)]
    with_configuration = ("/".join(parts[:-1]), parts[-1])
    return [with_configuration] if len(parts) > 2 else [(place, None), with_configuration]


def _find_columns(name: str, features: Mapping[str, Any], chosen: str) -> _Columns:
    import datasets

    listed = ", ".join(features)
    if chosen and chosen not in features:
        raise CorpusError(f"{name} has no column {chosen!r}; it has {listed}.")
    lists = [column for column in features if _element_type(features[column]) is not None]
    words = next((column for column in WORDS if column in lists), None)
    if words is not None:
        tags = [column for column in lists if column != words]
        known = [column for column in TAGS if column in tags]
        label = chosen or (tags[0] if len(tags) == 1 else known[0] if len(known) == 1 else "")
        if label not in tags:
            raise CorpusError(
                f"{name} has the columns {listed}, and it is not clear which one tags the words of {words!r}; "
                f"name it: {name.partition('#')[0]}#COLUMN."
            )
        return _Columns("tagging", (words,), label, tuple(getattr(_element_type(features[label]), "names", ())))
    label = chosen or next((column for column in LABELS if column in features), "")
    if not label:
        raise CorpusError(
            f"{name} has the columns {listed}, and none of them is called {' or '.join(map(repr, LABELS))}; name "
            f"the column of the labels: {name}#COLUMN."
        )
    text_columns = [
        column for column, kind in features.items()
        if column != label and column not in _NAMES_NO_TEXT and getattr(kind, "dtype", "") in ("string", "large_string")
    ]  # fmt: skip
    texts = next((texts for texts in TEXTS if set(texts) <= set(text_columns)), tuple(text_columns))
    if not 1 <= len(texts) <= 2:
        raise CorpusError(
            f"{name} has the columns {listed}, and it is not clear which one or two hold the texts; rename them "
            "'text' and 'text2' in a folder of your own."
        )
    kind = features[label]
    if isinstance(kind, datasets.ClassLabel):
        return _Columns("classification", texts, label, tuple(kind.names))
    if label in lists:
        raise CorpusError(f"{name} has lists in the column {label!r}; a text has a single label: name another column.")
    numbers = str(getattr(kind, "dtype", "")).startswith("float")
    return _Columns("regression" if numbers else "classification", texts, label, ())


def _element_type(feature: Any) -> Any:
    """Return the type of the elements of a column of lists; None for another column."""
    return getattr(feature, "feature", None)


def _read_examples(where: str, rows: Any, columns: _Columns, left_out: Counter[str]) -> Iterator[Example]:
    missing = [column for column in (*columns.texts, columns.label) if column not in rows.features]
    if missing:
        raise CorpusError(
            f"{where} has no column {missing[0]!r}, which the other splits have; it has no labels to use."
        )
    for number, row in enumerate(rows.select_columns([*columns.texts, columns.label]), start=1):
        row_name = f"{where}, row {number}"
        label = row[columns.label]
        if columns.kind == "tagging":
            words, tags = tuple(row[columns.texts[0]] or ()), tuple(_label_name(tag, columns) for tag in label or ())
            if not words or not all(word and word.strip() for word in words):
                left_out[NO_TEXT] += 1
            elif all(tag is None for tag in tags):
                left_out[UNLABELLED] += 1
            elif len(words) != len(tags):
                raise CorpusError(f"{row_name} has {len(words)} words and {len(tags)} tags; give each word a tag.")
            else:
                yield Example(row_name, words=words, tags=tags, group=" ".join(words))
            continue
        texts = tuple((row[column] or "").strip() for column in columns.texts)
        known: Any = label if columns.kind == "regression" else _label_name(label, columns)
        if not all(texts):
            left_out[NO_TEXT] += 1
        elif known is None or (columns.kind == "regression" and not math.isfinite(known)):
            left_out[UNLABELLED] += 1
        else:
            yield Example(row_name, texts=texts, label=known, group="\t".join(texts))


def _label_name(value: Any, columns: _Columns) -> str | None:
    """Return the name of a label; None for a missing label, which sets without labels store as -1."""
    if value in (None, "") or (columns.names and value == -1):
        return None
    return columns.names[value] if columns.names else str(value)


def _hash_examples(splits: Mapping[str, Sequence[Example]]) -> str:
    return hash_lines(
        json.dumps([split, example.texts, example.label, example.words, example.tags], ensure_ascii=False)
        for split, examples in splits.items()
        for example in examples
    )
