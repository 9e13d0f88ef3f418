"""The command line: a command for each request, and an error message of one sentence.

Loading torch takes seconds. So the module that runs a request is imported only when the request runs, and `--help`
answers at once.
"""

import errno
import os
import sys
from collections.abc import Iterable, Sequence
from importlib import metadata
from typing import Annotated, Any

import typer

from headscope.cli.build import add_command
from headscope.cli.command_list import COMMANDS
from headscope.cli.commands import HELP_ALL, Command, Commands
from headscope.cli.terminal import collect_rarely, console, errors, prepare_terminal, repeat_ignored_interruptions
from headscope.commands.record import Request
from headscope.errors import HeadscopeError, suggest

__all__ = ["app", "console", "errors", "main"]


HELP = "Measure what each attention head of a transformer looks at, which relation it marks, and how sure that is."

EXAMPLES = """\
headscope atlas                                # a first atlas, in a minute
headscope atlas my-model en_ewt-ud-dev.conllu  # of your model and corpus
headscope help atlas                           # what a command does
headscope help lift                            # what a word of the results means
headscope list                                 # reducers, corpora and more"""


def __getattr__(name: str) -> typer.Typer:
    """Return the attribute `app`, the application with all commands, which is built at its first use."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    application: typer.Typer = globals().setdefault(name, make_app(COMMANDS))
    return application


def make_app(records: Iterable[type[Request[Any]]]) -> typer.Typer:
    """Return an application with a command for each of `records`.

    Building a command takes milliseconds.
    """
    application = typer.Typer(
        help=HELP, epilog=EXAMPLES, cls=Commands, pretty_exceptions_enable=False, rich_markup_mode=None,
        callback=_read_options,
    )  # fmt: skip
    for record in records:
        add_command(application, record)
    return application


def _show_version(wanted: bool) -> None:
    if wanted:
        console.print(f"headscope {metadata.version('headscope')}", highlight=False)
        raise typer.Exit


def _read_options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Read the options that precede the command."""


def main() -> None:
    """Run the typed command; print an error of headscope as one sentence, and exit with code 2."""
    prepare_terminal()
    try:
        with collect_rarely(), repeat_ignored_interruptions():
            typed = _ask_for_help(sys.argv[1:])
            if meaning := _explain_term(typed):
                console.print(meaning, markup=False, highlight=False)
                sys.exit(0)
            sys.exit(_choose_app(typed)(typed, prog_name="headscope", standalone_mode=False) or 0)
    except HeadscopeError as error:
        sentence = str(error)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        sentence = f"what is printed could not be written ({error.strerror}); free some space or print it elsewhere."
    except typer.TyperException as error:
        # An error of typer, such as: Missing argument 'MODEL'.
        if unknown := _suggest_option(error):
            sentence = f"{unknown}; see {_name_command(error)} {_name_help(error)}."
        else:
            fault = error.format_message().rstrip(".")
            sentence = f"{fault[:1].lower()}{fault[1:]}; see {_name_command(error)} --help."
    errors.print(f"headscope: {sentence}", soft_wrap=True, markup=False, highlight=False)
    sys.exit(2)


def _ask_for_help(typed: Sequence[str]) -> list[str]:
    """Return the typed arguments; no arguments and `help COMMAND` are replaced by a call with ``--help``."""
    match typed:
        case []:
            return ["--help"]
        case ["help", *rest]:
            return [*_ask_for_help(rest), "--help"]
    return [*typed]


def _explain_term(typed: Sequence[str]) -> str:
    """Return the explanation of a word in results, if the user asks for help on it; else an empty string."""
    *words, last = typed
    if not words or last != "--help":
        return ""
    from headscope.commands.terms import explain_term

    return explain_term(words)


def _choose_app(typed: Sequence[str]) -> typer.Typer:
    """Return an application with only the typed command; for the completion of a shell, with all commands."""
    completes = any(name.endswith("_COMPLETE") for name in os.environ)
    return make_app(record for record in COMMANDS if completes or [record.command] == typed[:1])


def _suggest_option(error: typer.TyperException) -> str:
    """Return a sentence about an unknown option, with similar options; an empty string for any other error."""
    name: str | None = getattr(error, "option_name", None)
    context: typer.Context | None = getattr(error, "ctx", None)
    if name is None or context is None:
        return ""
    parameters = context.command.get_params(context)
    names = [
        _name_help(error),
        *(each for parameter in parameters for each in (*parameter.opts, *parameter.secondary_opts)),
    ]
    if name in names:
        return ""
    # Compare names without dashes, since all options begin with dashes.
    close = suggest(name.lstrip("-"), [each[2:] for each in names if each.startswith("--")], before="--")
    return f"there is no option {name}{close}"


def _name_help(error: typer.TyperException) -> str:
    """Return ``--help-all`` if the error has a command of headscope, else ``--help``."""
    context: typer.Context | None = getattr(error, "ctx", None)
    return HELP_ALL if context and isinstance(context.command, Command) else "--help"


def _name_command(error: typer.TyperException) -> str:
    """Return the command that typer refused, as it was typed; ``headscope`` if there is none."""
    context: typer.Context | None = getattr(error, "ctx", None)
    return context.command_path if context else "headscope"
