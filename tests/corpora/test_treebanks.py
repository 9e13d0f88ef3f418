"""Treebanks by their codes: which file of which repository, its licence, and what is said where there is none."""

import hashlib
import logging
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headscope.corpora import read, summarize, treebanks
from headscope.errors import CorpusError
from web import publish, serving

SOURCE = "UD_English-EWT, {}, Universal Dependencies 2.16 (https://hdl.handle.net/11234/1-5901), licence CC BY-SA 4.0"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The web, as small as it can be, and an empty cache."""
    monkeypatch.setenv("HEADSCOPE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "web").mkdir()
    with serving(tmp_path / "web") as server:
        monkeypatch.setattr(treebanks, "ADDRESS", server.address)
        monkeypatch.setattr(treebanks, "KNOWN", {})
        yield server


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    return publish(tmp_path / "web")


def refused(name: str) -> str:
    with pytest.raises(CorpusError) as caught:
        read(name)
    return str(caught.value)


def test_the_list_has_what_the_release_says_it_has() -> None:
    """The announcement of UD 2.16: 319 treebanks of 179 languages."""
    known = treebanks.list_treebanks()
    assert len(known) == 319
    assert len({code.partition("_")[0] for code in known}) == 179
    assert all(code.endswith(f"_{repository.partition('-')[2].lower()}") for code, repository in known.items())
    assert known["de_gsd"] == "UD_German-GSD"
    assert known["grc_proiel"] == "UD_Ancient_Greek-PROIEL"


@pytest.mark.data
def test_repositories_and_hashes_are_those_of_real_files(data: Path) -> None:
    known = treebanks.list_treebanks()
    paths = list((data / "ud").glob("*/*.conllu"))
    assert {path.parent.name for path in paths} == {known[path.name.partition("-ud-")[0]] for path in paths}
    hashed = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}
    same = {name for name, digest in treebanks.KNOWN.items() if hashed.get(name) == digest}
    assert same == {"en_ewt-ud-dev.conllu", "en_ewt-ud-train.conllu"}


def test_a_treebank_is_downloaded_once_and_read_as_its_file_is(server, write, tmp_path, caplog) -> None:
    folder = write("UD_English-EWT", "en_ewt", "train", "dev", "test")
    with caplog.at_level(logging.WARNING):
        corpus = read("ud:en_ewt")
    kept = tmp_path / "cache" / "corpora" / "ud-2.16" / "UD_English-EWT"
    assert [record.getMessage() for record in caplog.records] == [f"downloaded {SOURCE.format('dev')}, kept in {kept}"]
    theirs = read(folder / "en_ewt-ud-dev.conllu")
    assert list(corpus) == list(theirs)
    assert (corpus.name, corpus.source, corpus.format) == ("ud:en_ewt", SOURCE.format("dev"), "conllu")
    assert corpus.sha256 == theirs.sha256
    names = {path.name for path in kept.iterdir() if not path.name.startswith(".")}
    assert names == {"README.md", "README.md.sha256", "en_ewt-ud-dev.conllu", "en_ewt-ud-dev.conllu.sha256"}
    asked = ["/UD_English-EWT/r2.16/README.md", "/UD_English-EWT/r2.16/en_ewt-ud-dev.conllu"]
    assert server.asked == asked
    assert read("ud:en_ewt:dev", limit=2).source == corpus.source
    assert server.asked == asked


def test_a_split_is_named_and_without_a_name_the_first_that_there_is(server, write, tmp_path) -> None:
    write("UD_English-EWT", "en_ewt", "train", "dev", "test")
    write("UD_English-PUD", "en_pud", "test")
    assert read("ud:en_ewt:train").files[0].name == "en_ewt-ud-train.conllu"
    assert read("ud:en_pud").files[0].name == "en_pud-ud-test.conllu"
    asked = len(server.asked)
    server.stop()  # what there is not is remembered too
    assert next(iter(read("ud:en_pud"))).id == "en_pud-ud-test.conllu:test-0-1"
    assert len(server.asked) == asked
    assert refused("ud:en_pud:dev") == (
        "UD_English-PUD has no file en_pud-ud-dev.conllu in Universal Dependencies 2.16; small treebanks have a test "
        "split alone, and the training splits of the largest are in parts: name another split, or download the parts "
        "and give their folder."
    )


@pytest.mark.parametrize(
    ("name", "code", "advice"),
    [
        ("ud:en_etw", "en_etw", "near it are en_ewt: give one, such as ud:en_ewt."),
        ("ud:DE_GSD:dev", "DE_GSD", "near it are de_gsd, id_gsd, es_gsd: give one, such as ud:de_gsd."),
        ("ud:got", "got", "near it are got_proiel: give one, such as ud:got_proiel."),
        ("ud:", "", "a code is that of the language, _ and the treebank: give one, such as ud:en_ewt."),
    ],
)
def test_a_code_that_there_is_not_is_refused_with_near_ones(name: str, code: str, advice: str, server) -> None:
    assert refused(name) == f"Universal Dependencies 2.16 has no treebank {code!r} among its 319; {advice}"
    assert not server.asked


def test_a_code_without_its_prefix_is_recognised(server) -> None:
    assert refused("en_ewt") == (
        "the corpus 'en_ewt' does not exist; give a file, a folder, or 'ud:en_ewt' for the treebank."
    )


def test_a_folder_may_have_the_name_of_the_prefix(server, write, tmp_path, monkeypatch) -> None:
    write("UD_English-EWT", "en_ewt", "dev").rename(tmp_path / "ud")
    monkeypatch.chdir(tmp_path)
    assert (len(read("ud")), read("ud").source, server.asked) == (3, "", [])


def test_a_name_that_is_not_understood_is_refused(server) -> None:
    sentence = "is not understood; a split of UD_English-EWT is ud:en_ewt:dev, :test or :train."
    assert refused("ud:en_ewt:all") == f"the corpus 'ud:en_ewt:all' {sentence}"
    assert refused("ud:en_ewt:dev:1") == f"the corpus 'ud:en_ewt:dev:1' {sentence}"


def test_a_treebank_without_its_text_is_refused(server, write, tmp_path) -> None:
    write("UD_Japanese-BCCWJ", "ja_bccwj", "dev", text="no")
    about = tmp_path / "cache" / "corpora" / "ud-2.16" / "UD_Japanese-BCCWJ" / "README.md"
    assert refused("ud:ja_bccwj") == (
        "UD_Japanese-BCCWJ has annotation without the words, which its licence does not let it pass on; its "
        f"{about} says how to get them: give the path of the file with words."
    )


def test_a_file_whose_sha256_is_known_is_compared_with_it(server, write, monkeypatch) -> None:
    path = write("UD_English-EWT", "en_ewt", "dev") / "en_ewt-ud-dev.conllu"
    monkeypatch.setattr(treebanks, "KNOWN", {path.name: "f" * 64})
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert f"/en_ewt-ud-dev.conllu has the SHA-256 {digest[:12]}, and ffffffffffff is expected" in refused("ud:en_ewt")
    monkeypatch.setattr(treebanks, "KNOWN", {path.name: digest})
    assert len(read("ud:en_ewt")) == 3


def test_another_machine_finds_the_files_in_its_own_cache(server, write, tmp_path, monkeypatch) -> None:
    write("UD_English-EWT", "en_ewt", "dev")
    sent = pickle.dumps(read("ud:en_ewt"))
    assert pickle.loads(sent).find_files() == pickle.loads(sent)
    (tmp_path / "cache").rename(tmp_path / "elsewhere")
    monkeypatch.setenv("HEADSCOPE_CACHE", str(tmp_path / "elsewhere"))
    server.stop()
    received = pickle.loads(sent).find_files()
    assert received.files[0].is_relative_to(tmp_path / "elsewhere")
    assert len(received) == 3


TREE = "1\tone\t_\tNUM\t_\t_\t0\troot\t_\t_\n2\tday\t_\tNOUN\t_\t_\t1\tobj\t_\t_\n"


@pytest.mark.parametrize(
    ("names", "note"),
    [
        (["en_ewt-ud-dev.conllu"], ""),
        (["en_ewt-ud-dev.conllu", "en_ewt-ud-train.conllu", "mine.conllu"], ""),
        (["a.conllu", "b.conllu"], ""),
        (
            ["en_ewt-ud-dev.conllu", "en_ewt-ud-train.conllu", "en_gum-ud-dev.conllu"],
            "The files are of 2 treebanks, measured as one: UD_English-EWT (2 files), UD_English-GUM (1 file).",
        ),
        (
            ["b/de_gsd-ud-test.conllu", "a/en_ewt-ud-dev.conllu", "c/en_own-ud-dev.conllu", "mine.conllu"],
            "The files are of 3 treebanks of 2 languages, measured as one: UD_English-EWT (1 file), UD_German-GSD (1 "
            "file), en_own (1 file).",
        ),
    ],
)
def test_several_treebanks_in_one_folder_are_named(tmp_path: Path, names: list[str], note: str) -> None:
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(TREE)
    summary = summarize(read(tmp_path))
    assert (summary.documents, summary.notes) == (len(names), note)
    assert summary.attributes == ({"corpus_notes": note} if note else {})
