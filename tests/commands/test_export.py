"""`headscope export`: the list of an atlas and of a table, formats of others, a model card, and refusals."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import headscope
import tiny
from headscope import HeadscopeError, heads
from headscope.commands.export.request import DUO_ATTENTION, FILES, HEADS, MODEL_CARD
from headscope.headlists import duo_attention
from headscope.headlists.list_formats import FOREIGN, read_heads
from headscope.view.listed_heads import list_heads
from headscope.view.model_card import render_model_card


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> Path:
    """A head table of a tiny model, in the folder of an atlas."""
    folder = tmp_path_factory.mktemp("made")
    model = tiny.save(folder / "model")
    headscope.measure(str(model), "grammar:211", ["relations"], permutations=0, out=folder / "atlas" / "heads.nc")
    return folder / "atlas" / "heads.nc"


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.full
def test_an_atlas_its_table_and_its_list_give_the_same_list(run, table, tmp_path) -> None:
    code, said, complained = run("export", table.parent, "--top", 3)
    assert (code, complained) == (0, "")
    expected = list_heads(heads.read_table(table), 3)
    assert read_heads("heads.json") == expected
    count, rows = len(expected.entries), len(expected.keys)
    assert count == 4 * rows
    assert said == f"Wrote heads.json: {count} heads of {rows} rows.\n"
    for source in (table, "heads.json"):
        assert run("export", source, "--top", 3, "-o", "again.json")[0] == 0
        assert Path("again.json").read_bytes() == Path("heads.json").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again.json", "heads.json"]


def test_the_function_does_the_same_and_takes_what_is_in_memory(table, tmp_path) -> None:
    loaded = heads.read_table(table)
    listed = headscope.export(loaded, out=tmp_path / "heads.json")
    assert listed == headscope.export(table.parent) == list_heads(loaded, 5)
    assert headscope.export(listed) == listed == headscope.export(tmp_path / "heads.json")
    assert headscope.export(listed, row="det").keys == ["relation_accuracy:det"]


def test_formats_of_others_hold_one_row(run, table) -> None:
    loaded = heads.read_table(table)
    row = loaded.sel(relation="det")
    values = row["relation_accuracy"].sel(direction=row["reported_direction"].item()).transpose("layer", "head").values
    for format in ("duo-attention", "retrieval-heads"):
        code, said, _ = run("export", table, "--as", format, "--row", "det")
        assert (code, said) == (0, f"Wrote {FILES[format]}: 10 heads of 1 row.\n")
    assert np.array_equal(np.loadtxt("full_attention_heads.tsv", delimiter="\t"), values)
    scores = json.loads(Path("retrieval_heads.json").read_text())
    assert scores == {f"{layer}-{head}": [values[layer, head]] for layer in range(2) for head in range(5)}
    shared = ("--key-value-heads", 1, "-o", "groups.tsv")
    assert run("export", table, "--as", "duo-attention", "--row", "det", *shared)[0] == 0
    groups = np.loadtxt("groups.tsv", delimiter="\t")
    assert np.array_equal(groups, values.max(1))
    assert run("export", table, "--as", "alignment-heads", "--row", "det", "--top", 3)[0] == 0
    pairs = json.loads(Path("alignment_heads.json").read_text())
    assert pairs == [[entry.layer - 1, entry.head - 1] for entry in list_heads(loaded, 3).select("det").entries]


def test_what_was_read_of_others_is_written_as_our_list_and_back(run, tmp_path) -> None:
    Path("theirs.json").write_text('{"alignment_heads": [[3, 1], [4, 2]], "max_length": 448}')
    assert run("export", "theirs.json", "-o", "ours.json")[0] == 0
    assert run("export", "ours.json", "--as", "alignment-heads", "-o", "back.json")[0] == 0
    assert json.loads(Path("back.json").read_text()) == [[3, 1], [4, 2]]


def test_a_model_card_is_the_same_from_the_table_and_from_its_list(run, table) -> None:
    assert run("export", table, "--as", "model-card")[0] == 0
    loaded = heads.read_table(table)
    assert Path("heads.md").read_text() == render_model_card(list_heads(loaded, 0))
    run("export", table)
    assert run("export", "heads.json", "--as", "model-card", "-o", "again.md")[0] == 0
    assert Path("again.md").read_bytes() == Path("heads.md").read_bytes()


REFUSALS = {
    "no format": (("{table}", "--as", "tsv"), "--as is 'tsv'; give heads, duo-attention, retrieval-heads, "
                  "alignment-heads or model-card."),
    "groups of another format": (("{table}", "--key-value-heads", "5"), "the format 'heads' is of query heads; leave "
                                 "out --key-value-heads, or name duo-attention."),
    "no row": (("{table}", "--row", "gaze"), "the heads are not of one row 'gaze', and one is needed; name one with "
               "--row: {keys}."),
    "several rows": (("{table}", "--as", "duo-attention"), "the heads are of {count} rows, and one is needed; name one "
                     "with --row: {keys}."),
    "no source": (("nothing.json",), "there is no file nothing.json; name a list of heads, such as heads.json of "
                  "`headscope export`."),
    "no table": (("nothing.nc",), "there is no file nothing.nc; a head table is written by `headscope atlas`, "
                 "`headscope measure` or `headscope merge`."),
    "a list over itself": (("{made}/list.json", "-o", "{made}/list.json"), "{made}/list.json is read, and would be "
                           "overwritten; name another file as --out."),
    "no source by its length": (("x" * 300,), "{long} cannot be read (File name too long); check the name."),
    "a folder as file": (("{table}", "-o", "{tmp}"), "{tmp} is a folder; name a file to be written in it."),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSALS)
def test_bad_input_is_one_sentence_and_writes_nothing(run, table, tmp_path, case: str) -> None:
    command, sentence = REFUSALS[case]
    made = table.parents[1]
    headscope.export(table, out=made / "list.json") if not (made / "list.json").exists() else None
    places = {"table": table, "tmp": tmp_path, "made": made, "long": "x" * 300}
    code, said, complained = run("export", *(part.format(**places) for part in command))
    assert (code, said) == (2, "")
    keys = list_heads(heads.read_table(table)).keys
    named = f"{', '.join(keys[:12])} and {len(keys) - 12} more"
    assert complained == f"headscope: {sentence.format(**places, keys=named, count=len(keys))}\n"
    assert not [*tmp_path.iterdir()]


def test_the_formats_are_those_of_the_lists_of_heads() -> None:
    assert tuple(FILES) == (HEADS, *FOREIGN, MODEL_CARD)
    assert duo_attention.NAME == DUO_ATTENTION


def test_heads_are_exported_without_torch(table) -> None:
    script = f"import sys, headscope; headscope.export({str(table)!r}); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("False\n", 0), done.stderr


def test_a_table_without_reported_heads_is_named(tmp_path) -> None:
    table = headscope.measure(str(tiny.save(tmp_path / "model")), "grammar:23", ["surface"])
    heads.write_table(table, tmp_path / "surface.nc")
    with pytest.raises(HeadscopeError) as caught:
        headscope.export(tmp_path / "surface.nc")
    assert str(caught.value) == (
        f"{tmp_path / 'surface.nc'} has no reported heads, so there is nothing to list; measure a statistic by which "
        "heads are chosen (`headscope list reducers`), on more texts."
    )
    with pytest.raises(HeadscopeError, match=r"^`top` is -1; give 0 or more\.$"):
        headscope.export(tmp_path / "surface.nc", top=-1)
