"""Damaged and crafted files, seeded: they are read as what they say, or refused in a sentence; nothing else comes out.

`benchmarks/fuzz.py` does the same with any number of them.
"""

import random
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from analyse.tables import RELATIONS, head_table, texts
from corpora.test_framenet import release
from headscope import heads
from headscope.corpora import FORMATS
from headscope.errors import HeadscopeError
from mutations import count, damage
from mutations.corpora import SAMPLES, read_parts, try_corpus, unmark
from mutations.lists import try_list, try_manifest
from mutations.tables import flip, try_table


def test_every_format_has_a_sample() -> None:
    assert {*SAMPLES} | {"framenet"} == {*FORMATS}


@pytest.mark.parametrize("format", SAMPLES)
def test_a_sample_is_read_in_its_format(tmp_path: Path, format: str) -> None:
    name, sample = SAMPLES[format]
    (tmp_path / name).write_text(unmark(sample)[0], encoding="utf-8")
    assert read_parts(tmp_path / name, format)


@pytest.mark.parametrize("format", SAMPLES)
def test_damaged_corpora_are_read_or_refused(tmp_path: Path, format: str) -> None:
    results = count(partial(try_corpus, tmp_path, format), 40)
    assert results["read"] + results["refused"] == 40
    assert results["refused"] or not FORMATS[format].annotated


def test_a_damaged_release_of_framenet_is_read_or_refused(tmp_path: Path) -> None:
    index = release(tmp_path)
    files = sorted(path for path in tmp_path.rglob("*.xml"))
    contents = {path: path.read_text() for path in files}

    def attempt(chance: random.Random) -> str:
        path = chance.choice(files)
        path.write_bytes(damage(contents[path], chance))
        try:
            read_parts(index, "framenet")
        except HeadscopeError:
            return "refused"
        finally:
            path.write_text(contents[path])
        return "read"

    assert count(attempt, 20)["refused"]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tables") / "heads.nc"
    return heads.write_table(head_table(texts(np.random.default_rng(89)), RELATIONS), path)


def test_a_bit_that_changed_is_noticed(table: Path) -> None:
    results = count(partial(flip, table, heads.read_table(table)), 60)
    assert results["refused"] > 50


def test_crafted_tables_are_read_or_refused(table: Path) -> None:
    results = count(partial(try_table, table), 60)
    assert results["refused"]
    assert results["read"]


def test_crafted_lists_of_runs_are_read_or_refused(tmp_path: Path) -> None:
    assert count(partial(try_list, tmp_path), 100)["refused"] > 50


def test_crafted_manifests_are_refused_before_anything_is_done(tmp_path: Path) -> None:
    results = count(partial(try_manifest, tmp_path), 100)
    assert results["refused"] > 50
    assert results["read"]
