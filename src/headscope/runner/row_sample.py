"""Statistics of long texts, estimated from a random sample of their query rows, with the error of the estimate.

text --RowSample.draw--> blocks of rows --observe--> sums of each block --estimate--> sums, and how samples deviate

Each text has its own rows, whatever else is in its batch. If texts shared rows, their errors would depend on each other
where a head prefers some positions, but would count as independent. So a text whose rows are sampled is a batch of its
own. It is sampled `SAMPLES` times. Each sample takes rows at a fixed step from a random row on, so that it has rows
from all over the text: systematic samples with several random starts (Gautschi 1957, Some remarks on systematic
sampling). Each sample estimates the sum over all rows without bias. The mean of the samples is the estimate, and their
spread gives its error, whatever the reducer computes from the sums. The rows that are unlike all others, the first rows
and the rows of special tokens, are always measured.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float64
from scipy.special import stdtrit
from torch import Tensor

from headscope import heads
from headscope.capture.tokens.batch import Batch
from headscope.reducers.reducer import Reducer, Sums
from headscope.runner.checkpoint import Key, add_sums
from headscope.runner.own_sums import call_result

SAMPLES = 16
"""The number of samples of each text."""

LEAST_ROWS = 2 * SAMPLES
"""The least number of rows of all samples together."""

FIRST_ROWS = 64
"""The number of first rows of a text, which are always measured.

In these rows a token sees few other tokens, so its attention is unlike the attention in other rows. Most of the
attention that some heads give to a neighbour comes from these rows.
"""

PARTS = 4
"""The largest number of parts into which a text is divided; a block has the rows of one sample in one part."""

PART_ROWS = 1024
"""The least number of rows of a part; if rows see few keys, a few large blocks are faster than many small ones."""

LEVEL = 0.95
"""The coverage of the intervals."""

DEVIATION = ":deviation"
"""The suffix that the name of a sum gets for its deviations, whose last axis is the sample."""


@dataclass(frozen=True, eq=False)
class RowSample:
    """The rows of a text that are measured.

    Attributes:
        length: The number of all rows.
        step: The step between the rows of a sample.
        starts: The first row of each sample, counted from 0.
        special: The rows of special tokens after the first rows. They are measured in addition to the samples, since
            they are few and some statistics describe only them.
    """

    length: int
    step: int
    starts: Sequence[int]
    special: Sequence[int]

    @classmethod
    def draw(cls, batch: Batch, attention_type: str, rows: int, seed: int) -> "RowSample | None":
        """Draw about `rows` rows of the text of a batch; return None if these are all rows or there are several texts.

        The same text and seed always give the same rows.
        """
        if len(batch.documents) > 1:
            return None
        queries = batch.queries(attention_type)
        step = -(-(queries.length - FIRST_ROWS) * SAMPLES // rows)
        if step <= SAMPLES:
            return None
        identity = repr((seed, attention_type, batch.encoder.ids.tolist()))
        generator = np.random.default_rng(int.from_bytes(hashlib.sha256(identity.encode()).digest()[:8]))
        starts = FIRST_ROWS + generator.choice(step, SAMPLES, replace=False)
        special = (queries.cls | queries.sep)[:, FIRST_ROWS:].any(0).nonzero()[:, 0] + FIRST_ROWS
        return cls(queries.length, step, starts.tolist(), special.tolist())

    @property
    def blocks(self) -> Iterator[slice]:
        """The rows in blocks: the first rows, each special row, and the rows of each sample."""
        yield slice(0, FIRST_ROWS)
        for row in self.special:
            yield slice(row, row + 1)
        # Part by part of the text, since the rows of a part see about the same keys.
        rest = self.length - FIRST_ROWS
        part = self.step * -(-rest // (self.step * min(PARTS, -(-rest // PART_ROWS))))
        for begin in range(0, rest, part):
            for start in self.starts:
                block = slice(begin + start, min(FIRST_ROWS + begin + part, self.length), self.step)
                if block.start < block.stop:
                    yield block

    def estimate(self, observed: Sequence[tuple[slice, Sums]]) -> Sums:
        """Estimate from the sums of blocks the sums over all rows, and the deviation of each sample from the estimates.

        Samples are drawn without replacement, so their deviations shrink with the share of the rows that is drawn
        (Cochran 1977, section 2.6).
        """
        certain: Sums = {}
        samples: dict[int, Sums] = {start % self.step: {} for start in self.starts}
        for rows, sums in observed:
            sample = samples.get(rows.start % self.step, {})
            if rows.step is not None:
                add_sums(sample, _weigh(sums, self.step))
                continue
            add_sums(certain, _weigh(sums, 1))
            if rows.start >= FIRST_ROWS:
                add_sums(sample, _weigh(sums, -self.step))  # do not count the row twice in a sample that has it
        shrink = (1 - len(self.starts) / self.step) ** 0.5
        estimates: Sums = {}
        for name, total in certain.items():
            by_sample = torch.stack([total + sums[name] for sums in samples.values()], dim=-1)
            estimates[name] = by_sample.mean(-1)
            estimates[f"{name}{DEVIATION}"] = (by_sample - estimates[name][..., None]) * shrink
        return estimates


def find_shortest(rows: int) -> int:
    """Return the least number of tokens of a text from which about `rows` rows may be sampled.

    A decoder reads up to two tokens more than its text has: a start token and a token of padding.
    """
    return FIRST_ROWS + rows - 1


def add_no_deviations(sums: Sums) -> Sums:
    """Return exact sums together with their deviations, which are 0 for each sample."""
    return sums | {f"{name}{DEVIATION}": value.new_zeros((*value.shape, SAMPLES)) for name, value in sums.items()}


def find_other_kind(first: Mapping[Key, Any], other: Mapping[Key, Any]) -> Key | None:
    """Return the key of the first sum whose shape or type differs between two runs; None if all are alike.

    Types may differ where rows are sampled: estimates have fractions where the sums of a short text have none.
    """
    for key, ours in first.items():
        theirs = other.get(key, ours)
        sampled = (*key[:-1], f"{key[-1]}{DEVIATION}") in first or key[-1].endswith(DEVIATION)
        if ours.shape != theirs.shape or (ours.dtype != theirs.dtype and not sampled):
            return key
    return None


def find_result(reducer: Reducer, sums: Mapping[str, np.ndarray], counts: Mapping[str, np.ndarray]) -> xr.Dataset:
    """Return the result of a reducer; for estimated sums, add both ends of the interval of each value of a head."""
    deviations = {name.removesuffix(DEVIATION): sums[name] for name in sums if name.endswith(DEVIATION)}
    if not deviations:
        return call_result(reducer, sums, counts)
    estimates = {name: sums[name] for name in deviations}
    values = call_result(reducer, estimates, counts)
    samples = [
        reducer.result({name: estimates[name] + deviations[name][..., sample] for name in estimates}, counts)
        for sample in range(SAMPLES)
    ]
    ends: dict[str, xr.Variable] = {}
    for name, value in values.data_vars.items():
        # Sums by fold are parts of scores and not values themselves.
        if {"layer", "head"} <= {*value.dims} and "fold" not in value.dims:
            interval = find_interval(value.values, np.stack([sample[name].values for sample in samples]))
            for side, end in zip(("lower", "upper"), interval, strict=True):
                what = f"{side} end of the 95 % interval of {name} on these texts, from a sample of their query rows"
                about = {"units": value.attrs["units"], "source": value.attrs["source"]}
                ends[f"{name}_{side}"] = heads.variable(end, [*map(str, value.dims)], name=what, **about)
    return values.assign(ends)


def find_interval(
    value: Float64[np.ndarray, "..."], samples: Float64[np.ndarray, "..."]
) -> tuple[Float64[np.ndarray, "..."], Float64[np.ndarray, "..."]]:
    """Return the lower and the upper ends of the intervals of values, from independent samples on the first axis.

    The interval is Student's t, transformed to allow for skewness (Hall 1992, On the removal of skewness by
    transformation): much of what a head gives to a neighbour comes from few rows, and samples without these rows lie
    close together.
    """
    count = len(samples)
    deviations = samples - value
    spread = samples.std(0, ddof=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        skewness = np.nan_to_num((deviations**3).mean(0) / spread**3)
    # Without skewness the transformation is the identity, but its formula divides by 0.
    skewness = np.where(np.abs(skewness) < 1e-6, 1e-6, skewness)
    quantiles = stdtrit(count - 1, [(1 + LEVEL) / 2, (1 - LEVEL) / 2])
    low, high = (
        value - spread * 3 / skewness * (np.cbrt(1 + skewness * (t / count**0.5 - skewness / (6 * count))) - 1)
        for t in quantiles
    )
    return np.asarray(low), np.asarray(high)


def _weigh(sums: Mapping[str, Tensor], weight: int) -> Sums:
    return {name: weight * value.double() for name, value in sums.items()}
