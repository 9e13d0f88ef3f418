"""Classes of tokens: which words are of one, what uniform attention gives them, and the figures of a real treebank."""

from collections.abc import Iterator
from pathlib import Path

import conllu
import numpy as np
import pytest
import xarray as xr

import tiny
from headscope.capture.model.model import Model
from headscope.corpora import Document, Link, Span, summarize
from headscope.errors import CorpusError
from headscope.reducers.token_classes import CLASSES, TokenClasses
from headscope.runner.local import measure

TREEBANK = "ud/UD_English-EWT/en_ewt-ud-dev.conllu"


def uniform() -> Model:
    return Model.from_module(*tiny.make_uniform(), name="uniform")


def counts(*documents: Document) -> dict[str, float]:
    """The tokens of each class, in documents of words of one token each."""
    table = measure(uniform(), documents, ["classes"])
    tokens = sum(len(document.words) + 2 for document in documents) / len(documents)
    share = table["token_class_share"] * table["token_class_count"]
    return {
        name: round(share.sel(token_class=name).item() * tokens, 9)
        for name in CLASSES
        if share.sel(token_class=name) > 0
    }


def test_uniform_attention_gives_the_baselines() -> None:
    table = measure(uniform(), tiny.documents(13), ["classes"])
    for whose in ("", "_from_cls"):
        for variable, baseline in (("attention", "uniform"), ("mass", "share")):
            values, expected = table[f"token_class_{variable}{whose}"], table[f"token_class_{baseline}"]
            np.testing.assert_allclose(values, np.broadcast_to(expected, values.shape), atol=1e-6, rtol=0)
    assert (table["token_class_share"] > table["token_class_uniform"]).sel(token_class="noun")


def test_a_class_is_told_by_annotation_and_position() -> None:
    words = ("the", "dog", "sees", "the", "dog", "by", "the", "house")
    tags = ("DET", "NOUN", "VERB", "DET", "PROPN", "ADP", "AUX", "PRON")
    links = (
        Link(1, 2, "nsubj:pass"), Link(4, 2, "obj"), Link(7, 2, "iobj"), Link(0, 2, "csubj"), Link(3, 4, "object"),
        Link(5, 4, "nsubj", "role"),
    )  # fmt: skip
    upos = tuple(Span(word, word + 1, tag, "upos") for word, tag in enumerate(tags))
    assert counts(Document("1", words, links, upos)) == {
        "noun": 2, "verb": 1, "pronoun": 1, "subject": 2, "object": 2, "cls": 1, "sep": 1,
    }  # fmt: skip


def test_negations_are_those_of_a_treebank_and_cues_but_not_parts_of_words() -> None:
    spans = (
        Span(0, 1, "Polarity=Neg", "negation"), Span(2, 4, "1", "cue"), Span(3, 4, "2", "cue"),
        Span(4, 5, "3", "affixal_cue"), Span(1, 6, "1", "scope"),
    )  # fmt: skip
    assert counts(Document("1", ("the", "dog", "sees", "the", "dog", "by"), spans=spans))["negation"] == 3


def test_a_class_that_no_document_has_is_counted_and_has_no_value() -> None:
    table = measure(uniform(), [Document("1", ("dog", "dog"), spans=(Span(0, 1, "NOUN", "upos"),))], ["classes"])
    assert table["token_class_count"].sel(token_class=["noun", "verb"]).values.tolist() == [1, 0]
    assert table["token_class_mass"].sel(token_class="verb").isnull().all()
    assert table["token_class_mass"].sel(token_class="noun").notnull().all()


def test_without_a_classification_token_nothing_comes_from_it() -> None:
    table = measure(Model.from_module(*tiny.make("gpt2"), name="gpt2"), tiny.documents(5), ["classes"])
    assert table["token_class_mass_from_cls"].isnull().all()
    assert table["token_class_count"].sel(token_class=["noun", "cls", "sep"]).values.tolist() == [
        4,
        0,
        0,
    ]  # of one text the only noun is its first word


def test_a_corpus_without_classes_is_refused() -> None:
    bare = summarize([Document("1", ("a", "b"), (Link(0, 1, "ARG0", "role"),), (Span(0, 1, "1", "mention"),))])
    with pytest.raises(CorpusError) as refused:
        TokenClasses.for_corpus(bare)
    assert str(refused.value) == (
        "the reducer `classes` needs parts of speech, dependencies or negations, and the corpus has none; "
        "give a treebank (CoNLL-U), or measure `surface` only."
    )


@pytest.mark.parametrize("document", [
    Document("1", ("a", "b"), (Link(0, 1, "det"),)),
    *(Document("1", ("a", "b"), spans=(Span(0, 1, "1", kind),)) for kind in ("upos", "negation", "cue")),
])  # fmt: skip
def test_any_annotation_of_a_class_will_do(document: Document) -> None:
    assert TokenClasses.for_corpus(summarize([document])) == TokenClasses()


def classes_of(token: dict) -> Iterator[str]:
    """What a word is, by the columns of the treebank."""
    features = (token["feats"] or {}).items()
    yield {"NOUN": "noun", "PROPN": "noun", "VERB": "verb", "PRON": "pronoun"}.get(token["upos"], "")
    relation = token["deprel"].split(":")[0]
    yield {"nsubj": "subject", "csubj": "subject", "obj": "object", "iobj": "object"}.get(relation, "")
    yield "negation" if {("Polarity", "Neg"), ("PronType", "Neg")} & set(features) else ""


@pytest.mark.full
@pytest.mark.data
@pytest.mark.demo
def test_the_classes_of_a_treebank(data: Path, ewt: xr.Dataset) -> None:
    with (data / TREEBANK).open(encoding="utf-8") as stream:
        sentences = [
            {name for token in sentence if isinstance(token["id"], int) for name in classes_of(token)}
            for sentence in conllu.parse_incr(stream)
        ]
    for name in CLASSES[:6]:
        assert ewt["token_class_count"].sel(token_class=name) == sum(name in names for names in sentences) > 200
    # [CLS] takes most of the attention, as in the paper's figure 6, and no class of words much more than its share.
    times = (ewt["token_class_mass"] / ewt["token_class_share"]).max(("layer", "head"))
    assert times.sel(token_class="cls") > 8
    assert (times.sel(token_class=list(CLASSES[:6])) < 1.5).all()


def test_in_a_decoder_the_first_token_is_of_no_class() -> None:
    """A head that rests there would look like one for the words that texts begin with."""
    words = ("the", "dog", "sees", "the")
    upos = tuple(Span(place, place + 1, tag, "upos") for place, tag in ((0, "PRON"), (2, "VERB")))
    texts = [Document("1", words, spans=upos), Document("2", words, spans=(Span(3, 4, "PRON", "upos"),))]
    table = measure(Model.from_module(*tiny.make("gpt2"), name="gpt2"), texts, ["classes"])
    assert table["token_class_count"].sel(token_class=["pronoun", "verb"]).values.tolist() == [1, 1]
    assert measure(uniform(), texts, ["classes"])["token_class_count"].sel(token_class="pronoun") == 2
