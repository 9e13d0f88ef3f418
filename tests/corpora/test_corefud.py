"""CorefUD: which words are a mention and of which chain, what is left out, and what is refused at which line."""

import re
from collections import Counter
from functools import partial
from itertools import combinations
from pathlib import Path

import pytest

from headscope.corpora import Document, Link, Skipped, Span, summarize
from headscope.corpora import read as read_corpus
from headscope.corpora.corefud import read, recognise
from headscope.corpora.written_text import WrittenText
from refusals import refusal

FILE = "texts.conllu"
refused = partial(refusal, read)

NO_WORD = "mentions without a word"
PARTS = "mentions whose words are not next to each other"
UNBALANCED = "documents with an unbalanced coreference bracket"

TEXTS = """\
# newdoc id = market
# global.Entity = eid-etype-head-other
# sent_id = market-1
# text = Ann saw her dog's bowl.
1	Ann	Ann	PROPN	_	_	2	nsubj	_	Entity=(e1-person-1)
2	saw	see	VERB	_	_	0	root	_	_
3	her	she	PRON	_	_	4	nmod	_	Entity=(e3-object-3(e2-animal-2(e1-person-1)
4-5	dog's	_	_	_	_	_	_	_	_
4	dog	dog	NOUN	_	_	6	nmod	_	_
5	's	's	PART	_	_	4	case	_	Entity=e2)
6	bowl	bowl	NOUN	_	_	2	obj	_	Bridge=e2<e3|Entity=e3)|SpaceAfter=No
7	.	.	PUNCT	_	_	2	punct	_	_

# sent_id = market-2
# text = Barked it?
1	Barked	bark	VERB	_	_	0	root	_	_
2	it	it	PRON	_	_	1	nsubj	_	Entity=(e2-animal-1)|SpaceAfter=No
3	?	?	PUNCT	_	_	1	punct	_	_

# newdoc
# sent_id = away-1
1	Walked	walk	VERB	_	_	0	root	_	Entity=(e4-event-1
1.1	_	he	PRON	_	_	_	_	_	Entity=(e5-person-1)
1.2	_	they	PRON	_	_	_	_	_	Entity=(e6[1/2]-person-1(e7-person-1
2	Bo	Bo	PROPN	_	_	1	nsubj	_	Entity=(e1-person)e7)e6[1/2])
3	home	home	ADV	_	_	1	advmod	_	_
4	Jo	Jo	PROPN	_	_	2	conj	_	Entity=(e6[2/2]-person-1)e4)
"""


def mention(start: int, end: int, chain: str) -> Span:
    return Span(start, end, chain, kind="mention")


def tags(names: str) -> tuple[Span, ...]:
    return tuple(Span(i, i + 1, name, kind="upos") for i, name in enumerate(names.split()))


MARKET = Document(
    "texts.conllu:market",
    words=("Ann", "saw", "her", "dog", "'s", "bowl", ".", "Barked", "it", "?"),
    links=(
        Link(0, 1, "nsubj"), Link(2, 3, "nmod"), Link(3, 5, "nmod"), Link(4, 3, "case"), Link(5, 1, "obj"),
        Link(6, 1, "punct"), Link(8, 7, "nsubj"), Link(9, 7, "punct"),
    ),
    spans=(
        *tags("PROPN VERB PRON NOUN PART NOUN PUNCT VERB PRON PUNCT"),
        mention(0, 1, "e1"), mention(2, 3, "e1"), mention(2, 5, "e2"), mention(2, 6, "e3"), mention(8, 9, "e2"),
    ),
    group="texts.conllu:market",
    written=WrittenText(
        "Ann saw her dog's bowl. Barked it?",
        ((0, 3), (4, 7), (8, 11), (12, 15), (15, 17), (18, 22), (22, 23), (24, 30), (31, 33), (33, 34)),
    ),
)  # fmt: skip
AWAY = Document(
    "texts.conllu:20",
    words=("Walked", "Bo", "home", "Jo"),
    links=(Link(1, 0, "nsubj"), Link(2, 0, "advmod"), Link(3, 1, "conj")),
    spans=(*tags("VERB PROPN ADV PROPN"), mention(0, 4, "e4"), mention(1, 2, "e1"), mention(1, 2, "e7")),
    group="texts.conllu:20",
)


def spans_and_pairs(document: Document) -> tuple[set[tuple[int, int]], set[frozenset[tuple[int, int]]]]:
    """The words of the mentions of a text, and the pairs of those that are of one chain."""
    chains: dict[str, set[tuple[int, int]]] = {}
    for span in document.spans:
        if span.kind == "mention":
            chains.setdefault(span.label, set()).add((span.start, span.end))
    return set().union(*chains.values()), {
        frozenset(pair) for chain in chains.values() for pair in combinations(chain, 2)
    }


def row(number: int, entity: str = "") -> str:
    return f"{number}\tw\t_\t_\t_\t_\t0\tdep\t_\t{f'A=B|Entity={entity}' if entity else '_'}\n"


def sentence(*entities: str) -> str:
    return "".join(row(i, entity) for i, entity in enumerate(entities, start=1)) + "\n"


def mentions(path: Path) -> list[tuple[int, int, str]]:
    (document,) = read(path)
    return [(span.start, span.end, span.label) for span in document.spans]


def test_the_sentences_of_a_text_are_a_document_with_its_chains(file):
    path = file(TEXTS)
    assert list(read(path)) == [MARKET, AWAY, Skipped(f"{path}:23", NO_WORD), Skipped(f"{path}:24", PARTS)]


def test_mentions_go_across_sentences_and_end_with_their_text(file):
    path = file(
        f"# global.Entity = eid\n{sentence('(1)', '(2')}{sentence('', '2)', '(1)')}# newdoc id = b\n{sentence('(1')}"
        f"# newdoc id = c\n{sentence('1)')}{sentence('(1)')}# newdoc id = d\n{sentence('(1)')}"
    )
    first, *skipped, last = read(path, name="sub/b")
    spans = (mention(0, 1, "1"), mention(1, 4, "2"), mention(4, 5, "1"))
    assert first == Document("sub/b:1", ("w",) * 5, spans=spans, group="sub/b:1")
    assert skipped == [Skipped(f"{path}:10", UNBALANCED), Skipped(f"{path}:13", UNBALANCED)]
    assert last == Document("sub/b:d", ("w",), spans=(mention(0, 1, "1"),), group="sub/b:d")


@pytest.mark.parametrize(
    ("attributes", "entities", "expected"),
    [
        ("eid-etype-head-minspan", ["(e1--1(e12-a-b-c-d-e", "(x)e12)e1)"], [(0, 2, "e1"), (0, 2, "e12"), (1, 2, "x")]),
        ("GRP-etype-infstat", ["(1-person-new(1-person-giv:act)", "1)(2)"], [(0, 1, "1"), (0, 2, "1"), (1, 2, "2")]),
        ("GRP", ["(1(1)", "1)", "(2)(3)"], [(0, 1, "1"), (0, 2, "1"), (2, 3, "2"), (2, 3, "3")]),
        ("etype-eid", ["(person-e1", "e1)(-e2", "e2)(x-e3)"], [(0, 2, "e1"), (1, 3, "e2"), (2, 3, "e3")]),
        # Crossing, and closed before one opens on the same word.
        ("eid", ["(a", "(b", "a)", "b)(a", "a)"], [(0, 3, "a"), (1, 4, "b"), (3, 5, "a")]),
    ],
)
def test_the_header_says_which_attribute_is_the_chain(file, attributes, entities, expected):
    assert mentions(file(f"# global.Entity = {attributes}\n{sentence(*entities)}")) == expected


@pytest.mark.parametrize("comment", ["", "# global.Entity = entity-infstat\n"])
def test_without_a_word_on_the_chain_entities_are_refused(file, comment):
    path = file(comment + sentence("", "(e1-person)"))
    assert refused(path) == (
        f"{path}:{2 + bool(comment)} has 'Entity=(e1-person)', and no '# global.Entity' above it says which attribute "
        "is the chain, eid or GRP; add the comment, such as '# global.Entity = eid-etype-head-other'."
    )
    assert mentions(file(comment + sentence("", ""))) == []


@pytest.mark.parametrize(
    "entity", ["(a-e1(", "e1", "a-e1)", "(a)", "(a-)", "()", "(a-e1)x", "(a-e1))", ")", "_", "(-)", ""]
)
def test_what_is_no_bracket_is_refused(file, entity):
    path = file("# global.Entity = etype-eid\n" + sentence("(a-e0)", f"{entity}|X=Y"))
    assert refused(path) == (
        f"{path}:3 has 'Entity={entity}'; expected brackets, as in '(e1-person-1', 'e1)' or '(e1-person-1)(e2', with "
        "the chain as attribute 2 of those that open: correct column MISC."
    )


def test_a_bracket_at_a_token_of_several_words_is_refused(file):
    """As the validator of Universal Dependencies refuses it."""
    path = file(
        TEXTS.replace(
            "4-5	dog's	_	_	_	_	_	_	_	_",
            "4-5	dog's	_	_	_	_	_	_	_	A=B|Entity=(e9-animal-1)",
        )
    )
    assert refused(path) == (
        f"{path}:8 has 'Entity=(e9-animal-1)' at '4-5', a token of several words; CorefUD has mentions at words: write "
        "what opens at the first of these, and what closes at the last."
    )


def test_texts_of_one_name_have_ids_of_their_own(file):
    path = file(
        f"# newdoc id = a\n# global.Entity = eid\n{sentence('(1)')}# newdoc id = b\n{sentence('')}# newdoc id = a\n"
        f"{sentence('(2)')}{sentence('')}"
    )
    documents = [*read_corpus(path, format="corefud")]
    assert [(document.id, document.group, len(document.words)) for document in documents] == [
        (f"{FILE}:a", f"{FILE}:a", 1), (f"{FILE}:b", f"{FILE}:b", 1), (f"{FILE}:a@8", f"{FILE}:a", 2),
    ]  # fmt: skip


def test_what_a_treebank_leaves_out_is_passed_on_behind_its_text(file):
    path = file(TEXTS.replace("dog's bowl.", "cat's bowl."))
    reason = "texts that contradict their words (rebuilt from the words; the sentences are used)"
    first, skipped, second, *_ = read(path)
    assert (first, second) == (MARKET, AWAY)
    assert skipped == Skipped(f"{path}:4", reason)


def test_a_treebank_is_one_unless_coreference_is_asked_for(file):
    path = file(TEXTS)
    sentences = read_corpus(path)
    assert (sentences.format, [len(document.words) for document in sentences]) == ("conllu", [7, 3, 4])
    assert "mention" not in summarize(sentences).spans
    for corpus in (read_corpus(path, format="corefud"), read_corpus(path.parent, format="corefud")):
        assert list(corpus) == [MARKET, AWAY]
        summary = summarize(corpus)
        assert (summary.spans["mention"], summary.skipped) == (8, {NO_WORD: 1, PARTS: 1})
    assert not recognise(TEXTS.split("\n"))


@pytest.mark.data
def test_gum_has_the_words_trees_and_mentions_of_its_lines(data, read_real):
    path = data / "ud/UD_English-GUM/en_gum-ud-dev.conllu"
    texts = read_real("corefud", path)[path]
    blocks = path.read_text(encoding="utf-8").split("# newdoc id = ")[1:]
    assert len(texts) == 30
    for document, block in zip(texts, blocks, strict=True):
        assert document.id == document.group == f"{path.name}:{block.partition(chr(10))[0]}"
        rows = [line.split("\t") for line in block.split("\n") if re.match(r"[0-9]+\t", line)]
        assert list(document.words) == [columns[1] for columns in rows]
        found = [span for span in document.spans if span.kind == "mention"]
        entities = [re.search(r"(?:^|\|)Entity=([^|]*)", columns[9]) for columns in rows]
        for start, bracket in ((True, r"\(([0-9]+)"), (False, r"([0-9]+)\)|\(([0-9]+)[^()]*\)")):
            expected = Counter(
                (i, match[match.lastindex])
                for i, entity in enumerate(entities)
                for match in re.finditer(bracket, entity[1] if entity else "")
            )
            assert expected == Counter((span.start if start else span.end - 1, span.label) for span in found)


@pytest.mark.data
@pytest.mark.full
def test_ontogum_has_the_same_chains_in_its_trees_as_in_its_columns(data, read_real):
    """The two were written by others, and brackets are split in two ways."""
    folder = data / "coref/ontogum"
    files = sorted((folder / "conll").glob("GENTLE_*"))
    columns = read_real("ontogum", *files)
    trees = read_real("corefud", *(folder / "conllu" / f"{file.stem}.conllu" for file in files))
    same = skipped = 0
    for (expected,), (document,) in zip(columns.values(), trees.values(), strict=True):
        if isinstance(expected, Skipped):
            skipped += 1
            assert document == Skipped(f"{folder}/conllu/GENTLE_poetry_road.conllu:43", UNBALANCED)
            continue
        assert (document.words, document.links, document.spans, document.written) == (
            expected.words, expected.links, expected.spans, expected.written,
        )  # fmt: skip
        same += sum(span.kind == "mention" for span in document.spans)
    # Counts of test2 in data/coref/README.md, less the mentions of the faulty document before its fault.
    assert (len(files), skipped, same) == (26, 1, 1892 - 3)


@pytest.mark.data
@pytest.mark.full
def test_mentions_of_ontogum_are_mentions_of_gum(data, read_real):
    """OntoGUM was made of GUM by rules: it drops chains of one mention, and ends some mentions elsewhere."""
    path = data / "ud/UD_English-GUM/en_gum-ud-dev.conllu"
    texts = read_real("corefud", path)[path]
    files = [data / f"coref/ontogum/conll/{text.group.partition(':')[2]}.conll" for text in texts]
    counts: Counter[str] = Counter()
    for document, (other,) in zip(texts, read_real("ontogum", *files).values(), strict=True):
        assert (document.words, document.links, document.written) == (other.words, other.links, other.written)
        spans, pairs = zip(*map(spans_and_pairs, (document, other)), strict=True)
        shared = spans[0] & spans[1]
        ours, theirs = ({pair for pair in some if pair <= shared} for some in pairs)
        counts += Counter(spans=len(spans[1]), shared=len(shared), pairs=len(theirs), coreferent=len(ours & theirs))
    assert counts == {"spans": 3817, "shared": 3688, "pairs": 28387, "coreferent": 28320}
