"""Quotes in tables: what csv.writer, pandas and GLUE write is read as they mean it; csv.reader is the witness."""

import csv
import io
from pathlib import Path

import pandas as pd
import pytest

from headscope.errors import CorpusError
from headscope.learn.table_task import read_table
from headscope.learn.task import SPLITS
from headscope.learn.tasks import read_task

FIELDS = [
    'She said "it was bad" .', '"', '""', 'a "b" and ""c""', "plain", '"hello"', "a\tb", "one\ntwo",
    "one\n\nthree", "x\r\ny", 'the last "', '" the first', "it 's", 'both\t"\n"',
]  # fmt: skip
WRITERS = {
    "minimal": {}, "unix": {"lineterminator": "\n"}, "all": {"quoting": csv.QUOTE_ALL},
    "strings": {"quoting": csv.QUOTE_NONNUMERIC},
}  # fmt: skip
WARNING = (
    "; all quotes of the file are read as plain characters: write the file with a csv writer, or without quotes around "
    "fields."
)


def read_pairs(path: Path) -> list[tuple[str, object]]:
    """The texts and labels of a file, in its order."""
    task = read_table(path)
    examples = [example for split in SPLITS for example in task.splits[split]]
    return [
        (each.texts[0], each.label) for each in sorted(examples, key=lambda each: int(each.name.rpartition(":")[2]))
    ]


def fill(texts: list[str]) -> list[tuple[str, str]]:
    """Rows of these texts, and of enough others for three splits of both labels."""
    return [(text, "ab"[n % 2]) for n, text in enumerate([*texts, *(f"text number {n}" for n in range(40))])]


@pytest.mark.parametrize("writer", WRITERS)
def test_a_file_of_csv_writer_is_read_as_csv_reader_reads_it(tmp_path: Path, writer: str) -> None:
    path, rows = tmp_path / "own.tsv", fill(FIELDS)
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter="\t", **WRITERS[writer]).writerows([("text", "label"), *rows])
    with path.open(encoding="utf-8", newline="") as file:
        assert [tuple(row) for row in csv.reader(file, delimiter="\t")][1:] == rows
    assert read_pairs(path) == rows
    assert "the quotes of own.tsv are those of a csv writer" in read_table(path).notes


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
def test_a_file_of_pandas_is_read_as_pandas_reads_it(tmp_path: Path, quoting: int) -> None:
    path, rows = tmp_path / "own.tsv", fill([each for each in FIELDS if "\r" not in each])
    pd.DataFrame(rows, columns=["text", "label"]).to_csv(path, sep="\t", quoting=quoting)  # with its index
    assert [*pd.read_csv(path, sep="\t")[["text", "label"]].itertuples(index=False, name=None)] == rows
    assert read_pairs(path) == rows


def test_the_line_of_an_example_is_its_first(tmp_path: Path) -> None:
    path = tmp_path / "own.tsv"
    path.write_text("label\ttext\n" + 'a\t"one\n\n\ntwo"\n' + "".join(f"{'ba'[n % 2]}\tx{n}\n" for n in range(40)))
    names = {each.texts[0]: each.name for split in SPLITS for each in read_table(path).splits[split]}
    assert names["one\n\n\ntwo"] == f"{path}:2"
    assert names["x0"] == f"{path}:6"


def test_words_and_tags_of_csv_writer(tmp_path: Path) -> None:
    for name, tag in (("train", "A"), ("dev", "B"), ("test", "A")):
        rows = [("He", "A"), ('"', "B"), (), ("so", tag), ('"', "B")]
        with (tmp_path / f"{name}.tsv").open("w", newline="") as file:
            csv.writer(file, delimiter="\t").writerows(rows)
    task = read_table(tmp_path)
    assert [each.words for each in task.splits["train"]] == [("He", '"'), ("so", '"')]
    assert task.kind == "tagging"


PLAIN = {
    "lone quotes": ['he said "so', '" it is', 'so "', '"a" and "b"', '"'],
    "a text in quotes among lone ones": ['"hello"', 'he said "so'],
    "quotes in the middle": ['the "good" film', "it ''is''"],
    "backslashes": ['"she said \\"so\\" ."'],
}


@pytest.mark.parametrize("what", PLAIN)
def test_plain_quotes_stay_without_a_word(tmp_path: Path, caplog, what: str) -> None:
    path, rows = tmp_path / "own.tsv", fill(PLAIN[what])
    path.write_text("text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in rows))
    assert read_pairs(path) == rows
    assert not caplog.messages


AMBIGUOUS = {
    "both": (
        ["plain", '"she said ""so"" ."', 'he said "no'],
        "{path}:3 has quotes that are doubled, as a csv writer does, but line 4 has 'he said \"no', which no csv "
        "writer writes",
    ),
    "some texts in quotes": (
        ["plain", "other", '"hello"'],
        "{path}:4 has the field '\"hello\"' in quotes, which may be those of a csv writer",
    ),
    "a field in quotes or two rows": (
        ['"one\ta', 'two"'],
        "{path}:2 has a field that may go on in the next line",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", AMBIGUOUS)
def test_what_is_not_plain_is_read_as_it_stands_with_a_warning(tmp_path: Path, caplog, what: str) -> None:
    texts, sentence = AMBIGUOUS[what]
    path = tmp_path / "own.tsv"
    rows = [(text, "a") if "\t" not in text else tuple(text.split("\t")) for text in texts]
    rows += [(f"text number {n}", "ab"[n % 2]) for n in range(40)]
    path.write_text("text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in rows))
    assert read_pairs(path) == rows
    assert caplog.messages == [sentence.format(path=path) + WARNING]


def test_a_field_that_is_not_closed_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "own.tsv"
    path.write_text('text\tlabel\na\tb\n"one\ntwo\tb\nhe said "so"\ta\n')
    with pytest.raises(CorpusError) as refused:
        read_table(path)
    assert str(refused.value) == (
        f"{path}:3 has 1 field and needs 2 (text, label), separated by tabs; correct the row."
    )


@pytest.mark.data
@pytest.mark.parametrize("name", ["sst2", "mrpc", "cola", "rte", "stsb"])
def test_glue_is_read_as_tabs_separate_it(data: Path, caplog, name: str) -> None:
    """The witness: csv.reader without quotes."""
    folder = {"sst2": "SST-2", "mrpc": "MRPC", "cola": "CoLA", "rte": "RTE", "stsb": "STS-B"}[name]
    content = (data / "glue" / folder / "dev.tsv").read_text(encoding="utf-8-sig")
    rows = [*csv.reader(io.StringIO(content), delimiter="\t", quoting=csv.QUOTE_NONE)]
    wanted = [{*map(str.strip, row)} for row in (rows if name == "cola" else rows[1:])]
    examples = read_task(name, data).splits["test"]
    assert [{*each.texts} <= row for each, row in zip(examples, wanted, strict=True)] == [True] * len(wanted)
    assert not caplog.messages


@pytest.mark.data
@pytest.mark.parametrize("folder", ["SST-2", "RTE"])
def test_a_file_of_glue_as_a_table_of_ones_own_is_the_same(data: Path, caplog, folder: str) -> None:
    path = data / "glue" / folder / "dev.tsv"
    texts = {text for split in SPLITS for each in read_table(path).splits[split] for text in each.texts}
    lines = path.read_text(encoding="utf-8-sig").splitlines()[1:]
    assert texts <= {cell.strip() for line in lines for cell in line.split("\t")}
    assert not caplog.messages
