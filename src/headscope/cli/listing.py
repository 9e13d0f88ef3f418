"""`headscope list`: what there is, by name."""

from typing import Annotated

import typer
from rich.table import Table

from headscope.cli.terminal import console
from headscope.errors import HeadscopeError


def list_(what: Annotated[str, typer.Argument(help="reducers, corpora, studies or tasks.")]) -> None:
    """List what there is: reducers, corpora, studies or tasks."""
    from headscope.corpora import FORMATS

    rows: dict[str, str]
    if what == "corpora":
        rows = {"grammar": "generated English with exact dependencies, coreference and negation (grammar:COUNT:SEED)"}
        rows |= {name: format.description for name, format in FORMATS.items()}
    elif what == "reducers":
        from headscope.reducers import REDUCERS

        rows = {name: (reducer.__doc__ or "").strip().splitlines()[0] for name, reducer in REDUCERS.items()}
    elif what == "studies":
        from headscope.studies import STUDIES

        rows = {name: study.title for name, study in STUDIES.items()}
    elif what == "tasks":
        from headscope.learn.tasks import TASKS

        rows = {name: task.description for name, task in TASKS.items()}
    else:
        raise HeadscopeError(f"there is no list of {what!r}; there are reducers, corpora, studies and tasks.")
    table = Table(box=None, show_header=False)
    for name, description in rows.items():
        table.add_row(f"[bold]{name}[/]", description)
    console.print(table)
