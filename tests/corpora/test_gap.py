"""GAP: the chain and the candidates of a pronoun, what is skipped, and what is refused at which line."""

import csv
import io
from functools import partial
from pathlib import Path

import pytest

from headscope.corpora import Document, Link, Skipped, Span, gap, read, summarize
from headscope.corpora.gap import recognise
from headscope.corpora.written_text import WrittenText
from refusals import refusal

FILE = "gap-development.tsv"
refused = partial(refusal, gap.read)

HEADER = "ID\tText\tPronoun\tPronoun-offset\tA\tA-offset\tA-coref\tB\tB-offset\tB-coref\tURL\n"
NAMES = "ID, Text, Pronoun, Pronoun-offset, A, A-offset, B, B-offset, A-coref, B-coref"
WITHOUT_CHAIN = "mentions without a chain, such as names to which a pronoun does not refer"
SHARED = "rows of which two mentions share a word"


def row(
    identity: str, text: str, pronoun: str, a: str, b: str, answers: str = "TRUE FALSE", page: str = "http://x"
) -> list[str]:
    """A row; each mention is where it first stands."""
    a_answer, b_answer = answers.split()
    mentions = [(pronoun, ()), (a, (a_answer,)), (b, (b_answer,))]
    cells = [cell for mention, answer in mentions for cell in (mention, str(text.index(mention)), *answer)]
    return [identity, text, *cells, page]


def table(*rows: list[str]) -> str:
    return HEADER + "".join("\t".join(cells) + "\n" for cells in rows)


DEAN = row("d-1", "José met Al Lee Jr.'s wife; then he left.", " he ".strip(), "José", "Al Lee Jr.", "FALSE TRUE")
DEAN[3] = str(DEAN[1].index(" he ") + 1)


def test_a_row_is_a_document_with_the_chain_of_its_pronoun(file):
    path = file(table(DEAN))
    skipped, document = gap.read(path, name="sub/g")
    assert skipped == Skipped(f"{path}:2", WITHOUT_CHAIN)
    assert document == Document(
        "sub/g:d-1",
        words=("José", "met", "Al", "Lee", "Jr", ".", "'s", "wife", ";", "then", "he", "left", "."),
        # The full stop of "Jr." is no head.
        links=(Link(10, 4, "he", kind="coreference", rivals=(0,)),),
        spans=(Span(2, 6, "1", "mention"), Span(10, 11, "1", "mention")),
        group="sub/g:http://x",
        written=WrittenText(
            DEAN[1],
            (
                *((0, 4), (5, 8), (9, 11), (12, 15), (16, 18), (18, 19), (19, 21), (22, 26), (26, 27), (28, 32)),
                *((33, 35), (36, 40), (40, 41)),
            ),
        ),
    )


TEXT = "Ann saw Bea, and she left."


@pytest.mark.parametrize(
    ("answers", "links", "mentions", "skipped"),
    [
        ("TRUE FALSE", [(0, (2,))], [0, 5], 1),
        ("FALSE TRUE", [(2, (0,))], [2, 5], 1),
        ("True False", [(0, (2,))], [0, 5], 1),
        ("TRUE TRUE", [(0, ()), (2, ())], [0, 2, 5], 0),
        ("FALSE FALSE", [], [], 3),
    ],
)
def test_a_pronoun_refers_to_one_name_to_both_or_to_neither(file, answers, links, mentions, skipped):
    corpus = read(file(table(row("a", TEXT, "she", "Ann", "Bea", answers))))
    (document,) = corpus
    assert document.links == tuple(Link(5, target, "she", "coreference", rivals) for target, rivals in links)
    assert document.spans == tuple(Span(word, word + 1, "1", "mention") for word in mentions)
    assert summarize(corpus).skipped == ({WITHOUT_CHAIN: skipped} if skipped else {})


def test_a_name_may_follow_its_pronoun(file):
    (document,) = (
        part
        for part in gap.read(file(table(row("a", "Her dog, Ann said to Bea.", "Her", "Ann", "Bea"))))
        if isinstance(part, Document)
    )
    assert document.links == (Link(0, 3, "her", "coreference", (6,)),)
    assert document.spans == (Span(0, 1, "1", "mention"), Span(3, 4, "1", "mention"))


def test_rows_of_one_page_are_a_group_and_without_pages_each_is_one(file):
    rows = [
        row(name, TEXT, "she", "Ann", "Bea", "TRUE TRUE", page) for name, page in (("a", "p"), ("b", "p"), ("c", ""))
    ]
    assert [document.group for document in read(file(table(*rows)))] == [f"{FILE}:p", f"{FILE}:p", f"{FILE}:c"]
    without = table(*rows).replace("\tURL\n", "\n").replace("\tp\n", "\n").replace("TRUE\t\n", "TRUE\n")
    assert [document.group for document in read(file(without))] == [f"{FILE}:{name}" for name in "abc"]


def test_the_columns_may_stand_in_another_order_with_others(file):
    plain = table(row("a", TEXT, "she", "Ann", "Bea"))
    records = list(csv.DictReader(io.StringIO(plain), delimiter="\t"))
    columns = [*reversed(HEADER.rstrip("\n").split("\t")), "note"]
    turned = "\t".join(columns) + "\n" + "\t".join(str(records[0].get(column, "x")) for column in columns) + "\n"
    assert list(read(file(turned))) == list(read(file(plain)))


def test_mentions_are_those_that_a_loop_over_the_table_finds(file):
    names = [("Ann", "Bea"), ("Cid", "Dan"), ("Eve O'Hara", "Fay-Lu")]
    path = file(
        table(
            *(
                row(f"r{i}-{j}", f"{a} met {b} (twice); {pronoun} slept.", pronoun, a, b, answers)
                for i, (a, b) in enumerate(names)
                for j, (pronoun, answers) in enumerate(
                    [("she", "TRUE FALSE"), ("his", "FALSE TRUE"), ("she", "TRUE TRUE")]
                )
            )
        )
    )
    with path.open(newline="") as lines:
        records = list(csv.DictReader(lines, delimiter="\t"))
    assert len(records) == 9
    for record, document in zip(records, read(path), strict=True):
        expected = {record["Pronoun"]} | {record[name] for name in "AB" if record[f"{name}-coref"] == "TRUE"}
        offsets = document.text.offsets
        assert {
            record["Text"][offsets[span.start][0] : offsets[span.end - 1][1]] for span in document.spans
        } == expected
        for link in document.links:
            assert document.words[link.source] == record["Pronoun"]
            assert any(record[name].endswith(document.words[link.target]) for name in "AB")
        assert [document.words[link.target] for link in document.links] == [
            record[name].split()[-1] for name in "AB" if record[f"{name}-coref"] == "TRUE"
        ]
        assert {document.words[rival] for link in document.links for rival in link.rivals} == (
            {record[name].split()[-1] for name in "AB" if record[f"{name}-coref"] == "FALSE"}
        )


def test_quotes_are_those_of_the_text_unless_a_program_for_tables_wrote_them(file):
    text = '"Ann" saw "Weird" Bea "B" Lee, and she said "so"'
    cells = row("a", text, "she", "Ann", '"Weird" Bea')
    literal = list(read(file(table(cells))))
    written = io.StringIO()
    csv.writer(written, dialect="excel-tab", lineterminator="\n").writerow(cells)
    assert '""Weird""' in written.getvalue()
    assert list(read(file(HEADER + written.getvalue()))) == literal
    assert literal[0].text.content == text


def test_rows_whose_mentions_share_a_word_are_skipped(file):
    path = file(table(row("a", "Ann-she saw Bea.", "she", "Ann", "Bea"), row("b", TEXT, "she", "Ann", "Bea")))
    parts = list(gap.read(path))
    assert [(part.where, part.reason) for part in parts if isinstance(part, Skipped)] == [
        (f"{path}:2", SHARED),
        (f"{path}:3", WITHOUT_CHAIN),
    ]
    assert len(parts) == 3


def test_byte_order_mark_windows_lines_and_empty_ones_change_nothing(file):
    text = table(row("a", TEXT, "she", "Ann", "Bea"), DEAN)
    plain = list(read(file(text)))
    assert len(plain) == 2
    assert list(read(file("\ufeff" + text.replace("\n", "\r\n\r\n")))) == plain


# ------------------------------------------------------------------ refusals

GOOD = row("a", TEXT, "she", "Ann", "Bea")


def changed(**cells: str) -> str:
    record = dict(zip(HEADER.rstrip("\n").split("\t"), row("b", TEXT, "she", "Ann", "Bea"), strict=True))
    return table(GOOD, [*(record | {name.replace("_", "-"): cell for name, cell in cells.items()}).values()])


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (
            {"A_offset": "1"},
            "has the name 'Ann', but the characters 1 to 4 of its text are 'nn '; the offsets of a name cut it out of "
            "the text: correct them.",
        ),
        (
            {"Pronoun_offset": "400"},
            "has the pronoun 'she', but the characters 400 to 403 of its text are ''; the offsets of a pronoun cut it "
            "out of the text: correct them.",
        ),
        *(
            (
                {"B_offset": offset},
                f"has the offset {shown}; GAP counts the characters of the text from 0: write a whole number.",
            )
            for offset, shown in (("-1", "'-1'"), ("", "''"), ("٤", "'٤'"), ("9" * 5000, f"'{'9' * 60}' ..."))
        ),
        ({"A_coref": "yes"}, "has 'yes' in the column 'A-coref'; GAP has TRUE or FALSE there: correct it."),
        ({"B": " "}, "has nothing in the column 'B'; GAP has a pronoun and two names: write it."),
        ({"ID": "a"}, "has the ID 'a' as line 2 has; a row needs an ID of its own: rename one of them."),
        (
            {"URL": "x\ty"},
            "has 12 columns, but the first row names 11; a row needs as many, separated by tabs: correct the line.",
        ),
    ],
)
def test_a_faulty_row_is_refused(file, cells, message):
    path = file(changed(**cells))
    assert refused(path) == f"{path}:3 {message}"


@pytest.mark.parametrize(
    ("header", "fault"),
    [
        (HEADER.replace("\tA-coref", ""), "no column 'A-coref'"),
        (HEADER.replace("Text\t", "").replace("B-offset", "b-offset"), "no column 'Text' and 'B-offset'"),
        (HEADER.replace("URL", "Text"), "the column 'Text' twice"),
    ],
)
def test_a_header_that_lacks_a_column_is_refused(file, header, fault):
    path = file(header + table(GOOD).removeprefix(HEADER))
    assert refused(path) == (
        f"{path}:1 names {fault}; the first row of GAP names {NAMES} and perhaps URL, separated by tabs: correct it, "
        "or name the format that the file is in."
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (HEADER, True),
        ("\n" + HEADER.replace("\n", "\r\n"), True),
        (HEADER.replace("\tA-coref", ""), True),
        (HEADER.replace("\t", " "), False),
        ("text\tsource\ttarget\tlabel\n", False),
        ("", False),
    ],
)
def test_a_table_with_the_offset_of_a_pronoun_is_recognised(text, expected):
    assert recognise(text.split("\n")) is expected


def test_a_file_is_read_so_whatever_its_name(tmp_path: Path):
    (tmp_path / "a.txt").write_text(table(GOOD))
    assert read(tmp_path / "a.txt").format == "gap"
