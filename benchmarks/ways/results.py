"""The results of the processes of all ways: kept in a file, compared, and summarized as a point for each length.

The file has one JSON object a line: first the machine, then a line a process. A run that was killed loses the
process it was in and no other.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median

import numpy as np

VARIABLES = (
    *("mass_self", "mass_previous", "mass_next", "mass_cls", "mass_sep", "mass_sep_from_sep", "mass_sep_from_other"),
    *("mass_punctuation", "mass_first", "entropy", "entropy_from_cls", "entropy_uniform"),
    *("mean_distance", "mass_distance"),
)
"""The statistics that every way computes."""

ABSOLUTE, RELATIVE, NEXT_TO_NOTHING = 1e-4, 1e-3, 1e-7
"""Two ways may differ by this, the smaller of the two counting: in a long text most shares are below 1e-4."""

RELATIVE_OF_DISTANCE = 1e-5
"""For the mean distance, which is in tokens."""


class DisagreementError(Exception):
    """Two ways gave different numbers for the same statistic."""


@dataclass(frozen=True)
class Run:
    """One process of one way.

    Attributes:
        shape, length, way, round: which it was.
        version: of the package that the way shows.
        failure: which limit it went over; empty if none, and without it nothing below is known.
        pass_seconds: the median of the timed passes.
        process_seconds: start, loading, warm-up and one pass.
        peak_mib: of the whole process.
        against: whose statistics its own were held to; empty if none were there.
        differences: the largest of each variable.
    """

    shape: str
    length: int
    way: str
    round: int
    version: str
    failure: str = ""
    pass_seconds: float = 0.0
    process_seconds: float = 0.0
    peak_mib: float = 0.0
    against: str = ""
    differences: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Point:
    """One way at one length: medians over the rounds, ratios taken within a round."""

    pass_seconds: float
    pass_ratio: float
    process_seconds: float
    peak_mib: float


@dataclass(frozen=True)
class Results:
    """All runs so far, and the machine they ran on."""

    machine: Mapping[str, str]
    runs: list[Run]

    def done(self, shape: str, length: int, way: str, number: int) -> bool:
        """This round of a way was run, or a text as long or shorter was too much for it."""
        of_way = [run for run in self.runs if (run.shape, run.way) == (shape, way)]
        return any(
            (run.length, run.round) == (length, number) or (run.failure and run.length <= length) for run in of_way
        )

    def failure(self, shape: str, length: int, way: str) -> Run | None:
        """The run that kept this length from being measured, at this length or a shorter one."""
        failed = [run for run in self.runs if (run.shape, run.way) == (shape, way) and run.failure]
        return next((run for run in failed if run.length <= length), None)

    def point(self, shape: str, length: int, way: str) -> Point | None:
        """The medians of a way at a length; None if a limit was in the way, or it was not run."""
        runs = self._by_round(shape, length, way)
        if not runs or self.failure(shape, length, way):
            return None
        bare = self._by_round(shape, length, "bare")
        ratios = [run.pass_seconds / bare[number].pass_seconds for number, run in runs.items() if number in bare]
        return Point(
            median(run.pass_seconds for run in runs.values()),
            median(ratios) if ratios else float("nan"),
            median(run.process_seconds for run in runs.values()),
            median(run.peak_mib for run in runs.values()),
        )

    def _by_round(self, shape: str, length: int, way: str) -> dict[int, Run]:
        wanted = (shape, length, way, "")
        return {run.round: run for run in self.runs if (run.shape, run.length, run.way, run.failure) == wanted}


def read(path: Path) -> Results:
    """The results that `append` wrote."""
    machine, *runs = map(json.loads, path.read_text().splitlines())
    return Results(machine, [Run(**run) for run in runs])


def append(path: Path, lines: Iterable[Run | Mapping[str, str]]) -> None:
    """Add runs, or at the beginning the machine, to a file of results."""
    with path.open("a") as file:
        file.writelines(json.dumps(asdict(line) if isinstance(line, Run) else line) + "\n" for line in lines)


def compare(numbers: Path, reference: Path, *, way: str, against: str) -> dict[str, float]:
    """The largest difference of each variable that both files hold.

    Raises:
        DisagreementError: one is larger than it may be, or defined in one file and not in the other.
    """
    computed, expected = np.load(numbers), np.load(reference)
    differences = {}
    for variable in (name for name in VARIABLES if name in computed and name in expected):
        ours, theirs = computed[variable], expected[variable]
        if ours.shape != theirs.shape:
            raise DisagreementError(f"{way}: {variable} has the shape {ours.shape}, and {theirs.shape} in {against}.")
        difference, size = np.abs(ours - theirs), np.abs(theirs)
        allowed = np.minimum(ABSOLUTE, NEXT_TO_NOTHING + RELATIVE * size)
        if variable == "mean_distance":
            allowed = RELATIVE_OF_DISTANCE * size
        wrong = np.argwhere(~(difference <= allowed) & ~(np.isnan(ours) & np.isnan(theirs)))
        if len(wrong):
            place = tuple(wrong[0].tolist())
            raise DisagreementError(
                f"{way}: {variable} at {place} (layer and head first, from 0) is {ours[place]:.8g}, and "
                f"{theirs[place]:.8g} in {against}; {len(wrong)} of {ours.size} values differ too much."
            )
        differences[variable] = float(np.nanmax(difference, initial=0.0))
    return differences
