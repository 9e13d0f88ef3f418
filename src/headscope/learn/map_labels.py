"""A folder of attention maps to label by eye, and their labels.

``maps.npz`` has the weights, ``maps.csv`` a row for each map, ``maps.json`` the origin of the maps, and ``labels.csv``
the labels, with the columns map, document, layer, head, label and second (the label of a second pass). Users may edit
it by hand.
"""

import csv
import io
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import cohen_kappa_score

from headscope.errors import CorpusError, first_line, quote
from headscope.files import atomic_write, parse_json
from headscope.guards.archives import load_arrays
from headscope.guards.formats import MAP_ROWS, MAPS_TO_LABEL, read_bytes
from headscope.learn.map_sample import HeadMap, MapName
from headscope.reducers.support.pattern_network import PATTERNS

WEIGHTS, MAPS, ABOUT, LABELS = "maps.npz", "maps.csv", "maps.json", "labels.csv"
"""The names of the files in a folder of maps."""

MAP_COLUMNS = ("map", "document", "layer", "head", "tokens", "separators")
LABEL_COLUMNS = ("map", "document", "layer", "head", "label", "second")


@dataclass(frozen=True, eq=False)
class LabelledMaps:
    """Attention maps and their labels. Maps are numbered from 1.

    Attributes:
        maps: The maps in the order of their numbers.
        labels: The labels of the labelled maps, by number.
        second: The labels of a second pass, by number.
        about: The origin of the maps.
    """

    maps: tuple[HeadMap, ...]
    labels: Mapping[int, str]
    second: Mapping[int, str]
    about: Mapping[str, Any]

    def give(self, number: int, label: str, *, second: bool = False) -> "LabelledMaps":
        """Return the maps with the label of one map set; `second`: in the second pass; an empty label removes it."""
        old = self.second if second else self.labels
        new = {key: value for key, value in {**old, number: label}.items() if value}
        return LabelledMaps(self.maps, self.labels if second else new, new if second else self.second, self.about)


def write_maps(folder: Path, maps: Sequence[HeadMap], about: Mapping[str, Any]) -> None:
    """Write attention maps to a folder, so that they can be labelled.

    Args:
        folder: The folder, which is made if it does not exist.
        maps: The maps in the order of their numbers.
        about: The origin of the maps.

    Raises:
        CorpusError: The folder has maps already.
    """
    if (folder / MAPS).exists():
        raise CorpusError(f"{folder} has maps already; name another folder, or go on labelling these.")
    folder.mkdir(parents=True, exist_ok=True)
    with atomic_write(folder / WEIGHTS) as fresh:
        arrays: dict[str, Any] = {_name(n): each.weights.astype(np.float16) for n, each in enumerate(maps, 1)}
        np.savez_compressed(fresh, **arrays)
    with atomic_write(folder / ABOUT) as fresh:
        fresh.write_text(json.dumps(dict(about), indent=1) + "\n", encoding="utf-8")
    rows = [
        (number, *_identify(each.name), len(each.weights), " ".join(map(str, each.separators)))
        for number, each in enumerate(maps, 1)
    ]
    # This file is written last, because it marks the folder as complete.
    _write_rows(folder / MAPS, MAP_COLUMNS, rows)


def read_maps_to_label(folder: Path) -> LabelledMaps:
    """Read the maps of a folder, and their labels if there are any.

    Raises:
        CorpusError: The folder has no maps, the maps are damaged, or the labels are damaged: a pattern is unknown, a
            row is of another map, or a map occurs twice.
    """
    if not (folder / MAPS).is_file():
        raise CorpusError(f"{folder} is no folder of maps to label; make one with --annotate FOLDER.")
    try:
        about = parse_json(read_bytes(folder / ABOUT, MAP_ROWS))
        if not isinstance(about, dict):
            raise ValueError(f"it is {quote(str(about))} where an object is wanted")
    except ValueError as error:
        raise CorpusError(f"{folder / ABOUT} cannot be read ({first_line(error)}); make the folder anew.") from error
    maps = _read_maps(folder)
    return update_labels(folder, LabelledMaps(maps, {}, {}, about))


def update_labels(folder: Path, maps: LabelledMaps) -> LabelledMaps:
    """Return the maps with the labels that their folder has now.

    Raises:
        CorpusError: The folder is missing, or its labels are damaged.
    """
    if not (folder / MAPS).is_file():
        raise CorpusError(f"{folder} is gone, so no label can be saved; put it back, and label this map again.")
    labels, second = _read_labels(folder / LABELS, maps.maps) if (folder / LABELS).exists() else ({}, {})
    return replace(maps, labels=labels, second=second)


def write_labels(folder: Path, labelled: LabelledMaps) -> None:
    """Write the labels to the folder; the file is replaced in one step, so that a killed program loses no label."""
    rows = [
        (number, *_identify(labelled.maps[number - 1].name), labelled.labels.get(number, ""),
         labelled.second.get(number, ""))
        for number in sorted({*labelled.labels, *labelled.second})
    ]  # fmt: skip
    _write_rows(folder / LABELS, LABEL_COLUMNS, rows)


def measure_agreement(labelled: LabelledMaps) -> tuple[int, float, float]:
    """Measure how well the labels of both passes agree.

    Returns:
        The number of maps with two labels, the share of them with equal labels, and Cohen's kappa. The share is NaN
        without such maps; kappa also if only one label occurs.
    """
    both = sorted({*labelled.labels} & {*labelled.second})
    first, second = ([labels[number] for number in both] for labels in (labelled.labels, labelled.second))
    if not both:
        return 0, float("nan"), float("nan")
    share = float(np.mean([label == other for label, other in zip(first, second, strict=True)]))
    kappa = cohen_kappa_score(first, second) if len({*first, *second}) > 1 else float("nan")
    return len(both), share, float(kappa)


def _name(number: int) -> str:
    return f"map-{number}"


def _identify(name: MapName) -> tuple[str, int, int]:
    return name.document, name.layer, name.head


def _write_rows(path: Path, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    content = io.StringIO()
    csv.writer(content, lineterminator="\n").writerows([columns, *rows])
    with atomic_write(path) as fresh, fresh.open("wb") as file:
        file.write(content.getvalue().encode())
        file.flush()
        os.fsync(file.fileno())


def _read_rows(path: Path, columns: Sequence[str]) -> list[tuple[int, dict[str, str]]]:
    """Return the given columns of a CSV file, row by row, each with the number of its line."""
    try:
        text = read_bytes(path, MAP_ROWS).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CorpusError(f"{path} is not UTF-8; save it as UTF-8.") from error
    reader = csv.DictReader(io.StringIO(text, newline=""))
    try:
        if missing := [name for name in columns if name not in (reader.fieldnames or ())]:
            raise CorpusError(f"{path}:1: there is no column {missing[0]!r}; the columns are {', '.join(columns)}.")
        return [(reader.line_num, {name: (row[name] or "").strip() for name in columns}) for row in reader]
    except csv.Error as error:
        line = reader.line_num + 1
        raise CorpusError(
            f"{path}:{line} cannot be read as a row ({first_line(error)}); the columns are {', '.join(columns)}."
        ) from error


def _read_number(path: Path, line: int, row: Mapping[str, str], column: str) -> int:
    try:
        return _parse_number(row[column])
    except ValueError as error:
        raise CorpusError(f"{path}:{line}: {column} is {quote(row[column])}; it must be a whole number.") from error


def _parse_number(text: str) -> int:
    """Parse a whole number of one to nine digits.

    Raises:
        ValueError: The text is not such a number.
    """
    if not re.fullmatch("[0-9]{1,9}", text):
        raise ValueError(text)
    return int(text)


def _read_maps(folder: Path) -> tuple[HeadMap, ...]:
    path, maps = folder / MAPS, []
    try:
        weights = load_arrays(folder / WEIGHTS, MAPS_TO_LABEL)
    except ValueError as error:
        raise CorpusError(f"{folder / WEIGHTS} cannot be read ({first_line(error)}); make the folder anew.") from error
    for place, (line, row) in enumerate(_read_rows(path, MAP_COLUMNS), 1):
        number, layer, head, tokens = (
            _read_number(path, line, row, name) for name in ("map", "layer", "head", "tokens")
        )
        each = weights.get(_name(number))
        if number != place or each is None or each.shape != (tokens, tokens):
            raise CorpusError(
                f"{path}:{line}: map {number} is not the one in {WEIGHTS}; the folder is damaged, make it anew."
            )
        if each.dtype.kind != "f" or not ((each >= 0) & (each <= 1.001)).all():
            raise CorpusError(
                f"{path}:{line}: map {number} in {WEIGHTS} has values that are no weights, which are from 0 to 1; the "
                "folder is damaged, make it anew."
            )
        separators = _read_separators(path, line, row["separators"], tokens)
        maps.append(HeadMap(MapName(row["document"], layer, head), each.astype(np.float32), separators))
    return tuple(maps)


def _read_separators(path: Path, line: int, text: str, tokens: int) -> tuple[int, ...]:
    """Parse the positions of separators in a row of a file.

    Raises:
        CorpusError: A position is not a token of the map, or the positions are not in order.
    """
    try:
        places = tuple(map(_parse_number, text.split()))
    except ValueError:
        places = (-1,)
    if any(not 0 <= place < tokens for place in places) or [*places] != sorted({*places}):
        raise CorpusError(
            f"{path}:{line}: separators is {quote(text)}; it must be positions of tokens from 0 to {tokens - 1}, "
            "in their order with spaces between them."
        )
    return places


def _read_labels(path: Path, maps: Sequence[HeadMap]) -> tuple[dict[int, str], dict[int, str]]:
    passes: dict[str, dict[int, str]] = {"label": {}, "second": {}}
    seen: dict[int, int] = {}
    for line, row in _read_rows(path, LABEL_COLUMNS):
        number, layer, head = (_read_number(path, line, row, name) for name in ("map", "layer", "head"))
        if not 1 <= number <= len(maps) or _identify(maps[number - 1].name) != (row["document"], layer, head):
            raise CorpusError(
                f"{path}:{line}: map {number} of head {layer}-{head} on {quote(row['document'])} is none of the maps "
                f"in {MAPS}; these labels are of other maps."
            )
        if number in seen:
            raise CorpusError(f"{path}:{line}: map {number} has a row already, in line {seen[number]}; keep one.")
        seen[number] = line
        for column, labels in passes.items():
            if row[column] and row[column] not in PATTERNS:
                raise CorpusError(
                    f"{path}:{line}: there is no pattern {quote(row[column])}; the patterns are {', '.join(PATTERNS)}."
                )
            if row[column]:
                labels[number] = row[column]
    return passes["label"], passes["second"]
