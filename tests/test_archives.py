"""Archives of arrays that unpack to more than they should, and what is no archive: refused before they are unpacked."""

import io
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

from headscope.errors import CorpusError, HeadscopeError
from headscope.runner.checkpoint import RunSums, load, save
from headscope.studies import STUDIES
from headscope.studies.arrays import read_recording

ZHAO = STUDIES["zhao2020"]


def write_bomb(path: Path, gigabytes: int) -> None:
    """An archive of zeros, of which a thousand bytes take one."""
    member = io.BytesIO()
    with zipfile.ZipFile(member, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("story.npy", "w") as file:
        for _ in range(64):
            file.write(bytes(2**20))
    # The directory alone says how much it is: it is written anew with another size.
    content = bytearray(member.getvalue())
    start = content.index(b"PK\x01\x02") + 24
    content[start : start + 4] = (gigabytes * 10**9).to_bytes(4, "little")
    path.write_bytes(content)


def test_a_bomb_is_seen_in_the_directory_of_the_archive(tmp_path: Path) -> None:
    path = tmp_path / "mine.npz"
    write_bomb(path, 3)
    with pytest.raises(CorpusError) as refused:
        read_recording(ZHAO, ZHAO.recording, path)
    assert str(refused.value) == (
        f"{path} is no archive of plain arrays (it claims to hold 3.0 GB, which {path.stat().st_size:,} bytes cannot); "
        "save the scores with numpy.savez."
    )


def test_scores_unpack_to_a_gigabyte_at_most(tmp_path: Path) -> None:
    """Also where no file of its size would be suspected of more."""
    path = tmp_path / "mine.npz"
    write_bomb(path, 3)
    content = path.read_bytes()
    with path.open("wb") as file:  # a zip archive may have anything in front
        file.seek(10**8)
        file.write(content)
    with pytest.raises(CorpusError) as refused:
        read_recording(ZHAO, ZHAO.recording, path)
    assert str(refused.value).startswith(
        f"{path} is no archive of plain arrays (it unpacks to 3.0 GB, and an archive of scores to 1.0 at most); "
    )


def test_sums_that_unpack_to_more_than_their_file_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "sums.npz"
    save(RunSums({("seen", "words"): np.array(3)}), path, identity={"model": "a"})
    assert load(path)[0].values["seen", "words"] == 3
    with np.load(path) as stored:
        arrays = dict(stored)
    np.savez_compressed(path, **arrays, zeros=np.zeros(10**6))
    with pytest.raises(HeadscopeError) as refused:
        load(path)
    assert str(refused.value) == (
        f"{path} does not hold the sums of an interrupted run; delete it, or run without --resume."
    )


@pytest.mark.parametrize("header", [b"(" * 99, b"{'descr': '<f8', 'fortran_order': False, 'shape': (10**9,)}", b"\xff"])
def test_an_array_with_a_wrong_header_is_refused(tmp_path: Path, header: bytes) -> None:
    path = tmp_path / "mine.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("story.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    with pytest.raises(CorpusError, match="is no archive of plain arrays"):
        read_recording(ZHAO, ZHAO.recording, path)
    with pytest.raises(HeadscopeError, match="does not hold the sums of an interrupted run"):
        load(path)


def test_a_pipe_or_a_device_is_refused_at_once(tmp_path: Path) -> None:
    pipe, device = tmp_path / "pipe.npz", tmp_path / "zero.npz"
    os.mkfifo(pipe)
    device.symlink_to("/dev/zero")
    for path in (pipe, device):
        sentence = f"{path} is a device or a pipe; copy what it gives to a file, and name that file."
        for read in (load, lambda path: read_recording(ZHAO, ZHAO.recording, path)):
            with pytest.raises(HeadscopeError) as refused:
                read(path)
            assert str(refused.value) == sentence
