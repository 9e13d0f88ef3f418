"""What can be asked of `Surface` beyond its defaults, and what cannot. Its numbers are in `test_witness`."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

import tiny
import witnesses
from headscope.capture.model.model import Model
from headscope.corpora.document import Document
from headscope.errors import HeadscopeError
from headscope.reducers import Surface, WordClass
from headscope.runner import Plan, measure

REFUSALS = {
    "edges that do not begin with 1, 2": (
        lambda: Surface(edges=(1, 4)),
        "the edges (1, 4) do not begin with 1, 2 and grow; give such as 1, 2, 4, 8.",
    ),
    "edges that do not grow": (
        lambda: Surface(edges=(1, 2, 8, 4)),
        "the edges (1, 2, 8, 4) do not begin with 1, 2 and grow; give such as 1, 2, 4, 8.",
    ),
    "no edges": (lambda: Surface(edges=()), "the edges () do not begin with 1, 2 and grow; give such as 1, 2, 4, 8."),
    "too far": (
        lambda: Surface(offsets=(2**64,)),
        "18446744073709551616 is no distance in tokens; give whole numbers up to 2,147,483,647.",
    ),
    "an offset twice": (lambda: Surface(offsets=(-2, -2)), "the offset -2 is named twice; name each once."),
    "a class twice": (
        lambda: Surface(classes=(WordClass("no", ("not",)), WordClass("no", ("never",)))),
        "the class no is named twice; name each once.",
    ),
    "a word for words": (
        lambda: WordClass("no", "not"),
        "the class 'no' has 'not' for words; give a list of at least one, or "
        "a function from a document to the indices of its words.",
    ),
    "no words": (
        lambda: WordClass("no", ()),
        "the class 'no' has () for words; give a list of at least one, or "
        "a function from a document to the indices of its words.",
    ),
    "blocks of nothing": (lambda: Plan(rows=0), "blocks of 0 rows were asked for; ask for 1 or more, or for none."),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_what_has_no_place_in_a_table_is_refused(case: str) -> None:
    ask, sentence = REFUSALS[case]
    with pytest.raises(HeadscopeError, match=f"^{re.escape(sentence)}$"):
        ask()


def test_lists_will_do() -> None:
    surface = Surface(offsets=[-2], classes=[WordClass("no", ["not", "never"])], edges=[1, 2])
    assert surface == Surface(offsets=(-2,), classes=(WordClass("no", ("not", "never")),), edges=(1, 2))
    table = measure(Model.from_module(*tiny.make("bert")), tiny.documents(2), [surface])
    assert table["distance"].values.tolist() == [-2, -1, 0, 1, 2]
    assert dict(table["mass_class"].sizes) == {"layer": 2, "head": 5, "class": 1}


def test_what_was_not_asked_for_is_not_there() -> None:
    table = measure(Model.from_module(*tiny.make("bert")), tiny.documents(2), ["surface"])
    assert not {"mass_offset", "mass_class", "class_share"} & set(table.data_vars)
    assert table["distance"].values.tolist() == sorted([0, *(s * 2**p for p in range(13) for s in (1, -1))])


DOCUMENTS = tiny.documents_with_roles(7)
FREQUENCY = Counter(word for document in DOCUMENTS for word in document.words)


def find_rarest(document: Document) -> list[int]:
    """The rarest word of a sentence, the first of equals."""
    return [min(range(len(document.words)), key=lambda index: FREQUENCY[document.words[index]])]


def find_nouns(document: Document) -> list[int]:
    """The words of a part of speech."""
    return [span.start for span in document.spans if (span.kind, span.label) == ("upos", "NOUN")]


def find_long(document: Document) -> Iterator[int]:
    """The words of more than ten letters."""
    return (index for index, word in enumerate(document.words) if len(word) > 10)


@pytest.mark.parametrize("family", ["bert", "mistral"])
@pytest.mark.parametrize("find", [find_rarest, find_nouns, find_long], ids=["rarest", "nouns", "long"])
def test_attention_to_words_that_a_function_finds(family: str, find) -> None:
    module, tokenizer = tiny.make(family)
    documents = [replace(document, words=("incomprehensibly", *document.words[1:])) for document in DOCUMENTS[:2]]
    documents += DOCUMENTS[2:]
    table = measure(Model.from_module(module, tokenizer), documents, [Surface(classes=[WordClass("its", find)])])
    means, shares = [], []
    for document in documents:
        ((_, seen),) = witnesses.see(module, tokenizer, document).items()
        words = set(find(document))
        columns = [index for index, key in enumerate(seen.keys) if key.word in words]
        means.append(np.array([[[sum(row[columns]) for row in rows] for rows in layer] for layer in seen.weights]))
        shares.append(len(columns) / len(seen.keys))
    expected = np.mean([mean.mean(-1) for mean in means], axis=0)
    assert expected.max() > 0
    np.testing.assert_allclose(table["mass_class"].sel({"class": "its"}), expected, atol=1e-6)
    assert table["class_share"].item() == pytest.approx(np.mean(shares))


@pytest.mark.parametrize("given", [(np.int64(0), 0), {0}, range(1)], ids=["numpy, twice", "set", "range"])
def test_indices_may_come_in_any_collection(given) -> None:
    assert WordClass("its", lambda document: given).find(DOCUMENTS[0]) == [0]


@pytest.mark.parametrize(
    ("given", "shown"),
    [(None, "None"), (3, "3"), ("the", "['t', 'h', 'e']"), ([True, False], "[True, False]"), ([0.0], "[0.0]")],
)
def test_what_is_no_indices_is_refused(given, shown: str) -> None:
    with pytest.raises(HeadscopeError) as refused:
        measure(
            Model.from_module(*tiny.make("bert")),
            DOCUMENTS,
            [Surface(classes=[WordClass("its", lambda document: given)])],
        )
    begins, ends = (
        "the function of the class 'its' gave ",
        "; return the indices of words, such as [0, 4], or [] for none.",
    )
    assert str(refused.value).startswith(f"{begins}{shown} for the document 'document-")
    assert str(refused.value).endswith(ends)


@pytest.mark.parametrize("index", [-1, 2])
def test_an_index_outside_of_the_document_is_refused(index: int) -> None:
    with pytest.raises(HeadscopeError) as refused:
        WordClass("its", lambda document: [0, index]).find(Document("d", ("the", "dog")))
    assert str(refused.value) == (
        f"the function of the class 'its' gave the word {index} of the document 'd', which has 2 words; return indices "
        "from 0 to 1."
    )
