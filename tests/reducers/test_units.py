"""Words that share their characters are one unit: each table is that of documents whose words are the units."""

from dataclasses import fields, replace

import pytest
import torch

import laws
import rivals
import tiny
from headscope.capture.model.model import Model
from headscope.capture.tokens.align import Alignment
from headscope.capture.tokens.assign import NO_WORD
from headscope.capture.tokens.batch import collate
from headscope.corpora import Document, Link, summarize
from headscope.corpora.written_text import WrittenText
from headscope.learn.probe_data import Vocabulary
from headscope.reducers import REDUCERS, Reducer, Relations, Roles, Rule, Surface, WordClass
from headscope.reducers.support.folds import FoldAssignment
from headscope.reducers.support.links import Text, permute_links
from headscope.reducers.support.permutations import Permutations, with_permutations
from headscope.runner import Plan, resolve_reducers
from plain_reducers import PLAIN

ALONE = [name for name in PLAIN if not isinstance(name, str) or REDUCERS[name].models == 1]
"""The reducers of one model."""


def make_documents() -> list[Document]:
    return [replace(each, written=each.text) for each in rivals.add_rivals(tiny.documents_with_roles(13))]


def split_words(document: Document) -> Document:
    """The same text with two annotated words, equal and linked, for each word with a letter of the alphabet's end."""
    parts = [2 if {*word} & {*"stuvwxyz"} else 1 for word in document.words]
    first = [sum(parts[:word]) for word in range(len(parts) + 1)]
    words = [word for word, count in zip(document.words, parts, strict=True) for _ in range(count)]
    offsets = [at for at, count in zip(document.text.offsets, parts, strict=True) for _ in range(count)]
    links = [
        replace(
            link,
            source=first[link.source],
            target=first[link.target],
            rivals=tuple(map(first.__getitem__, link.rivals)),
        )
        for link in document.links
    ]
    inside = [Link(first[word] + 1, first[word], "inside") for word, count in enumerate(parts) if count == 2]
    spans = [replace(span, start=first[span.start], end=first[span.end]) for span in document.spans]
    return replace(
        document, words=tuple(words), links=(*links, *inside), spans=tuple(spans),
        boundary=document.boundary and first[document.boundary],
        written=WrittenText(document.text.content, tuple(offsets)),
    )  # fmt: skip


def make_reducers(documents: list[Document]) -> list[Reducer]:
    classes = (WordClass("determiners", ("the", "a")), WordClass("first", lambda document: [0]))
    rules = [Rule("next", lambda document: [*range(1, len(document.words)), None])]
    own = {
        "surface": Surface(classes=classes),
        "relations": Relations.for_corpus(summarize(documents), rules),
        "roles": replace(Roles.for_corpus(summarize(documents)), max_words=97),  # of the words as annotated
    }
    resolved = resolve_reducers([own.get(str(name), name) for name in ALONE], summarize(documents))
    return [with_permutations(reducer, 7) for reducer in resolved]


@pytest.mark.parametrize("family", ["bert", "gpt2", "bart"])
def test_a_table_of_units_is_that_of_documents_whose_words_are_the_units(family: str) -> None:
    model, documents = Model.from_module(*tiny.make(family), name=family), make_documents()
    reducers, plan = make_reducers(documents), Plan(text="written")
    united = laws.add_up(model, [split_words(document) for document in documents], reducers, plan)
    plain = laws.add_up(model, documents, reducers, plan)
    tables = [laws.tabulate_sums(done, model, reducers) for done in (united, plain)]
    laws.assert_same(*(table.drop_attrs(deep=False) for table in tables))
    assert tables[0].attrs["units"] == tables[1].attrs["units"] == tables[1].attrs["words"] < tables[0].attrs["words"]
    inside = sum(link.label == "inside" for document in documents for link in split_words(document).links)
    assert f'"links inside a unit of words that share a token": {inside}' in tables[0].attrs["skipped"]


@pytest.mark.parametrize("kind", ["dependency", "coreference", "scope"])
def test_a_probe_is_asked_about_units_as_about_the_words_that_they_are(kind: str) -> None:
    model, documents = Model.from_module(*tiny.make("bert"), name="bert"), make_documents()
    vocabulary, assignment = Vocabulary.from_documents(documents, kind), FoldAssignment.for_corpus(summarize(documents))
    asked = []
    for texts in (documents, [split_words(document) for document in documents]):
        aligned, _ = Alignment.for_model(model, text="written").align(texts)
        asked.append(vocabulary.make_questions(collate(model, aligned), assignment))
    for each in fields(asked[0]):
        plain, united = (getattr(questions, each.name) for questions in asked)
        assert torch.equal(torch.as_tensor(plain), torch.as_tensor(united)), each.name


def space_out(document: Document) -> Document:
    """The same words with empty lines and double spaces between some, which are tokens of no word."""
    gaps = ["\n\n" if word.startswith(("d", "s")) else "  " if len(word) == 3 else " " for word in document.words]
    content, offsets = "", []
    for word, gap in zip(document.words, gaps, strict=True):
        offsets.append((len(content), len(content) + len(word)))
        content += word + gap
    return replace(document, written=WrittenText(content, tuple(offsets)))


@pytest.mark.parametrize("family", ["gpt2", "t5"])
def test_tokens_of_no_word_are_in_nobodys_way(family: str) -> None:
    model, documents = (
        Model.from_module(*tiny.make(family), name=family),
        [space_out(each) for each in make_documents()],
    )
    aligned, _ = Alignment.for_model(model, text="written").align(documents)
    if family == "gpt2":
        assert any(NO_WORD in text.word for text in aligned)
    reducers = make_reducers(documents)
    table = laws.tabulate_sums(laws.add_up(model, documents, reducers, Plan(text="written")), model, reducers)
    plain = laws.tabulate_sums(laws.add_up(model, make_documents(), reducers, Plan(text="written")), model, reducers)
    assert table.attrs["units"] == plain.attrs["units"]
    for name in ("relation_count", "antecedent_count", "role_count", "scope_count"):
        assert (table[name] == plain[name]).all(), name
    for text in (
        Text(0, each.document, 0, words) for each in aligned for words in collate(model, [each]).encoder.list_words()
    ):
        _, places = permute_links(Permutations(7), [text], len(text.document.words))
        assert (places[:, 0] >= 0).all()
        assert {*places[:, 0].tolist()} <= text.inside
