"""The manifest of an output folder: one that headscope did not write is not overwritten, and is refused before work."""

import json
from pathlib import Path

import pytest

from headscope.errors import HeadscopeError
from headscope.jobs.folder import OutputFolder

OURS = {"about": {"seed": 1}, "sha256": {"old.nc": "a" * 64, "figures/old.png": "b" * 64}}


@pytest.fixture
def folder(tmp_path: Path) -> OutputFolder:
    (tmp_path / "figures").mkdir()
    for name in ("old.nc", "figures/old.png", "mine.nc"):
        (tmp_path / name).write_text("old")
    return OutputFolder("the atlas", tmp_path, "manifest.json", ())


def test_files_of_an_older_job_are_removed_and_others_are_left(folder: OutputFolder) -> None:
    (folder.path / "manifest.json").write_text(json.dumps(OURS))
    folder.check()
    assert folder.write(lambda fresh: (fresh / "new.nc").write_text("new"), {}) == ("manifest.json", "new.nc")
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
    folder.write(lambda fresh: (fresh / "new.nc").write_text("new"), {})
    assert (elsewhere / "mine.png").read_text() == "mine"
    assert (folder.path / "some.png").is_dir()
