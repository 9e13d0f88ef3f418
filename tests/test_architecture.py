"""The house rules that a machine can hold."""

import dataclasses
import importlib
import inspect
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import headscope
import witnesses
from headscope.reducers import REDUCERS

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src"
FILES = sorted(path for folder in (SOURCE, TESTS) for path in folder.rglob("*.py"))
LINES = 400
DRAWERS = {"utils", "util", "helpers", "helper", "misc", "common"}


def in_a_new_process(code: str) -> str:
    """What some code prints, run by a Python that has imported nothing yet."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def loads_torch(*modules: str) -> bool:
    return in_a_new_process(f"import sys, {', '.join(modules)}; print('torch' in sys.modules)") == "True"


LIGHT = ["", ".analyse", ".corpora", ".files", ".errors", ".heads", ".studies", ".view", ".view.figures", ".view.page"]


def test_what_does_not_need_torch_does_not_load_it() -> None:
    light = [f"headscope{name}" for name in LIGHT]
    # Together, since that is one new process and not ten; should it fail, each alone says which.
    assert not loads_torch(*light), [name for name in light if loads_torch(name)]


def test_asking_for_the_light_names_does_not_load_torch_either() -> None:
    analysing = ("consistency", "with_intervals", "with_regression", "with_report")
    names = ("HeadscopeError", "read", "read_table", "write_table", *analysing)
    code = "import sys, headscope; [getattr(headscope, name) for name in {}]; print('torch' in sys.modules)"
    assert in_a_new_process(code.format(names)) == "False"


def test_extras_are_loaded_where_they_are_used_and_not_before() -> None:
    code = "import sys, headscope.cli, headscope.corpora; print({'nltk', 'spacy'} & set(sys.modules))"
    assert in_a_new_process(code) == "set()"


def test_torch_would_be_noticed() -> None:
    assert loads_torch("headscope.errors", "headscope.capture")


def test_one_file_knows_the_attention_interface_of_transformers() -> None:
    knowing = [path for path in SOURCE.rglob("*.py") if "AttentionInterface" in path.read_text(encoding="utf-8")]
    assert [path.relative_to(SOURCE).as_posix() for path in knowing] == ["headscope/capture/interface.py"]


def test_no_file_is_a_drawer() -> None:
    files = [path.relative_to(SOURCE).with_suffix("") for path in FILES if path.is_relative_to(SOURCE)]
    assert files
    assert not [path for path in files if DRAWERS & {part.strip("_") for part in path.parts}]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(TESTS.parent).as_posix())
def test_no_file_is_too_long_to_read(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= LINES, f"{path} has {lines} lines"


@cache
def classes() -> frozenset[type]:
    """All classes of headscope, private ones too."""
    return frozenset(_classes())


def _classes() -> Iterator[type]:
    for module in pkgutil.walk_packages(headscope.__path__, "headscope."):
        for _, found in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if is_ours(found):
                yield found


def is_ours(found: type) -> bool:
    return found.__module__.split(".")[0] == "headscope"


def depth(found: type) -> int:
    """How many of our own classes stand above one."""
    return sum(is_ours(above) for above in found.__mro__[1:])


def test_classes_are_found_wherever_they_are() -> None:
    names = {found.__name__ for found in classes()}
    assert {"Model", "Document", "_Links", "Reducer", "TableError", "Counts"} <= names


def test_nothing_inherits_from_what_inherits() -> None:
    assert not [found for found in classes() if depth(found) > 1]


def test_only_errors_and_protocols_are_inherited_from() -> None:
    parents = {above for found in classes() for above in found.__mro__[1:] if is_ours(above)}
    assert not [one for one in parents if not issubclass(one, Exception) and not getattr(one, "_is_protocol", False)]


def test_depth_would_be_noticed() -> None:
    one = type("One", (), {"__module__": "headscope.made_up"})
    two = type("Two", (one,), {"__module__": "headscope.made_up"})
    assert [depth(found) for found in (one, two, type("Three", (two,), {"__module__": "headscope.x"}))] == [0, 1, 2]


@pytest.mark.parametrize("name", REDUCERS)
def test_a_reducer_is_a_frozen_dataclass(name: str) -> None:
    reducer = REDUCERS[name]
    assert dataclasses.is_dataclass(reducer)
    assert reducer.__dataclass_params__.frozen
    assert reducer.name == name


@pytest.mark.parametrize("name", REDUCERS)
def test_a_reducer_has_a_witness(name: str) -> None:
    witness = getattr(witnesses, name, None)
    assert inspect.isfunction(witness)
    assert Path(inspect.getfile(witness)) == TESTS / "witnesses" / f"{name}.py"


def imports_of_ours(text: str) -> set[str]:
    lines = [line.strip() for line in text.splitlines()]
    return {line for line in lines if line.startswith(("import ", "from ")) and "headscope" in line}


def test_witnesses_are_not_ours() -> None:
    files = sorted((TESTS / "witnesses").glob("**/*.py"))
    assert len(files) > len(REDUCERS)
    for path in files:
        ours = imports_of_ours(path.read_text(encoding="utf-8"))
        assert ours <= {"from headscope.corpora.document import Document"}, path


def test_a_witness_of_ours_would_be_noticed() -> None:
    text = "import numpy\n\ndef f():\n    from headscope import heads\n    import headscope.reducers as m\n"
    assert imports_of_ours(text) == {"from headscope import heads", "import headscope.reducers as m"}
