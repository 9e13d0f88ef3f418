"""Sums of a whole run: merged by ``+``, kept on disk so that a killed run can be resumed."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headscope.capture.model.device_names import PROCESSOR
from headscope.errors import HeadscopeError
from headscope.files import atomic_write, parse_json
from headscope.guards.archives import load_arrays
from headscope.guards.formats import SUMS
from headscope.identity import drop_remarks

SCHEMA = 6
"""The version of the file format. Other versions are refused, since their sums may mean something else."""

ADVICE = "delete it, or run without --resume"
"""The advice for sums of an interrupted run that cannot be used."""

Key = tuple[str, ...]
"""The key of a sum: ``(REDUCER, "encoder", "3", "correct")`` is reducer, attention type, layer and name.

The layer is `COUNTED` for sums that need no attention, and `ALL_LAYERS` for sums that have an axis of layers. The
keys of counts of the run itself have two parts.
"""

COUNTED = "-"
ALL_LAYERS = "*"


def describe_key(key: Key) -> str:
    """Return a description of the key of a sum, such as ``relations correct of encoder layer 3``."""
    if len(key) != 4:
        return " ".join(map(str, key))
    reducer, attention_type, layer, name = key
    return f"{reducer} {name} of {attention_type}{'' if layer in (COUNTED, ALL_LAYERS) else f' layer {layer}'}"


def add_sums(total: dict[Any, Any], values: Mapping[Any, Any]) -> None:
    """Add values in place to the sums with the same keys, and insert the values with new keys."""
    for key, value in values.items():
        total[key] = total[key] + value if key in total else value


def bring_home(sums: Mapping[Key, Tensor]) -> dict[Key, Tensor]:
    """Return the sums moved to the processor (CPU), with one transfer for each device and type."""
    groups = defaultdict[tuple[torch.device, torch.dtype], list[Key]](list)
    for key, value in sums.items():
        groups[value.device, value.dtype].append(key)
    home: dict[Key, Tensor] = {}
    for (device, _), keys in groups.items():
        if device.type == PROCESSOR:
            home |= {key: sums[key] for key in keys}
            continue
        together = torch.cat([sums[key].flatten() for key in keys]).to(PROCESSOR)
        parts = torch.split(together, [sums[key].numel() for key in keys])
        home |= {key: part.reshape(sums[key].shape) for key, part in zip(keys, parts, strict=True)}
    return {key: home[key] for key in sums}


@dataclass(frozen=True)
class RunSums:
    """The sums of a run over the batches that are done.

    Attributes:
        values: Arrays of float64 or int64.
    """

    values: Mapping[Key, np.ndarray]

    @classmethod
    def from_tensors(cls, sums: Mapping[Key, Tensor]) -> "RunSums":
        """Make run sums from tensors on the processor, as NumPy arrays in C order.

        NumPy adds in the order in which values lie in memory, and a file keeps only C order. Without C order here, a
        resumed run could differ in the last bit.
        """
        return cls({key: value.contiguous().numpy() for key, value in sums.items()})

    def __add__(self, other: "RunSums") -> "RunSums":
        merged = dict(self.values)
        add_sums(merged, other.values)
        return RunSums({key: np.asarray(value) for key, value in merged.items()})

    def collect_layers(self, reducer: str, attention_type: str, layers: Sequence[int]) -> dict[str, np.ndarray]:
        """Return the sums of one reducer by name, with the layers in `layers` as the first axis."""
        observed = [key for key in self.values if key[:2] == (reducer, attention_type) and key[2] != COUNTED]
        return {
            name: self.values[reducer, attention_type, ALL_LAYERS, name]
            if (reducer, attention_type, ALL_LAYERS, name) in self.values
            else np.stack([self.values[reducer, attention_type, str(layer), name] for layer in layers])
            for name in sorted({key[3] for key in observed})
        }

    def select_counts(self, reducer: str, attention_type: str) -> dict[str, np.ndarray]:
        """Return the sums of one reducer that need no attention (from `count`), by name."""
        return {key[3]: value for key, value in self.values.items() if key[:3] == (reducer, attention_type, COUNTED)}

    def select_run(self, kind: str) -> dict[str, int]:
        """Return the counts of one kind that belong to the run and not to a reducer, by name.

        The kinds are ``seen`` (such as portions, documents, words and tokens), ``skipped`` (documents by reason) and
        ``path`` (texts by the way in which the attention of a layer was computed).
        """
        return {key[1]: int(value) for key, value in sorted(self.values.items()) if key[0] == kind and len(key) == 2}


def save(sums: RunSums, path: Path, *, identity: Mapping[str, Any]) -> None:
    """Write sums and the identity of their run to `path` in one step, so that no partial file remains.

    Raises:
        HeadscopeError: The disk refuses the file.
    """
    arrays = {json.dumps(key): value for key, value in sums.values.items()}
    # Keys keep their order, in which attention types and relations are listed.
    header = json.dumps({"schema": SCHEMA, "identity": dict(identity), "sha256": _hash(arrays)})
    with atomic_write(path) as temporary, temporary.open("wb") as file:
        np.savez(file, allow_pickle=False, header=np.array(header), **arrays)


def _hash(arrays: Mapping[str, np.ndarray]) -> str:
    """Return the SHA-256 of named arrays: of their names, types, shapes and values."""
    digest = hashlib.sha256()
    for name, array in arrays.items():
        digest.update(f"{name} {array.dtype.str} {array.shape} ".encode())
        digest.update(np.ascontiguousarray(array).reshape(-1).data)
    return digest.hexdigest()


def load(
    path: Path,
    *,
    content: str = "the sums of an interrupted run",
    advice: str = ADVICE,
) -> tuple[RunSums, dict[str, Any]]:
    """Return the sums that `save` wrote, and the identity of their run; errors quote `content` and `advice`.

    Raises:
        HeadscopeError: The file does not hold such sums, was written by another version, or was changed since.
    """
    refusal = HeadscopeError(f"{path} does not hold {content}; {advice}.")
    try:
        # `save` compresses nothing, so a file that unpacks to more is not one of its files.
        arrays = load_arrays(path, SUMS, packed=False)
        # The first version had facts and no header.
        header: dict[str, Any] = {"schema": 1} if "facts" in arrays else parse_json(str(arrays.pop("header")))
        if header["schema"] != SCHEMA:
            raise HeadscopeError(
                f"{path} was written by another version of headscope (its schema is {header['schema']}, not "
                f"{SCHEMA}), so it cannot be used; {advice}."
            )
        if header["sha256"] != _hash(arrays):
            raise HeadscopeError(f"{path} does not hold the numbers that were written, as its checksum says; {advice}.")
        values = {tuple(parse_json(name)): array for name, array in arrays.items()}
        return RunSums(values), dict(header["identity"])
    except HeadscopeError:
        raise
    # NumPy's parser of headers, the zip file and JSON each raise errors of their own.
    except Exception as error:
        raise refusal from error


def resume(path: Path, identity: Mapping[str, Any]) -> RunSums:
    """Return the sums that a killed run left in a file; raise an error if its identity is not `identity`.

    Raises:
        HeadscopeError: The sums belong to another run, or the file holds no sums (`load`).
    """
    done, left_by = load(path)
    left_by, identity = (
        each | {"about": drop_remarks(each.get("about", {}))} for each in (left_by, json.loads(json.dumps(identity)))
    )
    if left_by != identity:
        before, now = left_by["about"], identity["about"]
        others = [name for name in (*identity, *left_by) if left_by.get(name) != identity.get(name)]
        # Name also a part that only one of the runs has, such as a shard.
        different = [key for key in now if before.get(key) != now[key]] or [*dict.fromkeys(others)]
        raise HeadscopeError(
            f"{path} was left by another run (its {', '.join(different)} differ from what is asked for now); {ADVICE}."
        )
    return done
