"""Behaviour that all commands share: help with grouped options, and messages for unknown or interrupted commands.

``--help`` shows the basic options of a command, and ``--help-all`` shows all of them.

Typer's own help is a table of six columns, and the last one, the text, is narrow on a terminal of 80 columns.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from typer import Exit
from typer.core import TyperCommand, TyperGroup

from headscope.cli.command_list import COMMANDS
from headscope.cli.terminal import report_interruption
from headscope.commands.record import Request
from headscope.errors import HeadscopeError, suggest

WIDEST = 100
"""The maximum number of columns of a help text, even on a wider terminal, since longer lines are hard to read."""

NARROW = 60
"""The minimum number of columns of a terminal for help in two columns.

On a narrower terminal, the text is below the name that it describes.
"""

HELP_ALL = "--help-all"
"""The option that shows all options of a command.

It is also the key under which a context of typer stores whether this option was typed.
"""

Entry = tuple[str, str]
"""An entry of the help: the text that a user types, and its description."""


class Command(TyperCommand):
    """A typer command whose help shows its options in groups (``rich_help_panel``)."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments as typer does; `HELP_ALL` asks for help too."""
        ctx.meta[HELP_ALL] = HELP_ALL in args
        return super().parse_args(ctx, ["--help"] if ctx.meta[HELP_ALL] else args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help: the basic options, or all options after `HELP_ALL`."""
        arguments = [f"{p.metavar}" if p.required else f"[{p.metavar}]" for p in self.params if not _is_option(p)]
        required = [f"{min(p.opts, key=len)} {p.metavar}" for p in self.params if _is_option(p) and p.required]
        shown = self.get_params(ctx)
        if not ctx.meta.get(HELP_ALL):
            shown = [p for p in self.params if not _is_option(p) or p.required or self._is_basic(p.name)]
        groups = _group_parameters(shown)
        if others := sum(1 for p in self.params if p not in shown):
            groups["Other"] = [(HELP_ALL, f"Show {others} further option{'s' * (others > 1)} as well.")]
        formatter.write(_render(self, ctx, [*arguments, *required, "[OPTIONS]"], groups))

    def _is_basic(self, name: str) -> bool:
        record = next(record for record in COMMANDS if record.command == self.name)
        return record.options[name].basic


class Commands(TyperGroup):
    """The typer group of all commands.

    An unknown command gets an error of one sentence, and not a page of help.
    """

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help of headscope: the commands first, then the options."""
        commands = [(record.command, _summarize(record)) for record in COMMANDS]
        formatter.write(
            _render(self, ctx, ["COMMAND"], {"Commands": commands, **_group_parameters(self.get_params(ctx))})
        )

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the typed command as typer does.

        Raises:
            HeadscopeError: The command is unknown; the message suggests a similar one.
        """
        commands = [record.command for record in COMMANDS]
        if args[0] not in commands and not ctx.resilient_parsing:
            *names, last = commands
            raise HeadscopeError(
                f"there is no command {args[0]!r}{suggest(args[0], commands)}; there are {', '.join(names)} and "
                f"{last}, which `headscope --help` describes."
            )
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; report an interruption that comes before the progress is shown."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as interruption:
            raise Exit(report_interruption(interruption)) from None


def _summarize(record: type[Request[Any]]) -> str:
    """Return the first line of the help of a command."""
    above = next(cls for cls in reversed(record.__mro__) if issubclass(cls, Request) and cls is not Request)
    return (above.__doc__ or "").partition("\n")[0]


def _is_option(parameter: Any) -> bool:
    return bool(parameter.param_type_name == "option")


def _group_parameters(parameters: Sequence[Any]) -> dict[str, list[Entry]]:
    """Return an entry of the help for each argument and option, by group, in their order."""
    groups: dict[str, list[Entry]] = {}
    for parameter in parameters:
        if not _is_option(parameter):
            groups.setdefault("Arguments", []).append((parameter.metavar, parameter.help))
            continue
        names = ", ".join(sorted(parameter.opts, key=len) + parameter.secondary_opts)
        entry = (f"{names} {parameter.metavar or ''}".rstrip(), parameter.help)
        groups.setdefault(parameter.rich_help_panel or "Other", []).append(entry)
    return groups


def _render(command: Any, ctx: Any, usage: Sequence[str], groups: dict[str, list[Entry]]) -> str:
    """Return the help as text, with colours if the terminal shows them."""
    console = Console(force_terminal=False if ctx.color is False else None, emoji=False, highlight=False)
    console.width = min(ctx.terminal_width or console.width, WIDEST)
    longest = max(len(name) for entries in groups.values() for name, _ in entries)
    column = min(longest, console.width // 3) if console.width >= NARROW else 0
    with console.capture() as printed:
        console.print(Text.assemble(("Usage: ", "bold"), " ".join([ctx.command_path, *usage])))
        for paragraph in (command.help or "").split("\n\n"):
            console.print(Padding(Text(" ".join(paragraph.split())), (1, 0, 0, 2)))
        for group, entries in groups.items():
            console.print(Text(f"\n{group}", "bold"))
            for line in _lay_out(entries, column):
                console.print(Padding(line, (0, 0, 0, 2)))
        if command.epilog:
            console.print(Text("\nExamples", "bold"))
            for example in command.epilog.splitlines():
                console.print(Text(f"  {example}"), soft_wrap=True)  # so that it can be copied in one piece
    return "".join(f"{line.rstrip()}\n" for line in printed.get().splitlines())


def _lay_out(entries: Sequence[Entry], column: int) -> Iterator[Table | Text | Padding]:
    """Yield the entries as a table with a column of names of width `column`; if it is 0, texts are below names."""
    if not column:
        for name, text in entries:
            yield Text(name, "cyan")
            yield Padding(Text(text), (0, 0, 0, 4))
        return
    table = Table.grid(padding=(0, 2), pad_edge=False)
    table.add_column(style="cyan", width=column)
    table.add_column()
    for name, text in entries:
        table.add_row(Text(name), Text(text))
    yield table
