"""Scores with their descriptions: how each number of a head is computed, and the words for it.

A reducer declares its scores next to its sums, and the runner writes them into the head table. Intervals, the selection
of a head on one half of the texts, permutations, comparisons, CSV files, terminal, figures and page read them from
there.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import reduce
from operator import add
from typing import Any

import xarray as xr

from headscope.errors import TableError, say_no_table

ATTRIBUTE = "scores"
"""The attribute of a head table that holds its scores, as JSON."""

HEAD = ("attention_type", "layer", "head", "direction")
"""The dimensions over which the best head is chosen. Any other dimension of a score has its rows."""

_INNER = ("run", "fold", "permutation", "offset", *HEAD)


@dataclass(frozen=True)
class Rival:
    """A rule that needs no model and predicts the same items as a head; a head that stands out beats all its rivals.

    A rival may also be another sum of the same head, such as its attention to the tokens next to the scored ones.

    A rival may have options, such as the offset in words. The best option is chosen on the half of the corpus on which
    the head is chosen. A rival does not apply to a table that lacks its variables.

    Attributes:
        name: the part of its variables' names after ``heldout_`` and ``lift_over_`` in the report.
        title: its description, as a noun phrase.
        numerator, denominator: variables by fold, as in a `Score`; by head too if they are sums of the same head. Their
            last dimensions are the options.
        options: the dimensions of its options.
        label: a description of the chosen rule, with its options in braces; by default the title.
        needs: the annotation that it needs; empty if any corpus will do.
    """

    name: str
    title: str
    numerator: tuple[str, ...]
    denominator: tuple[str, ...]
    options: tuple[str, ...] = ()
    label: str = ""
    needs: str = ""

    def __post_init__(self) -> None:
        """Raise an error for a label with a field that is not an option."""
        try:
            self.describe(dict.fromkeys(self.options, ""))
        except (LookupError, ValueError, TypeError, AttributeError) as error:
            known = ", ".join(f"{{{option}}}" for option in self.options) or "none, for it has no options"
            raise TableError(
                f"the label {self.label or self.title!r} of the rival {self.name!r} cannot be filled in; "
                f"write its options in braces: {known}."
            ) from error

    def applies(self, table: xr.Dataset) -> bool:
        """Return True if a table has the variables of this rival."""
        return {*self.numerator, *self.denominator} <= {*table.data_vars}

    def describe(self, options: Mapping[str, str]) -> str:
        """Return a description of the rule with the chosen options, such as ``offset -1``."""
        return (self.label or self.title).format(**options)


OFFSETS = (-5, -4, -3, -2, -1, 1, 2, 3, 4, 5)
"""The distances, in words, among which the reducers of headscope choose the best fixed offset."""


def offset_rival(numerator: str | tuple[str, ...], denominator: str | tuple[str, ...]) -> Rival:
    """Return the rival that always takes the word at the best fixed distance (Clark et al. 2019, section 4.2)."""
    above, below = ((names,) if isinstance(names, str) else names for names in (numerator, denominator))
    return Rival("offset", "best fixed offset", above, below, ("offset",), "offset {offset}")


@dataclass(frozen=True)
class Score:
    """A score of heads: a ratio of two sums by fold, or, without sums, a description of where attention goes.

    A variable's name consists of a stem and a measure: ``rarest_accuracy`` has the stem ``rarest``. Other variables of
    the score begin with its stem: ``rarest_count`` is the number of items in the corpus, and ``rarest_permuted``,
    ``rarest_z``, ``rarest_p`` and ``rarest_z_permuted`` compare the score with permutations.

    Attributes:
        variable: the name of its variable, with the dimensions layer, head, ``direction`` (if there are two), and the
            dimension of its rows (if it has rows).
        title: the task on which heads are scored.
        definition: how the score of a head is computed, in a sentence without a full stop.
        numerator, denominator: variables by fold; the score is the sum of the first over the sum of the second.
        rivals: rules without the model, which a head must beat.
        items: a plural noun for the items that the denominator counts.
        rows: a plural noun for its rows.
        label: the name of a row where the title is not shown above it; ``{}`` is the row's own name.
        attends: the word whose attention is measured, if the table has no direction.
        permuted: how the gold is permuted for the permuted score.
        baselines: variables to compare it with, and a description of each.
        control: the variable of the baseline that is shown next to a description.
        breakdown: a dimension such as ``length`` that divides the score into ``length_accuracy`` and ``length_count``.
        regression: the name of the quantity that is regressed on the gold and the distance, and the meaning of a gold
            value of 1; empty if there are no sums for a regression.
        reported: true if a head is chosen by it and reported with intervals; otherwise it only accompanies another
            score.
        ascending: true if the heads of interest are the ones with the lowest values.
        roles: the role of the heads that score high in a row, such as ``induction``, by the name of the row. A score
            without rows has its role under an empty name.
        role_from: the lowest score that gives a head such a role.
        role_rank: the order of roles. The main role of a head with several roles is one of the lowest rank.
        prefix: the beginning of the names of the variables that report it; by default the stem and an underscore.
    """

    variable: str
    title: str
    definition: str = ""
    numerator: tuple[str, ...] = ()
    denominator: tuple[str, ...] = ()
    rivals: tuple[Rival, ...] = ()
    items: str = "words"
    rows: str = "scores"
    label: str = "{}"
    attends: str = ""
    permuted: str = ""
    baselines: Mapping[str, str] = field(default_factory=dict)
    control: str = ""
    breakdown: str = ""
    regression: tuple[str, ...] = ()
    reported: bool = True
    ascending: bool = False
    roles: Mapping[str, str] = field(default_factory=dict)
    role_from: float = 0.3
    role_rank: int = 0
    prefix: str | None = None

    def __post_init__(self) -> None:
        """Raise an error for a score with only a numerator or only a denominator."""
        if bool(self.numerator) != bool(self.denominator):
            raise TableError(f"the score {self.variable!r} has half a ratio; give it a numerator and a denominator.")

    @property
    def stem(self) -> str:
        """The beginning of the names of the score's variables, such as ``relation``; a report may have another."""
        return self.variable.rpartition("_")[0] or self.variable

    @property
    def measure(self) -> str:
        """The last part of the name of the score's variable, such as ``accuracy``."""
        return self.variable.rpartition("_")[2]

    @property
    def is_ratio(self) -> bool:
        """True for a ratio of sums by fold; False for a description of where attention goes."""
        return bool(self.numerator)

    @property
    def has_report(self) -> bool:
        """True if a head is chosen by this score and reported."""
        return self.is_ratio and self.reported

    @property
    def report_prefix(self) -> str:
        """The beginning of the names of the variables that report the head that was chosen by this score."""
        return f"{self.stem}_" if self.prefix is None else self.prefix

    def row_dimension(self, table: xr.Dataset) -> str:
        """Return the dimension of the rows of this score in a table; empty if the score has no rows."""
        return next((str(dim) for dim in table.variables[self.variable].dims if dim not in _INNER), "")

    def places(self, table: xr.Dataset) -> list[dict[str, str]]:
        """Return each row as its label by dimension: ``{"relation": "obj"}``; without rows, one empty row."""
        dim = self.row_dimension(table)
        return [{dim: str(row)} for row in table[dim].values] if dim else [{}]

    def count(self, table: xr.Dataset, place: Mapping[str, str]) -> int:
        """Return the number of items of a row in the whole corpus; 0 if the table does not state it.

        If each direction has its own items, both are counted.

        Raises:
            TableError: the table has no single number for the row.
        """
        variable = f"{self.stem}_count"
        if variable not in table:
            return 0
        try:
            # In a table with many variables this is a hundred times as fast as `table[variable].sel(place)`.
            where = {dim: table.indexes[dim].get_loc(row) for dim, row in place.items()}
            values = table.variables[variable][where]
            return int((values.sum("direction") if "direction" in values.dims else values).values.item())
        except (LookupError, ValueError, TypeError, OverflowError) as error:
            raise TableError(
                f"the variable {variable!r} of the head table has no single number for {dict(place)}; measure again."
            ) from error


def over_directions(table: xr.Dataset, variable: str) -> xr.DataArray:
    """Multiply a score by the share of the items in each direction; unchanged if both directions have the same items.

    The best head is chosen by these shares. Otherwise a direction with few items would win because a head is right
    about all of them.
    """
    values, count = table[variable], table.get(f"{variable.rpartition('_')[0]}_count")
    if count is None or "direction" not in count.dims:
        return values
    return (values * (count / count.sum("direction"))).transpose(*values.dims)


def write_scores(scores: Iterable[Score]) -> str:
    """Return scores as JSON for the attribute of a table, without fields that have their default."""
    default = asdict(Score("", ""))
    stored = ({key: value for key, value in asdict(score).items() if value != default[key]} for score in scores)
    return json.dumps(list(stored), ensure_ascii=False)


def read_scores(table: xr.Dataset) -> list[Score]:
    """Return the scores that a table describes; scores without a variable in the table are left out.

    Raises:
        TableError: the description is damaged.
    """
    return [score for score in _described(table) if score.variable in table]


def find_score(table: xr.Dataset, variable: str) -> Score | None:
    """Return the `Score` that describes a variable of a table or a comparison; None if no score describes it."""
    return next((score for score in _described(table) if score.variable == variable), None)


def main_score(table: xr.Dataset) -> Score:
    """Return the only score in a table by which heads are chosen and reported.

    Raises:
        TableError: the table has no such score or several.
    """
    scores = [score for score in read_scores(table) if score.has_report]
    if not scores:
        raise TableError("the head table has no score by which heads are chosen; name the variable.")
    if len(scores) > 1:
        raise TableError(f"the head table has the scores {', '.join(s.variable for s in scores)}; name the variable.")
    return scores[0]


def add_up(table: xr.Dataset, names: Sequence[str]) -> xr.DataArray:
    """Return the sum of some variables of a table.

    Raises:
        TableError: the table lacks a variable.
    """
    if missing := [name for name in names if name not in table]:
        raise TableError(f"the head table has no {missing[0]}, from which the uncertainty follows; measure again.")
    return reduce(add, (table[name] for name in names))


def _described(table: xr.Dataset) -> list[Score]:
    if not isinstance(table, xr.Dataset):
        raise TableError(say_no_table(table))
    try:
        stored: list[Any] = json.loads(table.attrs.get(ATTRIBUTE, "[]"))
        return [_from_json(Score, fields) for fields in stored]
    except (ValueError, TypeError, AttributeError) as error:
        raise TableError(f"the attribute scores of the head table is damaged ({error}); measure again.") from error


def _from_json(record: type[Any], fields: Mapping[str, Any]) -> Any:
    """Build a `Score` or a `Rival` from its fields in JSON; lists become tuples."""
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()}
    if "rivals" in values:
        values["rivals"] = tuple(_from_json(Rival, rival) for rival in values["rivals"])
    return record(**values)
