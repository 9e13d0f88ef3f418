"""PropBank roles in CoNLL-U: which words are joined, what cannot be, and what is refused at which line."""

import re
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from headscope.corpora import Document, Link, Skipped, Span, conllu
from headscope.corpora.propbank import read, recognise
from headscope.corpora.written_text import WrittenText
from refusals import refusal

FILE = "roles.conllu"
refused = partial(refusal, read)

NOT_ANNOTATED = "roles of sentences that were not annotated with them"
AT_PREDICATE = "roles at their own predicate"
AT_NO_WORD = "rolesets and roles at lines that are no syntactic words"

GAVE_UP = """\
# newdoc id = letter
# sent_id = letter-1
# text = Ann, who came gave up
1	Ann	Ann	PROPN	_	_	5	nsubj	_	_	_	ARG0	ARG0
2	,	,	PUNCT	_	_	4	punct	_	_	_	_	_
3	who	who	PRON	_	_	4	nsubj	_	_	_	R-ARG0	_
4	came	come	VERB	_	_	1	acl	_	_	come.01	V	_
5	gave	give	VERB	_	_	0	root	_	_	give_up.08	_	V
6	up	up	ADP	_	_	5	compound	_	_	_	_	C-V
"""


def row(number: object, *further: str, head: object = 0) -> str:
    return "\t".join((str(number), "w", "_", "X", "_", "_", str(head), "dep", "_", "_", *further)) + "\n"


def roles(path: Path) -> tuple[Link, ...]:
    (document,) = read(path)
    return tuple(link for link in document.links if link.kind == "role")


def test_predicates_are_spans_and_arguments_point_at_them(file):
    assert list(read(file(GAVE_UP), name="sub/b")) == [
        Document(
            "sub/b:letter-1",
            words=("Ann", ",", "who", "came", "gave", "up"),
            links=(
                Link(0, 4, "nsubj", "dependency"),
                Link(1, 3, "punct", "dependency"),
                Link(2, 3, "nsubj", "dependency"),
                Link(3, 0, "acl", "dependency"),
                Link(5, 4, "compound", "dependency"),
                Link(0, 3, "ARG0", "role"),
                Link(2, 3, "R-ARG0", "role"),
                Link(0, 4, "ARG0", "role"),
                Link(5, 4, "C-V", "role"),
            ),
            spans=(
                Span(0, 1, "PROPN", "upos"),
                Span(1, 2, "PUNCT", "upos"),
                Span(2, 3, "PRON", "upos"),
                Span(3, 4, "VERB", "upos"),
                Span(4, 5, "VERB", "upos"),
                Span(5, 6, "ADP", "upos"),
                Span(3, 4, "come.01", "predicate"),
                Span(4, 5, "give_up.08", "predicate"),
            ),
            group="sub/b:letter",
            written=WrittenText("Ann, who came gave up", ((0, 3), (3, 4), (5, 8), (9, 13), (14, 18), (19, 21))),
        )
    ]


def test_a_text_that_contradicts_its_words_is_passed_on_as_counted(file):
    path = file(GAVE_UP + "\n# text = v\n" + row(1, "_"))
    first, second, skipped = read(path)
    reason = "texts that contradict their words (rebuilt from the words; the sentences are used)"
    assert skipped == Skipped(f"{path}:11", reason)
    assert (first.id, second.words, second.written) == ("roles.conllu:letter-1", ("w",), None)


def test_an_argument_may_be_a_predicate_and_a_role_may_come_twice(file):
    text = row(1, "see.01", "V", "ARG1") + row(2, "go.02", "ARG1", "V", head=1) + row(3, "_", "ARG1", "_", head=1)
    assert roles(file(text)) == (Link(1, 0, "ARG1", "role"), Link(2, 0, "ARG1", "role"), Link(0, 1, "ARG1", "role"))


def test_v_is_no_link_where_it_stands_at_a_word_beside_the_predicate(file):
    both = row(1, "drop_by.02", "V") + row(2, "_", "V", head=1) + row(3, "_", "ARG4", head=1)
    other = row(1, "turn_on.13", "_") + row(2, "_", "V", head=1) + row(3, "_", "ARG4", head=1)
    for text in (both, other):
        assert roles(file(text)) == (Link(2, 0, "ARG4", "role"),)


@pytest.mark.parametrize("further", [("_",), ("_", "")])
def test_a_sentence_without_predicates_has_its_dependencies(file, further):
    (document,) = read(file(row(1, *further) + row(2, *further, head=1)))
    assert document.links == (Link(1, 0, "dep"),)
    assert document.spans == (Span(0, 1, "X", "upos"), Span(1, 2, "X", "upos"))


@pytest.mark.parametrize("further", [("",), ("", "")])
def test_a_sentence_that_was_not_annotated_is_said_to_lack_its_roles(file, further):
    path = file(GAVE_UP + "\n# propbank = no-up\n" + row(1, *further) + row(2, *further, head=1))
    _, skipped, document = read(path)
    assert skipped == Skipped(f"{path}:12", NOT_ANNOTATED)
    assert document.links == (Link(1, 0, "dep"),)


def test_a_role_at_its_own_predicate_is_skipped(file):
    path = file(row(1, "_", "V") + row(2, "two_time.01", "C-V", head=1) + row(3, "_", "ARG0", head=2))
    skipped, document = read(path)
    assert skipped == Skipped(f"{path}:2", AT_PREDICATE)
    assert [link for link in document.links if link.kind == "role"] == [Link(2, 1, "ARG0", "role")]


def test_lines_that_are_no_words_need_no_roles_and_lose_those_they_have(file):
    quiet = row("1-2", "_") + row(1, "be.01", "V") + row("1.1", "", "") + row(2, "_", "ARG1", head=1)
    assert roles(file(quiet)) == (Link(1, 0, "ARG1", "role"),)
    path = file(quiet.replace("1.1\tw\t_\tX\t_\t_\t0\tdep\t_\t_\t\t", "1.1\tw\t_\tX\t_\t_\t0\tdep\t_\t_\t_\tARG2"))
    skipped, document = read(path)
    assert skipped == Skipped(f"{path}:3", AT_NO_WORD)
    assert [link for link in document.links if link.kind == "role"] == [Link(1, 0, "ARG1", "role")]


@pytest.mark.parametrize(
    ("lines", "at", "columns", "predicates"),
    [
        (row(1, "be.01", "V", "_") + row(2, "_", "ARG1", "_", head=1), 11, "2 role columns", "1 predicate"),
        (row(1, "be.01", "V") + row(2, "_", head=1), 12, "0 role columns", "1 predicate"),
        (row(1, "be.01", "V") + row(2, "do.01", "ARG1", head=1), 11, "1 role column", "2 predicates"),
        (row(1, "_", "_") + row(2, "_", "ARG1", head=1), 11, "1 role column", "0 predicates"),
    ],
)
def test_role_columns_that_are_not_those_of_the_predicates_are_refused(file, lines, at, columns, predicates):
    path = file(GAVE_UP + "\n" + lines)
    assert refused(path) == (
        f"{path}:{at} has {columns}, but its sentence has {predicates}; each word with a roleset in column 11 needs "
        f"one role column after it, in every line of the sentence: correct the line or the rolesets."
    )


@pytest.mark.parametrize(
    ("lines", "column", "kind"),
    [
        ("\n" + row(1, "be.01", "V") + row(2, "", "ARG1", head=1), 11, "roleset"),
        ("\n" + row(1, "be.01", "V") + row(2, "_", " ", head=1), 12, "role"),
        ("\n" + row(1, "_", "") + row(2, "", "", head=1), 11, "roleset"),
        ("# a\n\n" + row(1, "", "") + row(2, "", "ARG1", head=1), 11, "roleset"),
    ],
)
def test_an_empty_column_in_an_annotated_sentence_is_refused(file, lines, column, kind):
    path = file(lines)
    assert refused(path) == (
        f"{path}:3 has nothing in column {column}, though its sentence is annotated with roles: "
        f"write the {kind}, or '_' if there is none."
    )


def test_role_columns_in_another_order_than_their_predicates_are_refused(file):
    path = file(row(1, "see.01", "ARG0", "V") + row(2, "go.02", "V", "_", head=1))
    assert refused(path) == (
        f"{path}:2 has 'V' in column 12, which belongs to predicate 1 of the sentence, but the word is another "
        f"predicate (go.02); role columns are in the order of their predicates: put them in that order."
    )


def test_what_the_treebank_reader_refuses_is_refused(file):
    path = file(row(1, "_") + row(3, "_"))
    assert refused(path) == (
        f"{path}:2 has the id '3' where 2 is expected; "
        f"number the words of a sentence 1, 2, 3 ... and leave an empty line after its last."
    )


@pytest.mark.parametrize(
    ("first", "line", "expected"),
    [
        ("# text = a", row(1, "come.03", "V"), True),
        ("# text = a", row("1-2", "_", "_"), True),
        ("# text = a", row(1, "_"), True),
        ("# text = a", row(1), False),
        ("# text = a", row("index", "_", "_"), False),  # a table of another kind
        ("# text = a", "", False),
        ("# global.columns = ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC PARSEME:MWE", row(1, "*"), False),
    ],
)
def test_further_columns_without_names_are_recognised_and_not_as_a_treebank(first, line, expected):
    beginning = [first, "", line.rstrip("\n")]
    assert recognise(beginning) is expected
    assert not (recognise(beginning) and conllu.recognise(beginning))


@pytest.mark.data
@pytest.mark.parametrize(
    ("part", "sentences", "words", "predicates", "light", "labels", "numbered", "skipped"),
    [
        # data/framenet/README.md counts as predicates those with a numbered sense, and all labels but V.
        ("dev", 2002, 25148, 4903, 74, 9682, (1733, 3325, 1212), {NOT_ANNOTATED: 28, AT_PREDICATE: 1}),
        ("test", 2077, 25096, 4730, 69, 9435, (1733, 3241, 1129), {NOT_ANNOTATED: 15}),
    ],
)
def test_universal_propositions_have_the_published_counts(
    data, read_real, part, sentences, words, predicates, light, labels, numbered, skipped
):
    (parts,) = read_real("propbank", data / f"framenet/UP_English-EWT/en_ewt-up-{part}.conllu").values()
    documents = [document for document in parts if isinstance(document, Document)]
    assert Counter(part.reason for part in parts if isinstance(part, Skipped)) == skipped
    assert len(documents) == len({document.id for document in documents}) == sentences
    assert sum(len(document.words) for document in documents) == words
    senses = [span.label for document in documents for span in document.spans if span.kind == "predicate"]
    assert sum(re.search(r"\.\d+$", sense) is not None for sense in senses) == predicates
    assert sum(sense.endswith(".LV") for sense in senses) == len(senses) - predicates == light
    links = Counter(link.label for document in documents for link in document.links if link.kind == "role")
    assert links.total() + skipped.get(AT_PREDICATE, 0) == labels
    assert tuple(links[label] for label in ("ARG0", "ARG1", "ARG2")) == numbered


@pytest.mark.data
@pytest.mark.parametrize(("part", "elsewhere"), [("dev", 6), ("test", 4)])
def test_every_role_is_where_a_plain_split_of_the_lines_finds_it(data, read_real, part, elsewhere):
    path = data / f"framenet/UP_English-EWT/en_ewt-up-{part}.conllu"
    documents = [document for document in read_real("propbank", path)[path] if isinstance(document, Document)]
    blocks = [block for block in path.read_text(encoding="utf-8").split("\n\n") if block.strip()]
    beside = 0
    for document, block in zip(documents, blocks, strict=True):
        assert f"# text = {document.text.content}" in block.splitlines()
        table = [line.split("\t") for line in block.splitlines() if re.match(r"\d+\t", line)]
        at = [i for i, columns in enumerate(table) if columns[10].strip("_")]
        cells = [
            (i, at[column], label)
            for i, columns in enumerate(table)
            for column, label in enumerate(columns[11:])
            if label.strip("_")
        ]
        beside += sum(label == "V" and i != predicate for i, predicate, label in cells)
        roles = [(link.source, link.target, link.label) for link in document.links if link.kind == "role"]
        assert sorted(roles) == sorted(cell for cell in cells if cell[2] != "V" and cell[0] != cell[1])
    assert beside == elsewhere
