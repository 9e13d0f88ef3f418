"""The output folder: what headscope did not write is not overwritten, and one command writes at a time."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import headscope
from headscope import study_recorded
from headscope.commands.folder import OutputFolder, reserve_file
from headscope.commands.output import Contents
from headscope.errors import HeadscopeError
from headscope.files import LOCK, reserve

OURS = {"about": {"seed": 1}, "sha256": {"old.nc": "a" * 64, "figures/old.png": "b" * 64}}

ATLAS = Contents("the atlas", "manifest.json", ("heads",))


@pytest.fixture
def folder(tmp_path: Path) -> OutputFolder:
    (tmp_path / "figures").mkdir()
    for name in ("old.nc", "figures/old.png", "mine.nc"):
        (tmp_path / name).write_text("old")
    return OutputFolder(Contents("the atlas", "manifest.json"), tmp_path)


def test_files_of_an_older_job_are_removed_and_others_are_left(folder: OutputFolder) -> None:
    (folder.path / "manifest.json").write_text(json.dumps(OURS))
    folder.check()
    assert folder.write({"new.nc": lambda path: path.write_text("new")}, {}) == ("manifest.json", "new.nc")
    files = {path.relative_to(folder.path).as_posix() for path in folder.path.rglob("*") if path.is_file()}
    assert files == {"manifest.json", "new.nc", "mine.nc"}
    folder.check()  # what it wrote is its own


FOREIGN = [
    "", "{", "null", "[]", "3", '"about"', '{"name": "my app", "icons": []}', "[" * 100_000, "9" * 5000,
    *(json.dumps(changed) for changed in (
        {"about": {}}, {"sha256": {}}, {**OURS, "version": 1}, {**OURS, "about": []}, {**OURS, "sha256": ["old.nc"]},
        {**OURS, "sha256": "old.nc"}, {**OURS, "sha256": {"old.nc": 7}}, {**OURS, "sha256": {"old.nc": "a"}},
    )),
    *(json.dumps({**OURS, "sha256": {name: "a" * 64}}) for name in (
        "", ".", "..", "../old.nc", "/old.nc", "a/../../old.nc", "a\0.nc", "\ud83d.nc", "a" * 256,
        "figures/" + "a" * 256,
    )),
]  # fmt: skip


@pytest.mark.parametrize("content", FOREIGN, ids=range(len(FOREIGN)))
def test_a_foreign_manifest_is_refused_and_left_as_it_is(folder: OutputFolder, content: str) -> None:
    manifest = folder.path / "manifest.json"
    manifest.write_text(content)
    with pytest.raises(HeadscopeError) as refused:
        folder.check()
    assert str(refused.value) == (
        f"{manifest} is not a manifest that headscope wrote, and would be overwritten; move it elsewhere, or choose "
        "another folder."
    )
    assert manifest.read_text() == content


def test_nothing_outside_of_the_folder_is_removed(folder: OutputFolder, tmp_path: Path) -> None:
    elsewhere = tmp_path.with_name("elsewhere")
    elsewhere.mkdir(exist_ok=True)
    (elsewhere / "mine.png").write_text("mine")
    (folder.path / "link").symlink_to(elsewhere)
    (folder.path / "loop.png").symlink_to("loop.png")
    (folder.path / "some.png").mkdir()
    names = ("link/mine.png", "loop.png", "some.png")
    (folder.path / "manifest.json").write_text(json.dumps({**OURS, "sha256": dict.fromkeys(names, "a" * 64)}))
    folder.check()
    folder.write({"new.nc": lambda path: path.write_text("new")}, {})
    assert (elsewhere / "mine.png").read_text() == "mine"
    assert (folder.path / "some.png").is_dir()


def test_sums_stay_after_an_error_and_go_when_all_is_written(tmp_path: Path) -> None:
    left = [".heads.partial.npz", ".heads.partial.seed-3.npz", "..heads.partial.seed-3.abcdefgh.npz"]
    mine = [".other.partial.npz", "heads.partial.npz"]
    for name in (*left, *mine):
        (tmp_path / name).touch()
    with pytest.raises(KeyboardInterrupt), OutputFolder(ATLAS, tmp_path):
        raise KeyboardInterrupt
    assert {path.name for path in tmp_path.iterdir()} == {*left, *mine}
    with OutputFolder(ATLAS, tmp_path) as folder:
        folder.write({"new.nc": lambda path: path.write_text("new")}, {})
    assert {path.name for path in tmp_path.iterdir()} == {*mine, "new.nc", "manifest.json"}


def test_the_sums_of_a_file_stay_after_an_error_and_go_when_it_is_written(tmp_path: Path) -> None:
    out = tmp_path / "heads[1].nc"
    left = [".heads[1].nc.partial.npz", ".heads[1].nc.partial.replication.npz", ".heads[1].abcdefgh.nc"]
    for name in left:
        (tmp_path / name).touch()
    with pytest.raises(KeyboardInterrupt), reserve_file(out):
        raise KeyboardInterrupt
    assert {path.name for path in tmp_path.iterdir()} == {*left}
    with reserve_file(out) as sums:
        assert sums == tmp_path / left[0]
        out.touch()
    assert list(tmp_path.iterdir()) == [out]


def start(job: str, out: Path, **settings: Any) -> object:
    """A job that would fail if it did any work, for there is nothing to work on."""
    nothing = out.with_name("nothing.nc")
    commands: dict[str, Callable[..., object]] = {
        "atlas": partial(headscope.atlas, "minilm", nothing, out),
        "measure": partial(headscope.measure, "minilm", nothing, "surface", out=out),
        "study": partial(headscope.study, "zhao2020", "minilm", nothing, out),
        "study_recorded": partial(study_recorded, "zhao2020", nothing, out),
    }
    return commands[job](**settings)


@pytest.mark.parametrize("job", ["atlas", "measure", "study", "study_recorded"])
def test_whoever_comes_second_is_refused_before_any_work(tmp_path: Path, job: str) -> None:
    out, steps = tmp_path / "out", []
    lock = tmp_path / ".out.lock" if job == "measure" else out / LOCK
    with reserve(out, lock), pytest.raises(HeadscopeError) as refused:
        start(job, out, progress=lambda step, *_: steps.append(step))
    assert str(refused.value) == (
        f"another headscope command is writing to {out}; wait until it has ended, or choose another place."
    )
    assert steps == []
    with pytest.raises(HeadscopeError, match=r"nothing\.nc"):
        start(job, out)
    assert list(tmp_path.iterdir()) == []
