"""The command `merge`: join the sums of all shards of a corpus into a head table.

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
    """Join the sums of the shards into a head table, and write the table if a file is named."""
    table = assess(merge_shards(request.paths, request.reducers))
    # Keep the runner's call: it has the plan, from which another model is measured in the same way.
    table = table.assign_attrs(request=record_request(request)["request"])
    if request.out is not None:
        with reserve_file(Path(request.out)):
            write_table(table, request.out)
    return table


def show(request: Merge, table: xr.Dataset, console: Console) -> None:
    """Print the table, and the name of the file."""
    print_table(table, console, whole=request.whole)
    console.print(f"\nWrote {escape(str(request.out))}.", soft_wrap=True)
