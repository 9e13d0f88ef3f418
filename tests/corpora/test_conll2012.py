"""The layout of CoNLL-2012: what is read, where it stood, and what is refused at which line."""

import re
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from headscope.corpora import Document, Skipped, Span
from headscope.corpora import conllu as conllu_reader
from headscope.corpora import ontogum as ontogum_reader
from headscope.corpora.conll2012 import read, recognise
from refusals import refusal

FILE = "book.conll"
refused = partial(refusal, read)

# Made up, aligned with spaces as OntoNotes is: two parts of one document.
NEWS = """\
#begin document (nw/made/up_0001); part 000
nw/made/up_0001   0    0      The    DT   (TOP(S(NP*   -      -   -   -   *   (ARG0*    (3
nw/made/up_0001   0    1     mayor   NN           *)   -      -   -   -   *        *)   3)
nw/made/up_0001   0    2    waved    VBD        (VP*  wave   01   1   -   *      (V*)    -

nw/made/up_0001   0    0      She    PRP  (TOP(S(NP*)  -      -   -   -   *   (ARG0*)   (3)
nw/made/up_0001   0    1    thanked  VBD        (VP*  thank  01   1   -   *      (V*)    -
nw/made/up_0001   0    2      her   PRP$        (NP*   -      -   -   -   *   (ARG1*    (12|(3)
nw/made/up_0001   0    3    friends  NNS         *)))  -      -   -   -   *        *)   12)

#end document
#begin document (nw/made/up_0001); part 001
nw/made/up_0001   1    0     They    PRP   (TOP(S(NP*)   -   -   -   -   *   (3)

#end document
"""


def row(index: object, word: str = "w", cell: str = "", document: str = "d") -> str:
    """As LitBank has it: tabs, and nothing in the last column where there is no mention."""
    return "\t".join([document, "0", str(index), word, *"________", cell]) + "\n"


def document(*rows: str, name: str = "d", part: int | str = 0) -> str:
    return f"#begin document ({name}); part {part}\n{''.join(rows)}\n#end document\n"


def test_a_part_is_a_document_and_all_parts_of_a_document_a_group(file):
    assert list(read(file(NEWS))) == [
        Document(
            "book.conll:nw/made/up_0001:000",
            words=("The", "mayor", "waved", "She", "thanked", "her", "friends"),
            spans=(
                Span(0, 2, "3", "mention"),
                Span(3, 4, "3", "mention"),
                Span(5, 6, "3", "mention"),
                Span(5, 7, "12", "mention"),
            ),
            group="nw/made/up_0001",
        ),
        Document(
            "book.conll:nw/made/up_0001:001",
            words=("They",),
            spans=(Span(0, 1, "3", "mention"),),
            group="nw/made/up_0001",
        ),
    ]


def test_columns_may_be_parted_by_tabs_and_the_last_be_empty(file):
    text = document(row(0, "a b", "(0"), row(1, "B"), row(2, "c", "0)"), "\n", row(0, "D"), name="a (b)", part=7)
    assert list(read(file(text), name="sub/x")) == [
        Document("sub/x:a (b):7", words=("a b", "B", "c", "D"), spans=(Span(0, 3, "0", "mention"),), group="a (b)")
    ]


def test_byte_order_mark_windows_lines_and_a_missing_last_line_end_change_nothing(file):
    plain = list(read(file(NEWS)))
    assert len(plain) == 2
    assert list(read(file("\ufeff" + NEWS.replace("\n", "\r\n").removesuffix("\r\n")))) == plain


def test_an_unbalanced_part_is_skipped_in_its_place(file):
    text = document(row(0)) + document(row(0), row(1, cell="4)"), part=1) + document(row(0), part=2)
    path = file(text)
    first, skipped, last = read(path)
    assert (first.id, last.id) == ("book.conll:d:0", "book.conll:d:2")
    assert skipped == Skipped(f"{path}:7", "documents with an unbalanced coreference bracket")


@pytest.mark.parametrize(
    ("lines", "came", "wanted", "at"),
    [
        ([row(1)], "1", 0, 2),
        ([row(0), row(2)], "2", 1, 3),
        ([row(0), row(0)], "0", 1, 3),
        ([row(0), "\n", row(1)], "1", 0, 4),
        ([row(0), "\t\t\t\t\n"], "", 1, 3),
        ([row("w")], "w", 0, 2),
    ],
)
def test_a_number_out_of_sequence_is_refused_at_its_line(file, lines, came, wanted, at):
    path = file(document(*lines))
    assert refused(path) == (
        f"{path}:{at} has the number '{came}' where {wanted} is expected; number the words of a sentence 0, 1, 2 ... "
        f"in column 3 and leave an empty line after its last."
    )


@pytest.mark.parametrize("word", ["", "[WORD]"])
def test_a_word_that_is_left_out_is_refused_at_its_line(file, word):
    path = file(document(row(0), row(1, word)))
    assert refused(path) == (
        f"{path}:3 has {word!r} in column 4 in place of a word; a skeleton of OntoNotes has no words: "
        f"put them in, as its skeleton2conll does, or leave the file out."
    )


@pytest.mark.parametrize(
    ("text", "at"),
    [
        (row(0), 1),
        ("#begin document d\n" + row(0), 1),
        (document(row(0)) + row(0), 5),
        (document(row(0)) + "\n#end document\n", 6),
    ],
)
def test_what_stands_outside_of_a_document_is_refused(file, text, at):
    path = file(text)
    assert refused(path) == (
        f"{path}:{at} is outside of a document; CoNLL-2012 needs '#begin document (NAME); part 000' before the "
        f"words of each and '#end document' after them: add the line that is missing."
    )


@pytest.mark.parametrize("after", ["", document(row(0), part=1)])
def test_a_part_that_does_not_end_is_refused(file, after):
    path = file(document(row(0)) + document(row(0), name="e", part="001").removesuffix("#end document\n") + after)
    assert refused(path) == (
        f"{path}:5 begins part 001 of 'e', which does not end; CoNLL-2012 needs '#end document' after its words: "
        f"add it, and check that the file is whole."
    )


def test_a_part_without_words_is_refused(file):
    path = file(document(row(0)) + document(part=1))
    assert refused(path) == f"{path}:5 begins a document without words; each needs at least one: leave it out."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (NEWS, True),
        (document(row(0)), True),
        (document(row(0)).replace("\n", "\r\n"), True),
        (document(row(0, "[WORD]")), False),
        (document(row(1)), False),
        (document("d 0 0 w\n"), False),
        ("#begin document (d); part 0\n", False),
        ("#begin document d\n" + row(0), False),
        ("# begin document \n0\tw\t_\n", False),
        ("# sent_id = a\n1\tw\t_\tX\t_\t_\t0\troot\t_\t_\n", False),
        ("", False),
    ],
)
def test_a_header_and_the_columns_of_a_first_word_are_recognised(text, expected):
    assert recognise(text.split("\n")) is expected


@pytest.mark.parametrize("text", [NEWS, document(row(0))])
def test_other_readers_do_not_recognise_it(text):
    lines = text.split("\n")
    assert not conllu_reader.recognise(lines)
    assert not ontogum_reader.recognise(lines)


@pytest.fixture(scope="module")
def litbank(data: Path, read_real) -> dict[Path, list[Document | Skipped]]:
    return read_real("conll2012", *sorted((data / "coref/litbank/conll").iterdir()))


@pytest.mark.data
def test_litbank_has_the_published_counts(litbank):
    # Counts of data/coref/README.md; LitBank annotates singletons.
    documents = [document for found in litbank.values() for document in found]
    assert all(isinstance(document, Document) for document in documents)
    assert len(documents) == len({document.group for document in documents}) == 100
    assert sum(len(document.words) for document in documents) == 210532
    chains = Counter((document.id, span.label) for document in documents for span in document.spans)
    assert {span.kind for document in documents for span in document.spans} == {"mention"}
    assert sum(chains.values()) == 29103
    assert len(chains) == 7927
    assert sum(count == 1 for count in chains.values()) == 5763


@pytest.mark.data
def test_litbank_has_the_words_and_the_brackets_of_a_plain_split_of_its_lines(litbank):
    for path, (document,) in litbank.items():
        lines = [line.split("\t") for line in path.read_text(encoding="utf-8").split("\n") if "\t" in line]
        assert document.words == tuple(columns[3] for columns in lines)
        for start, bracket in ((True, r"\(([0-9]+)"), (False, r"([0-9]+)\)")):
            expected = Counter((i, chain) for i, line in enumerate(lines) for chain in re.findall(bracket, line[-1]))
            assert expected == Counter((s.start if start else s.end - 1, s.label) for s in document.spans)


@pytest.mark.data
def test_litbank_is_recognised_as_nothing_else(litbank):
    for path in litbank:
        beginning = path.read_text(encoding="utf-8")[:5000].split("\n")
        assert recognise(beginning)
        assert not conllu_reader.recognise(beginning)
        assert not ontogum_reader.recognise(beginning)
