"""The reference, built anew: what it must hold, and where its links lead."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import typer.main

import headscope
from documentation import DOCS, ROOT, blocks, check_links, list_anchors
from headscope import cli, heads
from headscope.corpora import FORMATS
from headscope.learn.tasks import TASKS
from headscope.reducers import REDUCERS
from headscope.studies import STUDIES


@pytest.fixture
def build(tmp_path: Path) -> Callable[..., list[Path]]:
    """What builds pages beside a copy of those that they link to."""
    shutil.copytree(DOCS, tmp_path / "docs", ignore=shutil.ignore_patterns("images", "reference"))

    def run(*names: str) -> list[Path]:
        folder = tmp_path / "docs" / "reference"
        # In a new process: here the types of functions are checked, which changes them.
        command = [sys.executable, str(ROOT / "tools" / "make_reference.py"), "--out", str(folder), *names]
        environment = {**os.environ, "PYTHONPATH": str(Path(headscope.__file__).parents[1])}
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        assert {path.name for path in folder.iterdir()} == {f"{name}.md" for name in names}
        return [folder / f"{name}.md" for name in names]

    return run


def read_cells(page: Path) -> list[list[str]]:
    """The rows of a page's tables, without titles and lines."""
    rows = [line[2:-2].split(" | ") for line in page.read_text().splitlines() if line.startswith("| `")]
    return [[cell.strip("` ") for cell in row] for row in rows]


def test_the_reference_has_every_command_name_reducer_and_corpus(build) -> None:
    pages = commands, python, reducers, lists = build("commands", "python", "reducers", "lists")
    for page in pages:
        check_links(page)

    names = typer.main.get_command(cli.app).commands
    helps = blocks(commands, "text")
    assert len(helps) == 1 + len(names)
    for name, text in zip(names, helps[1:], strict=True):
        assert f"## `headscope {name}`" in commands.read_text()
        assert text.startswith(f"Usage: headscope {name} ")

    page = python.read_text()
    groups = re.findall(r"^## `headscope`: (\w+)\n(.*?)(?=^## )", page, flags=re.MULTILINE | re.DOTALL)
    assert [name for name, _ in groups] == ["look", "measure", "test", "change", "errors"]
    assert [{"attend", "measure", "disable", "compare", "ModelError"} & {*re.findall(r"### `(\w+)`", text)}
            for _, text in groups] == [{"attend"}, {"measure"}, {"disable"}, {"compare"}, {"ModelError"}]  # fmt: skip
    assert sum(len(re.findall(r"^### `", text, flags=re.MULTILINE)) for _, text in groups) == len(headscope.__all__)
    assert "```python\ntable = headscope.measure(" in page
    assert not re.search(r"^>>> ", page, flags=re.MULTILINE)
    parameters = {
        name.strip() for names in re.findall(r"^- `([^`]+)`: ", page, flags=re.MULTILINE) for name in names.split(",")
    }
    assert "corpus" in parameters
    assert not {"Default", "By default"} & parameters

    described = set(re.findall(r"^### `(\w+)`$", page, flags=re.MULTILINE))
    public = {name for name in headscope.__all__ if callable(getattr(headscope, name))}
    assert 40 < len(public) <= 45
    assert public <= described
    assert "def measure(\n    model: " in page

    assert list_anchors(reducers) == {"reducers", *REDUCERS}
    listed = [name for name, _ in read_cells(lists)]
    assert listed == ["grammar", "repeats", "needles", *FORMATS, *STUDIES, *TASKS]


@pytest.mark.full
def test_the_reference_has_every_variable_with_its_unit_and_source(build) -> None:
    (variables,) = build("variables")
    check_links(variables)
    rows = read_cells(variables)
    named, described = rows[: len(heads.DIMENSIONS)], rows[len(heads.DIMENSIONS) :]
    assert [name for name, _ in named] == list(heads.DIMENSIONS)
    names = [name for name, *_ in described]
    assert len(names) == len(set(names)) > 500
    assert {"entropy", "relation_accuracy", "scope_f1", "retrieval_accuracy"} <= set(names)
    for row in described:
        name, dimensions, *words = row
        assert len(words) == 3, name  # what it is, its unit and its source
        assert all(words), name
        assert set(dimensions.split(", ")) <= {"", *heads.DIMENSIONS}, name
