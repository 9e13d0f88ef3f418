"""`headscope measure --shard` and `headscope merge`: from one corpus to files of sums, and to one table."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import headscope
import tiny
from headscope.commands.merge.request import Merge
from headscope.commands.recorded_request import read_request, restore_request
from headscope.corpora import Shard, read
from headscope.runner import ShardSums

CORPUS = "grammar:29"


def assert_same(joined: xr.Dataset, whole: xr.Dataset, *, rounding: float = 1e-9) -> None:
    """The same variables, coordinates and attributes; numbers but for rounding."""
    assert set(joined.data_vars) == set(whole.data_vars)
    for name, values in whole.data_vars.items():
        if values.dtype.kind == "f":
            np.testing.assert_allclose(joined[name], values, rtol=rounding, atol=rounding, err_msg=str(name))
        else:
            xr.testing.assert_equal(joined[name], values)
    attributes = dict(joined.attrs)
    assert attributes.pop("shards") > 1
    requests = [read_request(each.attrs["request"])["command"] for each in (joined, whole)]
    assert requests == ["merge", "measure"]
    differing = {"created": "", "request": ""}
    assert attributes | differing == whole.attrs | differing


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.save(tmp_path_factory.mktemp("model"))


def test_shards_of_a_corpus_are_measured_and_joined(run, model: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    chosen = ("-r", "surface:offsets=-3,words.no=not|never", "-r", "relations", "--permutations", 19)
    for number in (1, 2, 3):
        code, printed, complaint = run("measure", model, CORPUS, *chosen, "--shard", f"{number}/3")
        assert code == 0, complaint
        assert complaint.endswith(f"\nmeasuring shard {number}/3 with {model.name} ...\n")
        assert printed.startswith(f"Shard {number}/3: ")
        assert f"Wrote heads.{number}-of-3.npz. When all 3 are written, join them with `headscope merge`." in printed
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"heads.{number}-of-3.npz" for number in (1, 2, 3)]
    files = [f"heads.{number}-of-3.npz" for number in (3, 1, 2)]
    code, joined, complaint = run("merge", *files, "-o", "joined.nc")
    assert code == 0, complaint
    code, whole, _ = run("measure", model, CORPUS, *chosen, "-o", "whole.nc")
    assert code == 0
    assert joined.replace("joined.nc", "") == whole.replace("whole.nc", "")
    # Batches of other texts round otherwise, in float32.
    assert_same(headscope.read_table("joined.nc"), headscope.read_table("whole.nc"), rounding=2e-6)


def test_each_document_is_read_once(model: Path, tmp_path: Path) -> None:
    corpus = read(CORPUS)
    counts = [
        headscope.measure_shard(model, corpus, "surface", f"{number}/4", out=tmp_path / str(number)).counts
        for number in range(1, 5)
    ]
    whole = headscope.measure(model, corpus, "surface")
    for name in ("documents", "words", "tokens"):
        assert sum(each[name] for each in counts) == whole.attrs[name]
    table = headscope.merge([tmp_path / str(number) for number in range(1, 5)], out=tmp_path / "heads.nc")
    read_again = headscope.read_table(tmp_path / "heads.nc")
    assert read_again.attrs == table.attrs
    again = restore_request(Merge, table.attrs["request"]).run()
    xr.testing.assert_identical(again.assign_attrs(created=""), table.assign_attrs(created=""))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--shard", "3/2"), "there is no shard 3 of 2; shards are counted from 1: name one as K/N, such as 1/2."),
        (("--shard", "half"), "the shard 'half' is not understood; name one as K/N, such as 2/8 for the second of "
                              "eight."),
        (("--shard", "1/2", "--replicate", "grammar:7"),
         "--replicate needs the whole corpus, and a shard is a part of it; leave out --replicate or --shard."),
        (("--shard", "1/2", "--explain"),
         "--explain needs the whole corpus, and a shard is a part of it; leave out --explain or --shard."),
        (("--shard", "30/30"), "a corpus of 29 documents cannot be divided into 30 shards; ask for at most as many "
                               "shards as documents."),
    ],
)  # fmt: skip
def test_shards_that_cannot_be_measured_are_refused(run, model: Path, tmp_path: Path, arguments, sentence) -> None:
    code, _, complaint = run("measure", model, CORPUS, "-r", "surface", *arguments, "-o", tmp_path / "shard")
    assert (code, complaint.splitlines()[-1]) == (2, f"headscope: {sentence}")
    assert "loading the model" not in complaint
    assert not (tmp_path / "shard").exists()


def test_files_that_cannot_be_joined_are_refused(run, model: Path, tmp_path: Path) -> None:
    first = tmp_path / "first.npz"
    headscope.measure_shard(model, CORPUS, "surface", Shard(1, 2), out=first)
    code, _, complaint = run("merge", first, "-o", tmp_path / "heads.nc")
    assert code == 2
    assert complaint.endswith(
        "\nheadscope: of the 2 shards 1 is missing (2/2); measure it, or give the files as well.\n"
    )
    content = first.read_bytes()
    code, _, complaint = run("merge", first, "-o", first)
    sentence = f"headscope: {first} is one of the shards and would be overwritten; name another file as --out.\n"
    assert code == 2
    assert complaint.endswith(sentence)
    assert first.read_bytes() == content
    code, _, complaint = run("merge", first, tmp_path / "second.npz")
    assert code == 2
    assert str(tmp_path / "second.npz") in complaint
    assert not (tmp_path / "heads.nc").exists()


def test_one_shard_is_a_whole_corpus(model: Path, tmp_path: Path) -> None:
    headscope.measure_shard(model, CORPUS, "surface", "1/1", out=tmp_path / "only.npz")
    table = headscope.merge(tmp_path / "only.npz")
    assert table.attrs["documents"] == headscope.measure(model, CORPUS, "surface").attrs["documents"]


@pytest.mark.full
def test_a_killed_shard_leaves_what_resume_needs(model: Path, tmp_path: Path) -> None:
    script = (
        "import os, sys, headscope, headscope.runner.local as local; local.SAVE_EVERY = 0.0\n"
        "def stop(step, done, total):\n"
        "    if done > 40: os.kill(os.getpid(), 9)\n"
        "headscope.measure_shard(sys.argv[1], 'grammar:29', 'surface', '1/2', out=sys.argv[2], batch_tokens=20,\n"
        "    progress=stop)"
    )
    first, again, left = tmp_path / "first.npz", tmp_path / "again.npz", tmp_path / ".first.npz.partial.npz"
    one_thread = os.environ | {"OMP_NUM_THREADS": "1"}  # as here, so that sums are rounded alike
    killed = subprocess.run([sys.executable, "-c", script, model, first], check=False, env=one_thread)
    assert killed.returncode == -9
    assert left.exists()
    for out, resume in ((first, True), (again, False)):
        headscope.measure_shard(
            model, "grammar:29", "surface", "1/2", out=out, batch_tokens=20, progress=False, resume=resume
        )
        assert not left.exists()
    assert first.read_bytes() == again.read_bytes()


@pytest.mark.full
@pytest.mark.data
def test_a_real_treebank_in_shards_is_the_treebank(data: Path, tmp_path: Path) -> None:
    """MiniLM on EWT's development set: also with texts of very different lengths, shards have as many tokens."""
    corpus = data / "ud" / "UD_English-EWT" / "en_ewt-ud-dev.conllu"
    paths = [tmp_path / f"{number}.npz" for number in range(1, 5)]
    for number, path in enumerate(paths, start=1):
        headscope.measure_shard("minilm", corpus, ["relations", "surface"], Shard(number, 4), permutations=0, out=path)
    tokens = [ShardSums.read(path).counts["tokens"] for path in paths]
    assert max(tokens) < 1.02 * min(tokens)
    whole = headscope.measure("minilm", corpus, ["relations", "surface"], permutations=0)
    joined = headscope.merge(paths)
    assert_same(joined, whole, rounding=2e-6)
