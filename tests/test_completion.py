"""What editors complete: jedi (IPython and Jupyter) and basedpyright (VS Code and others) know the public names."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jedi
import pytest

import headscope

SOURCE = Path(headscope.__file__).parents[1]
SUBMODULES = {"analyse", "corpora", "learn", "reducers"}


def complete_by_jedi(code: str, folder: Path) -> set[str]:
    """What jedi offers behind some code."""
    project = jedi.Project(str(folder), added_sys_path=[str(SOURCE)])
    return {each.name for each in jedi.Script(code, path=str(folder / "a.py"), project=project).complete()}


def complete_by_basedpyright(code: str, folder: Path) -> set[str]:
    """What the language server of basedpyright offers behind some code."""
    (folder / "a.py").write_text(code)
    (folder / "pyrightconfig.json").write_text(json.dumps({"include": ["a.py"], "extraPaths": [str(SOURCE)]}))
    command = [str(Path(sys.executable).with_name("basedpyright-langserver")), "--stdio"]
    with subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        uri, lines = (folder / "a.py").as_uri(), code.split("\n")

        def send(**message: Any) -> None:
            content = json.dumps({"jsonrpc": "2.0", **message}).encode()
            server.stdin.write(f"Content-Length: {len(content)}\r\n\r\n".encode() + content)
            server.stdin.flush()

        def read(number: int) -> Any:
            """The answer to a request; what the server asks in between gets nothing."""
            while True:
                size = 0
                while (line := server.stdout.readline()) not in (b"\r\n", b""):
                    if line.lower().startswith(b"content-length:"):
                        size = int(line.split(b":")[1])
                message = json.loads(server.stdout.read(size))
                if message.get("id") == number and "method" not in message:
                    return message["result"]
                if "id" in message:
                    count = len(message.get("params", {}).get("items", []))
                    send(id=message["id"], result=[{}] * count if count else None)

        send(id=1, method="initialize", params={
            "processId": None, "rootUri": folder.as_uri(), "capabilities": {},
            "workspaceFolders": [{"uri": folder.as_uri(), "name": "a"}],
        })  # fmt: skip
        read(1)
        send(method="initialized", params={})
        document = {"uri": uri, "languageId": "python", "version": 1, "text": code}
        send(method="textDocument/didOpen", params={"textDocument": document})
        place = {"line": len(lines) - 1, "character": len(lines[-1])}
        send(id=2, method="textDocument/completion", params={"textDocument": {"uri": uri}, "position": place})
        result = read(2)
        server.kill()
    return {each["label"] for each in (result["items"] if isinstance(result, dict) else result)}


SERVERS: dict[str, Callable[[str, Path], set[str]]] = {
    "jedi": complete_by_jedi,
    "basedpyright": complete_by_basedpyright,
}


@pytest.mark.full
@pytest.mark.parametrize("server", SERVERS)
def test_public_names_and_those_of_submodules_are_completed(server: str, tmp_path: Path) -> None:
    complete = SERVERS[server]
    offered = complete("import headscope\nheadscope.", tmp_path)
    assert {*headscope.__all__} | SUBMODULES <= offered
    special = complete("import headscope\nheadscope.analyse.", tmp_path)
    assert {*headscope.analyse.__all__} <= special


@pytest.mark.full
@pytest.mark.parametrize("server", SERVERS)
def test_parameters_and_tables_are_completed(server: str, tmp_path: Path) -> None:
    complete = SERVERS[server]
    parameters = complete("import headscope\nheadscope.attend('minilm', 'a text', bet", tmp_path)
    assert "between=" in parameters
    columns = complete("import headscope\nheadscope.to_frame(None).", tmp_path)
    assert {"groupby", "nlargest"} <= columns
