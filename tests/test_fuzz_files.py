"""Broken files of every format that people hand to one another: refused in a sentence, or read as what they say.

`benchmarks/fuzz.py` does the same with any number of them.
"""

import os
from importlib import import_module
from pathlib import Path

import pytest

from headscope.errors import HeadscopeError
from headscope.guards import formats
from mutations import check_sentence, count, ending
from mutations.files import SAMPLES, Samples


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Samples:
    return Samples(tmp_path_factory.mktemp("samples"))


def test_every_format_has_a_reader_and_a_sample() -> None:
    declared = {value for value in vars(formats).values() if isinstance(value, formats.FileFormat)}
    assert declared == {*formats.FORMATS} == {sample.format for sample in SAMPLES.values()}
    for format in formats.FORMATS:
        module, _, name = format.reader.partition(":")
        assert hasattr(import_module(module), name), format.reader


@pytest.mark.parametrize("name", SAMPLES)
def test_broken_files_are_read_or_refused(samples: Samples, name: str) -> None:
    results = count(lambda chance: samples.attempt(name, chance), 4, seed=1)
    assert results.total() == 4


@pytest.mark.full
@pytest.mark.parametrize("name", SAMPLES)
def test_more_broken_files_are_read_or_refused(samples: Samples, name: str) -> None:
    results = count(lambda chance: samples.attempt(name, chance), 9, seed=2)
    assert results["refused"]


@pytest.mark.parametrize("name", SAMPLES)
def test_no_regular_file_is_refused_at_once(samples: Samples, name: str) -> None:
    path, content, _ = samples.write(name)
    path.unlink()
    try:
        for make in (os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero")):
            make(path)
            with ending(path), pytest.raises(HeadscopeError) as refused:
                SAMPLES[name].read(path)
            check_sentence(refused.value)
            path.rmdir() if path.is_dir() else path.unlink()
    finally:
        if path.is_dir():
            path.rmdir()
        path.unlink(missing_ok=True)
        path.write_bytes(content)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_file_that_may_not_be_read_is_refused(samples: Samples, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path, _, _ = samples.write(name)
    really = Path.open

    def refuse(self: Path, *arguments: object, **settings: object) -> object:
        if self == path:
            raise PermissionError(13, "Permission denied", str(path))
        return really(self, *arguments, **settings)

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(HeadscopeError) as refused:
        SAMPLES[name].read(path)
    assert str(refused.value) == f"{path} cannot be read (Permission denied); check whose it is."
