"""Files are written whole or not at all."""

import errno
import os
import tempfile
from pathlib import Path

import pytest

from headscope.errors import HeadscopeError, TableError
from headscope.files import atomic_write, find_by_suffix, remove_unfinished, sha256, writable


def refusal(path: Path, number: int) -> str:
    return f"{path} could not be written ({os.strerror(number)}); free some space or choose another place."


def fail(path: Path, error: BaseException) -> None:
    """Write half of a file, then fail."""
    with atomic_write(path) as temporary:
        temporary.write_text("half of the n")
        raise error


@pytest.mark.parametrize("name", ["heads.nc", "no-suffix", ".hidden", "two.dots.nc", "ä b.csv"])
def test_the_content_is_replaced_when_the_block_ends(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("old")
    with atomic_write(path) as temporary:
        assert temporary.parent == path.parent  # on the same disk, so that it can take the place in one step
        assert temporary.suffix == path.suffix or not path.suffix  # which tells a writer the format
        temporary.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["heads.nc", ".[red].nc.partial.npz", "no-suffix"])
def test_what_a_killed_process_left_of_a_file_is_removed(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with atomic_write(path) as temporary:
        left = tmp_path / temporary.name
    longer = f"{left.name.removesuffix(path.suffix)}.{path.suffix}"  # of a file whose name begins like this one's
    others = [tmp_path / other for other in (name, f"x{left.name}", f".other.{path.suffix}", longer)]
    for file in (left, *others):
        file.write_text("half")
    remove_unfinished(path)
    assert set(tmp_path.iterdir()) == set(others)


def test_a_device_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, Path(os.devnull)):
        with pytest.raises(HeadscopeError) as refused:
            writable(path)
        assert str(refused.value) == f"{path} is a device or a pipe, which a file would replace; name a file."
    writable(tmp_path / "new")


def test_folders_are_made(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "heads.nc"
    with atomic_write(path) as temporary:
        temporary.write_text("new")
    assert path.read_text() == "new"


@pytest.mark.parametrize("error", [ValueError("ours"), KeyboardInterrupt(), TableError("ours")])
def test_an_error_in_the_block_leaves_what_was_there(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "heads.nc"
    path.write_text("old")
    with pytest.raises(type(error)) as seen:
        fail(path, error)
    assert seen.value is error
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_in_the_block_leaves_nothing_where_nothing_was(tmp_path: Path) -> None:
    with pytest.raises(TableError):
        fail(tmp_path / "heads.nc", TableError("ours"))
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "heads.nc"
    path.write_text("old")
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with pytest.raises(HeadscopeError) as refused:
        fail(path, full)
    assert str(refused.value) == refusal(path, errno.ENOSPC)
    assert refused.value.__cause__ is full
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_without_a_number_says_its_own_words(tmp_path: Path) -> None:
    path = tmp_path / "heads.nc"
    with pytest.raises(HeadscopeError) as refused:
        fail(path, OSError("the tape is torn"))
    assert str(refused.value) == (
        f"{path} could not be written (the tape is torn); free some space or choose another place."
    )


def test_a_block_that_takes_the_temporary_file_away(tmp_path: Path) -> None:
    path = tmp_path / "heads.nc"
    with pytest.raises(HeadscopeError) as refused, atomic_write(path) as temporary:
        temporary.unlink()
    assert str(refused.value) == refusal(path, errno.ENOENT)


def enter(path: Path) -> None:
    with atomic_write(path):
        pytest.fail("the block was entered though there is no place to write to")


def test_a_file_where_a_folder_should_be(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("old")
    for path, number in ((file / "heads.nc", errno.EEXIST), (file / "deeper" / "heads.nc", errno.ENOTDIR)):
        with pytest.raises(HeadscopeError) as refused:
            enter(path)
        assert str(refused.value) == refusal(path, number)
    assert file.read_text() == "old"


def test_a_folder_where_the_file_should_be(tmp_path: Path) -> None:
    path = tmp_path / "heads.nc"
    path.mkdir()
    with pytest.raises(HeadscopeError) as refused, atomic_write(path) as temporary:
        temporary.write_text("new")
    assert str(refused.value) == refusal(path, errno.EISDIR)
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_refuses_new_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "heads.nc"
    path.write_text("old")

    def refuse(**options: object) -> tuple[int, str]:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    if os.geteuid() == 0:  # to the superuser no folder is read-only
        monkeypatch.setattr(tempfile, "mkstemp", refuse)
    tmp_path.chmod(0o500)
    with pytest.raises(HeadscopeError) as refused:
        enter(path)
    tmp_path.chmod(0o700)
    assert str(refused.value) == refusal(path, errno.EACCES)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
def test_the_file_is_as_open_as_the_umask_says(tmp_path: Path, mask: int, mode: int) -> None:
    before = os.umask(mask)
    try:
        with atomic_write(tmp_path / "heads.nc") as temporary:
            assert temporary.stat().st_mode & 0o777 == 0o600
        assert (tmp_path / "heads.nc").stat().st_mode & 0o777 == mode
        assert os.umask(before) == mask
    finally:
        os.umask(before)


@pytest.mark.parametrize("place", ["ud/EWT/dev.conllu", "EWT/dev.conllu", "dev.conllu"])
def test_a_file_is_found_by_the_end_of_its_path(tmp_path: Path, place: str) -> None:
    assert find_by_suffix(tmp_path, "ud/EWT/dev.conllu") is None
    (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / place).touch()
    assert find_by_suffix(tmp_path, "ud/EWT/dev.conllu") == tmp_path / place


def test_the_hash_of_a_file_is_that_of_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "abc").write_bytes(b"abc")
    # FIPS 180-2, appendix B.1.
    assert sha256(tmp_path / "abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    with pytest.raises(HeadscopeError, match=r"cannot be read \(No such file or directory\); check whose it is.$"):
        sha256(tmp_path / "missing")
