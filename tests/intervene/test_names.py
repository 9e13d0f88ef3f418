"""Heads that were not meant: what names no head is refused, and a table says within which edits it was measured."""

import io
import re
from pathlib import Path

import numpy as np
import pytest
import torch
import xarray as xr
from rich.console import Console

import headscope
import tiny
from headscope.analyse.comparable import check_before_after
from headscope.capture.model.model import Model
from headscope.commands.lesions.request import Lesions
from headscope.corpora import Shard
from headscope.errors import HeadscopeError, TableError
from headscope.heads import read_table, write_table
from headscope.intervene import edit
from headscope.intervene.head_names import list_names
from headscope.intervene.selected_heads import select_heads
from headscope.runner import Run, ShardSums, measure, merge_shards
from headscope.view.check_report import print_check
from headscope.view.table_report import print_table

DOCUMENTS = tiny.documents_with_roles(5)

NOT_NAMES = {
    "the form of prune_heads": {2: [0]},
    "a dict of names": {"2-1": True},
    "a pair": (2, 1),
    "a pair of NumPy's": (np.int64(2), np.int64(1)),
    "pairs": [(2, 1), (1, 2)],
    "nested names": [["2-1"], ["1-2"]],
    "places": np.argwhere(np.eye(2))[0],
    "many places": np.argwhere(np.eye(2)),
    "a mask": np.eye(2, dtype=bool),
    "a tensor": torch.tensor([2, 1]),
    "a truth value": True,
    "truth values": [True, False],
    "a real number": 2.1,
    "real numbers": [2.0],
    "nothing": None,
}
"""What other libraries take for heads, or NumPy gives."""


def make(family: str = "bert") -> Model:
    module, tokenizer = tiny.make(family)
    return Model.from_module(module, tokenizer, name=family)


@pytest.mark.parametrize("names", NOT_NAMES.values(), ids=NOT_NAMES)
def test_what_names_no_head_is_refused_with_the_right_spelling(names) -> None:
    with (
        pytest.raises(HeadscopeError, match=r"^heads are named '3-1', layer-head, both counted from 1, and .* came; "),
        headscope.disable(make(), names),
    ):
        pass
    with pytest.raises(HeadscopeError, match=r"^heads are named '3-1'"):
        _ = Lesions("no-model", "no-task", {"obj": names}).heads


@pytest.mark.parametrize(
    ("names", "advice"),
    [
        ((3, 1), "write '3-1' for a head, ['3', '1'] for two layers."),
        ((np.int64(2), np.int64(11)), "write '2-11' for a head, ['2', '11'] for two layers."),
        ({2: [0]}, "write each by its name, as in ['3-1', '4-10'], or as in ['L2H0'], which counts from 0."),
        ([(3, 1)], "write them so, as in ['3-1', '4-10'], and a whole layer as '3'."),
    ],
)
def test_what_was_meant_is_spelt_out(names, advice: str) -> None:
    with pytest.raises(HeadscopeError, match=f"came; {re.escape(advice)}$"):
        list_names(names)


@pytest.mark.parametrize("names", [0, -1, [0], [1, -1], (1, 0, 2), "0", "0-1", "1-0", "-1", "2.1"])
def test_heads_and_layers_count_from_one(names) -> None:
    with pytest.raises(HeadscopeError, match=r"counted from 1|1-1"):
        select_heads(make(), names)


@pytest.mark.parametrize("argument", ["heads", "layers"])
@pytest.mark.parametrize("names", [{2: [0]}, [(2, 1)], True, np.array([2, 1])])
def test_effects_are_of_heads_that_were_named(names, argument: str, tmp_path: Path) -> None:
    with pytest.raises(HeadscopeError, match=r"^heads are named '3-1'"):
        headscope.measure_effects(make(), "no-task", tmp_path / "effects", **{argument: names}, progress=False)
    assert not (tmp_path / "effects").exists()


def test_numbers_are_layers_where_they_cannot_be_heads() -> None:
    assert list_names((2, 1), of_layers=True) == list_names([2, 1]) == list_names(iter([np.int64(2), 1])) == ["2", "1"]
    assert list_names(("2-1", "1-3")) == list_names(np.array(["2-1", "1-3"])) == ["2-1", "1-3"]
    assert list_names(range(1, 3)) == list_names({1: "a", 2: "b"}.keys()) == ["1", "2"]


@pytest.mark.parametrize("name", [(1, 2), 1, {1: [2]}, None, 1.2])
def test_a_head_of_a_table_has_a_name(name) -> None:
    table = measure(make(), DOCUMENTS, ["surface"])
    with pytest.raises(TableError, match=f"^{re.escape(repr(name))} is not a head; write layer-head, both counted"):
        headscope.head(table, name)


EDITS = {
    "uniform": (lambda model: headscope.disable(model, "2-4,1-3"), "uniform in place of 1-3, 2-4"),
    "a layer": (lambda model: headscope.disable(model, ["2"], "zero"), "zero in place of 2"),
    "shuffle": (lambda model: edit.shuffle(model, "2-1", step=3), "shuffle by 3 in place of 2-1"),
    "cut": (lambda model: edit.cut(model, "2-1", [(5, 2)]), "attention without the edges [(5, 2)] in place of 2-1"),
}


@pytest.mark.parametrize("name", EDITS)
def test_a_table_says_within_which_edits_it_was_measured(name: str, tmp_path: Path) -> None:
    model, (change, description) = make(), EDITS[name]
    intact = measure(model, DOCUMENTS, ["surface"])
    with change(model):
        table = measure(model, DOCUMENTS, ["surface"])
    assert table.attrs["edited"] == description
    assert "edited" not in intact.attrs
    assert "edited" not in measure(model, DOCUMENTS, ["surface"]).attrs
    assert read_table(write_table(table, tmp_path / "heads.nc")).attrs["edited"] == description
    text = io.StringIO()
    print_table(table, Console(file=text, width=200))
    assert f"Measured while heads of the model were edited: {description}." in text.getvalue()


@pytest.mark.full
def test_an_atlas_of_an_edited_model_says_so_and_its_untrained_model_is_whole(tmp_path: Path) -> None:
    model, corpus = make(), "grammar:60"
    with headscope.disable(model, "1-1,2-3", "zero"):
        atlas = headscope.atlas(model, corpus, tmp_path, permutations=0, examples=0, roles=False)
    untrained = read_table(tmp_path / "untrained.nc")
    assert atlas.table.attrs["edited"] == "zero in place of 1-1, 2-3"
    assert "edited" not in untrained.attrs
    sentence = "Measured while heads of the model were edited: zero in place of 1-1, 2-3."
    assert sentence in (tmp_path / "atlas.html").read_text()
    intact = headscope.atlas(model, corpus, permutations=0, examples=0, roles=False)
    whole, edited = (each.table["untrained_accuracy"].reset_coords(drop=True) for each in (intact, atlas))
    xr.testing.assert_equal(whole, edited)
    with headscope.explore(atlas, model=model, no_browser=True) as explorer:
        assert explorer.notes == (f"{sentence} The model reads the texts that you type as it is.",)
        assert sentence in explorer.page


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_an_untrained_model_is_made_while_heads_are_edited(implementation: str) -> None:
    module, tokenizer = tiny.make("bert")
    module.set_attn_implementation(implementation)
    model = Model.from_module(module, tokenizer)
    whole = measure(headscope.untrained_model(model), DOCUMENTS, ["surface"])
    with edit.zero(model, "1-1"):
        untrained = headscope.untrained_model(model)
        within = measure(untrained, DOCUMENTS, ["surface"])
    assert untrained.module.config._attn_implementation == implementation
    assert model.module.config._attn_implementation == implementation
    xr.testing.assert_equal(within, whole)


@pytest.mark.full
def test_a_page_does_not_wait_for_the_end_of_an_edit() -> None:
    """What is typed is answered by another thread, which would wait for the block to end."""
    model = make()
    atlas = headscope.atlas(model, "grammar:20", permutations=0, examples=0, roles=False)
    with headscope.disable(model, "1-1"), headscope.explore(atlas, model=model, no_browser=True) as explorer:
        (note,) = explorer.notes
        assert note == (
            "The page shows no text that you type while heads of the model are edited here: uniform in place of 1-1."
        )
        with pytest.raises(HeadscopeError, match=f"^there is no model behind this page: {re.escape(note)}$"):
            explorer.widget()


def test_a_check_says_within_which_edits_a_model_was_measured(tmp_path: Path) -> None:
    model = make()
    headscope.measure(model, "grammar:60", ["relations"], permutations=0, out=tmp_path / "whole.nc")
    with headscope.disable(model, "1-2", "zero"):
        headscope.measure(model, "grammar:60", ["relations"], permutations=0, out=tmp_path / "edited.nc")
    for new, old, side in (("whole", "edited", "old"), ("edited", "whole", "new")):
        checked = headscope.check(tmp_path / f"{new}.nc", tmp_path / f"{old}.nc", every=True).table
        text = io.StringIO()
        print_check(checked, Console(file=text, width=200))
        sentence = f"The {side} model was measured while its heads were edited: zero in place of 1-2."
        assert sentence in text.getvalue()


def test_a_mean_names_the_texts_that_it_is_of() -> None:
    model, sides = make(), []
    for documents in (DOCUMENTS, DOCUMENTS[:3]):
        with headscope.disable(model, "1-1", "mean", corpus=documents, by_position=True):
            sides.append(measure(model, DOCUMENTS, ["surface"]).attrs["edited"])
    assert sides[0] != sides[1]
    pattern = "mean by position over documents in memory, SHA-256 [0-9a-f]{12} in place of 1-1"
    assert all(re.fullmatch(pattern, side) for side in sides), sides


def test_an_edit_of_ones_own_and_nested_ones_are_said() -> None:
    model = make()
    with edit.zero(model, "1-1"), edit.capture_model(model).editing(halve):
        table = measure(model, DOCUMENTS, ["surface"])
    assert table.attrs["edited"] == f"zero in place of 1-1; an edit, {__name__}.halve"


def halve(z: torch.Tensor, layer) -> torch.Tensor:
    return z / 2


def test_attention_types_stand_before_the_heads() -> None:
    model = make("bart")
    with edit.zero(model, ["cross 1-2", "decoder 2"]):
        table = measure(model, DOCUMENTS, ["surface"])
    assert table.attrs["edited"] == "zero in place of cross 1-2, decoder 2"


def test_an_attention_type_alone_is_all_of_its_heads() -> None:
    model = make("bart")
    assert select_heads(model, " cross ") == select_heads(model, ["cross 1", "cross 2", "cross 3"])
    assert select_heads(model, "decoder 1-2,encoder") == select_heads(model, ["encoder 1", "encoder 2", "decoder 1-2"])
    assert select_heads(make(), "encoder") == select_heads(make(), [1, 2])


def test_sums_of_an_edited_model_are_not_those_of_the_model(tmp_path: Path) -> None:
    model, paths = make(), [tmp_path / "1.npz", tmp_path / "2.npz"]
    for number, path in enumerate(paths, start=1):
        with edit.zero(model, "1-1" if number == 1 else "1-2"):
            run = Run.open(model, DOCUMENTS, ["surface"]).select(Shard(number, 2))
            ShardSums.of_run(run, run.add_up()).write(path)
    with pytest.raises(HeadscopeError, match=r"of different runs \(they differ in edited, 'zero in place of"):
        merge_shards(paths)
    measure(model, DOCUMENTS, ["surface"], checkpoint=tmp_path / "sums.npz")
    with edit.zero(model, "1-1"), pytest.raises(HeadscopeError, match=r"was left by another run \(its edited differ"):
        measure(model, DOCUMENTS, ["surface"], checkpoint=tmp_path / "sums.npz", resume=True)


def test_an_edit_is_no_fine_tuning() -> None:
    model = make()
    before = measure(model, DOCUMENTS, ["surface"])
    after: xr.Dataset = before.assign_attrs(weights_sha256="another", edited="zero in place of 1-1")
    with pytest.raises(TableError, match="within zero in place of 1-1 and the table before within no edit"):
        check_before_after(before, after, None)
