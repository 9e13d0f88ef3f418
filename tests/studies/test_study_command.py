"""A study as a user runs it: what it writes, what it says, and how it refuses."""

import copy
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import xarray as xr
from transformers import AutoModel, AutoTokenizer, BertForMaskedLM

import headed
import tiny
from headscope import HeadscopeError, heads, load, study
from headscope.commands.study.study_result import StudyResult
from headscope.corpora import read
from headscope.errors import TableError
from headscope.runner.local import measure
from headscope.studies import STUDIES, judge
from headscope.studies.locate import locate, select_documents
from headscope.view import figures
from probe_tables import make_probes

pytestmark = pytest.mark.full

FIGURES = {
    "clark2019": {"figure-2", "figure-4", "figure-6"},  # and figure 3 with the head of a masked language model
    "zhao2020": {"figure-2", "figure-A1-precision", "figure-A1-recall"},
    "kovaleva2019": {"figure-3", "figure-6"},
    "aspects2019": {"aspects-before"},
    "sashida2026": {"scores"},  # and drops of a language model
}
"""Those that need no fine-tuning."""


def measured(name: str) -> list[str]:
    """The tables of a study that fine-tunes nothing."""
    return [table for table, one in STUDIES[name].measurements.items() if not one.of_task]


def derived(name: str) -> list[str]:
    """The tables that follow from these alone."""
    return [table for table, one in STUDIES[name].derived.items() if {*one.on} <= {*measured(name)}]


@pytest.fixture(scope="module")
def clark(model, corpora, tmp_path_factory) -> StudyResult:
    """A study without figures, probes or seeds; who changes its folder takes a copy."""
    return study("clark2019", str(model), corpora, tmp_path_factory.mktemp("clark") / "out")


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_writes_its_sheet_tables_and_figures(run, model, corpora, tmp_path, name) -> None:
    out = tmp_path / "made" / "study"
    code, said, _ = run("study", name, "--model", model, "--data", corpora, "--figures", "--table", "-o", out)
    assert code == 0
    of = STUDIES[name]
    written = {f"{table}.nc" for table in [*measured(name), *derived(name)]}
    assert {path.name for path in out.iterdir()} == {f"{name}.md", f"{name}.csv", f"{name}.json", "figures", *written}
    assert {path.stem for path in (out / "figures").iterdir()} == {f"{name}-{figure}" for figure in FIGURES[name]}
    tables = {table: heads.read_table(out / f"{table}.nc") for table in measured(name)}
    findings = judge(of, tables)
    rows = pd.read_csv(out / f"{name}.csv", keep_default_na=False)
    assert rows["verdict"].tolist() == [finding.verdict for finding in findings]
    assert rows["where"].tolist() == [finding.claim.where for finding in findings]
    assert not rows["same_model_and_corpus"].any()
    sheet = (out / f"{name}.md").read_text()
    assert f"{len(findings)} claims: " in sheet
    assert f"{len(findings)} claims: " in said
    assert str(out / f"{name}.md") in said.replace("\n", "")
    for finding in findings:
        assert f"| {finding.claim.where} | {finding.claim.what}" in sheet
    about = json.loads((out / f"{name}.json").read_text())["about"]
    assert set(about["corpora"]) == set(measured(name))
    assert about["model"] == str(model)
    assert all(isinstance(corpus["skipped"], dict) for corpus in about["corpora"].values())
    parts = [table.attrs["part"] for table in tables.values() if "part" in table.attrs]
    assert all(f", {part} |" in sheet for part in parts)
    assert len(parts) == sum(bool(of.measurements[table].having or of.measurements[table].sample) for table in tables)
    assert f"{Path(model).name}, compared with the paper's {next(iter(of.models))}; shares are in percent" in " ".join(
        said.split()
    )
    judged = [one for one in findings if one.verdict in ("holds", "fails", "unclear")]
    assert all(f"{one.verdict}: {one.claim.pattern.says.split()[0]}" in said for one in judged)


def test_the_sheet_shows_both_figures_and_their_difference(model, corpora, tmp_path) -> None:
    made = study("clark2019", model, corpora, tmp_path)
    (det,) = [one for one in made.findings if one.claim.where == "table 1, det" and one.claim.what == "best head"]
    ours = det.ours
    row = (
        "| table 1, det | best head | 94.3 (8-11) "
        f"| {ours.number:.1f} [{ours.lower:.1f}, {ours.upper:.1f}] ({ours.detail}) "
        f"| {ours.number - 94.3:+.1f} | {ours.held_out.number:.1f} "
    )
    assert row in (tmp_path / "clark2019.md").read_text()
    table = pd.read_csv(tmp_path / "clark2019.csv")
    written = table[(table["where"] == "table 1, det") & (table["what"] == "best head")].iloc[0]
    assert (written["paper"], written["paper_of"], written["ours_of"]) == (94.3, "8-11", ours.detail)
    assert written["difference"] == pytest.approx(ours.number - 94.3, rel=1e-4)


def test_table_3_is_read_from_the_folder_of_probes(clark, model, corpora, tmp_path, monkeypatch) -> None:
    drawn: list[str] = []
    monkeypatch.setattr(figures, "save", lambda figure, folder, name, **settings: drawn.append(name))
    loaded = load(model)
    (tmp_path / "probe").mkdir()
    heads.write_table(make_probes(weights_sha256=loaded.weights_sha256), tmp_path / "probe" / "probe.nc")
    made = study("clark2019", model, corpora, tmp_path / "out", probe=tmp_path / "probe", figures=True)
    of_probes = [one for one in made.findings if one.claim.where == "table 3"]
    assert {one.verdict for one in of_probes} == {"holds", "shown"}
    assert "clark2019-table-3" in drawn
    assert (tmp_path / "out" / "probe.nc").is_file()
    assert {one.why for one in clark.findings if one.claim.where == "table 3"} == {
        "there are no probes: train them with `headscope probe` and give --probe"
    }
    heads.write_table(make_probes(weights_sha256="0" * 64), tmp_path / "other.nc")
    with pytest.raises(TableError, match=r"probes are those of 'planted', which differs from .* in its weights; train"):
        study("clark2019", model, corpora, tmp_path / "out", probe=tmp_path / "other.nc")
    with pytest.raises(HeadscopeError, match="zhao2020 says nothing of probes"):
        study("zhao2020", model, corpora, tmp_path / "out", probe=tmp_path / "probe", figures=True)
    with pytest.raises(TableError, match=r"there is no file .*none; probes are written by"):
        study("clark2019", model, corpora, tmp_path / "out", probe=tmp_path / "none")
    with pytest.raises(TableError, match="has no accuracies of probes"):
        study("clark2019", model, corpora, tmp_path / "out", probe=made.tables["treebank"])


def test_gradients_are_those_of_the_masked_language_model(model, corpora, tmp_path, monkeypatch) -> None:
    drawn: list[str] = []
    monkeypatch.setattr(figures, "save", lambda figure, folder, name, **settings: drawn.append(name))
    what = "gradient of the loss by attention to [SEP], from five twelfths of the depth on"
    tiny_model, tokenizer = headed.make("bert", "masked-lm")
    config = copy.deepcopy(tiny_model.config)
    config.num_hidden_layers = 3  # one of them before five twelfths of the depth
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        for part in (BertForMaskedLM(config), tokenizer):
            part.save_pretrained(tmp_path / "masked")
    sheet, before = tmp_path / "out" / "clark2019.md", list[str]()
    made = study("clark2019", tmp_path / "masked", corpora, tmp_path / "out", figures=True,
                 show=lambda result: before.extend([sheet.read_text(), *drawn]))  # fmt: skip
    assert ["## Figures" in each for each in before] == [False]
    assert "clark2019-figure-3" in drawn
    gradients = made.tables["text_gradients"]
    assert gradients.attrs["loss"] == "masked-lm"
    alone = measure(load(tmp_path / "masked", task="masked-lm"), texts_of("text", corpora).documents, ["gradients"])
    np.testing.assert_array_equal(gradients["gradient_sep"], alone["gradient_sep"])
    (of_sep,) = [one for one in made.findings if one.claim.what == what]
    deep = gradients["layer"] / gradients.sizes["layer"] >= 5 / 12
    lower, upper = (float(gradients["gradient_sep"][part].mean()) for part in (~deep.values, deep.values))
    assert of_sep.ours.number == pytest.approx(upper)
    assert of_sep.verdict == ("holds" if upper < lower else "fails")
    assert "figures/clark2019-figure-3.png" in sheet.read_text()


def test_without_the_head_of_the_masked_language_model_it_says_so(clark, model, corpora, tmp_path) -> None:
    loaded = (AutoModel.from_pretrained(model), AutoTokenizer.from_pretrained(model))
    for made, beginning in (
        (clark, "the weights have no head for masked-lm: "),
        (study("clark2019", loaded, corpora, tmp_path), "the loaded model has no head for masked-lm, whose loss is"),
    ):
        of_gradients = [one for one in made.findings if one.claim.on == ("text_gradients",)]
        assert len(of_gradients) == 4
        assert all(one.verdict == "not measured" and one.why.startswith(beginning) for one in of_gradients)


def texts_of(table: str, corpora: Path):
    """What a measurement of Clark et al. is made on."""
    measurement = STUDIES["clark2019"].measurements[table]
    return select_documents(measurement, locate(STUDIES["clark2019"], corpora, {})[table], 0)


def test_an_encoder_decoder_is_studied_by_its_encoder(corpora, tmp_path) -> None:
    made = study("clark2019", tiny.save(tmp_path / "t5", "t5"), corpora, tmp_path / "out")
    assert all("attention_type" not in table.dims and table.sizes["layer"] == 2 for table in made.tables.values())
    assert any(finding.ours for finding in made.findings if finding.claim.on == ("treebank",))


def test_a_decoder_without_special_tokens_leaves_claims_unmeasured(corpora, tmp_path) -> None:
    made = study("clark2019", tiny.save(tmp_path / "gpt2", "gpt2"), corpora, tmp_path / "out")
    (cls,) = [one for one in made.findings if one.claim.what == "layer that attends most to [CLS]"]
    assert (cls.verdict, cls.why) == ("not measured", "the table has no mass_cls")


def test_another_corpus_takes_the_place_of_one(run, model, corpora, tmp_path) -> None:
    other = tmp_path / "wsj.conllu"
    other.write_text((corpora / "en_ewt-ud-dev.conllu").read_text().replace("\tobl\t", "\tprep\t"))
    code, _, _ = run(
        "study",
        "clark2019",
        "--model",
        model,
        "--data",
        corpora,
        "--corpus",
        f"treebank={other}",
        "-o",
        tmp_path / "out",
    )
    assert code == 0
    rows = pd.read_csv(tmp_path / "out" / "clark2019.csv")
    prep = rows[(rows["where"] == "table 1, prep") & (rows["what"] == "best head")].iloc[0]
    assert prep["verdict"] != "not measured"
    assert heads.read_table(tmp_path / "out" / "treebank.nc").attrs["corpus"] == str(other)


def test_a_corpus_in_memory_and_a_loaded_model_are_studied_as_their_files(clark, model, corpora, tmp_path) -> None:
    ((table, treebank),) = [
        (name, locate(STUDIES["clark2019"], corpora, {})[name])
        for name, measurement in STUDIES["clark2019"].measurements.items()
        if measurement.corpus.endswith(".conllu")
    ]
    loaded = (AutoModel.from_pretrained(model), AutoTokenizer.from_pretrained(model))
    of_files = clark.tables[table]
    in_memory = study("clark2019", loaded, corpora, tmp_path / "memory", corpora={table: list(read(treebank))}).tables[
        table
    ]
    xr.testing.assert_equal(in_memory, of_files)
    assert in_memory.attrs["corpus"] == "documents in memory"


def test_a_second_study_leaves_the_first_alone(clark, model, corpora, tmp_path) -> None:
    out = shutil.copytree(clark.folder, tmp_path / "out")
    before = {name: (out / name).read_bytes() for name in clark.files}
    study("aspects2019", model, corpora, out)
    assert {name: (out / name).read_bytes() for name in clark.files} == before


def test_the_python_of_the_documentation_runs(model, corpora, tmp_path) -> None:
    page = Path(__file__).parents[2] / "docs" / "howto" / "reproduce-a-paper.md"
    (block,) = re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)
    for name, path in (("minilm", model), ("corpora", corpora), ("zhao", tmp_path)):
        block = block.replace(f'"{name}"', repr(str(path)))
    names: dict = {}
    exec(block, names)
    made = names["result"]
    assert repr(judge(STUDIES["zhao2020"], made.tables)) == repr(made.findings)


def test_a_study_that_was_killed_goes_on_and_ends_in_the_same_tables(model, corpora, tmp_path) -> None:
    """A real process, really killed, when the first table is done."""
    killed = tmp_path / "killed"
    script = "import headscope.runner.local as r; r.SAVE_EVERY = 0.0; import headscope.cli; headscope.cli.main()"
    process = subprocess.Popen(
        [sys.executable, "-c", script, "study", "zhao2020", "--model", str(model), "--data", str(corpora),
         "--batch-tokens", "23", "-o", str(killed)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    while not (killed / ".review.partial.npz").exists() and process.poll() is None:
        time.sleep(0.01)
    process.kill()
    process.communicate()
    assert (killed / ".story.partial.npz").exists()
    assert not (killed / "story.nc").exists()
    study("zhao2020", str(model), str(corpora), killed, batch_tokens=23, resume=True)
    study("zhao2020", str(model), str(corpora), tmp_path / "whole", batch_tokens=23)
    for name in ("story.nc", "review.nc"):
        resumed, whole = (heads.read_table(folder / name) for folder in (killed, tmp_path / "whole"))
        xr.testing.assert_equal(resumed, whole)
    # A kill in the middle of a saving may leave half of one, under a name of its own.
    assert not (killed / ".story.partial.npz").exists()
    assert not (killed / ".review.partial.npz").exists()
