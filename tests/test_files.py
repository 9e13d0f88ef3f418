"""Files are written whole or not at all, and by one command at a time."""

import errno
import fcntl
import math
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from headscope.errors import HeadscopeError, TableError
from headscope.files import (
    LOCK,
    atomic_write,
    find_by_suffix,
    parse_number,
    remove_unfinished,
    reserve,
    sha256,
    tell_apart,
    writable,
)


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


# ------------------------------------------------------------------- one at a time


def busy(output: Path) -> str:
    return f"another headscope command is writing to {output}; wait until it has ended, or choose another place."


def reserve_folder(folder: Path) -> AbstractContextManager[None]:
    return reserve(folder, folder / LOCK)


def refused(folder: Path) -> str:
    """What a second command is told."""
    with pytest.raises(HeadscopeError) as seen, reserve_folder(folder):
        pytest.fail("the block was entered while another one ran")
    return str(seen.value)


def test_one_thread_at_a_time_writes_to_a_folder(tmp_path: Path) -> None:
    with reserve_folder(tmp_path), ThreadPoolExecutor(1) as other:
        assert other.submit(refused, tmp_path).result() == busy(tmp_path)
        assert refused(tmp_path) == busy(tmp_path)
        assert refused(tmp_path / ".." / tmp_path.name) == busy(tmp_path / ".." / tmp_path.name)
        with reserve(tmp_path / "heads.nc", tmp_path / ".heads.nc.lock"):  # a file in it is another thing
            pass
    assert list(tmp_path.iterdir()) == []
    with reserve_folder(tmp_path):
        pass


def test_the_system_releases_what_a_killed_process_held(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from headscope.files import LOCK, reserve\n"
        "folder = Path(sys.argv[1])\n"
        "with reserve(folder, folder / LOCK): print('inside', flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "inside\n"
        assert refused(tmp_path) == busy(tmp_path)
        process.kill()
    assert [path.name for path in tmp_path.iterdir()] == [LOCK]
    with reserve_folder(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", [None, ValueError("ours"), KeyboardInterrupt()])
def test_folders_that_were_made_for_nothing_are_gone_in_the_end(tmp_path: Path, error: BaseException | None) -> None:
    with pytest.raises(type(error)) if error else nullcontext(), reserve_folder(tmp_path / "new" / "deeper"):
        assert (tmp_path / "new" / "deeper").is_dir()
        if error:
            raise error
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "old").mkdir()
    with reserve_folder(tmp_path / "old" / "new" / "deeper"):
        (tmp_path / "old" / "new" / "heads.nc").touch()
    assert [path.name for path in (tmp_path / "old").rglob("*")] == ["new", "heads.nc"]
    with reserve_folder(tmp_path / "old" / "new"):
        pass
    assert (tmp_path / "old" / "new" / "heads.nc").exists()


@pytest.mark.filterwarnings("ignore:flock not supported")  # filelock's, which then makes do without
@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_disk_without_locks_is_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with reserve_folder(tmp_path):
        (tmp_path / "heads.nc").touch()
    assert [path.name for path in tmp_path.iterdir()] == ["heads.nc"]


def test_a_disk_that_is_read_only_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(Path, "mkdir", refuse)
    out = tmp_path / "new"
    assert refused(out) == f"{out} cannot be written to ({os.strerror(errno.EROFS)}); choose another place."


LONG = "ä" * 101


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (
            f"{LONG}.nc",
            "the name of {path} is 205 bytes long; choose one of at most 200 bytes, so that the files that are made on "
            "the way to it can have it in their names.",
        ),
        (f"{LONG * 2}/heads.nc", "{path} cannot be written (File name too long); choose another place."),
        ("a/" * 3000 + "heads.nc", "{path} cannot be written (File name too long); choose another place."),
    ],
    ids=["name", "folder", "path"],
)
def test_too_long_a_name_is_refused(tmp_path: Path, path: str, message: str) -> None:
    with pytest.raises(HeadscopeError) as seen:
        writable(tmp_path / path)
    assert str(seen.value) == str(HeadscopeError(message.format(path=tmp_path / path)))


def test_the_longest_name_is_written(tmp_path: Path) -> None:
    path = tmp_path / f"{'ä' * 98}b.nc"
    assert len(path.name.encode()) == 200
    writable(path)
    with atomic_write(path.with_name(f".{path.name}.partial.seed-4294967295.npz")) as temporary:
        temporary.write_text("sums")


def test_names_that_one_file_would_have_are_told_apart() -> None:
    names = ["a_b", "a_c", "a_b", "A_B", "a_b-2", "a_b"]
    distinct = tell_apart(names)
    assert distinct == ["a_b", "a_c", "a_b-2", "A_B-3", "a_b-2-2", "a_b-4"]
    assert len({name.lower() for name in distinct}) == len(names)


@pytest.mark.parametrize(("text", "number"), [("0.5", 0.5), (" -1e-3\t", -0.001), ("\u00a02", 2), ("+.5", 0.5)])
def test_a_number_is_read_with_what_is_around_it(text: str, number: float) -> None:
    assert parse_number(text) == number


@pytest.mark.parametrize("text", ["", "much", "1_0", "0.2_5", "\u0661", "0x1", "0,5", "nan", "-inf", "1e999"])
def test_what_only_python_takes_for_a_number_is_none(text: str) -> None:
    assert math.isnan(parse_number(text))
