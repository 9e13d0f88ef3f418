"""Files in which others keep heads: read and written so that nothing changes, and as their own readers take them."""

import json
from dataclasses import replace

import numpy as np
import pytest

from headscope.errors import TableError
from headscope.headlists import HeadEntry, HeadList, ListedModel, read_head_list, write_head_list
from headscope.headlists.head_list import GROUP, HEAD
from headscope.headlists.list_formats import FOREIGN, read_heads, render_heads

SHARES = np.random.default_rng(3).random((3, 5))
DETECTIONS = {"2-4": [0.9, 1 / 3, 0.25], "0-0": [0.0], "12-1": [1]}
PAIRS = [[2, 4], [0, 0], [12, 1]]


def write(tmp_path, name: str, text: str):
    path = tmp_path / name
    path.write_text(text)
    return path


@pytest.fixture
def matrix(tmp_path):
    """A file as DuoAttention writes it, with `numpy.savetxt`."""
    path = tmp_path / "full_attention_heads.tsv"
    np.savetxt(path, SHARES, delimiter="\t")
    return path


def test_a_file_of_duo_attention_is_the_same_after_a_round_trip(matrix) -> None:
    heads = read_heads(matrix)
    assert render_heads(heads, "duo-attention") == matrix.read_text()
    assert heads.unit == GROUP
    assert (heads.model.layers, heads.model.heads, heads.model.key_value_heads) == (3, None, 5)
    assert {(entry.layer, entry.head): entry.value for entry in heads.entries} == {
        (layer + 1, head + 1): SHARES[layer, head] for layer in range(3) for head in range(5)
    }
    assert all(entry.lower is None and entry.upper is None for entry in heads.entries)


def test_what_is_written_for_duo_attention_is_what_its_reader_loads(tmp_path, matrix) -> None:
    path = write(tmp_path, "again.tsv", render_heads(read_heads(matrix), "duo-attention"))
    assert np.array_equal(np.loadtxt(path, dtype=float, delimiter="\t"), SHARES)


def test_shares_outside_are_taken_for_the_nearer_end(tmp_path) -> None:
    path = write(tmp_path, "heads.tsv", "1.25\t-0.5\n0.5\t1e-3\n")
    assert [entry.value for entry in read_heads(path).entries] == [1, 0, 0.5, 0.001]


def test_groups_get_the_largest_value_of_their_query_heads() -> None:
    values = np.random.default_rng(5).random((3, 14))
    entries = tuple(
        HeadEntry(layer + 1, head + 1, float(values[layer, head])) for head in range(14) for layer in range(3)
    )
    heads = HeadList(entries, ListedModel(layers=3, heads=14))
    rows = [[float(cell) for cell in line.split("\t")] for line in render_heads(heads, "duo-attention", 7).splitlines()]
    assert np.array_equal(rows, values.reshape(3, 7, 2).max(-1))
    with pytest.raises(TableError) as caught:
        render_heads(heads, "duo-attention", 5)
    assert str(caught.value) == (
        "5 key/value heads cannot be shared by 14 heads; give a number that divides 14, which the configuration of the "
        "model has as num_key_value_heads."
    )


def test_retrieval_heads_are_the_same_after_a_round_trip(tmp_path) -> None:
    path = write(tmp_path, "llama.json", json.dumps(DETECTIONS))
    heads = read_heads(path)
    assert [(entry.layer, entry.head, entry.count) for entry in heads.entries] == [(3, 5, 3), (1, 1, 1), (13, 2, 1)]
    assert [entry.value for entry in heads.entries] == pytest.approx([float(np.mean(v)) for v in DETECTIONS.values()])
    assert heads.unit == HEAD
    again = render_heads(heads, "retrieval-heads")
    assert json.loads(again) == DETECTIONS
    assert again.count("\n") == 1  # whoever reads it takes the first line
    assert [*json.loads(again)] == [*DETECTIONS]


@pytest.mark.parametrize(
    "content", [PAIRS, {"alignment_heads": PAIRS, "begin_suppress_tokens": [220, 50257], "task_to_id": {}}]
)
def test_alignment_heads_are_the_same_after_a_round_trip(tmp_path, content: object) -> None:
    heads = read_heads(write(tmp_path, "generation_config.json", json.dumps(content)))
    assert [entry.place for entry in heads.entries] == ["cross 3-5", "cross 1-1", "cross 13-2"]
    assert all(entry.value is None for entry in heads.entries)
    assert json.loads(render_heads(heads, "alignment-heads")) == PAIRS


@pytest.mark.parametrize("format", FOREIGN)
def test_lists_of_others_are_the_same_in_our_own_file(tmp_path, matrix, format: str) -> None:
    contents = {"retrieval-heads": DETECTIONS, "alignment-heads": PAIRS}
    path = matrix
    if format in contents:
        path = write(tmp_path, "other.json", json.dumps(contents[format]))
    heads = read_heads(path)
    ours = write_head_list(heads, tmp_path / "heads.json")
    assert read_heads(ours) == read_head_list(ours) == heads
    assert render_heads(read_heads(ours), format) == render_heads(heads, format)


REFUSALS = {
    "an empty table": ("a.tsv", "", "{path} is empty; a file of DuoAttention has a line of numbers for each layer."),
    "a short line": ("a.tsv", "0.5\t0.25\n0.5\n", "line 2 of {path} has 1 numbers and line 1 has 2; each layer must "
                     "have as many key/value heads, with tabs between them."),
    "nothing known": ("a.json", '{{"heads": 3}}', "{path} holds no list of heads; give one of the format 'headscope "
                      "heads', a table of DuoAttention (.tsv), the JSON of Retrieval_Head, or alignment heads of "
                      "Whisper."),
    "no head": ("a.json", '{{"2-4": [0.5], "2/5": [0.5]}}', "{path} has the key '2/5', and a head is layer-head, both "
                "counted from 0, such as '16-19'; correct it."),
    "no scores": ("a.json", '{{"2-4": []}}', "{path} has no scores for the head '2-4'; give a list of one number or "
                  "more."),
    "no pairs": ("a.json", "[]", "{path} has no alignment heads; give a list of pairs, such as [[2, 2], [3, 0]]."),
    "null": ("a.json", '{{"alignment_heads": null}}', "{path} has no alignment heads; give a list of pairs, such as "
             "[[2, 2], [3, 0]]."),
    "texts": ("a.json", '[["2", "2"]]', "entry 1 of {path} is '[\"2\", \"2\"]', and an alignment head is a pair of "
              "numbers [layer, head], both counted from 0; correct it."),
    "true as a head": ("a.json", "[[2, true]]", "entry 1 of {path} is '[2, true]', and an alignment head is a pair of "
                       "numbers [layer, head], both counted from 0; correct it."),
    "a head twice": ("a.json", '{{"alignment_heads": [[2, 2], [3, 0], [2, 2]]}}', "entry 3 of {path} is the head "
                     "[2, 2] again, after entry 1; keep one of the two."),
    "a configuration with null": ("a.json", '{{"alignment_heads": null, "is_multilingual": true}}', "{path} is a "
                                  "configuration of a model without alignment_heads; give the generation_config.json "
                                  "of a Whisper model that has them, such as the model that this one was tuned from."),
    "a configuration of another model": ("a.json", '{{"eos_token_id": 2, "transformers_version": "5.23.0"}}', "{path} "
                                         "is a configuration of a model without alignment_heads; give the "
                                         "generation_config.json of a Whisper model that has them, such as the model "
                                         "that this one was tuned from."),
    "settings of DuoAttention": ("config.json", '{{"sink_size": 64, "recent_size": 256}}', "{path} has the settings of "
                                 "DuoAttention and no heads; give full_attention_heads.tsv of the same folder."),
    "patterns of MInference": ("a.json", '[{{"0": ["vertical_and_slash", 1000, 6096, 0.9]}}]', "{path} is a list of "
                               "sparse patterns of MInference, which has no scores of heads: its numbers are sizes of "
                               "a pattern and how well it fits; measure the heads with the reducer sparse_shapes, or "
                               "give a list with scores."),
    "three numbers": ("a.json", "[[2, 2], [3, 0, 1]]", "entry 2 of {path} is '[3, 0, 1]', and an alignment head is a "
                      "pair of numbers [layer, head], both counted from 0; correct it."),
    "a negative head": ("a.json", "[[2, -1]]", "entry 1 of {path} is '[2, -1]', and an alignment head is a pair of "
                        "numbers [layer, head], both counted from 0; correct it."),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSALS)
def test_what_a_format_does_not_have_is_one_sentence(tmp_path, case: str) -> None:
    name, content, sentence = REFUSALS[case]
    path = write(tmp_path, name, content.format())
    with pytest.raises(TableError) as caught:
        read_heads(path)
    assert str(caught.value) == sentence.format(path=path)


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ({"model_type": "whisper", "alignment_heads": [[0, 0], [10**30, 0]]}, f"'{10**30 + 1}-1'"),
        ({"0-0": [0.5], "0-100000": [0.5]}, "'1-100001'"),
    ],
)
def test_a_head_of_a_layer_that_no_model_has_is_refused(tmp_path, content: dict, name: str) -> None:
    path = write(tmp_path, "heads.json", json.dumps(content))
    with pytest.raises(TableError) as refused:
        read_heads(path)
    assert str(refused.value) == f"{path} has the head {name}, and no model has 100,000 layers or heads; correct it."


def test_a_list_of_key_value_heads_has_as_many_as_it_has(matrix) -> None:
    heads = read_heads(matrix)
    assert render_heads(heads, "duo-attention", 5) == matrix.read_text()
    with pytest.raises(TableError) as caught:
        render_heads(heads, "duo-attention", 1)
    assert str(caught.value) == (
        "the list has 5 key/value heads of a layer, and 1 were asked for; leave the number out."
    )


WHOLE = HeadList((HeadEntry(1, 1, 0.5), HeadEntry(1, 2, 0.25)), ListedModel(layers=1, heads=2))


@pytest.mark.parametrize(
    ("format", "heads", "sentence"),
    [
        ("duo-attention", replace(WHOLE, entries=WHOLE.entries[:1]), "the list has 1 of 2 heads, and DuoAttention "
         "needs a number for each; export from the atlas, which has them all."),
        ("duo-attention", replace(WHOLE, entries=(WHOLE.entries[0], HeadEntry(1, 2, 1.5))), "the head 1-2 has the "
         "value 1.5, and DuoAttention takes numbers from 0 to 1; export a score that is a share."),
        ("retrieval-heads", replace(WHOLE, entries=(HeadEntry(1, 2),)), "the head 1-2 has no value, and Retrieval_Head "
         "needs one for each; export a score."),
        ("retrieval-heads", replace(WHOLE, unit=GROUP), "the list is of key/value heads, and retrieval-heads is of "
         "query heads; export it as duo-attention."),
        ("alignment-heads", replace(WHOLE, entries=(HeadEntry(1, 2, attention_type="encoder"),)), "the head encoder "
         "1-2 is none of the cross-attention, of which alignment heads are; choose another row."),
    ],
)  # fmt: skip
def test_what_a_format_cannot_hold_is_one_sentence(format: str, heads: HeadList, sentence: str) -> None:
    with pytest.raises(TableError) as caught:
        render_heads(heads, format)
    assert str(caught.value) == sentence
