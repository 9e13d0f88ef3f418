"""What a probe is asked, of each kind of links."""

import pytest

from headscope.corpora import read, summarize
from headscope.corpora.document import Document, Link, Span
from headscope.errors import CorpusError
from headscope.learn.choices import ROOT, Choice, find_kind, list_choices
from headscope.learn.link_kinds import KINDS


def sentence(*links: Link, spans: tuple[Span, ...] = ()) -> Document:
    return Document("a", tuple("the dog sees a cat .".split()), links, spans)


TREE = (Link(0, 1, "det"), Link(1, 2, "nsubj:pass"), Link(3, 4, "det"), Link(4, 2, "obj"), Link(5, 2, "punct"))


def test_words_of_a_tree_choose_their_heads_and_the_root_none() -> None:
    assert list_choices(sentence(*TREE), "dependency") == [
        Choice(0, (1,), "det"), Choice(1, (2,), "nsubj"), Choice(3, (4,), "det"), Choice(4, (2,), "obj"),
        Choice(2, (ROOT,), "root"),
    ]  # fmt: skip


def test_a_root_that_is_not_known_is_left_out() -> None:
    choices = list_choices(sentence(*TREE[1:]), "dependency")  # neither of two words without a head
    assert [choice.word for choice in choices] == [1, 3, 4]


def test_lengths_point_from_the_word_to_its_answer() -> None:
    lengths = {choice.word: choice.length for choice in list_choices(sentence(*TREE), "dependency")}
    assert lengths == {0: 1, 1: 1, 2: None, 3: 1, 4: -2}


def test_of_several_right_words_the_nearest_is_first() -> None:
    links = [Link(0, 5, "ARG0", "role"), Link(0, 2, "ARG1", "role"), Link(0, 1, "other", "pattern")]
    assert list_choices(sentence(*links), "role") == [Choice(0, (2, 5), "ARG1")]


def test_a_mention_chooses_any_earlier_mention_of_its_chain() -> None:
    spans = tuple(
        Span(word, word + 1, chain, kind="mention") for word, chain in ((0, "1"), (1, "2"), (2, "1"), (4, "1"))
    )
    choices = list_choices(sentence(spans=(*spans, Span(4, 5, "PRON", kind="upos"))), "coreference")
    assert choices == [Choice(2, (0,), "all"), Choice(4, (2, 0), "pronoun")]


def test_a_word_in_a_scope_chooses_a_word_of_its_cue() -> None:
    spans = (Span(2, 4, "1", kind="cue"), Span(1, 5, "1", kind="scope"))
    assert list_choices(sentence(spans=spans), "scope") == [
        Choice(1, (2, 3), "in scope"), Choice(4, (3, 2), "in scope")
    ]  # fmt: skip


def test_the_first_kind_that_a_corpus_has_is_the_default() -> None:
    grammar = summarize(read("grammar:31"))
    assert find_kind(grammar, None) == "dependency"
    assert find_kind(grammar, "coreference") == "coreference"
    assert set(KINDS) >= {"dependency", "coreference", "scope", "role", "pattern"}


def test_links_that_a_corpus_lacks_are_refused() -> None:
    summary = summarize([sentence(*TREE)])
    with pytest.raises(CorpusError, match=r"has no links of the kind 'role'.*it has dependency"):
        find_kind(summary, "role")
    with pytest.raises(CorpusError, match="has no links of any kind"):
        find_kind(summarize([sentence()]), None)
