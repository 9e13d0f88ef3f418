"""The command line: one short command for each public function, a file each.

Torch takes seconds to load, so what needs it is imported in the function of the command that uses it: `--help`
answers at once.
"""

import sys

import typer

from headscope.cli.atlas import atlas
from headscope.cli.compare import compare
from headscope.cli.listing import list_
from headscope.cli.measure import measure
from headscope.cli.study import study
from headscope.cli.terminal import console, errors
from headscope.cli.tune import tune
from headscope.errors import HeadscopeError

__all__ = ["app", "console", "errors", "main"]

app = typer.Typer(
    help="What does each attention head look at, which relation does it mark, and how sure are we?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
# In the order in which one needs them; what `tune` writes in its example, `measure` and `compare` read in theirs.
app.command(epilog="Example: headscope atlas minilm grammar:300 -o atlas")(atlas)
app.command(epilog="Example: headscope tune negation minilm --data grammar:300 -o negation --seeds 4 --control")(tune)
app.command(
    epilog="Example: headscope measure minilm grammar:300 -r scope -o before.nc\n\n"
    "headscope measure minilm grammar:300 -r scope --runs negation -o after.nc\n\n"
    "headscope measure minilm grammar:300 -r scope --runs negation/control -o control.nc"
)(measure)
app.command(epilog="Example: headscope compare before.nc after.nc --control control.nc -o changes")(compare)
app.command(epilog="Example: headscope study clark2019 --data corpora -o clark2019")(study)
app.command("list", epilog="Example: headscope list corpora")(list_)


def main() -> None:
    """Run a command; what headscope refuses is one sentence and exit code 2."""
    try:
        app()
    except HeadscopeError as error:
        errors.print(f"headscope: {error}", soft_wrap=True, markup=False, highlight=False)
        sys.exit(2)
