"""Faults that a file may have in many formats: each reader refuses them in one sentence, at their line.

A table is a fault, and a row of it the name of a format, what its file holds, and what of the sentence is its own.
What only one format can have is in the file of its tests.
"""

from pathlib import Path
from typing import Any

import pytest

from corpora.xml_samples import DOCUMENT, LAPTOPS, OPINIONS, REVIEWS, SCOPES
from headscope.corpora import FORMATS
from headscope.corpora.alignments import FORMS
from refusals import refusal

BEGIN, END = "#begin document (d); part {}\n", "#end document\n"
HEADER = "text\tsource\ttarget\tlabel\n"
RECORD = '{"words": ["a", "b", "c"]}\n'
PAIR = '{"sentence_good": "a b", "sentence_bad": "b a"}\n'
CLUSTERS = '{"doc_key": "d", "sentences": [["Ann", "left"], ["She"]], "clusters": [[[0, 0], [2, 2]]]}\n'
COLUMNS_OF_GAP = "ID\tText\tPronoun\tPronoun-offset\tA\tA-offset\tA-coref\tB\tB-offset\tB-coref\n"
GAP = COLUMNS_OF_GAP + "d\tAnn saw Bea; she left\tshe\t13\tAnn\t0\tTRUE\tBea\t8\tFALSE\n"


def conll2012(*words: str, part: int = 0) -> str:
    rows = "".join(f"d\t0\t{i}\t{word}\t_\t_\t_\t_\t_\t_\t_\t_\t\n" for i, word in enumerate(words))
    return f"{BEGIN.format(part)}{rows}\n{END}"


def conllu(number: int = 1, form: str = "w", *further: str) -> str:
    return "\t".join((str(number), form, *"_X__", str(number - 1), "dep", "_", "_", *further)) + "\n"


def starsem(*cells: str, word: str = "not", sentence: int = 0) -> str:
    return "\t".join(("tale01", str(sentence), "0", word, "l", "X", "*", *cells)) + "\n"


def in_brackets(*cells: str) -> str:
    rows = "".join(f"{i}\tw\t{cell}\n" for i, cell in enumerate(cells))
    return f"# begin document \n{rows}# end document\n"


WORDS = starsem("***") + "\n"
TREE = conllu(1) + conllu(2) + "\n"

NOT_UTF_8 = [  # format, content in Latin-1, line, byte
    ("bioscope", SCOPES.replace("Ca", "caf\xe9"), 3, "e9"),
    ("blimp", PAIR + PAIR.replace("a b", "caf\xe9"), 2, "e9"),
    ("conll2012", conll2012("w", "caf\xe9"), 3, "e9"),
    *((form, "a ||| b |||\ncaf\xe9 ||| b |||", 2, "e9") for form in FORMS),
    ("conllu", TREE * 300 + conllu(1, "caf\xe9"), 901, "e9"),
    ("corefud", TREE + conllu(1, "caf\xe9"), 4, "e9"),
    ("e2e-coref", CLUSTERS + CLUSTERS.replace("Ann", "caf\xe9"), 2, "e9"),
    ("gap", GAP.replace("left", "caf\xe9"), 2, "e9"),
    ("head-labels", "caf\xe9 0-root\n", 1, "e9"),
    ("frames", '[\n{"sent": {"s1_0": "caf\xe9"}, "negframe": []}]', 2, "e9"),
    ("linktable", HEADER + "caf\xe9 b\t0\t1\tx\n", 2, "e9"),
    ("ontogum", in_brackets("_").replace("w", "caf\xe9"), 2, "e9"),
    ("propbank", conllu(1, "caf\xe9", "_"), 1, "e9"),
    ("records", RECORD + '{"words": ["caf\xe9"]}', 2, "e9"),
    ("semeval", REVIEWS.replace("bread", "p\xe2t\xe9"), 4, "e2"),
    ("semeval-terms", LAPTOPS.replace("bread", "p\xe2t\xe9"), 4, "e2"),
    ("semeval2016", OPINIONS.replace("bread", "p\xe2t\xe9"), 4, "e2"),
    ("sfu", DOCUMENT.replace("</P>", "<SENTENCE><W>caf\xe9</W></SENTENCE></P>"), 4, "e9"),
    ("starsem", "".join(starsem("***", sentence=i) + "\n" for i in range(300)) + "caf\xe9", 601, "e9"),
    ("text-lines", "plain\n" * 28 + "caf\xe9\n", 29, "e9"),
    ("sentences", "plain\n" * 28 + "caf\xe9\n", 29, "e9"),
    ("text-wrapped", "plain\n" * 28 + "caf\xe9\n", 29, "e9"),
    ("wikitext", "plain\n" * 28 + "caf\xe9\n", 29, "e9"),
]

NO_DOCUMENT = {  # format: its sentence, and files that it refuses with it
    "bioscope": (
        "no sentence; BioScope needs <sentence> in <DocumentPart>: check the file.",
        ["<Annotation><DocumentSet/></Annotation>"],
    ),
    "blimp": (
        'no minimal pair; expected a JSON object with "sentence_good" and "sentence_bad" on each line: check that the '
        "file is whole.",
        ["", "\n \n"],
    ),
    "conll2012": (
        "no document; CoNLL-2012 needs '#begin document (NAME); part 000' before the words of each: check that the "
        "file is whole.",
        ["", "\n\n"],
    ),
    **dict.fromkeys(
        ("conllu", "corefud"),
        (
            "no sentence; CoNLL-U needs a line of 10 columns, separated by tabs, for each word: check that the file is "
            "whole.",
            ["", "\n\n", "# sent_id = s\n"],
        ),
    ),
    "e2e-coref": (
        'no document; expected a JSON object with "sentences" and "clusters" on each line: check that the file is '
        "whole.",
        ["", "\n \n"],
    ),
    "gap": (
        "no row; GAP needs one for each text below the one that names the columns: check that the file is whole.",
        ["", "\n \n", COLUMNS_OF_GAP],
    ),
    "frames": (
        "no list of sentences; expected one object for each sentence: check that the file is whole, or name the format "
        "that it is in.",
        ["{}", "[]", '"sent"', '{"sent": {}}'],
    ),
    "head-labels": (
        "no sentence; expected a word a line, such as 'dog 3-nsubj': check that it is whole.",
        ["", "\n \n"],
    ),
    **dict.fromkeys(
        FORMS,
        (
            "no pair; expected one a line, such as 'das Haus ||| the house ||| 0-0 1-1': check that the file is whole.",
            ["", "\n \n"],
        ),
    ),
    "linktable": (
        "no text; expected a row for each link below the one that names the columns: check that the file is whole.",
        ["", "\n \n", HEADER, HEADER + "\n"],
    ),
    "propbank": (
        "no sentence; CoNLL-U needs a line of more than 10 columns, separated by tabs, for each word: check that the "
        "file is whole.",
        ["# sent_id = s\n"],
    ),
    "records": (
        'no text; expected a JSON object with "words" on each line: check that the file is whole.',
        ["", "\n \n"],
    ),
    **dict.fromkeys(
        ("semeval", "semeval-terms"),
        (
            "no sentence; SemEval-2014 needs <sentence> in <sentences>: check the file.",
            ["<sentences>\n</sentences>\n"],
        ),
    ),
    "semeval2016": (
        "no sentence; SemEval-2016 needs <sentence> in <sentences>: check the file.",
        ["<Reviews/>", '<Reviews><Review rid="1"><sentences/></Review></Reviews>'],
    ),
    "sfu": (
        "no sentence; the SFU corpus needs <SENTENCE> in <P> in <DOCUMENT>: check it.",
        ["<DOCUMENT><P/></DOCUMENT>"],
    ),
    "starsem": (
        "no sentence; *SEM 2012 needs a line for each word, of 7 columns and those of the negations, separated by "
        "tabs: check that the file is whole.",
        ["", "\n\n"],
    ),
    "sentences": ("no text; a text corpus needs sentences, one a line: check that it is whole.", ["", "\n \n"]),
    **dict.fromkeys(
        ("text-lines", "text-wrapped", "wikitext"),
        ("no text; a text corpus needs paragraphs: check that the file is whole.", ["", "\n \n"]),
    ),
}

CONLL2012 = (
    "CoNLL-2012 needs 5 or more (document, part, number of the word, word, ..., coreference), separated by tabs or "
    "spaces: correct the line."
)
OR_NAME_IT = "separated by tabs: correct the line, or name the format that the file is in."
STARSEM = f"*SEM 2012 needs 7 and then '***' or 3 for each negation, {OR_NAME_IT}"
ONTOGUM = "OntoGUM needs 3 (number of the word, word, coreference), separated by tabs: correct the line."
COLUMNS = [  # format, what stands before the line, the line, its columns, what was expected
    ("conll2012", BEGIN.format(0), "d 0 1 w", "4 columns", CONLL2012),
    ("conll2012", BEGIN.format(0), "d\t0\t1\tw", "4 columns", CONLL2012),
    ("conll2012", BEGIN.format(0), "d", "1 column", CONLL2012),
    ("conllu", TREE * 7, conllu()[:-3], "9 columns", f"CoNLL-U needs 10, {OR_NAME_IT}"),
    ("conllu", TREE * 7, "1", "1 column", f"CoNLL-U needs 10, {OR_NAME_IT}"),
    ("conllu", TREE * 7, conllu(1, "w", "_"), "11 columns", f"CoNLL-U needs 10, {OR_NAME_IT}"),
    ("ontogum", "# begin document \n", "0\tAnn", "2 columns", ONTOGUM),
    ("ontogum", "# begin document \n", "0 Ann _", "1 column", ONTOGUM),
    ("ontogum", "# begin document \n", "0\tAnn\t_\t_", "4 columns", ONTOGUM),
    ("propbank", "# sent_id = s\n", conllu(), "10 columns", f"CoNLL-U needs more than 10, {OR_NAME_IT}"),
    ("propbank", "# sent_id = s\n", "broken", "1 column", f"CoNLL-U needs more than 10, {OR_NAME_IT}"),
    ("starsem", WORDS, starsem("_", "_"), "9 columns", STARSEM),
    ("starsem", WORDS, starsem("_", "_", "_", "_"), "11 columns", STARSEM),
    ("starsem", WORDS, starsem(), "7 columns", STARSEM),
    ("starsem", WORDS, starsem("_"), "8 columns, of which the last is '_'", STARSEM),
    ("starsem", WORDS, "word", "1 column", STARSEM),
]

TWICE = [  # format, content, line, sentence
    (
        "e2e-coref",
        CLUSTERS + CLUSTERS.replace('"d"', '"e"') + CLUSTERS,
        3,
        'has the "doc_key" "d" as line 1 has; a document needs a key of its own: rename one of them.',
    ),
    (
        "bioscope",
        SCOPES.replace("</Document>", '<sentence id="S2">a</sentence><sentence id="S1">b</sentence></Document>'),
        4,
        "has a sentence with the id 'S1', as line 3 has; a sentence needs an id of its own: rename one of them.",
    ),
    *(
        (
            "blimp",
            content,
            line,
            f'has the pair "{pair}" as line 1 has; a pair needs a "pairID" of its own: change one of them, or leave '
            "all out.",
        )
        for pair, line, content in (
            ("corpus:2", 2, PAIR.replace("{", '{"pairID": "2", ') + PAIR),
            ("u:7", 4, "".join(PAIR.replace("{", f'{{"UID": "{uid}", "pairID": "7", ') for uid in "uvwu")),
        )
    ),
    (
        "conll2012",
        conll2012("w") + conll2012("w", part=1) + conll2012("w"),
        9,
        "begins part 0 of 'd', which began on line 1 already; each part of a document comes once: leave one of the two "
        "out.",
    ),
    *(
        (
            "linktable",
            f"id\t{HEADER}{rows}",
            line,
            f"has the id {text_id} as the text on line {first} has; a text needs an id of its own, and its rows "
            "together: rename one of them.",
        )
        for rows, first, line, text_id in (
            ("x\ta b\t0\t1\tx\nx\tc d\t0\t1\tx\n", 2, 3, "'x'"),
            ("x\ta b\t0\t1\tx\ny\tc d\t0\t1\tx\nx\ta b\t1\t0\tx\n", 2, 4, "'x'"),
            ("3\ta b\t0\t1\tx\n\tc d\t0\t1\tx\n", 2, 3, "'3', which is its number,"),
        )
    ),
    *(
        (
            "records",
            content,
            line,
            f"has the id {text_id} as line {first} has; a text needs an id of its own: rename one of them, or leave "
            "all ids out.",
        )
        for content, first, line, text_id in (
            ('{"id": "x", "words": ["a"]}\n{"id": "y", "words": ["a"]}\n\n{"id": "x", "words": ["a"]}', 1, 4, '"x"'),
            ('{"id": "2", "words": ["a"]}\n' + RECORD, 1, 2, '"2", which is its number,'),
        )
    ),
    *(
        (
            name,
            content.replace(
                "</sentence>",
                f"</sentence>\n{content[content.index('<sentence ') :].partition('</sentence>')[0]}</sentence>",
            ),
            line,
            "has a sentence with the id '1', as line 3 has; a sentence needs an id of its own: rename one of them.",
        )
        for name, content, line in (
            ("semeval", REVIEWS, 9),
            ("semeval-terms", LAPTOPS, 9),
            ("semeval2016", OPINIONS, 6),
        )
    ),
    (
        "starsem",
        WORDS + starsem("***", sentence=1) + "\n" + WORDS,
        5,
        "begins sentence '0' of chapter 'tale01', as line 1 does; a sentence needs a number of its own in its chapter: "
        "renumber one of them.",
    ),
]

OUTSIDE = [  # format, content, line, end, position, words
    ("linktable", f"{HEADER}a b\t0\t1\tx\nc d\t1\t2\tx\n", 3, "target", 2, 2),
    ("records", '{"words": ["a", "b", "c"], "links": [[3, 0, "x"]]}', 1, "source", 3, 3),
    ("records", '{"words": ["a", "b", "c"], "links": [[0, -1, "x"]]}', 1, "target", -1, 3),
]
TO_ITSELF = [  # format, content, line, word
    ("linktable", f"{HEADER}a b\t1\t1\tx\n", 2, 1),
    ("records", '{"words": ["a", "b", "c"], "links": [[2, 2, "x"]]}', 1, 2),
]
NO_BRACKET = [  # format, content, line, cell
    ("conll2012", conll2012("w", "w").replace("\t\n\n", "\tNN\n\n"), 3, "NN"),
    ("ontogum", in_brackets("(person-1)", "_"), 2, "(person-1)"),  # as in GUM's own coreference files
]

CASES: dict[str, list[tuple[str, str, str]]] = {  # of each fault: format, content, and what stands behind the path
    "not UTF-8": [
        (
            name,
            content,
            f":{line} holds the byte 0x{byte}, which is not UTF-8; headscope reads UTF-8: convert the file, for "
            "instance with `iconv -f LATIN1 -t UTF-8`.",
        )
        for name, content, line, byte in NOT_UTF_8
    ],
    "no document": [
        (name, content, f" has {sentence}") for name, (sentence, files) in NO_DOCUMENT.items() for content in files
    ],
    "other columns": [
        (name, f"{before}{line.rstrip()}\n", f":{before.count(chr(10)) + 1} has {columns}; {expected}")
        for name, before, line, columns, expected in COLUMNS
    ],
    "twice": [(name, content, f":{line} {sentence}") for name, content, line, sentence in TWICE],
    "link outside": [
        (
            name,
            content,
            f':{line} has a link "x" with the {end} {position}, but {words} words; words are counted from 0, so the '
            f"last is {words - 1}: correct the {end}.",
        )
        for name, content, line, end, position, words in OUTSIDE
    ],
    "link to itself": [
        (
            name,
            content,
            f':{line} has a link "x" from word {word} to itself; a link joins two different words: correct the link or '
            "leave it out.",
        )
        for name, content, line, word in TO_ITSELF
    ],
    "no bracket": [
        (
            name,
            content,
            f":{line} has {cell!r} in its coreference column; expected brackets with the number of a chain, as in "
            "'(3', '3)' or '(3)|4)', or '_' for none: correct the last column.",
        )
        for name, content, line, cell in NO_BRACKET
    ],
}


def params() -> list[Any]:
    cases = [(fault, case) for fault, cases in CASES.items() for case in cases]
    return [pytest.param(*case, id=f"{fault}-{case[0]}-{i}") for i, (fault, case) in enumerate(cases)]


@pytest.mark.parametrize(("format", "content", "sentence"), params())
def test_a_fault_is_refused_in_one_sentence(tmp_path: Path, format: str, content: str, sentence: str) -> None:
    path = tmp_path / "corpus"
    path.write_bytes(content.encode("latin-1"))
    assert refusal(FORMATS[format].read, path) == f"{path}{sentence}"


@pytest.mark.parametrize(
    ("fault", "elsewhere"), [("not UTF-8", {"framenet"}), ("no document", {"framenet", "ontogum"})]
)
def test_no_format_is_forgotten(fault: str, elsewhere: set[str]) -> None:
    """What a release of several files lacks is tested where it is built."""
    assert {name for name, *_ in CASES[fault]} == set(FORMATS) - elsewhere
