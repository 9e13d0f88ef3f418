"""Minimal pairs: what a line becomes, what is refused in which sentence, and BLiMP itself."""

import json
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from headscope.corpora import Document, MinimalPair, read_minimal_pairs
from headscope.corpora import read as read_corpus
from headscope.corpora.blimp import read, read_pairs, recognise
from headscope.corpora.written_text import WrittenText
from headscope.errors import CorpusError
from refusals import refusal

FILE = "agreement.jsonl"
refused = partial(refusal, read_pairs)

OBJECT = (
    'each line needs one JSON object, such as {"sentence_good": "She left.", "sentence_bad": "She leave."}: correct '
    "the line, or name the format that the file is in."
)
SIDES = (
    'a minimal pair needs "sentence_good" and "sentence_bad", each a string with at least one visible character: '
    "correct the line, or leave it out."
)
STRING = "expected a string with at least one visible character: correct it, or leave it out."


def line(good: Any = "She left.", bad: Any = "She leave.", **keys: Any) -> str:
    return json.dumps({"sentence_good": good, "sentence_bad": bad, **keys}) + "\n"


def test_a_line_is_a_pair_with_its_paradigm_phenomenon_and_field(file):
    terms = {"UID": "drop", "linguistics_term": "ellipsis", "field": "syntax", "pairID": "17", "one_prefix": False}
    path = file(line("I  do .", "I do do .", **terms) + "\n" + line() + line(field="syntax/semantics", UID=None))
    assert list(read_pairs(path)) == [
        MinimalPair("drop:17", "I  do .", "I do do .", "drop", "ellipsis", "syntax"),
        MinimalPair("agreement:3", "She left.", "She leave.", "agreement"),
        MinimalPair("agreement:4", "She left.", "She leave.", "agreement", "", "syntax_semantics"),
    ]


def test_both_sentences_are_documents_of_one_group(file):
    path = file(line("I  do .", "Do I ?", pairID="17"))
    group = "sub/b:agreement:17"
    good, bad = WrittenText("I  do .", ((0, 1), (3, 5), (6, 7))), WrittenText("Do I ?", ((0, 2), (3, 4), (5, 6)))
    assert list(read(path, name="sub/b")) == [
        Document(f"{group}:good", ("I", "do", "."), label="good", group=group, written=good),
        Document(f"{group}:bad", ("Do", "I", "?"), label="bad", group=group, written=bad),
    ]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{", f"is not JSON (Expecting property name enclosed in double quotes at character 2); {OBJECT}"),
        ("[" * 5000, f"is not JSON that can be read (too long a number, or brackets too deep); {OBJECT}"),
        ("[1]", f"has [1], which is not an object; {OBJECT}"),
        ("{}", f'has no "sentence_good"; {SIDES}'),
        (line(bad=None), f'has no "sentence_bad"; {SIDES}'),
        (line(good=""), f'has the "sentence_good" ""; {SIDES}'),
        (line(bad=" \t"), f'has the "sentence_bad" " \\t"; {SIDES}'),
        (line(bad=["She", "leave"]), f'has the "sentence_bad" ["She", "leave"]; {SIDES}'),
        (line(good="\ud83d"), f'has the "sentence_good" "\\ud83d"; {SIDES}'),
        (line(UID=3), f'has the "UID" 3; {STRING}'),
        (line(pairID=0), f'has the "pairID" 0; {STRING}'),
        (line(linguistics_term=["a"]), f'has the "linguistics_term" ["a"]; {STRING}'),
        (line(field=" "), f'has the "field" " "; {STRING}'),
    ],
)
def test_a_malformed_line_is_refused(file, content, sentence):
    path = file(line() + content)
    assert refused(path) == f"{path}:2 {sentence}"


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        (line(), True),
        (line(UID="a")[:40], True),
        ('{"UID": "a", "sentence_bad" : "b", "sentence_good": "a"}', True),
        ('{"words": ["\\"sentence_good\\":"]}', False),
        ('{"UID": "overall", "gpt2": 0.83}', False),
        ('"sentence_good": 1', False),
    ],
)
def test_a_pair_is_recognised_by_its_sentences(first, expected):
    assert recognise(["", first]) is expected
    assert recognise([]) is False


def test_json_lines_of_ones_own_are_no_pairs_and_the_other_way_round(file, tmp_path):
    own = tmp_path / "own.jsonl"
    own.write_text('{"words": ["a"]}\n')
    assert read_corpus(file(line())).format == "blimp"
    assert read_corpus(own).format == "records"


def test_a_folder_holds_the_paradigms_and_other_files_are_left_out(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "b.jsonl").write_text(line(UID="beta"))
    (tmp_path / "deep" / "c.jsonl").write_text(line("c", "d", UID="gamma") + line("e", "f", UID="beta"))
    (tmp_path / "models.jsonl").write_text('{"UID": "beta", "gpt2": 0.83}\n')
    (tmp_path / "README.md").write_text("Pairs.\n")
    assert [pair.id for pair in read_minimal_pairs(tmp_path)] == ["beta:1", "gamma:1", "beta:2"]
    assert [pair.good for pair in read_minimal_pairs(str(tmp_path), paradigms=["gamma"])] == ["c"]
    ignored = read_corpus(tmp_path, format="blimp").ignored
    assert [path.name for path in ignored] == ["README.md", "models.jsonl"]


def refused_folder(path: Path, **options: Any) -> str:
    with pytest.raises(CorpusError) as caught:
        read_minimal_pairs(path, **options)
    return str(caught.value)


def test_what_is_not_in_a_folder_is_refused(tmp_path):
    (tmp_path / "own.jsonl").write_text('{"words": ["a"]}\n')
    assert refused_folder(tmp_path).startswith(
        f"the folder '{tmp_path}' has no file for the format 'blimp' among its 1; "
    )
    assert refused_folder(tmp_path / "b") == (
        f"the corpus '{tmp_path / 'b'}' does not exist; give a file, a folder, or 'grammar' for generated sentences."
    )
    (tmp_path / "b.jsonl").write_text(line(UID="beta") + line(UID="gamma"))
    assert refused_folder(tmp_path, paradigms=["gamma", "delta"]) == (
        f"'{tmp_path}' has no paradigm 'delta'; there are beta, gamma: name one of them."
    )
    (tmp_path / "c.jsonl").write_text(line(UID="alpha") + line(UID="gamma"))
    assert refused_folder(tmp_path) == (
        f"{tmp_path / 'c.jsonl'} has the pair 'gamma:2', as {tmp_path / 'b.jsonl'} has; it would count twice: "
        "leave one of the two files out."
    )


@pytest.mark.full
@pytest.mark.data
def test_blimp_has_67_paradigms_of_12_phenomena_in_4_fields(data, read_real):
    """The phenomena are those of the file of its results (Warstadt et al. 2020)."""
    folder = data / "blimp"
    paths = read_corpus(folder, format="blimp").files
    pairs = [pair for path in paths for pair in islice(read_pairs(path), 29)]
    summary = [json.loads(row) for row in (folder / "models_summary.jsonl").read_text().splitlines()]
    expected = {row["UID"]: row["linguistics_term"] for row in summary if row["UID"] != "overall"}
    assert {pair.paradigm: pair.phenomenon for pair in pairs} == expected
    assert (len(expected), len(set(expected.values()))) == (67, 12)
    assert {pair.field for pair in pairs} == {"morphology", "semantics", "syntax", "syntax_semantics"}

    same = 0
    for path, documents in read_real("blimp", *paths).items():
        records = [json.loads(row) for row in path.read_text(encoding="utf-8").splitlines()]
        texts = [record[side] for record in records for side in ("sentence_good", "sentence_bad")]
        assert [document.written.content for document in documents] == texts
        assert len(documents) == 2000
        for good, bad in zip(documents[::2], documents[1::2], strict=True):
            assert (good.label, bad.label, good.group) == ("good", "bad", bad.group)
            same += good.words == bad.words
            for document in (good, bad):
                text = document.written
                assert document.words == tuple(text.content[start:stop] for start, stop in text.offsets)
    assert same == 7
