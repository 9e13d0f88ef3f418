"""A folder of runs, measured: each as it is measured alone, side by side; and what is refused before any work."""

import io
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from rich.console import Console
from transformers import BertConfig, BertForTokenClassification

import headscope
import tiny
import tuned
from headscope import heads
from headscope import runs as folders
from headscope.capture import load
from headscope.errors import HeadscopeError, ModelError
from headscope.reducers.negation_scope import NegationScope
from headscope.reducers.support.permutations import Permutations
from headscope.runner import local
from headscope.runner import several_runs as runs_module
from headscope.runner.checkpoint import load as load_sums
from headscope.runner.in_turn import name_checkpoint
from headscope.runner.local import measure
from headscope.runner.several_runs import measure_runs
from headscope.runs import Runs
from headscope.view.table_report import print_table

DOCUMENTS = tiny.documents(7)
NAMES = ("surface", "scope", "relations", "similarity")
PERMUTED = {f"{score}_{statistic}" for score in ("scope", "relation") for statistic in ("permuted", "z", "p")}


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Runs:
    """A tiny BERT and three runs, none of which a test may touch."""
    return tuned.make_runs(tmp_path_factory.mktemp("family"))


@pytest.fixture(scope="module")
def table(whole) -> xr.Dataset:
    return measure_runs(whole.model, whole, DOCUMENTS, NAMES)


@pytest.fixture
def copied(whole, tmp_path) -> Runs:
    """The same for a test to damage."""
    shutil.copytree(whole.folder, tmp_path / "runs")
    return folders.read(tmp_path / "runs")


def test_each_run_is_measured_as_it_is_alone(whole, table) -> None:
    for run in whole.runs:
        alone = measure(whole.path(run), DOCUMENTS, NAMES, before=whole.model)
        assert (
            set(table.data_vars)
            == {name for name, values in alone.items() if "permutation" not in values.dims} - PERMUTED
        )
        for name, ours in table.items():
            assert ("run" in ours.dims) == ("layer" in ours.dims), name
            ours = ours.sel(run=run.name, drop=True) if "run" in ours.dims else ours
            np.testing.assert_array_equal(ours.transpose(*alone[name].dims), alone[name], err_msg=name)


def test_a_family_is_a_head_table(whole, table, tmp_path) -> None:
    assert table["run"].values.tolist() == ["seed-11", "seed-3", "seed-7"]
    assert table["seed"].dims == ("run",)
    assert table["seed"].values.tolist() == [11, 3, 7]
    assert dict(table["scope_f1"].sizes) == {"run": 3, "layer": 2, "head": 5}
    assert table["scope_offset_f1"].dims == ("offset",)
    read = heads.read_table(heads.write_table(table, tmp_path / "heads.nc"))
    xr.testing.assert_identical(read, table)
    assert read.attrs["model"] == whole.model
    assert read.attrs["weights_sha256"] == tuned.weights_sha256(Path(whole.model))
    assert (read.attrs["task"], read.attrs["control"]) == ("negation", 0)
    assert json.loads(read.attrs["runs"]) == [
        {"name": run.name, "seed": run.seed, "weights_sha256": run.weights_sha256, "best_epoch": 2}
        for run in whole.runs
    ]
    assert set(json.loads(read.attrs["paths"]).values()) == {len(DOCUMENTS) * 3}
    assert "permutation" not in read.dims
    assert "before" not in read.attrs


def test_who_asks_for_draws_gets_them(whole) -> None:
    permuted = measure_runs(whole.model, whole, DOCUMENTS, [NegationScope(permutations=Permutations(5))])
    assert dict(permuted["scope_z_permuted"].sizes) == {"run": 3, "permutation": 5}


def test_what_is_analysed_of_a_family_is_intervals(table) -> None:
    more = headscope.analyse.assess(table)
    new = set(more.data_vars) - set(table.data_vars)
    assert new == {f"{score}_{end}" for score in ("scope_f1", "relation_accuracy") for end in ("lower", "upper")}
    alone = headscope.analyse.add_intervals(table.sel(run="seed-3"))
    np.testing.assert_array_equal(more["scope_f1_lower"].sel(run="seed-3"), alone["scope_f1_lower"])


def test_runs_of_an_encoder_decoder_stand_side_by_side(tmp_path) -> None:
    runs = tuned.make_runs(tmp_path, "bart", seeds=(5, 13))
    found = measure_runs(runs.model, runs.folder, DOCUMENTS, ["similarity"])
    assert dict(found["similarity"].sizes) == {"run": 2, "attention_type": 3, "layer": 3, "head": 5}
    assert bool(found["similarity"].sel(attention_type="encoder", layer=3).isnull().all())
    told = summary(heads.check(found).isel(run=[0]))
    least = found["similarity"].isel(run=0).min().item()
    assert re.search(rf"^(encoder|decoder|cross) \d-\d {least:.3f}", told, re.MULTILINE)
    assert "1 run, tuned on negation" in told
    assert "±" not in told.replace("± standard deviation", "")


def test_a_model_with_a_new_layer_on_top_is_measured_without_it(whole, copied) -> None:
    config = BertConfig.from_pretrained(whole.path(whole.runs[0]))
    with_head = BertForTokenClassification(config)
    loaded = load(whole.path(whole.runs[0])).module
    with_head.bert.load_state_dict(loaded.state_dict(), strict=False)
    place = copied.path(copied.runs[0])
    with_head.save_pretrained(place)
    first = replace(copied.runs[0], weights_sha256=tuned.weights_sha256(place))
    table = measure_runs(whole.model, replace(copied, runs=(first,)), DOCUMENTS)
    expected = measure(whole.path(whole.runs[0]), DOCUMENTS)
    np.testing.assert_array_equal(table["entropy"].squeeze("run"), expected["entropy"])


def summary(table: xr.Dataset) -> str:
    """What a terminal says of a table."""
    console = Console(file=io.StringIO(), width=140)
    print_table(table, console)
    return console.file.getvalue()


class KilledError(Exception):
    """What ends a run in the middle."""


@pytest.mark.full
def test_a_killed_family_goes_on_to_the_same_table_and_runs_nothing_twice(whole, table, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(local, "SAVE_EVERY", 0.0)
    kept = tmp_path / ".heads.nc.partial.npz"
    how = {"plan": local.Plan(batch_tokens=31), "checkpoint": kept}
    expected = measure_runs(whole.model, whole, DOCUMENTS, NAMES, plan=how["plan"])
    words = sum(len(document.words) for document in DOCUMENTS)
    reports = []

    def kill(done: int, total: int) -> None:
        assert total == 3 * words
        reports.append(done)
        if done > 1.5 * words:
            raise KilledError

    with pytest.raises(KilledError):
        measure_runs(whole.model, whole, DOCUMENTS, NAMES, **how, progress=kill)
    assert reports == sorted(reports)
    first, second, third = (name_checkpoint(kept, run.name) for run in whole.runs)
    assert [path.name for path in (first, third)] == [".heads.nc.partial.seed-11.npz", ".heads.nc.partial.seed-7.npz"]
    assert load_sums(first)[0].select_run("seen")["words"] == words
    assert 0 < load_sums(second)[0].select_run("seen")["words"] < words
    assert not third.exists()
    again = []
    resumed = measure_runs(
        whole.model, whole, DOCUMENTS, NAMES, **how, resume=True, progress=lambda done, total: again.append(done)
    )
    # The finished run is reported once, when it has been looked at.
    assert again[0] == words
    assert again[1] > reports[-1]
    assert again[-1] == 3 * words
    xr.testing.assert_identical(resumed.drop_attrs(), expected.drop_attrs())
    assert resumed.attrs | {"created": ""} == expected.attrs | {"created": ""}


def refused(*arguments: object) -> str:
    """What is said, and that it is said before any document is measured."""
    with pytest.raises(HeadscopeError) as said:
        measure_runs(*arguments, progress=lambda done, total: pytest.fail("it was measured"))
    return str(said.value)


def test_another_model_is_refused(copied, tmp_path) -> None:
    other = tiny.save(tmp_path / "other", "distilbert")
    assert refused(other, copied, DOCUMENTS) == (
        f"the runs of {copied.folder} were tuned from {copied.model!r} with the weights {copied.weights_sha256[:12]}, "
        f"and {str(other)!r} has {tuned.weights_sha256(other)[:12]}; give the model that they were tuned from."
    )


def test_a_run_of_another_architecture_is_refused(copied) -> None:
    last = copied.runs[-1]
    shutil.rmtree(copied.path(last))
    tiny.save(copied.path(last), "llama")
    assert refused(copied.model, copied, DOCUMENTS) == (
        f"{copied.model!r} and the run seed-7 of {copied.folder} differ in their heads (5; 6); "
        "give the model that the runs were tuned from."
    )


def test_weights_that_are_not_those_of_the_list_are_refused(copied) -> None:
    weights = copied.path(copied.runs[1]) / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    digest = tuned.weights_sha256(weights.parent)
    assert refused(copied.model, copied, DOCUMENTS) == (
        f"the weights of the run seed-3 of {copied.folder} are not those in its list "
        f"({digest[:12]} and not {copied.runs[1].weights_sha256[:12]}); copy its folder again, or tune it again."
    )


@pytest.mark.parametrize("lost", ["config.json", "tokenizer.json"])
def test_a_run_that_is_half_written_is_refused(copied, lost: str) -> None:
    (copied.path(copied.runs[2]) / lost).write_text("{")
    said = refused(copied.model, copied, DOCUMENTS)
    assert said.startswith(f"the run seed-7 is not whole: no model could be read from '{copied.folder}/seed-7' (")
    assert said.endswith("; it needs config.json, weights and tokenizer, all whole.")


def test_damaged_weights_that_the_list_knows_are_refused_by_name(copied) -> None:
    place = copied.path(copied.runs[0])
    (place / "model.safetensors").write_bytes(b"\xff" * 99)
    first = replace(copied.runs[0], weights_sha256=tuned.weights_sha256(place))
    with pytest.raises(ModelError, match=f"no model could be loaded from '{place}'"):
        measure_runs(copied.model, replace(copied, runs=(first,)), DOCUMENTS)


def test_a_missing_run_no_run_and_a_run_twice_are_refused(copied) -> None:
    twice = replace(copied, runs=(*copied.runs, copied.runs[1]))
    assert refused(copied.model, twice, DOCUMENTS) == (
        f"{copied.folder} lists the run seed-3 twice; take one out of the list."
    )
    assert refused(copied.model, replace(copied, runs=()), DOCUMENTS) == (
        f"{copied.folder} lists no finished run; let `headscope tune` finish one."
    )
    shutil.rmtree(copied.path(copied.runs[1]))
    assert "lists the run seed-3, but" in refused(copied.model, copied.folder, DOCUMENTS)


def test_runs_that_read_the_corpus_in_other_tokens_are_refused(copied) -> None:
    tokenizer = tiny.tokenizer(tiny.BERT)
    tokenizer.model_max_length = 17
    tokenizer.save_pretrained(copied.path(copied.runs[1]))
    with pytest.raises(ModelError, match=f"the run seed-3 of {copied.folder} reads the corpus otherwise than seed-11 "):
        measure_runs(copied.model, copied, DOCUMENTS)


def test_the_corpus_is_surveyed_once(whole, monkeypatch) -> None:
    surveyed = []
    for module in (runs_module, local):
        monkeypatch.setattr(
            module, "summarize", lambda documents: surveyed.append(1) or headscope.corpora.summarize(documents)
        )
    measure_runs(whole.model, whole, iter(DOCUMENTS), ["surface"])
    assert surveyed == [1]


def test_texts_may_be_strings(whole) -> None:
    texts = ["the dog sees the house", "a cat sees the old dog"]
    tables = [measure_runs(whole.model, whole, corpus, ["surface"]) for corpus in (texts, [*headscope.read(texts)])]
    xr.testing.assert_identical(*(table.drop_attrs(deep=False) for table in tables))


CORPUS = "grammar:53"


@pytest.mark.full
def test_the_command_measures_a_folder_and_says_what_it_found(run, whole, tmp_path) -> None:
    out = tmp_path / "heads.nc"
    code, said, _ = run(
        "measure", whole.model, CORPUS, "-r", "scope", "-r", "similarity", "--runs", whole.folder, "--skip", "--table",
        "-o", out,
    )  # fmt: skip
    assert code == 0
    found = heads.read_table(out)
    assert dict(found["scope_f1"].sizes) == {"run": 3, "layer": 2, "head": 5}
    assert "scope_f1_lower" in found
    assert list(tmp_path.iterdir()) == [out]
    assert "3 runs, tuned on negation" in said
    average, best = found["scope_f1"].mean(("layer", "head")), found["scope_f1"].max(("layer", "head"))
    row = next(line for line in said.splitlines() if line.startswith("scope F1 "))
    for values in (average, best):
        assert f"{values.mean().item():.3f} ± {values.std().item():.3f}" in row
    changed = found["similarity"].mean("run")
    least = changed.argmin(...)
    name = heads.head_name(*(int(least[dim]) + 1 for dim in ("layer", "head")))
    assert f"{name} {changed.min().item():.3f}" in said


@pytest.mark.full
def test_the_command_shows_every_kind_of_score(run, whole, tmp_path) -> None:
    asked = [part for name in ("surface", "relations", "coreference") for part in ("-r", name)]
    code, said, _ = run("measure", whole.model, CORPUS, *asked, "--runs", whole.folder, "-o", tmp_path / "heads.nc")
    assert code == 0
    for label in ("relation all", "antecedent all", "mass previous"):
        assert label in said


def test_similarity_without_runs_is_refused(run, whole, tmp_path) -> None:
    code, _, said = run("measure", whole.model, CORPUS, "-r", "similarity", "-o", tmp_path / "heads.nc")
    assert code == 2
    assert said.splitlines()[-1] == (
        "headscope: the reducer `similarity` compares a model with what it was tuned from; add --runs, or give the "
        "folder of an adapter."
    )
