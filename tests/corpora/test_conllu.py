"""CoNLL-U: what is read, where it stood, and what is refused at which line."""

from collections import Counter
from functools import partial

import conllu as witness
import pytest

from headscope.corpora import Document, Link, Skipped, Span, summarize
from headscope.corpora import read as read_corpus
from headscope.corpora.conllu import read, recognise
from headscope.corpora.written_text import WrittenText
from headscope.errors import CorpusError
from refusals import refusal

FILE = "bank.conllu"
refused = partial(refusal, read)

ELIDED = """\
# newdoc id = letter
# sent_id = letter-1
# text = Vámonos al mar.
1-2	Vámonos	_	_	_	_	_	_	_	_
1	Vamos	ir	VERB	_	_	0	root	_	_
2	nos	nosotros	PRON	_	_	1	obj	_	_
2.1	idos	ir	VERB	_	_	_	_	1:conj	_
3-4	al	_	_	_	_	_	_	_	_
3	a	a	ADP	_	_	5	case	_	_
4	el	el	_	_	_	5	det	_	_
5	mar	mar	NOUN	_	_	1	obl:arg	_	SpaceAfter=No
6	.	.	PUNCT	_	_	1	punct	_	_
"""


CONTRADICTION = "texts that contradict their words (rebuilt from the words; the sentences are used)"
OFFSETS = ((0, 3), (0, 3), (4, 7), (7, 8))
CONTRACTED = """\
1-2	zum	_	_	_	_	_	_	_	_
1	zu	_	X	_	_	0	dep	_	SpaceAfter=No
2	dem	_	X	_	_	1	dep	_	_
3	See	_	X	_	_	1	dep	_	A=B|SpaceAfter=No
3.1	weg	_	X	_	_	_	_	1:dep	SpaceAfter=No
4	!	_	X	_	_	1	dep	_	_
"""


def row(
    number: object, form: str = "w", head: object = 0, relation: str = "dep", upos: str = "X", misc: str = "_"
) -> str:
    return f"{number}\t{form}\t_\t{upos}\t_\t_\t{head}\t{relation}\t_\t{misc}\n"


def sentences(count: int) -> str:
    """As many sentences of two words: three lines each, with the empty one."""
    return (row(1) + row(2, head=1) + "\n") * count


def test_a_treebank_without_text_is_refused(file):
    sentence = row("1-2", "_", "_", "_") + row(1, "_") + row(2, "_", 1) + "\n"
    fault = (
        " has no words (every FORM is '_'), as treebanks have whose text cannot be passed on; get the text from its "
        "publisher, as the README of the treebank says, and give the file with words."
    )
    path = file(f"# sent_id = s\n{sentence}# text = _\n{sentence}")
    assert refused(path) == f"{path}{fault}"
    with pytest.raises(CorpusError, match="every FORM"):
        summarize(read_corpus(path, limit=1))
    path = file("# global.columns = FORM ID\n_\t1\n")
    assert refused(path) == f"{path}{fault}"


def test_an_underscore_is_a_word_where_other_sentences_have_words(file):
    first, second = read(file(f"{row(1, '_')}\n{row(1, 'w')}"))
    assert (first.words, second.words) == (("_",), ("w",))


def test_words_are_syntactic_words_and_heads_count_from_0(file):
    assert list(read(file(ELIDED))) == [
        Document(
            "bank.conllu:letter-1",
            words=("Vamos", "nos", "a", "el", "mar", "."),
            links=(
                Link(1, 0, "obj", "dependency"),
                Link(2, 4, "case", "dependency"),
                Link(3, 4, "det", "dependency"),
                Link(4, 0, "obl:arg", "dependency"),
                Link(5, 0, "punct", "dependency"),
            ),
            spans=(
                Span(0, 1, "VERB", "upos"),
                Span(1, 2, "PRON", "upos"),
                Span(2, 3, "ADP", "upos"),
                Span(4, 5, "NOUN", "upos"),
                Span(5, 6, "PUNCT", "upos"),
            ),
            group="bank.conllu:letter",
            written=WrittenText("Vámonos al mar.", ((0, 7), (0, 7), (8, 10), (8, 10), (11, 14), (14, 15))),
        )
    ]


@pytest.mark.parametrize(
    ("comment", "content", "offsets"),
    [
        ("# text = zum See!", "zum See!", OFFSETS),
        ("#text=zum \u3000See !  ", "zum \u3000See !", ((0, 3), (0, 3), (5, 8), (9, 10))),
        ("# text_en = to the lake", "zum See!", OFFSETS),
        ("# text =", "zum See!", OFFSETS),
    ],
)
def test_a_text_is_the_comment_or_what_the_forms_spell(file, comment, content, offsets):
    (document,) = read(file(f"{comment}\n{CONTRACTED}"))
    assert document.words == ("zu", "dem", "See", "!")
    assert document.written == WrittenText(content, offsets)


@pytest.mark.parametrize("text", ["zu dem See!", "zum See", "zum See!!", "zum see!"])
def test_a_text_that_contradicts_its_words_is_rebuilt_and_counted(file, text):
    path = file(f"{CONTRACTED}\n# sent_id = s\n# text = {text}\n{CONTRACTED}")
    first, second, skipped = read(path)
    assert skipped == Skipped(f"{path}:9", CONTRADICTION)
    assert first.written == second.written == WrittenText("zum See!", OFFSETS)


def test_a_contradiction_behind_the_last_sentence_that_is_taken_is_not_counted(file):
    path = file("".join(f"# text = {text}\n{CONTRACTED}\n" for text in ("zur See", "zum Meer", "zum See!")))
    assert [summarize(read_corpus(path, limit=limit)).skipped for limit in (1, 2, 3)] == [
        {CONTRADICTION: 1},
        {CONTRADICTION: 2},
        {CONTRADICTION: 2},
    ]


def test_where_nothing_says_how_words_are_written_that_is_not_known(file):
    path = file(row(1, misc="SpaceAfter=Yes|XSpaceAfter=No") + row(2) + f"\n# text = v w\n{row(1)}{row(2)}")
    first, second, skipped = read(path)
    assert skipped == Skipped(f"{path}:4", CONTRADICTION)
    assert first.written is second.written is None


def test_words_of_a_token_have_their_own_characters_where_they_spell_it(file):
    token = row("1-2", "don't", "_", misc="SpaceAfter=No") + row(1, "do") + row(2, "n't")
    other = (
        row("3-4", "im", "_") + row(3, "in") + row(4, "dem", misc="SpaceAfter=No") + row(5, "x", misc="SpaceAfter=No")
    )
    (document,) = read(file(token + other))
    assert document.written == WrittenText("don'tim x", ((0, 2), (2, 5), (5, 7), (5, 7), (8, 9)))


@pytest.mark.parametrize("form", ["_", " "])
def test_a_token_of_several_words_without_a_form_has_that_of_its_words(file, form):
    (document,) = read(file(row("1-2", form, "_") + row(1, "a b", misc="SpaceAfter=No") + row(2, "c") + row(3, "d")))
    assert document.written == WrittenText("a bc d", ((0, 3), (3, 4), (5, 6)))


@pytest.mark.parametrize(("features", "label"), [
    ("Polarity=Neg", "Polarity=Neg"), ("A=B|PronType=Ind,Neg", "PronType=Neg"), ("PronType=Neg|X=Y", "PronType=Neg"),
    ("_", None), ("Polarity=Pos", None), ("Negative=Neg", None), ("PronType=Negx", None), ("Polarity", None),
])  # fmt: skip
def test_the_features_say_which_words_are_of_negation(file, features, label):
    line = row(2, upos="PART", head=1).split("\t")
    (document,) = read(file(row(1) + "\t".join([*line[:5], features, *line[6:]])))
    tags = (Span(0, 1, "X", "upos"), Span(1, 2, "PART", "upos"))
    assert document.spans == (tags if label is None else (*tags, Span(1, 2, label, "negation")))


def test_an_id_is_the_sent_id_or_the_line_and_never_twice_the_same(file):
    path = file(f"# sent_id = a\n{row(1)}\n\n# text = w\n{row(1)}\n# sent_id = a\n{row(1)}")
    assert [document.id for document in read(path)] == ["bank.conllu:a", "bank.conllu:5", "bank.conllu:a@8"]
    assert [document.id for document in read(path, name="sub/b")] == ["sub/b:a", "sub/b:5", "sub/b:a@8"]


def test_a_group_is_the_text_that_newdoc_opens_or_the_sentence(file):
    path = file(f"{row(1)}\n# newdoc id = x\n{row(1)}\n{row(1)}\n# newdoc\n{row(1)}\n{row(1)}")
    assert [document.group for document in read(path)] == [
        "bank.conllu:1",
        "bank.conllu:x",
        "bank.conllu:x",
        "bank.conllu:8",
        "bank.conllu:8",
    ]


def test_newdoc_in_a_block_of_comments_holds_for_the_sentences_below(file):
    path = file(f"# newdoc id = x\n# licence = free\n\n{row(1)}")
    assert [(document.id, document.group) for document in read(path)] == [("bank.conllu:4", "bank.conllu:x")]


def test_a_word_without_a_head_has_no_link_and_one_without_upos_no_span(file):
    (document,) = read(file(row(1, head="_", relation="_", upos="_") + row(2, head="_") + row(3, head=2)))
    assert document.links == (Link(2, 1, "dep"),)
    assert document.spans == (Span(1, 2, "X", "upos"), Span(2, 3, "X", "upos"))


def test_spaces_inside_a_form_do_not_part_columns(file):
    # The conllu package splits at two spaces too, and would take "000" for the lemma.
    (document,) = read(file(row(1, form="10  000") + row(2, form="a b", head=1)))
    assert document.words == ("10  000", "a b")


def test_byte_order_mark_windows_lines_and_a_missing_last_line_end_change_nothing(file):
    plain = list(read(file(ELIDED + "\n" + row(1))))
    assert len(plain) == 2
    windows = "\ufeff" + (ELIDED + "\n" + row(1)).replace("\n", "\r\n").removesuffix("\r\n")
    assert list(read(file(windows))) == plain


@pytest.mark.parametrize(
    ("lines", "came", "wanted", "at"),
    [
        (row(1) + row(3), "3", 2, 2),
        (row(0), "0", 1, 1),
        (row(1) + row(1), "1", 2, 2),
        (row("one"), "one", 1, 1),
        (row("_"), "_", 1, 1),
        (row(1) + row("1-2"), "1-2", 2, 2),
        (row(1) + row("3-2"), "3-2", 2, 2),
        (row(1) + row("2.1"), "2.1", 2, 2),
    ],
)
def test_an_id_out_of_sequence_is_refused_at_its_line(file, lines, came, wanted, at):
    path = file(sentences(5) + lines)
    assert refused(path) == (
        f"{path}:{15 + at} has the id '{came}' where {wanted} is expected; "
        f"number the words of a sentence 1, 2, 3 ... and leave an empty line after its last."
    )


def test_a_token_that_runs_past_its_sentence_is_refused(file):
    path = file(sentences(5) + row("1-3") + row(1) + row(2, head=1))
    assert refused(path) == (
        f"{path}:16 has a token of several words that goes to word 3, but its sentence ends at word 2: "
        f"check that the sentence is whole."
    )


@pytest.mark.parametrize("head", [3, 2, -1])
def test_a_head_outside_the_sentence_or_the_word_itself_is_refused(file, head):
    path = file(sentences(2000) + row(1) + row(2, head=head) + "\n" + sentences(1))
    assert refused(path) == (
        f"{path}:6002 gives word 2 of 2 the head {head}; a head is 0 for the root, the id of another word of the "
        f"sentence, or '_' if there is none: correct column 7."
    )


@pytest.mark.parametrize("head", ["two", "", "1.5", "٣"])
def test_a_head_that_is_not_a_number_is_refused(file, head):
    path = file("# sent_id = s\n" + row(1, head=head))
    assert refused(path) == (
        f"{path}:2 has the head {head!r}, which is not a number; a head is 0 for the root, the id of another word of "
        f"the sentence, or '_' if there is none: correct column 7."
    )


def test_a_row_of_tabs_is_not_the_empty_line_that_ends_a_sentence(file):
    path = file(row(1) + "\t" * 9 + "\n" + row(1))
    assert refused(path) == (
        f"{path}:2 has the id '' where 2 is expected; "
        f"number the words of a sentence 1, 2, 3 ... and leave an empty line after its last."
    )


@pytest.mark.parametrize(("column", "line"), [("2 (FORM)", row(1, form=" ")), ("8 (DEPREL)", row(1, relation=""))])
def test_an_empty_column_is_refused(file, column, line):
    path = file(line)
    assert refused(path) == (
        f"{path}:1 has nothing in column {column}; CoNLL-U leaves no column empty: "
        f"write the value, or '_' if it is not known."
    )


def test_sentences_before_a_fault_are_read(file):
    documents = read(file(sentences(2) + "broken\n"))
    assert next(documents).id == "bank.conllu:1"
    assert next(documents).id == "bank.conllu:4"
    with pytest.raises(CorpusError):
        next(documents)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (row(1), True),
        (row("1-2"), True),
        (row("0.1"), True),
        (row("index"), False),  # STS-B in GLUE has ten columns too
        (row(1).removesuffix("\t_\n"), False),
        ("", False),
    ],
)
def test_ten_columns_and_a_first_id_are_recognised(line, expected):
    assert recognise(["# text = a", "", line.rstrip("\n")]) is expected


@pytest.mark.data
@pytest.mark.parametrize(
    ("file", "count", "words", "groups"),
    [
        # Counts of data/ud/README.md, which equal those of the treebanks' own stats.xml; GSD names no texts.
        ("UD_English-EWT/en_ewt-ud-dev.conllu", 2001, 25147, 318),
        ("UD_English-EWT/en_ewt-ud-train.conllu", 12544, 204577, 540),
        ("UD_English-GUM/en_gum-ud-dev.conllu", 1575, 28119, 30),
        ("UD_German-GSD/de_gsd-ud-dev.conllu", 799, 12480, 799),
        ("UD_German-GSD/de_gsd-ud-test.conllu", 977, 16499, 977),
    ],
)
def test_treebanks_have_the_published_counts(data, read_real, file, count, words, groups):
    (documents,) = read_real("conllu", data / "ud" / file).values()
    assert len(documents) == len({document.id for document in documents}) == count
    assert sum(len(document.words) for document in documents) == words
    assert len({document.group for document in documents}) == groups


@pytest.mark.data
def test_ewt_has_the_links_that_a_plain_split_of_its_lines_counts(data, read_real):
    path = data / "ud/UD_English-EWT/en_ewt-ud-dev.conllu"
    links = Counter(link.label for document in read_real("conllu", path)[path] for link in document.links)
    assert {name: links[name] for name in ("obj", "det", "amod", "case", "nsubj")} == {
        "obj": 1211,
        "det": 1817,
        "amod": 1326,
        "case": 2015,
        "nsubj": 1958,
    }
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines() if "\t" in line]
    assert links == Counter(columns[7] for columns in rows if columns[0].isdigit() and columns[6] != "0")


@pytest.mark.data
@pytest.mark.parametrize("file", ["UD_English-EWT/en_ewt-ud-dev.conllu", "UD_German-GSD/de_gsd-ud-dev.conllu"])
def test_every_word_head_and_relation_is_what_the_conllu_package_reads(data, read_real, file):
    path = data / "ud" / file
    with path.open(encoding="utf-8") as stream:
        for document, expected in zip(read_real("conllu", path)[path], witness.parse_incr(stream), strict=True):
            tokens = expected.filter(id=lambda value: isinstance(value, int))
            assert document.id == f"{path.name}:{expected.metadata['sent_id']}"
            assert list(document.words) == [token["form"] for token in tokens]
            assert [(link.source + 1, link.target + 1, link.label) for link in document.links] == [
                (token["id"], token["head"], token["deprel"]) for token in tokens if token["head"]
            ]
            spans = {kind: [s for s in document.spans if s.kind == kind] for kind in ("upos", "negation")}
            assert [(span.start + 1, span.end, span.label) for span in spans["upos"]] == [
                (token["id"], token["id"], token["upos"]) for token in tokens
            ]
            assert [(span.start + 1, span.end, span.label) for span in spans["negation"]] == [
                (token["id"], token["id"], f"{name}=Neg")
                for token in tokens
                for name, value in (token["feats"] or {}).items()
                if name in ("Polarity", "PronType") and value == "Neg"
            ]
