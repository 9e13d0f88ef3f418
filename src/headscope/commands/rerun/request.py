"""The request of `headscope rerun`."""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.commands.function import make_function
from headscope.commands.model_options import RunOptions
from headscope.commands.option import CORPUS, argument, option
from headscope.commands.progress import Progress
from headscope.commands.record import HeadTable, Request
from headscope.commands.recorded_request import COMMAND, REQUEST, read_request, restore_request
from headscope.commands.rerun.rerun_result import RerunResult
from headscope.errors import TableError, quote
from headscope.text_forms import GIVEN, find_form

LABELLED = "examples"
"""The value of the attribute ``content`` in tables that were measured on labelled examples."""

if TYPE_CHECKING:
    import xarray as xr


class Rerun(RunOptions, Request[RerunResult], command="rerun"):
    """Measure a head table again, as it records, and compare every number to the last bit.

    Nothing is written. The exit code is 0 if all numbers are the same, 2 for an error, and 3 if one differs.

    Returns:
        The table that was measured now, and which variables differ.
    """

    usage = ("headscope rerun heads.nc", "headscope rerun atlas --with corpus=data/en_ewt-ud-dev.conllu")
    example = ('result = headscope.rerun("atlas")', "result.is_same")
    source: "str | Path | HeadTable" = argument(
        "TABLE",
        "Head table, such as heads.nc, or the folder of an atlas.",
        kw_only=False,
        typed=Path,
        python="Or a head table in memory.",
    )
    given: Mapping[str, Any] | None = option(
        CORPUS,
        "An argument that differs now, such as corpus=data/en_ewt-ud-dev.conllu where the corpus has moved; may be "
        "repeated.",
        "--with",
        default=None,
        form="NAME=VALUE",
        typed=str,
        python="Needed for what was given in memory, such as ``{'model': model}``.",
        basic=True,
    )

    @cached_property
    def table(self) -> "xr.Dataset":
        """The recorded table, which is measured again."""
        from headscope.commands.tables import open_table

        return open_table(self.source)

    @cached_property
    def recorded(self) -> Request[Any]:
        """The request that the table records, with the changes that this request names.

        Raises:
            TableError: The table records no request, or one that cannot be run.
        """
        import headscope
        from headscope.capture.model.model_names import has_saved_attention

        if REQUEST not in self.table.attrs:
            raise TableError(
                f"{self.source if isinstance(self.source, str | Path) else 'the table'} records no request, since it "
                "was measured by an older version or within Python; its attribute `call` says how."
            )
        text = str(self.table.attrs[REQUEST])
        name = read_request(text)[COMMAND]
        record = getattr(getattr(headscope, name, None), "record", None)
        if record is None:
            raise TableError(f"the table records the command {quote(name)}, which this version does not have.")
        known: dict[str, Any] = {"device": self.device, "trust_remote_code": self.trust_remote_code}
        known |= {} if self.dtype is None else {"dtype": self.dtype}
        # The default of `text` may have changed since. Examples with labels are always read as in tuning.
        attrs, form = self.table.attrs, find_form(self.table.attrs)
        tokens_are_known = form == GIVEN or attrs.get("content") == LABELLED or has_saved_attention(str(attrs["model"]))
        if read_request(text).get("text") is None and not tokens_are_known:
            known["text"] = form
        known = {field: value for field, value in known.items() if field in record.options}
        return restore_request(record, text, **known | dict(self.given or {}))

    def check(self, progress: Progress) -> None:
        """Raise an error for a table without a request, or with a request that cannot be restored."""
        _ = self.recorded


rerun = make_function(Rerun)
