"""Names of models that are misspelt: what is suggested, and when the hub is asked first."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from huggingface_hub import constants

from headscope.capture.model.model_names import WANTED, check_name
from headscope.errors import ModelError

NOT_AT_HUB = (
    "there is no such folder, it is not in the cache of the hub, and the hub does not have it or does not answer"
)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch) -> Path:
    """A cache of the hub that holds one model, and the current folder beside it, that holds another."""
    (tmp_path / "hub" / "models--some-lab--owl-base-cased").mkdir(parents=True)
    (tmp_path / "here" / "my-model").mkdir(parents=True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path


@pytest.fixture
def hub(monkeypatch) -> Iterator[dict[str, int]]:
    """A hub on this machine: how often it was asked for each path; it has one model."""
    asked: dict[str, int] = {}

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked[self.path] = asked.get(self.path, 0) + 1
            there = self.path.endswith("/owl-large-cased")
            self.send_response(200 if there else 404)
            self.send_header("X-Error-Code", "" if there else "RepoNotFound")
            self.end_headers()
            self.wfile.write(b'{"id": "some-lab/owl-large-cased"}' if there else b"")

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = HTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    yield asked
    server.shutdown()
    server.server_close()


def refuse(name: str) -> str:
    with pytest.raises(ModelError) as refused:
        check_name(name)
    return str(refused.value)


@pytest.mark.parametrize(
    ("name", "close"),
    [
        ("minlm", "minilm"),
        ("SmolLM", "smollm2"),
        ("some-lab/owl-bse-cased", "some-lab/owl-base-cased"),
        ("some-lab/Owl-Base-Case", "some-lab/owl-base-cased"),
        ("my_model", "my-model"),
    ],
)
def test_a_name_that_is_nearly_that_of_a_model_here_is_answered_with_it(cache: Path, name: str, close: str) -> None:
    assert (
        refuse(name) == f"no model could be loaded from {name!r} (did you mean {close}?): {NOT_AT_HUB}; give {WANTED}."
    )


def test_a_path_is_answered_with_what_is_beside_it(cache: Path) -> None:
    (cache / "here" / "tiny-q4.gguf").write_bytes(b"GGUF")
    missing = cache / "here" / "my-modl"
    assert refuse(str(missing)) == (
        f"there is no folder {str(missing)!r} (did you mean {cache / 'here' / 'my-model'}?); give {WANTED}."
    )
    assert refuse("tiny_q4.gguf") == f"there is no file 'tiny_q4.gguf' (did you mean tiny-q4.gguf?); give {WANTED}."


@pytest.mark.parametrize("name", ["some-lab/owl-base-cased", "my-model", "other/thing", "minilm", "x" * 5000])
def test_what_is_here_and_what_is_like_nothing_here_is_left_to_be_loaded(cache: Path, name: str) -> None:
    check_name(name)


def test_the_hub_is_asked_for_a_name_that_is_nearly_another(cache: Path, hub: dict[str, int]) -> None:
    check_name("some-lab/owl-large-cased")  # no mistake: the hub has it
    assert "did you mean some-lab/owl-base-cased?" in refuse("some-lab/owl-bose-cased")
    assert hub == {f"/api/models/some-lab/owl-{size}-cased": 1 for size in ("large", "bose")}
    check_name("other/thing")
    assert len(hub) == 2
