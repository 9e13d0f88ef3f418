"""CoNLL-U Plus and PARSEME's cupt: the columns that a file names are those of CoNLL-U, in whatever order."""

from functools import partial
from itertools import permutations

import conllu as witness
import pytest

from headscope.corpora import Document, Link, Span
from headscope.corpora import read as read_corpus
from headscope.corpora.columns import COLUMNS
from headscope.corpora.conllu import read, recognise
from headscope.corpora.written_text import WrittenText
from refusals import refusal

FILE = "bank.cupt"
refused = partial(refusal, read)

CUPT = """\
# global.columns = ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC PARSEME:MWE
# source_sent_id = . . 4045
# sent_id = s1
# text = It's going on.
1-2	It's	_	_	_	_	_	_	_	_	*
1	It	it	PRON	_	_	3	nsubj	_	_	*
2	's	be	AUX	_	_	3	aux	_	_	*
3	going	go	VERB	_	_	0	root	_	_	1:VPC.full
4	on	on	ADV	_	_	3	compound:prt	_	SpaceAfter=No	1
5	.	.	PUNCT	_	_	3	punct	_	_	*

1	No	no	INTJ	_	Polarity=Neg	0	root	_	SpaceAfter=No	*
2	!	!	PUNCT	_	_	1	punct	_	_	*
"""
DOCUMENTS = [
    Document(
        "bank.cupt:s1",
        words=("It", "'s", "going", "on", "."),
        links=(Link(0, 2, "nsubj"), Link(1, 2, "aux"), Link(3, 2, "compound:prt"), Link(4, 2, "punct")),
        spans=tuple(Span(i, i + 1, tag, "upos") for i, tag in enumerate("PRON AUX VERB ADV PUNCT".split())),
        group="bank.cupt:s1",
        written=WrittenText("It's going on.", ((0, 2), (2, 4), (5, 10), (11, 13), (13, 14))),
    ),
    Document(
        "bank.cupt:12",
        words=("No", "!"),
        links=(Link(1, 0, "punct"),),
        spans=(Span(0, 1, "INTJ", "upos"), Span(1, 2, "PUNCT", "upos"), Span(0, 1, "Polarity=Neg", "negation")),
        group="bank.cupt:12",
        written=WrittenText("No!", ((0, 2), (2, 3))),
    ),
]
NEEDED = "CoNLL-U Plus needs ID and FORM, DEPREL if it has HEAD, and each name once: correct the line."


def arrange(order: str) -> str:
    """The sample with its columns in another order, or fewer of them."""
    names = CUPT.split("\n", 1)[0].split()[3:]
    places = [names.index(name) for name in order.split()]
    lines = (line.split("\t") for line in CUPT.split("\n")[1:])
    rows = ("\t".join([cells[place] for place in places] if len(cells) > 1 else cells) for cells in lines)
    return f"# global.columns = {order}\n" + "\n".join(rows)


@pytest.mark.parametrize("order", [
    "ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC PARSEME:MWE",
    "ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC",
    "PARSEME:MWE MISC DEPS DEPREL HEAD FEATS XPOS UPOS LEMMA FORM ID",
    "FORM ID MISC UPOS PARSEME:MWE DEPREL FEATS HEAD",
])  # fmt: skip
def test_the_columns_are_those_that_the_file_names(file, order):
    assert list(read(file(arrange(order)))) == DOCUMENTS


@pytest.mark.parametrize("order", [*permutations(["FORM", "HEAD", "DEPREL", "ID"])])
def test_words_heads_and_relations_are_what_the_conllu_package_reads(file, order):
    content = arrange(" ".join((*order, "PARSEME:MWE")))
    for document, expected in zip(read(file(content)), witness.parse(content), strict=True):
        tokens = expected.filter(id=lambda value: isinstance(value, int))
        assert list(document.words) == [token["form"] for token in tokens]
        assert [(link.source + 1, link.target + 1, link.label) for link in document.links] == [
            (token["id"], token["head"], token["deprel"]) for token in tokens if token["head"]
        ]


def test_what_has_no_column_is_not_known(file):
    first, second = read(file(arrange("ID FORM PARSEME:MWE")))
    assert (first.words, first.links, first.spans) == (DOCUMENTS[0].words, (), ())
    assert first.written == DOCUMENTS[0].written  # of the comment
    assert second == Document("bank.cupt:12", words=("No", "!"), group="bank.cupt:12")


def test_columns_hold_until_others_are_named(file):
    second = arrange("FORM UPOS ID").replace("s1", "s2")
    documents = list(read(file(f"{CUPT}\n{second}")))
    assert documents[:2] == DOCUMENTS
    assert [(each.words, each.links) for each in documents[2:]] == [(each.words, ()) for each in DOCUMENTS]


@pytest.mark.parametrize(
    ("names", "fault"),
    [
        ("ID LEMMA HEAD DEPREL", "without FORM"),
        ("FORM", "without ID"),
        ("", "without ID and FORM"),
        ("ID FORM HEAD MISC", "without DEPREL"),
        ("id form head", "without ID and FORM"),
        ("ID FORM UPOS FORM", "with a name twice"),
    ],
)
def test_columns_that_are_needed_have_a_name_and_one_alone(file, names, fault):
    path = file(CUPT.replace(CUPT.split("\n", 1)[0], f"# global.columns = {names}"))
    assert refused(path) == f"{path}:1 names the columns {names!r}, {fault}; {NEEDED}"


@pytest.mark.parametrize(
    ("line", "columns"),
    [("3\tx", "2 columns"), ("\t".join("123456789a"), "10 columns"), ("x" + "\t_" * 11, "12 columns")],
)
def test_a_line_of_other_columns_than_are_named_is_refused(file, line, columns):
    path = file(CUPT + line)
    assert refused(path) == (
        f"{path}:14 has {columns}; CoNLL-U needs 11 (as line 1 says), separated by tabs: correct the line, or name the "
        "format that the file is in."
    )


def test_a_fault_is_shown_in_the_column_where_the_file_has_it(file):
    header = "# global.columns = HEAD MISC ID DEPREL FORM\n"
    path = file(f"{header}2\t_\t1\tdep\tw")
    assert refused(path) == (
        f"{path}:2 gives word 1 of 1 the head 2; a head is 0 for the root, the id of another word of the sentence, or "
        "'_' if there is none: correct column 1."
    )
    path = file(f"{header}0\t_\t1\t\tw")
    assert refused(path) == (
        f"{path}:2 has nothing in column 4 (DEPREL); CoNLL-U leaves no column empty: write the value, or '_' if it is "
        "not known."
    )
    path = file(header)
    assert refused(path) == (
        f"{path} has no sentence; CoNLL-U needs a line of 5 columns, separated by tabs, for each word: check that the "
        "file is whole."
    )


@pytest.mark.parametrize("name", ["a.cupt", "a.conllup", "a.txt", "a"])
def test_a_file_that_names_its_columns_is_a_treebank(tmp_path, name):
    path = tmp_path / name
    for names in (("FORM", "ID"), ("ID", "FORM", "MISC"), (*COLUMNS, "UP:PRED", "UP:ARGHEADS")):
        row = ("0" if name == "HEAD" else "1" for name in names)
        path.write_text(f"# global.columns = {' '.join(names)}\n" + "\t".join(row) + "\n")
        corpus = read_corpus(path)
        assert (corpus.format, [document.words for document in corpus]) == ("conllu", [("1",)])


def test_columns_are_named_before_the_first_word():
    row = "\t".join("1wx")
    assert recognise(["# licence = free", "", "#global.columns=ID FORM A", row])
    assert not recognise(["# licence = free", row, "# global.columns = ID FORM A"])
