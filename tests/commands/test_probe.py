"""`headscope probe` from a model and a treebank to a folder of files."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import headscope
import planted
import tiny
from headscope import heads
from headscope.commands.probe import run as probe_job
from headscope.commands.probe.request import Probe
from headscope.commands.recorded_request import restore_request
from headscope.corpora import summarize
from headscope.errors import CorpusError, HeadscopeError, ModelError
from headscope.learn import probe_training
from headscope.learn.link_kinds import KINDS
from headscope.view.figures.draw_probes import draw_accuracies

pytestmark = pytest.mark.full

ALL_PARTS = ("untrained", "control", "code-length", "structural")
SETTINGS = {"seeds": 2, "rank": 5, "progress": False}


@pytest.fixture(scope="module", autouse=True)
def _few_epochs() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(probe_training, "MAX_EPOCHS", 3)
        patch.setattr(probe_training, "RIDGES", (1e-1,))  # with a weaker one the optimum takes more steps
        yield


@pytest.fixture(scope="module")
def inputs(tmp_path_factory) -> Path:
    """A folder with the planted model and its sentences as a treebank."""
    folder = tmp_path_factory.mktemp("inputs")
    model = planted.plant(planted.RULES)
    model.module.save_pretrained(folder / "model")
    model.tokenizer.save_pretrained(folder / "model")
    sentences = []
    for document in planted.documents(67):
        heads_of = {link.source: (link.target + 1, link.label) for link in document.links}
        lines = [
            "\t".join([str(i + 1), word, *"____", *map(str, heads_of.get(i, ("_", "_"))), "_", "_"])
            for i, word in enumerate(document.words)
        ]
        sentences.append("\n".join(lines) + "\n\n")
    (folder / "trees.conllu").write_text("".join(sentences))
    return folder


@pytest.fixture(scope="module")
def folder(inputs: Path, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("probe") / "out"
    headscope.probe(inputs / "model", inputs / "trees.conllu", out, figures=True, **SETTINGS)
    return out


def read_probes(folder: Path) -> xr.Dataset:
    return heads.read_table(folder / "probe.nc")


def test_the_planted_heads_have_the_weights(folder: Path) -> None:
    table = read_probes(folder)
    # 2-3: from the noun to its verb; 3-5: from the noun to its determiner. Links point from dependent to head.
    strength = (table["probe_weight"] * table["probe_attention_size"]).to_series().sort_values(ascending=False)
    assert {index[:2] for index in strength.index[:2]} == {(2, 3), (3, 5)}
    assert strength.index[0][2] != strength.index[1][2]
    assert strength.iloc[1] > 3 * abs(strength.iloc[2:]).max()
    accuracy = table["probe_accuracy"].sel(relation="all")
    assert float(accuracy.sel(probe="attention")) == 1
    assert float(accuracy.sel(probe="right-branching")) < 0.5


def test_the_folder_has_a_table_rows_figures_and_a_manifest(folder: Path) -> None:
    table = read_probes(folder)
    frame = pd.read_csv(folder / "probe.csv").set_index(["probe", "relation"])
    for probe in table["probe"].values:
        for relation in ("all", "det", "obj"):
            cell = table.sel(probe=probe, relation=relation)
            assert frame.loc[(probe, relation), "accuracy"] == pytest.approx(float(cell["probe_accuracy"]), abs=1e-5)
    lengths = pd.read_csv(folder / "lengths.csv")
    assert set(lengths["length"]) == {*range(-6, 0), *range(1, 7)}
    written = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    names = {
        f"figures/{n}.{s}"
        for n in ("probes", "by-relation", "by-length", "weights", "structural")
        for s in ("png", "svg")
    }
    assert written - {".headscope.lock"} == {"probe.nc", "probe.csv", "lengths.csv", "probe.json", *names}
    assert set(json.loads((folder / "probe.json").read_text())["sha256"]) == written - {"probe.json", ".headscope.lock"}
    for argument in ("seeds=2", "rank=5", "links=None", "decode='word'"):
        assert argument in table.attrs["call"]
    assert table.attrs["links"] == "dependency"
    assert table.attrs["word_vectors"].startswith("input embeddings of")


def test_the_table_records_the_request_that_gives_it_again(folder: Path) -> None:
    table = read_probes(folder)
    again = restore_request(Probe, table.attrs["request"]).run()
    xr.testing.assert_identical(again.drop_attrs(deep=False), table.drop_attrs(deep=False))
    assert {**again.attrs, "created": ""} == {**table.attrs, "created": ""}


def test_the_links_are_those_of_which_a_probe_can_be_trained() -> None:
    assert Probe.options["links"].choices == KINDS


def test_words_alone_know_as_much_here_so_attention_adds_nothing(folder: Path) -> None:
    """In these sentences there is one noun and one verb, and which is which the words tell."""
    from headscope.view.probes_report import describe_gain

    table = read_probes(folder)
    gain = table["probe_gain_upper"].sel(probe="attention-and-words", baseline="words-and-distances", relation="all")
    assert float(gain) < 1
    assert "points [" in describe_gain(table)


def test_a_killed_run_goes_on_and_gives_the_same(inputs: Path, folder: Path, tmp_path: Path, monkeypatch) -> None:
    true_save, saved = probe_job.save_sums, []

    def fail_in_the_middle(*arguments, **settings):
        saved.append(1)
        true_save(*arguments, **settings)
        if len(saved) == 7:
            raise KeyboardInterrupt

    monkeypatch.setattr(probe_job, "save_sums", fail_in_the_middle)
    arguments = (inputs / "model", inputs / "trees.conllu", tmp_path / "out")
    with pytest.raises(KeyboardInterrupt):
        headscope.probe(*arguments, **SETTINGS)
    assert (tmp_path / "out" / ".maps").is_dir()
    monkeypatch.setattr(probe_job, "save_sums", true_save)
    with pytest.raises(HeadscopeError, match=r"left by another run \(its seeds differ"):
        headscope.probe(*arguments, **(SETTINGS | {"seeds": 3}), resume=True)
    read: list[str] = []
    headscope.probe(*arguments, **(SETTINGS | {"progress": lambda step, *_: read.append(step)}), resume=True)
    assert "training probes, seed 2 of 2" in read
    table, expected = read_probes(tmp_path / "out"), read_probes(folder)
    xr.testing.assert_equal(table, expected)
    assert not (tmp_path / "out" / ".maps").exists()


def test_texts_of_their_own_are_tested_by_every_seed(inputs: Path, tmp_path: Path) -> None:
    trees = inputs / "trees.conllu"
    table = headscope.probe(
        inputs / "model", trees, tmp_path, test=trees, without=ALL_PARTS, **SETTINGS,
    )  # fmt: skip
    assert int(table["probe_count"].sel(relation="all")) == 2 * 67
    assert "control_accuracy" not in table
    caption = draw_accuracies(table).get_supxlabel()
    assert "tested on trees.conllu" in caption
    assert "structural_uuas" not in table
    assert "untrained-attention-and-words" not in table["probe"].values
    assert float(table["probe_accuracy_by_seed"].sel(probe="right-branching").std()) == 0


@pytest.mark.parametrize("links", ["coreference", "scope"])
def test_other_links_are_found_as_well(inputs: Path, tmp_path: Path, links: str) -> None:
    model = tiny.save(tmp_path / "model", "gpt2")
    table = headscope.probe(
        model, "grammar:83", tmp_path / "out", links=links, without=["control", "code-length"], seeds=1, progress=False
    )
    assert table.attrs["links"] == links
    assert "structural_uuas" not in table
    assert table["probe_count"].sel(relation="all") > 0
    assert float(table["probe_accuracy"].sel(probe="attention-and-words", relation="all")) <= 1


def test_a_model_with_one_head_and_encoder_decoders_have_probes(tmp_path: Path) -> None:
    few = {"without": ALL_PARTS, "seeds": 1}
    table = headscope.probe(tiny.save(tmp_path / "bart", "bart"), "grammar:41", tmp_path / "a", **few, progress=False)
    assert [*table["attention_type"].values] == ["encoder", "decoder", "cross"]
    assert table["probe_weight"].dims == ("attention_type", "layer", "head", "direction")
    assert table["probe_weight"].sel(attention_type="encoder", layer=[1, 2]).notnull().all()
    assert table["probe_weight"].sel(attention_type="encoder", layer=3).isnull().all()
    module, words = tiny.make("bert")
    single = type(module)(type(module.config)(**(module.config.to_dict() | {"num_attention_heads": 1})))
    table = headscope.probe((single.eval(), words), "grammar:41", tmp_path / "b", **few, progress=False)
    assert table["probe_weight"].shape == (2, 1, 2)


def test_a_tree_has_one_root_and_is_no_worse_by_much(inputs: Path, tmp_path: Path) -> None:
    model = tiny.save(tmp_path / "model")
    few = {"without": ALL_PARTS, "seeds": 1, "progress": False}
    word, tree = (headscope.probe(model, "grammar:67", tmp_path / way, decode=way, **few) for way in ("word", "tree"))
    roots = [table["probe_accuracy"].sel(probe="attention-and-words", relation="root") for table in (word, tree)]
    assert all(0 <= float(share) <= 1 for share in roots)
    assert not np.array_equal(word["probe_accuracy"].values, tree["probe_accuracy"].values)


ONE = "1\tthe\t_\t_\t_\t_\t2\tdet\t_\t_\n2\tdog\t_\t_\t_\t_\t0\troot\t_\t_\n\n"


def test_bad_input_gets_one_sentence(inputs: Path, tmp_path: Path, monkeypatch) -> None:
    model, trees, out = inputs / "model", inputs / "trees.conllu", tmp_path / "out"
    single = tmp_path / "one.conllu"
    single.write_text(ONE)
    with pytest.raises(
        CorpusError, match=r"has 1 document with 2 dependency links; divided by text .* none are left for"
    ):
        headscope.probe(model, single, out, **SETTINGS)
    # Many sentences of one text cannot be divided either.
    single.write_text("# newdoc id = a\n" + ONE * 3)
    with pytest.raises(CorpusError, match=r"has 3 documents with 6 dependency links"):
        headscope.probe(model, single, out, test=trees, **SETTINGS)
    with pytest.raises(CorpusError, match="has no links of any kind"):
        headscope.probe(model, ["a text without links ."] * 50, out, **SETTINGS)
    with pytest.raises(CorpusError, match=r"too few documents could be read \(0; left out were 67 documents longer"):
        headscope.probe(model, trees, tmp_path / "short", max_tokens=5, **SETTINGS)
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("elsewhere 1 2\n")
    with pytest.raises(HeadscopeError, match="has a vector for none of the"):
        headscope.probe(model, trees, out, words=vectors, **SETTINGS)
    with pytest.raises(HeadscopeError, match=r"none\.txt"):
        headscope.probe(model, trees, out, words=tmp_path / "none.txt", **SETTINGS)
    for arguments, expected in (
        (
            {"links": "kinship"},
            r"^`links` is 'kinship'; give dependency, role, coreference, scope or pattern\.$",
        ),
        (
            {"links": "role", "decode": "tree"},
            r"^links of the kind role form no tree; leave out `decode`, or choose dependency links\.$",
        ),
        ({"decode": "beam"}, r"^`decode` is 'beam'; give word or tree\.$"),
        ({"seeds": 0}, r"^`seeds` is 0; give 1 or more\.$"),
        ({"rank": 0}, r"^`rank` is 0; give 1 or more\.$"),
        ({"max_tokens": 2}, r"^`max_tokens` is 2; give 3 or more\.$"),
        ({"without": ["words"]}, r"^`without` is 'words'; give untrained, control, code-length or structural\.$"),
    ):
        with pytest.raises(HeadscopeError, match=expected):
            headscope.probe(model, trees, out, **(SETTINGS | arguments))
    with pytest.raises(ModelError, match="there is no"):
        headscope.probe("./nowhere", trees, out, **SETTINGS)
    assert not out.exists()


def test_the_command_prints_what_attention_adds(run, inputs: Path, tmp_path: Path) -> None:
    code, said, _ = run(
        "probe", inputs / "model", inputs / "trees.conllu", "-o", tmp_path / "out", "--seeds", 1, "--rank", 5,
        "--limit", 41, "--table",
    )  # fmt: skip
    assert code == 0
    for text in (
        "right-branching",
        "attention-and-words",
        "selectivity",
        "UAS without punctuation",
        "Structural probe",
    ):
        assert text in said
    assert "to words and their distance" in said.replace("\n", " ")


def test_copies_are_in_the_part_of_their_original() -> None:
    first = tiny.documents(31)
    documents = [*first, *(replace(document, id=f"{document.id}b", group="copies") for document in first)]
    texts = probe_job._Texts.divide(documents, summarize(documents))
    of_words = [{document.words for document in part} for part in texts.parts]
    assert sum(map(len, of_words)) == len(set().union(*of_words))
    assert sum(document.repeats is not None for document in texts.documents) >= 31
