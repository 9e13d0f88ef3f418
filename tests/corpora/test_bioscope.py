"""BioScope: which words of a text are cue and scope, what cannot be told, and what is refused at which line."""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import pytest

from headscope.corpora import Document, Skipped, Span, bioscope, read, summarize
from headscope.corpora.bioscope import recognise
from headscope.corpora.written_text import WrittenText
from refusals import refusal

FILE = "abstracts.xml"
refused = partial(refusal, bioscope.read)

OF_NONE = "scopes that no cue of their sentence names"
ELSEWHERE = "negations whose scope is not in their sentence"
WITHOUT_WORDS = "sentences without a word"


MARKS = {
    r"\[(\w+) ": r'<xcope id="\1">',
    r"\]": "</xcope>",
    r"\{(\w+) ": r'<cue type="negation" ref="\1">',
    r"\?(\w+) ": r'<cue type="speculation" ref="\1">',
    r"\}": "</cue>",
}


def mark(text: str) -> str:
    """A text with the elements of the corpus: ``[X {X not} so]`` is a scope with its cue, ``?X may}`` a speculation."""
    for pattern, element in MARKS.items():
        text = re.sub(pattern, element, text)
    return text


def corpus(*sentences: str, identity: str = "77") -> str:
    """Each sentence on a line of its own, from the second on, with the ids S1, S2 ..."""
    lines = "".join(f'<sentence id="S{i}">{mark(text)}</sentence>\n' for i, text in enumerate(sentences, start=1))
    document = f'<Document type="Abstract"><DocID type="PMID">{identity}</DocID><DocumentPart type="Text">'
    return f"<Annotation><DocumentSet>{document}\n{lines}</DocumentPart></Document></DocumentSet></Annotation>\n"


def only(path: Path) -> Document:
    (document,) = bioscope.read(path)
    assert isinstance(document, Document)
    return document


def test_a_cue_in_parts_stands_in_its_scope_and_is_none_of_it(file):
    text = "The drug blocked [X {X neither} growth {X nor} movement]."
    content = "The drug blocked neither growth nor movement."
    assert list(bioscope.read(file(corpus(text, "All was well.")), name="sub/a")) == [
        Document(
            "sub/a:77:S1",
            words=("The", "drug", "blocked", "neither", "growth", "nor", "movement", "."),
            spans=(
                Span(3, 4, "1", "cue"),
                Span(5, 6, "1", "cue"),
                Span(4, 5, "1", "scope"),
                Span(6, 7, "1", "scope"),
            ),
            group="sub/a:77",
            written=WrittenText(
                content, ((0, 3), (4, 8), (9, 16), (17, 24), (25, 31), (32, 35), (36, 44), (44, 45))
            ),
        ),
        Document(
            "sub/a:77:S2",
            words=("All", "was", "well", "."),
            group="sub/a:77",
            written=WrittenText("All was well.", ((0, 3), (4, 7), (8, 12), (12, 13))),
        ),
    ]  # fmt: skip


def test_scopes_are_nested_and_speculation_is_left_alone(file):
    text = "It [M ?M may} [O {O without} Ca, [N {N not} bind (p50)]]]."
    document = only(file(corpus(text)))
    assert document.words == ("It", "may", "without", "Ca", ",", "not", "bind", "(", "p50", ")", ".")
    assert document.spans == (
        Span(2, 3, "1", "cue"),
        Span(3, 10, "1", "scope"),
        Span(5, 6, "2", "cue"),
        Span(6, 10, "2", "scope"),
    )


@pytest.mark.parametrize(
    ("text", "words", "spans"),
    [
        # A cue that is a part of its word is affixal, and the word is in the scope.
        ("[X {X un}bound p65]", "unbound p65", [(0, 1, "affixal_cue"), (0, 2, "scope")]),
        ("can[X {X not} go]", "cannot go", [(0, 1, "affixal_cue"), (0, 2, "scope")]),
        # A mark is a word of its own, so a cue beside it is whole.
        ("with/[X {X without} it]", "with / without it", [(2, 3, "cue"), (3, 4, "scope")]),
        ("[X {X no} NF-kappa]B.", "no NF-kappaB .", [(0, 1, "cue"), (1, 2, "scope")]),
        # One part of a cue may be a word, and the other a part of one.
        ("[X {X neither} a, {X nor}b]", "neither a , norb", [(0, 1, "cue"), (3, 4, "affixal_cue"), (1, 4, "scope")]),
        ("[X {X none}]", "none", [(0, 1, "cue")]),
        # The text of an entity is a part of the word around it.
        ("[X {X no} na&#239;ve T&lt;5]", "no naïve T < 5", [(0, 1, "cue"), (1, 5, "scope")]),
    ],
)  # fmt: skip
def test_words_are_cue_or_scope_as_far_as_their_characters_are(file, text, words, spans):
    document = only(file(corpus(text)))
    assert document.words == tuple(words.split())
    assert document.spans == tuple(Span(start, end, "1", kind) for start, end, kind in spans)


def test_the_end_of_a_line_is_a_space(file):
    document = only(file(corpus("[X \n  {X no}\n\n  new  growth] seen.\n")))
    assert document.text.content == "no new  growth seen."
    assert document.words == document.text.words == ("no", "new", "growth", "seen", ".")
    assert document.spans == (Span(0, 1, "1", "cue"), Span(1, 3, "1", "scope"))


def test_what_cannot_be_told_is_skipped(file):
    path = file(corpus("a [X b] {Y not} ?Z may}", " ", "{X no} [W {W nor}]"))
    skipped, elsewhere, empty, further, document = [
        part for part in bioscope.read(path) if isinstance(part, Skipped) or part.id.endswith("S3")
    ]
    assert skipped == Skipped(f"{path}:2", OF_NONE)
    assert elsewhere == Skipped(f"{path}:2", ELSEWHERE)
    assert empty == Skipped(f"{path}:3", WITHOUT_WORDS)
    # A scope of another sentence is not meant.
    assert further == Skipped(f"{path}:4", ELSEWHERE)
    assert document.spans == (Span(1, 2, "1", "cue"),)
    assert summarize(read(path)).skipped == {OF_NONE: 1, ELSEWHERE: 2, WITHOUT_WORDS: 1}


def test_a_document_without_an_id_has_its_number(file):
    bare = '<Document><sentence id="S1">a</sentence></Document>'
    part = '<DocumentPart type="Title"><sentence id="S1">b</sentence></DocumentPart>'
    titled = f"<Document><DocID>n 1</DocID>{part}</Document>"
    path = file(f"<Annotation><DocumentSet>{bare}{titled}{bare}</DocumentSet></Annotation>")
    assert [(document.id, document.group) for document in bioscope.read(path)] == [
        ("abstracts.xml:1:S1", "abstracts.xml:1"),
        ("abstracts.xml:n 1:S1", "abstracts.xml:n 1"),
        ("abstracts.xml:3:S1", "abstracts.xml:3"),
    ]


def test_byte_order_mark_windows_lines_and_one_single_line_change_nothing(file):
    text = corpus("a [X {X not} b]", "c")
    plain = list(bioscope.read(file(text)))
    assert len(plain) == 2
    assert list(bioscope.read(file("\ufeff" + text.replace("\n", "\r\n")))) == plain
    assert list(bioscope.read(file(text.replace("\n", "")))) == plain


# ------------------------------------------------------------------- witness

SENTENCES = (
    "We saw [A {A no} effect of TNF-alpha, [B {B nor} did [C they {C not} look]]].",
    "[D {D Absence} of (clear) signs] [E ?E suggests} it is [F {F neither} old {F nor} new]]!",
    "Nothing is marked here.",
)


def walk(element: ElementTree.Element, around: tuple[ElementTree.Element, ...]) -> Iterator[tuple[str, tuple]]:
    """Each character of an element, with the elements around it."""
    inside = (*around, element)
    for character in element.text or "":
        yield character, inside
    for child in element:
        yield from walk(child, inside)
        for character in child.tail or "":
            yield character, inside


def list_scopes(sentence: ElementTree.Element) -> list[tuple[list[int], list[int]]]:
    """For each negation the words of its cue and of its scope, by a loop over characters."""
    characters = list(walk(sentence, ()))
    text = "".join(character for character, _ in characters)
    words = [match.span() for match in re.finditer(r"[\w-]+|[^\w\s]", text)]
    refs = dict.fromkeys(e.get("ref") for e in sentence.iter("cue") if e.get("type") == "negation")
    negations = []
    for ref in refs:
        inside = [
            {kind for _, around in characters[start:end] for e in around for kind in kinds_of(e, ref)}
            for start, end in words
        ]
        cues = [i for i, kinds in enumerate(inside) if "cue" in kinds]
        negations.append((cues, [i for i, kinds in enumerate(inside) if "scope" in kinds and i not in cues]))
    return negations


def kinds_of(element: ElementTree.Element, ref: str) -> list[str]:
    if element.tag == "cue" and element.get("ref") == ref:
        return ["cue"]
    return ["scope"] if element.tag == "xcope" and element.get("id") == ref else []


def test_cues_and_scopes_are_those_that_a_loop_over_characters_finds(file):
    path = file(corpus(*SENTENCES))
    sentences = list(ElementTree.parse(path).iter("sentence"))
    for document, sentence in zip(bioscope.read(path), sentences, strict=True):
        negations = list_scopes(sentence)
        for label, (cues, covered) in enumerate(negations, start=1):
            for kind, expected in (("cue", cues), ("scope", covered)):
                spans = [span for span in document.spans if (span.label, span.kind) == (str(label), kind)]
                assert [i for span in spans for i in range(span.start, span.end)] == expected
        assert {span.label for span in document.spans} == {str(i + 1) for i in range(len(negations))}
    assert [len(list_scopes(sentence)) for sentence in sentences] == [3, 2, 0]


# ------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("sentence", "attribute", "element"),
    [
        ('<xcope id="X"><cue type="negation">no</cue></xcope>', "no attribute 'ref'", "cue"),
        ('<xcope id="X"><cue ref="X">no</cue></xcope>', "no attribute 'type'", "cue"),
        ('<xcope><cue type="negation" ref="X">no</cue></xcope>', "no attribute 'id'", "xcope"),
        ('<xcope id=" "><cue type="negation" ref="X">no</cue></xcope>', "an empty attribute 'id'", "xcope"),
    ],
)
def test_a_missing_attribute_is_refused(file, sentence, attribute, element):
    path = file(corpus("a", sentence))
    assert refused(path) == f"{path}:3 has <{element}> with {attribute}, which BioScope needs: add its value."


@pytest.mark.parametrize(
    ("sentence", "sentence_end"),
    [
        (
            '[X <cue type="denial" ref="X">no</cue>]',
            "has a cue of the type 'denial' in sentence 'S2'; BioScope has 'negation' and 'speculation': correct it.",
        ),
        (
            "[X {X no} ?X may}]",
            "has the ref 'X' for a cue of speculation and one of negation in sentence 'S2'; only the parts of one cue "
            "share an ID: renumber one of them.",
        ),
        (
            "[X {X  }a]",
            "has a cue without words in sentence 'S2'; a cue needs at least one: remove it or correct it.",
        ),
        (
            "[X {X no}] [X b]",
            "has a second scope with the id 'X' in sentence 'S2'; a cue names its scope by its id: renumber one of "
            "them.",
        ),
        (
            "<b>c</b>",
            "has <b> in <sentence>, where BioScope has <xcope> or <cue>: correct it, or name the format that the file "
            "is in.",
        ),
    ],
)  # fmt: skip
def test_a_faulty_sentence_is_refused(file, sentence, sentence_end):
    path = file(corpus("a", sentence))
    assert refused(path) == f"{path}:3 {sentence_end}"


def test_text_outside_of_sentences_is_refused(file):
    path = file(corpus("a").replace("</DocumentPart>", "and so</DocumentPart>"))
    assert refused(path) == (
        f"{path}:3 has the text 'and so' in <DocumentPart>; words are in <sentence>: mark it as one, or remove it."
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (corpus("a"), True),
        (corpus("a").replace("\n", ""), True),
        (f'<?xml version="1.0"?>\n<!-- a & b -->\n{corpus("a")}', True),
        ("<Annotation><DocumentSet></DocumentSet></Annotation>", False),
        ("<DOCUMENT><P><SENTENCE><W>a</W></SENTENCE></P></DOCUMENT>", False),
        ("", False),
    ],
)
def test_a_set_of_annotated_documents_is_recognised(text, expected):
    assert recognise(text.split("\n")) is expected
