"""`--replicate`: heads chosen on one corpus and scored on another, by both commands, after a kill, and refusals."""

import itertools
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import xarray as xr

import headscope
import planted
import tiny
from headscope import HeadscopeError, heads
from headscope.analyse import add_replication, add_report
from headscope.commands.measure.request import Measure
from headscope.corpora.document import Document, Span
from headscope.runner import local
from headscope.runner import measure as run_reducers
from headscope.view.reports import read_reports
from headscope.view.verdicts import describe_replication

pytestmark = pytest.mark.full

HERE, THERE = "grammar:113:3", "grammar:127:5"


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    """A tiny model on disk."""
    return tiny.save(tmp_path_factory.mktemp("model"))


def assert_same(table: xr.Dataset, other: xr.Dataset) -> None:
    """All variables of the replication are equal."""
    names = [name for name in table.data_vars if "replication" in str(name)]
    assert names
    xr.testing.assert_equal(table[names], other[names])


def test_measure_scores_the_heads_on_the_other_corpus(run, model, tmp_path) -> None:
    out = tmp_path / "heads.nc"
    code, said, complained = run(
        "measure", model, HERE, "-r", "relations", "-r", "surface", "--replicate", THERE, "--permutations", 7, "-o", out
    )
    assert code == 0
    table = heads.read_table(out)
    assert (table.attrs["corpus"], table.attrs["replication_corpus"]) == (HERE, THERE)
    assert table.attrs["replication_corpus_sha256"] == headscope.read(THERE).sha256
    assert 0 < table.attrs["replication_documents"] <= 127
    other = run_reducers(model, headscope.read(THERE), ["relations"])
    assert_same(table, add_replication(table, other))
    assert " ".join(describe_replication(table, read_reports(table)).split()) in " ".join(said.split())
    assert f"replicating on {THERE}" in complained
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize("name", ["nearby_tokens", "sinks", "sparse_shapes"])
def test_a_reducer_that_is_measured_by_name_alone_is_replicated(model, name: str) -> None:
    table = headscope.measure(model, HERE, name, replicate=THERE, permutations=0, limit=13)
    assert table.attrs["replication_corpus"].startswith(THERE)
    assert any("replication" in str(variable) for variable in table.data_vars)


def test_the_atlas_replicates_beside_the_untrained_model(run, model, tmp_path, draw_only) -> None:
    draw_only("replication")
    out = tmp_path / "atlas"
    code, said, complained = run(
        "atlas", model, HERE, "--replicate", THERE, "--permutations", 7, "--map-documents", 0, "--examples", 0,
        "--figures", "--table", "-o", out,
    )  # fmt: skip
    assert code == 0
    tables = {name: heads.read_table(out / f"{name}.nc") for name in ("heads", "replication", "untrained-replication")}
    table = tables["heads"]
    assert_same(table, add_replication(table, tables["replication"], tables["untrained-replication"]))
    assert table["replication_lift_over_untrained"].notnull().any()
    assert {"scope_replication_f1", "antecedent_replication_verdict"} <= {*table.variables}
    assert f"replicate='{THERE}'" in table.attrs["call"]
    sentence = describe_replication(table, read_reports(table))
    page = (out / "atlas.html").read_text()
    assert sentence
    assert sentence in page
    assert re.search(r'<th scope="col"[^>]*>replicated</th>', page)
    rows = pd.read_csv(out / "tables" / "relation.csv")
    assert {"replication_accuracy", "replication_lift_lower", "replication_verdict"} <= {*rows.columns}
    assert "scope_replication_lift" in pd.read_csv(out / "tables" / "scope.csv").columns
    columns = pd.read_csv(out / "tables" / "columns.csv")
    assert "replication_rival" in columns["column"].values
    assert (out / "figures" / "replication.png").exists()
    for label in (f"replicating on {THERE}", f"replicating the untrained model on {THERE}"):
        assert label in complained
    assert "does not survive" in said
    code, _, _ = run("atlas", model, HERE, "--permutations", 0, "--map-documents", 0, "--examples", 0, "-o", out)
    assert code == 0
    assert {path.name for path in out.glob("*.nc")} == {"heads.nc", "untrained.nc"}
    assert not (out / "figures" / "replication.png").exists()


def make_documents(count: int, seed: int) -> list[Document]:
    """Sentences of the planted model, in which only nouns have a part of speech: no rule leads to a verb."""
    upos = dict.fromkeys(planted.KINDS["noun"], "NOUN")
    return [
        replace(document, spans=tuple(
            Span(place, place + 1, upos[word], kind="upos") for place, word in enumerate(document.words) if word in upos
        ))
        for document in planted.documents(count, seed)
    ]  # fmt: skip


def test_a_planted_head_survives_on_other_sentences() -> None:
    model = planted.plant(planted.RULES)
    here, there = make_documents(211, 3), make_documents(157, 5)
    table = headscope.measure(model, here, ["relations"], permutations=19, replicate=there)
    row = table.sel(relation="obj")
    assert (row["reported_layer"], row["reported_head"]) == (2, 3)
    assert row["replication_accuracy"] > 0.9
    assert row["replication_verdict"] == "survives"
    assert table.attrs["replication_corpus"] == "documents in memory"
    # The same sentences with gold links that lead elsewhere: the planted head is wrong there.
    mute = planted.plant({(1, 4): planted.previous})
    flat = headscope.measure(mute, there, ["relations"]).assign_attrs(weights_sha256=table.attrs["weights_sha256"])
    assert add_replication(add_report(table), flat).sel(relation="obj")["replication_verdict"] == "does not survive"


class Killed(BaseException):
    """Stands for a kill."""


def kill_after(monkeypatch, phase: str) -> Callable[[str, int, int], None]:
    """A progress that dies in the middle of a step; what was summed up is saved after each batch."""
    monkeypatch.setattr(local, "SAVE_EVERY", 0.0)
    batches = itertools.count()

    def progress(step: str, done: int, total: int) -> None:
        if step.startswith(phase) and done and next(batches) == 2:
            raise Killed

    return progress


@pytest.mark.parametrize("phase", ["measuring", "replicating on"])
def test_measure_goes_on_after_a_kill_in_either_phase(model, tmp_path, monkeypatch, phase) -> None:
    out = tmp_path / "heads.nc"
    settings = {"out": out, "replicate": THERE, "permutations": 3, "batch_tokens": 499}
    with pytest.raises(Killed):
        headscope.measure(model, HERE, ["relations"], **settings, progress=kill_after(monkeypatch, phase))
    left = {".heads.nc.partial.npz"} | ({".heads.nc.partial.replication.npz"} if phase != "measuring" else set())
    assert {path.name for path in tmp_path.iterdir()} == left
    resumed = headscope.measure(model, HERE, ["relations"], **settings, resume=True)
    assert list(tmp_path.iterdir()) == [out]
    straight = headscope.measure(model, HERE, ["relations"], **settings | {"out": None})
    xr.testing.assert_identical(resumed.drop_attrs(), straight.drop_attrs())


@pytest.mark.parametrize("phase", ["replicating on", "replicating the untrained"])
def test_an_atlas_goes_on_after_a_kill_in_the_replication(model, tmp_path, monkeypatch, phase) -> None:
    out = tmp_path / "atlas"
    only = {"map_documents": 0, "examples": 0}
    settings = {"replicate": THERE, "permutations": 3, "batch_tokens": 499, **only}
    with pytest.raises(Killed):
        headscope.atlas(model, HERE, out, **settings, progress=kill_after(monkeypatch, phase))
    left = {path.name for path in out.iterdir()}
    assert {".heads.partial.npz", ".untrained.partial.npz", ".replication.partial.npz"} <= left
    steps: dict[str, int] = {}
    resumed = headscope.atlas(
        model, HERE, out, **settings, resume=True, progress=lambda step, done, _: steps.update({step: done})
    )
    assert not [path.name for path in out.iterdir() if path.name.startswith(".")]
    assert resumed.table["replication_count"].max() > 20


REFUSALS = {
    "the same corpus": (
        ("measure", "{model}", HERE, "-r", "relations", "--replicate", HERE),
        f"the corpus to replicate on, {HERE}, has the same contents as the one on which the heads are chosen; give "
        "other texts.",
    ),
    "a copy of the corpus": (
        ("atlas", "{model}", "{tmp}/tree.conllu", "--replicate", "{tmp}/copy.conllu", "-o", "{tmp}/atlas"),
        "the corpus to replicate on, {tmp}/copy.conllu, has the same contents as the one on which the heads are "
        "chosen; give other texts.",
    ),
    "no annotation there": (
        ("measure", "{model}", HERE, "-r", "relations", "-r", "scope", "--replicate", "{tmp}/text.txt"),
        "the corpus to replicate on, {tmp}/text.txt, has no annotation for any of relations, scope; give one that is "
        "annotated like the first.",
    ),
    "no heads to replicate": (
        ("measure", "{model}", HERE, "-r", "surface", "--replicate", THERE),
        "none of the reducers surface chooses heads, so there is nothing to replicate; measure one that does, such as "
        "those of a treebank, or leave out --replicate.",
    ),
    "no such corpus": (
        ("atlas", "{model}", HERE, "--replicate", "{tmp}/nothing.conllu", "-o", "{tmp}/atlas"),
        "the corpus '{tmp}/nothing.conllu' does not exist; "
        "give a file, a folder, or 'grammar' for generated sentences.",
    ),
    "runs": (
        ("measure", "{model}", HERE, "-r", "relations", "--replicate", THERE, "--runs", "{runs}"),
        "the heads of runs are not replicated, only those of one model; measure the runs on each corpus, and leave out "
        "--replicate.",
    ),
}

TREE = "# newdoc id = one\n1\tthe\t_\tDET\t_\t_\t2\tdet\t_\t_\n2\tdog\t_\tNOUN\t_\t_\t0\troot\t_\t_\n\n"


@pytest.mark.parametrize("case", REFUSALS)
def test_what_cannot_be_replicated_is_refused_before_the_model_runs(run, model, tmp_path, monkeypatch, case) -> None:
    def load(*_: object) -> None:
        raise AssertionError("the model was loaded")

    monkeypatch.setattr("headscope.capture.open.loading.load", load)
    monkeypatch.setattr(Measure, "load", load)
    for name in ("tree.conllu", "copy.conllu"):
        (tmp_path / name).write_text(TREE)
    (tmp_path / "text.txt").write_text("\n".join(["the old dog walked by the red house . " * 3] * 5))
    words, sentence = REFUSALS[case]
    places = {"model": model, "tmp": tmp_path, "runs": tmp_path}
    words = tuple(word.format(**places) for word in words)
    if words[0] == "measure":
        words += ("-o", str(tmp_path / "heads.nc"))
    code, _, complained = run(*words)
    assert code == 2
    assert complained.splitlines()[-1] == f"headscope: {sentence.format(**places)}"


def test_rows_that_the_other_corpus_lacks_are_not_decided(model) -> None:
    """Objects of one language's labels, and labels of another: what is not there is not decided."""
    there = [
        replace(
            document,
            links=tuple(
                link if link.label == "obj" else replace(link, label=f"x{link.label}") for link in document.links
            ),
        )
        for document in make_documents(127, 5)
    ]
    table = headscope.measure(
        planted.plant(planted.RULES), make_documents(211, 3), ["relations"], permutations=3, replicate=there
    )
    verdicts = dict(zip(table["relation"].values.tolist(), table["replication_verdict"].values.tolist(), strict=True))
    assert verdicts["obj"] == "survives"
    assert verdicts["det"] == verdicts["punct"] == "cannot decide"


def test_python_refuses_with_the_same_sentence() -> None:
    documents = make_documents(41, 7)
    with pytest.raises(HeadscopeError) as refused:
        headscope.measure(planted.plant(planted.RULES), documents, ["relations"], replicate=list(documents))
    assert str(refused.value) == (
        "the corpus to replicate on, documents in memory, has the same contents as the one on which the heads are "
        "chosen; give other texts."
    )


def test_the_python_of_the_page_runs(model, tmp_path, monkeypatch) -> None:
    page = Path(__file__).parents[2] / "docs" / "howto" / "replicate.md"
    (block,) = re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)
    (tmp_path / "my-model").symlink_to(model)
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec(block.replace("grammar:300:7", THERE).replace("grammar:300", HERE), names)
    table = headscope.measure("my-model", HERE, ["relations"], replicate=THERE)
    assert_same(names["table"], table)
