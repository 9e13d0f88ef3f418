"""The head table of all shards of a corpus.

files of sums --merge_shards--> head table --analyse--> with intervals and reported heads --> file
"""

from pathlib import Path

import xarray as xr
from rich.console import Console
from rich.markup import escape

from headscope.analyse import assess
from headscope.commands.folder import reserve_file
from headscope.commands.merge.request import Merge
from headscope.commands.progress import Progress
from headscope.commands.recorded_request import record_request
from headscope.heads import write_table
from headscope.runner import merge_shards
from headscope.view.table_report import print_table


def run(request: Merge, progress: Progress) -> xr.Dataset:
    """Add up the shards in the order of their numbers, and write the table if a file is named."""
    table = assess(merge_shards(request.paths, request.reducers))
    # The call stays as the runner has it: with the plan, from which the same is measured of another model.
    table = table.assign_attrs(request=record_request(request)["request"])
    if request.out is not None:
        with reserve_file(Path(request.out)):
            write_table(table, request.out)
    return table


def show(request: Merge, table: xr.Dataset, console: Console) -> None:
    """Print the table, and which file was written."""
    print_table(table, console, whole=request.whole)
    console.print(f"\nWrote {escape(str(request.out))}.", soft_wrap=True)
