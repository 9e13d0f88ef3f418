"""A treebank by its code, measured: as its file is, by any process, again without a network, and with its licence."""

import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import xarray as xr
from rich.console import Console

import headscope
import tiny
from headscope.commands.check.check_inputs import open_corpus
from headscope.corpora import summarize, treebanks
from headscope.errors import CorpusError
from headscope.learn import probe_training
from headscope.runner import Plan, resolve_reducers
from headscope.view.headings import describe_measured
from headscope.view.probes_report import print_probes
from web import publish, serving

SOURCE = "UD_English-EWT, dev, Universal Dependencies 2.16 (https://hdl.handle.net/11234/1-5901), licence CC BY-SA 4.0"
CHOSEN: dict[str, Any] = {"permutations": 0}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny.save(tmp_path_factory.mktemp("model")))


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The web with a treebank of 31 sentences, and an empty cache."""
    monkeypatch.setenv("HEADSCOPE_CACHE", str(tmp_path / "cache"))
    publish(tmp_path / "web")("UD_English-EWT", "en_ewt", "dev", sentences=31)
    with serving(tmp_path / "web") as server:
        monkeypatch.setattr(treebanks, "ADDRESS", server.address)
        monkeypatch.setattr(treebanks, "KNOWN", {})
        yield server


def test_the_table_is_that_of_the_file_and_says_where_it_is_from(model, server, tmp_path) -> None:
    steps: dict[str, int] = {}
    table = headscope.measure(
        model, "ud:en_ewt", "relations", progress=lambda step, done, total: steps.update({step: done}), **CHOSEN
    )
    assert [*steps][:2] == ["downloading README.md", "downloading en_ewt-ud-dev.conllu"]
    path = tmp_path / "web" / "UD_English-EWT" / "r2.16" / "en_ewt-ud-dev.conllu"
    theirs = headscope.measure(model, path, "relations", **CHOSEN)
    xr.testing.assert_identical(table.drop_attrs(deep=False), theirs.drop_attrs(deep=False))
    assert table.attrs["corpus_sha256"] == theirs.attrs["corpus_sha256"]
    assert table.attrs["corpus_source"] == SOURCE
    assert describe_measured(table) == f"Texts: {SOURCE}."
    assert "corpus_source" not in theirs.attrs


def test_a_recorded_request_and_a_check_need_no_network(model, server, tmp_path) -> None:
    table = headscope.measure(model, "ud:en_ewt", "relations", out=tmp_path / "heads.nc", **CHOSEN)
    asked = len(server.asked)
    server.stop()
    assert headscope.rerun(tmp_path / "heads.nc").is_same
    checked, _ = open_corpus(table, None, None, None)
    assert (checked.name, len(checked)) == ("ud:en_ewt", 31)
    assert len(server.asked) == asked
    (tmp_path / "cache").rename(tmp_path / "elsewhere")
    with pytest.raises(CorpusError, match=r"^the corpus is not in the cache .* cannot be reached .* that you have\.$"):
        headscope.rerun(tmp_path / "heads.nc")


def test_shards_are_measured_from_one_cache(model, server, tmp_path) -> None:
    paths = [tmp_path / f"{number}.npz" for number in (1, 2, 3)]
    for number, path in enumerate(paths, start=1):
        headscope.measure_shard(model, "ud:en_ewt", "relations", f"{number}/3", out=path, **CHOSEN)
    assert headscope.merge(paths).attrs["corpus_source"] == SOURCE
    assert len(server.asked) == 2


def test_probes_say_where_their_texts_are_from(model, monkeypatch) -> None:
    monkeypatch.setattr(probe_training, "MAX_EPOCHS", 1)
    monkeypatch.setattr(probe_training, "RIDGES", (1e-2,))
    parts = ["untrained", "control", "code-length", "structural"]
    corpus = replace(headscope.read("grammar:67"), source=SOURCE)
    table = headscope.probe(model, corpus, seeds=1, without=parts, progress=False)
    assert table.attrs["corpus_source"] == SOURCE
    printed = io.StringIO()
    print_probes(table, Console(file=printed, width=200))
    assert f"Texts: {SOURCE}." in printed.getvalue()


def test_a_worker_of_another_machine_finds_its_own_cache(model, server, tmp_path, monkeypatch) -> None:
    ray = pytest.importorskip("headscope.runner.ray", reason="Ray is not installed; it comes with the extra `ray`")
    corpus = headscope.read("ud:en_ewt")
    reducers = resolve_reducers(["surface"], summarize(corpus))
    work = ray.Work.describe(model, corpus, reducers, plan=Plan(), summary=summarize(corpus), device="cpu")
    (tmp_path / "cache").rename(tmp_path / "elsewhere")
    monkeypatch.setenv("HEADSCOPE_CACHE", str(tmp_path / "elsewhere"))
    server.stop()
    assert len(list(work.open().stream.documents)) == 31
