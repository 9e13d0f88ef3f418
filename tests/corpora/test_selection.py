"""The first documents of a corpus, or a random sample: which they are, what the corpus is then called, refusals."""

import hashlib
from collections import Counter
from pathlib import Path

import pytest

import headscope
from headscope.corpora import Corpus, Document, Skipped, read, summarize
from headscope.corpora.corpus import name_documents
from headscope.corpora.selection import Selection
from headscope.errors import CorpusError
from refusals import refusal

TEXTS = [f"this is text number {number}" for number in range(13)]
FILE = "own.json"
WORD = "1\tDogs\tdog\tNOUN\t_\t_\t0\troot\t_\t_\n\n"
EXAMPLE = '{"patterns": {"determiner": {"tokens": [{"POS": "DET"}, {"POS": "NOUN"}], "source": 0, "target": 1}}}'


def texts(corpus: Corpus) -> list[str]:
    return [" ".join(document.words) for document in corpus]


def test_the_first_documents() -> None:
    corpus = read(TEXTS, limit=5)
    assert texts(corpus) == texts(corpus) == TEXTS[:5]
    assert len(corpus) == summarize(corpus).documents == 5
    assert corpus[-1].id == "4"


def test_a_sample_is_in_order_and_the_same_whenever_one_asks() -> None:
    corpus = read(TEXTS, sample=5)
    whole = texts(corpus)
    assert len(corpus) == len(set(whole)) == 5
    assert whole == sorted(whole, key=TEXTS.index)
    # Whatever was asked first, and of a corpus that is read anew.
    assert [" ".join(read(TEXTS, sample=5)[place].words) for place in (3, 0)] == [whole[3], whole[0]]
    assert texts(read(iter(TEXTS), sample=5)) == whole
    assert len({tuple(texts(read(TEXTS, sample=5, seed=seed))) for seed in range(7)}) > 3


def test_every_document_is_as_likely_to_be_in_a_sample() -> None:
    counts = Counter(text for seed in range(600) for text in texts(read(TEXTS[:7], sample=3, seed=seed)))
    # Binomial with 600 draws of 3/7: a mean of 257, and five standard deviations are 61.
    assert all(196 < counts[text] < 318 for text in TEXTS[:7])


@pytest.mark.parametrize("part", [{"limit": 13}, {"limit": 10**12}, {"sample": 13}, {"sample": 10**12, "seed": 3}])
def test_as_many_as_there_are_or_more_are_the_whole_corpus(part: dict[str, int]) -> None:
    corpus, whole = read(TEXTS, **part), read(TEXTS)
    assert texts(corpus) == TEXTS
    assert (corpus.title, corpus.sha256) == (whole.title, whole.sha256)
    assert read("grammar:13", **part).title == "grammar:13"


def test_the_title_and_the_hash_say_which_part_was_taken() -> None:
    whole = read("grammar:13")
    parts = {
        "first 5 documents": {"limit": 5},
        "first 1 document": {"limit": 1},
        "5 documents at random, seed 0": {"sample": 5},
        "5 documents at random, seed 7": {"sample": 5, "seed": 7},
    }
    for words, part in parts.items():
        corpus = read("grammar:13", **part)
        assert name_documents(corpus) == corpus.title == f"grammar:13 ({words})"
        assert corpus.sha256 == hashlib.sha256(f"{whole.sha256}\n{words}\n".encode()).hexdigest()
        assert corpus.name == "grammar:13"
        assert repr(corpus) == f"Corpus('grammar:13', grammar, {words})"


def test_behind_the_first_documents_nothing_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.conllu"
    path.write_text(WORD * 3 + WORD.replace("1\t", "one\t"))
    assert len(read(path, limit=2)) == 2
    for part in ({}, {"limit": 3}, {"sample": 2}):
        assert refusal(lambda path, part=part: iter(read(path, **part)), path).startswith(f"{path}:7 ")


def test_what_was_left_out_is_counted_up_to_the_last_of_the_first_documents_and_for_a_sample_everywhere() -> None:
    documents = [Document(str(number), ("a", "word")) for number in range(3)]
    skipped = [Skipped(f"a:{number}", "a reason") for number in range(4)]
    parts = [skipped[0], documents[0], skipped[1], documents[1], skipped[2], documents[2], skipped[3]]
    limit, sample = Selection(limit=2), Selection(sample=1)
    assert list(limit.select(parts, frozenset({0, 1}))) == parts[:5]
    everywhere = [Skipped(part.where, "a reason, in the whole corpus") for part in skipped]
    assert list(sample.select(parts, frozenset({1}))) == [*everywhere[:2], documents[1], *everywhere[2:]]


def test_patterns_see_what_was_taken(file) -> None:
    pytest.importorskip("spacy", reason="patterns are matched by spaCy, which comes with the extra `spacy`")
    whole = read("grammar:31", patterns=file(EXAMPLE))
    corpus = read("grammar:31", patterns=file(EXAMPLE), limit=5)
    assert list(corpus) == list(whole)[:5]
    bare, own = read("grammar:31", limit=5).sha256, hashlib.sha256(EXAMPLE.encode()).hexdigest()
    assert corpus.sha256 == hashlib.sha256(f"{bare}\n{own}\n".encode()).hexdigest()
    last = read(TEXTS, patterns=file('{"patterns": {"own": {"tokens": [{"LOWER": "12"}]}}}'), limit=5)
    with pytest.raises(CorpusError, match=r"matches nothing in the corpus 'documents in memory \(first 5 documents\)'"):
        summarize(last)


def test_a_part_can_be_measured_by_whoever_takes_a_corpus() -> None:
    assert texts(read(read(TEXTS, limit=5))) == TEXTS[:5]


NUMBERS = {
    "limit": "`limit` is {!r}, and at least one document is needed; give a whole number from 1 on, or leave it out "
    "for the whole corpus.",
    "sample": "`sample` is {!r}, and at least one document is needed; give a whole number from 1 on, or leave it out "
    "for the whole corpus.",
}


@pytest.mark.parametrize("number", [0, -3, True])
@pytest.mark.parametrize("name", NUMBERS)
def test_what_is_no_number_of_documents_is_refused(name: str, number: object) -> None:
    with pytest.raises(CorpusError) as caught:
        headscope.read(TEXTS, **{name: number})
    assert str(caught.value) == NUMBERS[name].format(number)


REFUSALS = {
    "both": (
        {"limit": 5, "sample": 3},
        "a part of a corpus is either its first documents or a random sample; give `limit` or `sample`, and not both.",
    ),
    "seed": ({"sample": 3, "seed": -1}, "`seed` is -1; the seed of a sample is a whole number from 0 on."),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_parts_that_there_are_not_are_refused(case: str) -> None:
    part, sentence = REFUSALS[case]
    with pytest.raises(CorpusError) as caught:
        read("grammar:7", **part)
    assert str(caught.value) == sentence


def test_a_part_of_a_part_is_refused() -> None:
    with pytest.raises(CorpusError) as caught:
        read(read("grammar:7", limit=5), sample=3)
    assert str(caught.value) == ("of the corpus 'grammar:7' a part is taken already; leave `limit` and `sample` out.")
