"""FrameNet through NLTK: which words are targets and elements, what cannot be, and what is refused in which sentence.

The release is made up here, frames and sentences alike; there is nothing of FrameNet in it but the form.
"""

import shutil
import sys
from collections import Counter
from functools import partial
from pathlib import Path

import nltk.data
import pytest

from headscope.corpora import Corpus, Document, Link, Skipped, Span, summarize
from headscope.corpora import read as read_corpus
from headscope.corpora.framenet import read, recognise
from headscope.corpora.written_text import WrittenText
from refusals import refusal

refused = partial(refusal, read)

XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
INDEXES = ("luIndex.xml", "frRelation.xml", "semTypes.xml", "fulltextIndex.xml")
TEXT = "fulltext/Own__Harbour.xml"
XMLNS = 'xmlns="http://framenet.icsi.berkeley.edu"'
ELEMENTS = {"Lender": "Core", "Theme": "Core", "Borrower": "Core-Unexpressed"}
ELEMENTS |= {"Time": "Peripheral", "Mood": "Extra-Thematic"}
UNIT = 'POS="V" status="Created" name="lend.v" ID="701"'
HARBOUR = "The old sailor lent us a boat yesterday."
SPANS = (
    Span(3, 4, "1", "target"),
    Span(0, 3, "1 Lender", "element"),
    Span(0, 3, "1 Lender", "core_element"),
    Span(5, 7, "1 Theme", "element"),
    Span(5, 7, "1 Theme", "core_element"),
    Span(7, 8, "1 Time", "element"),
    Span(7, 8, "1 Time", "peripheral_element"),
)
WORDS = ("The", "old", "sailor", "lent", "us", "a", "boat", "yesterday", ".")
LINKS = (Link(2, 3, "Lender", "role"), Link(6, 3, "Theme", "role"), Link(7, 3, "Time", "role"))
OFFSETS = ((0, 3), (4, 7), (8, 14), (15, 19), (20, 22), (23, 24), (25, 29), (30, 39), (39, 40))
WRITTEN = WrittenText(HARBOUR, OFFSETS)


def label(text: str, part: str, name: str) -> str:
    """A label on the first place of `part` in a text; as in FrameNet, the end is that of the last character."""
    start = text.index(part)
    return f'<label start="{start}" end="{start + len(part) - 1}" name="{name}"/>'


def null(name: str, type: str) -> str:
    return f'<label itype="{type}" name="{name}"/>'


def layer(name: str, *labels: str, rank: int = 1) -> str:
    return f'<layer rank="{rank}" name="{name}">{"".join(labels)}</layer>'


def frame_set(*layers: str, status: str = "MANUAL", number: int = 2) -> str:
    unit = 'luID="701" luName="lend.v" frameID="7" frameName="Lending"'
    return f'<annotationSet {unit} status="{status}" ID="{number}">{"".join(layers)}</annotationSet>'


def sentence(text: str, *sets: str, number: int = 31) -> str:
    tags = f'<annotationSet status="UNANN" ID="1">{layer("PENN", label(text, text[:3], "DT"))}</annotationSet>'
    return f'<sentence sentNo="1" ID="{number}">\n<text>{text}</text>\n{tags}\n{"".join(sets)}\n</sentence>\n'


def one(text: str, targets: str, *elements: str, further: str = "", number: int = 31) -> str:
    """A sentence with one annotation set; elements are ``Name: words``, and targets are separated by bars."""
    target = layer("Target", *(label(text, part, "Target") for part in targets.split("|")))
    labels = [label(text, part, name) for name, part in (element.split(": ") for element in elements)]
    return sentence(text, frame_set(target, layer("FE", *labels), further), number=number)


LENT = one(HARBOUR, "lent", "Lender: The old sailor", "Theme: a boat", "Time: yesterday")


def release(folder: Path, *, texts: str | None = LENT, exemplars: str | None = None) -> Path:
    """A release with one frame and one lexical unit; the path of its index of frames."""
    elements = "".join(
        f'<FE coreType="{core}" abbrev="{name[:3]}" name="{name}" ID="{number}"><definition>d</definition></FE>'
        for number, (name, core) in enumerate(ELEMENTS.items(), start=71)
    )
    lexical = f"<lexUnit {UNIT}><definition>d</definition><lexeme order='1' POS='V' name='lend'/></lexUnit>"
    kinds = '<frameRelationType superFrameName="Parent" subFrameName="Child" name="Inheritance" ID="1"/>'
    document = '<corpus name="Own" ID="11"><document description="d" name="Harbour" ID="13"/></corpus>'
    files = {
        "frameIndex.xml": f"<frameIndex {XMLNS}>\n<frame name='Lending' ID='7'/>\n</frameIndex>",
        "frRelation.xml": f"<frameRelations {XMLNS}>\n{kinds}\n</frameRelations>",
        "luIndex.xml": f'<luIndex {XMLNS}>\n<lu frameName="Lending" frameID="7" {UNIT}/>\n</luIndex>',
        "semTypes.xml": f'<semTypes {XMLNS}>\n<semType abbrev="S" name="Sent" ID="5"/>\n</semTypes>',
        "frame/Lending.xml": f'<frame name="Lending" ID="7" {XMLNS}>\n{elements}\n{lexical}\n</frame>',
    }
    if texts is not None:
        files["fulltextIndex.xml"] = f"<fulltextIndex {XMLNS}>\n{document}\n</fulltextIndex>"
        files[TEXT] = f"<fullTextAnnotation {XMLNS}>\n<header/>\n{texts}</fullTextAnnotation>"
    if exemplars is not None:
        unit = f'<subCorpus name="some">\n{exemplars}</subCorpus>'
        files["lu/lu701.xml"] = f'<lexUnit {UNIT} frame="Lending" frameID="7" {XMLNS}>\n{unit}\n</lexUnit>'
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{XML}{content}\n", encoding="utf-8")
    return folder / "frameIndex.xml"


def only(path: Path) -> Document:
    (document,) = (part for part in read(path) if isinstance(part, Document))
    return document


def reasons(path: Path) -> dict[str, int]:
    return dict(Counter(part.reason for part in read(path) if isinstance(part, Skipped)))


def test_elements_point_from_their_last_word_at_the_target(tmp_path):
    assert list(read(release(tmp_path), name="fn/frameIndex.xml")) == [
        Document(f"fn/{TEXT}:31", words=WORDS, links=LINKS, spans=SPANS, group=f"fn/{TEXT}", written=WRITTEN)
    ]


def test_exemplars_are_of_the_group_of_their_lexical_unit(tmp_path):
    assert list(read(release(tmp_path, texts=None, exemplars=LENT))) == [
        Document("lu/lu701.xml:31", words=WORDS, links=LINKS, spans=SPANS, group="lu/lu701.xml", written=WRITTEN)
    ]


def test_running_texts_come_first_and_their_sentences_are_not_read_again_as_exemplars(tmp_path):
    path = release(tmp_path, exemplars=LENT + one("We lend it.", "lend", "Lender: We", number=37))
    assert [part.id for part in read(path) if isinstance(part, Document)] == [f"{TEXT}:31", "lu/lu701.xml:37"]
    (skipped,) = (part for part in read(path) if isinstance(part, Skipped))
    assert skipped == Skipped(
        f"{tmp_path / 'lu' / 'lu701.xml'}, sentence 31", "exemplar sentences that are in a running text too"
    )


def test_a_sentence_that_comes_twice_in_a_file_has_an_id_each_time(tmp_path):
    path = release(tmp_path, texts=None, exemplars=LENT + LENT)
    assert [document.id for document in read(path)] == ["lu/lu701.xml:31", "lu/lu701.xml:31@2"]


def test_words_are_runs_of_letters_and_of_marks_and_a_span_takes_all_that_it_touches(tmp_path):
    text = "Ann's tug-boat (it's hers) was re-lent..."
    path = release(tmp_path, texts=one(text, "lent", "Theme: tug-bo", "Lender: s tug", "Time: ers) w"))
    document = only(path)
    assert document.words == (
        *("Ann", "'", "s", "tug", "-", "boat", "(", "it", "'", "s", "hers", ")", "was", "re", "-", "lent", "..."),
    )
    assert {span for span in document.spans if span.kind in ("target", "element")} == {
        Span(15, 16, "1", "target"),
        Span(3, 6, "1 Theme", "element"),
        Span(2, 4, "1 Lender", "element"),
        Span(10, 13, "1 Time", "element"),
    }
    assert set(document.links) == {
        Link(5, 15, "Theme", "role"),
        Link(3, 15, "Lender", "role"),
        Link(12, 15, "Time", "role"),
    }


def test_a_target_in_two_stretches_is_pointed_at_where_it_begins(tmp_path):
    document = only(release(tmp_path, texts=one("They lent it out.", "lent|out", "Theme: it")))
    assert [span for span in document.spans if span.kind == "target"] == [
        Span(1, 2, "1", "target"),
        Span(3, 4, "1", "target"),
    ]
    assert document.links == (Link(2, 1, "Theme", "role"),)


def test_each_stretch_of_an_element_is_linked_and_further_layers_count(tmp_path):
    text = "The man who lent it left."
    further = layer("FE", label(text, "it", "Mood"), rank=2) + layer("FE", label(text, "it", "Theme"), rank=3)
    document = only(release(tmp_path, texts=one(text, "lent", "Lender: The man", "Lender: who", further=further)))
    assert document.links == (
        Link(1, 3, "Lender", "role"),
        Link(2, 3, "Lender", "role"),
        Link(4, 3, "Mood", "role"),
        Link(4, 3, "Theme", "role"),
    )
    assert Span(4, 5, "1 Mood", "extra_thematic_element") in document.spans


def test_targets_of_a_sentence_are_numbered_and_may_share_words(tmp_path):
    text = "We lent and lend it."
    first = frame_set(layer("Target", label(text, "lent", "Target")), layer("FE", label(text, "We", "Lender")))
    second = frame_set(
        layer("Target", label(text, "lend", "Target")),
        layer("FE", label(text, "We", "Lender"), label(text, "it", "Borrower")),
        number=3,
    )
    document = only(release(tmp_path, texts=sentence(text, first, second)))
    assert [(span.start, span.label) for span in document.spans if span.kind == "target"] == [(1, "1"), (3, "2")]
    assert [(span.start, span.label) for span in document.spans if span.kind == "core_unexpressed_element"] == [
        (4, "2 Borrower")
    ]
    lender = (Link(0, 1, "Lender", "role"), Link(0, 3, "Lender", "role"))
    assert document.links == (*lender, Link(4, 3, "Borrower", "role"))


def test_what_cannot_be_a_link_is_counted(tmp_path):
    text = "We lent  it."
    target = layer("Target", label(text, "lent", "Target"))
    space = '<label start="7" end="7" name="Time"/>'
    elements = layer(
        "FE",
        label(text, "We", "Lender"),
        label(text, "lent", "Mood"),
        label(text, "it", "Colour"),
        space,
        null("Theme", "DNI"),
        null("Borrower", "INI"),
    )
    again = layer("FE", label(text, "We", "Lender"), null("Mood", "INI"), rank=2)
    sets = (
        frame_set(target, elements, again),
        frame_set(target, layer("FE"), status="UNANN", number=3),
        frame_set(layer("FE"), number=4),
        frame_set(layer("Target", space.replace("Time", "Target")), layer("FE"), number=5),
    )
    path = release(tmp_path, texts=sentence(text, *sets))
    assert reasons(path) == {
        "elements without words (DNI)": 1,
        "elements without words (INI)": 2,
        "elements that end at the first word of their target": 1,
        "elements that their frame does not list": 1,
        "elements that join the same words by the same name as another one": 1,
        "spans over no word": 2,
        "targets whose elements were not annotated": 1,
        "annotation sets without a target": 1,
    }
    document = only(path)
    assert document.links == (Link(0, 1, "Lender", "role"), Link(2, 1, "Colour", "role"))
    assert Span(1, 2, "1 Mood", "element") in document.spans
    where = {part.where for part in read(path) if isinstance(part, Skipped)}
    file = tmp_path / TEXT
    assert where == {f"{file}, sentence 31, annotation set {number}" for number in (2, 3, 4, 5)}


def test_files_and_index_need_not_agree(tmp_path):
    path = release(tmp_path, exemplars=LENT)
    (tmp_path / "lu" / "lu702.xml").write_text("never read")
    (tmp_path / TEXT).unlink()
    assert reasons(path) == {
        "texts and lexical units of FrameNet's index that have no file": 1,
        "files that FrameNet's index does not list, or marks as a problem": 1,
    }
    assert only(path).id == "lu/lu701.xml:31"
    frame = tmp_path / "frame" / "Lending.xml"
    frame.write_text(frame.read_text().replace("Created", "Problem"))
    assert reasons(path)["files that FrameNet's index does not list, or marks as a problem"] == 2


def test_the_folder_of_a_release_is_one_corpus(tmp_path):
    release(tmp_path, exemplars=one("We lend it.", "lend", "Theme: it", number=37))
    (tmp_path / "README.txt").write_text("A release.\n")
    corpus = read_corpus(tmp_path)
    assert corpus == Corpus(
        str(tmp_path),
        files=(tmp_path / "frameIndex.xml",),
        format="framenet",
        ignored=(tmp_path / "README.txt",),
    )
    found = summarize(corpus)
    assert (found.documents, found.texts) == (2, 2)
    assert found.links == {"role": {"Theme": 2, "Lender": 1, "Time": 1}}
    assert found.spans == {"target": 2, "element": 4, "core_element": 3, "peripheral_element": 1}


def test_every_file_that_is_read_is_in_the_hash(tmp_path):
    release(tmp_path, exemplars=LENT)
    before = read_corpus(tmp_path).sha256
    files = sorted(tmp_path.rglob("*.xml"))
    assert len(files) == 8
    for file in files:
        text = file.read_text()
        file.write_text(text + "\n")
        assert read_corpus(tmp_path).sha256 != before, file
        file.write_text(text)
    assert read_corpus(tmp_path).sha256 == before


def test_two_releases_in_a_folder_are_told_apart(tmp_path):
    release(tmp_path / "a")
    release(tmp_path / "b", texts=None, exemplars=LENT)
    assert [document.id for document in read_corpus(tmp_path)] == [
        "a/fulltext/Own__Harbour.xml:31",
        "b/lu/lu701.xml:31",
    ]


def test_nltk_is_allowed_the_folder_only_while_it_is_read(tmp_path):
    before = list(nltk.data.path)
    documents = read(release(tmp_path))
    next(documents)
    assert nltk.data.path == [*before, str(tmp_path.resolve())]
    documents.close()
    assert nltk.data.path == before


@pytest.mark.parametrize(
    ("beginning", "expected"),
    [
        ([XML.strip(), f"<frameIndex {XMLNS}>"], True),
        ([f"{XML.strip()}<?xml-stylesheet type='text/xsl' href='x.xsl'?><frameIndex>"], True),
        (["<!-- frames -->", "", "<frameIndex"], True),
        (["<luIndex>", "<frameIndex>"], False),
        (["frameIndex"], False),
        ([], False),
    ],
)
def test_the_index_of_frames_is_recognised(beginning, expected):
    assert recognise(beginning) is expected


@pytest.mark.parametrize(("start", "end"), [(4, 12), (12, 12), (5, 3)])
def test_a_span_outside_its_sentence_is_refused(tmp_path, start, end):
    text = "We lent it ."
    wrong = f'<label start="{start}" end="{end}" name="Theme"/>'
    sets = frame_set(layer("Target", label(text, "lent", "Target")), layer("FE", wrong))
    path = release(tmp_path, texts=sentence(text, sets))
    assert refused(path) == (
        f"{tmp_path / TEXT}, sentence 31, annotation set 2, has a span from character {start} to {end}, but its "
        f"sentence has 12 characters, counted from 0; a span lies within its sentence: check that the file is "
        f"unchanged."
    )


def test_a_sentence_without_text_is_refused(tmp_path):
    path = release(tmp_path, texts=LENT.replace(HARBOUR, " "))
    assert refused(path) == (
        f"{tmp_path / TEXT}, sentence 31, has no text; a sentence needs at least one word: check that the file is "
        f"whole."
    )


@pytest.mark.parametrize(
    "name",
    [*INDEXES, "frameIndex.xml", "frame/Lending.xml", "lu/lu701.xml", TEXT],
)
def test_a_file_that_breaks_off_is_refused(tmp_path, name):
    path = release(tmp_path, exemplars=LENT)
    broken = tmp_path / name
    lines = broken.read_text().splitlines()[:-1]
    broken.write_text("\n".join(lines) + "\n")
    assert refused(path) == (
        f"{broken}:{len(lines)} is not well-formed XML (no element found); FrameNet is written in XML: check that the "
        f"file is whole, or correct the line."
    )


def test_bytes_that_are_not_utf_8_are_refused(tmp_path):
    path = release(tmp_path)
    text = tmp_path / TEXT
    text.write_bytes(text.read_bytes().replace(b"yesterday", b"yest\xe9rday"))
    assert refused(path) == (
        f"{text}:5 holds the byte 0xe9, which is not UTF-8; headscope reads UTF-8: convert the file, for instance with "
        f"`iconv -f LATIN1 -t UTF-8`."
    )


def test_what_nltk_refuses_is_said_in_a_sentence(tmp_path):
    path = release(tmp_path, texts=LENT.replace('status="UNANN"', 'status="DONE"'))
    assert refused(path) == (
        f"{tmp_path / TEXT} is not as NLTK's reader of FrameNet 1.7 needs it (AssertionError: no reason given); "
        f"check that the release is whole and unchanged."
    )


@pytest.mark.parametrize("name", INDEXES)
def test_a_release_that_lacks_a_file_is_refused(tmp_path, name):
    path = release(tmp_path)
    (tmp_path / name).unlink()
    assert refused(path) == (
        f"{tmp_path} has no {name}, which a FrameNet release has next to frameIndex.xml: give the folder of a whole "
        f"release; of lu/ and fulltext/ one may be missing."
    )


def test_a_release_without_sentences_is_refused(tmp_path):
    path = release(tmp_path)
    shutil.rmtree(tmp_path / "fulltext")
    assert refused(path) == (
        f"{tmp_path} has neither fulltext/ nor lu/ next to frameIndex.xml, so it has no sentences; give the folder of "
        f"a FrameNet release."
    )


def test_without_nltk_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "nltk.corpus.reader.framenet", None)
    assert refused(release(tmp_path)) == (
        "FrameNet is read through NLTK, which is not installed; install headscope with the extra `framenet`: "
        "pip install 'headscope[framenet]'."
    )
