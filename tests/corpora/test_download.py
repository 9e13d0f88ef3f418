"""Files of the web: whole or not at all, compared each time, and one sentence on what went wrong."""

import errno
import fcntl
import hashlib
import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from headscope.corpora import download
from headscope.corpora.download import MissingFileError, fetch, show_downloads
from headscope.errors import CorpusError, HeadscopeError
from web import serving

CONTENT = bytes(range(256)) * 1021
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Any]:
    folder = tmp_path / "web"
    folder.mkdir()
    (folder / "words.txt").write_bytes(CONTENT)
    with serving(folder) as server:
        yield server


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "words.txt"


def list_visible(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != ".lock")


def refused(address: str, path: Path, known: str = "") -> str:
    with pytest.raises(CorpusError) as caught:
        fetch(address, path, known)
    return str(caught.value)


def test_a_file_is_downloaded_once_with_its_sha256_beside_it(server, path: Path) -> None:
    steps: list[tuple[str, int, int]] = []
    with show_downloads(lambda *step: steps.append(step)):
        assert fetch(f"{server.address}/words.txt", path) == path
    assert path.read_bytes() == CONTENT
    assert steps[0][0] == "downloading words.txt"
    assert [done for _, done, _ in steps] == sorted({done for _, done, _ in steps})
    assert steps[-1] == ("downloading words.txt", len(CONTENT), len(CONTENT))
    subprocess.run(["sha256sum", "--check", "--strict", "words.txt.sha256"], cwd=path.parent, check=True)
    fetch("http://127.0.0.1:1/words.txt", path)  # offline
    assert server.asked == ["/words.txt"]
    assert list_visible(path.parent) == ["words.txt", "words.txt.sha256"]


def test_several_that_ask_at_once_download_it_once(server, path: Path) -> None:
    with ThreadPoolExecutor(7) as pool:
        assert {*pool.map(lambda _: fetch(f"{server.address}/words.txt", path), range(7))} == {path}
    assert server.asked == ["/words.txt"]


@pytest.mark.filterwarnings("ignore:flock not supported")  # filelock's, which then makes do without
@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_disk_without_locks_keeps_a_download_too(
    number: int, server, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    assert fetch(f"{server.address}/words.txt", path).read_bytes() == CONTENT
    assert list_visible(path.parent) == ["words.txt", "words.txt.sha256"]


@pytest.mark.parametrize("record", [b"\xff\xfe\x00", b"0" * 64])
def test_a_record_that_is_damaged_is_another(record: bytes, server, path: Path) -> None:
    fetch(f"{server.address}/words.txt", path)
    path.with_name("words.txt.sha256").write_bytes(record)
    assert refused(f"{server.address}/words.txt", path).startswith(f"{path} is not what was downloaded (SHA-256 ")


@pytest.mark.parametrize("sent", [0, 1, 70_001])
def test_of_a_download_that_stops_nothing_is_kept(sent: int, server, path: Path) -> None:
    address = f"{server.address}/words.txt"
    server.sent = sent
    assert refused(address, path) == (
        f"the download of {address} stopped after {sent:,} of {len(CONTENT):,} bytes, and nothing of it was kept; run "
        "the command again."
    )
    assert not list_visible(path.parent)
    server.sent = None
    assert fetch(address, path).read_bytes() == CONTENT


def test_of_a_download_that_is_interrupted_nothing_is_kept(server, path: Path) -> None:
    def interrupt(step: str, done: int, total: int) -> None:
        raise KeyboardInterrupt

    with show_downloads(interrupt), pytest.raises(KeyboardInterrupt):
        fetch(f"{server.address}/words.txt", path)
    assert not list_visible(path.parent)


def test_what_a_killed_process_left_is_removed(server, path: Path) -> None:
    path.parent.mkdir()
    (path.parent / ".words.abcdefgh.txt").write_text("half")
    fetch(f"{server.address}/words.txt", path)
    assert list_visible(path.parent) == ["words.txt", "words.txt.sha256"]


def test_a_server_that_says_nothing_is_left(server, path: Path, monkeypatch) -> None:
    monkeypatch.setattr(download, "TIMEOUT", 0.05)
    monkeypatch.setattr("web.Handler.copyfile", lambda *_: __import__("time").sleep(0.5))
    assert "/words.txt stopped half-way (timed out), and nothing of it was kept" in refused(
        f"{server.address}/words.txt", path
    )
    assert not list_visible(path.parent)


def test_a_server_that_is_not_there_is_one_sentence(path: Path) -> None:
    assert refused("http://127.0.0.1:1/words.txt", path) == (
        f"the corpus is not in the cache {path.parent} yet, and http://127.0.0.1:1/words.txt cannot be reached ([Errno "
        "111] Connection refused); run the command once with a network and copy that folder, or give the path of a "
        "file that you have."
    )


def test_a_file_that_the_server_does_not_have_is_told_apart(server, path: Path) -> None:
    with pytest.raises(MissingFileError) as caught:
        fetch(f"{server.address}/other.txt", path)
    assert str(caught.value) == f"there is no file {server.address}/other.txt."


def test_a_cache_that_cannot_be_written_is_one_sentence(server, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(HeadscopeError) as caught:
        fetch(f"{server.address}/words.txt", tmp_path / "cache" / "words.txt")
    assert str(caught.value) == (
        f"{tmp_path / 'cache'} cannot be written (File exists); free some space, or name another place in the "
        "environment variable HEADSCOPE_CACHE."
    )


def test_other_contents_are_refused(server, path: Path) -> None:
    address = f"{server.address}/words.txt"
    assert refused(address, path, "0" * 64) == (
        f"{address} has the SHA-256 {DIGEST[:12]}, and 000000000000 is expected, so nothing of it was kept; run the "
        "command again, and if it stays so, the file was damaged on the way or changed at its source."
    )
    assert not list_visible(path.parent)
    fetch(address, path, DIGEST)
    path.write_bytes(CONTENT[:-1])
    changed = hashlib.sha256(CONTENT[:-1]).hexdigest()
    sentence = (
        f"{path} is not what was downloaded (SHA-256 {changed[:12]} and not {DIGEST[:12]}); delete it, and it is "
        "downloaded again."
    )
    assert refused(address, path) == sentence
    assert refused(address, path, DIGEST) == sentence
    path.unlink()
    (server.folder / "words.txt").write_bytes(b"changed at its source")
    assert f"and {DIGEST[:12]} is expected, so nothing of it was kept" in refused(address, path)
