"""The SFU Review Corpus: which words are cue and scope, what cannot be told, and what is refused at which line."""

import re
from collections import Counter
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import pytest

from headscope.corpora import Document, Skipped, Span
from headscope.corpora.sfu import read, recognise
from refusals import refusal

FILE = "no1.xml"
refused = partial(refusal, read)

OF_NONE = "scopes that name no cue of their sentence"
AS_SCOPE = "cues that name a cue or a scope, as only scopes should name cues"


def words(text: str) -> str:
    return "".join(f"<W>{word}</W>" for word in text.split())


def cue(own: object, text: str, kind: str = "negation") -> str:
    return f'<cue COMMENTS="" ID="{own}" type="{kind}">{words(text)}</cue>'


def scope(source: object, inside: str) -> str:
    return f'<xcope ID="90"><ref ID="91" SRC="{source}"></ref>{inside}</xcope>'


def review(*sentences: str) -> str:
    """Each sentence on a line of its own, from the third on."""
    lines = "\n".join(f"<SENTENCE>{sentence}</SENTENCE>" for sentence in sentences)
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<DOCUMENT><DESC></DESC><TIME>58</TIME><P/><P>\n{lines}</P></DOCUMENT>'
    )


def only(path: Path) -> Document:
    (document,) = read(path)
    assert isinstance(document, Document)
    return document


def test_cues_stand_outside_of_their_scopes_and_speculation_is_left_alone(file):
    doubt = cue(1, "would", "speculation")
    nested = f"<C>{doubt}</C>{scope(1, cue(2, 'never') + scope(2, words('buy it')))}"
    path = file(
        review(
            f"{words('I')}{cue(0, 'do n&#39;t')}{scope(0, words('think I') + nested)}<C>{words('and')}</C>{words('.')}",
            f"{words('No')}<W>.</W>",
        )
    )
    assert list(read(path)) == [
        Document(
            "no1.xml:1",
            words=("I", "do", "n't", "think", "I", "would", "never", "buy", "it", "and", "."),
            spans=(
                Span(1, 3, "1", "cue"),
                Span(3, 9, "1", "scope"),
                Span(6, 7, "2", "cue"),
                Span(7, 9, "2", "scope"),
            ),
            group="no1.xml",
        ),
        Document("no1.xml:2", words=("No", "."), group="no1.xml"),
    ]


def test_a_file_can_be_called_otherwise(file):
    (document,) = read(file(review(words("a"))), name="BOOKS/no1.xml")
    assert (document.id, document.group) == ("BOOKS/no1.xml:1", "BOOKS/no1.xml")


def test_a_negation_may_have_several_scopes_one_or_none(file):
    text = scope(0, words("who had")) + cue(0, "never") + scope(0, words("sold")) + cue(1, "not")
    assert only(file(review(text))).spans == (
        Span(2, 3, "1", "cue"),
        Span(0, 2, "1", "scope"),
        Span(3, 4, "1", "scope"),
        Span(4, 5, "2", "cue"),
    )


def test_cues_that_share_an_id_are_one_and_a_scope_may_have_several_cues(file):
    text = cue(0, "neither") + scope("0 1", words("he")) + cue(0, "nor") + cue(1, "no") + words("one")
    assert only(file(review(text))).spans == (
        Span(0, 1, "1", "cue"),
        Span(2, 3, "1", "cue"),
        Span(1, 2, "1", "scope"),
        Span(3, 4, "2", "cue"),
        Span(1, 2, "2", "scope"),
    )


def test_words_of_a_cue_that_stand_inside_its_scope_are_not_in_it(file):
    assert only(file(review(scope(0, words("is") + cue(0, "not") + words("so"))))).spans == (
        Span(1, 2, "1", "cue"),
        Span(0, 1, "1", "scope"),
        Span(2, 3, "1", "scope"),
    )


def test_an_id_is_another_cue_in_another_sentence(file):
    path = file(review(cue(4, "not") + scope(4, words("a")), words("b") + cue(4, "or", "speculation")))
    assert [len(document.spans) for document in read(path) if isinstance(document, Document)] == [2, 0]


def test_control_characters_are_what_they_mean_in_windows_1252(file):
    assert only(file(review("<W>can\x92t</W><W>\x85</W><W>\x93</W><W>\x81</W>"))).words == ("can’t", "…", "“", "\x81")


@pytest.mark.parametrize("source", ["", '<ref ID="1" SRC="7"/>', '<ref ID="1" SRC="0 7"/>'])
def test_a_scope_whose_cue_is_not_known_is_skipped(file, source):
    path = file(review(words("a"), f'{cue(0, "not")}<xcope ID="1">{source}{words("it")}</xcope>'))
    _, skipped, document = read(path)
    assert skipped == Skipped(f"{path}:4, sentence 2", OF_NONE)
    assert document.spans == (Span(0, 1, "1", "cue"), *[Span(1, 2, "1", "scope")] * ("0" in source))


def test_a_scope_that_names_the_cue_of_another_sentence_is_skipped(file):
    path = file(review(cue(0, "not"), scope(0, words("it"))))
    assert [part for part in read(path) if isinstance(part, Skipped)] == [Skipped(f"{path}:4, sentence 2", OF_NONE)]


def test_a_cue_that_refers_to_something_is_skipped_as_a_scope(file):
    path = file(review(f'{cue(0, "not")}<cue ID="1" type="speculation"><ref ID="2" SRC="0"/>{words("round")}</cue>'))
    skipped, document = read(path)
    assert skipped == Skipped(f"{path}:3, sentence 1", AS_SCOPE)
    assert document.spans == (Span(0, 1, "1", "cue"),)


def test_a_sentence_may_stand_in_several_lines_or_in_one_with_others(file):
    text = review(words("a b"), cue(0, "not") + words("c"))
    expected = list(read(file(text)))
    assert len(expected) == 2
    assert list(read(file(text.replace("\n<SENTENCE>", "<SENTENCE>")))) == expected
    assert list(read(file(text.replace("<W>", "\n<W>\n").replace("\n", "\r\n")))) == expected


@pytest.mark.parametrize(
    ("sentence", "element", "place"),
    [
        ("<p>a</p>", "p", "in <SENTENCE>, where the SFU corpus has <C> or <W> or <cue> or <xcope>"),
        ('<ref ID="1" SRC="0"/>', "ref", "in <SENTENCE>, where the SFU corpus has <C> or <W> or <cue> or <xcope>"),
        ("<W>a<W>b</W></W>", "W", "in <W>, where the SFU corpus has no element"),
    ],
)
def test_an_element_in_another_place_is_refused(file, sentence, element, place):
    path = file(review(words("a"), words("b"), sentence))
    assert refused(path) == (f"{path}:5 has <{element}> {place}: correct it, or name the format that the file is in.")


def test_another_root_is_refused(file):
    path = file("<sentences/>")
    assert refused(path) == (
        f"{path}:1 has <sentences> outermost, where the SFU corpus has <DOCUMENT>: "
        f"correct it, or name the format that the file is in."
    )


@pytest.mark.parametrize(
    ("broken", "element", "attribute", "lack"),
    [
        ('<cue type="negation"><W>not</W></cue>', "cue", "ID", "no"),
        ('<cue ID="" type="negation"><W>not</W></cue>', "cue", "ID", "an empty"),
        ('<cue ID="0"><W>not</W></cue>', "cue", "type", "no"),
        ('<xcope ID="0"><ref ID="1"/><W>it</W></xcope>', "ref", "SRC", "no"),
        ('<xcope ID="0"><ref ID="1" SRC=" "/><W>it</W></xcope>', "ref", "SRC", "an empty"),
    ],
)
def test_a_missing_attribute_is_refused(file, broken, element, attribute, lack):
    path = file(review(words("a"), words("b") + broken))
    assert refused(path) == (
        f"{path}:4 has <{element}> with {lack} attribute '{attribute}', which the SFU corpus needs: add its value."
    )


def test_a_cue_of_another_type_is_refused(file):
    path = file(review(words("a"), cue(0, "not", "denial")))
    assert refused(path) == (
        f"{path}:4 has a cue of the type 'denial' in sentence 2; the SFU corpus has 'negation' and 'speculation': "
        f"correct it."
    )


def test_a_cue_that_is_negation_and_speculation_is_refused(file):
    path = file(review(cue(3, "not") + cue(3, "or", "speculation")))
    assert refused(path) == (
        f"{path}:3 has the ID '3' for a cue of speculation and one of negation in sentence 1; only the parts of one "
        f"cue share an ID: renumber one of them."
    )


def test_a_cue_without_words_is_refused(file):
    path = file(review(words("a"), words("b") + cue(0, "")))
    assert refused(path) == (
        f"{path}:4 has a cue without words in sentence 2; a cue needs at least one <W>: remove it or correct it."
    )


@pytest.mark.parametrize("empty", ["", "<C></C>", "\n"])
def test_a_sentence_without_words_is_refused(file, empty):
    path = file(review(words("a"), empty))
    assert refused(path) == (f"{path}:4 has no word in sentence 2; a sentence needs at least one <W>: remove it.")


@pytest.mark.parametrize("word", ["<W/>", "<W> </W>"])
def test_an_empty_word_is_refused(file, word):
    path = file(review(words("a"), words("b") + word))
    assert refused(path) == f"{path}:4 has <W> without a visible character; remove it, or write its word."


def test_text_outside_of_words_is_refused(file):
    path = file(review(words("a"), f"{words('b')}\n and so {words('c')}"))
    assert refused(path) == (
        f"{path}:5 has the text 'and so' in <SENTENCE>; words are in <W>: mark it as one, or remove it."
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (review(words("a")), True),
        (review(cue(0, "not")).replace("\n", ""), True),
        ("<DOCUMENT><P></P></DOCUMENT>", False),
        ("<DOCUMENT><P><SENTENCE>He went.</SENTENCE></P></DOCUMENT>", False),
        ("<sentences><sentence><text>a</text></sentence></sentences>", False),
        ("", False),
    ],
)
def test_sentences_of_words_are_recognised(text, expected):
    assert recognise(text.split("\n")) is expected


@pytest.fixture(scope="module")
def reviews(data, read_real) -> dict[Path, list[Document | Skipped]]:
    return read_real("sfu", *sorted((data / "negation/sfu_review_xml").rglob("*.xml")))


@pytest.mark.full
@pytest.mark.data
def test_the_reviews_have_the_published_counts(reviews):
    # Counts of data/negation/README.md.
    counts: Counter[str] = Counter()
    with_negation: Counter[str] = Counter()
    for path, parts in reviews.items():
        raw = path.read_text(encoding="utf-8")
        counts.update(part.reason for part in parts if isinstance(part, Skipped))
        documents = [part for part in parts if isinstance(part, Document)]
        assert sum(len(document.words) for document in documents) == raw.count("<W>")
        negations = [(document.id, span.label) for document in documents for span in document.spans]
        assert len(set(negations)) == len(re.findall('<cue [^>]*type="negation"', raw))
        scopes = {
            (document.id, span.label) for document in documents for span in document.spans if span.kind == "scope"
        }
        with_negation[path.parent.name] += sum(bool(document.spans) for document in documents)
        counts += Counter(
            {
                "files": 1,
                "sentences": len(documents),
                "words": sum(len(document.words) for document in documents),
                "negations": len(set(negations)),
                "with a scope": len(scopes),
            }
        )
    assert counts == {
        "files": 350,
        "sentences": 16204,
        "words": 303289,
        "negations": 3296,
        "with a scope": 3121,
        OF_NONE: 86,
        AS_SCOPE: 5,
    }
    assert with_negation == {
        "BOOKS": 362,
        "CARS": 517,
        "COMPUTERS": 522,
        "COOKWARE": 320,
        "HOTELS": 347,
        "MOVIES": 427,
        "MUSIC": 418,
    }


@pytest.mark.data
@pytest.mark.parametrize("domain", ["BOOKS", "CARS"])
def test_cues_and_scopes_hold_the_words_that_a_tree_of_the_file_has_in_them(reviews, domain):
    paths = [path for path in reviews if path.parent.name == domain]
    assert paths
    for path in paths:
        documents = [part for part in reviews[path] if isinstance(part, Document)]
        sentences = list(ElementTree.parse(path).iter("SENTENCE"))
        for document, sentence in zip(documents, sentences, strict=True):
            places = {id(word): i for i, word in enumerate(sentence.iter("W"))}
            cues = [element for element in sentence.iter("cue") if element.get("type") == "negation"]
            for label, element in enumerate(cues, start=1):
                scopes = [
                    within
                    for within in sentence.iter("xcope")
                    if element.get("ID")
                    in [source for ref in within.findall("ref") for source in ref.get("SRC").split()]
                ]
                for kind, elements in (("cue", [element]), ("scope", scopes)):
                    spans = [span for span in document.spans if (span.label, span.kind) == (str(label), kind)]
                    assert sorted(i for span in spans for i in range(span.start, span.end)) == sorted(
                        places[id(word)] for around in elements for word in around.iter("W")
                    )
