"""What a language server knows of the public functions: a misspelt parameter is an error that names it."""

import inspect
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_overloads

import pytest

import headscope

FUNCTIONS = {
    name: inspect.signature(function)
    for name in headscope.__all__
    if inspect.isfunction(function := getattr(headscope, name))
}
OPEN = {inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL}


def list_arguments(name: str) -> Iterator[str]:
    """The arguments of a call that gives every parameter, as far as they have names."""
    for parameter in FUNCTIONS[name].parameters.values():
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            yield "given"
        elif parameter.kind not in OPEN:
            yield f"{parameter.name}=given"


def misspell(name: str) -> str:
    """The last parameter of a function, with a letter too many."""
    named = [each.name for each in FUNCTIONS[name].parameters.values() if each.kind not in OPEN]
    return f"{named[-1]}s"


@pytest.fixture(scope="module")
def read_file(tmp_path_factory: pytest.TempPathFactory) -> dict[int, tuple[str, str]]:
    """What basedpyright says of each line of a file: how serious it is, and the sentence."""
    folder = tmp_path_factory.mktemp("editor")
    lines = ["from typing import Any", "import headscope", "given: Any = None"]
    for name in FUNCTIONS:
        arguments = ", ".join(list_arguments(name))
        lines += [
            f"headscope.{name}({arguments})",
            f"headscope.{name}({arguments}, {misspell(name)}=given)",
            f"reveal_type(headscope.{name})",
        ]
    (folder / "calls.py").write_text("\n".join(lines))
    settings = {"include": ["calls.py"], "typeCheckingMode": "standard"}
    settings |= {"extraPaths": [str(Path(headscope.__file__).parents[1])]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable]
    printed = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout
    diagnostics: list[dict[str, Any]] = json.loads(printed)["generalDiagnostics"]
    by_line = {each["range"]["start"]["line"]: (each["severity"], each["message"]) for each in diagnostics}
    assert len(by_line) == len(diagnostics)
    return by_line


@pytest.mark.full
@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_editor_shows_the_parameters_and_marks_a_misspelt_one(
    read_file: dict[int, tuple[str, str]], name: str
) -> None:
    line = 3 + 3 * [*FUNCTIONS].index(name)
    assert line not in read_file  # a correct call
    severity, shown = read_file[line + 1]
    is_overloaded = bool(get_overloads(getattr(headscope, name)))
    mistake = f'No overloads for "{name}" match' if is_overloaded else f'No parameter named "{misspell(name)}"'
    assert severity == "error"
    assert shown.startswith(mistake)
    severity, shown = read_file[line + 2]
    assert severity == "information"
    assert all(f"{each}:" in shown for each in FUNCTIONS[name].parameters)
    assert "Unknown" not in shown


def test_no_function_takes_any_name() -> None:
    kinds = {name: {each.kind for each in signature.parameters.values()} for name, signature in FUNCTIONS.items()}
    assert not [name for name in kinds if kinds[name] & OPEN]
