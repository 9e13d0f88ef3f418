"""`headscope atlas` as a user types it: what it writes, and what a failure or a kill leaves behind."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest
import xarray as xr

import headscope
import tiny
from headscope import heads

pytestmark = pytest.mark.full

LITTLE = ("--permutations", 0, "--map-documents", 0, "--examples", 0)


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    """A tiny model on disk."""
    return tiny.save(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def made(model, tmp_path_factory) -> Path:
    """An atlas without figures, to be copied."""
    out = tmp_path_factory.mktemp("made") / "atlas"
    headscope.atlas(str(model), "grammar:53", out, permutations=0, map_documents=5, examples=3, progress=False)
    return out


def test_atlas_writes_everything(run, model, tmp_path, draw_only) -> None:
    drawn = ("special-tokens", "relation-all", "relation-lengths", "scope", "antecedent", "token-class", "head-tree")
    draw_only(*drawn)
    out = tmp_path / "atlas"
    code, said, _ = run("atlas", model, "grammar:103", "--figures", "--table", "-o", out)
    assert code == 0
    assert f"Open {out / 'atlas.html'}" in said.replace("\n", "")
    assert {path.name for path in out.iterdir()} == {
        "heads.nc", "untrained.nc", "head-distances.nc", "examples.nc", "atlas.html", "manifest.json", "figures",
        "tables",
    }  # fmt: skip
    assert {path.name for path in (out / "tables").iterdir()} == {
        "heads.csv", "distances.csv", "relation.csv", "relation-heads.csv", "relation-lengths.csv",
        "relation-offsets.csv", "scope.csv", "scope-offsets.csv", "antecedent.csv", "antecedent-heads.csv",
        "antecedent-offsets.csv", "token-class.csv", "token-class-heads.csv", "columns.csv",
    }  # fmt: skip
    assert "Attention to classes of tokens: the heads with the highest values" in said
    page = (out / "atlas.html").read_text()
    assert page.count("<figure><figcaption>") == len(drawn)
    for name in drawn:
        assert (out / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (out / "figures" / f"{name}.svg").read_text()
    assert not list((out / "figures").glob("*.pdf"))
    manifest = json.loads((out / "manifest.json").read_text())
    about = manifest["about"]
    assert about["documents"] == 103
    assert set(manifest["sha256"]) == {
        path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()
    } - {"manifest.json"}
    table, untrained = heads.read_table(out / "heads.nc"), heads.read_table(out / "untrained.nc")
    assert table.attrs["weights_sha256"] != untrained.attrs["weights_sha256"]
    assert {"reported_head", "heldout_accuracy", "untrained_accuracy", "relation_accuracy_lower"} <= set(
        table.data_vars
    )
    assert "token_class_mass" in table
    assert "token_class_mass" not in untrained
    shown = {
        (path.stem, column)
        for path in (out / "tables").iterdir()
        if path.stem != "columns"
        for column in path.read_text().splitlines()[0].split(",")
    }
    explained = pd.read_csv(out / "tables" / "columns.csv", keep_default_na=False)
    assert set(zip(explained["table"], explained["column"], strict=True)) == shown
    assert (explained["what"] != "").all()
    assert set(explained["column"][explained["units"] == ""]) <= set(heads.DIMENSIONS)
    columns = (out / "tables" / "heads.csv").read_text().splitlines()[0].split(",")
    assert {"scope_label_coefficient", "scope_distance_p_clustered", "scope_r_squared"} <= set(columns)


def test_what_patterns_find_is_in_the_atlas_and_the_patterns_are_in_its_manifest(run, model, tmp_path) -> None:
    pytest.importorskip("spacy", reason="patterns are matched by spaCy, which comes with the extra `spacy`")
    own = {
        "patterns": {"the": {"tokens": [{"LOWER": "the"}, {"POS": "NOUN"}], "source": 0, "target": 1, "kind": "own"}}
    }
    file, out = tmp_path / "own.json", tmp_path / "atlas"
    file.write_text(json.dumps(own))
    code, _, _ = run("atlas", model, "grammar:103", "--patterns", file, *LITTLE, "-o", out)
    assert code == 0
    table = heads.read_table(out / "heads.nc")
    assert table["relation_count"].sel(relation="own the") > 23
    about = json.loads((out / "manifest.json").read_text())["about"]
    assert about["corpus"] == "grammar:103"
    assert about["patterns"] == own
    assert f"patterns={str(file)!r}" in about["call"]
    code, _, _ = run(
        "measure", model, "grammar:103", "-r", "relations", "--patterns", file, "-o", tmp_path / "heads.nc"
    )
    assert code == 0
    assert heads.read_table(tmp_path / "heads.nc").attrs["corpus_sha256"] == table.attrs["corpus_sha256"]


def test_an_atlas_of_plain_text_has_no_relations(run, model, tmp_path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("\n".join(["the old dog walked by the red house . " * 3] * 5))
    code, said, _ = run("atlas", model, text, *LITTLE, "-o", tmp_path / "atlas")
    assert code == 0
    assert "relation" not in said
    assert not (tmp_path / "atlas" / "untrained.nc").exists()
    assert "relation_accuracy" not in heads.read_table(tmp_path / "atlas" / "heads.nc")


def test_a_second_atlas_takes_the_place_of_the_first(run, model, made, tmp_path, draw_only) -> None:
    draw_only("entropies")
    out = shutil.copytree(made, tmp_path / "atlas")
    (out / "notes.txt").write_text("mine")
    (out / "figures").mkdir()
    (out / "figures" / "mine.png").write_text("mine too")
    code, _, _ = run("atlas", model, "grammar:59", *LITTLE, "--figures", "-o", out)
    assert code == 0
    assert heads.read_table(out / "heads.nc").attrs["corpus"] == "grammar:59"
    assert (out / "figures" / "entropies.png").exists()
    assert (out / "notes.txt").read_text() == "mine"
    assert (out / "figures" / "mine.png").read_text() == "mine too"
    text = tmp_path / "text.txt"
    text.write_text("\n".join(["the old dog walked by the red house . " * 3] * 5))
    assert run("atlas", model, text, "--permutations", 19, "-o", out)[0] == 0
    # What only the older atlas had would be taken for the new one's.
    assert {path.name for path in out.iterdir()} == {
        "heads.nc", "head-distances.nc", "examples.nc", "atlas.html", "manifest.json", "figures", "tables", "notes.txt",
    }  # fmt: skip
    assert {path.name for path in (out / "tables").iterdir()} == {"heads.csv", "distances.csv", "columns.csv"}
    assert (out / "figures" / "mine.png").exists()


def test_what_killed_runs_left_unfinished_is_removed(run, model, tmp_path) -> None:
    out = tmp_path / "atlas"
    left = out / ".manifest.json.new-abc" / "heads.nc"
    left.parent.mkdir(parents=True)
    for path in (
        left,
        out / "..untrained.partial.abcd_123.npz",
        out / ".mine.new-abc",
        tmp_path / "..heads.nc.partial.abcd_123.npz",
        tmp_path / ".heads.abcd_123.nc",
    ):
        path.write_text("half")
    assert run("atlas", model, "grammar:23", *LITTLE, "-o", out)[0] == 0
    assert [path.name for path in out.iterdir() if path.name.startswith(".")] == [".mine.new-abc"]
    assert run("measure", model, "grammar:23", "-r", "surface", "-o", tmp_path / "heads.nc")[0] == 0
    assert {path.name for path in tmp_path.iterdir()} == {"atlas", "heads.nc"}


def fill_disk(*arguments: object, **more: object) -> None:
    raise OSError(28, "No space left on device")


def test_a_failure_while_writing_leaves_the_old_atlas_whole(run, model, made, tmp_path, monkeypatch) -> None:
    out = shutil.copytree(made, tmp_path / "atlas")
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    monkeypatch.setattr("headscope.commands.atlas.run.write_atlas_page", fill_disk)
    code, _, complaint = run("atlas", model, "grammar:59", *LITTLE, "--figures", "-o", out)
    assert code == 2
    assert complaint.splitlines()[-1] == (
        f"headscope: the atlas could not be written to {out} (No space left on device); "
        "free some space or choose another folder, and add --resume to keep what was measured."
    )
    after = {path: path.read_bytes() for path in out.rglob("*") if path.is_file() and not path.name.startswith(".")}
    assert after == before


def test_a_failure_while_drawing_leaves_the_new_atlas_whole_and_its_sums(
    run, model, made, tmp_path, monkeypatch, draw_only
) -> None:
    draw_only("entropies")
    out = shutil.copytree(made, tmp_path / "atlas")
    with monkeypatch.context() as patch:
        patch.setattr("headscope.view.figures.save", fill_disk)
        code, said, complaint = run("atlas", model, "grammar:59", *LITTLE, "--figures", "-o", out)
    assert code == 2
    assert f"Open {out / 'atlas.html'}" in said.replace("\n", "")
    assert complaint.splitlines()[-1] == (
        f"headscope: the figures of the atlas could not be written to {out} (No space left on device); "
        "free some space or choose another folder, and add --resume to keep what was measured."
    )
    assert heads.read_table(out / "heads.nc").attrs["corpus"] == "grammar:59"
    assert "No figures are drawn yet." in (out / "atlas.html").read_text()
    assert list(out.glob(".*.partial.npz"))
    assert run("atlas", model, "grammar:59", *LITTLE, "--figures", "--resume", "-o", out)[0] == 0
    assert (out / "figures" / "entropies.svg").is_file()
    assert "No figures are drawn yet." not in (out / "atlas.html").read_text()
    listed = json.loads((out / "manifest.json").read_text())["sha256"]
    files = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    assert {*listed} == {name for name in files if not name.startswith(".")} - {"manifest.json"}


def test_a_run_that_was_killed_goes_on_and_ends_in_the_same_table(run, model, tmp_path) -> None:
    """A real process, really killed, between two savings."""
    command = ["measure", str(model), "grammar:211", "-r", "surface", "-r", "relations", "--batch-tokens", "499"]
    script = "import headscope.runner.local as r; r.SAVE_EVERY = 0.0; import headscope.cli; headscope.cli.main()"

    killed, whole = tmp_path / "killed.nc", tmp_path / "whole.nc"
    checkpoint = tmp_path / ".killed.nc.partial.npz"
    started = [sys.executable, "-c", script, *command, "-o", str(killed)]
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "env": os.environ | {"OMP_NUM_THREADS": "1"}}
    process = subprocess.Popen(started, **how)
    while not checkpoint.exists() and process.poll() is None:
        time.sleep(0.01)
    process.kill()
    process.communicate()
    assert checkpoint.exists()
    assert not killed.exists()
    assert run(*command, "-o", killed, "--resume")[0] == 0
    assert run(*command, "-o", whole)[0] == 0
    xr.testing.assert_identical(heads.read_table(killed).drop_attrs(), heads.read_table(whole).drop_attrs())
    assert not checkpoint.exists()
