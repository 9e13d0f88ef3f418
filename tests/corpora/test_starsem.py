"""*SEM 2012: which words are cue, scope and event, and what is refused at which line."""

from collections import Counter
from functools import partial

import pytest

from headscope.corpora import Document, Span
from headscope.corpora.document import merge_into_spans
from headscope.corpora.starsem import read, recognise
from refusals import refusal

FILE = "tale.txt"
refused = partial(refusal, read)

# Two negations: the cue of the first is in two parts, that of the second is a part of its word.
NEITHER = """\
tale01	4	0	Neither	neither	CC	(S*	Neither	_	_	_	_	_
tale01	4	1	slept	sleep	VBD	*	_	slept	slept	_	_	_
tale01	4	2	nor	nor	CC	*	nor	_	_	_	_	_
tale01	4	3	was	be	VBD	*	_	was	_	_	was	_
tale01	4	4	Mr.	Mr.	NNP	*	_	Mr	_	_	Mr.	_
tale01	4	5	Roe	Roe	NNP	*	_	Roe	_	_	Roe	_
tale01	4	6	unhappy	unhappy	JJ	*)	_	unhappy	_	un	happy	happy
tale01	4	7	.	.	.	*)	_	_	_	_	_	_
"""
QUIET = "tale02\t0\t0\tQuiet\tquiet\tJJ\t*\t***\ntale02\t0\t1\t.\t.\t.\t*\t***\n"


def row(place: object, *cells: str, word: str = "not", sentence: object = 0, chapter: str = "tale01") -> str:
    return "\t".join((chapter, str(sentence), str(place), word, "l", "X", "*", *cells)) + "\n"


def sentences(count: int) -> str:
    """As many sentences of one word: two lines each, with the empty one."""
    return "".join(row(0, "***", chapter="before", sentence=i) + "\n" for i in range(count))


def test_cues_scopes_and_events_are_runs_of_words(file):
    assert list(read(file(NEITHER + "\n" + QUIET))) == [
        Document(
            "tale.txt:tale01:4",
            words=("Neither", "slept", "nor", "was", "Mr.", "Roe", "unhappy", "."),
            spans=(
                Span(0, 1, "1", "cue"),
                Span(2, 3, "1", "cue"),
                Span(1, 2, "1", "scope"),
                Span(3, 7, "1", "scope"),
                Span(1, 2, "1", "event"),
                Span(6, 7, "2", "affixal_cue"),
                Span(3, 7, "2", "scope"),
                Span(6, 7, "2", "event"),
            ),
            group="tale.txt:tale01",
        ),
        Document("tale.txt:tale02:0", words=("Quiet", "."), group="tale.txt:tale02"),
    ]


def test_a_file_can_be_called_otherwise(file):
    (document,) = read(file(QUIET), name="sub/b")
    assert (document.id, document.group) == ("sub/b:tale02:0", "sub/b:tale02")


def test_a_cue_in_neighbouring_words_is_one_span_and_a_scope_may_be_empty(file):
    (document,) = read(file(row(0, "no", "_", "_", word="no") + row(1, "more", "_", "_", word="more")))
    assert document.spans == (Span(0, 2, "1", "cue"),)


def test_a_scope_that_is_written_in_another_way_marks_the_word(file):
    (document,) = read(file(row(0, "_", "'", "_", word="`") + row(1, "not", "_", "_")))
    assert document.spans == (Span(1, 2, "1", "cue"), Span(0, 1, "1", "scope"))


def test_byte_order_mark_windows_lines_and_a_missing_last_line_end_change_nothing(file):
    plain = list(read(file(NEITHER + "\n" + QUIET)))
    windows = "\ufeff" + (NEITHER + "\n\n" + QUIET).replace("\n", "\r\n").removesuffix("\r\n")
    assert list(read(file(windows))) == plain


@pytest.mark.parametrize(
    ("words", "expected"),
    [([], []), ([3], [(3, 4)]), ([5, 4, 4, 0], [(0, 1), (4, 6)]), ([0, 2, 1], [(0, 3)])],
)
def test_runs_are_the_fewest_spans(words, expected):
    assert list(merge_into_spans(words, "7", "cue")) == [Span(start, end, "7", "cue") for start, end in expected]


@pytest.mark.parametrize(("line", "column"), [(row(0, "***", word=" "), 4), (row(0, "not", "", "_"), 9)])
def test_an_empty_column_is_refused(file, line, column):
    path = file(line)
    assert refused(path) == (
        f"{path}:1 has nothing in column {column}; *SEM 2012 leaves no column empty: write the value, "
        f"or '_' if there is none."
    )


@pytest.mark.parametrize(
    ("lines", "at", "came", "wanted"),
    [
        (row(1, "***"), 1, ("1", "0", "tale01"), "0"),
        (row(0, "***") + row(2, "***"), 2, ("2", "0", "tale01"), "1"),
        (row(0, "***") + row(0, "***", sentence=1), 2, ("0", "1", "tale01"), "1"),
        (row(0, "***") + row(1, "***", chapter="tale02"), 2, ("1", "0", "tale02"), "1"),
    ],
)
def test_a_word_out_of_sequence_is_refused_at_its_line(file, lines, at, came, wanted):
    path = file(sentences(3) + lines)
    place, sentence, chapter = came
    assert refused(path) == (
        f"{path}:{6 + at} is word '{place}' of sentence '{sentence}' in '{chapter}', where word '{wanted}' of sentence "
        f"'0' in 'tale01' is expected; number the words of a sentence 0, 1, 2 ... and leave an empty line after its "
        f"last."
    )


def test_a_line_with_the_columns_of_fewer_negations_than_the_first_is_refused(file):
    path = file(row(0, "not", "_", "_") + row(1, "***"))
    assert refused(path) == (
        f"{path}:2 has the columns of no negations, but its sentence begins with those of 1 negation; "
        f"all lines of a sentence have the same columns: correct the line."
    )


def test_a_negation_without_a_cue_is_refused(file):
    path = file(sentences(1) + row(0, "not", "_", "_", "_", "not", "_") + row(1, *"______"))
    assert refused(path) == (
        f"{path}:3 begins a sentence whose negation 2 has no cue; a negation needs one: write it in column 11 at its "
        f"word."
    )


def test_a_cue_that_is_no_part_of_its_word_is_refused(file):
    path = file(row(0, "not", *"_____") + row(1, "_", "_", "_", "in", "kind", "_", word="unkempt"))
    assert refused(path) == (
        f"{path}:2 has the cue 'in' at the word 'unkempt'; a cue is its word or a part of it: correct column 11."
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (row(0, "***"), True),
        (row(0, "***").replace("\n", "\r"), True),
        (row(0, *"______"), True),
        (row(1, "***"), False),
        (row(0, "_"), False),
        (row(0), False),
        (row(0, "***", sentence="a"), False),
        ("1\tw\t_\tX\t_\t_\t0\troot\t_\t_", False),  # CoNLL-U has ten columns too
        ("", False),
    ],
)
def test_a_first_word_with_the_columns_of_negations_is_recognised(line, expected):
    assert recognise(["", line.rstrip("\n"), "x"]) is expected


@pytest.mark.data
@pytest.mark.parametrize(
    ("file", "chapters", "sentences", "negated", "negations", "affixal", "empty"),
    [
        # Counts of data/negation/README.md, which are those of the paper; there the two test files are one row.
        ("training-09032012", 14, 3644, 848, 984, 159, 97),
        ("dev-09032012", 2, 787, 144, 173, 33, 5),
        ("test-cardboard-GOLD", 1, 496, 119, 133, 22, 5),
        ("test-circle-GOLD", 2, 593, 116, 131, 14, 10),
    ],
)
def test_the_files_of_the_task_have_the_published_counts(
    data, file, chapters, sentences, negated, negations, affixal, empty
):
    path = data / f"negation/conandoyle_starsem2012/SEM-2012-SharedTask-CD-SCO-{file}.txt"
    documents = list(read(path))
    assert len(documents) == len({document.id for document in documents}) == sentences
    assert len({document.group for document in documents}) == chapters
    assert sum(bool(document.spans) for document in documents) == negated
    kinds = Counter(kind for document in documents for kind, _ in {(span.kind, span.label) for span in document.spans})
    assert kinds["affixal_cue"] == affixal
    assert kinds["cue"] == negations - affixal
    assert kinds["scope"] == negations - empty


@pytest.mark.data
def test_every_cell_that_a_plain_split_of_the_lines_finds_is_a_word_of_a_span(data):
    path = data / "negation/conandoyle_starsem2012/SEM-2012-SharedTask-CD-SCO-training-09032012.txt"
    cells: Counter[str] = Counter()
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines() if line]
    for columns in rows:
        for i, cell in enumerate(columns[7:]):
            if cell not in ("_", "***"):
                affixal = i % 3 == 0 and cell != columns[3]
                cells["affixal_cue" if affixal else ("cue", "scope", "event")[i % 3]] += 1
    words: Counter[str] = Counter()
    documents = list(read(path))
    for document in documents:
        for span in document.spans:
            words[span.kind] += span.end - span.start
    assert words == cells
    assert [word for document in documents for word in document.words] == [columns[3] for columns in rows]
