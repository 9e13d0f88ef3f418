"""Texts in memory -> documents: strings, lists of words, datasets, data frames, parses of spaCy."""

import pandas as pd
import pytest
import spacy
from datasets import Dataset, DatasetDict
from spacy.tokens import Doc

from headscope.corpora import Document, Link, Span, read, summarize
from headscope.corpora.corpus import MEMORY
from headscope.corpora.memory import EXPECTED, read_memory
from headscope.corpora.written_text import WrittenText
from headscope.errors import CorpusError

TEXTS = ["The old dog sees .", "It\n\twas a  cat"]
TREE = "1\tone\t_\tNUM\t_\t_\t0\troot\t_\t_\n2\tday\t_\tNOUN\t_\t_\t1\tobj\t_\t_\n"
WORDS = [("The", "old", "dog", "sees", "."), ("It", "was", "a", "cat")]
WRITTEN = [
    WrittenText(TEXTS[0], ((0, 3), (4, 7), (8, 11), (12, 16), (17, 18))),
    WrittenText(TEXTS[1], ((0, 2), (4, 7), (8, 9), (11, 14))),
]


def parsed() -> Doc:
    """Two sentences with their trees, and white space before, in and between them that is no word."""
    words, heads = [" ", "Dogs", "see", "  ", "cats", "\n", "She", "left"], [2, 2, 2, 2, 2, 2, 7, 7]
    deps = ["dep", "nsubj", "ROOT", "dep", "obj", "dep", "nsubj", "ROOT"]
    pos = ["SPACE", "NOUN", "VERB", "SPACE", "NOUN", "SPACE", "PRON", "VERB"]
    spaces = [False, True, False, False, False, False, True, True]
    return Doc(spacy.blank("en").vocab, words=words, heads=heads, deps=deps, pos=pos, spaces=spaces)


@pytest.mark.parametrize(
    "corpus",
    [
        TEXTS,
        tuple(TEXTS),
        iter(TEXTS),
        [list(words) for words in WORDS],
        WORDS,
        Dataset.from_dict({"text": TEXTS, "sentence": ["no", "no"]}),
        Dataset.from_dict({"label": [1, 2], "tokens": WORDS}),
        pd.DataFrame({"number": [1, 2], "sentence": TEXTS}),
        pd.Series(TEXTS),
    ],
    ids=["strings", "tuple", "iterator", "lists", "tuples", "dataset", "dataset of words", "data frame", "series"],
)
def test_each_item_is_a_document_of_its_words(corpus) -> None:
    documents = read(corpus)
    assert [(document.id, document.words, document.group) for document in documents] == [
        ("0", WORDS[0], ""),
        ("1", WORDS[1], ""),
    ]
    assert summarize(documents).words == 9


def test_a_string_is_written_as_it_is_and_of_words_it_is_not_known() -> None:
    assert [document.written for document in read(TEXTS)] == WRITTEN
    assert [document.written for document in read(Dataset.from_dict({"text": TEXTS}))] == WRITTEN
    assert [document.written for document in read(WORDS)] == [None, None]
    assert summarize([*read(TEXTS), Document("words", WORDS[0])]).written == 2


def test_another_column_is_named() -> None:
    dataset = Dataset.from_dict({"text": ["no", "no"], "review": TEXTS})
    assert [document.words for document in read(dataset, column="review")] == WORDS


def test_the_parse_of_a_doc_becomes_links_and_spans() -> None:
    first, second = read([parsed()])
    assert first == Document(
        "0:1",
        ("Dogs", "see", "cats"),
        (Link(0, 1, "nsubj"), Link(2, 1, "obj")),
        (Span(0, 1, "NOUN", "upos"), Span(1, 2, "VERB", "upos"), Span(2, 3, "NOUN", "upos")),
        group="0",
        written=WrittenText("Dogs see  cats", ((0, 4), (5, 8), (10, 14))),
    )
    assert second.written == WrittenText("She left", ((0, 3), (4, 8)))
    assert (second.id, second.words, second.links, second.group) == (
        "0:2",
        ("She", "left"),
        (Link(0, 1, "nsubj"),),
        "0",
    )


def test_a_doc_without_a_parse_is_one_document_without_links() -> None:
    (document,) = read([spacy.blank("en")("Dogs see cats.")])
    written = WrittenText("Dogs see cats.", ((0, 4), (5, 8), (9, 13), (13, 14)))
    assert document == Document("0:1", ("Dogs", "see", "cats", "."), group="0", written=written)


def test_documents_stay_as_they_are() -> None:
    documents = [Document("a", ("one",)), Document("b", ("two", "three"))]
    corpus = read(documents)
    assert list(corpus) == documents == list(corpus)
    assert read(corpus) is corpus
    assert (corpus.name, corpus.format, len(corpus), corpus[-1]) == (MEMORY, MEMORY, 2, documents[1])


def test_the_hash_is_of_the_documents() -> None:
    documents = [Document(str(place), words) for place, words in enumerate(WORDS)]
    written = [
        Document(str(i), words, written=text) for i, (words, text) in enumerate(zip(WORDS, WRITTEN, strict=True))
    ]
    assert read(WORDS).sha256 == read(documents).sha256 != read(WORDS[::-1]).sha256
    assert read(TEXTS).sha256 == read(written).sha256 != read(WORDS).sha256


@pytest.mark.parametrize(
    ("corpus", "message"),
    [
        ([], f"the corpus is an empty list; give {EXPECTED}."),
        (["one", " \n"], "item 1 of the corpus, counted from 0, is an empty string; a text needs words: leave it out."),
        ([["one"], []], "item 1 of the corpus, counted from 0, is an empty list; a text needs words: leave it out."),
        (
            [["one", ""]],
            "item 0 of the corpus, counted from 0, has '' as word 1; a word is a string with at least one visible "
            "character: correct it.",
        ),
        (
            [["one", 2]],
            "item 0 of the corpus, counted from 0, has 2 as word 1; a word is a string with at least one visible "
            "character: correct it.",
        ),
        (["one", 2], f"item 1 of the corpus, counted from 0, is of type int; give {EXPECTED}."),
        ([{"text": "one"}], f"item 0 of the corpus, counted from 0, is of type dict; give {EXPECTED}."),
        ({"text": TEXTS}, f"the corpus is of type dict; give {EXPECTED}."),
        (
            [Document("a", ("one",)), "two"],
            "item 1 of the corpus, counted from 0, is of type str, and those before it are Documents; give items "
            "of one kind.",
        ),
        (
            Dataset.from_dict({"review": TEXTS, "stars": [1, 2]}),
            "the dataset has no column text, sentence, words, tokens or messages; its columns are review, stars: name "
            "the one with the texts, as in headscope.read(dataset, column='review') or hf:NAME#review.",
        ),
        (
            DatasetDict({"train": Dataset.from_dict({"text": TEXTS})}),
            "the dataset has the splits train; give one of them, such as dataset['train'].",
        ),
        (
            [Doc(spacy.blank("en").vocab, words=["\n"])],
            "item 0 of the corpus, counted from 0, is a Doc without words; leave it out.",
        ),
    ],
)
def test_what_is_no_corpus_is_refused_in_a_sentence(corpus, message: str) -> None:
    with pytest.raises(CorpusError) as refused:
        read_memory(corpus)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"column": "text"}, "`column` is for a dataset, and the corpus is of type list; leave it out."),
        ({"format": "conllu"}, "`format` is for a corpus on disk; leave it out, or give a path."),
    ],
)
def test_options_of_other_corpora_are_refused(arguments: dict, message: str) -> None:
    with pytest.raises(CorpusError) as refused:
        read(TEXTS, **arguments)
    assert str(refused.value) == message
    with pytest.raises(CorpusError, match=r"`column` is for a dataset in memory, and the corpus is grammar; leave it"):
        read("grammar", column="text")


def test_a_corpus_has_a_length_places_and_a_short_name(tmp_path) -> None:
    (tmp_path / "a.conllu").write_text(f"{TREE}\n{TREE}")
    corpus = read(tmp_path / "a.conllu")
    assert len(corpus) == len(list(corpus)) == 2
    assert [corpus[0].id, corpus[-1].id, corpus[-2].id] == ["a.conllu:1", "a.conllu:4", "a.conllu:1"]
    for place in (2, -3):
        with pytest.raises(IndexError, match=rf"^there is no document {place}; the corpus has 2$"):
            corpus[place]
    assert repr(corpus) == f"Corpus({str(tmp_path / 'a.conllu')!r}, conllu)"
    assert repr(read("grammar:13")) == "Corpus('grammar:13', grammar)"
    (tmp_path / "b.conllu").write_text(TREE)
    assert repr(read(tmp_path)) == f"Corpus({str(tmp_path)!r}, conllu, 2 files)"
    assert bool(read(tmp_path))
