"""What `headscope measure` prints."""

from rich.console import Console
from rich.markup import escape

from headscope.commands.measure.request import Measured, TypedMeasure
from headscope.runner import ShardSums
from headscope.view.terminal import print_paths, print_table


def show(request: TypedMeasure, result: Measured, console: Console) -> None:
    """Print the table, or what was read of a shard, and which file was written."""
    path = escape(str(request.file))
    if isinstance(result, ShardSums):
        counts, shard = result.counts, result.shard
        console.print(
            f"Shard {shard}: {counts['documents']:,} documents, {counts['words']:,} words, {counts['tokens']:,} "
            f"tokens.\n\nWrote {path}. When all {shard.count} are written, join them with `headscope merge`.",
            soft_wrap=True,
        )
        return
    print_table(result, console)
    if request.explain:
        print_paths(result, console)
    console.print(f"\nWrote {path}.", soft_wrap=True)
