"""Sums of a whole run: merged by ``+``, kept on disk so that a killed run can go on."""

import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from headscope.errors import HeadscopeError
from headscope.files import atomic_write

ZIP_ERRORS = (zipfile.BadZipFile, zlib.error)

Key = tuple[str, ...]
"""What a sum is of: ``("relations", "encoder", "3", "correct")`` is reducer, attention type, layer, name; what is
counted without attention has ``"-"`` for a layer, and counts of the run itself have two parts."""


@dataclass(frozen=True)
class Totals:
    """Everything a run has added up so far.

    Attributes:
        values: float64 or int64 arrays.
    """

    values: Mapping[Key, np.ndarray]

    @classmethod
    def of(cls, sums: Mapping[Key, Tensor]) -> "Totals":
        """Sums of tensors, wherever they are."""
        return cls({key: value.cpu().numpy() for key, value in sums.items()})

    def __add__(self, other: "Totals") -> "Totals":
        merged = dict(self.values)
        for key, value in other.values.items():
            merged[key] = np.asarray(merged[key] + value) if key in merged else value
        return Totals(merged)

    def of_layers(self, reducer: str, attention_type: str, layers: int) -> dict[str, np.ndarray]:
        """The sums of one reducer, layers stacked as the first axis."""
        names = sorted({key[3] for key in self.values if key[:2] == (reducer, attention_type) and key[2] != "-"})
        return {
            name: np.stack([self.values[reducer, attention_type, str(layer), name] for layer in range(1, layers + 1)])
            for name in names
        }

    def counts(self, reducer: str, attention_type: str) -> dict[str, np.ndarray]:
        """What one reducer counted without attention."""
        return {key[3]: value for key, value in self.values.items() if key[:3] == (reducer, attention_type, "-")}

    def of_run(self, kind: str) -> dict[str, int]:
        """Counts of the run itself: ``seen`` (documents, words, tokens, batches) or ``skipped`` (by reason)."""
        return {key[1]: int(value) for key, value in sorted(self.values.items()) if key[0] == kind and len(key) == 2}


def save(totals: Totals, path: Path, *, facts: Mapping[str, Any]) -> None:
    """Write sums to `path`, whole or not at all; `facts` say of which run they are.

    Raises:
        HeadscopeError: the disk refuses the file.
    """
    arrays = {"/".join(key): value for key, value in totals.values.items()}
    with atomic_write(path) as temporary, temporary.open("wb") as file:
        np.savez(file, allow_pickle=False, facts=np.array(json.dumps(dict(facts), sort_keys=True)), **arrays)


def load(path: Path) -> tuple[Totals, dict[str, Any]]:
    """The sums that `save` wrote, and of which run they are.

    Raises:
        HeadscopeError: the file is not one of those.
    """
    try:
        with np.load(path, allow_pickle=False) as stored:
            facts = dict(json.loads(str(stored["facts"])))
            values = {tuple(name.split("/")): stored[name] for name in stored.files if name != "facts"}
    except (OSError, EOFError, ValueError, KeyError, TypeError, NotImplementedError, *ZIP_ERRORS) as error:
        raise HeadscopeError(
            f"{path} does not hold the sums of an interrupted run; delete it, or run without --resume."
        ) from error
    return Totals(values), facts
