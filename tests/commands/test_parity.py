"""A command and the function of its name do the same with the same defaults, and all public names are listed once."""

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

import headscope
from headscope import cli
from headscope.commands.record import Request
from headscope.learn.training_settings import Settings

COMMANDS = {command.callback.__name__: command.callback for command in cli.app.registered_commands if command.callback}

FUNCTIONS = {"disable": "measure_effects"}  # `headscope.disable` disables heads while a block of Python runs

LISTING = "align atlas check compare disable ledger lesions measure merge patterns probe study".split()
DRAWING = "atlas compare disable ledger lesions patterns probe study".split()

ONLY_ON_THE_TERMINAL = {
    "measure": {
        "explain",  # prints what the attribute `paths` of the table holds
        "shard",  # a function of its own, `headscope.measure_shard`
    },
    "check": {"strict"},  # says which exit code it has
    "tune": {"seed"},  # a function takes seeds in `seeds`
    "patterns": {"annotate", "maps", "second"},  # a function of its own, `headscope.label_maps`
    "study": {"recorded"},  # a function of its own, `headscope.study_recorded`
}  # fmt: skip


def find_records(above: type[Request[Any]] = Request) -> Iterator[type[Request[Any]]]:
    """The requests of which there are commands."""
    for record in above.__subclasses__():
        yield from find_records(record)
        if record.command:
            yield record


RECORDS = {record.command: record for record in find_records()}

FUNCTIONS_WITH_RECORDS = {
    name: function.record for name in headscope.__all__ if hasattr(function := getattr(headscope, name), "record")
}


def defaults(function: Any) -> dict[str, Any]:
    """The default of each parameter, paths as text and empty lists as None."""
    kept = {}
    for name, parameter in inspect.signature(function).parameters.items():
        value = str(parameter.default) if isinstance(parameter.default, Path) else parameter.default
        kept[name] = None if value == () else value
    return kept


def typed_defaults(name: str) -> dict[str, Any]:
    """The default of each option; of a request, what its fields are when only what is required is typed."""
    typed = defaults(COMMANDS[name])
    if name not in RECORDS:
        return typed
    required = {
        option: next(iter(RECORDS[name].options[option].choices), "x")
        for option, value in typed.items()
        if value is inspect.Parameter.empty
    }
    request = RECORDS[name].parse(typed | required)  # what is given on the terminal alone, such as a folder, too
    values = {option: getattr(request, option) for option in typed if option not in required}
    return dict.fromkeys(required, inspect.Parameter.empty) | {
        option: None if value == () else value for option, value in values.items()
    }


def test_every_command_but_list_is_the_function_of_its_name() -> None:
    commands = (
        "align atlas check compare disable draw explore export ledger lesions measure merge patterns probe",
        "profile rerun study tune",
    )
    assert {*COMMANDS} - {"list"} == {*" ".join(commands).split()}
    for name in {*COMMANDS} - {"list"}:
        function = getattr(headscope, FUNCTIONS.get(name, name))
        assert function.record.function == RECORDS[name].function == FUNCTIONS.get(name, name)
        assert function.__name__ in headscope.__all__
    # What the terminal does by an option of one of these commands.
    others = {"label_maps": "patterns", "measure_shard": "measure", "study_recorded": "study"}
    assert {*FUNCTIONS_WITH_RECORDS} == {FUNCTIONS.get(name, name) for name in {*COMMANDS} - {"list"}} | {*others}


@pytest.mark.parametrize("name", [*FUNCTIONS_WITH_RECORDS])
def test_own_parameters_come_first_and_shared_ones_last(name: str) -> None:
    record = FUNCTIONS_WITH_RECORDS[name]
    owners = {field: cls for cls in reversed(record.__mro__) for field in vars(cls).get("__annotations__", ())}
    parameters = inspect.signature(getattr(headscope, name)).parameters.values()
    named = [each.name for each in parameters if each.kind is inspect.Parameter.KEYWORD_ONLY]
    are_own = [owners[field].__module__ == record.__module__ for field in named]
    assert are_own == sorted(are_own, reverse=True)
    assert named[-1] == "progress"


@pytest.mark.parametrize("name", [*FUNCTIONS_WITH_RECORDS])
def test_an_output_is_written_where_it_is_named_and_nowhere_else(name: str) -> None:
    out = inspect.signature(getattr(headscope, name)).parameters.get("out")
    # What `tune` and `measure_shard` give lies in files, which have to be named.
    assert out is None or out.default is (inspect.Parameter.empty if name in ("tune", "measure_shard") else None)


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - {"list"}))
def test_a_command_has_the_parameters_and_defaults_of_its_function(name: str) -> None:
    typed, called = typed_defaults(name), defaults(getattr(headscope, FUNCTIONS.get(name, name)))
    # `whole` is what is printed. The terminal shows bars, and prints the result before figures are drawn.
    on_terminal = ONLY_ON_THE_TERMINAL.get(name, set()) | ({"whole"} if name in LISTING else set())
    in_python = {"progress"} | ({"show"} if name in DRAWING else set())
    # What is not typed has the default of the function, but for the output, which the terminal always writes.
    on_terminal = on_terminal | ({"out"} & {*typed})
    typed = {parameter: called.get(parameter) if value is None else value for parameter, value in typed.items()}
    assert on_terminal <= set(typed)
    assert in_python <= set(called)
    shared = {parameter: value for parameter, value in typed.items() if parameter not in on_terminal}
    assert shared == {
        parameter: value for parameter, value in called.items() if parameter not in in_python | on_terminal
    }


def test_a_shard_is_measured_with_the_parameters_and_defaults_of_measure() -> None:
    whole, shard = defaults(headscope.measure), defaults(headscope.measure_shard)
    assert {"out", "shard"} == {name for name in shard if name not in whole or shard[name] != whole[name]}
    assert {"runs", "replicate", "placebos", "engine", "workers"} == set(whole) - set(shard)


def test_the_settings_of_training_have_the_defaults_of_tune() -> None:
    settings, tune = defaults(Settings), defaults(headscope.tune)
    assert settings == {name: tune[name] for name in settings}


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_help_text_is_a_sentence_with_its_default(name: str) -> None:
    command = typer.main.get_command(cli.app).commands[name.rstrip("_")]
    for parameter in command.params:
        if parameter.name == "help":
            continue
        text = parameter.help
        assert text[0].isupper() or text.startswith("cpu"), (parameter.name, text)
        assert text.endswith("."), (parameter.name, text)
        if parameter.param_type_name == "option" and parameter.default not in (None, False, ""):
            value = getattr(parameter.default, "as_posix", lambda p=parameter: p.default)()
            assert value == "." or f"Default: {value}." in text, (parameter.name, text)


def test_the_public_names_are_those_of_the_stub_and_no_others() -> None:
    stub = Path(headscope.__file__).with_name("__init__.pyi").read_text()
    names = [
        line.rpartition(" as ")[2]
        for line in stub.splitlines()
        if line.startswith("from .") and not line.startswith("from . ")
    ]
    assert sorted(names) == dir(headscope) == headscope.__all__
    assert all(callable(getattr(headscope, name)) for name in names)
    assert headscope.__version__


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nothing_of_this_name"):
        _ = headscope.nothing_of_this_name
