"""Faults that any file in XML may have: each reader refuses them in one sentence, at their line."""

from itertools import pairwise
from pathlib import Path

import pytest

from corpora.xml_samples import DOCUMENT, LAPTOPS, OPINIONS, REVIEWS, SCOPES, SENTENCE
from headscope.corpora import FORMATS
from refusals import refusal

TITLES = {
    "bioscope": "BioScope",
    "semeval": "SemEval-2014",
    "semeval-terms": "SemEval-2014",
    "semeval2016": "SemEval-2016",
    "sfu": "the SFU corpus",
}

MALFORMED = [  # format, content, line, what expat calls it
    ("semeval", REVIEWS.partition("</aspectCategories>")[0], 6, "no element found"),
    ("semeval", REVIEWS.partition("</sentence>")[0], 7, "no element found"),
    ("semeval", REVIEWS.replace("</sentence>", "</review>"), 8, "mismatched tag"),
    ("semeval", REVIEWS.replace("&amp;", "&soup;"), 4, "undefined entity"),
    ("semeval", REVIEWS + REVIEWS.partition("\n")[2], 10, "junk after document element"),
    ("semeval", "", 1, "no element found"),
    ("semeval-terms", LAPTOPS.partition("</aspectTerms>")[0], 6, "no element found"),
    ("semeval-terms", LAPTOPS.replace("&amp;", "&soup;"), 4, "undefined entity"),
    ("semeval-terms", "", 1, "no element found"),
    ("semeval2016", OPINIONS.partition("</Opinions>")[0], 5, "no element found"),
    ("semeval2016", OPINIONS.replace("&amp;", "&soup;"), 4, "undefined entity"),
    ("semeval2016", "", 1, "no element found"),
    ("bioscope", SCOPES.partition("</xcope>")[0], 3, "no element found"),
    ("bioscope", SCOPES.replace("</cue>", "</xcope>"), 3, "mismatched tag"),
    ("bioscope", SCOPES.replace("&amp;", "&ca;"), 3, "undefined entity"),
    ("bioscope", "", 1, "no element found"),
    ("sfu", DOCUMENT[:-5], 4, "unclosed token"),
    ("sfu", DOCUMENT.replace("</P>", f"{SENTENCE}</C></P>"), 5, "mismatched tag"),
    ("sfu", DOCUMENT.replace("<W>a</W>", "<W>&who;</W>"), 3, "undefined entity"),
    ("sfu", "", 1, "no element found"),
]
# Each entity is ten of the one before it.
BILLION = '<!ENTITY a "ha">' + "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in pairwise("abcdefghi"))
DOCUMENT_TYPES = [  # format, content
    *(
        ("semeval", REVIEWS.replace("<sentences>", f"{declared}\n<sentences>").replace("&amp;", "&soup;"))
        for declared in ("<!DOCTYPE sentences []>", '<!DOCTYPE sentences [\n<!ENTITY soup "Soup">\n]>')
    ),
    ("semeval-terms", LAPTOPS.replace("<sentences>", f"<!DOCTYPE sentences [{BILLION}]>\n<sentences>")),
    ("semeval2016", OPINIONS.replace("<Reviews>", f"<!DOCTYPE Reviews [{BILLION}]>\n<Reviews>")),
    (
        "semeval2016",
        OPINIONS.replace("<Reviews>", '<!DOCTYPE Reviews SYSTEM "a" [<!ATTLIST a b CDATA "">]>\n<Reviews>'),
    ),
    (
        "bioscope",
        SCOPES.replace("<Annotation>", f"<!DOCTYPE Annotation [{BILLION}]>\n<Annotation>").replace("&amp;", "&i;"),
    ),
    (
        "bioscope",
        SCOPES.replace("<Annotation>", '<!DOCTYPE Annotation [<!ENTITY i SYSTEM "/etc/passwd">]>\n<Annotation>'),
    ),
    ("sfu", DOCUMENT.replace("<DOCUMENT>", '<!DOCTYPE DOCUMENT [<!ENTITY a "b">]>\n<DOCUMENT>')),
]


@pytest.mark.parametrize(("format", "content", "line", "fault"), MALFORMED)
def test_what_is_not_well_formed_is_refused(tmp_path: Path, format: str, content: str, line: int, fault: str) -> None:
    path = tmp_path / "corpus.xml"
    path.write_text(content)
    assert refusal(FORMATS[format].read, path) == (
        f"{path}:{line} is not well-formed XML ({fault}); {TITLES[format]} is written in XML: check that the file is "
        "whole, or correct the line."
    )


@pytest.mark.parametrize(("format", "content"), DOCUMENT_TYPES)
def test_a_document_type_is_refused_with_its_entities(tmp_path: Path, format: str, content: str) -> None:
    path = tmp_path / "corpus.xml"
    path.write_text(content)
    assert refusal(FORMATS[format].read, path) == (
        f"{path}:2 has declarations in its document type, which can define entities without end; headscope reads XML "
        "without them: remove what is in the brackets."
    )


@pytest.mark.parametrize("document_type", ["", ' SYSTEM "BioScope.dtd"', ' SYSTEM "/etc/passwd"', ' PUBLIC "a" "b"'])
def test_a_file_that_names_its_document_type_is_read_and_what_it_names_is_not(tmp_path: Path, document_type) -> None:
    plain, named = tmp_path / "plain.xml", tmp_path / "named.xml"
    plain.write_text(SCOPES)
    named.write_text(SCOPES.replace("<Annotation>", f"<!DOCTYPE Annotation{document_type}>\n<Annotation>"))
    (first, *_), (second, *_) = (FORMATS["bioscope"].read(path, name="corpus") for path in (plain, named))
    assert (first.words, first.spans) == (second.words, second.spans)


@pytest.mark.parametrize(("before", "after"), [("&amp;", "&soup;"), ('id="', 'id="&soup;')])
def test_an_entity_of_another_file_is_refused(tmp_path: Path, before: str, after: str) -> None:
    """Without the file that defines it an entity is nothing, and expat says so neither in text nor in attributes."""
    path = tmp_path / "corpus.xml"
    with_type = SCOPES.replace("<Annotation>", '<!DOCTYPE Annotation SYSTEM "BioScope.dtd">\n<Annotation>')
    path.write_text(with_type.replace(before, after, 1))
    line = with_type[: with_type.index(before)].count("\n") + 1
    assert refusal(FORMATS["bioscope"].read, path) == (
        f"{path}:{line} has the entity &soup;, which another file defines; headscope reads no file that a corpus "
        "names: write the characters that the entity means."
    )


@pytest.mark.parametrize("cases", [MALFORMED, DOCUMENT_TYPES])
def test_no_format_is_forgotten(cases: list[tuple[str, ...]]) -> None:
    assert {format for format, *_ in cases} == TITLES.keys()
