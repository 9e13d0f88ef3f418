"""The result of measuring a table again. This module needs no torch."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headscope.results import Facts, Result

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True, repr=False)
class RerunResult(Result):
    """The result of `headscope.rerun`.

    Attributes:
        table: The head table that was measured now.
        command: The name of the function that measured the table.
        compared: The number of compared variables and coordinates.
        differing: The names of the variables that are not equal to the last bit.
        versions: The packages whose versions differ from those of the first measurement, each with both versions.
    """

    table: "xr.Dataset"
    command: str
    compared: int
    differing: tuple[str, ...]
    versions: tuple[str, ...]

    @property
    def facts(self) -> Facts:
        """Whether the numbers are the same, the number of compared variables, and the variables that differ."""
        counts = {"is_same": self.is_same, "compared": self.compared, "differing": self.differing}
        return {"command": self.command, **counts, "versions": self.versions}

    @property
    def is_same(self) -> bool:
        """Whether every number is the same to the last bit."""
        return not self.differing
