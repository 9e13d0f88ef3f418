"""The progress that a job shows: to a function, on a terminal, as lines, or not at all."""

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

import headscope
import tiny
from headscope.commands import function
from headscope.view.progress_display import FINISHED, progress_bars


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> str:
    return str(tiny.save(tmp_path_factory.mktemp("progress") / "model"))


def test_a_function_is_called_with_each_step(model: str) -> None:
    steps = []
    headscope.measure(model, ["the dog sees"] * 13, "surface", progress=lambda *step: steps.append(step))
    assert [name for name, *_ in steps][:2] == ["reading the corpus", "loading the model"]
    name, done, total = steps[-1]
    assert name == f"measuring {Path(model).name}"
    assert done == total == 39


def test_it_is_shown_when_asked_for_and_else_on_a_terminal_alone(model: str, capsys, monkeypatch) -> None:
    for asked in (None, False):
        headscope.measure(model, "grammar:13", "surface", progress=asked)
        assert capsys.readouterr().err == ""
    headscope.measure(model, "grammar:13", "surface", progress=True)
    assert capsys.readouterr().err.replace("\n", "").startswith("reading the corpus ...loading the model ...measuring")
    shown = io.StringIO()
    monkeypatch.setattr(function, "Console", lambda stderr: Console(file=shown, force_terminal=True))
    headscope.measure(model, "grammar:13", "surface")
    assert "reading the corpus" in shown.getvalue()
    shown.truncate(0)
    headscope.measure(model, "grammar:13", "surface", progress=False)
    assert "reading" not in shown.getvalue()[-100:]


def test_times_are_called_what_they_are_and_an_unknown_size_has_no_share() -> None:
    shown = io.StringIO()
    with progress_bars(Console(file=shown, force_terminal=True, width=120)) as update:
        update("reading", 0, 0)
        update("measuring", 0, 200)
        update("measuring", 50, 200)
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.getvalue()).replace("\r", "\n").splitlines()
    assert any("measuring" in line and "25%" in line and "elapsed 0:00:" in line for line in lines)
    assert not any("reading" in line and "%" in line for line in lines)


def test_in_a_notebook_there_is_a_bar_of_which_nothing_is_left(monkeypatch) -> None:
    shown: list[dict[str, str]] = []

    class Handle:
        def update(self, data: dict[str, str], *, raw: bool) -> None:
            assert raw
            shown.append(data)

    def display(data: dict[str, str], *, raw: bool, display_id: bool) -> Handle:
        assert raw
        assert display_id
        return Handle()

    monkeypatch.setattr("IPython.display.display", display)
    times = iter([0, 1, 1.01, 3, 5])
    monkeypatch.setattr("headscope.view.progress_display.time.monotonic", lambda: next(times))
    with progress_bars(Console(force_jupyter=True)) as update:
        update("reading <b>", 0, 0)
        update("measuring", 0, 200)
        update("measuring", 1, 200)  # too soon to be seen
        update("measuring", 50, 200)
    texts = [re.sub("<style>.*</style>|<[^>]*>", " ", data["text/html"]).split() for data in shown]
    assert texts == [
        ["reading", "&lt;b&gt;"],  # nobody says how long it has been
        ["measuring", "0%,", "elapsed", "0:00:00"],
        ["measuring", "25%,", "elapsed", "0:00:02,", "remaining", "0:00:06"],
        [],
    ]
    values = [re.search(r"<progress aria-label='[^']*' (.*?)style", data["text/html"])[1] for data in shown[:-1]]
    assert values == [" ", "value='0' max='200' ", "value='50' max='200' "]
    assert shown[-1] == {"text/html": FINISHED, "text/plain": ""}


def test_elsewhere_there_is_a_line_for_each_step() -> None:
    shown = io.StringIO()
    with progress_bars(Console(file=shown, width=120)) as update:
        update("reading", 0, 0)
        for done in range(3):
            update("measuring [a]", done, 3)
    assert shown.getvalue() == "reading ...\nmeasuring [a] ...\n"
