"""Small corpora with something odd in them: each is read by its content, with the words, spans, links and counts that
its lines have, or refused at its line.

Spans are written ``kind label: words``, links ``source > target label``, both as a reader of the file would.
"""

from pathlib import Path

import pytest

from headscope.corpora import Document, read, summarize
from headscope.errors import CorpusError


def review(terms: str, text: str, polarity: str) -> str:
    return (
        '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n<sentences>\n<sentence id="1">\n'
        f"<text>{text}</text>\n<aspectTerms>{terms}</aspectTerms>\n<aspectCategories>"
        f'<aspectCategory category="food" polarity="{polarity}"/></aspectCategories>\n</sentence>\n</sentences>\n'
    )


def term(text: str, polarity: str, start: int, end: int) -> str:
    return f'<aspectTerm term="{text}" polarity="{polarity}" from="{start}" to="{end}"/>'


def in_words(sentence: str) -> str:
    return f'<?xml version="1.0"?>\n<DOCUMENT>\n<P>\n<SENTENCE>\n{sentence}\n</SENTENCE>\n</P>\n</DOCUMENT>\n'


def negation(*rows: str) -> str:
    return "".join(
        "\t".join(("c1", "0", str(i), row.split()[0], "l", "NN", "*", *row.split()[1:])) + "\n"
        for i, row in enumerate(rows)
    )


def chains(*parts: tuple[str, str, str, str], name: str = "nw/x") -> str:
    """Parts of a document: *Ann saw Bob . She liked him .* with the chains of its four mentions."""
    text = ""
    for number, (ann, bob, she, him) in enumerate(parts):
        text += f"#begin document ({name}); part {number:03}\n"
        for words in ((("Ann", ann), ("saw", "-"), ("Bob", bob)), (("She", she), ("liked", "-"), ("him", him))):
            rows = (*words, (".", "-"))
            text += "".join(f"{name}\t{number}\t{i}\t{word}\tNN\t*\t{cell}\n" for i, (word, cell) in enumerate(rows))
            text += "\n"
        text += "#end document\n"
    return text


def tree(*heads: int) -> str:
    words = ("the", "old", "dog", "saw", "a", "cat")
    return "".join(
        f"{i}\t{word}\t_\tNOUN\t_\t_\t{head}\t{'root' if head == 0 else 'dep'}\t_\t_\n"
        for i, (word, head) in enumerate(zip(words, heads, strict=False), start=1)
    )


RICE = term("Rice", "conflict", 0, 4) + term("rice", "conflict", 17, 21)
NEITHER = '<W>He</W><cue type="negation" ID="0"><W>neither</W></cue><xcope><ref ID="1" SRC="{}"/><W>ate</W>'
NOR = '<cue type="negation" ID="{}"><W>nor</W></cue><W>drank</W></xcope><W>.</W>'
CHAINED = ["mention 0: Ann", "mention 0: She", "mention 1: Bob", "mention 1: him"]

READ = {  # name: content, format, what the first document has, how many documents
    "a mark that is escaped": (
        review(term("Rice &amp; beans", "positive", 0, 12), "Rice &amp; beans are good.", "positive"),
        "semeval",
        ["asked food: food", "aspect positive: Rice & beans", "same_aspect positive: Rice & beans"],
        5,
    ),
    "a term twice": (
        review(RICE, "Rice is good but rice is dry.", "conflict"),
        "semeval",
        [
            "asked food: food",
            *(f"{kind} conflict: {word}" for kind in ("aspect", "same_aspect") for word in ("Rice", "rice")),
        ],
        5,
    ),
    "a letter of two bytes": (
        review(term("café", "positive", 5, 9), "Cafe café is good.", "positive"),
        "semeval",
        ["asked food: food", "aspect positive: café", "same_aspect positive: café"],
        5,
    ),
    "a term that begins in a word": (
        review(term("Old dishes", "positive", 11, 21), "It has manyOld dishes.", "positive"),
        "semeval",
        ["asked food: food", "aspect positive: manyOld dishes", "same_aspect positive: manyOld dishes"],
        5,
    ),
    "a cue in parts": (
        in_words(NEITHER.format(0) + NOR.format(0)),
        "sfu",
        ["cue 1: neither", "cue 1: nor", "scope 1: ate", "scope 1: drank"],
        1,
    ),
    "two cues of one scope": (
        in_words(NEITHER.format("0 2") + NOR.format(2)),
        "sfu",
        ["cue 1: neither", "scope 1: ate nor drank", "cue 2: nor", "scope 2: ate", "scope 2: drank"],
        1,
    ),
    "an affix": (
        negation("He _ He _", "is _ is _", "unhappy un happy happy"),
        "starsem",
        ["affixal_cue 1: unhappy", "scope 1: He is unhappy", "event 1: unhappy"],
        1,
    ),
    "a cue of two words": (
        negation("He _ He _", "neither neither _ _", "ate _ ate ate", "nor nor _ _", "drank _ drank _"),
        "starsem",
        ["cue 1: neither", "cue 1: nor", "scope 1: He", "scope 1: ate", "scope 1: drank", "event 1: ate"],
        1,
    ),
    "chains": (chains(("(0)", "(1)", "(0)", "(1)")), "conll2012", CHAINED, 1),
    "a mention twice": (
        chains(("(0)|(0)", "(1)", "(0)|(0)", "(1)")),
        "conll2012",
        ["mention 0: Ann", "mention 0: Ann", "mention 0: She", "mention 0: She", *CHAINED[2:]],
        1,
    ),
    "mentions of two chains": (
        chains(("(0)", "(1)", "(0)|(1)", "(1)|(0)")),
        "conll2012",
        ["mention 0: Ann", "mention 0: She", "mention 0: him", "mention 1: Bob", "mention 1: She", "mention 1: him"],
        1,
    ),
    "parts": (
        chains(*[("(0)", "(1)", "(0)", "(1)")] * 2) + chains(("(0)", "(1)", "(0)", "(1)"), name="nw/y"),
        "conll2012",
        CHAINED,
        3,
    ),
    "words with heads": (
        "the 3-det\nold 3-amod\ndog 4-nsubj\nsaw 0-root\n",
        "head-labels",
        ["the > dog det", "old > dog amod", "dog > saw nsubj"],
        1,
    ),
    "a tree": (
        tree(4, 3, 4, 0, 6, 4),
        "conllu",
        ["the > saw dep", "old > dog dep", "dog > saw dep", "a > cat dep", "cat > saw dep"],
        1,
    ),
}


def describe(document: Document) -> list[str]:
    words = document.words
    spans = [
        f"{span.kind} {span.label}: {' '.join(words[span.start : span.end])}"
        for span in document.spans
        if span.kind != "upos"
    ]
    return spans + [f"{words[link.source]} > {words[link.target]} {link.label}" for link in document.links]


@pytest.mark.parametrize("name", READ)
def test_a_small_corpus_is_read_by_its_content(tmp_path: Path, name: str) -> None:
    content, format, expected, count = READ[name]
    (tmp_path / "corpus").write_text(content, encoding="utf-8")
    corpus = read(tmp_path / "corpus")
    documents = list(corpus)
    assert (corpus.format, len(documents)) == (format, count)
    # Chains are listed by the places of their mentions.
    assert sorted(describe(documents[0])) == sorted(expected)
    assert summarize(corpus).skipped == {}


@pytest.mark.parametrize(
    ("heads", "fault"),
    [
        ((2, 3, 2), "without a root, and so with a cycle"),
        ((2, 0, 0), "with several roots"),
        ((0, 0, 0, 0, 0, 0), "with several roots"),
        ((0, 3, 2, 2, 3, 5), "with a cycle"),
        ((2, 1, 2, 2, 1, 4), "without a root, and so with a cycle"),
        ((0, 1, 2, 0, 4, 4), "with several roots"),
        ((0, 1, 1, 1, 4, 1), None),
        ((0,), None),
    ],
)
def test_sentences_that_are_no_trees_are_counted_and_their_links_used(tmp_path: Path, heads, fault) -> None:
    (tmp_path / "a.conllu").write_text("\n".join([tree(*heads)] * 3) + "\n")
    summary = summarize(read(tmp_path / "a.conllu"))
    assert summary.tree_faults == ({fault: 3} if fault else {})
    links = 3 * sum(head > 0 for head in heads)
    assert summary.links == ({"dependency": {"dep": links}} if links else {})
    assert (summary.documents, summary.skipped) == (3, {})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            in_words('<W>He</W><cue type="neg" ID="0"><W>not</W></cue>'),
            "5 has a cue of the type 'neg' in sentence 1; the SFU corpus has 'negation' and 'speculation': correct it.",
        ),
        (
            negation("Unhappy un happy happy", "he _ he _"),
            "1 has the cue 'un' at the word 'Unhappy'; a cue is its word or a part of it: correct column 8.",
        ),
        (
            tree(2, 2, 2),
            "2 gives word 2 of 3 the head 2; a head is 0 for the root, the id of another word of the sentence, or '_' "
            "if there is none: correct column 7.",
        ),
    ],
)
def test_a_small_corpus_with_a_fault_is_refused_at_its_line(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "corpus"
    path.write_text(content)
    with pytest.raises(CorpusError) as caught:
        list(read(path))
    assert str(caught.value) == f"{path}:{message}"
