"""What is assigned to the folds: whole texts, where a corpus names enough of them."""

import pytest

from headscope.corpora import Document, summarize
from headscope.reducers.support.folds import FEWEST_TEXTS, FoldAssignment


def corpus(texts: int, *, each: int = 3) -> list[Document]:
    """So many texts of three documents each; none is named if there are none."""
    if not texts:
        return [Document(f"document {number}", (f"a{number}",)) for number in range(31)]
    return [
        Document(f"{t}-{number}", (f"a{t}-{number}",), group=f"text {t}")
        for t in range(texts)
        for number in range(each)
    ]


@pytest.mark.parametrize(("texts", "unit"), [
    (0, "document"), (1, "document of few texts"), (7, "document of few texts"), (8, "text"), (31, "text"),
])  # fmt: skip
def test_the_unit_follows_from_the_texts_that_are_named(texts: int, unit: str) -> None:
    assert FEWEST_TEXTS == 8
    assert FoldAssignment.for_corpus(summarize(corpus(texts))) == FoldAssignment(unit)


@pytest.mark.parametrize("seed", [0, 5])
def test_documents_of_one_text_share_a_fold_only_where_texts_are_assigned(seed: int) -> None:
    documents = corpus(11, each=7)
    for unit, most in (("text", 1), ("document", 7), ("document of few texts", 7)):
        assignment = FoldAssignment(unit, seed)
        folds = [{assignment.fold(document) for document in documents[k : k + 7]} for k in range(0, 77, 7)]
        assert max(map(len, folds)) <= most
        assert (min(map(len, folds)) > 1) == (most > 1)
        assert len(set.union(*folds)) > 7
    by_name = [
        [FoldAssignment(unit, seed).fold(one) for one in documents] for unit in ("document", "document of few texts")
    ]
    assert by_name[0] == by_name[1]


def test_a_document_that_names_no_text_is_one() -> None:
    document = Document("7", ("a",))
    assert FoldAssignment("text").fold(document) == FoldAssignment("document").fold(document)
