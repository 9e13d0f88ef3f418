"""What type checkers and editors know of choices and of reducers: a misspelt name is an error that lists the others."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, get_args

import pytest

import headscope
from headscope.analyse.lesions import MATCHES
from headscope.capture.model.device_names import Dtype
from headscope.capture.model.model_names import TaskHead
from headscope.capture.open.loading import TASKS
from headscope.capture.passes.views import VIEWS, ViewName
from headscope.cli.command_list import COMMANDS
from headscope.commands.export.request import FILES, ExportFormat
from headscope.commands.lesions.request import Lesions
from headscope.commands.measure.engine import Engine
from headscope.intervene.edit import WAYS as BLOCK_WAYS
from headscope.intervene.way_names import WAYS, BlockWay, Way
from headscope.text_forms import Form

SOURCE = Path(headscope.__file__).parents[1]
ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "own-reducer.md"

CHOICES = {
    'headscope.disable("minilm", "1-1", how={})': BlockWay,
    'headscope.lesions("smollm2", "blimp", {{"a": ["1-1"]}}, how={})': Way,
    'headscope.measure_effects("minilm", "mrpc", how={})': Way,
    'headscope.measure("minilm", "grammar", "surface", view={})': ViewName,
    'headscope.measure("minilm", "grammar", "surface", task={})': TaskHead,
    'headscope.load("minilm", task={})': TaskHead,
    'headscope.measure("minilm", "grammar", "surface", engine={})': Engine,
    'headscope.measure("minilm", "grammar", "surface", dtype={})': Dtype,
    'headscope.load("minilm", dtype={})': Dtype,
    'headscope.measure("minilm", "grammar", "surface", text={})': Form,
    'headscope.export("atlas", format={})': ExportFormat,
}
"""Calls with a choice, and its type."""


def test_what_is_a_choice_at_run_time_is_one_for_a_type_checker() -> None:
    assert (*VIEWS,) == get_args(ViewName)
    assert (*BLOCK_WAYS,) == get_args(BlockWay)
    assert get_args(Way) == WAYS
    assert (*TASKS, "own") == get_args(TaskHead)
    assert (*FILES,) == get_args(ExportFormat)
    assert Lesions.options["match"].choices == MATCHES


def test_no_option_lists_choices_that_its_type_does_not() -> None:
    written = {path: path.read_text() for path in (SOURCE / "headscope" / "commands").rglob("request.py")}
    assert len(written) > 15
    assert not [path for path, text in written.items() if re.search(r"^\s+choices=", text, re.MULTILINE)]
    chosen = {(record.command, name) for record in COMMANDS for name, each in record.options.items() if each.choices}
    assert {
        ("atlas", "views"),
        ("disable", "how"),
        ("list", "kind"),
        ("probe", "without"),
        ("tune", "select"),
    } <= chosen


def check(folder: Path, text: str) -> list[dict[str, Any]]:
    """What basedpyright says of a file that uses headscope."""
    (folder / "calls.py").write_text(text)
    write_settings(folder)
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable]
    printed = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout
    return json.loads(printed)["generalDiagnostics"]


def write_settings(folder: Path) -> None:
    settings = {"typeCheckingMode": "standard", "extraPaths": [str(SOURCE)]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))


@pytest.mark.full
def test_a_misspelt_choice_is_an_error_that_lists_the_others(tmp_path: Path) -> None:
    lines = ["import headscope"]
    for call, kind in CHOICES.items():
        lines += [call.format(json.dumps(name)) for name in (get_args(kind)[-1], "misspelt")]
    marked = check(tmp_path, "\n".join(lines))
    assert [each["range"]["start"]["line"] for each in marked] == [2 * number + 2 for number in range(len(CHOICES))]
    for each, (call, kind) in zip(marked, CHOICES.items(), strict=True):
        assert each["severity"] == "error"
        assert "\"Literal['misspelt']\"" in each["message"], call
        assert all(f"'{name}'" in each["message"] for name in get_args(kind)), call


@contextmanager
def serve(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-c", "from basedpyright.langserver import main; main()", "--stdio"]
    server = subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield server
    finally:
        server.kill()
        server.wait()
        server.stdin.close()
        server.stdout.close()


def send(stream: IO[bytes], method: str, params: Any, number: int | None = None) -> None:
    content = {"jsonrpc": "2.0", "method": method, "params": params} | ({} if number is None else {"id": number})
    body = json.dumps(content).encode()
    stream.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    stream.flush()


def answer(server: subprocess.Popen[bytes], number: int) -> Any:
    """What the server answers to a request; what it asks itself is answered with nothing."""
    while True:
        headers = dict(line.split(b": ") for line in iter(server.stdout.readline, b"\r\n"))
        content = json.loads(server.stdout.read(int(headers[b"Content-Length"])))
        if content.get("id") == number and "method" not in content:
            return content["result"]
        if "id" in content:
            asked = content["params"].get("items", []) if content["method"] == "workspace/configuration" else []
            reply = json.dumps({"jsonrpc": "2.0", "id": content["id"], "result": [None] * len(asked)}).encode()
            server.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(reply), reply))
            server.stdin.flush()


@pytest.mark.full
@pytest.mark.parametrize(
    ("call", "names"),
    [
        ('headscope.disable("minilm", "1-1", how="', get_args(BlockWay)),
        ('headscope.measure("minilm", "grammar", "surface", view="', get_args(ViewName)),
        ("headscope.", ("atlas", "attend", "measure", "top_heads")),
        ('headscope.load("minilm", device="', ("auto", "cpu", "cuda")),
    ],
)
def test_an_editor_completes_choices_and_names(tmp_path: Path, call: str, names: tuple[str, ...]) -> None:
    write_settings(tmp_path)
    quote = '")' if call.endswith('"') else ""
    text, address = f"import headscope\n{call}{quote}\n", (tmp_path / "calls.py").as_uri()
    (tmp_path / "calls.py").write_text(text)
    with serve(tmp_path) as server:
        folders = [{"uri": tmp_path.as_uri(), "name": "calls"}]
        about = {
            "processId": os.getpid(),
            "rootUri": tmp_path.as_uri(),
            "workspaceFolders": folders,
            "capabilities": {},
        }
        send(server.stdin, "initialize", about, 1)
        answer(server, 1)
        send(server.stdin, "initialized", {})
        document = {"uri": address, "languageId": "python", "version": 1, "text": text}
        send(server.stdin, "textDocument/didOpen", {"textDocument": document})
        place = {"line": 1, "character": len(call)}
        send(server.stdin, "textDocument/completion", {"textDocument": {"uri": address}, "position": place}, 2)
        offered = answer(server, 2)
    labels = {each["label"].strip('"') for each in (offered["items"] if isinstance(offered, dict) else offered)}
    assert {*names} <= labels


@pytest.mark.full
def test_reducers_as_the_page_writes_them_pass_strict_checks(tmp_path: Path) -> None:
    codes = re.findall(r"```python\n# (\w+\.py)\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    assert [name for name, _ in codes] == ["repetition.py", "previous.py"]
    for name, code in codes:
        (tmp_path / name).write_text(code)
    # mypy finds an installed package by itself, and refuses its folder as a path.
    environment = os.environ | ({} if SOURCE.name == "site-packages" else {"MYPYPATH": str(SOURCE)})
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "."]
    checked = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert checked.stdout == "Success: no issues found in 2 source files\n"
    assert check(tmp_path, "import previous, repetition\n") == []
    wrong = codes[0][1].replace("batch: Batch", "batch: int").replace("-> Sums", "-> list[int]", 1)
    assert len([each for each in check(tmp_path, wrong) if each["severity"] == "error"]) >= 3
