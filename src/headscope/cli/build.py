"""The construction of a command from a request class: its options, its help, its progress and its errors."""

import dataclasses
import inspect
from importlib import import_module
from typing import Annotated, Any

import typer

from headscope.cli.commands import Command
from headscope.cli.terminal import console, show_progress_around
from headscope.commands.option import ARGUMENTS, GROUPS, Option, describe_default, spell_name
from headscope.commands.record import Request, order_fields, spell
from headscope.errors import HeadscopeError


def add_command(app: typer.Typer, record: type[Request[Any]]) -> None:
    """Add the command of a request class to an application.

    The function ``show`` of the request's module prints the result, and may return an exit code. If the request has a
    field `show`, the request itself calls this function when a result is ready: before it draws figures, and perhaps
    once before everything is measured.
    """

    def call(**typed: Any) -> None:
        printer, codes = record.locate(record.printer), list[int | None]()

        def print_result(result: Any) -> None:
            codes.append(import_module(printer).show(request, result, console))

        try:
            with show_progress_around(print_result, resumable="resume" in record.options) as (progress, show):
                request = record.parse(typed | ({"show": show} if "show" in record.options else {}))
                result = request.run(progress)
        except HeadscopeError as error:  # the message names options as they are typed
            raise type(error)(spell(str(error), record)) from error
        if not codes:
            print_result(result)
        if code := codes[-1]:
            raise typer.Exit(code)

    fields = [each for each in order_fields(record) if record.options[each.name].on_terminal]
    fields.sort(key=lambda each: GROUPS.index(record.options[each.name].group))
    parameters = [_make_parameter(each, record) for each in fields]
    parameters.sort(key=lambda each: each.default is not each.empty)  # required parameters come first in a signature
    call.__dict__["__signature__"] = inspect.Signature(parameters)
    call.__name__ = record.command
    call.__doc__ = _describe(record)
    app.command(record.command, cls=Command, epilog="\n".join(record.usage))(call)


def _describe(record: type[Request[Any]]) -> str:
    """Return the help of a command: the class docstrings of its request, without their ``Returns`` sections."""
    above = [cls for cls in reversed(record.__mro__) if issubclass(cls, Request) and cls is not Request]
    prose = [inspect.cleandoc(cls.__doc__ or "").partition("\nReturns:")[0].strip() for cls in above]
    return spell("\n\n".join(prose), record)


def _make_parameter(each: "dataclasses.Field[Any]", record: type[Request[Any]]) -> inspect.Parameter:
    """Return the parameter of a command for a field of its request.

    Typer passes the typed text on unchanged; the request itself checks the value.
    """
    described = record.options[each.name]
    default = described.typed_default or each.default
    instead = describe_default(described, default)
    if described.envvar:
        instead = instead.replace("Default: ", f"Default: ${described.envvar}, else ")
    text = spell(" ".join(filter(None, (described.text, instead))), record)
    if described.group == ARGUMENTS:
        settings: Any = typer.Argument(metavar=described.metavar, help=text, show_default=False)
    else:
        settings = typer.Option(
            *(described.names or (spell_name(each.name, described),)),
            help=text,
            metavar=described.metavar or described.form or None,
            rich_help_panel=described.group,
            show_default=False,
            envvar=described.envvar,
            show_envvar=False,
            autocompletion=_list_choices(described),
        )
    required = default is dataclasses.MISSING
    return inspect.Parameter(
        each.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if required else described.typed_default,
        annotation=Annotated[_find_type(described, required=required), settings],
    )


def _find_type(described: Option, *, required: bool) -> Any:
    if described.several or described.form:
        return list[str] if required else list[str] | None
    typed: Any = bool if described.typed is bool else str
    return typed if required else typed | None


def _list_choices(described: Option) -> Any:
    return (lambda: [*described.choices]) if described.choices else None
