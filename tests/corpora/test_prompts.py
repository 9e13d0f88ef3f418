"""Prompts as JSON Lines: what is read, in which orders, and what is refused."""

import json
from pathlib import Path

import pytest

from headscope.corpora.prompts import Prompt, name_parts, read_prompts
from headscope.errors import CorpusError

LINE = {"documents": ["Ann lives in Bern.", "Eve lives in Rome."], "question": "Where does Eve live?"}


def write(folder: Path, *lines: object) -> Path:
    path = folder / "prompts.jsonl"
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return path


def test_a_line_is_a_prompt(tmp_path: Path) -> None:
    whole = {**LINE, "id": "rome", "system": " Be brief. ", "answer": "Rome", "gold": 2}
    source = read_prompts(write(tmp_path, LINE, "", {**whole, "documents": [" a\nb ", "c"]}))
    first, second = source.prompts
    assert first == Prompt("1", ("Ann lives in Bern.", "Eve lives in Rome."), "Where does Eve live?")
    assert second == Prompt("rome", ("a\nb", "c"), "Where does Eve live?", "Be brief.", "Rome", 2)
    assert source.slots == 2
    assert read_prompts(source) is source
    in_memory = read_prompts([LINE, {**whole, "gold": None}])
    assert [prompt.gold for prompt in in_memory.prompts] == [None, None]
    assert in_memory.sha256 != read_prompts([LINE]).sha256


def test_each_document_stands_once_in_each_slot() -> None:
    orders = Prompt("1", ("a", "b", "c", "d", "e"), "?").list_orders()
    assert orders[0] == (0, 1, 2, 3, 4)
    for row in (*orders, *zip(*orders, strict=True)):
        assert sorted(row) == [0, 1, 2, 3, 4]


def test_the_layout_has_labels_and_every_part() -> None:
    prompt = Prompt("1", ("a b", "c"), "why?", "Be brief.")
    pieces = prompt.lay_out((1, 0))
    assert "".join(text for _, text in pieces) == (
        "Instructions: Be brief.\n\nDocument 1: c\n\nDocument 2: a b\n\nQuestion: why?\n\nAnswer:"
    )
    assert {part: text for part, text in pieces if part != "template"} == {
        "system": "Be brief.", "document 1": "c", "document 2": "a b", "question": "why?",
    }  # fmt: skip
    assert {part for part, _ in pieces} == {*name_parts(2)} - {"own text"}
    assert Prompt("1", ("a b", "c"), "why?").lay_out((0, 1))[0] == ("template", "Document 1: ")


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("[", "is not JSON (Expecting value at character 2); each line needs one JSON object"),
        ([1], "has [1], which is not an object; each line needs one JSON object"),
        ({**LINE, "docs": []}, 'has the key "docs"; known are id, system, documents, question, answer, gold'),
        ({"question": "?"}, 'has the "documents" null; expected a list of 2 strings or more'),
        ({**LINE, "documents": ["one"]}, 'has the "documents" ["one"]; expected a list of 2 strings or more'),
        ({**LINE, "documents": ["one", " "]}, 'has the "documents" ["one", " "]; expected a list of 2 strings'),
        ({**LINE, "documents": ["one", 2]}, 'has the "documents" ["one", 2]; expected a list of 2 strings'),
        ({"documents": LINE["documents"]}, 'has no "question"; a prompt is {"documents"'),
        ({**LINE, "question": 3}, 'has the "question" 3; expected a string with at least one visible character'),
        ({**LINE, "gold": 3}, 'has the "gold" 3; expected the number of the document that holds the answer, from 1 to'),
        ({**LINE, "gold": 0}, 'has the "gold" 0; expected the number'),
        ({**LINE, "gold": True}, 'has the "gold" true; expected the number'),
        ({**LINE, "id": "1"}, 'has the id "1", which another prompt has; rename one of them.'),
        ({**LINE, "documents": ["a", "b", "c"]}, "has 3 documents, and the first prompt has 2; what a head reads from"),
    ],
)
def test_what_is_wrong_is_one_sentence_with_the_line(tmp_path: Path, line: object, sentence: str) -> None:
    path = write(tmp_path, LINE, line)
    with pytest.raises(CorpusError) as refused:
        read_prompts(path)
    assert str(refused.value).startswith(f"{path}:2 {sentence}")
    assert str(refused.value).count("\n") == 0


def test_no_file_and_no_line(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"^there is no file .*nowhere\.jsonl; give prompts as JSON Lines"):
        read_prompts(tmp_path / "nowhere.jsonl")
    with pytest.raises(CorpusError, match=r"prompts\.jsonl has no prompt; each line needs one JSON object"):
        read_prompts(write(tmp_path, ""))
    with pytest.raises(CorpusError, match=r"^prompt 2 has no \"question\""):
        read_prompts([LINE, {"documents": ["a", "b"]}])


def test_the_prompts_of_the_documentation_hold_their_answers() -> None:
    source = read_prompts(Path(__file__).parents[2] / "docs" / "howto" / "prompts.jsonl")
    assert (len(source.prompts), source.slots) == (12, 4)
    for prompt in source.prompts:
        holding = [number for number, text in enumerate(prompt.documents, start=1) if prompt.answer in text]
        assert holding == [prompt.gold], prompt.id
