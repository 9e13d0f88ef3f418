"""The result of measuring a table again. No torch here."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headscope.results import Facts, Result

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True, repr=False)
class RerunResult(Result):
    """The result of `headscope.rerun`.

    Attributes:
        table: the head table that was measured now.
        command: the function that measured it.
        compared: the number of variables and coordinates that one of the tables has.
        differing: those that are not equal to the last bit.
        versions: packages of other versions than those with which the table was measured, with both versions.
    """

    table: "xr.Dataset"
    command: str
    compared: int
    differing: tuple[str, ...]
    versions: tuple[str, ...]

    @property
    def facts(self) -> Facts:
        """Whether the numbers are the same, and which are not."""
        counts = {"is_same": self.is_same, "compared": self.compared, "differing": self.differing}
        return {"command": self.command, **counts, "versions": self.versions}

    @property
    def is_same(self) -> bool:
        """True if every number is the same to the last bit."""
        return not self.differing
