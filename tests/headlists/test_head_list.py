"""The list of heads and its file: the same after a round trip, and refused in a sentence where it is not as written."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from headscope.errors import HeadscopeError, TableError
from headscope.headlists import HeadEntry, HeadList, ListedModel, read_head_list, write_head_list
from headscope.headlists.head_list import GROUP

MODEL = ListedModel("made/up", "ab" * 32, 3, 5, None)
ENTRIES = (
    HeadEntry(2, 3, 1 / 3, 0.1 + 0.2, 0.4, 149, True, "stands out", "relation_accuracy", "obj", "obj",
              "dependent_to_head", "", "offset −2", 0.25),
    HeadEntry(3, 5, 0.2, 0.1, 0.3, 307, score="relation_accuracy", row="obj", title="obj"),
    HeadEntry(1, 1, 0.7, score="scope_f1", title="scope, „naïve“", attention_type="cross", values=(0.6, 0.8)),
    HeadEntry(3, 1),
)  # fmt: skip
HEADS = HeadList(ENTRIES, MODEL, "head", "a b.conllu", "cd" * 32, "0.1.0", "2026-11-25T00:01:51+00:00", "In halves.")


def test_a_list_is_the_same_after_a_round_trip_and_so_is_its_file(tmp_path) -> None:
    path = write_head_list(HEADS, tmp_path / "new" / "heads.json")
    assert read_head_list(path) == HEADS
    assert write_head_list(read_head_list(path), tmp_path / "again.json").read_bytes() == path.read_bytes()
    assert [file.name for file in path.parent.iterdir()] == ["heads.json"]


def test_the_file_says_what_it_is_and_counts_from_1(tmp_path) -> None:
    stored = json.loads(write_head_list(HEADS, tmp_path / "heads.json").read_text(encoding="utf-8"))
    assert [stored[name] for name in ("format", "version", "unit", "headscope")] == [
        "headscope heads",
        1,
        "head",
        "0.1.0",
    ]
    assert stored["model"] == {
        "name": "made/up", "weights_sha256": "ab" * 32, "layers": 3, "heads": 5, "key_value_heads": None
    }  # fmt: skip
    assert stored["corpus"] == {"name": "a b.conllu", "sha256": "cd" * 32}
    assert stored["heads"][1] == {
        "layer": 3, "head": 5, "value": 0.2, "lower": 0.1, "upper": 0.3, "count": 307, "score": "relation_accuracy",
        "row": "obj", "title": "obj",
    }  # fmt: skip
    assert stored["heads"][3] == {"layer": 3, "head": 1, "value": None}


def test_fields_that_are_not_known_are_left_alone(tmp_path) -> None:
    path = write_head_list(HEADS, tmp_path / "heads.json")
    stored = json.loads(path.read_text())
    stored["heads"][0]["remark"] = stored["remark"] = "mine"
    path.write_text(json.dumps(stored))
    assert read_head_list(path) == HEADS


def test_a_full_disk_leaves_what_was_there(tmp_path, monkeypatch) -> None:
    path = write_head_list(HEADS, tmp_path / "heads.json")
    before = path.read_bytes()

    def full(*arguments: object, **more: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(HeadscopeError) as caught:
        write_head_list(replace(HEADS, corpus="other"), path)
    assert str(caught.value) == (
        f"{path} could not be written (No space left on device); free some space or choose another place."
    )
    assert path.read_bytes() == before
    assert [*tmp_path.iterdir()] == [path]


@pytest.mark.parametrize("row", ["obj", "relation_accuracy:obj"])
def test_a_row_is_selected_with_or_without_its_score(row: str) -> None:
    assert HEADS.select(row) == replace(HEADS, entries=ENTRIES[:2])


def test_the_only_row_needs_no_name() -> None:
    assert replace(HEADS, entries=ENTRIES[:2]).select(None).entries == ENTRIES[:2]
    assert HEADS.select("scope_f1").entries == ENTRIES[2:3]


@pytest.mark.parametrize(("row", "fault"), [(None, "of 3 rows"), ("nsubj", "not of one row 'nsubj'")])
def test_a_row_that_cannot_be_told_is_refused(row: str | None, fault: str) -> None:
    with pytest.raises(TableError) as caught:
        HEADS.select(row)
    named = "relation_accuracy:obj, scope_f1, "
    assert str(caught.value) == f"the heads are {fault}, and one is needed; name one with --row: {named}."


def test_many_rows_are_not_all_named() -> None:
    entries = tuple(HeadEntry(1, 1, score="a", row=f"r{number}") for number in range(13))
    with pytest.raises(TableError, match=r": a:r0, a:r1, .*a:r11 and 1 more\.$"):
        HeadList(entries).select(None)
    with pytest.raises(TableError, match=r"^the heads are of no row, and one is needed; .* there is none\.$"):
        HeadList(()).select(None)


def change(*path: object, value: object = None, delete: bool = False):
    """A change of what is stored at a path."""

    def edit(stored: dict) -> object:
        inner = stored
        for step in path[:-1]:
            inner = inner[step]
        if delete:
            del inner[path[-1]]
        else:
            inner[path[-1]] = value
        return stored

    return edit


REFUSALS = {
    "a list": (lambda stored: [1], "{path} is no list of heads, for its field format is not 'headscope heads'; write "
               "one with `headscope export`."),
    "another format": (change("format", value="x"), "{path} is no list of heads, for its field format is not "
                       "'headscope heads'; write one with `headscope export`."),
    "a later version": (change("version", value=2), "{path} is a list of heads of version '2', and this headscope "
                        "reads version 1; export it again, or use the version that wrote it."),
    "no version": (change("version", delete=True), "{path} is a list of heads of version 'None', and this headscope "
                   "reads version 1; export it again, or use the version that wrote it."),
    "no heads": (change("heads", delete=True), "{path} lacks the field 'heads'; add it, or export the list again."),
    "no model": (change("model", delete=True), "{path} lacks the field 'model'; add it, or export the list again."),
    "no corpus": (change("corpus", delete=True), "{path} lacks the field 'corpus'; add it, or export the list again."),
    "heads that are no list": (change("heads", value={}), "{path} has '{{}}' as 'heads', which must be a JSON array; "
                               "correct it."),
    "another unit": (change("unit", value="layer"), "{path} has '\"layer\"' as 'unit', which must be 'head' or "
                     "'key_value_group'; correct it."),
    "a model of no layers": (change("model", "layers", value=0), "the model of {path} has '0' as 'layers', which must "
                             "be a whole number from 1 on, or null; correct it."),
    "a corpus without text": (change("corpus", "name", value=3), "the corpus of {path} has '3' as 'name', which must "
                              "be a text that UTF-8 can hold; correct it."),
    "a number as version": (change("headscope", value=1), "{path} has '1' as 'headscope', which must be a text "
                            "that UTF-8 can hold; correct it."),
    "an entry that is no object": (change("heads", 1, value=[3, 5]), "entry 2 of {path} is '[3, 5]', and an entry is a "
                                   "JSON object; correct it."),
    "no layer": (change("heads", 2, "layer", delete=True), "entry 3 of {path} lacks the field 'layer'; add it, or "
                 "export the list again."),
    "no value": (change("heads", 0, "value", delete=True), "entry 1 of {path} lacks the field 'value'; add it, or "
                 "export the list again."),
    "layer 0": (change("heads", 3, "layer", value=0), "entry 4 of {path} has '0' as 'layer', which must be a whole "
                "number from 1 on; correct it."),
    "half a head": (change("heads", 0, "head", value=1.5), "entry 1 of {path} has '1.5' as 'head', which must be a "
                    "whole number from 1 on; correct it."),
    "true as a head": (change("heads", 0, "head", value=True), "entry 1 of {path} has 'true' as 'head', which must be "
                       "a whole number from 1 on; correct it."),
    "a text as value": (change("heads", 1, "value", value="much"), "entry 2 of {path} has '\"much\"' as 'value', which "
                        "must be a finite number or null; correct it."),
    "an infinite end": (change("heads", 1, "upper", value=float("inf")), "entry 2 of {path} has 'Infinity' as 'upper', "
                        "which must be a finite number or null; correct it."),
    "a negative count": (change("heads", 1, "count", value=-1), "entry 2 of {path} has '-1' as 'count', which must be "
                         "a whole number from 0 on, or null; correct it."),
    "a flag that is none": (change("heads", 0, "heldout", value=1), "entry 1 of {path} has '1' as 'heldout', which "
                            "must be true or false; correct it."),
    "values that are none": (change("heads", 2, "values", value=[1, None]), "entry 3 of {path} has '[1, null]' as "
                             "'values', which must be a list of finite numbers; correct it."),
    "half a character": (change("heads", 0, "title", value="\ud800"), "entry 1 of {path} has '\"\\\\ud800\"' as "
                         "'title', which must be a text that UTF-8 can hold; correct it."),
    "a layer too many": (change("heads", 1, "layer", value=4), "entry 2 of {path} names the layer 4, and the model has "
                         "3 layers; give the list of this model."),
    "an interval that ends before it begins": (change("heads", 1, "lower", value=0.5), "entry 2 of {path} has 0.5 as "
                                               "'lower', which is above its 'upper', 0.3; correct them."),
    "a value that no float holds": (change("heads", 3, "value", value=10**400), "entry 4 of {path} has "
                                    f"'1{'0' * 59}' ... as 'value', which must be a finite number or null; correct "
                                    "it."),
    "a head twice in a row": (change("heads", 1, value={"layer": 2, "head": 3, "value": 0.1, "row": "obj",
                                     "score": "relation_accuracy", "direction": "head_to_dependent"}),
                              "entry 2 of {path} is the head 2-3 of the row 'relation_accuracy:obj' again, after entry "
                              "1; keep one of the two."),
    "a head twice without a row": (change("heads", 1, value={"layer": 3, "head": 1, "value": 0.1}), "entry 4 of "
                                   "{path} is the head 3-1 again, after entry 2; keep one of the two."),
    "a head too many": (change("heads", 1, "head", value=7), "entry 2 of {path} names the head 7, and the model has 5 "
                        "heads; give the list of this model."),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSALS)
def test_what_is_not_as_written_is_one_sentence(tmp_path, case: str) -> None:
    edit, sentence = REFUSALS[case]
    path = write_head_list(HEADS, tmp_path / "heads.json")
    path.write_text(json.dumps(edit(json.loads(path.read_text()))))
    with pytest.raises(TableError) as caught:
        read_head_list(path)
    assert str(caught.value) == sentence.format(path=path)


def test_one_head_may_be_in_several_rows_and_attention_types(tmp_path) -> None:
    heads = HeadList((
        HeadEntry(1, 1, 0.5, score="a", row="obj"), HeadEntry(1, 1, 0.5, score="a", row="det"),
        HeadEntry(1, 1, 0.5, score="b", row="obj"), HeadEntry(1, 1, 0.5, score="a", row="obj", attention_type="cross"),
    ))  # fmt: skip
    assert read_head_list(write_head_list(heads, tmp_path / "heads.json")) == heads


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        (HeadEntry(3, 1), "entry 5 of {path} is the head 3-1 again, after entry 4; keep one of the two."),
        (HeadEntry(1, 2, 0.2, 0.3, 0.1), "entry 5 of {path} has 0.3 as 'lower', which is above its 'upper', 0.1; "
         "correct them."),
    ],
)  # fmt: skip
def test_a_list_that_would_not_be_read_again_is_not_written(tmp_path, more: HeadEntry, fault: str) -> None:
    path = tmp_path / "heads.json"
    with pytest.raises(TableError) as caught:
        write_head_list(replace(HEADS, entries=(*ENTRIES, more)), path)
    assert str(caught.value) == fault.format(path=path)
    assert not path.exists()


def test_a_group_too_many_is_refused(tmp_path) -> None:
    heads = HeadList((HeadEntry(1, 3, 0.5),), ListedModel(layers=2, heads=11, key_value_heads=2), unit=GROUP)
    path = write_head_list(heads, tmp_path / "heads.json")
    with pytest.raises(TableError) as caught:
        read_head_list(path)
    sentence = f"entry 1 of {path} names the head 3, and the model has 2 key/value heads; give the list of this model."
    assert str(caught.value) == sentence


def test_a_file_that_is_none_or_no_json_is_one_sentence(tmp_path) -> None:
    path = tmp_path / "heads.json"
    with pytest.raises(TableError) as caught:
        read_head_list(path)
    assert (
        str(caught.value) == f"there is no file {path}; name a list of heads, such as heads.json of `headscope export`."
    )
    path.write_text('{"format": ')
    with pytest.raises(TableError) as caught:
        read_head_list(path)
    reason = "Expecting value: line 1 column 12 (char 11)"
    assert str(caught.value) == f"{path} is not JSON ({reason}); copy it again, or export it again."
