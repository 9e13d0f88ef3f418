"""Corpora that nobody writes by hand: large, endless, deep or no text. They are read in time, or refused."""

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from corpora.test_framenet import INDEXES, LENT, TEXT, release
from headscope.corpora import FORMATS, Document, Link, Span, read, summarize
from headscope.errors import CorpusError, HeadscopeError
from refusals import refusal

SECONDS = 8
"""Each of these took minutes or longer, and takes less than a second now."""

CELL = "(12)" * 30
DIGITS = "9" * 5000
SHOWN = f"'{'9' * 60}' ..."


@contextmanager
def in_time() -> Iterator[None]:
    start = time.perf_counter()
    yield
    assert time.perf_counter() - start < SECONDS


def write(tmp_path: Path, name: str, content: str) -> Path:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    return path


# ------------------------------------------------------------- slow or large


@pytest.mark.parametrize(("name", "row"), [("conll2012", "d\t0\t0\tw\t{}\n"), ("ontogum", "0\tw\t{}\n")])
def test_a_cell_of_many_brackets_is_read_or_refused_at_once(tmp_path: Path, name: str, row: str) -> None:
    begin = "#begin document (d); part 000\n" if name == "conll2012" else "# begin document d\n"
    end = "#end document\n" if name == "conll2012" else "# end document\n"
    path = write(tmp_path, "a.conll", begin + row.format(CELL) + end)
    with in_time():
        (document,) = FORMATS[name].read(path)
        assert document.spans == (Span(0, 1, "12", "mention"),) * 30
        path.write_text(begin + row.format(f"{CELL}x") + end)
        assert refusal(FORMATS[name].read, path) == (
            f"{path}:2 has {CELL[:60]!r} ... in its coreference column; expected brackets with the number of a chain, "
            "as in '(3', '3)' or '(3)|4)', or '_' for none: correct the last column."
        )


def test_elements_within_elements_are_refused_where_they_are_too_deep(tmp_path: Path) -> None:
    begin = "<DOCUMENT><P><SENTENCE>"
    nested = f"{'<C>' * 96}<W>a</W>{'</C>' * 96}"
    path = write(tmp_path, "a.xml", f"{begin}{nested}</SENTENCE></P></DOCUMENT>")
    (document,) = FORMATS["sfu"].read(path)
    assert document.words == ("a",)
    path.write_text(f"{begin}\n{'<C>' * 100_000}")
    with in_time():
        assert refusal(FORMATS["sfu"].read, path) == (
            f"{path}:2 has <C> inside of 100 elements; the SFU corpus nests only a few: check that each element is "
            "closed."
        )


def test_a_sentence_of_many_negations_is_read_in_time(tmp_path: Path) -> None:
    negation = '<cue ID="{0}" type="negation"><W>not</W></cue><xcope><ref SRC="{0}"/><W>so</W></xcope>\n'
    content = "".join(map(negation.format, range(5_000)))
    path = write(tmp_path, "a.xml", f"<DOCUMENT><P><SENTENCE>\n{content}</SENTENCE></P></DOCUMENT>")
    with in_time():
        (document,) = FORMATS["sfu"].read(path)
    assert document.spans[-2:] == (Span(9998, 9999, "5000", "cue"), Span(9999, 10_000, "5000", "scope"))


def test_a_text_of_many_negations_is_read_in_time(tmp_path: Path) -> None:
    negation = '<xcope id="{0}"><cue type="negation" ref="{0}">not</cue> so</xcope>\n'
    content = "".join(map(negation.format, range(5_000)))
    begin, end = "<Annotation><DocumentSet><Document>", "</Document></DocumentSet></Annotation>"
    path = write(tmp_path, "a.xml", f'{begin}<sentence id="1">{content}</sentence>{end}')
    with in_time():
        (document,) = FORMATS["bioscope"].read(path)
    assert document.spans[-2:] == (Span(9998, 9999, "5000", "cue"), Span(9999, 10_000, "5000", "scope"))
    path.write_text(f'{begin}<sentence id="1">' + '<xcope id="1">' * 100_000)
    with in_time():
        assert refusal(FORMATS["bioscope"].read, path) == (
            f"{path}:1 has <xcope> inside of 100 elements; BioScope nests only a few: check that each element is "
            "closed."
        )


def test_a_document_of_many_mentions_is_read_in_time(tmp_path: Path) -> None:
    count = 100_000
    record = {"sentences": [["a"] * count], "clusters": [[[i, i] for i in range(count)]], "doc_key": "d"}
    path = write(tmp_path, "a.jsonl", json.dumps(record))
    with in_time():
        (document,) = FORMATS["e2e-coref"].read(path)
    assert document.spans[-1] == Span(count - 1, count, "1", "mention")


def test_a_review_of_many_terms_is_read_in_time(tmp_path: Path) -> None:
    count = 12_000
    terms = "".join(
        f'<aspectTerm term="soup" polarity="positive" from="{5 * i}" to="{5 * i + 4}"/>\n' for i in range(count)
    )
    path = write(
        tmp_path, "a.xml",
        f'<sentences><sentence id="1"><text>{"soup " * count}</text>\n<aspectTerms>{terms}</aspectTerms>'
        '<aspectCategories><aspectCategory category="food" polarity="positive"/></aspectCategories></sentence>'
        "</sentences>",
    )  # fmt: skip
    with in_time():
        first = next(document for document in FORMATS["semeval"].read(path) if isinstance(document, Document))
    spans = [span for span in first.spans if span.kind == "aspect"]
    offset = first.boundary or 0
    assert spans == [Span(offset + i, offset + i + 1, "positive", "aspect") for i in range(count)]


def test_many_rivals_are_checked_in_time() -> None:
    count = 50_000
    with in_time():
        Document("d", ("w",) * count, (Link(0, 1, "x", rivals=tuple(range(2, count))),))
        with pytest.raises(CorpusError, match=r"the rival 7 twice; rivals are other words"):
            Document("d", ("w",) * count, (Link(0, 1, "x", rivals=(*range(2, count), 7)),))


def test_keys_that_are_there_twice_are_refused_in_time(tmp_path: Path) -> None:
    keys = ", ".join(f'"s_{i % 50_000}_0": "w"' for i in range(100_000))
    path = write(tmp_path, "a.json", f'[{{"sent": {{{keys}}}, "negframe": []}}]')
    with in_time():
        assert refusal(FORMATS["frames"].read, path).startswith(f'{path} has the key "s_0_0" twice in one object')


# ------------------------------------------------------------------- no files


def test_a_pipe_or_a_device_is_refused_at_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.conllu"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero")):
        with pytest.raises(HeadscopeError) as refused:
            read(path)
        assert str(refused.value) == (
            f"{path} is a device or a pipe; copy what it gives to a file, and name that file."
        )
        with pytest.raises(HeadscopeError, match="is a device or a pipe"):
            read("grammar:5", patterns=path)


@contextmanager
def not_hanging() -> Iterator[None]:
    """Ends a block that waits for ever."""

    def end(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(60)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def read_all(path: Path) -> str:
    corpus = read(path)
    summarize(corpus)
    return corpus.sha256


@pytest.mark.parametrize("name", [*INDEXES, "frame/Lending.xml", TEXT, "lu/lu701.xml", "lu/lu997.xml"])
def test_a_pipe_in_a_release_of_framenet_is_waited_for_by_nobody(tmp_path: Path, name: str) -> None:
    release(tmp_path, exemplars=LENT)
    (tmp_path / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / name)
    lacking = f"{tmp_path} has no {name}, which a FrameNet release has next to frameIndex.xml"
    pipe = f"{tmp_path / name} is a device or a pipe; copy what it gives to a file, and name that file."
    with not_hanging(), pytest.raises(HeadscopeError) as refused:
        read_all(tmp_path)
    assert str(refused.value).startswith(lacking if name in INDEXES else pipe)


def test_a_pipe_in_a_folder_of_ontogum_is_no_file_with_trees(tmp_path: Path) -> None:
    for folder in ("conll", "conllu"):
        (tmp_path / folder).mkdir()
    write(tmp_path, "conll/a.conll", "# begin document a\n0\tred\t(1)\n# end document\n")
    os.mkfifo(tmp_path / "conllu" / "a.conllu")
    with not_hanging():
        (document,) = read(tmp_path)
    assert (document.words, document.links) == (("red",), ())


@pytest.mark.parametrize("name", ["a" * 300, "~nobody-of-this-name/a.conllu", "a\0b", f"grammar:{DIGITS}"])
def test_a_name_that_no_file_has(name: str) -> None:
    with pytest.raises(HeadscopeError, match=r"(cannot be read|does not exist|is not understood).*\.$"):
        read(name)


# ------------------------------------------------- numbers, brackets and text


TREE = "1\ta\t_\t_\t_\t_\t{}\tdep\t_\t_\n2\tb\t_\t_\t_\t_\t0\troot\t_\t_\n"
LONG_NUMBERS = [
    ("conllu", TREE.format(DIGITS), f"has the head {SHOWN}, which is too long a number; a head is 0 for the root"),
    ("conllu", TREE.format(2).replace("2\tb", f"{DIGITS}\tb"), f"has the id {SHOWN} where 2 is expected"),
    (
        "conllu",
        f"1-{DIGITS}\tab" + "\t_" * 8 + f"\n{TREE.format(2)}",
        f"has the id '1-{'9' * 58}' ... where 1 is expected",
    ),
    ("propbank", TREE.format(DIGITS).replace("\n", "\t_\n"), f"has the head {SHOWN}, which is too long a number"),
    ("records", f'{{"words": ["a", "b"], "links": [[0, {DIGITS}, "x"]]}}', "is not JSON that can be read"),
    ("e2e-coref", f'{{"sentences": [["a"]], "clusters": [[[0, {DIGITS}]]]}}', "is not JSON that can be read"),
    ("frames", f'[{{"sent": {DIGITS}, "negframe": []}}]', "is not JSON that can be read"),
    ("linktable", f"text\tsource\ttarget\tlabel\na b\t0\t{DIGITS}\tx\n", f"has the target {SHOWN}; a position is"),
]


@pytest.mark.parametrize(("format", "content", "sentence"), LONG_NUMBERS)
def test_a_number_of_thousands_of_digits_is_refused(tmp_path: Path, format: str, content: str, sentence: str) -> None:
    assert sentence in refusal(FORMATS[format].read, write(tmp_path, "a", content))


@pytest.mark.parametrize("depth", [101, 990, 100_000])
def test_deep_brackets_are_refused(tmp_path: Path, depth: int) -> None:
    deep = "[" * depth + "]" * depth
    for format, content in (
        ("records", f'{{"words": {deep}}}'),
        ("e2e-coref", f'{{"sentences": {deep}, "clusters": []}}'),
        ("frames", f'[{{"sent": {deep}, "negframe": []}}]'),
    ):
        assert "(too long a number, or brackets too deep)" in refusal(
            FORMATS[format].read, write(tmp_path, "a", content)
        )


def test_half_of_a_character_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "a.json", '[{"sent": {"s_1_0": "\\ud83d"}, "negframe": []}]')
    with pytest.raises(CorpusError) as refused:
        summarize(read(path))
    assert str(refused.value) == (
        "document 'a.json:1' has the text '\\ud83d', with half of a character that needs two (a lone surrogate); "
        "headscope reads Unicode: correct the text or, if it is the name of a file, rename that."
    )
    with pytest.raises(CorpusError, match=r"document 'a\\udcff:1' has the text 'a\\udcff:1', with half"):
        summarize([Document("a\udcff:1", ("w",))])


# --------------------------------------------------------------------- labels

FAULTS = {
    "\ud83d": "has half of a character that needs two (a lone surrogate)",
    "a\0": "has a control character",
    "\x1b[31mred": "has a control character",
    "\x9b31m": "has a control character",
    "a" * 201: "is 201 bytes long",
    "é" * 101: "is 202 bytes long",
}


@pytest.mark.parametrize("label", FAULTS)
def test_a_label_that_can_name_no_row_and_no_file_is_refused_before_anything_is_measured(label: str) -> None:
    shown = repr(label) if len(label) <= 60 else f"{label[:60]!r} ..."
    tail = "it names a row of the table and files: write visible characters, of at most 200 bytes in UTF-8."
    words = ("a", "b")
    for document, part in (
        (Document("d", words, (Link(0, 1, label),)), "label"),
        (Document("d", words, (Link(0, 1, "x", kind=label),)), "kind"),
        (Document("d", words, spans=(Span(0, 1, "x", kind=label),)), "kind"),
    ):
        with pytest.raises(CorpusError) as refused:
            summarize([Document("first", words, (Link(0, 1, "x"),)), document])
        assert str(refused.value) == f"document 'd' has the {part} {shown}, which {FAULTS[label]}; {tail}"


@pytest.mark.parametrize("label", ["a" * 200, "é" * 100, "nsubj:pass", "a/b c", "\U0001f600", "٣"])
def test_other_labels_are_taken(label: str) -> None:
    summary = summarize([Document("d", ("a", "b"), (Link(0, 1, label),), (Span(0, 1, "9" * 300, "mention"),))])
    assert summary.links == {"dependency": {label: 1}}


def test_the_value_of_a_message_may_be_as_deep_as_what_is_read(tmp_path: Path) -> None:
    value: object = "x"
    for _ in range(90):
        value = [value]
    path = write(tmp_path, "a.jsonl", json.dumps({"words": ["a"], "label": value}))
    assert 'has the "label" [[[' in refusal(FORMATS["records"].read, path)
