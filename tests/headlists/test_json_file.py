"""The JSON of a list of heads: each key once, and one value in a file."""

import pytest

from headscope.errors import TableError
from headscope.headlists.json_file import load_json

TWICE = (
    "{path} has the key {key} twice in one object, which ends on line {line}, and one of the two would be lost; keep "
    "one of them."
)
BEHIND = "{path} goes on after its JSON value, on line {line}; keep one value in the file."


@pytest.mark.parametrize(
    ("content", "key", "line"),
    [
        ('{"2-4": [1], "2-4": [0]}', "'2-4'", 1),
        ('{"heads": [\n {"layer": 1, "head": 2},\n {"layer": 2, "layer": 1}\n]}\n', "'layer'", 3),
        ('{\n "model": {\n  "name": "a",\n  "name": "b"\n },\n "heads": []\n}', "'name'", 5),
        ('[{"a": 1},\n{"b": {"a": 1},\n"b": {"c": 2,\n"c": 2}\n}]', "'c'", 4),
        ('{"' + "k" * 70 + '": 1, "' + "k" * 70 + '": 1}', f"'{'k' * 60}' ...", 1),
    ],
    ids=["one line", "an entry", "over lines", "the first that ends", "a long key"],
)
def test_a_key_that_is_there_twice_is_named_with_its_line(tmp_path, content: str, key: str, line: int) -> None:
    path = tmp_path / "heads.json"
    path.write_text(content)
    with pytest.raises(TableError) as caught:
        load_json(path)
    assert str(caught.value) == TWICE.format(path=path, key=key, line=line)


def test_a_key_may_be_in_several_objects(tmp_path) -> None:
    path = tmp_path / "heads.json"
    path.write_text('[{"layer": 1}, {"layer": {"layer": 2}}]')
    assert load_json(path) == [{"layer": 1}, {"layer": {"layer": 2}}]


@pytest.mark.parametrize(
    ("content", "line"), [('{"0-0": [1]}\n{"0-0": [1]}\n', 2), ("[[2, 2]] [[3, 0]]", 1), ("{}\n\n\nmore", 4)]
)
def test_a_second_value_is_refused(tmp_path, content: str, line: int) -> None:
    path = tmp_path / "heads.json"
    path.write_text(content)
    with pytest.raises(TableError) as caught:
        load_json(path)
    assert str(caught.value) == BEHIND.format(path=path, line=line)
