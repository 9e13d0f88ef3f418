"""`headscope merge`: the shards of a corpus joined into one head table."""

from pathlib import Path
from typing import Annotated

from rich.markup import escape

from headscope.cli import options
from headscope.cli.options import OUTPUT, argument, option
from headscope.cli.terminal import console, show_progress


def merge(
    shards: Annotated[
        list[Path],
        argument("SHARDS", "The files that `headscope measure --shard` wrote, all of them, such as heads.*-of-8.npz."),
    ],
    reducers: options.OwnReducers = None,
    out: Annotated[
        Path, option(OUTPUT, "File to write, such as before.nc. Default: heads.nc.", "--out", "-o", metavar="FILE")
    ] = Path("heads.nc"),
) -> None:  # fmt: skip
    """Join the shards of a corpus into one head table, as if the corpus had been measured at once.

    Neither the model nor the corpus is read. The table is the same to the last bit in whatever order the files are
    given.
    """
    from headscope.jobs.arguments import check_output_file

    check_output_file(out)
    with show_progress(resumable=False) as progress:
        progress("joining the shards", 0, 0)
        from headscope.jobs.shards import merge as run
        from headscope.view.terminal import print_table

        table = run(shards, reducers or (), out=out)
    print_table(table, console)
    console.print(f"\nWrote {escape(str(out))}.", soft_wrap=True)
