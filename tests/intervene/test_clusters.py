"""Copies are in the cluster of their original in what models are evaluated on, as they are in its fold elsewhere."""

from dataclasses import replace

from headscope.corpora.blimp import MinimalPair
from headscope.corpora.document import Document
from headscope.intervene.evaluation import Evaluation
from headscope.intervene.labels import prepare_task
from headscope.intervene.language import prepare_last_words, prepare_pairs, prepare_texts
from headscope.intervene.prediction import SentenceReader
from headscope.learn.task import TEST
from intervene.test_likelihood import make
from planted_task import make_task, plant_task


def clusters(evaluation: Evaluation) -> dict[str, str]:
    return dict(zip(evaluation.examples, evaluation.clusters, strict=True))


def test_texts_that_a_model_reads_alike_are_of_one_cluster() -> None:
    documents = [
        Document("7", ("the", "dog", "sees", "it"), group="late"), Document("3", ("the", "dog", "sees", "it")),
        Document("5", ("the", "dog", "sees", "it"), group="early"), Document("4", ("a", "cat", "walked"), group="late"),
    ]  # fmt: skip
    for prepare in (prepare_texts, prepare_last_words):
        found = clusters(prepare(SentenceReader(make("gpt2")), documents, name="texts"))
        assert found == {"7": "3", "3": "3", "5": "3", "4": "late"}
    other = Document("8", ("the", "dog", "sees", "a", "cat"), group="later")
    whole, cut = (
        prepare_texts(SentenceReader(make("gpt2")), [documents[0], other], name="texts", max_tokens=n)
        for n in (None, 3)
    )
    assert (whole.clusters, cut.clusters) == (("late", "later"), ("late", "late"))


def test_equal_minimal_pairs_are_of_one_cluster() -> None:
    sentences = [("the dog sees", "the sees dog"), ("a cat walked", "a walked cat"), ("the dog sees", "dog the sees")]
    pairs = [
        MinimalPair(f"{paradigm}:{number}", good, bad, paradigm, "order", "syntax")
        for paradigm in "ba"
        for number, (good, bad) in enumerate(sentences)
    ]
    found = clusters(prepare_pairs(SentenceReader(make("gpt2")), pairs, name="pairs"))
    assert found == {f"{paradigm}:{number}": f"a:{number}" for paradigm in "ab" for number in range(3)}


def test_equal_examples_of_a_task_are_of_one_cluster() -> None:
    task = make_task(23)
    plain = clusters(prepare_task(plant_task([(2, 3)]), task))
    again = tuple(replace(example, name=f"{example.name}+") for example in task.splits[TEST])
    twice = replace(task, splits={**task.splits, TEST: (*task.splits[TEST], *again)})
    found = clusters(prepare_task(plant_task([(2, 3)]), twice))
    assert found == plain | {f"{name}+": cluster for name, cluster in plain.items()}
