"""`headscope check --heads`: the heads of a list ranked in a planted model and a table, and refusals."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import headscope
import planted
import tiny
from headscope import HeadscopeError, heads
from headscope.commands.check.listed_scores import list_rows, open_list, read_corpus
from headscope.headlists import HeadEntry, HeadList, write_head_list

ACCURACY = {"score": "relation_accuracy", "direction": "dependent_to_head"}
OBJ = HeadList((HeadEntry(2, 3, 0.9, row="obj", **ACCURACY), HeadEntry(1, 2, 0.1, row="obj", **ACCURACY)))
LONG = ["the dog sees a cat by the old house " * 9, "a red cat was in the house of the dog " * 10]


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> Path:
    """What was measured of a planted model, whose head 2-3 looks from a noun at its verb."""
    path = tmp_path_factory.mktemp("made") / "heads.nc"
    model = planted.plant(planted.RULES)
    headscope.measure(model, planted.documents(211), ["relations"], permutations=0, out=path)
    return path


def rank(values: np.ndarray) -> np.ndarray:
    """The rank of each number among all, the largest first, the last for ties."""
    return (values.ravel()[:, None] <= values.ravel()).sum(1).reshape(values.shape)


def test_a_planted_head_is_the_first_of_all_and_all_is_written(run, table, tmp_path) -> None:
    path = write_head_list(OBJ, tmp_path / "mine.json")
    code, said, complained = run("check", table, "--heads", path, "-o", tmp_path / "out")
    assert (code, complained) == (0, "writing ...\n")
    values = heads.read_table(table)["relation_accuracy"].sel(relation="obj", direction="dependent_to_head")
    ranks = rank(values.transpose("layer", "head").values)
    assert ranks[1, 2] == 1
    frame = pd.read_csv(tmp_path / "out" / "check.csv")
    assert [*zip(frame["name"], frame["rank"], strict=True)] == [("2-3", 1), ("1-2", ranks[0, 1])]
    shared, every = int(ranks[0, 1] <= 2) + 1, values.size
    assert (
        f"relation_accuracy:obj: {shared} of the 2 heads of the list are among the best 2 of {every} in the model; "
        f"{4 / every:.1f} would be by chance."
    ) in said
    about = json.loads((tmp_path / "out" / "check.json").read_text())["about"]
    assert [row["rank"] for row in about["heads"]] == [1, ranks[0, 1]]
    assert about["list"] == str(path)


def test_a_model_is_measured_on_the_corpus_and_a_list_in_memory_is_taken(table) -> None:
    model = planted.plant(planted.RULES)
    listed = replace(OBJ, entries=OBJ.entries + tuple(replace(entry, row="det") for entry in OBJ.entries))
    measured = headscope.check(model, heads=listed, corpus=planted.documents(211), top=1)
    read = headscope.check(table, heads=listed, top=1)
    for name in ("measured_value", "rank", "heads", "shared_heads", "compared"):
        xr.testing.assert_equal(measured.table[name], read.table[name])
    assert measured.table["listed_row"].values.tolist() == ["relation_accuracy:obj"] * 2 + ["relation_accuracy:det"] * 2
    assert measured.table["compared"].values.tolist() == [True, False] * 2
    assert (measured.kept, measured.lost, measured.undecided, measured.files) == ((), (), (), ())


def test_key_value_heads_are_ranked_by_what_their_heads_lose_while_streaming(tmp_path) -> None:
    model = tiny.save(tmp_path / "model", "llama")
    table = headscope.measure(str(model), LONG, ["streaming"], permutations=0)
    kept = table["streaming_kept"].transpose("layer", "head").values
    layers, count = kept.shape[0], int(table.attrs["key_value_heads"])
    needed = 1 - kept.reshape(layers, count, -1).min(-1)
    shares = np.random.default_rng(3).random((layers, count))
    np.savetxt(tmp_path / "full_attention_heads.tsv", shares, delimiter="\t")
    result = headscope.check(str(model), heads=tmp_path / "full_attention_heads.tsv", corpus=LONG).table
    assert result["measured_row"].values.tolist() == ["1 − streaming_kept"] * (layers * count)
    places = [(layer - 1, head - 1) for layer, head in zip(result["layer"].values, result["head"].values, strict=True)]
    assert result["listed_value"].values.tolist() == sorted(shares.ravel(), reverse=True)
    assert result["measured_value"].values == pytest.approx([needed[place] for place in places])
    assert result["rank"].values.tolist() == [rank(needed)[place] for place in places]


REFUSALS = {
    "neither": ((), "give one of --against, an atlas, and --heads, a list of heads."),
    "both": (("--heads", "{tmp}/mine.json", "--against", "{table}"), "give one of --against, an atlas, and --heads, a "
             "list of heads."),
    "all": (("--heads", "{tmp}/mine.json", "--all"), "--tolerance and --all are for the heads of an atlas; leave them "
            "out with --heads."),
    "top of an atlas": (("--against", "{table}", "--top", "3"), "--top is for a list of heads; leave it out without "
                        "--heads."),
    "no list": (("--heads", "{tmp}/no.json"), "there is no file {tmp}/no.json; name a list of heads, such as "
                "heads.json of `headscope export`."),
    "a layer too many": (("--heads", "{tmp}/far.json"), "entry 1 of {tmp}/far.json names the layer 8, and the model "
                         "has 3 layers; give the list of this model."),
    "another size": (("--heads", "{tmp}/duo.tsv"), "{tmp}/duo.tsv is of a model of 1 layers, and this model has 3; "
                     "give the list of this model."),
    "another attention type": (("--heads", "{tmp}/cross.json"), "entry 1 of {tmp}/cross.json names a head of the "
                               "attention type 'cross', and the model has a single type; give the list of this model."),
    "a score that is not measured": (("--heads", "{tmp}/scores.json"), "{table} has no retrieval_accuracy, by which "
                                     "the heads of the list are ranked; measure it."),
    "no heads": (("--heads", "{tmp}/empty.json"), "{tmp}/empty.json has no heads to check; give a list that has."),
    "no score": (("--heads", "{tmp}/bare.json"), "{tmp}/bare.json does not say which score its heads have; export it "
                 "from an atlas."),
}  # fmt: skip


@pytest.fixture
def lists(tmp_path) -> Path:
    write_head_list(OBJ, tmp_path / "mine.json")
    write_head_list(HeadList(()), tmp_path / "empty.json")
    (tmp_path / "duo.tsv").write_text("0.5\t0.25\n")
    write_head_list(HeadList((HeadEntry(1, 1),)), tmp_path / "bare.json")
    for name, stored in (("far", {"7-0": [1]}), ("scores", {"0-0": [1]}), ("cross", [[0, 1]])):
        (tmp_path / f"{name}.json").write_text(json.dumps(stored))
    return tmp_path


@pytest.mark.parametrize("case", REFUSALS)
def test_what_cannot_be_ranked_is_one_sentence(run, table, lists, case: str) -> None:
    options, sentence = REFUSALS[case]
    names = {"tmp": lists, "table": table}
    code, said, complained = run("check", table, *(option.format(**names) for option in options))
    assert (code, said) == (2, "")
    assert complained == f"headscope: {sentence.format(**names)}\n"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("cross", "no corpus is generated for alignment_accuracy:predicting, which is measured for {path}; name one "
         "that has it as `corpus`."),
        ("mine", "no corpus is generated for relation_accuracy:obj, which is measured for {path}; name one that has it "
         "as `corpus`."),
    ],
)  # fmt: skip
def test_a_list_without_a_generated_corpus_needs_one(lists, name: str, sentence: str) -> None:
    path = lists / f"{name}.json"
    with pytest.raises(HeadscopeError) as caught:
        headscope.check(planted.plant(planted.RULES), heads=path)
    assert str(caught.value) == sentence.format(path=path)


def test_heads_of_two_directions_are_ranked_each_in_its_own(table) -> None:
    other = replace(OBJ.entries[1], direction="head_to_dependent")
    result = headscope.check(table, heads=replace(OBJ, entries=(OBJ.entries[0], other))).table
    values = heads.read_table(table)["relation_accuracy"].sel(relation="obj").transpose("direction", "layer", "head")
    expected = [rank(values.sel(direction=name).values)[place] for name, place in (
        ("dependent_to_head", (1, 2)), ("head_to_dependent", (0, 1)),
    )]  # fmt: skip
    assert result["rank"].values.tolist() == expected
    assert result["compared_heads"].values.tolist() == [1, 1]


def test_a_table_of_runs_has_no_heads_to_rank(table) -> None:
    runs = heads.read_table(table).expand_dims(run=["1", "2"])
    with pytest.raises(HeadscopeError, match=r" holds 2 runs; rank the heads of a list in the table of one model\.$"):
        headscope.check(runs, heads=OBJ)


def test_a_corpus_without_the_annotation_or_the_row_is_refused(lists) -> None:
    model = planted.plant(planted.RULES)
    with pytest.raises(HeadscopeError, match=r"^the reducer `retrieval` needs spans of needles and answers"):
        headscope.check(model, heads=lists / "scores.json", corpus=LONG)
    unknown = replace(OBJ, entries=(replace(OBJ.entries[0], row="iobj"),))
    with pytest.raises(
        HeadscopeError, match=r" has no relation 'iobj' of relation_accuracy, by which the heads of the "
    ):
        headscope.check(model, heads=unknown, corpus=planted.documents(29))


@pytest.mark.parametrize(
    ("name", "content", "corpus", "key"),
    [
        ("a.tsv", "0.5\t0.25\n", "needles:100", "streaming_kept"),
        ("a.json", '{"0-0": [1]}', "needles:100", "retrieval_accuracy:first token"),
    ],
)
def test_a_list_of_another_tool_has_its_score_and_a_generated_corpus(
    tmp_path, name: str, content: str, corpus: str, key: str
) -> None:
    path = tmp_path / name
    path.write_text(content)
    listed = open_list(path)
    assert read_corpus(listed, None, None, None, str(path)).name == corpus
    assert [row.key for row in list_rows(listed)] == [key]


@pytest.mark.parametrize("corpus", ["grammar:30", "needles", "repeats:5:2"])
def test_a_list_of_ours_is_ranked_on_the_generated_corpus_that_it_names(corpus: str) -> None:
    assert read_corpus(replace(OBJ, corpus=corpus), None, None, None, "a.json").name == corpus
