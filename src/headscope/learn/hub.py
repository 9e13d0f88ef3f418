"""Any set that the library `datasets` loads: from the hub, or a folder of parquet, JSON Lines or CSV files."""

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headscope.errors import CorpusError, first_line
from headscope.learn.table import TEXTS, own
from headscope.learn.task import TEST, TRAIN, VALIDATION, Example, Kind, Task

PREFIX = "datasets:"
"""How the name of such a task begins: ``datasets:NAME``, ``datasets:NAME/CONFIG``, perhaps with ``#COLUMN``."""

LABELS = ("label", "labels", "score")
WORDS = ("tokens", "words")
TAGS = ("tags", "labels", "ner_tags", "pos_tags", "upos")
SPLITS = {TRAIN: ("train",), VALIDATION: ("validation", "valid", "dev"), TEST: ("test",)}

UNLABELLED = "rows without a label"
NO_TEXT = "rows without a text"

_NAMES_NO_TEXT = ("id", "idx", "index", "guid")


@dataclass(frozen=True)
class _Columns:
    """Which columns hold the texts (or the words) and the label (or the tags).

    Attributes:
        kind: what the label is.
        texts: one or two columns of texts, or the one of the words.
        label: the column of the label or of the tags.
        names: of the labels, where they are stored as numbers.
    """

    kind: Kind
    texts: tuple[str, ...]
    label: str
    names: tuple[str, ...]


def read_hub(name: str) -> Task:
    """The task in a set of the hub or in a folder.

    The label is in the column that is named, or in one called as in `LABELS`; where a column called as in `WORDS`
    holds lists, the tags are in the column that is named, or in the only other one that holds lists. The texts are in
    columns called as in `headscope.learn.table.TEXTS`, or in the only one or two columns of strings. Labels that are
    fractions make the task one of numbers. Rows without a label or a text are left out and counted; a test of which
    no row has a label is none.

    Args:
        name: `PREFIX` and the name of the set, with its configuration after a slash, or a folder; then perhaps ``#``
            and the column of the label.

    Raises:
        CorpusError: `datasets` is not installed or cannot load the set, the columns cannot be told, or the splits
            have other labels.
    """
    place, _, column = name.removeprefix(PREFIX).partition("#")
    loaded = _loaded(name, place)
    columns = _columns(name, loaded.get("train", next(iter(loaded.values()))).features, column)
    skipped: Counter[str] = Counter()
    splits: dict[str, tuple[Example, ...]] = {}
    unlabelled: list[str] = []
    for split, called in SPLITS.items():
        own_name = next((one for want in called for one in loaded if str(one).startswith(want)), None)
        if own_name is None:
            continue
        left_out: Counter[str] = Counter()
        splits[split] = tuple(_examples(f"{name}, {own_name}", loaded[own_name], columns, left_out))
        if splits[split]:
            skipped += left_out
        else:
            unlabelled.append(str(own_name))
    if not splits.get(TRAIN):
        raise CorpusError(
            f"{name} has no rows with a label to train on; its splits are {', '.join(map(str, loaded))}, and "
            "'train' is wanted."
        )
    notes = [f"the texts are in {' and '.join(columns.texts)}, the labels in {columns.label}"]
    notes += [f"its split {split} has no labels" for split in unlabelled]
    return own(name, columns.kind, splits, {place: _sha256(splits)}, notes=tuple(notes), skipped=dict(skipped))


def _loaded(name: str, place: str) -> Mapping[str, Any]:
    try:
        import datasets
    except ImportError:
        raise CorpusError(
            f"the task {name} is loaded by `datasets`, which is not installed; install headscope with the extra "
            "`tune`: pip install 'headscope[tune]'."
        ) from None
    if not place:
        raise CorpusError(f"{name} names no set; write {PREFIX}NAME, {PREFIX}NAME/CONFIG or {PREFIX}FOLDER.")
    folder = Path(place).expanduser()
    tries = [(str(folder), None)] if folder.exists() else _readings(place)
    for number, (path, configuration) in enumerate(tries, start=1):
        try:
            loaded = datasets.load_dataset(path, configuration)
        except Exception as error:  # of another library's loaders, each with errors of its own
            if number == len(tries):
                raise CorpusError(
                    f"{name} could not be loaded by `datasets` ({first_line(error)}); check the name, the "
                    "configuration and the network, or name a folder of parquet, JSON Lines or CSV files."
                ) from error
        else:
            return dict(loaded)
    raise AssertionError("the last try returns or raises")


def _readings(place: str) -> list[tuple[str, str | None]]:
    """What a name may mean: of two parts, the second may belong to the name or be a configuration."""
    parts = place.split("/")
    if len(parts) == 1:
        return [(place, None)]
    with_configuration = ("/".join(parts[:-1]), parts[-1])
    return [with_configuration] if len(parts) > 2 else [(place, None), with_configuration]


def _columns(name: str, features: Mapping[str, Any], asked: str) -> _Columns:
    import datasets

    listed = ", ".join(features)
    if asked and asked not in features:
        raise CorpusError(f"{name} has no column {asked!r}; it has {listed}.")
    words = next((one for one in WORDS if one in features and _inside(features[one]) is not None), None)
    if words is not None:
        lists = [one for one in features if one != words and _inside(features[one]) is not None]
        known = [one for one in TAGS if one in lists]
        label = asked or (lists[0] if len(lists) == 1 else known[0] if len(known) == 1 else "")
        if label not in lists:
            raise CorpusError(
                f"{name} has the columns {listed}, and which one tags the words of {words!r} cannot be told; "
                f"name it: {name.partition('#')[0]}#COLUMN."
            )
        return _Columns("tagging", (words,), label, tuple(getattr(_inside(features[label]), "names", ())))
    label = asked or next((one for one in LABELS if one in features), "")
    if not label:
        raise CorpusError(
            f"{name} has the columns {listed}, and none of them is called {' or '.join(map(repr, LABELS))}; name "
            f"the one of the labels: {name}#COLUMN."
        )
    strings = [
        one for one, kind in features.items()
        if one != label and one not in _NAMES_NO_TEXT and getattr(kind, "dtype", "") in ("string", "large_string")
    ]  # fmt: skip
    texts = next((texts for texts in TEXTS if set(texts) <= set(strings)), tuple(strings))
    if not 1 <= len(texts) <= 2:
        raise CorpusError(
            f"{name} has the columns {listed}, and which one or two hold the texts cannot be told; rename them 'text' "
            "and 'text2' in a folder of your own."
        )
    kind = features[label]
    if isinstance(kind, datasets.ClassLabel):
        return _Columns("classification", texts, label, tuple(kind.names))
    if _inside(kind) is not None:
        raise CorpusError(f"{name} has lists in the column {label!r}; a label for a text is one value.")
    numbers = str(getattr(kind, "dtype", "")).startswith("float")
    return _Columns("regression" if numbers else "classification", texts, label, ())


def _inside(feature: Any) -> Any:
    """What a column of lists has lists of; None for another column."""
    return getattr(feature, "feature", None)


def _examples(where: str, rows: Any, columns: _Columns, left_out: Counter[str]) -> Iterator[Example]:
    missing = [one for one in (*columns.texts, columns.label) if one not in rows.features]
    if missing:
        raise CorpusError(
            f"{where} has no column {missing[0]!r}, which the other splits have; it has no labels to use."
        )
    for number, row in enumerate(rows.select_columns([*columns.texts, columns.label]), start=1):
        called = f"{where}, row {number}"
        label = row[columns.label]
        if columns.kind == "tagging":
            words, tags = tuple(row[columns.texts[0]] or ()), tuple(_label(one, columns) for one in label or ())
            if not words or not all(word and word.strip() for word in words):
                left_out[NO_TEXT] += 1
            elif all(tag is None for tag in tags):
                left_out[UNLABELLED] += 1
            elif len(words) != len(tags):
                raise CorpusError(
                    f"{called} has {len(words)} words and {len(tags)} tags; a word wants one tag: correct it."
                )
            else:
                yield Example(called, words=words, tags=tags, group=" ".join(words))
            continue
        texts = tuple((row[one] or "").strip() for one in columns.texts)
        known = _number(label) if columns.kind == "regression" else _label(label, columns)
        if not all(texts):
            left_out[NO_TEXT] += 1
        elif known is None:
            left_out[UNLABELLED] += 1
        else:
            yield Example(called, texts=texts, label=known, group="\t".join(texts))


def _label(value: Any, columns: _Columns) -> str | None:
    """A label by its name; None where there is none, which sets without labels write as -1."""
    if value in (None, "") or (columns.names and value == -1):
        return None
    return columns.names[value] if columns.names else str(value)


def _number(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _sha256(splits: Mapping[str, Sequence[Example]]) -> str:
    digest = hashlib.sha256()
    for split, examples in splits.items():
        for one in examples:
            line = json.dumps([split, one.texts, one.label, one.words, one.tags], ensure_ascii=False)
            digest.update(f"{line}\n".encode())
    return digest.hexdigest()
