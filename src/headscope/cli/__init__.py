"""The command line: a command for each request, and one sentence for each error.

Torch takes seconds to load, so a request is run by a module that is imported then, and `--help` answers at once.
"""

import os
import sys
from collections.abc import Iterable
from typing import Any

import typer

from headscope.cli.build import add_command
from headscope.cli.command_list import COMMANDS
from headscope.cli.commands import Commands
from headscope.cli.terminal import console, errors, prepare_terminal, repeat_ignored_interruptions
from headscope.commands.record import Request
from headscope.errors import HeadscopeError

__all__ = ["app", "console", "errors", "main"]


HELP = "Measure what each attention head of a transformer looks at, which relation it marks, and how sure that is."


def __getattr__(name: str) -> typer.Typer:
    """Return `app`, the application with all commands, when it is first used."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    application: typer.Typer = globals().setdefault(name, make_app(COMMANDS))
    return application


def make_app(records: Iterable[type[Request[Any]]]) -> typer.Typer:
    """Return an application with some of the commands, each of which takes milliseconds to build."""
    application = typer.Typer(
        help=HELP, cls=Commands, pretty_exceptions_enable=False, rich_markup_mode=None, callback=lambda: None
    )
    for record in records:
        add_command(application, record)
    return application


def main() -> None:
    """Run a command; an error of headscope is printed as one sentence, with exit code 2."""
    prepare_terminal()
    try:
        with repeat_ignored_interruptions():
            sys.exit(_choose_app()(prog_name="headscope", standalone_mode=False) or 0)
    except HeadscopeError as error:
        sentence = str(error)
    except typer.TyperException as error:
        # Of typer's, such as: Missing argument 'MODEL'.
        fault = error.format_message().rstrip(".")
        sentence = f"{fault[:1].lower()}{fault[1:]}; see {_name_command(error)} --help."
    errors.print(f"headscope: {sentence}", soft_wrap=True, markup=False, highlight=False)
    sys.exit(2)


def _choose_app() -> typer.Typer:
    """Return an application with the command that is typed alone; of one that completes what is typed, with all."""
    completes = any(name.endswith("_COMPLETE") for name in os.environ)
    return make_app(record for record in COMMANDS if completes or [record.command] == sys.argv[1:2])


def _name_command(error: typer.TyperException) -> str:
    """The command that typer refused, as it was typed."""
    context: typer.Context | None = getattr(error, "ctx", None)
    return context.command_path if context else "headscope"
