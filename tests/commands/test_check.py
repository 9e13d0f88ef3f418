"""`headscope check`: planted models, what is measured again and how, exit codes, files, early refusals."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import torch
import xarray as xr

import headscope
import planted
import tiny
from headscope import HeadscopeError, heads
from headscope.analyse.check import KEPT, LOST
from headscope.analyse.report import UNDECIDED
from headscope.capture.model.model import Model
from headscope.commands.check import run as check_job
from headscope.commands.check.request import Check
from headscope.commands.recorded_request import restore_request
from headscope.errors import CorpusError


def write_treebank(path: Path, count: int = 307) -> Path:
    """The planted documents as a treebank; adverbs have no syntactic head."""
    lines = []
    for document in planted.documents(count):
        links = {link.source: (str(link.target + 1), link.label) for link in document.links}
        lines += [f"# newdoc id = {document.id}", f"# sent_id = {document.id}"]
        for place, word in enumerate(document.words):
            head, label = links.get(place, ("0", "root") if word in planted.KINDS["verb"] else ("_", "_"))
            lines.append(f"{place + 1}\t{word}\t_\t_\t_\t_\t{head}\t{label}\t_\t_")
        lines.append("")
    path.write_text("\n".join([*lines, ""]))
    return path


def save(model: Model, folder: Path) -> Path:
    model.module.save_pretrained(folder)
    model.tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A folder with a corpus, a planted model, what was measured of it, and models in which a head is another."""
    folder = tmp_path_factory.mktemp("made")
    corpus = write_treebank(folder / "planted.conllu")
    model = planted.plant(planted.RULES)
    save(model, folder / "old")
    headscope.measure(str(folder / "old"), corpus, ["relations"], permutations=199, out=folder / "heads.nc")
    save(planted.plant({place: rule for place, rule in planted.RULES.items() if place != (2, 3)}), folder / "without")
    with torch.no_grad():
        for module in model.module.modules():
            if isinstance(module, torch.nn.Linear):
                module.weight.mul_(1.01)
    save(model, folder / "close")
    return folder


def read_verdicts(checked: xr.Dataset) -> dict[str, str]:
    return dict(zip(checked["label"].values.tolist(), checked["verdict"].values.tolist(), strict=True))


def test_the_same_model_has_lost_nothing_and_no_number_changes(made) -> None:
    result = headscope.check(str(made / "old"), made / "heads.nc", tolerance=0.0)
    assert "obj" in read_verdicts(result.table)
    assert set(read_verdicts(result.table).values()) == {KEPT}
    assert (result.table["change"] == 0).all()
    assert (result.table["change_lower"] == 0).all()
    assert result.lost == result.undecided == result.files == ()
    assert "obj 2-3" in result.kept
    assert result.folder is None


def test_a_head_that_was_taken_out_is_lost_and_others_are_kept(run, made, tmp_path) -> None:
    out = tmp_path / "checked"
    code, said, complained = run("check", made / "without", "--against", made / "heads.nc", "--all", "-o", out)
    assert code == 3
    table = heads.read_table(made / "heads.nc")
    result = headscope.check(str(made / "without"), made / "heads.nc", every=True)
    assert result.lost
    for place in range(result.table.sizes["row"]):
        row = result.table.isel(row=place)
        is_planted = (int(row["layer"]), int(row["head"])) == (2, 3)
        assert row["verdict"] in ((LOST,) if is_planted else (KEPT, UNDECIDED))
        if not is_planted:
            assert row["change"] == 0
    assert "obj 2-3" in result.lost
    assert f"{len(result.lost)} lost" in said
    assert "without against old on planted.conllu" in said
    assert f"Wrote {out / 'check.json'} and check.csv." in said
    assert "measuring without" in complained
    assert {path.name for path in out.iterdir()} == {"check.json", "check.csv"}
    about = json.loads((out / "check.json").read_text())["about"]
    assert about["old_weights_sha256"] == table.attrs["weights_sha256"] != about["new_weights_sha256"]
    assert about["corpus_sha256"] == table.attrs["corpus_sha256"]
    assert (about["tolerance"], about["method"]) == (0.05, result.table.attrs["method"])
    frame = pd.read_csv(out / "check.csv")
    assert [row["verdict"] for row in about["heads"]] == frame["verdict"].tolist()
    assert frame["change"].tolist() == pytest.approx(result.table["change"].values.tolist(), rel=1e-5)
    assert frame["name"].tolist() == [row["name"] for row in about["heads"]]


def test_what_changes_little_is_kept_and_what_items_do_not_show_is_a_warning(run, made) -> None:
    code, said, complained = run("check", made / "close", "--against", made / "heads.nc")
    assert (code, "cannot be decided" in complained) == (0, False)
    assert "0 lost (tolerance 0.05)." in said
    command = ("check", made / "close", "--against", made / "heads.nc", "--tolerance", "0.001")
    code, said, complained = run(*command)
    count = int(said.split(" heads kept")[0].split()[-1])
    assert code == 0
    assert complained.splitlines()[-1] == f"headscope: {count} heads cannot be decided; more texts decide more."
    assert run(*command, "--strict")[0] == 4
    assert run("check", made / "close", "--against", made / "heads.nc", "--strict")[0] == 0


def test_a_table_or_an_atlas_is_taken_as_it_is(run, made, tmp_path, monkeypatch) -> None:
    headscope.measure(str(made / "without"), made / "planted.conllu", ["relations"], permutations=0,
                      out=tmp_path / "new" / "heads.nc")  # fmt: skip
    monkeypatch.setattr(Check, "load_model", None)
    for new in (tmp_path / "new", tmp_path / "new" / "heads.nc"):
        assert run("check", new, "--against", made / "heads.nc")[0] == 3
    checked = headscope.check(heads.read_table(tmp_path / "new" / "heads.nc"), heads.read_table(made / "heads.nc"))
    monkeypatch.undo()
    xr.testing.assert_equal(checked.table, headscope.check(str(made / "without"), made / "heads.nc").table)


@pytest.mark.full
def test_an_atlas_is_checked_against(run, made, tmp_path) -> None:
    headscope.atlas(str(made / "old"), made / "planted.conllu", tmp_path / "atlas", permutations=199,
                    examples=0, map_documents=0)  # fmt: skip
    assert run("check", made / "old", "--against", tmp_path / "atlas")[0] == 0
    assert run("check", made / "without", "--against", tmp_path / "atlas")[0] == 3


@pytest.mark.full
@pytest.mark.parametrize("part", [{"limit": 211}, {"sample": 211, "seed": 5}, {"limit": 211, "hops": 2}])
def test_the_part_of_the_corpus_and_the_lengths_are_those_of_the_old_table(made, tmp_path, part: dict) -> None:
    file = tmp_path / "part.nc"
    old = headscope.measure(str(made / "old"), made / "planted.conllu", ["relations"], permutations=0, max_tokens=13,
                            view="norm", out=file, **part)  # fmt: skip
    assert old.attrs["documents"] < 211
    result = headscope.check(str(made / "old"), file, every=True)
    assert (result.table["change"] == 0).all()


def test_documents_in_memory_are_given_again(made, tmp_path) -> None:
    documents = planted.documents(211)
    model = str(made / "old")
    table = headscope.measure(model, documents, ["relations"], permutations=199)
    assert (headscope.check(model, table, corpus=documents).table["change"] == 0).all()
    with pytest.raises(CorpusError) as caught:
        headscope.check(model, table)
    assert str(caught.value) == (
        "the old table was measured on documents in memory; give the same documents as `corpus`, in Python."
    )


def test_a_corpus_of_which_a_part_was_taken_is_taken_as_it_is(made) -> None:
    corpus = headscope.read(made / "planted.conllu", limit=211)
    table = headscope.measure(str(made / "old"), corpus, ["relations"], permutations=0)
    assert (headscope.check(str(made / "old"), table, corpus=corpus, every=True).table["change"] == 0).all()


def test_the_only_file_of_a_folder_is_found_whatever_the_folder_is_called(made, tmp_path) -> None:
    folder = tmp_path / "planted-1.0"
    folder.mkdir()
    (folder / "planted.conllu").write_bytes((made / "planted.conllu").read_bytes())
    table = headscope.measure(str(made / "old"), folder, ["relations"], permutations=0)
    for corpus in (None, folder / "planted.conllu"):
        assert (headscope.check(str(made / "old"), table, corpus=corpus, every=True).table["change"] == 0).all()


def test_code_that_a_table_names_is_not_run_unasked(made, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "theirs.py").write_text("raise SystemExit('this was run')")
    old = heads.read_table(made / "heads.nc")
    heads.write_table(old.assign_attrs(call="atlas(reducers=['theirs:Theirs'])"), tmp_path / "heads.nc")
    with pytest.raises(HeadscopeError) as caught:
        headscope.check(str(made / "old"), tmp_path / "heads.nc")
    assert str(caught.value) == (
        f"{tmp_path / 'heads.nc'} was measured with the reducer 'theirs:Theirs' of your own, and code that a table "
        "names is not run unasked; give `reducers` theirs:Theirs."
    )


def test_a_loss_is_that_of_the_task_head_of_the_old_table(made, tmp_path, monkeypatch) -> None:
    tasks = []

    def stop(*arguments: object, task: str | None, **more: object) -> None:
        tasks.append(task)
        raise HeadscopeError("stopped")

    monkeypatch.setattr(Check, "load_model", stop)
    old = heads.read_table(made / "heads.nc")
    for about in ({"loss": "masked-lm"}, {"loss": "masked-lm", "view": "gradient"}):
        with pytest.raises(HeadscopeError, match=r"^stopped$"):
            headscope.check(str(made / "old"), old.assign_attrs(about))
    assert tasks == [None, "masked-lm"]


@pytest.mark.full
def test_a_corpus_elsewhere_is_named(run, made, tmp_path) -> None:
    gone, moved, table = (tmp_path / name for name in ("gone/planted.conllu", "planted.conllu", "heads.nc"))
    heads.write_table(heads.read_table(made / "heads.nc").assign_attrs(corpus=str(gone)), table)
    moved.write_bytes((made / "planted.conllu").read_bytes())
    code, _, complained = run("check", made / "old", "--against", table)
    assert code == 2
    assert complained.splitlines()[-1] == (
        f"headscope: the corpus {str(gone)!r}, on which {table} was measured, is not there; name its place as --corpus."
    )
    assert run("check", made / "old", "--against", table, "--corpus", moved)[0] == 0
    renamed = moved.rename(tmp_path / "renamed.conllu")
    code, _, complained = run("check", made / "old", "--against", table, "--corpus", renamed)
    assert code == 2
    assert complained.splitlines()[-1] == (
        f"headscope: the corpus {str(renamed)!r} was called planted.conllu when {table} was measured, and texts are "
        "assigned to folds by the names of their files; give it that name again."
    )


def test_other_texts_are_refused_before_the_model_is_loaded(run, made, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(Check, "load_model", None)
    other = write_treebank(tmp_path / "planted.conllu", 211)
    digest, recorded = (headscope.read(path).sha256[:12] for path in (other, made / "planted.conllu"))
    code, _, complained = run("check", made / "old", "--against", made / "heads.nc", "--corpus", other)
    assert code == 2
    assert complained.splitlines()[-1] == (
        f"headscope: the corpus {str(other)!r} has other contents than the one on which {made / 'heads.nc'} was "
        f"measured (SHA-256 {digest} and not {recorded}); give the same texts as --corpus, or measure the atlas "
        "again."
    )


@pytest.mark.full
def test_a_model_of_another_shape_or_tokenizer_is_refused_before_it_is_measured(made, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(check_job, "measure", None)
    with pytest.raises(HeadscopeError) as caught:
        headscope.check(str(tiny.save(tmp_path / "tiny")), made / "heads.nc")
    assert str(caught.value) == (
        f"{str(tmp_path / 'tiny')!r} has 2 layers and 5 heads, and {made / 'heads.nc'} 3 layers and 5 heads; heads can "
        "be checked in models of one architecture only."
    )
    old = heads.read_table(made / "heads.nc")
    heads.write_table(old.assign_attrs(tokens=old.attrs["tokens"] + 7), tmp_path / "heads.nc")
    with pytest.raises(HeadscopeError) as caught:
        headscope.check(str(made / "old"), tmp_path / "heads.nc")
    tokens = int(old.attrs["tokens"])
    assert str(caught.value) == (
        f"{str(made / 'old')!r} reads the corpus as {tokens:,} tokens, and the model of {tmp_path / 'heads.nc'} as "
        f"{tokens + 7:,}; give a model with the same tokenizer."
    )


def test_a_score_of_a_reducer_that_is_not_known_is_named(made, tmp_path) -> None:
    old = heads.read_table(made / "heads.nc")
    renamed = old.rename(relation_accuracy="own_accuracy").assign_attrs(
        scores=old.attrs["scores"].replace("relation_accuracy", "own_accuracy").replace(
            '"variable": "own_accuracy"', '"variable": "own_accuracy", "prefix": ""')
    )  # fmt: skip
    heads.write_table(renamed, tmp_path / "heads.nc")
    with pytest.raises(HeadscopeError) as caught:
        headscope.check(str(made / "old"), tmp_path / "heads.nc")
    assert str(caught.value) == (
        f"no built-in reducer has the score own_accuracy of {tmp_path / 'heads.nc'}; name your own as `reducers`, "
        "such as repetition:Repetition."
    )


REFUSALS = {
    "no atlas": (("{made}/old", "--against", "{made}/old"), "{made}/old is neither the folder of an atlas nor a head "
                 "table (.nc); give what `headscope atlas` or `headscope measure` wrote."),
    "no table": (("{made}/old", "--against", "{tmp}/no.nc"), "there is no file {tmp}/no.nc; a head table is written by "
                 "`headscope atlas`, `headscope measure` or `headscope merge`."),
    "a tolerance of all": (("{made}/old", "--against", "{made}/heads.nc", "--tolerance", "1"), "--tolerance is 1; "
                           "give the loss of a score that counts as none, from 0 to below 1, such as 0.05."),
    "no model": (("{tmp}/none", "--against", "{made}/heads.nc"), "there is no folder '{tmp}/none'; give a hub id, a "
                 "folder with config.json, weights and tokenizer, a .gguf file, `minilm` or `smollm2`."),
    "a file as folder": (("{made}/old", "--against", "{made}/heads.nc", "-o", "{made}/heads.nc"), "{made}/heads.nc is "
                         "a file; name a folder for the check, or a place where one can be made."),
    "no --against": (("{made}/old",), "give one of --against, an atlas, and --heads, a list of heads."),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSALS)
def test_bad_input_is_one_sentence_and_code_2(run, made, tmp_path, case: str) -> None:
    command, sentence = REFUSALS[case]
    places = {"made": made, "tmp": tmp_path}
    code, said, complained = run("check", *(part.format(**places) for part in command))
    assert (code, said) == (2, "")
    assert complained == f"headscope: {sentence.format(**places)}\n"
    assert not [*tmp_path.iterdir()]


def test_what_is_wrong_is_said_before_torch_is_loaded(made) -> None:
    script = (
        "import sys, headscope.commands.export.run\n"
        "from headscope.commands.check.request import Check\n"
        f"Check(new={str(made / 'old')!r}, against={str(made / 'heads.nc')!r}).check(lambda *step: None)\n"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("False\n", 0), done.stderr


def test_the_request_that_a_table_records_gives_it_again(made) -> None:
    texts = planted.documents(211)
    table = headscope.measure(str(made / "old"), texts, ["relations"], permutations=199)
    first = headscope.check(str(made / "without"), table, corpus=texts, tolerance=0.03, every=True).table
    again = restore_request(Check, first.attrs["request"], against=table, corpus=texts).run().table
    for each in (first, again):
        del each.attrs["created"]
    xr.testing.assert_identical(first, again)


def test_the_python_of_the_page_runs(made, tmp_path, monkeypatch) -> None:
    """That of docs/howto/check.md, on the planted model."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ewt.nc").write_bytes((made / "heads.nc").read_bytes())
    page = (Path(__file__).parents[2] / "docs" / "howto" / "check.md").read_text(encoding="utf-8")
    names: dict = {}
    for block in re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL):
        exec(block.replace('"minilm"', repr(str(made / "old"))), names)
    assert set(read_verdicts(names["result"].table).values()) <= {KEPT, LOST, UNDECIDED}
    assert names["result"].table.sizes["row"] == len(names["heads"].keys)
    assert (tmp_path / "heads.json").exists()
