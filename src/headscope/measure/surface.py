"""What heads look at, whatever the words: Clark et al. 2019, section 3."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float64
from torch import Tensor

from headscope import heads
from headscope.capture.attention import Attention
from headscope.capture.batch import Batch
from headscope.corpora.corpus import Survey
from headscope.measure.reducer import Sums

SHARE, NATS = "share of attention", "nats"
CLARK = "Clark et al. 2019, section "

VARIABLES: Mapping[str, tuple[str, str, str]] = {
    "mass_self": ("attention to the token itself", SHARE, CLARK + "3.1"),
    # Clark divides by all queries, so that short texts weigh the first token in; only queries that
    # have a previous (next) token count here.
    "mass_previous": ("attention to the token before, where there is one", SHARE, CLARK + "3.1"),
    "mass_next": ("attention to the token after, where there is one", SHARE, CLARK + "3.1"),
    "mass_cls": ("attention to the classification token", SHARE, CLARK + "3.2"),
    "mass_sep": ("attention to separators", SHARE, CLARK + "3.2"),
    "mass_punctuation": ("attention to full stops and commas", SHARE, CLARK + "3.2"),
    "mass_first": ("attention to the first token", SHARE, "Xiao et al. 2024, section 3 (attention sinks)"),
    # Clark always divides by two separators; the number that is there counts here.
    "mass_sep_from_sep": ("attention to separators from separators", SHARE, CLARK + "3.2"),
    "mass_sep_from_other": ("attention to separators from all other tokens", SHARE, CLARK + "3.2"),
    "entropy": ("entropy of the attention", NATS, CLARK + "3.3"),
    "entropy_from_cls": ("entropy of the attention from the classification token", NATS, CLARK + "3.3"),
    "entropy_uniform": ("entropy if all keys that the mask allows had the same weight", NATS, CLARK + "3.3"),
}
"""Name -> what it is, unit, source. Each is the mean over documents of the document's mean over its queries."""

_COLUMNS = ("cls", "sep", "punctuation", "first")
_OFFSETS = (0, -1, 1)


@dataclass(frozen=True)
class Surface:
    """Attention to special tokens, punctuation and neighbours, and its entropy.

    A document in which a value is not defined (no separator, only one token) does not count for
    it; where no document counts, the value is NaN.
    """

    name: ClassVar[str] = "surface"
    whole: ClassVar[bool] = False
    max_tokens: ClassVar[int | None] = None

    @classmethod
    def over(cls, survey: Survey) -> "Surface":
        """Any text will do."""
        return cls()

    def count(self, batch: Batch, stack: str) -> Sums:
        """The number of documents in which each value is defined."""
        shares = _facts(batch, stack).shares
        return {name: (share.sum(1) > 0).sum() for name, share in shares.items()}

    def observe(self, attention: Attention) -> Sums:
        """For each value, the sum over documents of the part of the mean that these rows make up."""
        rows = attention.rows
        facts = _facts(attention.batch, attention.stack)
        masses = attention.average(facts.columns)
        neighbours = attention.at(facts.neighbours[:, rows])
        seen: dict[str, Tensor] = {f"mass_{name}": masses[..., i] for i, name in enumerate(_COLUMNS)}
        seen |= {name: neighbours[..., i] for i, name in enumerate(("mass_self", "mass_previous", "mass_next"))}
        seen["mass_sep_from_sep"] = seen["mass_sep_from_other"] = seen["mass_sep"]
        seen["entropy"] = seen["entropy_from_cls"] = attention.entropy()
        uniform = attention.visible().clamp_min(1).log()
        seen["entropy_uniform"] = uniform[:, None].expand(-1, attention.heads, -1)
        return {name: _total(seen[name], facts.shares[name][:, rows]) for name in VARIABLES}

    def result(self, sums: Mapping[str, np.ndarray], counts: Mapping[str, np.ndarray]) -> xr.Dataset:
        """Each value for each layer and head."""
        values = {}
        for variable, (name, units, source) in VARIABLES.items():
            count = float(counts[variable])
            mean = sums[variable] / count if count else np.full_like(sums[variable], np.nan)
            values[variable] = heads.variable(mean, ("layer", "head"), name=name, units=units, source=source)
        return xr.Dataset(values)


@dataclass(frozen=True, eq=False)
class _Facts:
    """What is known of a batch before any attention.

    Attributes:
        columns: for each of `_COLUMNS`, 1 on its keys.
        neighbours: for each of `_OFFSETS`, the key that stands there (any, if none does).
        shares: for each value, the share of each query in its document's mean.
    """

    columns: Tensor
    neighbours: Tensor
    shares: dict[str, Tensor]


@lru_cache(maxsize=4)
def _facts(batch: Batch, stack: str) -> _Facts:
    queries, keys = batch.queries(stack), batch.keys(stack)
    first = torch.zeros_like(keys.real)
    first[:, 0] = True
    columns = torch.stack([keys.cls, keys.sep, keys.punctuation, first], dim=-1).float()
    first_position = keys.position[:, :1]
    last_position = keys.position.where(keys.real, -1).amax(1, keepdim=True)
    neighbours, there = [], []
    for offset in _OFFSETS:
        place = queries.position + offset
        there.append(queries.real & (place >= first_position) & (place <= last_position))
        neighbours.append((place - first_position).clamp(0, keys.length - 1))
    has = {name: bool_column.any(1, keepdim=True) for name, bool_column in (("cls", keys.cls), ("sep", keys.sep))}
    which = {
        "mass_self": there[0],
        "mass_previous": there[1],
        "mass_next": there[2],
        "mass_cls": queries.real & has["cls"],
        "mass_sep": queries.real & has["sep"],
        "mass_punctuation": queries.real,
        "mass_first": queries.real,
        "mass_sep_from_sep": queries.sep & has["sep"],
        "mass_sep_from_other": queries.real & ~queries.sep & has["sep"],
        "entropy": queries.real,
        "entropy_from_cls": queries.cls,
        "entropy_uniform": queries.real,
    }
    shares = {name: rows.double() / rows.sum(1, keepdim=True).clamp_min(1) for name, rows in which.items()}
    return _Facts(columns, torch.stack(neighbours, dim=-1), shares)


def _total(values: Tensor, share: Tensor) -> Float64[Tensor, " head"]:
    # Padding may hold anything, NaN included; its share is 0.
    counted = (share > 0)[:, None]
    return (values.where(counted, 0).double() * share[:, None]).sum((0, 2))
