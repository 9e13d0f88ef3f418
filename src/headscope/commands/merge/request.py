"""The request of `headscope merge`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from headscope.commands.function import make_function
from headscope.commands.option import argument, output_file, reducer_option
from headscope.commands.option_groups import OWN_REDUCERS
from headscope.commands.output import Listing, check_file
from headscope.commands.progress import Progress
from headscope.commands.record import HeadTable, Request
from headscope.errors import HeadscopeError

if TYPE_CHECKING:
    from headscope.reducers.reducer import Reducer


class Merge(Listing, Request[HeadTable], command="merge", loading=""):
    """Join the shards of a corpus into one head table, as if the corpus had been measured at once.

    Neither the model nor the corpus is read. The table is the same to the last bit in whatever order the files are
    given.

    Returns:
        The head table, with intervals, reported heads and p-values. It differs from that of one `headscope.measure` of
        the whole corpus by rounding alone.
    """

    usage = ("headscope merge first.npz second.npz -o joined.nc",)
    example = (
        'table = headscope.merge(["part.1-of-2.npz", "part.2-of-2.npz"])',
        'table["entropy"].sel(layer=3, head=1)',
    )
    shards: "str | Path | Sequence[str | Path]" = argument(
        "SHARDS",
        "The files that `headscope measure --shard` wrote, all of them, such as heads.*-of-8.npz.",
        kw_only=False,
        typed=Path,
        several=True,
        checked=True,
        python="`headscope.measure_shard` writes such files too.",
    )
    reducers: "str | Reducer | Sequence[str | Reducer]" = reducer_option(
        OWN_REDUCERS,
        default=(),
        unset="built-in ones only",
        kw_only=False,
    )
    out: str | Path | None = output_file("before.nc", default=None, typed_default="heads.nc")

    @property
    def paths(self) -> list[Path]:
        """The files of the shards."""
        return [Path(self.shards)] if isinstance(self.shards, str | Path) else [Path(path) for path in self.shards]

    def check(self, progress: Progress) -> None:
        """Raise an error for a file that cannot be written, or that is the file of a shard."""
        if self.out is not None:
            out = Path(self.out)
            check_file(out)
            if out.resolve() in {path.resolve() for path in self.paths}:
                raise HeadscopeError(
                    f"{out} is one of the shards and would be overwritten; name another file as `out`."
                )
        progress("joining the shards", 0, 0)  # shown now, since importing the runner takes seconds


merge = make_function(Merge)
