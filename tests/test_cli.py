"""The commands as a user types them: what they write, what they say, and how they refuse."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
import xarray as xr

import headscope
import tiny
from headscope import heads
from headscope.capture import interface
from headscope.corpora import FORMATS
from headscope.jobs import atlas as atlas_job
from headscope.reducers import REDUCERS
from headscope.studies import STUDIES

TREEBANK = """\
# newdoc id = one
# sent_id = s1
1\tthe\t_\tDET\t_\t_\t2\tdet\t_\t_
2\tdog\t_\tNOUN\t_\t_\t3\tnsubj\t_\t_
3\twalked\t_\tVERB\t_\t_\t0\troot\t_\t_
4\t.\t_\tPUNCT\t_\t_\t3\tpunct\t_\t_

"""

LITTLE = ("--permutations", 0, "--map-documents", 0, "--examples", 0, "--figures", "none")


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    """A tiny model on disk."""
    return tiny.save(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module", autouse=True)
def _few_figures() -> Iterator[None]:
    """One heatmap shows as well as twelve that they are drawn."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headscope.view.figures.atlas.FREQUENT", 3)
        yield


@pytest.fixture(scope="module")
def made(_few_figures, model, tmp_path_factory) -> Path:
    """An atlas, to be copied."""
    out = tmp_path_factory.mktemp("made") / "atlas"
    headscope.atlas(str(model), "grammar:101", out, permutations=0, progress=False)
    return out


def test_measure_writes_a_head_table_and_says_what_it_found(run, model, tmp_path) -> None:
    out = tmp_path / "made" / "heads.nc"
    code, said, _ = run("measure", model, "grammar:211", "-r", "surface", "-r", "relations", "--skip", "-o", out)
    assert code == 0
    table = heads.read_table(out)
    assert dict(table.sizes) | {"layer": 2, "head": 5} == dict(table.sizes)
    # The tiny vocabulary spells most words out, so some sentences are too long for the tiny model.
    (reason, skipped), *others = json.loads(table.attrs["skipped"]).items()
    assert (reason, others) == ("documents longer than 128 tokens", [])
    assert 0 < skipped == 211 - table.attrs["documents"]
    assert f"Skipped: {skipped} documents longer than 128 tokens" in said
    assert table.attrs["corpus"] == "grammar:211"
    assert f"{Path(model).name} on grammar:211" in said
    assert f"2 layers of 5 heads; {211 - skipped} documents" in said
    assert "Each head was chosen on one half of the documents" in said
    assert list(out.parent.iterdir()) == [out]


def test_measure_takes_further_offsets_and_classes(run, model, tmp_path) -> None:
    out = tmp_path / "heads.nc"
    code, _, _ = run(
        "measure", model, "grammar:23", "-r", "surface", "--offset", "-2", "--offset", "5", "--class", "no=not,n't",
        "--class", "the=the", "-o", out,
    )  # fmt: skip
    assert code == 0
    table = heads.read_table(out)
    assert table["token_offset"].values.tolist() == [-2, 5]
    assert table["class"].values.tolist() == ["no", "the"]
    assert bool((table["mass_class"].sel({"class": "the"}) > 0).all())
    assert 0 < table["class_share"].sel({"class": "the"}).item() < 0.5


def test_explain_says_how_each_layer_was_measured(run, model, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(interface, "FUSED_FROM", 60)
    out = tmp_path / "heads.nc"
    code, said, _ = run("measure", model, "grammar:53", "-r", "surface", "--skip", "--explain", "-o", out)
    assert code == 0
    texts = heads.read_table(out).attrs["documents"]
    found = re.findall(r"^1-2 +(\d+) +(with.*?) *$", said, re.MULTILINE)
    assert {way for _, way in found} == {
        "without the matrix: all keys",
        "with the matrix: fewer than 60 keys, for which it is faster",
    }
    assert sum(int(count) for count, _ in found) == texts
    _, said, _ = run(
        "measure", model, "grammar:53", "-r", "surface", "-r", "relations", "--skip", "--explain", "-o", out
    )
    assert re.search(rf"^1-2 +{texts} +with the matrix: a reducer needs it *$", said, re.MULTILINE)


def test_measure_of_scope_says_what_attention_to_the_cue_depends_on(run, model, tmp_path) -> None:
    out = tmp_path / "heads.nc"
    code, said, _ = run("measure", model, "grammar:211", "-r", "scope", "--skip", "-o", out)
    assert code == 0
    table = heads.read_table(out)
    best = table.isel(table["scope_f1"].argmax(...))
    label, distance = (best[f"scope_{term}_coefficient"].item() for term in ("label", "distance"))
    more = (table["scope_label_coefficient"] > 0) & (table["scope_label_q"] < 0.05)
    head = heads.head_name(best["layer"].item(), best["head"].item())
    assert (
        f"in {head} (the head with the best F1): {label:+.3f} if in the scope, {distance:+.4f} for each word of "
        f"distance; R² {best['scope_r_squared'].item():.2f}. "
        f"In {more.sum().item()} of 10 heads it is larger in the scope"
    ) in " ".join(said.split())


def test_atlas_writes_everything(run, model, tmp_path) -> None:
    out = tmp_path / "atlas"
    code, said, _ = run("atlas", model, "grammar:307", "-o", out)
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
    figures = ("special-tokens", "offsets", "entropies", "distances", "relation-all", "relation-lengths", "scope")
    for name in (*figures, "antecedent", "token-class", "head-map", "head-tree"):
        assert (out / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (out / "figures" / f"{name}.svg").read_text()
    assert not list((out / "figures").glob("*.pdf"))
    manifest = json.loads((out / "manifest.json").read_text())
    about = manifest["about"]
    assert about["documents"] == 307
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
    code, said, _ = run("atlas", model, text, "-o", tmp_path / "atlas")
    assert code == 0
    assert "relation" not in said
    assert not (tmp_path / "atlas" / "untrained.nc").exists()
    assert "relation_accuracy" not in heads.read_table(tmp_path / "atlas" / "heads.nc")


def test_a_second_atlas_takes_the_place_of_the_first(run, model, made, tmp_path) -> None:
    out = shutil.copytree(made, tmp_path / "atlas")
    (out / "notes.txt").write_text("mine")
    (out / "figures" / "mine.png").write_text("mine too")
    code, _, _ = run("atlas", model, "grammar:103", "--permutations", 0, "-o", out)
    assert code == 0
    assert heads.read_table(out / "heads.nc").attrs["corpus"] == "grammar:103"
    assert (out / "notes.txt").read_text() == "mine"
    assert (out / "figures" / "mine.png").read_text() == "mine too"
    text = tmp_path / "text.txt"
    text.write_text("\n".join(["the old dog walked by the red house . " * 3] * 5))
    assert run("atlas", model, text, "-o", out)[0] == 0
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
    assert run("atlas", model, "grammar:101", *LITTLE, "-o", out)[0] == 0
    assert [path.name for path in out.iterdir() if path.name.startswith(".")] == [".mine.new-abc"]
    assert run("measure", model, "grammar:23", "-r", "surface", "-o", tmp_path / "heads.nc")[0] == 0
    assert {path.name for path in tmp_path.iterdir()} == {"atlas", "heads.nc"}


@pytest.mark.parametrize("stage", ["save", "write_page"])
def test_a_failure_while_writing_leaves_the_old_atlas_whole(run, model, made, tmp_path, monkeypatch, stage) -> None:
    out = shutil.copytree(made, tmp_path / "atlas")
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}

    def full(*arguments: object, **more: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atlas_job, stage, full)
    code, _, complaint = run("atlas", model, "grammar:103", "--permutations", 0, "-o", out)
    assert code == 2
    assert complaint.splitlines()[-1] == (
        f"headscope: the atlas could not be written to {out} (No space left on device); "
        "free some space or choose another folder, and add --resume to keep what was measured."
    )
    after = {path: path.read_bytes() for path in out.rglob("*") if path.is_file() and not path.name.startswith(".")}
    assert after == before


REFUSALS = {
    "no model": (
        ("measure", "nowhere/nothing", "grammar:7", "-r", "surface"),
        r"no model could be loaded from 'nowhere/nothing' (",
    ),
    "no corpus": (
        ("measure", "{model}", "{tmp}/nothing.conllu", "-r", "surface"),
        "the corpus '{tmp}/nothing.conllu' does not exist; "
        "give a file, a folder, or 'grammar' for generated sentences.",
    ),
    "no such reducer": (
        ("measure", "{model}", "grammar:7", "-r", "gaze"),
        f"there is no reducer 'gaze'; there are {', '.join(REDUCERS)}, and your own as module:Reducer.",
    ),
    "no annotation": (
        ("measure", "{model}", "{tmp}/text.txt", "-r", "relations"),
        "the reducer `relations` needs links between words, and the corpus has none; "
        "give a treebank (CoNLL-U), or measure `surface` only.",
    ),
    "an empty file": (
        ("atlas", "{model}", "{tmp}/empty.conllu", "-o", "{tmp}/atlas"),
        None,
    ),
    "a malformed line": (
        ("atlas", "{model}", "{tmp}/malformed.conllu", "-o", "{tmp}/atlas"),
        "{tmp}/malformed.conllu:5",
    ),
    "an empty folder": (
        ("atlas", "{model}", "{tmp}/folder", "-o", "{tmp}/atlas"),
        "the folder '{tmp}/folder' has no file in a format that headscope knows among its 0; "
        f"give a folder with files in one of {', '.join(FORMATS)}, "
        "or one file and the name of its format.",
    ),
    "a file where the folder should be": (
        ("atlas", "{model}", "grammar:7", "-o", "{tmp}/text.txt"),
        "{tmp}/text.txt is a file; name a folder for the atlas, or a place where one can be made.",
    ),
    "a folder where the file should be": (
        ("measure", "{model}", "grammar:7", "-r", "surface", "-o", "{tmp}/folder"),
        "{tmp}/folder is a folder; name a file to be written in it.",
    ),
    "a file where a folder should be": (
        ("measure", "{model}", "grammar:7", "-r", "surface", "-o", "{tmp}/text.txt/heads.nc"),
        "{tmp}/text.txt/heads.nc cannot be written, because {tmp}/text.txt does not allow it; choose another place.",
    ),
    "a reducer named twice": (
        ("measure", "{model}", "grammar:7", "-r", "surface", "-r", "surface", "-o", "{tmp}/heads.nc"),
        "of the reducers surface, surface one is named twice; name each once.",
    ),
    "an offset without the reducer": (
        ("measure", "{model}", "grammar:7", "-r", "relations", "--offset", "2", "-o", "{tmp}/heads.nc"),
        "--offset and --class ask more of the reducer `surface`; add -r surface.",
    ),
    "a class without words": (
        ("measure", "{model}", "grammar:7", "-r", "surface", "--class", "no=,", "-o", "{tmp}/heads.nc"),
        "--class no=, names no words; write NAME=WORD,WORD, such as no=not,n't,never.",
    ),
    "an offset named twice": (
        ("measure", "{model}", "grammar:7", "-r", "surface", "--offset", "2", "--offset", "2", "-o", "{tmp}/heads.nc"),
        "the offset 2 is named twice; name each once.",
    ),
    "a label that is a row": (
        ("measure", "{model}", "{tmp}/labels.conllu", "-r", "relations", "-o", "{tmp}/heads.nc"),
        "the corpus has links labelled 'all', which is the name of a row that pools others; "
        "call the label something else.",
    ),
    "an unknown list": (
        ("list", "colours"),
        "there is no list of 'colours'; there are reducers, corpora, studies and tasks.",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_bad_input_is_one_sentence_and_code_2(run, model, tmp_path, case) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty.conllu").write_text("")
    (tmp_path / "malformed.conllu").write_text(TREEBANK.replace("3\twalked", "3 walked"))
    (tmp_path / "text.txt").write_text("\n".join(["the old dog walked by the red house . " * 3] * 3))
    (tmp_path / "labels.conllu").write_text(TREEBANK.replace("nsubj", "all"))
    places = {"model": model, "tmp": tmp_path}
    command, sentence = REFUSALS[case]
    before = sorted(tmp_path.rglob("*"))
    code, _, complaint = run(*(str(part).format(**places) for part in command))
    last = complaint.splitlines()[-1]
    assert code == 2
    assert last.startswith("headscope: ")
    assert "Traceback" not in complaint
    if sentence is not None:
        assert last.startswith(f"headscope: {sentence.format(**places)}")
    assert sorted(tmp_path.rglob("*")) == before


def test_names_are_printed_as_they_are(run, model, tmp_path) -> None:
    (tmp_path / "[red]").mkdir()
    corpus = tmp_path / "[red]" / "a[b].conllu"
    corpus.write_text(TREEBANK.replace("nsubj", "[bold]"))
    code, said, _ = run("measure", model, corpus, "-r", "relations", "-o", tmp_path / "[red]" / "heads.nc")
    assert code == 0
    assert "on a[b].conllu\n" in said
    assert f"Wrote {tmp_path / '[red]' / 'heads.nc'}." in said


@pytest.mark.parametrize("command", ["atlas", "tune", "measure", "compare", "study", "list"])
def test_help_of_each_command_has_an_example(run, command) -> None:
    code, said, _ = run(command, "--help")
    assert code == 0
    assert f"\nExamples\n  headscope {command}" in said


def test_the_lists_name_what_there_is(run) -> None:
    for what, names in (("corpora", [*FORMATS, "grammar"]), ("reducers", REDUCERS), ("studies", STUDIES)):
        code, said, _ = run("list", what)
        assert code == 0
        assert all(name in said for name in names)


def test_a_run_that_was_killed_goes_on_and_ends_in_the_same_table(run, model, tmp_path) -> None:
    """A real process, really killed, between two savings."""
    command = ["measure", str(model), "grammar:503", "-r", "surface", "-r", "relations", "--batch-tokens", "499"]
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
    resumed = subprocess.run([*started, "--resume"], **how)
    assert resumed.returncode == 0, resumed.stdout.decode()
    assert run(*command, "-o", whole)[0] == 0
    xr.testing.assert_identical(heads.read_table(killed).drop_attrs(), heads.read_table(whole).drop_attrs())
    assert not checkpoint.exists()
