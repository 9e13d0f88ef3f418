"""Texts that are nearly the same: which are, by a naive comparison of all phrases, in any order, and in a sample."""

import random
from collections.abc import Sequence
from itertools import combinations

import networkx
import pytest

import headed
import tiny
from headscope.capture.model.model import Model
from headscope.corpora import Document, near_texts, read, summarize
from headscope.corpora.document import hash_name
from headscope.corpora.near_texts import FEWEST, SHARE, WORDS
from headscope.corpora.originals import mark_repeats
from headscope.intervene.language import prepare_texts
from headscope.intervene.prediction import SentenceReader
from headscope.reducers.support.folds import FoldAssignment
from mutations import within


def write(random: random.Random, words: int) -> list[str]:
    """A text of frequent and rare words."""
    return [f"w{int(random.paretovariate(0.4)) % 5000}" for _ in range(words)]


def cut(name: str, words: Sequence[str]) -> list[Document]:
    """Sentences of 17 words, the last one shorter."""
    return [
        Document(f"{name}-{start}", tuple(words[start : start + 17]), group=name) for start in range(0, len(words), 17)
    ]


def edit(random: random.Random, words: Sequence[str], share: float) -> list[str]:
    return ["changed" if random.random() < share else word for word in words]


@pytest.fixture
def texts() -> dict[str, list[str]]:
    """Texts apart, editions of one, a text and its first half, and a text that has a third of another."""
    generator = random.Random(7)
    texts = {f"apart{number}": write(generator, 211) for number in range(11)}
    texts |= {f"edition{number}": edit(generator, texts["apart0"], 0.03) for number in range(5)}
    texts["half"] = texts["apart1"][:103]
    texts["third"] = texts["apart2"][:71] + write(generator, 139)
    texts["capitals"] = [word.upper() for word in texts["apart3"]]
    return texts


def list_documents(texts: dict[str, list[str]], seed: int = 0) -> list[Document]:
    documents = [document for name, words in texts.items() for document in cut(name, words)]
    random.Random(seed).shuffle(documents)
    return documents


def list_clusters(documents: list[Document]) -> dict[str, str]:
    near = summarize(documents).originals.near
    return {document.group: near.get(document.group, document.group) for document in documents}


def compare_naively(documents: list[Document]) -> set[frozenset[str]]:
    """The texts that are joined, by all phrases of all pairs of texts."""
    phrases: dict[str, set[tuple[str, ...]]] = {}
    for document in documents:
        words = [word.casefold() for word in document.words]
        of_document = {tuple(words[start : start + WORDS]) for start in range(len(words) - WORDS + 1)}
        phrases.setdefault(document.group, set()).update(of_document)
    graph = networkx.Graph()
    graph.add_nodes_from(phrases)
    for (a, of_a), (b, of_b) in combinations(phrases.items(), 2):
        shorter = min(len(of_a), len(of_b))
        if shorter >= FEWEST and len(of_a & of_b) >= SHARE * shorter:
            graph.add_edge(a, b)
    return {frozenset(component) for component in networkx.connected_components(graph)}


@pytest.mark.parametrize("seed", range(3))
def test_texts_are_joined_that_share_half_of_their_phrases(texts: dict[str, list[str]], seed: int) -> None:
    documents = list_documents(texts, seed)
    clusters = list_clusters(documents)
    joined = {frozenset(name for name in clusters if clusters[name] == first) for first in clusters.values()}
    assert joined == compare_naively(documents)
    assert len(joined) == summarize(documents).texts == 12
    assert clusters == list_clusters(list_documents(texts))


def test_of_many_phrases_a_sample_is_compared_in_any_order(texts: dict[str, list[str]], monkeypatch) -> None:
    clusters = list_clusters(list_documents(texts))
    monkeypatch.setattr(near_texts, "SAMPLED", 1200)
    monkeypatch.setattr(near_texts, "_CHUNK", 101)
    assert [list_clusters(list_documents(texts, seed)) for seed in range(3)] == [clusters] * 3


def test_short_texts_stay_apart_unless_they_are_copies() -> None:
    words = write(random.Random(1), FEWEST + WORDS - 2)
    short = [Document("1", tuple(words)), Document("2", (*words[:-1], "other"))]
    assert summarize(short).originals.near == {}
    longer = [Document("1", (*words, "last")), Document("2", (*words, "other"))]
    assert summarize(longer).originals.near == {"2": "1"}


def test_texts_that_are_nearly_the_same_share_a_fold(texts: dict[str, list[str]]) -> None:
    documents = list_documents(texts)
    summary = summarize(documents)
    assignment = FoldAssignment.for_corpus(summary)
    folds = {document.group: assignment.fold(document) for document in mark_repeats(documents, summary.originals)}
    assert len({folds["apart0"], *(folds[f"edition{number}"] for number in range(5))}) == 1
    assert folds["half"] == folds["apart1"]
    assert len({folds[name] for name in summary.originals.near.values()}) == 3


def test_documents_without_a_text_are_compared_too() -> None:
    words = write(random.Random(3), 61)
    documents = [Document(str(number), tuple(write(random.Random(number), 61))) for number in range(20)]
    documents += [Document("early", tuple(words)), Document("late", (*words[:-1], "end"))]
    summary = summarize(documents)
    assignment = FoldAssignment.for_corpus(summary)
    *_, early, late = (assignment.fold(document) for document in mark_repeats(documents, summary.originals))
    assert early == late
    assert summary.texts == 0


@pytest.mark.data
def test_two_texts_of_a_real_treebank_are_nearly_the_same(data) -> None:
    documents = read(data / "ud" / "UD_English-EWT" / "en_ewt-ud-dev.conllu")
    summary = summarize(documents)
    assert summary.texts == 317
    assert len(summary.originals.near) == 1


def test_texts_of_a_language_model_that_are_nearly_the_same_are_one_cluster() -> None:
    model = Model.from_module(*headed.make("gpt2", "causal-lm"), name="gpt2")
    words = tuple(random.Random(5).choices(tiny.WHOLE, k=61))
    documents = [Document("first", words), Document("second", ("old", *words[1:])), Document("third", words[::-1])]
    evaluation = prepare_texts(SentenceReader(model), documents, name="texts")
    assert evaluation.clusters == ("first", "first", "third")


def test_many_editions_of_one_text_are_named_in_time() -> None:
    """A treebank of templates has thousands of sentences that share half of their phrases."""
    documents = [Document(f"{number:05}", ("a",)) for number in range(30_011)]
    with within():
        names = near_texts.name_near(documents, [{hash_name(document.id) for document in documents}])
    assert names == {document.id: "00000" for document in documents[1:]}
