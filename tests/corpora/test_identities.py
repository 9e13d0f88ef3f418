"""Ids that are there twice in files of many texts, where only their hashes are kept."""

import gc
import tracemalloc
from itertools import islice
from pathlib import Path

import pytest

from headscope.corpora import conllu, identities, records
from headscope.corpora.identities import Identities
from headscope.errors import CorpusError

WORD = "1\tw\t_\tX\t_\t_\t0\troot\t_\t_\n\n"


def write_trees(path: Path, *ids: object) -> Path:
    path.write_text("".join(f"# sent_id = {each}\n{WORD}" for each in ids))
    return path


def test_a_text_is_new_once() -> None:
    texts = [f"text {number}" for number in range(10_007)]
    identities = Identities()
    assert all(map(identities.add, texts))
    assert not any(map(identities.add, texts))
    assert len(identities) == 10_007


@pytest.fixture
def clashing(monkeypatch) -> None:
    """Texts of one length have one hash."""
    monkeypatch.setattr(identities, "hash", len, raising=False)


@pytest.mark.usefixtures("clashing")
def test_sentences_whose_hashes_are_the_same_keep_their_ids(tmp_path: Path) -> None:
    path = write_trees(tmp_path / "a.conllu", "aa", "b", "ab", "b", "aa", "ab@7", "c", "b@10")
    assert [document.id.removeprefix("a.conllu:") for document in conllu.read(path)] == [
        "aa", "b", "ab", "b@10", "aa@13", "ab@7", "c", "b@10@22",
    ]  # fmt: skip


@pytest.mark.usefixtures("clashing")
def test_lines_whose_hashes_are_the_same_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    lines = [f'{{"words": ["w"], "id": "{each}"}}\n' for each in ("aa", "ab", "ba")]
    path.write_text("".join(lines))
    assert [document.id for document in records.read(path)] == ["a.jsonl:aa", "a.jsonl:ab", "a.jsonl:ba"]
    path.write_text("".join([*lines, lines[1]]))
    with pytest.raises(CorpusError, match=r'a\.jsonl:4 has the id "ab" as line 2 has; a text needs an id of its own'):
        list(records.read(path))


@pytest.mark.parametrize("suffix", ["conllu", "jsonl"])
def test_a_text_takes_few_bytes_when_it_was_read(tmp_path: Path, suffix: str) -> None:
    count, path = 10_007, tmp_path / f"a.{suffix}"
    names = [f"a-name-of-a-text-{number:>040}" for number in range(count)]
    if suffix == "conllu":
        documents = conllu.read(write_trees(path, *names))
    else:
        path.write_text("".join(f'{{"text": "w", "id": "{name}"}}\n' for name in names))
        documents = records.read(path)
    next(documents)
    tracemalloc.start()
    try:
        for document in islice(documents, count - 2):
            last = document.id
        gc.collect(2)  # objects that hold one another wait for it
        kept = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert last == f"a.{suffix}:{names[-2]}"
    assert next(documents).id == f"a.{suffix}:{names[-1]}"
    assert kept < 40 * count
