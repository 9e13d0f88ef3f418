"""The output of `headscope patterns`, and the page on which maps are labelled."""

import xarray as xr
from rich.console import Console
from rich.markup import escape

from headscope.commands.patterns.labelling import serve_maps
from headscope.commands.patterns.request import TypedPatterns
from headscope.commands.sentences import print_place
from headscope.view.patterns_report import print_patterns


def show(request: TypedPatterns, table: xr.Dataset | None, console: Console) -> None:
    """Print the patterns of the heads; or show the maps to label, and print how many are labelled."""
    if request.labelling is not None:
        summary = serve_maps(
            request.labelling,
            ready=lambda url: console.print(f"Label the maps at {url} (Ctrl-C ends).", soft_wrap=True),
        )
        console.print(escape(summary), soft_wrap=True)
    elif table is not None:
        print_patterns(table, console, whole=request.whole)
        print_place("all heads", request.out, "patterns.csv", console)
