"""Links with rivals, whatever they were read from: what is refused, what a cut leaves, and what does not change."""

import re
from dataclasses import replace

import pytest

from headscope.corpora import Document, Link, summarize
from headscope.errors import CorpusError

WORDS = ("Ann", "met", "Eve", "when", "she", "left", ".")
LINK = Link(4, 0, "pronoun", "link", rivals=(2, 5))
DOCUMENT = Document("7", WORDS, (LINK,))

LEAVE_IT_OUT = "rivals are other words, each named once: leave it out."
REFUSALS = {
    (7,): "document '7' has 7 words, but its link 'pronoun' has the rival 7; words are numbered from 0 to 6.",
    (2, -1): "document '7' has 7 words, but its link 'pronoun' has the rival -1; words are numbered from 0 to 6.",
    (2, 0): f"document '7' has a link 'pronoun' with the rival 0, which is its target; {LEAVE_IT_OUT}",
    (4,): f"document '7' has a link 'pronoun' with the rival 4, which is its source; {LEAVE_IT_OUT}",
    (2, 5, 2): f"document '7' has a link 'pronoun' with the rival 2 twice; {LEAVE_IT_OUT}",
}


@pytest.mark.parametrize("rivals", REFUSALS, ids=str)
def test_rivals_that_are_no_wrong_answers_are_refused(rivals: tuple[int, ...]) -> None:
    with pytest.raises(CorpusError, match=f"^{re.escape(REFUSALS[rivals])}$"):
        Document("7", WORDS, (replace(LINK, rivals=rivals),))


@pytest.mark.parametrize(("words", "rivals"), [(7, (2, 5)), (6, (2, 5)), (5, ())])
def test_a_cut_leaves_all_rivals_or_none(words: int, rivals: tuple[int, ...]) -> None:
    assert DOCUMENT.truncate(words).links == (replace(LINK, rivals=rivals),)
    assert DOCUMENT.truncate(4).links == ()


def test_links_without_rivals_are_written_as_before_there_were_any() -> None:
    assert repr(Link(2, 1, "obj")) == "Link(source=2, target=1, label='obj', kind='dependency')"
    assert repr(LINK) == "Link(source=4, target=0, label='pronoun', kind='link', rivals=(2, 5))"
    assert eval(repr(LINK)) == LINK


def test_a_summary_counts_the_links_with_rivals() -> None:
    other = Document("8", WORDS, (LINK, Link(5, 4, "nsubj"), Link(4, 2, "x", rivals=(0,))))
    assert (summarize([DOCUMENT, other]).rivals, summarize([Document("8", WORDS)]).rivals) == (3, 0)
