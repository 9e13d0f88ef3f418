"""The roles of the heads of a decoder, written to a folder."""

import shlex

import xarray as xr
from rich.console import Console
from rich.markup import escape

from headscope.capture import untrained_model
from headscope.commands.head_roles import measure_head_roles, read_generated, require_decoder
from headscope.commands.inputs import make_plan
from headscope.commands.output import open_folder
from headscope.commands.profile.request import TABLE, Profile
from headscope.commands.progress import Progress
from headscope.commands.sentences import print_place
from headscope.view.roles_report import list_clearest, list_roles, print_roles


def run(request: Profile, progress: Progress) -> xr.Dataset:
    """Measure the roles of all heads of a decoder, and write the results to the folder."""
    with open_folder(request, progress) as folder:
        progress("loading the model", 0, 0)
        model = request.load_with_head(request.model)
        require_decoder(model)
        untrained = untrained_model(model, seed=request.seed)
        corpora = read_generated(request.repeats, request.needles, request.seed)
        table = measure_head_roles(model, untrained, folder, corpora, make_plan(request))
        return folder.finish(request, {"model": model.name}, {TABLE: table}, {f"{TABLE}.csv": list_roles(table)})


def show(request: Profile, table: xr.Dataset, console: Console) -> None:
    """Print the roles of the heads, the file with all of them, and a command that tests the clearest heads."""
    print_roles(table, console)
    print_place("all heads", request.out, f"{TABLE}.csv", console)
    if heads := list_clearest(table):
        command = f"headscope disable {shlex.quote(str(request.model))} repeats:40 --heads {','.join(heads)} -o effects"
        console.print(f"Does the model need them? {escape(command)}", soft_wrap=True, highlight=False)
