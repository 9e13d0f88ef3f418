"""No command overwrites a file that headscope did not write."""

import json
from pathlib import Path

import numpy as np
import pytest

import headscope
import tiny
from headscope.commands.folder import OutputFolder
from headscope.commands.output import Contents
from headscope.errors import HeadscopeError

SENTENCES = "The dog barks . It is loud .\nThe cat sleeps , and the dog sees it .\n" * 7
FOREIGN = "is there already, is not known to be written by headscope, and would be overwritten; "
MINE = b"mine"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.save(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def table(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("table") / "heads.nc"
    headscope.measure(model, "grammar:53", "relations", permutations=0, out=path, progress=False)
    return path


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """Files of the user in the folder where commands are run, by name."""
    np.savez(tmp_path / "own.npz", header=np.array("mine"), values=np.arange(3))
    contents = {
        "corpus.txt": SENTENCES.encode(),
        "own.nc": b"\x89HDF\r\n\x1a\n" + MINE,
        "own.npz": (tmp_path / "own.npz").read_bytes(),
        "own.json": b'{"heads": []}',
        "own.md": b"# My model\n\n## Attention heads\n",
        "generation_config.json": b'{"max_length": 100}',
        "full_attention_heads.tsv": b"0.5\t0.25\n",
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    monkeypatch.chdir(tmp_path)
    return contents


def read_files(names: dict[str, bytes]) -> dict[str, bytes]:
    return {name: Path(name).read_bytes() for name in names}


MEASURE = ("measure", "{model}", "corpus.txt", "-r", "surface", "-o")
EXPORT = ("export", "{table}", "--row", "det")
TYPED = {
    "the corpus": (*MEASURE, "corpus.txt"),
    "a file of another program": (*MEASURE, "own.nc"),
    "arrays, for a shard": ("measure", "{model}", "corpus.txt", "-r", "surface", "--shard", "1/2", "-o", "own.npz"),
    "JSON": (*EXPORT, "-o", "own.json"),
    "a model card": (*EXPORT, "--as", "model-card", "-o", "own.md"),
    "settings of a model": (*EXPORT, "--as", "alignment-heads", "-o", "generation_config.json"),
    "a list that was published": (*EXPORT, "--as", "duo-attention"),
}


@pytest.mark.parametrize("case", TYPED)
def test_a_file_of_the_user_stays(run, model: Path, table: Path, files: dict[str, bytes], case: str) -> None:
    typed = [part.format(model=model, table=table) for part in TYPED[case]]
    code, printed, complaint = run(*typed)
    name = typed[-1] if "-o" in typed else "full_attention_heads.tsv"
    advice = "name another file, or remove this one."
    assert (code, printed, complaint.splitlines()[-1]) == (2, "", f"headscope: {name} {FOREIGN}{advice}")
    assert read_files(files) == files


def test_a_file_of_headscope_and_an_empty_one_are_written_again(
    run, model: Path, table: Path, files: dict[str, bytes]
) -> None:
    Path("new.nc").touch()
    written = [(*MEASURE, "new.nc"), (*MEASURE, "new.nc"), ("merge", "0.npz", "1.npz", "-o", "new.nc")]
    shards = [(*MEASURE[:-1], "--shard", f"{1 + each % 2}/2", "-o", f"{each % 2}.npz") for each in range(4)]
    lists = [(*EXPORT, "--as", name, "-o", f"list.{name}") for name in ("heads", "model-card", "duo-attention") * 2]
    for typed in (*shards, *written, *lists):
        code, _, complaint = run(*(part.format(model=model, table=table) for part in typed))
        assert code == 0, complaint
    assert read_files(files) == files


@pytest.mark.parametrize("name", ["heads.nc", "atlas.html", "tables/relation-heads.csv"])
def test_a_folder_with_a_file_of_the_user_is_refused_and_what_was_measured_is_kept(
    run, model: Path, tmp_path: Path, name: str
) -> None:
    own = tmp_path / "atlas" / name
    own.parent.mkdir(parents=True)
    own.write_bytes(MINE)
    typed = ("atlas", model, "grammar:31", "--permutations", 0, "--map-documents", 0, "--examples", 0, "-o", "atlas")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        code, _, complaint = run(*typed)
        assert code == 2
        assert complaint.splitlines()[-1] == (f"headscope: atlas/{name} {FOREIGN}move it, or choose another folder.")
        assert ("measuring" in complaint) == name.startswith("tables/")  # the others are seen before any work is done
        assert own.read_bytes() == MINE
        own.rename(tmp_path / "moved")
        code, _, complaint = run(*typed, "--resume")
        assert code == 0, complaint
        assert own.read_bytes() != MINE


def test_a_folder_that_was_killed_while_it_was_written_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = OutputFolder(Contents("results", "results.json"), tmp_path)
    files = {name: f"the file {name}" for name in ("a.md", "b.md")}
    move = Path.replace

    def kill(path: Path, target: Path) -> Path:
        if target == tmp_path / "b.md":
            raise KeyboardInterrupt
        return move(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", kill)
        with pytest.raises(KeyboardInterrupt):
            folder.write(files, {})
    assert (tmp_path / "a.md").is_file()
    assert not (tmp_path / "results.json").exists()
    folder.write(files, {})
    assert {path.name for path in tmp_path.iterdir()} == {"a.md", "b.md", "results.json"}
    (tmp_path / "c.md").write_bytes(MINE)
    with pytest.raises(HeadscopeError, match=r"c\.md is there already"):
        folder.write(files | {"c.md": "ours"}, {})
    assert (tmp_path / "c.md").read_bytes() == MINE
    assert {*json.loads((tmp_path / "results.json").read_text())["sha256"]} == {"a.md", "b.md"}
