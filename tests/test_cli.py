"""The commands as a user types them: what they write, what they say, and how they refuse."""

import json
import re
from pathlib import Path

import pytest

import tiny
from headscope import heads
from headscope.capture.forward import interface
from headscope.corpora import FORMATS
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

LITTLE = ("--permutations", 0, "--map-documents", 0, "--examples", 0)


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    """A tiny model on disk."""
    return tiny.save(tmp_path_factory.mktemp("model"))


def test_measure_writes_a_head_table_and_says_what_it_found(run, model, tmp_path) -> None:
    out = tmp_path / "made" / "heads.nc"
    measuring = ("measure", model, "grammar:211", "-r", "surface", "-r", "relations", "--skip", "--table", "-o", out)
    code, said, _ = run(*measuring)
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
        "measure", model, "grammar:23", "-r", "surface:offsets=-2|5,words.no=not|n't,words.the=the", "-o", out,
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
    code, said, _ = run("measure", model, "grammar:211", "-r", "scope", "--skip", "--table", "-o", out)
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
    "a setting of a reducer that has none": (
        ("measure", "{model}", "grammar:7", "-r", "relations:offsets=2", "-o", "{tmp}/heads.nc"),
        "the reducer `relations` has no settings; leave out ':offsets=2'.",
    ),
    "a class without words": (
        ("measure", "{model}", "grammar:7", "-r", "surface:words.no=", "-o", "{tmp}/heads.nc"),
        "the reducer `surface` cannot have '' for words.no; give words with | between them, as in "
        "'surface:words.no=not|never'.",
    ),
    "an offset named twice": (
        ("measure", "{model}", "grammar:7", "-r", "surface:offsets=2|2", "-o", "{tmp}/heads.nc"),
        "the offset 2 is named twice; name each once.",
    ),
    "a label that is a row": (
        ("measure", "{model}", "{tmp}/labels.conllu", "-r", "relations", "-o", "{tmp}/heads.nc"),
        "the corpus has links labelled 'all', which is the name of a row that pools others; "
        "call the label something else.",
    ),
    "an unknown list": (
        ("list", "colours"),
        "KIND is 'colours'; give reducers, corpora, studies or tasks.",
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
