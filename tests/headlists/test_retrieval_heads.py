"""The JSON of Retrieval_Head as others write it: means, ranked pairs, spaces; each head once."""

import json

import pytest

from headscope.errors import TableError
from headscope.headlists.list_formats import read_heads, render_heads

RANKED = '["16-19", 0.9]; correct it.'


@pytest.mark.parametrize(
    ("content", "entries", "again"),
    [
        ('{"2-4": 0.75, "0-1": 0}', [(3, 5, 0.75, None), (1, 2, 0, None)], {"2-4": [0.75], "0-1": [0]}),
        ('[["2-4", 0.75], ["0-1", 0.5]]', [(3, 5, 0.75, None), (1, 2, 0.5, None)], {"2-4": [0.75], "0-1": [0.5]}),
        ('[["2-4", [0.5, 1]], ["0-1", [0]]]', [(3, 5, 0.75, 2), (1, 2, 0, 1)], {"2-4": [0.5, 1], "0-1": [0]}),
        ("[[[2, 4], 0.75], [[0, 1], 0.5]]", [(3, 5, 0.75, None), (1, 2, 0.5, None)], {"2-4": [0.75], "0-1": [0.5]}),
        ('{" 2-4": [0.75], "00 - 1 ": [0.5]}', [(3, 5, 0.75, 1), (1, 2, 0.5, 1)], {"2-4": [0.75], "0-1": [0.5]}),
    ],
    ids=["means", "ranked means", "ranked scores", "ranked pairs of numbers", "spaces"],
)
def test_other_ways_to_write_the_scores_are_read(tmp_path, content: str, entries: list, again: dict) -> None:
    path = tmp_path / "model.json"
    path.write_text(content)
    heads = read_heads(path)
    assert [(entry.layer, entry.head, entry.value, entry.count) for entry in heads.entries] == entries
    assert heads.keys == ["retrieval_score"]
    assert json.loads(render_heads(heads, "retrieval-heads")) == again


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ('{"0-0": [0.1], "0-0 ": [0.3]}', "entry 2 of {path} is the head 0-0 again, after entry 1; keep one of the "
         "two."),
        ('{"1-0": 1, "0-1": 1, "01-0": 1}', "entry 3 of {path} is the head 1-0 again, after entry 1; keep one of the "
         "two."),
        ('[["0-1", 0.3], ["2-3", 0.2], [[0, 1], 0.2]]', "entry 3 of {path} is the head 0-1 again, after entry 1; keep "
         "one of the two."),
        ('{"0-0": 1, "1_0-2": 1}', "{path} has the key '1_0-2', and a head is layer-head, both counted from 0, such as "
         "'16-19'; correct it."),
        ('{"0-0": 1, "\u0661-2": 1}', "{path} has the key '\u0661-2', and a head is layer-head, both counted from 0, "
         "such as '16-19'; correct it."),
        ('{"0-0": 1, "0--2": 1}', "{path} has the key '0--2', and a head is layer-head, both counted from 0, such as "
         "'16-19'; correct it."),
        ('{"2-4": ["much"]}', "{path} has '\"much\"' as a score of the head '2-4', which must be a finite number; "
         "correct it."),
        ('{"2-4": [0.5, Infinity]}', "{path} has 'Infinity' as a score of the head '2-4', which must be a finite "
         "number; correct it."),
        ('{"2-4": NaN}', "{path} has 'NaN' as a score of the head '2-4', which must be a finite number; correct it."),
        ('{"2-4": true}', "{path} has 'true' as a score of the head '2-4', which must be a finite number; correct it."),
        ('{"2-4": null}', "{path} has 'null' as a score of the head '2-4', which must be a finite number; correct it."),
        ('{"2-4": [1e308, 1e308]}', "{path} has scores of the head '2-4' that are too large to have a mean; correct "
         "them."),
        ('[["2-4", 0.5], ["3-0"]]', "entry 2 of {path} is '[\"3-0\"]', and a ranked head is a pair of the head and its "
         f"score, such as {RANKED}"),
        ('[["2-4", 0.5], [[3, -1], 0.2]]', "entry 2 of {path} is '[[3, -1], 0.2]', and a ranked head is a pair of the "
         f"head and its score, such as {RANKED}"),
    ],
)  # fmt: skip
def test_what_is_no_score_of_a_head_is_one_sentence(tmp_path, content: str, sentence: str) -> None:
    path = tmp_path / "model.json"
    path.write_text(content)
    with pytest.raises(TableError) as caught:
        read_heads(path)
    assert str(caught.value) == sentence.format(path=path)


def test_two_heads_in_a_list_of_their_own_are_no_head_and_its_scores(tmp_path) -> None:
    path = tmp_path / "model.json"
    path.write_text("[[[2, 2], [3, 0]]]")
    with pytest.raises(TableError, match="and an alignment head is a pair of numbers"):
        read_heads(path)
