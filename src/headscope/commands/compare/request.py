"""The request of `headscope compare`."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from headscope.commands.function import make_function
from headscope.commands.option import CORPUS, MEASURED, argument, option, output_folder, table_option
from headscope.commands.output import Contents, Drawing, Listing, check_folder
from headscope.commands.progress import Progress
from headscope.commands.record import Request
from headscope.errors import HeadscopeError

if TYPE_CHECKING:
    import xarray as xr

    from headscope.commands.compare.entries import Tables
    from headscope.commands.compare.run import ComparisonResult
else:
    ComparisonResult = "ComparisonResult"

IN_MEMORY = "Or the table."


class Compare(Drawing, Listing, Request[ComparisonResult], command="compare", loading="loading matplotlib"):
    """Compare heads before and after tuning, on a task and on its control.

    The folder holds comparison.md (read this), comparison.html (all heads before and after in one grid), comparisons/
    (netCDF), tables/ (CSV) and comparison.json, which lists them. An older comparison in it is replaced;
    other files are left alone.

    Returns:
        The comparisons, the agreement between corpora, and what was written.
    """

    contents = Contents("the comparison", "comparison.json")
    usage = (
        "headscope compare before.nc after.nc --control control.nc -o changes",
        "headscope compare before.nc after.nc --placebo placebo.nc -o changes",
    )
    example = (
        'result = headscope.compare("before.nc", "after.nc", "control.nc")',
        'result.comparisons[0]["average_change"]',
    )
    before: "str | Path | xr.Dataset" = argument(
        "BEFORE",
        "Head table of the model before it was tuned, such as before.nc of `headscope measure`.",
        kw_only=False,
        typed=Path,
        python=IN_MEMORY,
    )
    after: "str | Path | xr.Dataset" = argument(
        "AFTER",
        "Head table of the runs on the same corpus, such as after.nc of `headscope measure --runs`.",
        kw_only=False,
        typed=Path,
        python=IN_MEMORY,
    )
    control: "str | Path | xr.Dataset | None" = table_option(
        MEASURED,
        "Head table of the runs on the task's control, such as control.nc.",
        default=None,
        kw_only=False,
        basic=True,
    )
    placebo: "str | Path | xr.Dataset | list[xr.Dataset] | None" = table_option(
        MEASURED,
        "Head table of placebo adapters for the adapter in AFTER, such as placebo.nc of `headscope measure --placebos "
        "19`, to test whether the adapter changes any head more than they do.",
        default=None,
        python="Or the table, or several.",
    )
    other_before: "str | Path | xr.Dataset | None" = table_option(
        CORPUS,
        "Head table before tuning on another corpus, such as sfu-before.nc, to compare the corpora.",
        default=None,
    )
    other_after: "str | Path | xr.Dataset | None" = table_option(
        CORPUS, "Head table of the same runs, measured on the other corpus, such as sfu-after.nc.", default=None
    )
    other_control: "str | Path | xr.Dataset | None" = table_option(
        CORPUS, "Head table of the control's runs, measured on the other corpus, such as sfu-control.nc.", default=None
    )
    variables: Sequence[str] = option(
        MEASURED,
        "Variable to compare, such as mass_sep or token_class_mass:token_class=noun; may be repeated. Without a place, "
        "all places are compared.",
        "--variable",
        default=(),
        unset="all scores, and the attention to classes of tokens",
        metavar="NAME",
        basic=True,
    )
    out: str | Path | None = output_folder("changes", "headscope-compare", default=None, kw_only=True)

    @cached_property
    def tables(self) -> "Tables":
        """The head tables of the first corpus; tables that are given as paths are read."""
        return _read_tables(self.before, self.after, self.control)

    @cached_property
    def others(self) -> "Tables | None":
        """The head tables of the other corpus; None if the table before or the table after is missing."""
        if self.other_before is None or self.other_after is None:
            return None
        return _read_tables(self.other_before, self.other_after, self.other_control)

    @cached_property
    def placebos(self) -> "list[xr.Dataset]":
        """The tables of placebos, as a list; empty if none are given."""
        if self.placebo is None:
            return []
        return [*map(_read, self.placebo)] if isinstance(self.placebo, list) else [_read(self.placebo)]

    def check(self, progress: Progress) -> None:
        """Raise an error for tables without their counterparts, an unusable folder, or tables that cannot be read."""
        if (self.other_before is None) != (self.other_after is None) or (
            self.other_control is not None and self.other_before is None
        ):
            raise HeadscopeError("`other_before` and `other_after` go together, and `other_control` goes with both.")
        if self.other_control is not None and self.control is None:
            raise HeadscopeError(
                "`other_control` is the control on another corpus; give it on this one too, as `control`."
            )
        progress("reading the tables", 0, 0)
        check_folder(self)
        _ = self.tables, self.others, self.placebos


def _read_tables(
    before: "str | Path | xr.Dataset", after: "str | Path | xr.Dataset", control: "str | Path | xr.Dataset | None"
) -> "Tables":
    from headscope.commands.compare.entries import Tables

    return Tables(_read(before), _read(after), None if control is None else _read(control))


def _read(table: "str | Path | xr.Dataset") -> "xr.Dataset":
    from headscope.heads import read_table, require_table

    table = read_table(table) if isinstance(table, str | Path) else table
    require_table(table)
    return table


compare = make_function(Compare)
