"""Scores that describe themselves: what a number of each head is, and how one speaks of it.

A reducer declares its scores beside its sums, and the runner writes them into the head table. Intervals, the choice of
a head on one half of the texts, permutations, comparisons, CSV files, terminal, figures and page read them from there.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import reduce
from operator import add
from typing import Any

import xarray as xr

from headscope.errors import TableError

ATTRIBUTE = "scores"
"""The attribute of a head table that holds its scores, as JSON."""

HEAD = ("attention_type", "layer", "head", "direction")
"""The dimensions along which a head is chosen; a score's other dimension, if it has one, is that of its rows."""

_INNER = ("run", "fold", "permutation", "offset", *HEAD)


@dataclass(frozen=True)
class Rival:
    """A rule that predicts the same items without the model: a head that stands out beats it on these items.

    It may also be another sum of the same head, such as its attention to the tokens beside those that it is about.

    It may have options, such as the offset in words, of which the best is chosen on the half of the corpus on which
    the head is chosen. A rival whose variables a table lacks does not apply there.

    Attributes:
        name: with which its variables in the report begin, behind ``heldout_`` and ``lift_over_``.
        title: what it is, as a noun phrase.
        numerator, denominator: variables by fold, as of a `Score`, of heads too if they are sums of the same head;
            their last dimensions are its options.
        options: the dimensions of its options.
        label: the rule that was chosen, with its options in braces; by default the title.
        needs: the annotation without which it does not apply; empty where any corpus will do.
    """

    name: str
    title: str
    numerator: tuple[str, ...]
    denominator: tuple[str, ...]
    options: tuple[str, ...] = ()
    label: str = ""
    needs: str = ""

    def __post_init__(self) -> None:
        """Refuse a label that its options do not fill in."""
        try:
            self.describe(dict.fromkeys(self.options, ""))
        except (LookupError, ValueError, TypeError, AttributeError) as error:
            known = ", ".join(f"{{{option}}}" for option in self.options) or "none, for it has no options"
            raise TableError(
                f"the label {self.label or self.title!r} of the rival {self.name!r} cannot be filled in; "
                f"write its options in braces: {known}."
            ) from error

    def applies(self, table: xr.Dataset) -> bool:
        """True where a table has its sums."""
        return {*self.numerator, *self.denominator} <= {*table.data_vars}

    def describe(self, options: Mapping[str, str]) -> str:
        """The rule with these options in words."""
        return (self.label or self.title).format(**options)


OFFSETS = (-5, -4, -3, -2, -1, 1, 2, 3, 4, 5)
"""The distances, in words, among which the reducers of headscope look for the best fixed one."""


def offset_rival(numerator: str | tuple[str, ...], denominator: str | tuple[str, ...]) -> Rival:
    """The rival that always takes the word at the same distance, the best one (Clark et al. 2019, section 4.2)."""
    above, below = ((names,) if isinstance(names, str) else names for names in (numerator, denominator))
    return Rival("offset", "best fixed offset", above, below, ("offset",), "offset {offset}")


@dataclass(frozen=True)
class Score:
    """A score of heads: a ratio of two sums by fold, or, without sums, a description of where attention goes.

    The variable is called after a stem and a measure: ``rarest_accuracy`` has the stem ``rarest``. Other variables of
    the score begin with its stem: ``rarest_count`` says how many items the corpus has, and ``rarest_permuted``,
    ``rarest_z``, ``rarest_p`` and ``rarest_z_permuted`` compare the score with permutations.

    Attributes:
        variable: its name in the table, over layer, head, ``direction`` if there are two, and rows if there are any.
        title: what heads are scored on.
        definition: what the score of a head is, in a sentence without a full stop.
        numerator, denominator: variables by fold; the score is the sum of the first over the sum of the second.
        rivals: rules that need no model, which a head must beat.
        items: what is counted in the denominator, in the plural.
        rows: what its rows are, in the plural.
        label: how a row is called where the title does not stand above it; ``{}`` is the row's own name.
        attends: the word whose attention is looked at, where the table has no direction.
        permuted: what the permuted score is: how the gold was permuted.
        baselines: variables to compare it with, and what they are.
        control: of a description, the baseline beside which it is shown.
        breakdown: a dimension such as ``length``, of which ``length_accuracy`` and ``length_count`` tell the parts.
        regression: what is regressed on the gold and the distance, and what it means that the gold is 1; empty where
            there are no sums for a regression.
        reported: a head is chosen by it and reported with intervals; otherwise it only stands beside another score.
        ascending: the heads of interest are those with the lowest values.
        roles: the role of the heads that score high in a row, such as ``induction``, by the name of the row; that of a
            score without rows is empty.
        role_from: the score from which on a head has such a role.
        role_rank: of a head with several roles, one of the lowest rank is the main one.
        prefix: of the variables that report it; by default the stem and an underscore.
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
        """Refuse what cannot be divided."""
        if bool(self.numerator) != bool(self.denominator):
            raise TableError(f"the score {self.variable!r} has half a ratio; give it a numerator and a denominator.")

    @property
    def stem(self) -> str:
        """The beginning of its variable's name, with which its other variables begin too."""
        return self.variable.rpartition("_")[0] or self.variable

    @property
    def measure(self) -> str:
        """The last part of its variable's name: ``accuracy``."""
        return self.variable.rpartition("_")[2]

    @property
    def is_ratio(self) -> bool:
        """True where it is a ratio of sums by fold; a description is not."""
        return bool(self.numerator)

    @property
    def has_report(self) -> bool:
        """True where a head is chosen by it."""
        return self.is_ratio and self.reported

    @property
    def report_prefix(self) -> str:
        """The beginning of the names of the variables that report it."""
        return f"{self.stem}_" if self.prefix is None else self.prefix

    def row_dimension(self, table: xr.Dataset) -> str:
        """The dimension of its rows in a table; empty where it has none."""
        return next((str(dim) for dim in table.variables[self.variable].dims if dim not in _INNER), "")

    def places(self, table: xr.Dataset) -> list[dict[str, str]]:
        """The place of each of its rows; one without a name where it has no rows."""
        dim = self.row_dimension(table)
        return [{dim: str(row)} for row in table[dim].values] if dim else [{}]

    def count(self, table: xr.Dataset, place: Mapping[str, str]) -> int:
        """The number of items of a row in the whole corpus, in both directions if each has its own; 0 where the table
        does not say.

        Raises:
            TableError: the table has no single number for the row.
        """
        variable = f"{self.stem}_count"
        if variable not in table:
            return 0
        try:
            # One by one from a table with many variables, a hundred times as fast as `table[variable].sel(place)`.
            where = {dim: table.indexes[dim].get_loc(row) for dim, row in place.items()}
            values = table.variables[variable][where]
            return int((values.sum("direction") if "direction" in values.dims else values).values.item())
        except (LookupError, ValueError, TypeError, OverflowError) as error:
            raise TableError(
                f"the variable {variable!r} of the head table has no single number for {dict(place)}; measure again."
            ) from error


def over_directions(table: xr.Dataset, variable: str) -> xr.DataArray:
    """A score as shares of the items of both directions, where each direction has items of its own.

    By them the best head is chosen: a direction with few items is not the better one because a head is right about all
    of these.
    """
    values, count = table[variable], table.get(f"{variable.rpartition('_')[0]}_count")
    if count is None or "direction" not in count.dims:
        return values
    return (values * (count / count.sum("direction"))).transpose(*values.dims)


def write_scores(scores: Iterable[Score]) -> str:
    """Scores as JSON, for the attribute of a table; fields that are as by default are left out."""
    default = asdict(Score("", ""))
    stored = ({key: value for key, value in asdict(score).items() if value != default[key]} for score in scores)
    return json.dumps(list(stored), ensure_ascii=False)


def read_scores(table: xr.Dataset) -> list[Score]:
    """The scores that a table describes and has the variable of.

    Raises:
        TableError: the description is damaged.
    """
    return [score for score in _described(table) if score.variable in table]


def find_score(table: xr.Dataset, variable: str) -> Score | None:
    """The description of a variable, in a table or in a comparison that was made of tables; None where it has none."""
    return next((score for score in _described(table) if score.variable == variable), None)


def main_score(table: xr.Dataset) -> Score:
    """The score by which heads are reported, of a table that has only one.

    Raises:
        TableError: it has none or several.
    """
    scores = [score for score in read_scores(table) if score.has_report]
    if not scores:
        raise TableError("the head table has no score by which heads are chosen; name the variable.")
    if len(scores) > 1:
        raise TableError(f"the head table has the scores {', '.join(s.variable for s in scores)}; name the variable.")
    return scores[0]


def add_up(table: xr.Dataset, names: Sequence[str]) -> xr.DataArray:
    """The sum of some variables of a table.

    Raises:
        TableError: the table lacks one.
    """
    if missing := [name for name in names if name not in table]:
        raise TableError(f"the head table has no {missing[0]}, from which the uncertainty follows; measure again.")
    return reduce(add, (table[name] for name in names))


def _described(table: xr.Dataset) -> list[Score]:
    try:
        stored: list[Any] = json.loads(table.attrs.get(ATTRIBUTE, "[]"))
        return [_from_json(Score, fields) for fields in stored]
    except (ValueError, TypeError, AttributeError) as error:
        raise TableError(f"the attribute scores of the head table is damaged ({error}); measure again.") from error


def _from_json(record: type[Any], fields: Mapping[str, Any]) -> Any:
    """A score or rival; JSON knows no tuples and no records."""
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()}
    if "rivals" in values:
        values["rivals"] = tuple(_from_json(Rival, rival) for rival in values["rivals"])
    return record(**values)
