"""The Python function of a request, with the signature and the docstring that type checkers and editors show."""

import dataclasses
import inspect
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any, ParamSpec, TypeVar, cast

from rich.console import Console

from headscope.commands.option import describe_default, spell_name
from headscope.commands.progress import ignore_progress
from headscope.commands.record import Request, order_fields
from headscope.first_guesses import explain_arguments, in_python
from headscope.view.progress_display import progress_bars

P = ParamSpec("P")
R = TypeVar("R")

WIDTH = 116
"""The maximum number of columns of a docstring."""


def make_function(record: Callable[P, Request[R]]) -> Callable[P, R]:
    """Return a function that makes a request from its arguments and runs the request."""
    cls = cast(type[Request[R]], record)

    def call(*arguments: P.args, **named: P.kwargs) -> R:
        if sentence := explain_arguments(call, signature, arguments, named):
            raise TypeError(sentence)
        with in_python(options):
            request = record(*arguments, **named)
            progress, console = request.progress, Console(stderr=True)
            if callable(progress):
                return request.run(progress)
            shown = console.is_terminal or console.is_jupyter if progress is None else progress
            with progress_bars(console) if shown else nullcontext(ignore_progress) as bars:
                return request.run(bars)

    options = {spell_name(name, each): name for name, each in cls.options.items() if each.in_python}
    parameters = inspect.signature(cls).parameters
    signature = inspect.Signature(
        [parameters[each.name] for each in list_parameters(cls)],
        return_annotation=getattr(cls.result, "__forward_arg__", cls.result),
    )
    call.__dict__.update(__signature__=signature, record=cls)
    call.__name__ = call.__qualname__ = cls.function
    call.__module__, call.__doc__ = cls.__module__, describe(cls)
    return call


def list_parameters(record: type[Request[Any]]) -> "list[dataclasses.Field[Any]]":
    """Return the fields of a request that are parameters of its function."""
    return [each for each in order_fields(record) if record.options[each.name].in_python]


def describe(record: type[Request[Any]]) -> str:
    """Return the docstring of the function: the docstring of the request, with an entry for each parameter."""
    prose, heading, rest = inspect.cleandoc(record.__doc__ or "").partition("\nReturns:\n")
    lines = ["Args:"]
    for each in list_parameters(record):
        described = record.options[each.name]
        default = describe_default(described, each.default)
        text = " ".join(filter(None, (described.text, described.python, default)))
        lines += _wrap(f"{each.name}: {text}")
    returned = [f"Returns:\n{rest}"] if heading else []
    raises = "Raises:\n    HeadscopeError: in one sentence, what is wrong with an argument, a file or the folder."
    example = "\n".join(f"{'...' if line.startswith(' ') else '>>>'} {line}" for line in record.example)
    return "\n\n".join(filter(None, (prose.strip(), example, "\n".join(lines), *returned, raises)))


def _wrap(text: str) -> Iterator[str]:
    """Yield the lines of the text of a parameter, wrapped at `WIDTH`.

    `textwrap` takes five times as long, and every command would wait for it.
    """
    line = "   "
    for word in text.split():
        if len(line) + 1 + len(word) > WIDTH:
            yield line
            line = "       "
        line = f"{line} {word}"
    yield line
